"""A comparison on workers that people have: dask.distributed, a pool of processes, MPI."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from dataclasses import dataclass
from typing import Any

from narrows import _narrows
from narrows._api import Path, ScenarioLike, Seeds, Values, shown, table, told, wrong
from narrows._error import Error
from narrows._narrows import Comparison

#: How often a task is given to another worker after its worker was lost.
TRIES = 5
#: Tasks that a cluster is given at least, as an adaptive one asks for workers by what waits. One has some 10 kB.
WAITING = 1000
#: Seconds between two looks for new workers and Ctrl-C.
LOOK = 0.5


@dataclass(frozen=True)
class Plan:
    """What a sweep runs.

    Attributes
    ----------
    scenarios : Scenario, str, path, or several
        What to run.
    cc : str or list of str
        Congestion controls of the connection under test.
    seeds : int, tuple, range or str
        How many, from 1 on; or from one to another.
    sweep : dict, optional
        Fields with several values, all combinations of them, as of `compare`.
    signal : str or list of str, optional
        Delay signals of the detectors, a row each.
    on : str or list of str
        What runs them, as of `run`; nothing that runs in real time, as the kernel does.
    law : str or path, optional
        A law of one's own; each worker compiles it from this file.
    """

    scenarios: ScenarioLike | Iterable[ScenarioLike]
    cc: str | Sequence[str]
    seeds: Seeds = 10
    sweep: Mapping[str, Values] | None = None
    signal: str | Sequence[str] | None = None
    on: str | Sequence[str] = "sim"
    law: Path | None = None


def sweep(
    plan: Plan,
    client: Any = None,
    *,
    out: Path | None = None,
    resume: bool = False,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Comparison:
    """Run a plan on workers; the rows are those of `compare`, byte for byte.

    A task is some runs of about two seconds. Tasks are made as workers take them, so a plan of any size takes
    little memory. The tasks of a worker that is lost are done by others; what two of them did is counted once.
    All workers need the same wheel. Recorded traces are read for each task, so they must stay as they are; files of
    scenarios are read once.

    Parameters
    ----------
    plan : Plan
        What to run.
    client : dask.distributed.Client or concurrent.futures.Executor, optional
        Who does it: a client of Dask, a ``ProcessPoolExecutor``, ``mpi4py.futures.MPIPoolExecutor`` and the like;
        threads of this process if there is none.
    out : str or path, optional
        A folder that all workers reach, for one Parquet data set with a row for each run; written as tasks end.
    resume : bool
        Go on with what is in `out`, which it needs.
    progress : bool or callable, optional
        Show how far it is, on standard error; or call this with the tasks that are done and all.

    Returns
    -------
    Comparison
        As of `compare`, byte for byte.

    Raises
    ------
    Error
        What is wrong of the plan, in a run, or with `out`; a worker that has another build; a pool that lost a
        worker and takes no more tasks (its finished tasks are in `out`).
    KeyboardInterrupt
        Ctrl-C; what was finished is in `out`.

    References
    ----------
    `laws()` and `detectors()` have the source of each, `metrics()` says what the columns are.
    """
    if not isinstance(plan, Plan):
        raise wrong("plan", shown(plan), "a narrows.Plan")
    if not _takes_tasks(client):
        raise wrong("client", shown(client), "a client of Dask, Client(address), or an Executor")
    done = told(progress, "tasks")
    tasks = _narrows.Sweep(
        plan.scenarios,
        plan.cc,
        plan.seeds,
        table(plan.sweep, "sweep", "a dict of fields and their values"),
        plan.signal,
        plan.on,
        plan.law,
        out,
        resume,
    )
    own = client is None
    executor: Executor
    if own:
        executor = ThreadPoolExecutor(max_workers=os.cpu_count())
    elif hasattr(client, "get_executor"):
        executor = client.get_executor(pure=False)
    else:
        executor = client
    ended = False
    try:
        _drive(tasks, executor, client, done)
        ended = True
    except (BrokenExecutor, OSError) as error:
        if isinstance(error, BrokenExecutor):
            what = "the pool lost a worker and takes no more tasks"
        # While it cannot connect again, Dask's client raises a plain OSError.
        elif type(error).__name__ == "CommClosedError" or getattr(client, "status", "running") != "running":
            what = f"lost its scheduler ({error})"
        else:
            raise
        kept = f"; {tasks.taken} of {len(tasks)} tasks are in {out}, resume=True does the rest" if out else ""
        raise Error(f"client: {what}{kept}", field="client") from error
    finally:
        # Threads of this process do not see Ctrl-C.
        tasks.stop()
        # Dask's executor is one of ours over a client that is the caller's.
        if executor is not client:
            executor.shutdown(wait=own and ended)
    return tasks.comparison()


def _takes_tasks(client: Any) -> bool:
    """Is it a client, or nobody, rather than an address or a class?"""
    return client is None or (hasattr(client, "submit") and not isinstance(client, type))


def _most(executor: Executor, client: Any) -> int:
    """How many tasks to have handed out, now: more than run at the same time."""
    if hasattr(client, "nthreads"):
        return max(4 * sum(client.nthreads().values()), WAITING)
    # The one of mpi4py is not known before the pool has started.
    size = getattr(executor, "num_workers", 0) or getattr(executor, "_max_workers", 0)
    return 2 * int(size or os.cpu_count() or 1) + 2


def _lost(error: BaseException) -> bool:
    """Was the worker lost, rather than the task wrong?"""
    lost = {"KilledWorker", "CommClosedError", "FutureCancelledError"}
    return isinstance(error, (CancelledError, ConnectionError)) or type(error).__name__ in lost


def _drive(
    tasks: _narrows.Sweep,
    executor: Executor,
    client: Any,
    progress: Callable[[int, int], object] | None,
) -> None:
    """Hand out all tasks that are not done, some more at a time than there are workers."""
    todo = (task for task in range(len(tasks)) if not tasks.has(task))
    pending: dict[Future[str], int] = {}
    tries: dict[int, int] = {}
    within = (tasks,) if client is None else ()
    checked = False

    def submit(task: int) -> None:
        pending[executor.submit(_narrows.work, tasks.task(task), *within)] = task

    try:
        while True:
            room = _most(executor, client) - len(pending)
            for _, task in zip(range(room), todo):
                submit(task)
            if not pending:
                return
            # What is wrong of a point is said long before its task, while there is nothing else to do.
            checked = checked or tasks.check()
            done, _ = wait(pending, timeout=LOOK if checked else 0, return_when=FIRST_COMPLETED)
            for future in done:
                task = pending.pop(future)
                try:
                    result = future.result()
                except BaseException as error:
                    tries[task] = tries.get(task, 0) + 1
                    if not _lost(error) or tries[task] > TRIES:
                        raise
                    submit(task)
                    continue
                tasks.accept(task, result)
                if progress is not None:
                    progress(tasks.taken, len(tasks))
    finally:
        for future in pending:
            future.cancel()
