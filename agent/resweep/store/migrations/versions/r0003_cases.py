"""The labelled set: cases, draws, lists, judgments, reviews, history, and sampling plans."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "resweep_cases",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("question", sa.String(64), nullable=False),
        sa.Column("query", sa.Text(), nullable=True),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("split", sa.String(16), nullable=False),
        sa.Column("cluster", sa.String(64), nullable=False),
        sa.Column("stratum", sa.String(32), nullable=False),
        sa.Column("plan", sa.String(32), nullable=True),
        sa.Column("p", sa.Float(53), nullable=True),
        sa.Column("weight", sa.Float(53), nullable=False),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.Column("plain_seen", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.String(200), nullable=True),
        sa.Column("config", sa.String(64), nullable=True),
        sa.Column("first_ts", sa.Float(53), nullable=False),
        sa.Column("last_ts", sa.Float(53), nullable=False),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("updated", sa.Float(53), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("place", sa.Float(53), nullable=False),
        sa.Column("claimed_by", sa.String(200), nullable=True),
        sa.Column("claimed_until", sa.Float(53), nullable=True),
        sa.Column("touched", sa.Boolean(), nullable=False),
        sa.Column("kept", sa.Boolean(), nullable=False),
        sa.Column("disputed", sa.Boolean(), nullable=False),
        sa.Column("skips", sa.Integer(), nullable=False),
        sa.Column("lead", sa.String(200), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_cases"),
        sa.UniqueConstraint("pipeline", "question", name="uq_resweep_cases_pipeline_question"),
    )
    op.create_index("ix_resweep_cases_cluster", "resweep_cases", ["cluster"])
    op.create_index("ix_resweep_cases_pipeline_place", "resweep_cases", ["pipeline", "place"])
    op.create_index(
        "ix_resweep_cases_pipeline_state_created", "resweep_cases", ["pipeline", "state", "created"]
    )
    op.create_index("ix_resweep_cases_pipeline_state_place", "resweep_cases", ["pipeline", "state", "place"])
    op.create_index(
        "ix_resweep_cases_pipeline_stratum_state_place",
        "resweep_cases",
        ["pipeline", "stratum", "state", "place"],
    )
    op.create_table(
        "resweep_draws",
        sa.Column("event_id", sa.String(200), nullable=False),
        sa.Column("case_id", sa.String(64), nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("since", sa.Float(53), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("stratum", sa.String(32), nullable=False),
        sa.Column("strata", sa.String(200), nullable=False),
        sa.Column("p", sa.Float(53), nullable=True),
        sa.Column("plan", sa.String(32), nullable=False),
        sa.Column("config", sa.String(64), nullable=False),
        sa.Column("user_key", sa.String(200), nullable=True),
        sa.ForeignKeyConstraint(["case_id"], ["resweep_cases.id"], name="fk_resweep_draws_case_id"),
        sa.PrimaryKeyConstraint("event_id", name="pk_resweep_draws"),
    )
    op.create_index("ix_resweep_draws_case_id", "resweep_draws", ["case_id"])
    op.create_index("ix_resweep_draws_pipeline_since", "resweep_draws", ["pipeline", "since"])
    op.create_index("ix_resweep_draws_user_key", "resweep_draws", ["user_key"])
    op.create_table(
        "resweep_lists",
        sa.Column("case_id", sa.String(64), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("config", sa.String(64), nullable=False),
        sa.Column("asked", sa.Integer(), nullable=True),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["resweep_cases.id"], name="fk_resweep_lists_case_id"),
        sa.PrimaryKeyConstraint("case_id", name="pk_resweep_lists"),
    )
    op.create_table(
        "resweep_judgments",
        sa.Column("case_id", sa.String(64), nullable=False),
        sa.Column("reviewer", sa.String(200), nullable=False),
        sa.Column("passage_id", sa.String(400), nullable=False),
        sa.Column("grade", sa.Float(53), nullable=False),
        sa.Column("text_hash", sa.String(64), nullable=True),
        sa.Column("anchor", sa.String(16), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["resweep_cases.id"], name="fk_resweep_judgments_case_id"),
        sa.PrimaryKeyConstraint("case_id", "reviewer", "passage_id", name="pk_resweep_judgments"),
    )
    op.create_table(
        "resweep_reviews",
        sa.Column("case_id", sa.String(64), nullable=False),
        sa.Column("reviewer", sa.String(200), nullable=False),
        sa.Column("outcome", sa.String(16), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("place", sa.Integer(), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["resweep_cases.id"], name="fk_resweep_reviews_case_id"),
        sa.PrimaryKeyConstraint("case_id", "reviewer", name="pk_resweep_reviews"),
    )
    op.create_index("ix_resweep_reviews_reviewer_ts", "resweep_reviews", ["reviewer", "ts"])
    op.create_table(
        "resweep_history",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("case_id", sa.String(64), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("undone", sa.Boolean(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_history"),
    )
    op.create_index("ix_resweep_history_case_id_id", "resweep_history", ["case_id", "id"])
    op.create_index("ix_resweep_history_who_id", "resweep_history", ["who", "id"])
    op.create_table(
        "resweep_plans",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("since", sa.Float(53), nullable=False),
        sa.Column("published", sa.Float(53), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_plans"),
    )
    op.create_index("ix_resweep_plans_pipeline_since", "resweep_plans", ["pipeline", "since"])
