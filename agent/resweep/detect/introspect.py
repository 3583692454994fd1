"""Layer 2: what the live objects and their answers say against what was declared or asked."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from resweep.detect.finding import Finding
from resweep.detect.settings import DetectSettings
from resweep.detect.state import ConfigState, PipelineState, short
from resweep.domain.verdict import Component
from resweep.domain.window import Group

# observed fact -> (paths in the declared config that may hold it, component)
FACTS: Mapping[str, tuple[tuple[str, ...], Component]] = {
    "model": (("embedder.model", "embedder.name", "embedder.model_name"), "embedder"),
    "dimensions": (("embedder.dimensions", "embedder.dim", "embedder.size", "index.dimensions"), "embedder"),
    "collection": (("index.collection", "index.name", "index.collection_name", "index.index_name"), "index"),
    "metric": (("index.metric", "index.distance", "index.space"), "index"),
    "k": (("context_k", "candidate_k"), "depth"),
}


def introspected(p: PipelineState, s: DetectSettings) -> Iterator[Finding]:
    """Yield what layer 2 finds in a pipeline now, on the config in charge."""
    c = p.in_charge
    if c is None:
        return
    yield from _dimension_mismatch(p, c, s)
    yield from _not_served(p, c, s)
    yield from _filter_starves(p, c, s)
    yield from _contradictions(p, c)


def _dimension_mismatch(p: PipelineState, c: ConfigState, s: DetectSettings) -> Iterator[Finding]:
    n = sum(c.dims.values())
    if n < s.dimension_events or p.last_ts - c.dims_ts > s.quiet_after_s:
        return
    got, _, expected = max(c.dims, key=c.dims.__getitem__).partition(":")
    yield Finding(
        reason="dimension_mismatch",
        layer="introspected",
        config=c.record.config,
        basis=c.record.basis,
        components=("embedder", "index"),
        severity="page",
        moves="expired",
        message=f"{p.name}: the index refuses the query vectors: {got} dimensions came, it holds {expected} "
        f"({n} failed calls); the embedder changed without its index, and the tuned k holds for neither",
        evidence={"got": got, "expected": expected, "errors": n, "calls": c.calls},
        next_command=f"resweep status {p.name}",
        onset_ts=c.dims_ts,
        onset_event=c.dims_event,
    )


def _not_served(p: PipelineState, c: ConfigState, s: DetectSettings) -> Iterator[Finding]:
    run = c.served
    if run.calls < s.not_served_events or run.most == 0:
        return
    cut = run.cut >= 0.8 * run.calls
    where = (
        "a stage after the index cuts it" if cut else "the depth is lost on the way, or the index holds less"
    )
    yield Finding(
        reason="stage_cut" if cut else "not_served",
        layer="introspected",
        config=c.record.config,
        basis=c.record.basis,
        components=("reranker", "depth") if cut else ("depth",),
        severity="warning",
        moves="suspect",
        message=f"{p.name} asked {run.asked}, got {run.most} at most in {run.calls} of {run.calls}: {where}; "
        "a k that is never served cannot be the tuned one",
        evidence={"asked": run.asked, "returned_max": run.most, "calls": run.calls, "cut": run.cut},
        next_command="resweep doctor MODULE:OBJECT 'a question'",
        onset_event=run.since_event,
    )


def _filter_starves(p: PipelineState, c: ConfigState, s: DetectSettings) -> Iterator[Finding]:
    for key, group in sorted(c.groups.items()):
        rest = Group(c.plain.n - group.n, c.plain.empty - group.empty, c.plain.short - group.short, 0, 0)
        starved, others = _starved(group), max(0, _starved(rest))
        if group.n < s.filter_events or starved < group.n / 2:
            continue
        rate = others / rest.n if rest.n > 0 else 0.0
        if rest.n < s.filter_events or binomial_tail(group.n, starved, max(rate, 0.05)) > s.filter_level:
            continue
        yield _starving(p, c, key, group, rate)


def _starved(group: Group) -> int:
    return group.empty + group.short


def _starving(p: PipelineState, c: ConfigState, key: str, g: Group, rate: float) -> Finding:
    return Finding(
        reason="filter_starves",
        layer="introspected",
        config=c.record.config,
        basis=c.record.basis,
        components=("filter", "index"),
        severity="notice",
        about=key,
        message=f"{p.name}: with the filter {short(key)!r}, {_starved(g)} of {g.n} answers come back short "
        f"({g.short}) or empty ({g.empty}), {g.returned / g.n:.1f} passages on average for "
        f"{g.asked / g.n:.1f} asked; without it {rate:.0%} do",
        evidence={"filter": key, "n": g.n, "short": g.short, "empty": g.empty, "rest_rate": round(rate, 4)},
        next_command=f"resweep status {p.name}",
    )


def binomial_tail(n: int, x: int, p: float) -> float:
    """Return P(X >= x) for X ~ Binomial(n, p), summed exactly in logs."""
    if x <= 0:
        return 1.0
    if p >= 1.0:
        return 1.0
    logs = [
        math.lgamma(n + 1)
        - math.lgamma(i + 1)
        - math.lgamma(n - i + 1)
        + i * math.log(p)
        + (n - i) * math.log1p(-p)
        for i in range(x, n + 1)
    ]
    top = max(logs)
    return math.exp(top) * math.fsum(math.exp(v - top) for v in logs)


def _contradictions(p: PipelineState, c: ConfigState) -> Iterator[Finding]:
    if not c.record.observed:
        return
    for fact, (paths, component) in FACTS.items():
        seen = c.record.observed.get(fact)
        said = {path: v for path in paths if (v := _at(c.record.document, path)) is not None}
        if seen is None or not said or any(_same(seen, v) for v in said.values()):
            continue
        path, value = next(iter(said.items()))
        yield Finding(
            reason="contradiction",
            layer="introspected",
            config=c.record.config,
            basis=c.record.basis,
            components=(component,),
            severity="warning",
            moves="suspect",
            about=fact,
            message=f"{p.name} declares {path} = {short(value)}, the live retriever says {short(seen)}: "
            "correct the one that is wrong",
            evidence={"fact": fact, "declared": said, "observed": seen},
            next_command="resweep doctor MODULE:OBJECT 'a question'",
            onset_ts=c.first_ts,
            onset_event=c.first_event,
        )


def _at(document: Mapping[str, object], path: str) -> object:
    value: object = document
    for part in path.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value if isinstance(value, str | int | float) else None


def _same(a: object, b: object) -> bool:
    """Equal, or the same name but for case and a path in front (`org/model` and `model`)."""
    if isinstance(a, str) and isinstance(b, str):
        a, b = a.casefold(), b.casefold()
        return a == b or a.rsplit("/", 1)[-1] == b.rsplit("/", 1)[-1]
    return a == b
