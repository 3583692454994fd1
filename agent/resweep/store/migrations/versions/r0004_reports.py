"""Reports of sweeps, with what their figures can be followed to."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "resweep_reports",
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("made_at", sa.Float(53), nullable=False),
        sa.Column("brief", sa.Text(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.Column("cases", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("pipeline", "id", name="pk_resweep_reports"),
    )
    op.create_index("ix_resweep_reports_made_at", "resweep_reports", ["made_at"])
