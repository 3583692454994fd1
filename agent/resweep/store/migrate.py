"""Bringing a database to the tables of this version; the only place that knows Alembic."""

from __future__ import annotations

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
    script = ScriptDirectory.from_config(_config())
    with database.read() as connection:
        if _is_current(connection, script, database.where):
            return
    with database.write() as connection:
        if not _is_current(connection, script, database.where):
            config = _config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def schema_version(connection: Connection) -> str | None:
    """Return the revision a database is at, None for one that has no tables of ours."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()


def _is_current(connection: Connection, script: ScriptDirectory, where: str) -> bool:
    version = schema_version(connection)
    known = {revision.revision for revision in script.walk_revisions()}
    if version is not None and version not in known:
        raise NewerFormatError(
            f"expected the store {where} at schema {script.get_current_head()!r} or earlier; got "
            f"{version!r}, written by a newer resweep: update this one, or give it a store of its own"
        )
    return version == script.get_current_head()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
