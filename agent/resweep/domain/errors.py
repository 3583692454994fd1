"""Every error resweep raises on purpose.

    ResweepError                   exit 2
    ├── UsageError                 exit 2   a command or argument that cannot be meant
    ├── ConfigError                exit 2   a pipeline config that has no identity
    │   └── UnstableValueError              a value without a stable identity, with its path
    ├── InputError                 exit 2   a file or body that cannot be used
    │   ├── LockFileError                   resweep.lock cannot be read
    │   └── NewerFormatError                written by a newer resweep
    ├── StoreError                 exit 3   the agent's database refuses
    │   ├── StoreFullError                  no space left
    │   ├── StoreReadOnlyError              the file, its folder or the disk is read-only
    │   └── StoreBusyError                  locked for longer than the busy timeout
    ├── AddressInUseError          exit 4   the port to listen on is taken
    ├── LeaseHeldError             exit 5   another agent leads on this store
    └── BudgetSpentError           exit 6   what the work may cost is spent

A message says three things: what was expected, what came, what to do.
The recording path raises none of these into the user's code: it counts and warns once.
"""

from __future__ import annotations

from typing import ClassVar


class ResweepError(Exception):
    """Base of all; catch it to catch everything resweep raises on purpose."""

    exit_code: ClassVar[int] = 2


class UsageError(ResweepError):
    """A command, option or argument that cannot be meant as given."""


class ConfigError(ResweepError):
    """A pipeline config that cannot be given an identity."""


class UnstableValueError(ConfigError):
    """A value with no stable identity inside a config; `path` says where."""

    def __init__(self, path: str, what: str) -> None:
        self.path = path
        self.what = what
        super().__init__(f"{path or 'config'}: {what}")


class InputError(ResweepError):
    """A file or request body that cannot be used."""


class LockFileError(InputError):
    """`resweep.lock` cannot be read or does not say what it must."""


class NewerFormatError(InputError):
    """A file or store written by a newer resweep than this one."""


class StoreError(ResweepError):
    """The agent's database refuses to open, read or write."""

    exit_code = 3


class StoreFullError(StoreError):
    """No space is left where the store lives."""


class StoreReadOnlyError(StoreError):
    """The store's file, folder or disk cannot be written."""


class StoreBusyError(StoreError):
    """The store stayed locked for longer than the busy timeout."""


class AddressInUseError(ResweepError):
    """The address to listen on is taken by another program."""

    exit_code = 4


class LeaseHeldError(ResweepError):
    """Another agent leads on this store, and `--standby` was not given."""

    exit_code = 5


class BudgetSpentError(ResweepError):
    """What the work may cost is spent, or cannot suffice; what was paid for is kept."""

    exit_code = 6
