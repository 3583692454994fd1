"""One event into one window: the single place that says what counts as what.

Recorder, agent intake and replay all fold through here, so a live minute and a replayed one are equal.
"""

from __future__ import annotations

from resweep.domain.event import Hit, RetrievalEvent
from resweep.domain.window import Window

DEPTHS_MAX = 1000  # depths above share one count, so that a window stays bounded


def fold(window: Window, event: RetrievalEvent) -> None:
    """Add one live event to its window.

    Errors, partial and truncated answers are counted apart and take no part in empties, shorts, scores or
    histograms. An empty answer is not short. Probes are not live: the caller leaves them out.
    """
    fold_counts(window, event)
    if event.error is not None or event.partial or event.truncated:
        return
    window.observe("retrieved_passages", event.returned)
    if event.latency_s is not None:
        window.observe("retrieval_duration_seconds", event.latency_s)
    rerank_s = event.stages.get("rerank_s")
    if rerank_s is not None:
        window.observe("rerank_duration_seconds", rerank_s)
    _hits(window, event.hits[: event.returned])


def fold_counts(window: Window, event: RetrievalEvent) -> None:
    """Add the counts of one live event alone: what the declared and introspected layers read."""
    window.add("retrievals")
    if event.error is not None:
        window.add("errors")
        window.add(f"error:{event.error.error_class}")
    elif event.partial:
        window.add("partial")
    elif event.truncated:
        window.add("truncated")
    else:
        window.add("ok")
        _completed(window, event)


def _completed(window: Window, event: RetrievalEvent) -> None:
    returned, asked = event.returned, event.asked
    window.add("passages", returned)
    if returned == 0:
        window.add("empty_none" if event.returned_none else "empty_zero")
    _asked(window, event)
    if event.filters:
        _filters(window, event)
    if asked is not None and event.candidates is not None and returned < asked <= event.candidates:
        window.add("candidates_cut")


def _asked(window: Window, event: RetrievalEvent) -> None:
    """Asked and returned depth, side by side, over the calls that say what they asked."""
    asked, returned = event.asked, event.returned
    if asked is None:
        return
    window.add(f"asked:{min(asked, DEPTHS_MAX)}")
    window.add(f"returned:{min(returned, DEPTHS_MAX)}")
    window.add("asked_sum", asked)
    window.add("returned_sum", returned)
    if 0 < returned < asked:
        window.add("short")
    if returned >= asked:
        window.add("served")


def _filters(window: Window, event: RetrievalEvent) -> None:
    """Per filter key (never per value): how often it starves the answer."""
    asked = event.asked or 0
    for key in event.filters or ():
        group = window.group(str(key)[:64])
        group.n += 1
        group.empty += event.returned == 0
        group.short += 0 < event.returned < asked
        group.returned += event.returned
        group.asked += asked


def _hits(window: Window, hits: tuple[Hit, ...]) -> None:
    """Add what the passages of an answer carry, in one pass: this is done for every answer."""
    if not hits:
        return
    tokens = counted = invalid = 0
    sources: list[str] = []
    scores: list[float] = []
    names: set[str] = set()
    for id_, score, _, _, source, size, text_hash, state, _, _ in hits:
        names.add(text_hash or id_)
        if score is not None:
            scores.append(score)
        elif state == "invalid":
            invalid += 1
        if source is not None:
            sources.append(source)
        if size is not None:
            tokens += size
            counted = True
    if counted:
        window.observe("context_tokens", tokens)
    if sources:
        window.observe("source_diversity_ratio", len(set(sources)) / len(sources))
    window.add("distinct_passages", len(names))
    if hits[0].score is not None:
        window.observe("top_score", hits[0].score)
    _scores(window, scores, invalid, len(hits))


def _scores(window: Window, scores: list[float], invalid: int, hits: int) -> None:
    window.add("score_valid", len(scores))
    if invalid:
        window.add("score_invalid", invalid)
    if len(scores) + invalid < hits:
        window.add("score_missing", hits - len(scores) - invalid)
    if len(scores) > 1 and scores[0] != scores[-1]:
        window.add("score_up" if scores[0] > scores[-1] else "score_down")
