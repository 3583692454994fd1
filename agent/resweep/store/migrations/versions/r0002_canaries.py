"""Canaries, what they remember, epochs, and probes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "resweep_canaries",
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("event_id", sa.String(200), nullable=True),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "id", name="pk_resweep_canaries"),
    )
    op.create_index("ix_resweep_canaries_event_id", "resweep_canaries", ["event_id"])
    op.create_table(
        "resweep_systems",
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("saved_at", sa.Float(53), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "basis", name="pk_resweep_systems"),
    )
    op.create_table(
        "resweep_canary_runs",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("config", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_canary_runs"),
    )
    op.create_index("ix_resweep_canary_runs_pipeline_ts", "resweep_canary_runs", ["pipeline", "ts"])
    op.create_index("ix_resweep_canary_runs_ts", "resweep_canary_runs", ["ts"])
    op.create_table(
        "resweep_epochs",
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("epoch", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("noted_at", sa.Float(53), nullable=False),
        sa.Column("present", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "basis", "epoch", name="pk_resweep_epochs"),
    )
    op.create_table(
        "resweep_probes",
        sa.Column("event_id", sa.String(200), nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("config", sa.String(64), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_resweep_probes"),
    )
    op.create_index("ix_resweep_probes_ts", "resweep_probes", ["ts"])
