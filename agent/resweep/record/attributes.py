"""Attributes looked at without running anybody's code."""

from __future__ import annotations


def class_attribute(kind: type, name: str) -> object:
    """Return what a class or its bases define under a name, unbound; None where none does.

    `getattr` would also find what the metaclass defines: every class has its `__call__`.
    """
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), None)
