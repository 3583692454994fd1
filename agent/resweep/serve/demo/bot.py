"""The demo's application: a support bot that answers questions from its documentation, being watched.

    python -m resweep.serve.demo.bot --model lsa-words --k 8 --rate 40

Runs until it is told to stop (SIGTERM or Ctrl-C) and hands over what it recorded. Prints `ready` once it
answers.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence

import resweep
from resweep.serve.demo.corpus import Question, documents, questions
from resweep.serve.demo.rag import ANALYZERS, SupportRetriever, config

PIPELINE = "support-bot"


def asked(pool: Sequence[Question], seed: int) -> Iterator[Question]:
    """Yield questions as users ask them: a few often, most rarely (Zipf, exponent 0.7)."""
    rng = random.Random(seed)  # noqa: S311 - traffic, not a secret
    order = rng.sample(pool, len(pool))
    weights = [1 / (rank + 1) ** 0.7 for rank in range(len(order))]
    while True:
        yield rng.choices(order, weights)[0]


def main() -> None:
    """Answer questions at a rate until told to stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=sorted(ANALYZERS), required=True)
    parser.add_argument("--k", type=int, default=8)
    parser.add_argument("--rate", type=float, default=40.0, help="questions a second")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    stop = threading.Event()
    for sign in (signal.SIGTERM, signal.SIGINT):
        signal.signal(sign, lambda *_: stop.set())
    retriever = resweep.watch(
        SupportRetriever(documents(), args.model, args.k),
        pipeline=PIPELINE,
        config=config(args.model, args.k),
    )
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for question in asked(questions(), args.seed):
        started = time.monotonic()
        retriever.retrieve(question.text)
        if stop.wait(max(0.0, 1 / args.rate - (time.monotonic() - started))):
            break
    resweep.shutdown()


if __name__ == "__main__":
    main()
