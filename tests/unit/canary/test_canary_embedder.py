"""The embedder canary: stored vectors against live ones."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from resweep.detect.canary import embedder
from resweep.detect.canary.book import System, findings
from resweep.detect.canary.embedder import EmbedderRun, EmbedderState, look
from resweep.detect.finding import Finding

N, D = 20, 768
Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def vectors(matrix: Matrix) -> dict[str, list[float]]:
    """Return rows as vectors by text id."""
    return {f"t{i}": row.tolist() for i, row in enumerate(matrix)}


def unit(matrix: Matrix) -> Matrix:
    """Return rows of length 1."""
    found: Matrix = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    return found


@pytest.fixture(name="rng")
def _rng() -> np.random.Generator:
    return np.random.default_rng(20261130)


@pytest.fixture(name="base")
def _base(rng: np.random.Generator) -> Matrix:
    return unit(rng.normal(size=(N, D)))


@pytest.fixture(name="stored")
def _stored(base: Matrix) -> EmbedderState:
    """Return a state after the first run."""
    state = EmbedderState()
    look(state, vectors(base), 0.0)
    return state


def found(state: EmbedderState, *accepted: str) -> list[Finding]:
    """Return what a system with this embedder finds."""
    return list(findings(System(pipeline="bot", basis="b" * 12, config="c" * 12, embedder=state), accepted))


def rotation(rng: np.random.Generator, size: int = D) -> Matrix:
    """Return a random rotation."""
    q, _ = np.linalg.qr(rng.normal(size=(size, size)))
    return q


def test_jitter_in_every_dimension_is_no_finding(
    stored: EmbedderState, base: Matrix, rng: np.random.Generator
) -> None:
    """Noise of 1e-4 a dimension leaves the mean cosine above 0.99999."""
    run = look(stored, vectors(base + rng.normal(scale=1e-4, size=base.shape)), 1.0)
    assert run.mean_cosine is not None
    assert run.mean_cosine >= 0.99999
    assert (run.moved, found(stored)) == (0, [])


def variant(base: Matrix, row: int, cosine: float, rng: np.random.Generator) -> Matrix:
    """Return the vectors with one replaced by another at a cosine."""
    other = rng.normal(size=D)
    other -= other @ base[row] * base[row]
    changed = base.copy()
    changed[row] = cosine * base[row] + np.sqrt(1 - cosine**2) * other / np.linalg.norm(other)
    return changed


def test_one_near_identical_variant_in_20_is_no_finding(
    stored: EmbedderState, base: Matrix, rng: np.random.Generator
) -> None:
    """Also once the noise is learnt, and whichever text it is."""
    for run in range(50):
        look(stored, vectors(variant(base, run % N, 0.9999, rng)), float(run))
    assert found(stored) == []


def test_a_rotation_is_one_critical_finding_on_the_first_run(
    stored: EmbedderState, base: Matrix, rng: np.random.Generator
) -> None:
    """Same name, same size, other vectors: page, expired, component embedder."""
    run = look(stored, vectors(base @ rotation(rng)), 1.0)
    assert run.mean_cosine is not None
    assert abs(run.mean_cosine) < 0.1
    (flag,) = found(stored)
    assert "embedder changed, declared config unchanged" in flag.message
    assert (flag.reason, flag.layer, flag.severity, flag.moves) == (
        "silent_change",
        "active",
        "page",
        "expired",
    )
    assert flag.components == ("embedder",)


def test_new_vectors_are_never_compared_with_new_ones(
    stored: EmbedderState, base: Matrix, rng: np.random.Generator
) -> None:
    """A rotation keeps every cosine among the new vectors, and the finding stays all the same."""
    turned = base @ rotation(rng)
    np.testing.assert_allclose(turned @ turned.T, base @ base.T, atol=1e-9)
    for ts in (1.0, 2.0, 3.0, 4.0):
        look(stored, vectors(turned), ts)
    assert len(found(stored)) == 1


def test_going_back_clears_it(stored: EmbedderState, base: Matrix, rng: np.random.Generator) -> None:
    """The stored vectors of the first embedder are matched again."""
    first = stored.present
    look(stored, vectors(base @ rotation(rng)), 1.0)
    assert stored.present != first
    look(stored, vectors(base + rng.normal(scale=1e-4, size=base.shape)), 2.0)
    assert (stored.present, found(stored)) == (first, [])


def test_what_was_accepted_is_right(stored: EmbedderState, base: Matrix, rng: np.random.Generator) -> None:
    """By acceptance, or by the digest of an epoch in force."""
    look(stored, vectors(base @ rotation(rng)), 1.0)
    assert found(stored, str(stored.present)) == []
    embedder.accept(stored, 2.0)
    assert found(stored) == []
    look(stored, vectors(base), 3.0)
    assert len(found(stored)) == 1


def test_vectors_of_another_size_are_a_dimension_mismatch(
    stored: EmbedderState, rng: np.random.Generator
) -> None:
    """384 for 768, on the first run."""
    look(stored, vectors(unit(rng.normal(size=(N, 384)))), 1.0)
    (flag,) = found(stored)
    assert (flag.reason, flag.severity, flag.moves) == ("dimension_mismatch", "page", "expired")
    assert flag.evidence == {"got": 384, "expected": 768, "texts": 20}


def test_a_provider_that_answers_half_from_a_new_model_is_seen(
    stored: EmbedderState, base: Matrix, rng: np.random.Generator
) -> None:
    """A rolling rollout mixes two embedders in one run; the finding opens once and stays."""
    turned = base @ rotation(rng)
    for ts in range(1, 6):
        mixed = np.where(rng.random(N)[:, None] < 0.5, base, turned)
        look(stored, vectors(mixed), float(ts))
        assert len(found(stored)) == 1
    look(stored, vectors(turned), 6.0)
    assert len(found(stored)) == 1
    look(stored, vectors(base), 7.0)
    assert found(stored) == []


def test_a_few_moved_texts_alone_say_nothing(
    stored: EmbedderState, base: Matrix, rng: np.random.Generator
) -> None:
    """Two odd answers of twenty in one run are chance."""
    odd = base.copy()
    odd[:2] = unit(rng.normal(size=(2, D)))
    look(stored, vectors(odd), 1.0)
    look(stored, vectors(base), 2.0)
    assert found(stored) == []


def test_few_texts_need_a_second_run(base: Matrix, rng: np.random.Generator) -> None:
    """Three moved texts of three are one chance in 8,000; twice in a row is a change."""
    state, few = EmbedderState(), base[:3]
    turned = few @ rotation(rng)
    look(state, vectors(few), 0.0)
    look(state, vectors(turned), 1.0)
    assert found(state) == []
    look(state, vectors(turned), 2.0)
    assert len(found(state)) == 1


def test_a_noisy_embedder_is_given_more_room(base: Matrix, rng: np.random.Generator) -> None:
    """Its noise is learnt from the first runs; a drift of the noise later does not raise the floor."""
    state = EmbedderState()
    for ts in range(4):
        look(state, vectors(base + rng.normal(scale=1.5e-3, size=base.shape)), float(ts))
    learnt = state.tolerance
    assert 0.01 < learnt <= 0.02
    for ts in range(4, 30):
        look(state, vectors(base + rng.normal(scale=1.5e-3, size=base.shape)), float(ts))
    assert (state.tolerance, found(state)) == (learnt, [])


def test_an_empty_or_broken_run_says_nothing(stored: EmbedderState) -> None:
    """Too few texts, zero vectors, nothing at all."""
    before = msgspec.msgpack.encode(stored)
    assert look(stored, {}, 1.0) == EmbedderRun(ts=1.0, compared=0)
    assert look(stored, {f"t{i}": [0.0] * D for i in range(N)}, 2.0).compared == 0
    assert msgspec.msgpack.encode(stored) == before


def test_the_state_survives_a_restart(stored: EmbedderState, base: Matrix, rng: np.random.Generator) -> None:
    """As bytes, with all it knows."""
    look(stored, vectors(base @ rotation(rng)), 1.0)
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(stored), type=EmbedderState)
    assert (again, found(again)) == (stored, found(stored))
