"""Runs the migrations on the connection, and in the transaction, that the store hands over."""

from __future__ import annotations

from alembic import context

from resweep.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    render_as_batch=True,
)
context.run_migrations()
