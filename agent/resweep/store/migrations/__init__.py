"""Migrations of the store, in the order of their numbers; run at open."""
