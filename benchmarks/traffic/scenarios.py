"""The generators: those that thresholds were looked at with, and those kept apart to report on."""

from __future__ import annotations

from benchmarks.traffic.calendar import Calendar
from benchmarks.traffic.world import Scenario

TUNING: tuple[Scenario, ...] = (
    Scenario(name="office", calendar=Calendar(lunch=0.5)),
    Scenario(name="anonymous", fresh=0.5, anonymous=True, calendar=Calendar(zones=(0, 6))),
)
APART: tuple[Scenario, ...] = (
    Scenario(
        name="holidays",
        calendar=Calendar(
            lunch=0.3,
            holidays=(45, 46, 88, 120, 121, 200, 290, 358, 359),
            clock_changes=(84, 301),
            zones=(1.0,),
        ),
        bursts=0.5,
    ),
    Scenario(
        name="global launch",
        calendar=Calendar(zones=(-8, 0, 8), weekend=0.7, launches=(70, 180, 260)),
        crawls=(100, 101, 220),
        topic_wander=0.35,
    ),
    Scenario(
        name="ingests",
        churn=0.015,
        ingests=((40, 0.1), (75, 0.12), (130, 0.15), (190, 0.1), (280, 0.18)),
        calendar=Calendar(lunch=0.4),
    ),
    Scenario(name="flaky tenants", tenants=20, flaky=0.08, fresh=0.2, cache=0.5, known=800),
    Scenario(name="rewritten", fresh=0.95, calendar=Calendar(zones=(0, 5), weekend=0.5), bursts=0.3),
    Scenario(
        name="anonymous bursts", anonymous=True, fresh=1.0, bursts=0.5, calendar=Calendar(holidays=(60, 61))
    ),
    Scenario(name="quiet desk", calendar=Calendar(rate=1.0), known=200),
)
