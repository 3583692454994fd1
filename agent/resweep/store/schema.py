"""The tables. Narrow rows for what is counted and looked up; what is only carried is one payload column.

Every name begins with `resweep_`, so that the tables can share a database with others. Times are unix
seconds; minutes, hours and days are rows of one table told apart by `span` (in minutes).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

PREFIX = "resweep_"
VERSION_TABLE = f"{PREFIX}schema"

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
# SQLite numbers rows by itself in a column of type INTEGER only.
_Key = BigInteger().with_variant(Integer, "sqlite")


def _table(name: str, *items: Column[object] | UniqueConstraint | Index) -> Table:
    return Table(f"{PREFIX}{name}", metadata, *items)


pipelines = _table(
    "pipelines",
    Column("id", _Key, primary_key=True),
    Column("name", String(64), nullable=False, unique=True),
    Column("first_seen", Float(53), nullable=False),
    Column("last_seen", Float(53), nullable=False),
)

# `last_seen` is the time of the traffic, `last_active` when it reached the agent: a config retires by the
# agent's own clock. `slot` says which series its counts go to: own, other (its pipeline's), pool.
configs = _table(
    "configs",
    Column("id", _Key, primary_key=True),
    Column("pipeline_id", BigInteger, ForeignKey(pipelines.c.id), nullable=False),
    Column("config", String(64), nullable=False),
    Column("basis", String(80), nullable=False),
    Column("document", Text, nullable=False),
    Column("digest", String(80), nullable=False),
    Column("omitted", Text, nullable=False),
    Column("opaque", Text, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("observed", Text, nullable=False),
    Column("default_k", Integer),
    Column("declared", Boolean, nullable=False),
    Column("parent_id", BigInteger, ForeignKey("resweep_configs.id")),
    Column("first_seen", Float(53), nullable=False),
    Column("last_seen", Float(53), nullable=False),
    Column("last_active", Float(53), nullable=False),
    Column("slot", String(8), nullable=False),
    Column("retired_at", Float(53)),
    UniqueConstraint("pipeline_id", "config"),
    Index(None, "config"),
)

windows = _table(
    "windows",
    Column("config_id", BigInteger, ForeignKey(configs.c.id), primary_key=True),
    Column("span", Integer, primary_key=True),
    Column("start", BigInteger, primary_key=True),
    Column("retrievals", BigInteger, nullable=False),
    Column("ok", BigInteger, nullable=False),
    Column("empty_zero", BigInteger, nullable=False),
    Column("empty_none", BigInteger, nullable=False),
    Column("short", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("partial", BigInteger, nullable=False),
    Column("low_confidence", BigInteger, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Index(None, "span", "start"),
)

# pipeline_id 0 stands for the pipelines that share `other`.
totals = _table(
    "totals",
    Column("pipeline_id", BigInteger, primary_key=True, autoincrement=False),
    Column("series", String(64), primary_key=True),
    Column("payload", LargeBinary, nullable=False),
)

# The batches of a writer that were applied, as closed ranges of sequence numbers.
batches = _table(
    "batches",
    Column("writer", String(64), primary_key=True),
    Column("first_seq", BigInteger, primary_key=True, autoincrement=False),
    Column("last_seq", BigInteger, nullable=False),
    Column("seen_at", Float(53), nullable=False),
)

events = _table(
    "events",
    Column("id", String(200), primary_key=True),
    Column("config_id", BigInteger, ForeignKey(configs.c.id), nullable=False),
    Column("ts", Float(53), nullable=False),
    Column("query_key", BigInteger),
    Column("trace_id", String(200)),
    Column("user_key", String(200)),
    Column("payload", LargeBinary, nullable=False),
    Index(None, "config_id", "ts"),
    Index(None, "ts"),
    Index(None, "trace_id"),
    Index(None, "user_key"),
)

# config_id and minute are null while the feedback waits for its retrieval. `voted` marks the word of a
# rater that stands, where a later one may overrule an earlier one.
feedback = _table(
    "feedback",
    Column("event_id", String(200), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("rater", String(200), primary_key=True),
    Column("id", String(200), nullable=False),
    Column("ts", Float(53), nullable=False),
    Column("last_ts", Float(53), nullable=False),
    Column("received_at", Float(53), nullable=False),
    Column("config_hint", String(64)),
    Column("config_id", BigInteger, ForeignKey(configs.c.id)),
    Column("minute", BigInteger),
    Column("voted", Boolean, nullable=False),
    Index(None, "config_id", "minute"),
    Index(None, "config_hint"),
    Index(None, "rater"),
)

# One row a record ever made; the newest of a (pipeline, basis, epoch) is in force, the others are history.
tuned = _table(
    "tuned",
    Column("id", _Key, primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("basis", String(80), nullable=False),
    Column("epoch", Integer, nullable=False),
    Column("recorded_at", Float(53), nullable=False),
    Column("replaced_at", Float(53)),
    Column("document", Text, nullable=False),
    Index(None, "pipeline", "basis", "epoch"),
)

flags = _table(
    "flags",
    Column("id", _Key, primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("key", String(400), nullable=False),
    Column("config", String(64), nullable=False),
    Column("basis", String(80), nullable=False),
    Column("reason", String(32), nullable=False),
    Column("severity", String(16), nullable=False),
    Column("opened_ts", Float(53), nullable=False),
    Column("cleared_ts", Float(53)),
    Column("document", Text, nullable=False),
    UniqueConstraint("pipeline", "key", "opened_ts"),
    Index(None, "cleared_ts"),
)

verdicts = _table(
    "verdicts",
    Column("pipeline", String(64), primary_key=True),
    Column("basis", String(80), primary_key=True),
    Column("config", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("since", Float(53), nullable=False),
    Column("in_force", Boolean, nullable=False),
    Column("document", Text, nullable=False),
)

states = _table(
    "states",
    Column("name", String(64), primary_key=True),
    Column("value", LargeBinary, nullable=False),
    Column("saved_at", Float(53), nullable=False),
)

gauges = _table(
    "gauges",
    Column("metric", String(64), primary_key=True),
    Column("labels", String(2000), primary_key=True),
    Column("value", Float(53), nullable=False),
    Column("measured_at", Float(53), nullable=False),
)

jobs = _table(
    "jobs",
    Column("name", String(64), primary_key=True),
    Column("tick", Float(53)),
    Column("covered", Float(53)),
    Column("started", Float(53)),
    Column("succeeded", Float(53)),
    Column("next_due", Float(53)),
    Column("runs", BigInteger, nullable=False),
    Column("failures", BigInteger, nullable=False),
    Column("late", BigInteger, nullable=False),
    Column("skipped", BigInteger, nullable=False),
    Column("lateness_s", Float(53)),
    Column("error", Text),
)

maintenance = _table(
    "maintenance",
    Column("id", _Key, primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("started", Float(53), nullable=False),
    Column("until", Float(53)),
    Column("ended", Float(53)),
    Column("who", String(200), nullable=False),
    Column("because", Text, nullable=False),
    Index(None, "pipeline"),
)

acks = _table(
    "acks",
    Column("id", _Key, primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("key", String(400), nullable=False),
    Column("opened_ts", Float(53), nullable=False),
    Column("action", String(16), nullable=False),
    Column("who", String(200), nullable=False),
    Column("because", Text, nullable=False),
    Column("ts", Float(53), nullable=False),
    Index(None, "pipeline", "key"),
)

audit = _table(
    "audit",
    Column("id", _Key, primary_key=True),
    Column("ts", Float(53), nullable=False),
    Column("who", String(200), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject", String(400), nullable=False),
    Column("details", Text, nullable=False),
    Index(None, "ts"),
)

outbox = _table(
    "outbox",
    Column("id", _Key, primary_key=True),
    Column("target", String(64), nullable=False),
    Column("change", String(16), nullable=False),
    Column("pipeline", String(64), nullable=False),
    Column("key", String(400), nullable=False),
    Column("opened_ts", Float(53), nullable=False),
    Column("document", Text, nullable=False),
    Column("created", Float(53), nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_try", Float(53), nullable=False),
    Column("delivered", Float(53)),
    Column("error", Text),
    UniqueConstraint("target", "pipeline", "key", "opened_ts", "change"),
    Index(None, "delivered", "next_try"),
)

# Things that were counted and then forgotten, by name.
tallies = _table(
    "tallies",
    Column("name", String(64), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

# Questions that retrieval canaries ask. One that came from a live event goes when the event goes.
canaries = _table(
    "canaries",
    Column("pipeline", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("origin", String(16), nullable=False),
    Column("event_id", String(200)),
    Column("created", Float(53), nullable=False),
    Column("document", Text, nullable=False),
    Index(None, "event_id"),
)

# What the canaries of one system remember: stored vectors and answers.
systems = _table(
    "systems",
    Column("pipeline", String(64), primary_key=True),
    Column("basis", String(80), primary_key=True),
    Column("saved_at", Float(53), nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

canary_runs = _table(
    "canary_runs",
    Column("id", _Key, primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("basis", String(80), nullable=False),
    Column("config", String(64), nullable=False),
    Column("kind", String(16), nullable=False),
    Column("ts", Float(53), nullable=False),
    Column("document", Text, nullable=False),
    Index(None, "pipeline", "ts"),
    Index(None, "ts"),
)

# Which embedder, by its canary digest, each epoch of a basis was seen with. `present`: seen last.
epochs = _table(
    "epochs",
    Column("pipeline", String(64), primary_key=True),
    Column("basis", String(80), primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(64), nullable=False),
    Column("noted_at", Float(53), nullable=False),
    Column("present", Boolean, nullable=False),
)

# What a live query found when it was asked again, deeper. It goes when its event goes.
probes = _table(
    "probes",
    Column("event_id", String(200), primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("config", String(64), nullable=False),
    Column("ts", Float(53), nullable=False),
    Column("k", Integer, nullable=False),
    Column("payload", LargeBinary, nullable=False),
    Index(None, "ts"),
)

# One row a question of the labelled set. `p`, `weight`, `stratum`, `plan` and `event_id` follow from its
# draws; `place` is its random place in the queue. `touched`: a person has had it in hand. `kept`: a person
# wants it to outlive the event it came from. `lead` is the reviewer whose word counts.
cases = _table(
    "cases",
    Column("id", String(64), primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("question", String(64), nullable=False),
    Column("query", Text),
    Column("origin", String(16), nullable=False),
    Column("state", String(16), nullable=False),
    Column("split", String(16), nullable=False),
    Column("cluster", String(64), nullable=False),
    Column("stratum", String(32), nullable=False),
    Column("plan", String(32)),
    Column("p", Float(53)),
    Column("weight", Float(53), nullable=False),
    Column("seen", BigInteger, nullable=False),
    Column("plain_seen", BigInteger, nullable=False),
    Column("event_id", String(200)),
    Column("config", String(64)),
    Column("first_ts", Float(53), nullable=False),
    Column("last_ts", Float(53), nullable=False),
    Column("created", Float(53), nullable=False),
    Column("updated", Float(53), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("place", Float(53), nullable=False),
    Column("claimed_by", String(200)),
    Column("claimed_until", Float(53)),
    Column("touched", Boolean, nullable=False),
    Column("kept", Boolean, nullable=False),
    Column("disputed", Boolean, nullable=False),
    Column("skips", Integer, nullable=False),
    Column("lead", String(200)),
    Column("document", Text, nullable=False),
    UniqueConstraint("pipeline", "question"),
    Index(None, "pipeline", "place"),
    Index(None, "pipeline", "state", "place"),
    Index(None, "pipeline", "stratum", "state", "place"),
    Index(None, "pipeline", "stratum", "state", "split", "plan", "weight"),  # counts need nothing else
    Index(None, "pipeline", "state", "created"),
    Index(None, "cluster"),
)

# The sampled events that were folded into cases. `p` is null for one that fell out of its hour's draw after a
# person had its case in hand: it stands for no traffic.
draws = _table(
    "draws",
    Column("event_id", String(200), primary_key=True),
    Column("case_id", String(64), ForeignKey(cases.c.id), nullable=False),
    Column("pipeline", String(64), nullable=False),
    Column("since", Float(53), nullable=False),
    Column("ts", Float(53), nullable=False),
    Column("stratum", String(32), nullable=False),
    Column("strata", String(200), nullable=False),
    Column("p", Float(53)),
    Column("plan", String(32), nullable=False),
    Column("config", String(64), nullable=False),
    Column("user_key", String(200)),
    Index(None, "case_id"),
    Index(None, "pipeline", "since"),
    Index(None, "user_key"),
)

# What there is to judge: the deepest list seen for a case.
lists = _table(
    "lists",
    Column("case_id", String(64), ForeignKey(cases.c.id), primary_key=True),
    Column("ts", Float(53), nullable=False),
    Column("config", String(64), nullable=False),
    Column("asked", Integer),
    Column("depth", Integer, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

judgments = _table(
    "judgments",
    Column("case_id", String(64), ForeignKey(cases.c.id), primary_key=True),
    Column("reviewer", String(200), primary_key=True),
    Column("passage_id", String(400), primary_key=True),
    Column("grade", Float(53), nullable=False),
    Column("text_hash", String(64)),
    Column("anchor", String(16), nullable=False),
    Column("ts", Float(53), nullable=False),
)

# What a model says of a passage; it counts for nothing until a person says the same.
suggestions = _table(
    "suggestions",
    Column("case_id", String(64), ForeignKey(cases.c.id), primary_key=True),
    Column("passage_id", String(400), primary_key=True),
    Column("grade", Float(53), nullable=False),
    Column("text_hash", String(64)),
    Column("judge", String(200), nullable=False),
    Column("reason", Text, nullable=False),
    Column("ts", Float(53), nullable=False),
)

# A reviewer's word on a case: done with it, or passed it over. `place`: how many were done before it.
reviews = _table(
    "reviews",
    Column("case_id", String(64), ForeignKey(cases.c.id), primary_key=True),
    Column("reviewer", String(200), primary_key=True),
    Column("outcome", String(16), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("place", Integer, nullable=False),
    Column("ts", Float(53), nullable=False),
    Column("document", Text, nullable=False),
    Index(None, "reviewer", "ts"),
)

history = _table(
    "history",
    Column("id", _Key, primary_key=True),
    Column("case_id", String(64), nullable=False),
    Column("ts", Float(53), nullable=False),
    Column("who", String(200), nullable=False),
    Column("action", String(32), nullable=False),
    Column("undone", Boolean, nullable=False),
    Column("document", Text, nullable=False),
    Index(None, "case_id", "id"),
    Index(None, "who", "id"),
)

# Every plan ever published; `current` marks the one in force for its hour.
plans = _table(
    "plans",
    Column("id", String(32), primary_key=True),
    Column("pipeline", String(64), nullable=False),
    Column("since", Float(53), nullable=False),
    Column("published", Float(53), nullable=False),
    Column("current", Boolean, nullable=False),
    Column("document", Text, nullable=False),
    Index(None, "pipeline", "since"),
)

# `brief` is what a list of reports shows, `document` the packed report, `cases` the packed lists behind it.
reports = _table(
    "reports",
    Column("pipeline", String(64), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("basis", String(80), nullable=False),
    Column("made_at", Float(53), nullable=False),
    Column("brief", Text, nullable=False),
    Column("document", LargeBinary, nullable=False),
    Column("cases", LargeBinary),
    Index(None, "made_at"),
)
