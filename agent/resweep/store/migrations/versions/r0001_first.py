"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "resweep_acks",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("key", sa.String(400), nullable=False),
        sa.Column("opened_ts", sa.Float(53), nullable=False),
        sa.Column("action", sa.String(16), nullable=False),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("because", sa.Text(), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_acks"),
    )
    op.create_index("ix_resweep_acks_pipeline_key", "resweep_acks", ["pipeline", "key"])
    op.create_table(
        "resweep_audit",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("subject", sa.String(400), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_audit"),
    )
    op.create_index("ix_resweep_audit_ts", "resweep_audit", ["ts"])
    op.create_table(
        "resweep_batches",
        sa.Column("writer", sa.String(64), nullable=False),
        sa.Column("first_seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last_seq", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("writer", "first_seq", name="pk_resweep_batches"),
    )
    op.create_table(
        "resweep_flags",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("key", sa.String(400), nullable=False),
        sa.Column("config", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("reason", sa.String(32), nullable=False),
        sa.Column("severity", sa.String(16), nullable=False),
        sa.Column("opened_ts", sa.Float(53), nullable=False),
        sa.Column("cleared_ts", sa.Float(53), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_flags"),
        sa.UniqueConstraint("pipeline", "key", "opened_ts", name="uq_resweep_flags_pipeline_key_opened_ts"),
    )
    op.create_index("ix_resweep_flags_cleared_ts", "resweep_flags", ["cleared_ts"])
    op.create_table(
        "resweep_gauges",
        sa.Column("metric", sa.String(64), nullable=False),
        sa.Column("labels", sa.String(2000), nullable=False),
        sa.Column("value", sa.Float(53), nullable=False),
        sa.Column("measured_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("metric", "labels", name="pk_resweep_gauges"),
    )
    op.create_table(
        "resweep_jobs",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("tick", sa.Float(53), nullable=True),
        sa.Column("covered", sa.Float(53), nullable=True),
        sa.Column("started", sa.Float(53), nullable=True),
        sa.Column("succeeded", sa.Float(53), nullable=True),
        sa.Column("next_due", sa.Float(53), nullable=True),
        sa.Column("runs", sa.BigInteger(), nullable=False),
        sa.Column("failures", sa.BigInteger(), nullable=False),
        sa.Column("late", sa.BigInteger(), nullable=False),
        sa.Column("skipped", sa.BigInteger(), nullable=False),
        sa.Column("lateness_s", sa.Float(53), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name", name="pk_resweep_jobs"),
    )
    op.create_table(
        "resweep_maintenance",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("started", sa.Float(53), nullable=False),
        sa.Column("until", sa.Float(53), nullable=True),
        sa.Column("ended", sa.Float(53), nullable=True),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("because", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_maintenance"),
    )
    op.create_index("ix_resweep_maintenance_pipeline", "resweep_maintenance", ["pipeline"])
    op.create_table(
        "resweep_outbox",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("target", sa.String(64), nullable=False),
        sa.Column("change", sa.String(16), nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("key", sa.String(400), nullable=False),
        sa.Column("opened_ts", sa.Float(53), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(53), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("next_try", sa.Float(53), nullable=False),
        sa.Column("delivered", sa.Float(53), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_outbox"),
        sa.UniqueConstraint(
            "target",
            "pipeline",
            "key",
            "opened_ts",
            "change",
            name="uq_resweep_outbox_target_pipeline_key_opened_ts_change",
        ),
    )
    op.create_index("ix_resweep_outbox_delivered_next_try", "resweep_outbox", ["delivered", "next_try"])
    op.create_table(
        "resweep_pipelines",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("first_seen", sa.Float(53), nullable=False),
        sa.Column("last_seen", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_pipelines"),
        sa.UniqueConstraint("name", name="uq_resweep_pipelines_name"),
    )
    op.create_table(
        "resweep_states",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("saved_at", sa.Float(53), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_resweep_states"),
    )
    op.create_table(
        "resweep_tallies",
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_resweep_tallies"),
    )
    op.create_table(
        "resweep_totals",
        sa.Column("pipeline_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("series", sa.String(64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline_id", "series", name="pk_resweep_totals"),
    )
    op.create_table(
        "resweep_tuned",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("recorded_at", sa.Float(53), nullable=False),
        sa.Column("replaced_at", sa.Float(53), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_tuned"),
    )
    op.create_index("ix_resweep_tuned_pipeline_basis_epoch", "resweep_tuned", ["pipeline", "basis", "epoch"])
    op.create_table(
        "resweep_verdicts",
        sa.Column("pipeline", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("config", sa.String(64), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("since", sa.Float(53), nullable=False),
        sa.Column("in_force", sa.Boolean(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("pipeline", "basis", name="pk_resweep_verdicts"),
    )
    op.create_table(
        "resweep_configs",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("pipeline_id", sa.BigInteger(), nullable=False),
        sa.Column("config", sa.String(64), nullable=False),
        sa.Column("basis", sa.String(80), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(80), nullable=False),
        sa.Column("omitted", sa.Text(), nullable=False),
        sa.Column("opaque", sa.Text(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("observed", sa.Text(), nullable=False),
        sa.Column("default_k", sa.Integer(), nullable=True),
        sa.Column("declared", sa.Boolean(), nullable=False),
        sa.Column("parent_id", sa.BigInteger(), nullable=True),
        sa.Column("first_seen", sa.Float(53), nullable=False),
        sa.Column("last_seen", sa.Float(53), nullable=False),
        sa.Column("last_active", sa.Float(53), nullable=False),
        sa.Column("slot", sa.String(8), nullable=False),
        sa.Column("retired_at", sa.Float(53), nullable=True),
        sa.ForeignKeyConstraint(["parent_id"], ["resweep_configs.id"], name="fk_resweep_configs_parent_id"),
        sa.ForeignKeyConstraint(
            ["pipeline_id"], ["resweep_pipelines.id"], name="fk_resweep_configs_pipeline_id"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_configs"),
        sa.UniqueConstraint("pipeline_id", "config", name="uq_resweep_configs_pipeline_id_config"),
    )
    op.create_index("ix_resweep_configs_config", "resweep_configs", ["config"])
    op.create_table(
        "resweep_events",
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("config_id", sa.BigInteger(), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("query_key", sa.BigInteger(), nullable=True),
        sa.Column("trace_id", sa.String(200), nullable=True),
        sa.Column("user_key", sa.String(200), nullable=True),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["config_id"], ["resweep_configs.id"], name="fk_resweep_events_config_id"),
        sa.PrimaryKeyConstraint("id", name="pk_resweep_events"),
    )
    op.create_index("ix_resweep_events_config_id_ts", "resweep_events", ["config_id", "ts"])
    op.create_index("ix_resweep_events_trace_id", "resweep_events", ["trace_id"])
    op.create_index("ix_resweep_events_ts", "resweep_events", ["ts"])
    op.create_index("ix_resweep_events_user_key", "resweep_events", ["user_key"])
    op.create_table(
        "resweep_feedback",
        sa.Column("event_id", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("rater", sa.String(200), nullable=False),
        sa.Column("id", sa.String(200), nullable=False),
        sa.Column("ts", sa.Float(53), nullable=False),
        sa.Column("last_ts", sa.Float(53), nullable=False),
        sa.Column("received_at", sa.Float(53), nullable=False),
        sa.Column("config_hint", sa.String(64), nullable=True),
        sa.Column("config_id", sa.BigInteger(), nullable=True),
        sa.Column("minute", sa.BigInteger(), nullable=True),
        sa.Column("voted", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["config_id"], ["resweep_configs.id"], name="fk_resweep_feedback_config_id"),
        sa.PrimaryKeyConstraint("event_id", "kind", "rater", name="pk_resweep_feedback"),
    )
    op.create_index("ix_resweep_feedback_config_hint", "resweep_feedback", ["config_hint"])
    op.create_index("ix_resweep_feedback_config_id_minute", "resweep_feedback", ["config_id", "minute"])
    op.create_index("ix_resweep_feedback_rater", "resweep_feedback", ["rater"])
    op.create_table(
        "resweep_windows",
        sa.Column("config_id", sa.BigInteger(), nullable=False),
        sa.Column("span", sa.Integer(), nullable=False),
        sa.Column("start", sa.BigInteger(), nullable=False),
        sa.Column("retrievals", sa.BigInteger(), nullable=False),
        sa.Column("ok", sa.BigInteger(), nullable=False),
        sa.Column("empty_zero", sa.BigInteger(), nullable=False),
        sa.Column("empty_none", sa.BigInteger(), nullable=False),
        sa.Column("short", sa.BigInteger(), nullable=False),
        sa.Column("errors", sa.BigInteger(), nullable=False),
        sa.Column("partial", sa.BigInteger(), nullable=False),
        sa.Column("low_confidence", sa.BigInteger(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["config_id"], ["resweep_configs.id"], name="fk_resweep_windows_config_id"),
        sa.PrimaryKeyConstraint("config_id", "span", "start", name="pk_resweep_windows"),
    )
    op.create_index("ix_resweep_windows_span_start", "resweep_windows", ["span", "start"])


def downgrade() -> None:
    """Refuse: an older agent would lose what these tables hold."""
    raise NotImplementedError("a store is not taken back to an earlier schema: restore a backup")
