"""A student's sweep of 500 seeds on two workers of Dask, one of which is killed half-way, has the tables of one machine:
run it with the wheel, Polars and distributed installed, `python student.py [SECONDS]`, simulated ones of a run.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import narrows
import polars
from distributed import Client, LocalCluster

SEEDS = 500
CONTROLS = ["lia", "olia+ssc"]


def swept(plan: narrows.Plan, out: Path) -> narrows.Comparison:
    """The plan on two workers, without one of them from half of it on."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        killed: list[int] = []

        def kill(done: int, of: int) -> None:
            if killed or 2 * done < of:
                return
            busy = [worker for worker, tasks in client.processing().items() if tasks]
            assert len(busy) == 2, busy
            killed.append(client.run(os.getpid, workers=busy[:1])[busy[0]])
            os.kill(killed[0], signal.SIGKILL)
            print(f"killed a worker after {done} of {of} tasks", flush=True)

        comparison = narrows.sweep(plan, client, out=out, progress=kill)
        assert killed and killed[0] not in client.run(os.getpid).values()
        return comparison


def main() -> None:
    duration = f"{sys.argv[1] if len(sys.argv) > 1 else 20} s"
    scenario = narrows.Scenario.load("sbd/nsb-2").set("duration", duration)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "set"
        ours = swept(narrows.Plan(scenario, CONTROLS, SEEDS), out)
        assert polars.read_parquet(str(out / "*.parquet")).height == SEEDS * len(CONTROLS)
    print(f"two workers, one of them killed: {time.monotonic() - start:.0f} s", flush=True)
    start = time.monotonic()
    theirs = narrows.compare(scenario, CONTROLS, SEEDS, jobs=1, progress=False)
    print(f"one machine, one run after the other: {time.monotonic() - start:.0f} s")
    assert ours.to_csv() == theirs.to_csv()
    assert ours.to_dict() == theirs.to_dict()
    assert ours.report() == theirs.report()
    assert polars.DataFrame(ours.runs).equals(polars.DataFrame(theirs.runs))
    print(f"{len(ours.runs)} runs, the same bytes")


# A worker that starts as a process of its own imports this file.
if __name__ == "__main__":
    main()
