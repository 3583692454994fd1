"""What a service calls: watch, unwatch, feedback, current_event_id, note, flush, shutdown, configure.

None of it raises into the service for anything that happens at run time: it counts and warns once.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import time
from typing import Any, NamedTuple, TypeVar

from resweep.domain.errors import UsageError
from resweep.domain.event import CONFIG_ID_LENGTH, FEEDBACK_KINDS, Feedback, FeedbackKind
from resweep.domain.values import identity, label
from resweep.record.adapters import adapter_for
from resweep.record.adapters.base import Adapter, Facts
from resweep.record.call import current, extra_of, innermost
from resweep.record.identity import config_of, declared_depth, rules_of
from resweep.record.objects import unwatch_object, watch_of
from resweep.record.options import Options, options, salt_of
from resweep.record.options import configure as _configure
from resweep.record.process import hook, lock, recorders
from resweep.record.process import shutdown as _shutdown
from resweep.record.recorder import Recorder
from resweep.record.sinks import NowhereSink, choose, tried
from resweep.record.watching import CAPTURES, Capture, Site, Watch
from resweep.record.wrap import wrap

T = TypeVar("T")
_ID_LONGEST = 200
_log = logging.getLogger("resweep")


def watch(
    retriever: T,
    *,
    pipeline: str = "default",
    config: object = None,
    sink: Any = ...,
    registry: Any = None,
    capture: Capture | None = None,
    redact: Callable[[str], str] | None = None,
    extract: Callable[[Any], Any] | None = None,
    tokens: Any = None,
    probe: Callable[..., Any] | None = None,
    user_key: Callable[..., Any] | None = None,
    methods: Iterable[str] | None = None,
    canaries: bool | None = None,
    embed: Callable[[str], Any] | None = None,
) -> T:
    """Record every retrieval of a retriever; return the retriever, or for a function its recording twin.

    `config` is the pipeline's declared config (nested plain data); without one its identity is what the live
    object shows. `sink` is "none" (or None), "spool:PATH", an http URL of an agent, or an object with write
    and close; without one, what the process is set to.
    `capture` says whose texts are kept: "none", "sampled" or "text"; `redact` maps each text to what may be
    kept. `extract` maps an answer to its passages where they are not found. `tokens` is a tokenizer or a
    function from text to a count. `probe` runs the retriever at a depth: `probe(query, k, **kwargs)`.
    `user_key` maps a call's arguments to a pseudonym of whom it was for. `methods` names the methods that
    retrieve where they have unusual names. `canaries` lets the agent run fixed texts and questions through
    the live retriever on a schedule; `embed` maps a text to its vector where the embedder is not found.

    >>> import resweep
    >>> def retrieve(query, k=3):
    ...     return [{"id": f"p{i}", "score": 1 - i / 10} for i in range(k)]
    >>> retrieve = resweep.watch(retrieve, pipeline="docs", config={"context_k": 3}, sink="none")
    >>> [hit["id"] for hit in retrieve("how long do refunds take")]
    ['p0', 'p1', 'p2']
    """
    given = _Given(pipeline, config, capture, redact, extract, tokens, probe, user_key, methods)
    given = given._replace(canaries=canaries, embed=embed)
    try:
        defaults = options()
        recorder = _recorder(sink, registry, defaults)
        if _is_watched_so(retriever, recorder, given):
            return retriever
        return _watch(unwatch(retriever), recorder, given, defaults)  # type: ignore[no-any-return]
    except Exception as error:  # noqa: BLE001 - a service starts, watched or not
        _log.warning("watch(): %s is not watched: %s", _name(retriever), error)
        return retriever


class _Given(NamedTuple):
    """The arguments of one `watch`."""

    pipeline: object
    config: object
    capture: object
    redact: Callable[[str], str] | None
    extract: Callable[[Any], Any] | None
    tokens: Any
    probe: Callable[..., Any] | None
    user_key: Callable[..., Any] | None
    methods: Iterable[str] | None
    canaries: bool | None = None
    embed: Callable[[str], Any] | None = None


def _is_watched_so(retriever: Any, recorder: Recorder, given: _Given) -> bool:
    """Whether it is watched already, for the same sink, pipeline and config."""
    known = watch_of(retriever)
    if known is None or not known.on or known.recorder is not recorder:
        return False
    if known.pipeline != label(given.pipeline):
        return False
    if given.config is None:
        return True
    return (
        config_of(retriever, known.pipeline, given.config, Facts(), rules_of(options().rules_file)).config
        == known.config
    )


def _watch(retriever: Any, recorder: Recorder, given: _Given, defaults: Options) -> Any:
    adapter = adapter_for(retriever)
    facts = _facts(adapter, retriever)
    rules = rules_of(defaults.rules_file)
    record = config_of(retriever, label(given.pipeline), given.config, facts, rules)
    one = Watch(
        recorder,
        record,
        name=f"{record.pipeline}/{record.config}",
        asked=facts.asked if facts.asked is not None else declared_depth(record),
        capture=_capture(given.capture, defaults),
        redact=given.redact or defaults.redact,
        extract=given.extract or adapter.extractor(retriever),
        tokens=given.tokens or defaults.tokens,
        probe=given.probe,
        user_key=given.user_key,
        static_filters=facts.filters,
        multi=adapter.splitter(),
    )
    watched = _install(retriever, adapter, one, given.methods)
    recorder.add(one)
    with suppress(Exception):  # an object may do anything when looked at; it is watched all the same
        _offer(recorder, one, retriever, watched, adapter, given, defaults)
    return watched


def _offer(
    recorder: Recorder,
    one: Watch,
    retriever: Any,
    watched: Any,
    adapter: Adapter,
    given: _Given,
    defaults: Options,
) -> None:
    """Let the agent have canaries and probes run, where they are wanted."""
    canaries = defaults.canaries if given.canaries is None else given.canaries
    if not canaries and one.capture == "none":
        return
    from resweep.record.embedding import embedder_of  # neither is needed by most
    from resweep.record.work import take_up

    names = [] if _is_function(retriever) else list(given.methods or adapter.methods(retriever))
    embed = given.embed or (embedder_of(retriever) if canaries else None)
    take_up(recorder, one, watched, names, embed, canaries)


def unwatch(retriever: T) -> T:
    """Return a watched retriever as it was; anything else comes back as it is."""
    site = getattr(retriever, "__resweep_site__", None)
    if isinstance(site, Site):
        site.watch.end()
        return retriever.__wrapped__  # type: ignore[attr-defined,no-any-return]
    return unwatch_object(retriever)  # type: ignore[no-any-return]


def feedback(
    event_id: str | None,
    kind: FeedbackKind,
    *,
    rater: object = None,
    id: str | None = None,  # noqa: A002 - the word users expect
    ts: float | None = None,
) -> bool:
    """Say what a user thought of one retrieval; works from any process, days later too.

    `kind` is one of positive, negative, not_found, escalated, corrected. It counts once per event, kind and
    `rater` (a pseudonym); `ts` is unix seconds. Returns False, with a warning, for what cannot be counted.
    """
    event = identity(event_id)
    if event is None or len(event) > _ID_LONGEST or kind not in FEEDBACK_KINDS:
        _log.warning(
            "resweep.feedback: expected an event id and one of %s; got %.60r, %.60r: not counted",
            ", ".join(FEEDBACK_KINDS),
            event_id,
            kind,
        )
        return False
    who = label(rater if isinstance(rater, str | bytes | int) else None) if rater is not None else None
    when = float(ts) if isinstance(ts, int | float) and ts >= 0 else time()
    name = identity(id) or f"{event[:120]}.{kind}.{(who or '')[:64]}"
    try:
        _recorder_of(event).rate(Feedback(name[:_ID_LONGEST], event, kind, who, when))
    except Exception as error:  # noqa: BLE001 - a rating must not fail a request
        _log.warning("feedback: not counted: %s", error)
        return False
    return True


def current_event_id() -> str | None:
    """Return the id of the retrieval that runs in this context, or else of the last one; None before any."""
    call = current.get()
    if call is None:
        return None
    site = call.site
    return site.recorder.ids.text(call.t0, call.number, site.watch.config)


def note(**facts: object) -> None:
    """Add facts to the retrieval of this context.

    While it runs: `candidates`, `reranked`, `returned`, `rerank_s`, `stop`, `trace_id`. After it, of the
    answer: `response_model`, `system_fingerprint`, `prompt_tokens`. Outside of any, nothing happens.
    """
    call = innermost()
    if call is not None:
        extra_of(call).facts.update(facts)
    last = call or current.get()
    if last is not None:
        last.site.recorder.note(last.site.watch, facts)


def flush(timeout: float = 2.0) -> bool:
    """Hand over what was recorded so far; False where that took longer than `timeout` seconds."""
    handed_over = [recorder.flush(timeout) for recorder in list(recorders().values())]
    return all(handed_over)


def shutdown(timeout: float = 2.0) -> None:
    """Hand over what was recorded and stop recording, within `timeout` seconds."""
    _shutdown(timeout)


def configure(**values: Any) -> None:
    """Set defaults of this process for every later `watch`; see `Options` for the names.

    Raises TypeError for an unknown name.
    """
    _configure(values)


def _recorder(sink: Any, registry: Any, defaults: Options) -> Recorder:
    """The recorder of a sink and registry, made at first need."""
    wanted = defaults.sink if sink is ... else "none" if sink is None else sink
    registry = defaults.registry if registry is None else registry
    key = (wanted if isinstance(wanted, str) else None if wanted is None else id(wanted), id(registry))
    with lock():
        found = recorders().get(key)
        if found is None:
            found = recorders()[key] = _make(wanted, defaults)
            hook()
            if defaults.metrics:
                _expose(found, registry)
        return found


def _make(wanted: Any, defaults: Options) -> Recorder:
    try:
        sink = choose(wanted, token=defaults.token)
    except UsageError as error:
        _log.warning("resweep.watch: %s; using the default spool instead", error)
        sink = choose(None)
    if isinstance(sink, NowhereSink):
        _log.warning(
            "resweep: no folder for the spool can be written; tried %s. Set RESWEEP_HOME to one that can, "
            "or RESWEEP_SINK to an agent's URL or to none",
            tried(),
        )
    secret = defaults.token if isinstance(wanted, str) and wanted.startswith("http") else None
    local = bool(getattr(sink, "exposes", False) or getattr(sink, "synchronous", False))
    return Recorder(
        sink,
        salt=(defaults.salt or "").encode()[:64] if local else salt_of(defaults.salt, secret=secret),
        ring_bytes=defaults.ring_bytes,
        flush_s=defaults.flush_s,
        sample_rate=defaults.sample_rate,
        sample_per_minute=defaults.sample_per_minute,
        own_configs=defaults.configs,
        spans=_spans(defaults.spans),
    )


def _spans(target: Any) -> Any:
    if not target or target in ("none", "off"):
        return None
    try:
        from resweep.record.spans import Spans  # OpenTelemetry, which most services do without

        return Spans(target if not isinstance(target, str) or target.startswith("http") else True)
    except ImportError as error:
        _log.warning("spans are off: %s; install opentelemetry-sdk", error)
        return None


def _expose(recorder: Recorder, registry: Any) -> None:
    try:
        from resweep_exporters.prometheus import register  # the only use of the client, when there is one

        register(recorder, registry)
    except Exception as error:  # noqa: BLE001 - recording goes on without a page
        _log.warning("metrics are not exposed: %s", error)


def _recorder_of(event_id: str) -> Recorder:
    """The recorder that may have seen the event; else the one of this process's settings."""
    config = event_id[-CONFIG_ID_LENGTH:]
    for recorder in list(recorders().values()):
        if any(known == config for _, known in recorder.configs):
            return recorder
    return _recorder(..., None, options())


def _facts(adapter: Adapter, retriever: Any) -> Facts:
    try:
        return adapter.facts(retriever)
    except Exception as error:  # noqa: BLE001 - an object may do anything when looked at
        _log.warning("%s could not be looked at: %s", _name(retriever), type(error).__name__)
        return Facts()


def _install(retriever: Any, adapter: Adapter, one: Watch, methods: Iterable[str] | None) -> Any:
    if isinstance(retriever, type) or retriever is None:
        raise UsageError(f"expected a retriever or a function; got {retriever!r}: watch what is called")
    if _is_function(retriever):
        return wrap(retriever, Site(one, retriever))
    names = list(methods) if methods is not None else adapter.methods(retriever)
    if not names:
        raise UsageError("it has no method whose name says that it retrieves; name them with methods=[…]")
    watched = adapter.install(retriever, names, one)
    adapter.tap(retriever, one)
    one.look = _looking(adapter, retriever)
    return watched


def _is_function(retriever: Any) -> bool:
    return (
        callable(retriever)
        and not any(
            callable(getattr(type(retriever), name, None)) for name in ("invoke", "retrieve", "search")
        )
        and (hasattr(retriever, "__get__") or hasattr(retriever, "func") or hasattr(retriever, "__self__"))
    )


def _looking(adapter: Adapter, retriever: Any) -> Callable[[], Facts | None] | None:
    """What looks at the live object again, without keeping it alive."""
    try:
        reference = weakref.ref(retriever)
    except TypeError:
        return None

    def look() -> Facts | None:
        alive = reference()
        return None if alive is None else adapter.facts(alive)

    return look


def _capture(wanted: object, defaults: Options) -> Capture:
    if wanted is None:
        return defaults.capture
    if wanted in CAPTURES:
        return wanted
    _log.warning("expected capture to be one of %s; got %r: keeping no text", ", ".join(CAPTURES), wanted)
    return "none"


def _name(retriever: object) -> str:
    kind = retriever if hasattr(retriever, "__qualname__") else type(retriever)
    return f"{kind.__module__}.{kind.__qualname__}"
