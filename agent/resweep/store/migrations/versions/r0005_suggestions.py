"""Suggestions: what a model says of passages before a person does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "resweep_suggestions",
        sa.Column("case_id", sa.String(64), nullable=False),
        sa.Column("passage_id", sa.String(400), nullable=False),
        sa.Column("grade", sa.Float(53), nullable=False),
        sa.Column("text_hash", sa.String(64), nullable=True),
        sa.Column("judge", sa.String(200), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("case_id", "passage_id", name="pk_resweep_suggestions"),
        sa.ForeignKeyConstraint(["case_id"], ["resweep_cases.id"], name="fk_resweep_suggestions_case_id"),
    )
