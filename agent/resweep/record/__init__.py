"""What runs inside the user's service: wrapping, recording, spooling."""
