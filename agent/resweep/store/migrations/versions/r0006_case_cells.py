"""An index that holds all that counting the labelled set by stratum and state needs."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the index."""
    op.create_index(
        "ix_resweep_cases_pipeline_stratum_state_split_plan_weight",
        "resweep_cases",
        ["pipeline", "stratum", "state", "split", "plan", "weight"],
    )
