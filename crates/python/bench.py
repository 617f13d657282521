"""What Python costs: run it with the wheel installed, `python bench.py [RUNS] [PART..]`, all parts of `PARTS` if none is
named. On a machine that does other work, too, read the CPU times.

Source of each figure: this file, and docs/results/performance.md has what it said.
"""

from __future__ import annotations

import os
import resource
import signal
import statistics
import subprocess
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


# Says when Ctrl-C reached it.
LONG = """
import itertools, sys, tempfile, time, bench, narrows
long = narrows.Scenario.load("sbd/nsb-2").set("duration", "100000 s")
calls = {
    "run": lambda: narrows.run(long, cc="lia", force=True),
    "compare": lambda: narrows.compare(long, "lia", 4, force=True, progress=False),
    "sweep": lambda: narrows.sweep(narrows.Plan(long, "lia", 4)),
    "points": lambda: narrows.compare(long, "lia", 1, sweep={"links.bottleneck1.rate": rates}, progress=False),
    "page": lambda: [page() for _ in itertools.count()],
    "pcap": lambda: [short.to_pcap(tempfile.mkdtemp(dir=sys.argv[2])) for _ in itertools.count()],
    "detect": lambda: [narrows.detect(sys.argv[2] + "/delays") for _ in itertools.count()],
    "papers": lambda: narrows.papers("sbd/table-2", jobs=2),
}
if sys.argv[1] == "pcap":
    short = narrows.run(long.set("duration", "300 s"), cc="lia")
if sys.argv[1] == "detect":
    with open(sys.argv[2] + "/delays", "w") as file:
        file.write("flow,t_s,owd_ms\\n")
        file.writelines(f"{flow},{at / 100},{at % 150 + 10}\\n" for at in range(10**5) for flow in "abcd")
if sys.argv[1] == "page":
    page = narrows.run(bench.many_flows(100, 600, "100 kbit/s"), series=True)._repr_html_
rates = [f"{1000 + rate} kbit/s" for rate in range(10**5)]
while True:
    print("ready", flush=True)
    try:
        calls[sys.argv[1]]()
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
"""


def long(call: str, folder: str = "") -> subprocess.Popen[str]:
    """A process that does this for longer than anyone waits; what it writes is in the folder."""
    here = Path(__file__).parent
    return subprocess.Popen([sys.executable, "-c", LONG, call, folder], stdout=subprocess.PIPE, text=True, cwd=here)


def after_ctrl_c(child: subprocess.Popen[str], wait: float) -> float:
    """How long a run of `LONG` goes on after Ctrl-C, which comes so long after its start, s."""
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    # It has a thread of its own as soon as it runs.
    while len(list(Path(f"/proc/{child.pid}/task").iterdir())) == 1:
        assert child.poll() is None
        time.sleep(0.001)
    time.sleep(wait)
    sent = time.monotonic()
    child.send_signal(signal.SIGINT)
    return float(child.stdout.readline()) - sent


def ctrl_c() -> None:
    """How long a run goes on after Ctrl-C, in another process."""
    with long("run") as child:
        took = [1e3 * after_ctrl_c(child, 0.3 + 0.0013 * each) for each in range(50)]
        child.kill()
    print(f"Ctrl-C stops a run after {min(took):.0f} to {max(took):.0f} ms, median {statistics.median(took):.0f}")


# Pairs of one worker and two, and the tasks of each: so many that who ends last ends not much later.
ROUNDS = 5
TASKS = 24


def children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def tasks() -> None:
    """Tasks of about a second: those of one worker and of two, beside the same runs one after the other here."""
    long = narrows.Scenario.load("sbd/nsb-2").set("warmup", "1 s")
    wall, _ = timed(lambda: narrows.run(long.set("duration", "100 s"), cc="lia"), 3)
    # The estimate that makes tasks is of a slower machine: as long a run as takes a second here is one.
    long = long.set("duration", f"{max(100, int(1e5 / wall))} s")
    plan = narrows.Plan(long, "lia", TASKS)
    alone = _narrows.Sweep(long, "lia", TASKS, None, None, "sim", None, None, False)
    wall, cpu = time.perf_counter(), time.process_time()
    for seed in range(1, TASKS + 1):
        narrows.run(long, cc="lia", seed=seed)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(f"{TASKS} runs in {len(alone)} tasks, one after the other here: {wall:.2f} s, CPU {cpu:.2f} s")
    ratios, costs = [], {1: [], 2: []}
    for each in range(ROUNDS):
        walls = {}
        # What slows the machine down for a while slows both, and each is first as often as the other.
        for workers in (1, 2) if each % 2 == 0 else (2, 1):
            before = children()
            with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
                list(pool.map(_warm, range(workers)))
                start = time.perf_counter()
                narrows.sweep(plan, pool)
                walls[workers] = time.perf_counter() - start
            costs[workers].append(children() - before)
        ratios.append(walls[1] / walls[2])
        print(f"one worker of a pool: {walls[1]:.2f} s, two: {walls[2]:.2f} s, {ratios[-1]:.2f} times as fast", flush=True)
    one, two = (statistics.median(costs[workers]) for workers in (1, 2))
    print(f"two are {statistics.median(ratios):.2f} times one, {min(ratios):.2f} to {max(ratios):.2f} in {ROUNDS} pairs")
    print(f"their CPU time, start included: one {one:.2f} s, two {two:.2f} s, more where they share caches or a core")


def per_task() -> None:
    """Tasks that simulate next to nothing are what handing one out and taking its results costs."""
    tiny = many_flows(1, 1, "64 kbit/s").set("test", "f0")
    plan = narrows.Plan(tiny, "reno", 1, sweep={"links.f0.queue": [f"{size} packets" for size in range(5, 305)]})
    wall, cpu = time.perf_counter(), time.process_time()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        list(pool.map(_warm, range(1)))
        before = children()
        narrows.sweep(plan, pool)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu + children() - before
    print(f"a task for a pool: {1e3 * wall / 300:.1f} ms, CPU {1e3 * cpu / 300:.1f} ms, start included")
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        return
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        narrows.sweep(narrows.Plan(tiny, "reno", 1), client)
        before = sum(client.run(time.process_time).values())
        wall, cpu = time.perf_counter(), time.process_time()
        narrows.sweep(plan, client)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        cpu += sum(client.run(time.process_time).values()) - before
    print(f"a task for Dask: {1e3 * wall / 300:.1f} ms, CPU {1e3 * cpu / 300:.1f} ms with its scheduler")


def _warm(_: int) -> str:
    time.sleep(0.2)
    return narrows.__version__


PARTS: dict[str, Callable[[], None]] = {
    "run": one_run,
    "rows": a_million_rows,
    "memory": lambda: memory(next((int(word) for word in sys.argv[1:] if word.isdigit()), 1000)),
    "ctrl-c": ctrl_c,
    "workers": tasks,
    "task": per_task,
}

if __name__ == "__main__":
    for part in [word for word in sys.argv[1:] if not word.isdigit()] or PARTS:
        PARTS[part]()
