"""The agent's pages: plain HTML from the server, readable without a script, one strict policy.

Start with `routes.Pages`. Templates and what the browser loads lie beside the code and ship in the package.
"""
