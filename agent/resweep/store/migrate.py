"""Bringing a database to the tables of this version; the only place that knows Alembic."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from resweep.domain.errors import NewerFormatError
from resweep.store.engine import Database
from resweep.store.schema import VERSION_TABLE

FOLDER = Path(__file__).parent / "migrations"


def migrate(database: Database) -> None:
    """Bring the database up to date, in one transaction that no other agent shares.

    Raises NewerFormatError where a newer resweep has been there.
    """
    with database.read() as connection:
        if _is_current(connection, database.where):
            return
    with database.write() as connection:
        if not _is_current(connection, database.where):
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def schema_version(connection: Connection) -> str | None:
    """Return the revision a database is at, None for one that has no tables of ours."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _is_current(connection: Connection, where: str) -> bool:
    version, (known, head) = schema_version(connection), _revisions()
    if version is not None and version not in known:
        raise NewerFormatError(
            f"expected the store {where} at schema {head!r} or earlier; got {version!r}, written by a newer "
            f"resweep: update this one, or give it a store of its own"
        )
    return version == head


@cache
def _revisions() -> tuple[frozenset[str], str | None]:
    """Return the revisions that this version knows, and the last of them."""
    script = ScriptDirectory.from_config(_config())
    return frozenset(r.revision for r in script.walk_revisions()), script.get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
