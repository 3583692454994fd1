"""A guess at a query's language for slicing: its script, and in Latin script its commonest little words."""

from __future__ import annotations

import unicodedata
from collections import Counter

_TEXTS = {
    "en": "the is are how what do does can my to of in for with and when where why which",
    "de": "der die das ist sind wie was wann wo ich mein nicht und für mit ein eine zu kann",
    "fr": "le la les est sont comment quel quelle je mon ma pas et pour avec une des du dans",
    "es": "el los las es son cómo qué cuándo dónde mi no y para con una del por puedo como",
    "it": "il lo gli è sono come che quando dove mio non e per con una della di posso cosa",
    "pt": "o os as é são como que quando onde meu não e para com uma do da em posso",
    "nl": "de het een is zijn hoe wat wanneer waar ik mijn niet en voor met van kan op",
}
_LITTLE_WORDS = {code: frozenset(text.split()) for code, text in _TEXTS.items()}


def language(query: str) -> str:
    """Return a two-letter code where little words tell, else the script's name, e.g. `latin`, `cyrillic`."""
    script = _script(query)
    if script != "latin":
        return script
    words = {word.strip("?!.,;:'\"()") for word in query.lower().split()}
    votes = {code: len(words & little) for code, little in _LITTLE_WORDS.items()}
    best = max(votes.values())
    leaders = [code for code, count in votes.items() if count == best]
    return leaders[0] if best and len(leaders) == 1 else script


def _script(text: str) -> str:
    if text.isascii():
        return "latin" if any(letter.isalpha() for letter in text) else "none"
    names = (unicodedata.name(letter, "") for letter in text if letter.isalpha())
    counts = Counter(name.split()[0].lower() for name in names if name)
    return counts.most_common(1)[0][0] if counts else "none"
