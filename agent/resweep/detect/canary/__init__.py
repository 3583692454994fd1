"""Canaries: fixed texts and questions run on a schedule, compared with what they once gave."""
