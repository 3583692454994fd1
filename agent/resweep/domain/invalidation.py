"""What a change to a path of a config means: the shipped rules, and the user's own before them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, TypeVar, get_args

from resweep.domain import paths
from resweep.domain.default_rules import DEFAULT_RULES
from resweep.domain.errors import InputError, NewerFormatError
from resweep.domain.matching import Matcher
from resweep.domain.paths import Path
from resweep.domain.verdict import COMPONENTS, Component

Effect = Literal["invalidates", "depth", "inert"]
Peak = Literal["down", "up", "unknown", "none"]
EFFECTS: tuple[Effect, ...] = get_args(Effect)
PEAKS: tuple[Peak, ...] = get_args(Peak)

SCHEMA = "resweep.invalidation/1"
_CACHED_PATHS = 20_000
Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEffect:
    """What a change to one path means.

    `peak` is the way the best context_k is expected to move when the value grows or is added; `because` is
    the reason, in words that follow "because".
    """

    effect: Effect
    component: Component
    peak: Peak
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A section of a config: its component and its other names.

    Other parts may lie in a `nested` one; every pipeline has what is `always` there, so that an empty section
    of it says nothing.
    """

    component: Component
    also: tuple[str, ...] = ()
    nested: bool = False
    always: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One entry of a rules file: paths, and what a change to one of them means."""

    path: tuple[str, ...]
    effect: Effect
    component: Component | None = None
    peak: Peak = "none"
    because: str = ""


UNKNOWN_PATH = Rule(
    path=("**",),
    effect="invalidates",
    peak="unknown",
    because="no rule knows this path, and unknown paths count",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class InvalidationRules:
    """Rules in the order they are tried, and the parts of a config by name.

    >>> InvalidationRules.load_default().effect_of("embedder.model").effect
    'invalidates'
    >>> InvalidationRules.load_default().effect_of("index.client.timeout_s").effect
    'inert'
    """

    rules: tuple[Rule, ...]
    parts: Mapping[str, Part]
    _matcher: Matcher = field(init=False, repr=False, compare=False)
    _names: Mapping[str, str] = field(init=False, repr=False, compare=False)
    _found: dict[tuple[str, ...], PathEffect] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        flat = [(pattern, place) for place, rule in enumerate(self.rules) for pattern in rule.path]
        object.__setattr__(self, "_matcher", Matcher(flat))
        names = {paths.snake(name): part for part, of in self.parts.items() for name in (part, *of.also)}
        object.__setattr__(self, "_names", names)

    @classmethod
    def load_default(cls) -> InvalidationRules:
        """Return the shipped rules."""
        return _default()

    @classmethod
    def from_mapping(cls, data: object, source: str = "invalidation rules") -> InvalidationRules:
        """Return the rules that a parsed rules file holds.

        `source` is the file's name, for messages. Raises `InputError` saying which entry is wrong and what
        was expected, and `NewerFormatError` for a file of a later schema.
        """
        return _from_mapping(data, source)

    def merged(self, user: InvalidationRules) -> InvalidationRules:
        """Return these rules with a user's before them; a part the user names again is the user's."""
        return InvalidationRules(rules=(*user.rules, *self.rules), parts={**self.parts, **user.parts})

    def effect_of(self, path: str | Path) -> PathEffect:
        """Return what a change to a path means; a path that no rule knows invalidates."""
        seen = paths.steps(paths.parse(path) if isinstance(path, str) else path)
        found = self._found.get(seen)
        if found is None:
            if len(self._found) >= _CACHED_PATHS:
                self._found.clear()
            found = self._found[seen] = self._look_up(seen)
        return found

    def _look_up(self, seen: tuple[str, ...]) -> PathEffect:
        part, tail = self.part_of(seen)
        places = [self._matcher.first(spelling) for spelling in {seen, tail}]
        place = min((place for place in places if place is not None), default=None)
        rule = UNKNOWN_PATH if place is None else self.rules[place]
        component = rule.component or (self.parts[part].component if part else "unknown")
        return PathEffect(effect=rule.effect, component=component, peak=rule.peak, because=rule.because)

    def part_of(self, seen: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return the innermost part that steps lead into, and the steps from it on, under its own name.

        `("rag", "llm", "model")` gives `("generator", ("generator", "model"))`; steps that lead into no part
        give `""` and themselves.
        """
        part, tail = "", seen
        for place, step in enumerate(seen):
            if step in self._names and (not part or self.parts[part].nested):
                part = self._names[step]
                tail = (part, *seen[place + 1 :])
        return part, tail

    def says_nothing_empty(self, path: Path) -> bool:
        """Say whether an empty section at a path is as good as none."""
        step = path[-1] if path else None
        part = self._names.get(paths.snake(step)) if isinstance(step, str) else None
        return part is not None and self.parts[part].always


@lru_cache(maxsize=1)
def _default() -> InvalidationRules:
    return _from_mapping(DEFAULT_RULES, "the shipped rules")


def _from_mapping(data: object, source: str) -> InvalidationRules:
    top = _mapping(data, source, {"schema", "parts", "rules"})
    schema = top.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise NewerFormatError(f"{source}: schema {SCHEMA!r} was expected, {schema!r} came; upgrade resweep")
    parts = _mapping({} if top.get("parts") is None else top["parts"], f"{source}: parts")
    rules = _list(top.get("rules"), f"{source}: rules")
    return InvalidationRules(
        rules=tuple(_rule(entry, f"{source}: rules[{place}]") for place, entry in enumerate(rules)),
        parts={name: _part(entry, f"{source}: parts.{name}") for name, entry in parts.items()},
    )


def _rule(entry: object, where: str) -> Rule:
    known = _mapping(entry, where, {"path", "effect", "component", "peak", "because"})
    effect = _word(known.get("effect"), EFFECTS, f"{where}: effect")
    if "peak" in known and effect != "invalidates":
        raise InputError(f"{where}: peak goes with the effect 'invalidates', and this one is {effect!r}")
    default: Peak = "unknown" if effect == "invalidates" else "none"
    component = known.get("component")
    return Rule(
        path=_patterns(known.get("path"), f"{where}: path"),
        effect=effect,
        component=None if component is None else _word(component, COMPONENTS, f"{where}: component"),
        peak=_word(known.get("peak", default), PEAKS, f"{where}: peak"),
        because=_text(known.get("because", "your rules say so"), f"{where}: because"),
    )


def _part(entry: object, where: str) -> Part:
    known = _mapping(entry, where, {"component", "also", "nested", "always"})
    return Part(
        component=_word(known.get("component"), COMPONENTS, f"{where}: component"),
        also=tuple(_text(name, f"{where}: also") for name in _list(known.get("also"), f"{where}: also")),
        nested=_truth(known.get("nested", False), f"{where}: nested"),
        always=_truth(known.get("always", False), f"{where}: always"),
    )


def _list(value: object, where: str) -> list[object]:
    if value is None:
        return []
    if isinstance(value, list):
        return value
    raise InputError(f"{where}: a list was expected, {type(value).__name__} came")


def _truth(value: object, where: str) -> bool:
    if isinstance(value, bool):
        return value
    raise InputError(f"{where}: true or false was expected, {value!r} came")


def _patterns(value: object, where: str) -> tuple[str, ...]:
    every = value if isinstance(value, list) else [value]
    patterns = tuple(_text(pattern, where) for pattern in every)
    if not patterns:
        raise InputError(f"{where}: at least one path was expected, none came")
    for pattern in patterns:
        try:
            paths.expression(pattern)
        except ValueError as error:
            raise InputError(f"{where}: {pattern!r}: {error}") from None
    return patterns


def _mapping(value: object, where: str, known: set[str] | None = None) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise InputError(f"{where}: a mapping was expected, {type(value).__name__} came")
    unknown = [key for key in value if not isinstance(key, str) or (known and key not in known)]
    if unknown:
        names = ", ".join(sorted(known or {"text"}))
        raise InputError(f"{where}: one of {names} was expected, {unknown[0]!r} came")
    return value


def _word(value: object, words: tuple[Word, ...], where: str) -> Word:
    for word in words:
        if value == word:
            return word
    raise InputError(f"{where}: one of {', '.join(words)} was expected, {value!r} came")


def _text(value: object, where: str) -> str:
    if isinstance(value, str) and value.strip():
        return value
    raise InputError(f"{where}: text was expected, {value!r} came")
