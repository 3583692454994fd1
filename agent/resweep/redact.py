"""Redaction ready to use: `resweep.watch(…, capture="sampled", redact=resweep.redact.standard)`.

What is replaced is replaced by a fixed word, so that questions that differ in it alone stay one question.
Ids, timestamps and order numbers stay: a run of digits is a card number only where an issuer gives out
numbers like it and its check digit is right.
"""

from __future__ import annotations

import re

EMAIL = "[email]"
CARD = "[card]"

_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]+(?:@|%40)(?:[\w-]+\.)+[^\W\d_]{2,}")
# 13 to 19 digits, as one run or in groups; never part of a word, of a longer number or of a UUID
_DIGITS = re.compile(r"(?<![\w.,-])[0-9](?:[ \u00a0.-]?[0-9]){12,18}(?![\w-]|[.,][0-9])")
_SIGNS = re.compile("[ \u00a0.-]")
_GROUPS = ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (4, 4, 4, 1), (4, 5, 6))
# first digits and length of the numbers of card issuers (ISO/IEC 7812)
_ISSUED = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})"  # Visa
    r"|(?:5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|3(?:0[0-5]|[689]\d)\d{11}"  # Diners Club
    r"|(?:6011|64[4-9]\d|65\d{2})\d{12,15}"  # Discover
    r"|35(?:2[89]|[3-8]\d)\d{12,15}"  # JCB
    r"|62\d{14,17}"  # UnionPay
    r"|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{8,15}"  # Maestro
)


def standard(text: str) -> str:
    """Return a text with e-mail addresses and card numbers replaced by `[email]` and `[card]`.

    >>> standard("mail jane@example.com about card 4111 1111 1111 1111, order 20260501123456789")
    'mail [email] about card [card], order 20260501123456789'
    """
    return _DIGITS.sub(_card, _EMAIL.sub(EMAIL, text))


def _card(found: re.Match[str]) -> str:
    groups = tuple(map(len, _SIGNS.split(found[0])))
    digits = _SIGNS.sub("", found[0])
    grouped = len(groups) == 1 or groups in _GROUPS
    return CARD if grouped and _ISSUED.fullmatch(digits) and checks(digits) else found[0]


def checks(digits: str) -> bool:
    """Whether the last of some digits is their check digit (Luhn; ISO/IEC 7812-1, annex B)."""
    total = 0
    for at, digit in enumerate(reversed(digits)):
        doubled = int(digit) * (1 + at % 2)
        total += doubled - 9 * (doubled > 9)
    return total % 10 == 0
