"""Passive detection: live traffic against its own past, at no cost to the retriever."""
