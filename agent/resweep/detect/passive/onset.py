"""Where inside the newest blocks a change began, and what the answers after it look like."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from resweep.detect.passive.features import INDEX, STREAMS
from resweep.detect.passive.levels import Finding, Reference

Array = NDArray[np.float64]
LEAST_AFTER = 5


class Rows(NamedTuple):
    """Records of one closed block: unix times, event numbers, passages, matrix (records x streams)."""

    ts: list[float]
    numbers: list[int]
    depths: list[int]
    matrix: Array


def sharpened(finding: Finding, blocks: list[Rows], reference: Reference) -> Finding:
    """Return a finding whose onset is a record, and whose observed means are those of the records after it.

    The onset maximises the sum, over what follows, of the loudest stream's deviation less half its size.
    A finding in the mix of questions has no loudest stream and stays as it is.
    """
    if finding.loudest == "mix" or not blocks:
        return finding
    matrix = np.vstack([b.matrix for b in blocks])
    column = INDEX[finding.loudest]
    unit = float(np.sqrt(reference.within[column]))
    away = (matrix[:, column] - finding.before[column]) / unit * np.sign(finding.effects[column] or 1.0)
    away = np.nan_to_num(away)
    half = max(0.5, 0.5 * float(np.quantile(away, 0.9)))
    gain = np.cumsum((np.minimum(away, 2 * half) - half)[::-1])[::-1]
    at = int(gain.argmax())
    if len(matrix) - at < LEAST_AFTER:
        return finding
    return _after(finding, matrix[at:], reference, *_record(blocks, at))


def _record(blocks: list[Rows], at: int) -> tuple[float, int]:
    ts = [t for b in blocks for t in b.ts]
    numbers = [n for b in blocks for n in b.numbers]
    return ts[at], numbers[at]


def _after(finding: Finding, matrix: Array, reference: Reference, ts: float, number: int) -> Finding:
    shown = np.isfinite(matrix)
    n = np.maximum(shown.sum(axis=0), 1)
    after = np.where(shown.any(axis=0), np.where(shown, matrix, 0.0).sum(axis=0) / n, np.nan)
    moved = after - finding.before
    scores = finding.scores.copy()
    scores[: len(STREAMS)] = moved / np.sqrt(reference.between + reference.within / n)
    return finding._replace(
        onset_ts=ts,
        onset_number=number,
        after=after,
        effects=moved / np.sqrt(reference.within),
        scores=scores,
    )
