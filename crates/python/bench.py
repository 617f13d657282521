"""What Python costs: run it with the wheel installed, `python bench.py`. On a machine that does other work, too, read
the CPU times.

Source of each figure: this file, and docs/python.md has what it said.
"""

from __future__ import annotations

import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import narrows
import polars
from narrows import _narrows


def timed(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Median wall time and CPU time of `work`, ms."""
    walls, cpus = [], []
    for _ in range(times):
        wall, cpu = time.perf_counter(), time.process_time()
        work()
        walls.append(1e3 * (time.perf_counter() - wall))
        cpus.append(1e3 * (time.process_time() - cpu))
    return statistics.median(walls), statistics.median(cpus)


def many_flows(flows: int, seconds: int, rate: str) -> narrows.Scenario:
    """So many TCP flows, each over a link of its own."""
    names = [f"f{flow}" for flow in range(flows)]
    return narrows.Scenario.from_dict(
        {
            "name": "bench",
            "warmup": "0 s",
            "duration": f"{seconds} s",
            "links": {name: {"rate": rate, "queue": "5 packets"} for name in names},
            "routes": {name: {"links": [name], "rtt": "40 ms"} for name in names},
            "flows": {name: {"kind": "tcp", "routes": [name], "cc": "reno"} for name in names},
        }
    )


def resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20


def one_run() -> None:
    """All of a run that simulates next to nothing is what Python, the thread and the results cost."""
    nothing = many_flows(1, 1, "64 kbit/s")
    wall, cpu = timed(lambda: narrows.run(nothing), 300)
    print(f"a run of a dozen packets, all of it: {wall:.2f} ms, CPU {cpu:.2f} ms")
    some = narrows.Scenario.load("sbd/nsb-2").set("warmup", "1 s").set("duration", "3 s")
    wall, cpu = timed(lambda: narrows.run(some, cc="lia"), 50)
    print(f"a run of 4 s of sbd/nsb-2: {wall:.1f} ms, CPU {cpu:.1f} ms")


def a_million_rows() -> None:
    run = narrows.run(many_flows(100, 1000, "100 kbit/s"), series=True)
    rows = len(run.series)
    wall, cpu = timed(lambda: polars.DataFrame(run.series), 20)
    print(f"{rows:,} rows to Polars: {wall:.1f} ms, CPU {cpu:.1f} ms")


def memory(runs: int) -> None:
    scenario = narrows.Scenario.load("sbd/nsb-2").set("warmup", "1 s").set("duration", "2 s")
    said = {max(1, runs // 10), runs // 2, runs}
    for count in range(1, runs + 1):
        polars.DataFrame(narrows.run(scenario, cc="lia", seed=count, series=True).series)
        if count in said:
            print(f"after {count:,} runs: {resident():.0f} MiB")


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tasks() -> None:
    """Tasks of about a second: those of one worker and of two, beside the same runs one after the other here."""
    long = narrows.Scenario.load("sbd/nsb-2").set("warmup", "1 s")
    wall, _ = timed(lambda: narrows.run(long.set("duration", "100 s"), cc="lia"), 3)
    # The estimate that makes tasks is of a slower machine: as long a run as takes a second here is one.
    long = long.set("duration", f"{max(100, int(1e5 / wall))} s")
    plan = narrows.Plan(long, "lia", 12)
    alone = _narrows.Sweep(long, "lia", 12, None, None, "sim", None, None, False)
    wall, cpu = time.perf_counter(), time.process_time()
    for seed in range(1, 13):
        narrows.run(long, cc="lia", seed=seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"12 runs in {len(alone)} tasks, one after the other here: {wall:.2f} s, CPU {cpu:.2f} s")
    walls = {}
    for workers in (1, 2):
        ours, theirs = time.process_time(), children()
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(_warm, range(workers)))
            start = time.perf_counter()
            narrows.sweep(plan, pool)
            walls[workers] = time.perf_counter() - start
        ours, theirs = time.process_time() - ours, children() - theirs
        more = f"CPU {ours:.2f} s here and {theirs:.2f} s there, start included"
        print(f"on {workers} worker(s) of a pool: {walls[workers]:.2f} s, {more}")
    print(f"two are {walls[1] / walls[2]:.2f} times one")
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        narrows.sweep(narrows.Plan(long.set("duration", "2 s"), "lia", 1), client)
        before = client.run(time.process_time)
        start, ours = time.perf_counter(), time.process_time()
        narrows.sweep(plan, client)
        wall, ours = time.perf_counter() - start, time.process_time() - ours
        after = client.run(time.process_time)
        theirs = sum(after[worker] - before[worker] for worker in before)
        spent = ours + theirs - cpu
        print(f"on one worker of Dask: {wall:.2f} s, CPU {ours:.2f} s here and {theirs:.2f} s there")
        print(f"more CPU time than the runs alone: {100 * spent / cpu:.1f} %, {1e3 * spent / len(alone):.0f} ms a task")


def _warm(_: int) -> str:
    time.sleep(0.2)
    return narrows.__version__


if __name__ == "__main__":
    one_run()
    a_million_rows()
    memory(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
    tasks()
