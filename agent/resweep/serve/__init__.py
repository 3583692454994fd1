"""What people and programs talk to: command line, HTTP API, pages."""
