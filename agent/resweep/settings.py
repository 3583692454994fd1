"""The agent's settings: `resweep.toml`, then the environment (`RESWEEP_…`), then flags; the later wins.

A setting is named `section.name` in the file and `RESWEEP_SECTION_NAME` in the environment; the section
`agent` is left out there (`RESWEEP_LISTEN`). What every one means is in docs/configuration.md, which is
checked against this table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from datetime import date
from typing import Any, Literal, get_type_hints

from resweep.domain.verdict import Reason, Severity

PREFIX = "RESWEEP_"


def _setting(
    default: Any, doc: str, *, low: float | None = None, high: float | None = None, path: bool = False
) -> Any:
    return field(default=default, metadata={"doc": doc, "low": low, "high": high, "path": path})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """Where the agent listens, keeps its state, and how it speaks."""

    listen: str = _setting(
        "127.0.0.1:9464",
        "Address and port of the HTTP API and /metrics; port 0 takes a free one. An address that is not "
        "loopback needs RESWEEP_TOKEN.",
    )
    home: str | None = _setting(
        None,
        "Folder of the agent's own files (store, token, address) with the spool in it; recorders read the "
        "same variable. Default: `$XDG_STATE_HOME/resweep`, else `~/.local/state/resweep`.",
        path=True,
    )
    spool_dir: str | None = _setting(
        None,
        "Folder into which recorders put their batches, where it is not `spool` in the home folder.",
        path=True,
    )
    store: str | None = _setting(
        None, "Database URL; without one, an SQLite file `resweep.db` in the home folder."
    )
    token: str | None = _setting(
        None,
        "Bearer token of the HTTP API. Keep it in the environment. Without one, and on loopback only, a "
        "token is made and kept in the file `token` of the home folder, readable by its owner alone.",
    )
    lock_file: str | None = _setting(
        None,
        "resweep.lock to follow; without one, the file found from the agent's folder upward, if any.",
        path=True,
    )
    rules_file: str | None = _setting(
        None,
        "File of your own rules on what a change to a config means, tried before the shipped ones "
        "(`resweep rules` shows those). Recorders read it too, from the same file and variable.",
        path=True,
    )
    standby: bool = _setting(
        False, "Wait for the lease while another agent leads on the same store, and take over when it ends."
    )
    log_format: Literal["plain", "json"] = _setting(
        "plain", "One line of text, or one JSON object, a log entry."
    )
    log_level: Literal["debug", "info", "warning", "error"] = _setting("info", "Least level that is logged.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionSettings:
    """How long the store keeps what. Totals, flags, configs and tuned depths stay."""

    minutes_days: float = _setting(14.0, "Days for which windows of a minute are kept.", low=1)
    hours_days: float = _setting(400.0, "Days for which windows of an hour are kept.", low=1)
    events_days: float = _setting(30.0, "Days for which sampled events are kept.", low=0)
    events_max: int = _setting(200_000, "Sampled events kept at most; the oldest go first.", low=0)
    store_bytes: int | None = _setting(
        None, "Size beyond which an SQLite store refuses to grow, in bytes.", low=1 << 20
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """What the HTTP intake takes at most."""

    body_bytes: int = _setting(
        8 << 20, "Largest request body, in bytes, as sent and as unpacked from gzip.", low=1024
    )
    requests_per_second: float = _setting(
        200.0, "Requests a second that one address may send on average; bursts of twice that pass.", low=1
    )
    spool_files: int = _setting(500, "Batches read from the spool in one go.", low=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsSettings:
    """What /metrics shows."""

    configs: int = _setting(
        5, "Busiest configs of a pipeline that keep their own series; the rest share `other`.", low=1, high=20
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSettings:
    """Metrics pushed to an OpenTelemetry collector."""

    endpoint: str | None = _setting(
        None, "URL of an OTLP/HTTP metrics intake, as `http://127.0.0.1:4318/v1/metrics`; none: no push."
    )
    interval_s: float = _setting(60.0, "Seconds between two pushes.", low=1)
    timeout_s: float = _setting(5.0, "Seconds after which a push is given up.", low=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSettings:
    """A signed call for each flag that opens or clears."""

    url: str | None = _setting(None, "URL to call; none: no calls.")
    secret: str | None = _setting(None, "Key of the signature (HMAC-SHA256). Keep it in the environment.")
    format: Literal["generic", "github", "gitlab"] = _setting(
        "generic",
        "Body of the call: a flag as JSON, a GitHub repository_dispatch, or a GitLab pipeline trigger.",
    )
    token: str | None = _setting(None, "Token of GitHub or GitLab. Keep it in the environment.")
    ref: str = _setting("main", "Branch or tag that GitLab runs the pipeline on.")
    allow_private: bool = _setting(False, "Also call private and loopback addresses.")
    timeout_s: float = _setting(5.0, "Seconds after which a call is given up; it is tried again.", low=0.1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSection:
    """What recorders in your services read, from the same file and environment."""

    sink: str | None = _setting(
        None,
        "Where batches go: `none`, `spool:FOLDER` or an agent's URL; else the spool of the home folder.",
    )
    spans: str | None = _setting(
        None, "Where a span of each retrieval goes: `otel`, the process's own provider, or an OTLP/HTTP URL."
    )
    capture: Literal["none", "sampled", "text"] = _setting(
        "none", "Whose query and passage texts are kept: nobody's, those of sampled retrievals, or all."
    )
    token: str | None = _setting(None, "Bearer token of the agent, where the sink is a URL.")
    salt: str | None = _setting(
        None,
        "Joins the veiled queries of processes without a common home folder. Keep it in the environment.",
    )
    sample_rate: float = _setting(0.05, "Share of retrievals that are sampled.", low=0, high=1)
    sample_per_minute: int = _setting(60, "Sampled retrievals of a config in a minute, at most.", low=1)
    ring_bytes: int = _setting(16 << 20, "Bytes that records may keep alive until they are folded.", low=1024)
    flush_s: float = _setting(1.0, "Seconds between two batches.", low=0.1)
    configs: int = _setting(
        5, "Configs with series of their own, where no agent exposes them.", low=1, high=20
    )
    canaries: bool = _setting(
        False, "Let the agent run canaries on retrievers whose `watch` does not say `canaries=…`."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectSection:
    """What the layers wait for before they speak."""

    switch_events: int = _setting(
        25, "Retrievals in a row after which a new config has taken over, if the next line holds too.", low=1
    )
    switch_quiet_s: float = _setting(20.0, "Seconds over which those retrievals have to spread.", low=0)
    settle_s: float = _setting(
        900.0, "Seconds of silence of all other configs after which one has taken over.", low=0
    )
    mixed_after_s: float = _setting(
        1200.0, "Seconds for which two configs may answer side by side, as in a rolling deploy.", low=0
    )
    mixed_gap_s: float = _setting(300.0, "Seconds without a retrieval after which a config is silent.", low=0)
    not_served_events: int = _setting(
        30, "Retrievals in a row that return fewer passages than asked before that is a flag.", low=1
    )
    dimension_events: int = _setting(3, "Errors of mismatched vector sizes before that is a flag.", low=1)
    quiet_after_s: float = _setting(
        900.0, "Seconds without a new mismatch of vector sizes after which its flag clears.", low=0
    )
    filter_events: int = _setting(10, "Retrievals with a filter before it can be said to starve.", low=1)
    filter_level: float = _setting(
        1e-6,
        "Chance, under the other retrievals' rate, below which a filter starves the answer.",
        low=0,
        high=1,
    )
    tuned_change_notice_s: float = _setting(
        86400.0, "Seconds for which a change to another tuned config stays visible as a notice.", low=0
    )
    retire_s: float = _setting(
        86400.0, "Seconds without traffic after which a config has no verdict.", low=60
    )
    holidays: tuple[date, ...] | None = _setting(
        None,
        'Days (UTC) on which people ask as on a Sunday, as `["2026-12-25", "2027-01-01"]`, in the variable '
        "parted by commas. On them levels speak in notices.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepSection:
    """What `resweep sweep` asks, so that it needs no flags."""

    retriever: str | None = _setting(
        None, "Retriever to sweep, as `module:object`, looked for from the current folder on."
    )
    cases: str | None = _setting(
        None, "Labelled cases: a BEIR folder, `resweep.case/1` lines or TREC qrels.", path=True
    )
    config: str | None = _setting(
        None, "File with `pipeline` and `config`: what a chosen depth will be valid for.", path=True
    )
    cache: str | None = _setting(
        None,
        "Folder of answers, which a sweep goes on from. Default: `sweeps` in the home folder.",
        path=True,
    )
    cache_hours: float = _setting(24.0, "Hours after which a retrieval is made anew.", low=0)
    concurrency: int = _setting(4, "Calls at a time.", low=1, high=256)
    attempts: int = _setting(3, "Attempts of a call that fails.", low=1, high=20)
    timeout_s: float = _setting(30.0, "Seconds after which a call is given up.", low=0.1)
    max_calls: int | None = _setting(None, "Calls that one sweep may make; none: no bound.", low=1)
    pipeline: str | None = _setting(None, "Pipeline of `retriever`, for sweeps that the agent runs.")
    by_itself: bool = _setting(
        False,
        "Let the agent sweep `pipeline` by itself, retrieval alone, when a flag asks for a sweep. It needs "
        "`retriever`, `pipeline` and `max_calls`. The tuned k stays until a person accepts another.",
    )
    rest_hours: float = _setting(
        24.0, "Hours between two sweeps that the agent starts by itself, at least.", low=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CanarySection:
    """Canaries: fixed texts and questions through the live retriever, on a schedule."""

    every: str | None = _setting(
        None,
        "How often canaries run, as `30m`, `1h` or `1d`. Where it is set, recorders that read the same file "
        "or variable run canaries without `watch(canaries=True)`. Else: `1h`, for those that say so.",
    )
    confirm: str = _setting(
        "5m", "How soon they run again after a failure, in doubt, or while a flag is open."
    )
    texts: int = _setting(20, "Texts that are embedded, of those that resweep brings.", low=3, high=24)
    queries: int = _setting(
        30, "Live queries frozen as questions, at most; needs `record.capture`.", low=0, high=200
    )
    file: str | None = _setting(
        None,
        "File with questions of your own, one a line: text, or JSON with `query`, and `relevant` passage ids "
        "where somebody judged them.",
        path=True,
    )
    retriever: str | None = _setting(
        None,
        "Retriever that the agent itself runs canaries with, as `module:object`, where no recorder can.",
    )
    embedder: str | None = _setting(
        None, "Function from a text to its vector for it, as `module:object`, where none is found in it."
    )
    pipeline: str | None = _setting(None, "Pipeline whose canaries that retriever runs.")
    per_second: float = _setting(
        5.0, "Calls a second that a recorder makes for canaries and probes, at most.", low=0.01
    )
    poll_s: float = _setting(10.0, "Seconds after which recorders ask for work again.", low=0.1)
    lease_s: float = _setting(
        300.0, "Seconds that a recorder may take for one piece of work before another gets it.", low=1
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeSection:
    """Probes: sampled queries retrieved again, deeper, so that judgments reach beyond k."""

    per_hour: float = _setting(20.0, "Probes of one pipeline in an hour, at most; 0: none.", low=0)
    depth: int = _setting(40, "Passages that a probe asks for.", low=2, high=1000)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSection:
    """Sampling into the labelled set: retrievals a day and pipeline by stratum; docs/labelling.md."""

    uniform: float = _setting(24.0, "Retrievals a day that are sampled evenly, of each pipeline.", low=0)
    low_confidence: float = _setting(10.0, "Those among the least confident of their config.", low=0)
    novel: float = _setting(8.0, "Those far from every question of the labelled set.", low=0)
    empty_or_short: float = _setting(6.0, "Those that returned nothing, or fewer than asked.", low=0)
    feedback: float = _setting(8.0, "Those with negative, not-found or escalated feedback.", low=0)
    canary_lost: float = _setting(4.0, "Those that ask what a canary lost the answer of.", low=0)
    seed: str = _setting("resweep", "Another text draws another sample of the same traffic.")
    holdout: float = _setting(
        0.2, "Share of question clusters that confirm a depth and never choose one.", low=0, high=0.9
    )
    wanted: int = _setting(400, "Judged cases that a sweep is said to need.", low=20)
    embedder: str | None = _setting(
        None,
        "Function `module:object` that turns a list of texts into vectors, by which novelty is told; else "
        "the words decide.",
    )
    every_s: float = _setting(10.0, "Seconds between two looks at what was sampled.", low=1)
    grades: int = _setting(
        1, "Highest grade on the pages: 1 (answers it, or not), or 2 (fully, partly, not).", low=1, high=2
    )
    judge: str | None = _setting(
        None,
        "Model that suggests judgments: `module:function` of question and passage, or "
        "`https://HOST/v1#MODEL`. Its word is shown and never counts. Its key is in `RESWEEP_JUDGE_KEY`.",
    )
    judge_per_hour: float = _setting(200.0, "Passages that it may be asked about in an hour.", low=1)
    judge_depth: int = _setting(10, "Passages at the head of a list that it is asked about.", low=1, high=200)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSection:
    """Who may see and do what on the pages. `agent.token` makes an admin."""

    viewer_token: str | None = _setting(
        None, "Token that lets somebody look at pipelines and flags. Keep it in the environment."
    )
    reviewer_token: str | None = _setting(
        None,
        "Token that lets somebody judge cases and acknowledge flags, too; questions of users are shown from "
        "here on. Keep it in the environment.",
    )
    session_hours: float = _setting(12.0, "Hours after which a person signs in anew.", low=0.1, high=720)
    proxy_user_header: str | None = _setting(
        None, "Header in which a reverse proxy that signs people in names them, as `X-Forwarded-User`."
    )
    proxy_role_header: str | None = _setting(
        None, "Header in which it says their role: `viewer`, `reviewer` or `admin`."
    )
    proxy_role: Literal["none", "viewer", "reviewer", "admin"] = _setting(
        "viewer", "Role of those whose role it does not say; `none` lets them not in."
    )
    proxy_addresses: str = _setting(
        "127.0.0.1,::1",
        "Addresses or networks, with commas between, from which those headers are believed. The proxy must "
        "remove what its clients send under the same names.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All settings of one agent. `severities` maps reasons of flags to a severity of the user's choice."""

    agent: AgentSettings = field(default_factory=AgentSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    otlp: OtlpSettings = field(default_factory=OtlpSettings)
    webhook: WebhookSettings = field(default_factory=WebhookSettings)
    record: RecordSection = field(default_factory=RecordSection)
    detect: DetectSection = field(default_factory=DetectSection)
    canary: CanarySection = field(default_factory=CanarySection)
    probe: ProbeSection = field(default_factory=ProbeSection)
    label: LabelSection = field(default_factory=LabelSection)
    sweep: SweepSection = field(default_factory=SweepSection)
    web: WebSection = field(default_factory=WebSection)
    severities: Mapping[Reason, Severity] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """One setting: where it stands in the file and the environment, what it takes and what it does."""

    section: str
    name: str
    type: Any
    default: object
    doc: str
    low: float | None
    high: float | None
    path: bool

    @property
    def key(self) -> str:
        """Its name in the file, `section.name`."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        section = "" if self.section in ("agent", "record") else f"{self.section}_"
        return f"{PREFIX}{section}{self.name}".upper()

    @property
    def secret(self) -> bool:
        """Whether its value must never be shown."""
        return self.name.rpartition("_")[2] in ("token", "secret", "salt")


def known() -> Iterator[Known]:
    """Yield every setting, section by section."""
    for section in fields(Settings):
        if section.name != "severities":
            yield from _of(section.name, section.default_factory)  # type: ignore[arg-type]


def _of(section: str, kind: type) -> Iterator[Known]:
    hints = get_type_hints(kind)
    for one in fields(kind):
        assert one.default is not MISSING
        yield Known(section=section, name=one.name, type=hints[one.name], default=one.default, **one.metadata)
