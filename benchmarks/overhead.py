"""What recording adds to a call, beside floors and peers, all in one run: only the ratios travel.

    python benchmarks/overhead.py [--json] [--quick]

A case is called in blocks, the cases taking turns; a block counts by its median call, a case by the median of
its blocks. `added_us` is that minus the bare retriever's. What they mean is in docs/recording.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import sys
import threading
from statistics import median
from time import perf_counter, process_time
from typing import Any

import overhead_cases as cases

BLOCKS = 9
CALLS = 2_000
HOLD = {
    "resweep/prometheus_client": 1.0,
    "resweep_append/floor_clock": 3.0,
    "langchain/bare": 1.3,
    "cpu: resweep/floor_derive": 3.0,
    "memory_mb_per_200k": 8.0,
}


def block(call: cases.Retriever, calls: int) -> float:
    """Return the median time of a call, in microseconds."""
    times = []
    for _ in range(calls):
        began = perf_counter()
        call("how long do refunds take")
        times.append(perf_counter() - began)
    return median(times) * 1e6


def medians(
    subjects: dict[str, cases.Retriever], blocks: int, calls: int, settle: Any = None
) -> dict[str, float]:
    """Return the median of the block medians of each subject, the subjects taking turns."""
    found: dict[str, list[float]] = {name: [] for name in subjects}
    for _ in range(blocks):
        for name, call in subjects.items():
            gc.collect()
            found[name].append(block(call, calls))
            if settle is not None:
                settle()
    return {name: median(values) for name, values in found.items()}


def settle() -> None:
    """Let resweep fold what waits, so that the next block starts as a service would."""
    import resweep

    resweep.flush(10.0)


def append_alone(blocks: int) -> float:
    """Return what the request's own part costs while nobody folds: `added_us` of appending."""
    bare = cases.retriever()
    watched = cases.resweep_metrics(bare)
    recorder = watched.__resweep_site__.recorder  # type: ignore[attr-defined]
    recorder.running = True
    times, floor = [], []
    for _ in range(blocks):
        recorder.ring.resize(1 << 20)
        times.append(block(watched, CALLS))
        floor.append(block(bare, CALLS))
        recorder.ring.calls.clear()
    return median(times) - median(floor)


def cpu(call: cases.Retriever, calls: int) -> float:
    """Return processor time of all threads per call in microseconds, with everything folded, none lost."""
    for _ in range(8):  # until the ring has room for a thousand
        for _ in range(200):
            call("how long do refunds take")
        settle()
    began = process_time()
    for number in range(calls):
        call("how long do refunds take")
        if number % 1000 == 999:
            settle()
    settle()
    return (process_time() - began) / calls * 1e6


def processors(subjects: dict[str, cases.Retriever], calls: int) -> dict[str, float]:
    """Return processor time per call beyond the bare retriever's.

    `resweep` is a busy service, whose answers are looked into up to a budget a second; `resweep_every` is one
    calm enough that every answer is.
    """
    idle = cpu(subjects["bare"], calls)
    found = {name: cpu(subjects[name], calls) - idle for name in ("floor_derive", "resweep")}
    folding = subjects["resweep"].__resweep_site__.recorder._folding  # type: ignore[attr-defined]
    folding.budget_burst = float(10 * calls)
    folding._budget = folding.budget_burst
    found["resweep_every"] = cpu(subjects["resweep"], calls) - idle
    return found


def threads(call: cases.Retriever, calls: int, of: int = 8) -> float:
    """Return wall time per call in microseconds with eight threads at once."""
    gate = threading.Barrier(of + 1)

    def work() -> None:
        gate.wait()
        for _ in range(calls):
            call("how long do refunds take")

    workers = [threading.Thread(target=work) for _ in range(of)]
    for worker in workers:
        worker.start()
    gate.wait()
    began = perf_counter()
    for worker in workers:
        worker.join()
    return (perf_counter() - began) / (calls * of) * 1e6


def tasks(calls: int, of: int = 200) -> dict[str, float]:
    """Return wall time per call in microseconds of 200 tasks, bare and watched."""
    from prometheus_client import CollectorRegistry

    import resweep

    retrieve = cases.retriever()

    async def bare(query: str) -> list[Any]:
        await asyncio.sleep(0)
        return retrieve(query)

    watched = resweep.watch(bare, pipeline="tasks", sink="none", registry=CollectorRegistry())

    async def run(call: Any) -> float:
        async def work() -> None:
            for _ in range(calls):
                await call("how long do refunds take")

        began = perf_counter()
        await asyncio.gather(*(work() for _ in range(of)))
        return (perf_counter() - began) / (calls * of) * 1e6

    return {"bare": asyncio.run(run(bare)), "resweep": asyncio.run(run(watched))}


def memory(calls: int, configs: int = 20) -> float:
    """Return the growth of the process in MB over so many calls on 20 configs, after a warm-up."""
    from prometheus_client import CollectorRegistry

    import resweep

    registry = CollectorRegistry()
    watched = [
        resweep.watch(cases.retriever(), pipeline="m", config={"v": v}, sink="none", registry=registry)
        for v in range(configs)
    ]
    for number in range(20_000):
        watched[number % configs]("q")
    settle()
    before = _resident_mb()
    for number in range(calls):
        watched[number % configs]("q")
    settle()
    return _resident_mb() - before


def _resident_mb() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize() / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def langchain(blocks: int, calls: int) -> dict[str, float]:
    """Return median microseconds of `invoke`: bare, watched, and under each instrumentor installed."""
    found = medians(
        {"bare": cases.langchain_bare(), "resweep": cases.langchain_resweep()}, blocks, calls, settle
    )
    for name, make in (("openinference", cases.openinference), ("openllmetry", cases.openllmetry)):
        call = make()
        if call is not None:
            found[name] = medians({name: call}, blocks, max(100, calls // 10))[name]
            call.undo()  # type: ignore[attr-defined]
    return found


def measure(*, quick: bool) -> dict[str, Any]:
    """Return every figure of one run."""
    blocks, calls = (3, 500) if quick else (BLOCKS, CALLS)
    bare = cases.retriever()
    subjects = {"bare": bare, **{name: case(bare) for name, case in cases.CASES.items()}}
    found = medians(subjects, blocks, calls, settle)
    result: dict[str, Any] = {
        "cases": {
            name: {"added_us": round(us - found["bare"], 3)} for name, us in found.items() if name != "bare"
        }
    }
    added = {name: case["added_us"] for name, case in result["cases"].items()}
    result["cases"]["resweep_append"] = {"added_us": round(append_alone(blocks), 3)}
    chain = langchain(blocks, calls)
    for name, us in chain.items():
        if name != "bare":
            result["cases"][f"langchain_{name}"] = {"added_us": round(us - chain["bare"], 3)}
    processor = processors(subjects, 5 * calls)
    result["cpu_us_per_event"] = {name: round(us, 3) for name, us in processor.items()}
    beside = ("bare", "floor_derive", "prometheus_client", "resweep")
    eight = {name: threads(subjects[name], calls // 4) for name in beside}
    result["threads_8_us_per_call"] = {name: round(us, 3) for name, us in eight.items()}
    result["tasks_200_us_per_call"] = {name: round(us, 3) for name, us in tasks(20).items()}
    result["memory_mb_per_200k"] = round(memory(20_000 if quick else 200_000), 2)
    result["ratios"] = {
        "resweep/prometheus_client": round(added["resweep"] / added["prometheus_client"], 3),
        "resweep/floor_derive": round(added["resweep"] / added["floor_derive"], 3),
        "resweep/otel_span": round(added["resweep"] / added["otel_span"], 3),
        "resweep_append/floor_clock": round(
            result["cases"]["resweep_append"]["added_us"] / added["floor_clock"], 3
        ),
        "langchain/bare": round(chain["resweep"] / chain["bare"], 3),
        "cpu: resweep/floor_derive": round(processor["resweep"] / processor["floor_derive"], 3),
        "cpu: resweep_every/floor_derive": round(processor["resweep_every"] / processor["floor_derive"], 3),
    }
    return result


def table(result: dict[str, Any]) -> str:
    """Return the figures as text."""
    lines = [f"{'case':28} {'added us':>9}"]
    lines += [f"{name:28} {case['added_us']:9.2f}" for name, case in result["cases"].items()]
    lines += ["", f"{'ratio':34} {'now':>7} {'hold':>6}"]
    for name, value in {**result["ratios"], "memory_mb_per_200k": result["memory_mb_per_200k"]}.items():
        hold = HOLD.get(name)
        mark = "" if hold is None else f"{hold:6.1f}{'' if value <= hold else '  above'}"
        lines.append(f"{name:34} {value:7.2f} {mark}")
    for name in ("cpu_us_per_event", "threads_8_us_per_call", "tasks_200_us_per_call"):
        lines.append(f"{name}: " + ", ".join(f"{case} {us:.2f}" for case, us in result[name].items()))
    return "\n".join(lines)


def main(argv: list[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="fewer calls: a look, not a figure")
    arguments = parser.parse_args(argv)
    result = measure(quick=arguments.quick)
    print(json.dumps(result, indent=2) if arguments.json else table(result))


if __name__ == "__main__":
    main(sys.argv[1:])
