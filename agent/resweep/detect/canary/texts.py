"""The texts that embedder canaries embed: of many kinds, since an embedder may change for some alone.

They never change: a stored vector is that of one text, and a text's id is a hash of it. New ones go last.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from resweep.domain.work import Ask

TEXTS: tuple[str, ...] = (
    "How long does a refund take?",
    "Reset the password of a user who has lost access to the e-mail address on file.",
    "invoice",
    "The warranty covers manufacturing defects for twenty-four months from the date of purchase.",
    "Error 0x80070057: the parameter is incorrect.",
    "def total(prices): return sum(price for price in prices if price is not None)",
    "SELECT customer_id, COUNT(*) FROM orders WHERE placed_at >= '2024-01-01' GROUP BY customer_id;",
    "Wie kündige ich meinen Vertrag zum Monatsende?",
    "¿Dónde puedo ver el estado de mi pedido?",
    "返品の送料は誰が負担しますか。",
    "Les données personnelles sont conservées pendant trois ans après la dernière commande.",
    "كيف يمكنني تغيير عنوان التسليم؟",
    "Patients taking anticoagulants should not stop the medicine before a procedure without advice.",
    "12 V, 7.5 A, 90 W, -20 to 60 degrees Celsius",
    "The lease ends on 31 March 2027 unless either party gives notice of at least three months.",
    "Mix the flour with two eggs, a pinch of salt and 250 ml of milk, and let the batter rest.",
    "https://example.com/docs/api/v2/webhooks#retries",
    "Is it the same as the other one, or not?",
    "Photosynthesis turns carbon dioxide and water into sugar with the energy of light.",
    "After the outage the team moved the primary database to another zone and raised the limit.",
    "cheap flights to lisbon in october with one suitcase",
    "The committee did not reject the proposal; it asked for a second reading.",
    "Quarterly revenue rose by 4.2 % to 118 million, while operating costs fell.",
    "lorem ipsum",
)
COUNT = 20


def asks(texts: Iterable[str] = TEXTS, count: int = COUNT) -> tuple[Ask, ...]:
    """Return texts, each once, with ids that are hashes of them; at most `count`."""
    found = {blake2b(text.encode(), digest_size=8).hexdigest(): text for text in texts}
    return tuple(Ask(id=id_, text=text) for id_, text in list(found.items())[:count])
