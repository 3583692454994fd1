"""`resweep sweep`: which depths cannot be told from the best."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from resweep.domain.errors import UsageError
from resweep.serve.cli import frame
from resweep.serve.cli.status import Url
from resweep.serve.cli.tuned import Lock, lock_path

if TYPE_CHECKING:
    from resweep.domain.event import RetrievalEvent
    from resweep.domain.invalidation import InvalidationRules
    from resweep.serve.sweeping import Choosing, Identity, RunFiles
    from resweep.settings import Settings, SweepSection
    from resweep.sweep.answered import Checking
    from resweep.sweep.answers import AnswerCost, Answering
    from resweep.sweep.cache import Kept
    from resweep.sweep.calls import Policy, Watcher
    from resweep.sweep.engine import Sweep
    from resweep.sweep.lists import Case
    from resweep.sweep.runner import Estimate
    from resweep.sweep.superseded import Superseded
    from resweep.sweep.usefulness import Weighing

SWEEP_EXITS = {6: "the budget is spent or cannot suffice; what was answered is kept"}
RunFile = Annotated[
    list[str] | None,
    typer.Option(
        "--run", metavar="RUN", help="Ranked lists: a TREC run or resweep.event/1; of a grid, 50=RUN each."
    ),
]
Cases = Annotated[
    Path | None,
    typer.Option("--cases", "--qrels", metavar="CASES", help="Judgments: TREC qrels, BEIR folder or cases."),
]
Queries = Annotated[
    Path | None,
    typer.Option("--queries", metavar="FILE", help="Texts of the queries, where the judgments hold none."),
]
Depths = Annotated[str | None, typer.Option("--k", metavar="3,5,8", help="Depths; 1-10,20 is a range.")]
Candidates = Annotated[
    str | None,
    typer.Option("--candidate-k", metavar="10,50", help="Rerank depths: a grid with the depths of --k."),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The measure that decides; else answer_accuracy, or ndcg without answers."
    ),
]
Margin = Annotated[
    float | None, typer.Option(metavar="X", help="Depths less than this below the best count as equal.")
]
Constraint = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What a depth must meet: 'recall >= 0.75'.")
]
Name = Annotated[str | None, typer.Option("--pipeline", metavar="NAME", help="The same as PIPELINE.")]
Smoke = Annotated[
    int | None,
    typer.Option("--smoke", metavar="N", help="About N cases that stand for all, the same each time."),
]
Retriever = Annotated[
    str | None, typer.Option("--retriever", metavar="MODULE:OBJECT", help="A live retriever to ask.")
]
SHOWN = ("recall", "all_evidence", "precision", "ndcg")  # with the objective


def register(app: typer.Typer) -> None:
    """Add the command."""
    example = "resweep sweep support-bot --retriever app.rag:retriever --cases cases.jsonl"
    frame.command(app, "sweep", example=example, exits=SWEEP_EXITS)(sweep)


def sweep(
    pipeline: Annotated[
        str | None, typer.Argument(metavar="[PIPELINE]", help="The pipeline's name; of events, those of it.")
    ] = None,
    retriever: Retriever = None,
    run: RunFile = None,
    cases: Cases = None,
    queries: Queries = None,
    k: Depths = None,
    candidate_k: Candidates = None,
    generator: Annotated[
        str | None,
        typer.Option(metavar="MODEL", help="What answers: MODULE:OBJECT, or https://host/v1#model-name."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="MODEL", help="What judges the answers, named likewise.")
    ] = None,
    generator_version: Annotated[
        str, typer.Option(metavar="TEXT", help="Version of the generator: another one is asked anew.")
    ] = "",
    judge_version: Annotated[
        str, typer.Option(metavar="TEXT", help="Version of the judge: another one is asked anew.")
    ] = "",
    judge_price: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Price of a million tokens of the judge.")
    ] = None,
    evidence_first: Annotated[
        bool, typer.Option("--evidence-first", help="Put relevant passages on top of the prompt.")
    ] = False,
    audit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A person's verdicts on some of the answers.")
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(metavar="X", min=0, help="Differences below this are unresolved by the judge."),
    ] = None,
    ragas: Annotated[
        str | None,
        typer.Option(metavar="METRIC", help="A metric of Ragas, asked of the judge: context_precision."),
    ] = None,
    superseded: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Ids of superseded passages: how often retrieved, and cited."),
    ] = None,
    objective: Objective = None,
    margin: Margin = None,
    constraint: Constraint = None,
    baseline: Annotated[
        int | None, typer.Option(metavar="K", help="Compare the choice with this depth, case by case.")
    ] = None,
    critical: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Always show this slice; may be repeated.")
    ] = None,
    rule: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="An adaptive rule beside the fixed depths: 'min_score(0.4)'."),
    ] = None,
    price: Annotated[
        float | None, typer.Option(metavar="USD", min=0, help="Price of a million prompt tokens.")
    ] = None,
    passage_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Tokens of a passage where they are not known.")
    ] = None,
    first_stage: Annotated[
        str | None, typer.Option(metavar="WHAT", help="What retrieves before the reranker, or its RUN.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="File with `pipeline` and `config`: what the depth is valid for."),
    ] = None,
    revision: Annotated[
        str, typer.Option(metavar="TEXT", help="Revision of the corpus: another one is asked anew.")
    ] = "",
    smoke: Smoke = None,
    look: Annotated[
        int, typer.Option(metavar="N", min=1, help="Which look at the holdout this is; three are allowed.")
    ] = 1,
    seed: Annotated[int | None, typer.Option(metavar="N", min=0, help="Seed of the resamples.")] = None,
    max_calls: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Calls that the sweep may make.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="Tokens that the models may take.")
    ] = None,
    max_usd: Annotated[
        float | None,
        typer.Option(metavar="USD", min=0, help="Money that the models may take, at the prices given."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and stop.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask anew, whatever was answered before.")] = False,
    join: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Share the calls with every worker that joins postgresql://HOST/NAME."
        ),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as one HTML page.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Keep report and ranked lists in a folder.")
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Hand the report to the agent, else to its store.")
    ] = False,
    write_lock: Annotated[
        bool, typer.Option("--write-lock", help="Write the chosen depth into resweep.lock.")
    ] = False,
    lock: Lock = None,
    name: Name = None,
    url: Url = None,
    settings: frame.SettingsFile = None,
    as_json: frame.Json = False,
) -> None:
    """Sweep every depth on the labelled cases, live or on recorded lists, and choose one that holds up."""
    from resweep.domain.measures import DEFINITIONS
    from resweep.serve.parts import rules_of
    from resweep.serve.sweeping import CaseSource, Choosing, cases_from, identity_of, policy_of, run_files
    from resweep.sweep.settings import DEFAULT_DEPTHS, parse_depths

    loaded = frame.settings_of(settings).settings
    rules, section = rules_of(loaded), loaded.sweep
    named = pipeline or name
    path = cases or (Path(section.cases) if section.cases else None)
    if path is None and named is None:
        raise UsageError(
            "expected labelled cases; give --cases FILE (BEIR folder, TREC qrels) or a PIPELINE of the agent"
        )
    declared = config or (Path(section.config) if section.config else None)
    identity = identity_of(declared, named, rules)
    choosing = Choosing(
        objective=objective or ("answer_accuracy" if generator else "ndcg"),
        margin=margin,
        constraint=constraint,
        critical=critical or (),
        baseline=baseline,
        rules=rule or (),
        passage_tokens=passage_tokens,
        price=price,
        seed=seed,
        look=look,
    )
    ks = parse_depths(k) if k else DEFAULT_DEPTHS
    choosing.check(tuple(DEFINITIONS), ks, answers=generator is not None, ragas=ragas is not None)
    _check_kept(named, identity, record or write_lock, recorded=bool(run))
    _check_page(html)
    _check_money(
        max_usd, *([price] if generator or not ragas else []), judge_price, asked=bool(generator or ragas)
    )
    if run:
        asked = {"--retriever": retriever, "--candidate-k": candidate_k, "--generator": generator}
        asked |= {"--judge": judge, "--ragas": ragas}
        _for_lists_too({**asked, "--audit": audit, "--evidence-first": evidence_first, "--join": join})
    if path is not None:
        known, notes = cases_from(CaseSource(path=path, queries=queries, smoke=smoke))
    else:
        known, notes = _labelled(loaded, url, str(named), smoke)
    job = _Job(
        cases=known,
        notes=notes,
        ks=ks,
        candidate_ks=parse_depths(candidate_k) if candidate_k else (),
        pipeline=named,
        identity=identity,
        choosing=choosing,
        superseded=_superseded(superseded),
    )
    choosing.check_cases(known, answers=bool(generator or ragas))
    if run:
        budgets = {"--max-calls": max_calls, "--max-tokens": max_tokens, "--max-usd": max_usd}
        lists = _Lists(run_files(run), rules, first_stage, revision, budgets)
        maybe = _recorded(job, lists, dry_run=dry_run, as_json=as_json)
    else:
        target = retriever or section.retriever
        if target is None:
            raise UsageError("expected what to sweep; give --retriever MODULE:OBJECT, or --run RUN")
        with open_cache(loaded, fresh, join) as cache:
            live = _Live(
                target,
                first_stage,
                revision,
                policy_of(section, max_calls, max_tokens, max_usd),
                _answering(
                    section,
                    (generator, generator_version, price),
                    (judge, judge_version, judge_price),
                    evidence_first=evidence_first,
                    cite=superseded is not None,
                    ragas=ragas is not None,
                ),
                _checking(audit, tolerance),
                _weighing(section, ragas, (judge, judge_version, judge_price)),
            )
            maybe = _live(job, live, cache, dry_run=dry_run, as_json=as_json)
    if maybe is None:
        return
    swept = maybe
    _hand_out(swept, html=html, save=save, lock=_lock(loaded, lock) if write_lock else None)
    if record:
        hand_over(loaded, url, swept)
    told = swept.report.as_dict()
    if as_json:
        frame.print_json(told)
    else:
        say_report(told)


def _labelled(
    settings: Settings, url: str | None, pipeline: str, smoke: int | None
) -> tuple[list[Case], list[str]]:
    """Return the cases that the agent holds for a pipeline."""
    from resweep.serve.access import access
    from resweep.serve.sweeping import labelled_by
    from resweep.sweep.labelled import smoke_cases

    with access(settings, url) as agent:
        cases, notes = labelled_by(agent, pipeline)
    if smoke is None:
        return cases, notes
    some = smoke_cases(cases, smoke)
    return some, [*notes, f"a smoke set: {len(some)} of {len(cases)} cases, weighted to them all"]


def _check_kept(named: str | None, identity: Identity | None, kept: bool, *, recorded: bool) -> None:
    """Raise UsageError where a report is to be kept that will not say what it is valid for."""
    if kept and identity is None and (recorded or named is None):
        raise UsageError(
            "expected --config FILE (`pipeline` and `config`) with --record and --write-lock: what the depth "
            "is valid for has to be known"
        )


def _check_page(html: Path | None) -> None:
    """Raise UsageError for a page that cannot be written, before what is on it is paid for."""
    if html is not None and not html.absolute().parent.is_dir():
        raise UsageError(f"expected a folder for {html}, got none: make it, or name another file")


def _check_money(most: float | None, *prices: float | None, asked: bool) -> None:
    """Raise UsageError for a budget in money of models without a price: nothing would ever be spent."""
    if most is not None and asked and None in prices:
        raise UsageError("expected --price and --judge-price with --max-usd: without them nothing is counted")


def _for_lists_too(given: dict[str, object]) -> None:
    """Raise UsageError for what recorded lists cannot do: an option that is passed over would mislead."""
    wrong = [option for option, value in given.items() if value]
    if wrong:
        raise UsageError(
            f"expected recorded lists or a live retriever, got --run with {', '.join(wrong)}: recorded lists "
            "answer nothing anew and hold no texts; leave one of the two out (a grid is --run 10=RUN --run "
            "50=RUN)"
        )


class _Job:
    """What is swept, whatever it is retrieved from."""

    def __init__(
        self,
        *,
        cases: Sequence[Case],
        notes: Sequence[str],
        ks: Sequence[int],
        candidate_ks: Sequence[int],
        pipeline: str | None,
        identity: Identity | None,
        choosing: Choosing,
        superseded: Superseded | None = None,
    ) -> None:
        self.cases, self.notes = cases, notes
        self.ks, self.candidate_ks = ks, candidate_ks
        self.pipeline, self.identity, self.choosing = pipeline, identity, choosing
        self.superseded = superseded


class _Lists(NamedTuple):
    """The recorded side of a job; `budgets` are options that bound nothing there."""

    run: RunFiles
    rules: InvalidationRules
    first_stage: str | None
    revision: str
    budgets: Mapping[str, object]


class _Live:
    """The live side of a job."""

    def __init__(
        self,
        target: str,
        first_stage: str | None,
        revision: str,
        policy: Policy,
        answering: Answering | None,
        check: Checking | None,
        weighing: Weighing | None,
    ) -> None:
        self.target, self.first_stage, self.revision = target, first_stage, revision
        self.policy, self.answering, self.check = policy, answering, check
        self.weighing = weighing


Modelled = tuple[str | None, str, float | None]  # what was named, its version, the price of a million tokens


def _answering(
    section: SweepSection,
    generator: Modelled,
    judge: Modelled,
    *,
    evidence_first: bool,
    cite: bool,
    ragas: bool,
) -> Answering | None:
    """Return how answers are made and judged, None where none were asked for. Raises UsageError for half."""
    from resweep.serve import models
    from resweep.sweep.answers import CITING_PROMPT, PROMPT, Answering

    if generator[0] is None and (judge[0] is None or ragas):
        return None
    if generator[0] is None or judge[0] is None:
        raise UsageError("expected --generator and --judge together: answers are made, then judged")
    makes = models.parse_model(generator[0], generator[1], generator[2])
    rules = models.parse_model(judge[0], judge[1], judge[2])
    return Answering(
        generate=models.generator(makes, section.timeout_s, cite=cite),
        judge=models.judge(rules, section.timeout_s),
        generator=makes.known(),
        judge_model=rules.known(),
        evidence_first=evidence_first,
        prompt=CITING_PROMPT if cite and makes.remote else PROMPT,
        tell=_tell,
    )


def _tell(cost: AnswerCost) -> None:
    usd = "" if cost.usd is None else f", about {cost.usd:.2f} USD"
    asked = f"{cost.answers} to make, up to {cost.verdicts} to judge, about {cost.prompt_tokens:,} tokens"
    sys.stderr.write(f"answers: {asked}{usd}\n")


def _weighing(section: SweepSection, metric: str | None, judge: Modelled) -> Weighing | None:
    """Return how passages are weighed, None where nobody asked for it. Raises UsageError without a judge."""
    if metric is None:
        return None
    from resweep.serve import models, ragas_metrics

    if judge[0] is None:
        raise UsageError("expected --judge with --ragas, https://host/v1#model: it says what is useful")
    named = models.parse_model(judge[0], judge[1], judge[2])
    return ragas_metrics.weighing(metric, named, section.timeout_s, _tell_weighing)


def _tell_weighing(cost: AnswerCost) -> None:
    usd = "" if cost.usd is None else f", about {cost.usd:.2f} USD"
    sys.stderr.write(f"passages: {cost.verdicts} to weigh, about {cost.prompt_tokens:,} tokens{usd}\n")


def _checking(audit: Path | None, tolerance: float | None) -> Checking | None:
    if audit is None:
        return None
    from resweep.sweep.answered import Checking
    from resweep.sweep.audit import read_audit

    return Checking(items=read_audit(audit), now=time.time(), tolerance=tolerance)


def _superseded(path: Path | None) -> Superseded | None:
    if path is None:
        return None
    from resweep.sweep.superseded import read_superseded

    return read_superseded(path)


def _recorded(job: _Job, lists: _Lists, *, dry_run: bool, as_json: bool) -> Sweep | None:
    from dataclasses import replace

    from resweep.domain.measures import DEFINITIONS
    from resweep.serve.sweeping import stamped_recorded
    from resweep.sweep.recorded import Source, sweep_cases
    from resweep.sweep.runner import Estimate
    from resweep.sweep.superseded import with_superseded

    if dry_run:
        nothing = Estimate(cases=len(job.cases), least=0, most=0, cached=0)
        _estimated(nothing, as_json=as_json)
        return None
    given = [option for option, value in lists.budgets.items() if value is not None]
    told = [f"{', '.join(given)} bounds nothing: recorded lists take no call"] if given else []
    bad: list[str] = []
    swept = sweep_cases(
        lists.run,
        job.cases,
        job.ks,
        job.choosing.settings(tuple(DEFINITIONS)),
        source=Source(events=reader(lists.rules, bad), pipeline=job.pipeline),
        first_stage=lists.first_stage,
        basis_hash=job.identity.basis_hash if job.identity else None,
        notes=[*job.notes, *told],
    )
    if job.superseded is not None:
        swept = with_superseded(swept, job.superseded)
    pipeline = job.pipeline or (job.identity.pipeline if job.identity else None)
    report = replace(swept.report, pipeline=pipeline, notes=[*swept.report.notes, *bad])
    swept = replace(swept, report=report)
    return stamped_recorded(swept, lists.run, lists.revision, job.identity)


def _live(job: _Job, live: _Live, cache: Kept, *, dry_run: bool, as_json: bool) -> Sweep | None:
    from resweep.domain.measures import DEFINITIONS
    from resweep.serve.sweeping import LiveSweep, Wish, off_the_record

    with off_the_record(), frame.stdout_to_stderr():
        ready = LiveSweep(
            Wish(
                retriever=live.target,
                cases=job.cases,
                ks=job.ks,
                candidate_ks=job.candidate_ks,
                first_stage=live.first_stage,
                revision=live.revision,
                pipeline=job.pipeline,
                identity=job.identity,
                notes=job.notes,
            ),
            cache,
            live.policy,
        )
        cost = ready.estimate()
        if not dry_run:
            _say_estimate(cost)
            settings = job.choosing.settings(tuple(DEFINITIONS))
            try:
                with progress() as watch:
                    return ready.run(
                        settings, watch, live.answering, live.check, job.superseded, live.weighing
                    )
            except KeyboardInterrupt:
                sys.stderr.write("interrupted: what was answered is kept; run again to go on\n")
                raise
    _estimated(
        cost,
        as_json=as_json,
        answers=_answers_at_most(job) if live.answering else None,
        passages=_passages_at_most(job) if live.weighing else None,
    )
    return None


def _answers_at_most(job: _Job) -> int:
    """Return how many answers a sweep makes at most: each case at every cell, and without any passage."""
    cells = sum(k <= c for c in job.candidate_ks for k in job.ks) or len(job.ks)
    return (cells + 1) * sum(case.reference is not None and case.kind == "answerable" for case in job.cases)


def _passages_at_most(job: _Job) -> int:
    """Return how many passages are weighed at most: those of every list that may be asked for."""
    rows = [[k for k in job.ks if k <= c] for c in job.candidate_ks] or [list(job.ks)]
    lists = sum(sum(row) for row in rows)
    return lists * sum(case.reference is not None and case.kind == "answerable" for case in job.cases)


def _say_estimate(cost: Estimate) -> None:
    more = f" (up to {cost.most} where lists are not prefixes)" if cost.most > cost.least else ""
    sys.stderr.write(f"{cost.cases} cases: {cost.least} calls{more}, {cost.cached} answered already\n")


def _estimated(
    cost: Estimate, *, as_json: bool, answers: int | None = None, passages: int | None = None
) -> None:
    """Tell what a sweep would cost, and sweep nothing."""
    _say_estimate(cost)
    if answers is not None:
        sys.stderr.write(f"answers: at most {answers} to make and {answers} to judge\n")
    if passages is not None:
        sys.stderr.write(f"passages: at most {passages} to weigh, fewer where depths share them\n")
    if as_json:
        told = {"cases": cost.cases, "least": cost.least, "most": cost.most, "cached": cost.cached}
        if answers is not None:
            told |= {"answers": answers, "verdicts": answers}
        if passages is not None:
            told |= {"passages": passages}
        frame.print_json({"schema": "resweep.estimate/1", **told})


@contextmanager
def open_cache(settings: Settings, fresh: bool, join: str | None = None) -> Iterator[Kept]:
    """Give the answers kept between commands; `fresh` takes none of them, `join` those of all workers."""
    from resweep.serve.places import places
    from resweep.serve.sweeping import HOUR_S
    from resweep.sweep.cache import Cache

    section = settings.sweep
    max_age_s = 0.0 if fresh else section.cache_hours * HOUR_S
    folder = Path(section.cache) if section.cache else places(settings).home / "sweeps"
    cache = _shared(join, max_age_s) if join else Cache(folder, time.time(), max_age_s)
    try:
        yield cache
    finally:
        cache.close()


def _shared(url: str, max_age_s: float) -> Kept:
    from resweep.store.workqueue import SharedAnswers

    if not max_age_s:
        raise UsageError(
            "expected --join or --fresh, got both: what one worker answered is never fresh to the next"
        )
    return SharedAnswers(url, max_age_s)


@contextmanager
def progress() -> Iterator[Watcher | None]:
    """Show done, rate and remaining time on stderr while work goes on; nothing without a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[told]}"),
    )
    started = time.monotonic()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("retrieving", total=None, rate="", told="")

        def watch(at: Any) -> None:
            made = at.done - at.cached
            rate = f"{made / max(time.monotonic() - started, 1e-9):.1f}/s"
            told = "".join(
                f"{n} {what}  " for n, what in ((at.retried, "retried"), (at.failed, "failed")) if n
            )
            bar.update(task, total=at.total, completed=at.done, rate=rate, told=told)

        yield watch


def _lock(settings: Settings, lock: str | None) -> Path:
    from resweep.store.lockfile import FILE_NAME

    return lock_path(lock, settings) or Path(FILE_NAME)


def _hand_out(swept: Sweep, *, html: Path | None, save: Path | None, lock: Path | None) -> None:
    """Write what was asked for, the lock entry first: it may be refused."""
    if lock is not None:
        write_entry(swept.report.as_dict(), lock)
    if save is not None:
        from resweep.sweep.saved import write_saved

        write_saved(save, swept)
    if html is not None:
        write_page(swept.report.as_dict(), html)


LISTS_MAX = 4 << 20  # bytes of packed lists that are handed over; more would not fit into a request


def hand_over(settings: Settings, url: str | None, swept: Sweep) -> None:
    """Give a report to the agent, which keeps it by pipeline and basis. Raises UsageError for no pipeline."""
    import base64

    from resweep.serve.access import access
    from resweep.sweep.saved import pack_cases

    report = swept.report.as_dict()
    if report["pipeline"] is None:
        raise UsageError("expected the name of the pipeline; give PIPELINE or --config FILE")
    packed = pack_cases(swept)
    cases = base64.b64encode(packed).decode() if len(packed) <= LISTS_MAX else None
    with access(settings, url) as agent:
        agent.hand_over({"report": report, "cases": cases})


def write_page(report: dict[str, Any], path: Path) -> None:
    """Write a report as one HTML page. Raises InputError where it cannot be written."""
    from resweep.domain.errors import InputError
    from resweep.serve.report.page import render

    try:
        path.write_text(render(report), "utf-8")
    except OSError as error:
        raise InputError(f"expected to write {path}; {error.strerror}: name another file") from None


def write_entry(report: dict[str, Any], path: Path) -> None:
    """Write the record that a report makes into a lock file."""
    from resweep.serve.adopting import lock_entry
    from resweep.serve.cli.status import me
    from resweep.store.exchange import pull
    from resweep.store.lockfile import LockFile, read_lock, write_lock

    held = read_lock(path) if path.exists() else LockFile()
    write_lock(path, pull(held, [lock_entry(report, by=me(), now=time.time())]).lock)
    sys.stderr.write(f"written to {path}\n")


BAD_TOLD = 20  # lines named one by one


def reader(rules: InvalidationRules, bad: list[str]) -> Callable[[Path], Iterator[RetrievalEvent]]:
    """Return what reads the events of a file of `resweep.event/1`; what cannot be used is told into `bad`."""
    from resweep.ingest.jsonlines import BadLine, EventLine, LineReader, lines_of

    def events(path: Path) -> Iterator[RetrievalEvent]:
        wrong = 0
        for item in LineReader(rules).read(lines_of(path)):
            if isinstance(item, EventLine):
                yield item.event
            elif isinstance(item, BadLine):
                wrong += 1
                if wrong <= BAD_TOLD:
                    bad.append(f"line {item.line} of {path.name} takes no part: {item.reason}")
        if wrong > BAD_TOLD:
            bad.append(f"{wrong - BAD_TOLD} more lines of {path.name} take no part")

    return events


def say_report(told: dict[str, Any]) -> None:
    """Print a report as a table, the choice, and what the curves say."""
    counts = [f"{told['n_cases']} cases", f"{told['n_effective']:.0f} effective"]
    counts += [
        f"{told[name]} {what}"
        for name, what in (
            ("n_unanswerable", "unanswerable"),
            ("n_excluded_unjudged", "unjudged"),
            ("n_missing", "missing"),
        )
        if told[name]
    ]
    frame.say(f"{', '.join(counts)}, by {told['objective']}")
    ragas = (told["ragas"]["measure"],) if told["ragas"] else ()
    shown = list(dict.fromkeys((*SHOWN, *ragas, told["objective"])))
    grid = len({point["candidate_k"] for point in told["points"]}) > 1
    columns = [*(["candidate_k"] if grid else []), "k", *shown, "tokens", ""]
    frame.table("", columns, [_row(point, told, shown, grid) for point in told["points"]])
    chosen = told["chosen"]
    if chosen["context_k"] is None:
        frame.say(f"chosen: none: {chosen['why']}")
    else:
        of = f" of {chosen['candidate_k']} candidates" if grid else ""
        frame.say(f"chosen: k = {chosen['context_k']}{of}: {chosen['why']}")
    if told["comparison"] is not None:
        frame.say(_against(told["comparison"]))
    if told["holdout"] is not None:
        frame.say(f"holdout: {told['holdout']['text']}")
    for found in told["diagnosis"]:
        frame.say(f"  {found['text']}")
    for note in told["notes"]:
        frame.say(f"  note: {note}")


def _against(found: dict[str, Any]) -> str:
    """Return the comparison with the baseline, case by case, in one line."""
    return (
        f"against k = {found['against']['context_k']}: {found['measure']} {found['before']:.3f} -> "
        f"{found['after']:.3f}, {found['difference']:+.3f} [{found['low']:+.3f}, {found['high']:+.3f}]; "
        f"{found['gained']} cases gained, {found['lost']} lost, {found['same']} as before"
    )


def _row(point: dict[str, Any], told: dict[str, Any], shown: Sequence[str], grid: bool) -> list[str]:
    start = [*([str(point["candidate_k"])] if grid else []), str(point["context_k"])]
    if point["state"] != "measured":
        return [*start, *("-" for _ in shown), "-", point["why"]]
    tokens = "-" if point["prompt_tokens"] is None else f"{point['prompt_tokens']:,.0f}"
    return [*start, *(_measure(point["measures"].get(name)) for name in shown), tokens, _result(point, told)]


def _result(point: dict[str, Any], told: dict[str, Any]) -> str:
    chosen = told["chosen"]
    if (point["context_k"], point["candidate_k"]) == (chosen["context_k"], chosen["candidate_k"]):
        return "chosen"
    if [point["candidate_k"], point["context_k"]] in told["best_cells"]:
        return "not distinguishable from the best"
    return ""


def _measure(measure: dict[str, Any] | None) -> str:
    if measure is None or measure["mean"] is None:
        return "-"
    return f"{measure['mean']:.3f} [{measure['low']:.3f}, {measure['high']:.3f}]"
