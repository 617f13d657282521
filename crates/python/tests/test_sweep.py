"""A comparison on workers: the bytes of one machine, whoever is lost on the way."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from multiprocessing import get_context
from pathlib import Path

import narrows
import numpy
import polars
import pytest
from conftest import brief, resident
from narrows import _narrows, _sweep
from pyarrow import compute, parquet

HERE = Path(__file__).parent
SWEEP = {"links.bottleneck1.rate": ["5 Mbit/s", "8 Mbit/s"], "links.bottleneck2.queue": "10..40 packets:2"}


def plan(seeds: object = 3) -> narrows.Plan:
    return narrows.Plan(brief(), ["lia", "olia+ssc"], seeds, sweep=SWEEP)


@pytest.fixture(scope="module")
def whole() -> narrows.Comparison:
    """The same on one machine, one run after the other."""
    return narrows.compare(brief(), ["lia", "olia+ssc"], 3, sweep=SWEEP, jobs=1, progress=False)


def same(ours: narrows.Comparison, theirs: narrows.Comparison) -> None:
    assert ours.to_csv() == theirs.to_csv()
    assert ours.to_dict() == theirs.to_dict()
    assert ours.report() == theirs.report()
    assert polars.DataFrame(ours.runs).equals(polars.DataFrame(theirs.runs))


def test_rows_are_means_of_runs_with_their_intervals(whole: narrows.Comparison) -> None:
    rows, runs = polars.DataFrame(whole.rows), polars.DataFrame(whole.runs)
    assert rows.height == 8 and runs.height == 24
    one = rows.row(0, named=True)
    of = runs.filter((polars.col("cc") == one["cc"]) & (polars.col("set_value") == one["set_value"]))
    of = of.filter(polars.col("set2_value") == one["set2_value"])
    assert of["goodput_mbps"].mean() == pytest.approx(one["goodput_mbps_mean"], rel=1e-5)
    # Student's t of two degrees of freedom, 4.303.
    half = 4.3027 * of["goodput_mbps"].std() / 3**0.5
    assert half == pytest.approx(one["goodput_mbps_ci95"], rel=1e-3)
    assert (one["set_field"], one["set_number"], one["set_unit"]) == ("links.bottleneck1.rate", 5.0, "Mbit/s")
    assert len(whole.paths) == 16 and "<iframe" in whole._repr_html_()


def test_jobs_and_what_is_called_meanwhile(whole: narrows.Comparison) -> None:
    told: list[tuple[int, int]] = []
    ours = narrows.compare(brief(), ["lia", "olia+ssc"], 3, sweep=SWEEP, jobs=4, progress=lambda *at: told.append(at))
    same(ours, whole)
    assert told[-1] == (24, 24)
    with pytest.raises(ZeroDivisionError):
        narrows.compare(brief(), "lia", 50, progress=lambda *_: 1 / 0)


def test_a_comparison_that_ctrl_c_stops_loses_no_finished_run(tmp_path: Path) -> None:
    def compared(out: Path, **more: object) -> narrows.Comparison:
        return narrows.compare(brief().set("duration", "30 s"), "lia", 24, out=out, **more)

    out = tmp_path / "ours"
    code = f"""if True:
        import functools, narrows
        from conftest import brief
        said = functools.partial(print, flush=True)
        try:
            narrows.compare(brief().set("duration", "30 s"), "lia", 24, jobs=1, out={str(out)!r}, progress=said)
        except KeyboardInterrupt:
            print("interrupted")
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE) as child:
        assert child.stdout is not None
        while (done := int(child.stdout.readline().split()[0])) < 3:
            pass
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=120)[0].split("\n")
    assert said[-2:] == ["interrupted", ""], said
    assert not (out / "rows.csv").exists()
    # A line for each run, after that of the plan.
    assert len((out / "unfinished.jsonl").read_text().splitlines()) > done
    same(compared(out, resume=True, progress=False), compared(tmp_path / "whole", progress=False))
    assert files(out) == files(tmp_path / "whole")


def test_a_sweep_that_ctrl_c_stops_loses_no_finished_task(whole: narrows.Comparison, tmp_path: Path) -> None:
    out = tmp_path / "set"
    code = f"""if True:
        import narrows, time
        from test_sweep import plan
        def said(done, of):
            print(done, flush=True)
            time.sleep(0.2)
        try:
            narrows.sweep(plan(), out={str(out)!r}, progress=said)
        except KeyboardInterrupt:
            print("interrupted")
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=HERE) as child:
        assert child.stdout is not None
        while (done := int(child.stdout.readline())) < 3:
            pass
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=120)[0].split("\n")
    assert said[-2:] == ["interrupted", ""], said
    assert len(list(out.glob("part-*.parquet"))) >= done
    told: list[int] = []
    same(narrows.sweep(plan(), out=out, resume=True, progress=lambda done, _: told.append(done)), whole)
    assert all(now > done for now in told), told


def test_a_folder_of_results_is_the_commands(tmp_path: Path) -> None:
    narrows.compare(brief(), "lia", 2, out=tmp_path / "ours", progress=False)
    command = [sys.executable, "-m", "narrows", "compare", "sbd/nsb-2", "--cc", "lia", "--seeds", "2"]
    command += ["--set", "warmup=1 s", "--set", "duration=3 s", "--out"]
    subprocess.run([*command, tmp_path / "theirs"], check=True, capture_output=True)
    ours, theirs = [files(tmp_path / name) for name in ("ours", "theirs")]
    assert ours == theirs and len(ours) > 5


def test_numbers_of_a_sweep_have_their_unit(whole: narrows.Comparison) -> None:
    numbers = {"links.bottleneck1.rate": ([5, numpy.int64(8)], "Mbit/s"), "links.bottleneck2.queue": "10..40 packets:2"}
    same(narrows.compare(brief(), ["lia", "olia+ssc"], 3, sweep=numbers, progress=False), whole)
    same(narrows.sweep(narrows.Plan(brief(), ["lia", "olia+ssc"], 3, sweep=numbers)), whole)
    wrong = {"links.bottleneck1.rate": ([5, 8], "Mbt/s")}
    with pytest.raises(narrows.Error, match="Mbt/s") as error:
        narrows.compare(brief(), "lia", 1, sweep=wrong, progress=False)
    assert error.value.field == "links.bottleneck1.rate"
    # Two values in text are no numbers with a unit.
    pair = narrows.compare(brief(), "lia", 1, sweep={"links.bottleneck1.rate": ("5 Mbit/s", "8 Mbit/s")}, progress=False)
    assert len(pair.rows) == 2


def test_where_results_cannot_go_is_said_before_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(tmp_path)
    for out in ("s3://bucket/x", Path("s3://bucket/x"), "file:///tmp/x"):
        with pytest.raises(narrows.Error, match="no URL") as error:
            narrows.sweep(plan(), Counting(), out=out)
        assert error.value.field == "out"
    with pytest.raises(narrows.Error, match="expected out, too") as error:
        narrows.sweep(plan(), Counting(), resume=True)
    assert error.value.field == "resume"
    assert [file.name for file in tmp_path.iterdir()] == ["gone"]
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(narrows.Error, match="cannot find the current folder") as error:
        narrows.sweep(plan(), Counting(), out="set")
    assert error.value.file == "set"


def test_a_trace_is_the_same_on_all_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    for folder, step in (here, 2), (there, 3):
        (folder / "trace").write_text("".join(f"{ms}\n" for ms in range(1, 1000, step)))
    monkeypatch.chdir(here)
    traced = narrows.Plan(brief().replay("bottleneck1", "trace"), "lia", 2)
    monkeypatch.chdir(there)
    compared = narrows.compare(traced.scenarios, "lia", 2, progress=False)
    same(narrows.sweep(traced), compared)
    # Of another one a worker's results are refused.
    shutil.copy(there / "trace", here / "trace")
    with pytest.raises(narrows.Error, match="other runs"):
        narrows.sweep(traced)
    same(narrows.compare(traced.scenarios, "lia", 2, progress=False), compared)


class Shell:
    """IPython's, behind a notebook."""

    kernel = "one"


def test_how_far_it_is_stands_on_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    narrows.compare(brief(), "lia", 2)
    assert capsys.readouterr() == ("", "")
    narrows.sweep(narrows.Plan(brief(), "lia", 2), progress=True)
    assert capsys.readouterr() == ("", "\r1/1 tasks\n")
    narrows.sweep(narrows.Plan(brief(), "lia", 2), progress=False)
    notebook = types.SimpleNamespace(get_ipython=Shell)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    narrows.compare(brief(), "lia", 2, progress=False)
    assert capsys.readouterr() == ("", "")
    narrows.compare(brief(), "lia", 2)
    said = capsys.readouterr().err
    assert said.startswith("\r") and said.endswith("\r2/2 runs\n") and said.count("\n") == 1


def test_threads_of_this_process(whole: narrows.Comparison) -> None:
    same(narrows.sweep(plan()), whole)


def test_a_pool_of_processes_writes_a_data_set(whole: narrows.Comparison, tmp_path: Path) -> None:
    out = tmp_path / "set"
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        same(narrows.sweep(plan(), pool, out=out), whole)
    data = polars.read_parquet(str(out / "*.parquet")).drop("summary")
    assert data.height == 24
    assert data.sort(data.columns).equals(polars.DataFrame(whole.runs).sort(data.columns))
    with pytest.raises(narrows.Error, match="resume=True"):
        narrows.sweep(plan(), out=out)
    with pytest.raises(narrows.Error, match="another sweep"):
        narrows.sweep(plan(seeds=4), out=out, resume=True)


class Counting(Executor):
    """Does tasks at once, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, fn, /, *args):  # type: ignore[no-untyped-def]
        self.count += 1
        future: Future = Future()
        future.set_result(fn(*args))
        return future


class Losing(Counting):
    """Loses the worker of each task so often."""

    def __init__(self, often: int, error: BaseException) -> None:
        super().__init__()
        self.often, self.error = often, error
        self.tries: dict[str, int] = {}

    def submit(self, fn, /, task, *args):  # type: ignore[no-untyped-def]
        self.tries[task] = self.tries.get(task, 0) + 1
        if self.tries[task] > self.often:
            return super().submit(fn, task, *args)
        future: Future = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize("error", [CancelledError(), ConnectionResetError()])
def test_a_lost_workers_tasks_are_done_again(whole: narrows.Comparison, error: BaseException) -> None:
    once = Losing(1, error)
    same(narrows.sweep(plan(), once), whole)
    assert set(once.tries.values()) == {2} and once.count == 8
    # Not for ever, as the task may be what kills them.
    always = Losing(10**9, error)
    with pytest.raises(type(error)):
        narrows.sweep(plan(), always)
    assert max(always.tries.values()) == _sweep.TRIES + 1
    # One that is wrong is wrong anywhere.
    wrong = Losing(10**9, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        narrows.sweep(plan(), wrong)
    assert max(wrong.tries.values()) == 1


def test_what_is_done_is_not_done_again(whole: narrows.Comparison, tmp_path: Path) -> None:
    out = tmp_path / "set"

    def scheduler_dies(done: int, _: int) -> None:
        if done == 3:
            raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        narrows.sweep(plan(), Counting(), out=out, progress=scheduler_dies)
    there = sorted(out.glob("part-*.parquet"))
    assert 3 <= len(there) < 8
    # One that is torn, and one of another point under the same control.
    there[0].write_bytes(there[0].read_bytes()[:100])
    shutil.copy(there[3], there[1])
    # One in which another number stands beside the same run.
    third = there[2].read_bytes()
    table = parquet.read_table(there[2])
    at = table.column_names.index("goodput_mbps")
    parquet.write_table(table.set_column(at, table.schema.field(at), compute.add(table[at], 1.0)), there[2])
    # What a worker left that was killed, and what one writes now.
    left, now = out / "_part-left", out / "_part-now"
    left.touch()
    now.touch()
    os.utime(left, (time.time() - 7200,) * 2)
    rest = Counting()
    same(narrows.sweep(plan(), rest, out=out, resume=True), whole)
    assert rest.count == 8 - len(there) + 3
    assert there[2].read_bytes() == third
    assert now.exists() and not left.exists()
    # The umask alone says who reads it.
    umask = os.umask(0o022)
    os.umask(umask)
    modes = {file.stat().st_mode & 0o777 for file in [*there, out / "_narrows.json"]}
    assert modes == {0o666 & ~umask}


def test_a_mark_that_cannot_be_read_is_no_empty_folder(tmp_path: Path) -> None:
    (tmp_path / "_narrows.json").mkdir()
    with pytest.raises(narrows.Error, match="_narrows.json: cannot read"):
        narrows.sweep(plan(), out=tmp_path, resume=True)


class Changing(Counting):
    """Changes a file after the first task."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def submit(self, fn, /, *args):  # type: ignore[no-untyped-def]
        future = super().submit(fn, *args)
        self.file.write_text("")
        return future


def test_a_file_that_changes_meanwhile_changes_nothing(tmp_path: Path) -> None:
    base, mine = tmp_path / "base.toml", tmp_path / "nsb-2.toml"
    base.write_text(narrows.Scenario.load("sbd/nsb-2").set("warmup", "1 s").to_toml())
    text = 'base = "base.toml"\nname = "nsb-2"\ntitle = ""\nsource = ""\nduration = "3 s"\n'
    mine.write_text(text)
    there = narrows.Scenario.from_file(mine)
    same_as = narrows.compare(there, "lia", 2, sweep=SWEEP, progress=False).to_csv()
    for file in (base, mine):
        kept = file.read_text()
        changed = narrows.sweep(narrows.Plan(mine, "lia", 2, sweep=SWEEP), Changing(file))
        assert changed.to_csv() == same_as and file.read_text() == ""
        # The scenario stays what it was, too.
        assert narrows.compare(there, "lia", 2, sweep=SWEEP, progress=False).to_csv() == same_as
        assert there.set("duration", "3 s").to_toml() == there.to_toml()
        file.write_text(kept)


class Late(Executor):
    """A cluster, also its own client, that does what waits once a second: so many have waited at most."""

    def __init__(self) -> None:
        self.most, self.pending, self.lock = 0, [], threading.Lock()

    def nthreads(self) -> dict[str, int]:
        return {}

    def submit(self, fn, /, *args):  # type: ignore[no-untyped-def]
        future: Future = Future()
        with self.lock:
            self.pending.append((future, fn, args))
            self.most = max(self.most, len(self.pending))
            if len(self.pending) == 1:
                threading.Timer(1, self.done).start()
        return future

    def done(self) -> None:
        with self.lock:
            pending, self.pending = self.pending, []
        for future, fn, args in pending:
            future.set_result(fn(*args))


def test_an_adaptive_cluster_sees_what_waits(whole: narrows.Comparison) -> None:
    late = Late()
    same(narrows.sweep(plan(), late), whole)
    assert late.most == 8


class Ranks(Counting):
    """A pool that tells its size as that of mpi4py does."""

    num_workers = 7


def test_a_pool_tells_its_size() -> None:
    assert _sweep._most(Ranks(), Ranks()) == 16
    with ThreadPoolExecutor(3) as pool:
        assert _sweep._most(pool, pool) == 8


def test_ctrl_c_ends_the_threads_of_this_process() -> None:
    code = "import narrows; narrows.sweep(narrows.Plan(narrows.Scenario.load('sbd/nsb-2')"
    code += ".set('duration', '100000 s'), 'lia', 4), progress=print)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        try:
            _, said = process.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert time.monotonic() - start < 5
        assert "KeyboardInterrupt" in said


@pytest.mark.skipif(shutil.which("cc") is None, reason="a law of one's own needs a C compiler")
def test_a_law_is_in_the_sweeps_that_take_it(tmp_path: Path) -> None:
    code = """
import json, narrows
from narrows import _narrows
brief = narrows.Scenario.load("sbd/nsb-2").set("warmup", "1 s").set("duration", "2 s")
before = _narrows.Sweep(brief, "lia", 1, None, None, "sim", None, "set", False).task(0)
ours = narrows.compare(brief, ["lia", "mine"], 2, law="mine.h", progress=False)
theirs = narrows.sweep(narrows.Plan(brief, ["lia", "mine"], 2, law="mine.h"))
print(ours.to_csv() == theirs.to_csv() and ours.to_dict() == theirs.to_dict(), "--law=" in ours._repr_html_())
# A process that has a law makes of a plan without the tasks, the data set and the results of one that has none.
again = _narrows.Sweep(brief, "lia", 1, None, None, "sim", None, "set", True).task(0)
print(again == before, json.loads(_narrows.work(again))[0]["setup"]["settings"])
task = json.loads(_narrows.Sweep(brief, "mine", 1, None, None, "sim", None, None, False).task(0))
task["law"] = ["/other.h", "0"]
try:
    _narrows.work(json.dumps(task))
except narrows.Error as error:
    print("restarted" in error.expected)
"""
    command = [sys.executable, "-m", "narrows", "law", "new", "mine.h"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    output = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    settings = {"duration": "2 s", "warmup": "1 s"}
    assert output.stdout == f"True True\nTrue {settings}\nTrue\n", output.stderr


def test_dask_loses_a_worker(whole: narrows.Comparison, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    killed: list[int] = []
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        workers = list(client.run(os.getpid).values())

        def kill(done: int, _: int) -> None:
            if not killed:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        same(narrows.sweep(plan(), client, out=tmp_path / "set", progress=kill), whole)
    assert killed
    assert polars.read_parquet(str(tmp_path / "set" / "*.parquet")).height == 24


def test_a_result_that_comes_twice_counts_once(whole: narrows.Comparison) -> None:
    tasks = _narrows.Sweep(brief(), ["lia", "olia+ssc"], 3, SWEEP, None, "sim", None, None, False)
    order = list(range(len(tasks))) * 2
    random.Random(1).shuffle(order)
    news = [tasks.accept(task, _narrows.work(tasks.task(task))) for task in order]
    assert sum(news) == len(tasks) == tasks.taken
    same(tasks.comparison(), whole)
    with pytest.raises(narrows.Error, match="other runs"):
        tasks.accept(0, _narrows.work(tasks.task(1)))
    # Of the same control, at another point.
    with pytest.raises(narrows.Error, match="other runs"):
        tasks.accept(0, _narrows.work(tasks.task(2)))


def test_a_worker_of_another_version_is_refused_with_one_line() -> None:
    tasks = _narrows.Sweep(brief(), "lia", 1, None, None, "sim", None, None, False)
    task = json.loads(tasks.task(0))
    for change, said in [({"version": "9.9.9", "build": "x"}, "9.9.9"), ({"build": "x"}, "another build")]:
        with pytest.raises(narrows.Error, match=said) as error:
            _narrows.work(json.dumps({**task, **change}))
        assert "\n" not in str(error.value) and "the same wheel" in error.value.expected
    # What else a newer version sends is not looked at.
    with pytest.raises(narrows.Error, match="another version"):
        _narrows.work(json.dumps({"build": "x", "version": "9", "new": []}))


class Canned(Executor):
    """Answers with results made before, in the name of the runs that are asked for."""

    def __init__(self, results: str) -> None:
        self.summary = json.loads(results)[0]
        self.most = 0

    def submit(self, fn, /, task):  # type: ignore[no-untyped-def]
        asked = json.loads(task)
        seeds = range(asked["first"], asked["last"] + 1)
        future: Future = Future()
        [(_, text)] = asked["scenario"]["texts"]
        setup = {"scenario_sha256": hashlib.sha256(text.encode()).hexdigest(), "settings": asked["scenario"]["settings"]}
        future.set_result(json.dumps([{**self.summary, "setup": setup, "seed": seed} for seed in seeds]))
        return future


@pytest.mark.slow
def test_a_long_plan_takes_little_memory() -> None:
    # So long a run that each is a task of its own.
    long = brief().set("duration", "1000 s")
    results = _narrows.Sweep(brief(), "lia", 1, None, None, "sim", None, None, False)
    canned = Canned(_narrows.work(results.task(0)))

    def some(rates: int) -> int:
        sweep = {"links.bottleneck1.rate": [f"{10 + rate} Mbit/s" for rate in range(rates)]}
        done = narrows.sweep(narrows.Plan(long, "lia", 100, sweep=sweep), canned)
        assert len(done.runs) == 100 * rates
        gc.collect()
        return resident()

    before = some(4)
    # Kept, the summaries of so many runs more would be 3600 times 4 kB.
    assert some(40) - before < 10 << 20

    # The runs of a row wait for its last one, with what its figures are made of: here 33 kB of each are not.
    before = resident()
    done = narrows.sweep(narrows.Plan(long, "lia", 2000), canned)
    assert len(done.runs) == 2000 and len(done.rows) == 1
    assert resident() - before < 20 << 20

    # Tasks, which have 10 kB each, are made one after the other.
    before = resident()
    tasks = _narrows.Sweep(long, "lia", 10**5, None, None, "sim", None, None, False)
    assert len(tasks) == 10**5 and json.loads(tasks.task(10**5 - 1))["last"] == 10**5
    assert resident() - before < 1 << 20


def test_the_points_of_a_long_plan_are_made_one_at_a_time() -> None:
    long = brief().set("duration", "1000 s")

    def made(points: int) -> tuple[float, int]:
        rates = [f"{1000 + rate} kbit/s" for rate in range(points)]
        gc.collect()
        start, before = time.process_time(), resident()
        tasks = _narrows.Sweep(long, "lia", 1, {"links.bottleneck1.rate": rates}, None, "sim", None, None, False)
        assert len(tasks) == points and json.loads(tasks.task(points - 1))["set"][0]["value"] == rates[-1]
        return time.process_time() - start, resident() - before

    few, many = made(1000), made(20_000)
    # All of them took 20 times as long, and 20 kB each.
    assert many[0] < 3 * few[0] + 0.2, (few, many)
    assert many[1] < 40 << 20, (few, many)


def test_what_is_wrong_of_a_late_point_is_said_before_its_task() -> None:
    long = brief().set("duration", "1000 s")
    results = _narrows.Sweep(brief(), "lia", 1, None, None, "sim", None, None, False)

    rates = [f"{1000 + rate} kbit/s" for rate in range(1500)] + ["9 Mbt/s"]
    told: list[int] = []
    with pytest.raises(narrows.Error, match="Mbt/s") as error:
        narrows.sweep(
            narrows.Plan(long, "lia", 1, sweep={"links.bottleneck1.rate": rates}),
            Canned(_narrows.work(results.task(0))),
            progress=lambda done, _: told.append(done),
        )
    assert error.value.field == "links.bottleneck1.rate"
    assert 0 < len(told) < 1000
    # Of few points it is said at once.
    with pytest.raises(narrows.Error, match="Mbt/s"):
        _narrows.Sweep(long, "lia", 1, {"links.bottleneck1.rate": rates[-2:]}, None, "sim", None, None, False)


@pytest.mark.slow
@pytest.mark.parametrize(("points", "seeds", "each"), [(1000, 100, 0), (10_000, 1, 8 << 10)])
def test_a_plan_of_many_tasks_takes_little_memory(points: int, seeds: int, each: int) -> None:
    long = brief().set("duration", "1000 s")
    results = _narrows.Sweep(brief(), "lia", 1, None, None, "sim", None, None, False)
    canned = Canned(_narrows.work(results.task(0)))
    sizes = [resident()]
    start, first = time.process_time(), []

    def look(done: int, _: int) -> None:
        if done == 1:
            first.append(time.process_time() - start)
        if done % 1000 == 0:
            sizes.append(resident())

    sweep = {"links.bottleneck1.rate": [f"{1000 + rate} kbit/s" for rate in range(points)]}
    done = narrows.sweep(narrows.Plan(long, "lia", seeds, sweep=sweep), canned, progress=look)
    assert len(done.runs) == points * seeds and len(done.rows) == points
    # What stays is rows, and some 200 bytes of a run; the summaries of the one would be 400 MB, the scenarios of the other
    # 240 MB.
    assert max(sizes) - sizes[0] < (100 << 20) + points * each, sizes
    assert first[0] < 10, first


class CommClosedError(OSError):
    """As Dask calls its own."""


class Gone(Executor):
    """A client whose scheduler ends after some tasks."""

    status = "running"

    def __init__(self, left: int, error: OSError, status: str) -> None:
        self.left = left
        self.error, self.then = error, status

    def submit(self, work: object, *args: object, **named: object) -> Future[str]:  # type: ignore[override]
        self.left -= 1
        if self.left < 0:
            self.status = self.then
            raise self.error
        future: Future[str] = Future()
        future.set_result(work(*args, **named))  # type: ignore[operator]
        return future


def test_what_a_lost_scheduler_or_a_killed_client_left_is_done_by_the_next(whole: narrows.Comparison, tmp_path: Path) -> None:
    out = tmp_path / "set"
    for error, status in (CommClosedError("in <TCP>"), "running"), (OSError("Timed out trying to connect"), "connecting"):
        said = rf"client: lost its scheduler \({error}\); \d of 8 tasks .* resume=True"
        with pytest.raises(narrows.Error, match=said) as lost:
            narrows.sweep(plan(), Gone(1, error, status), out=out, resume=out.exists())
        assert lost.value.field == "client"
    # Not so an error of the machine.
    with pytest.raises(OSError, match="No space left"):
        narrows.sweep(plan(), Gone(1, OSError("No space left"), "running"), out=out, resume=True)

    code = f"""if True:
        import narrows, os, signal, sys
        from test_sweep import plan
        if __name__ == "__main__":
            def told(done, of):
                print(done, of, flush=True)
                if sys.argv[1] == "killed" and done >= 3:
                    os.kill(os.getpid(), signal.SIGKILL)
            narrows.sweep(plan(), out={str(out)!r}, resume=True, progress=told)
    """

    def other(how: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-c", code, how], check=False, cwd=HERE, capture_output=True, text=True)

    killed = other("killed")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    done = other("whole")
    assert done.returncode == 0, done.stderr
    # What was there is not done again.
    first = int(done.stdout.split()[0])
    assert first > 3, done.stdout
    same(narrows.sweep(plan(), out=out, resume=True), whole)


# A scheduler and a worker, in one process that can be killed.
CLUSTER = """
import time, distributed
options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None}
cluster = distributed.LocalCluster(**options, host="127.0.0.1", protocol="tcp://")
print(cluster.scheduler_address, flush=True)
time.sleep(600)
"""


def test_dask_loses_its_scheduler(whole: narrows.Comparison, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    out = tmp_path / "set"

    def swept(seen: Callable[[int, subprocess.Popen[str]], object], **more: object) -> narrows.Comparison:
        with subprocess.Popen([sys.executable, "-c", CLUSTER], stdout=subprocess.PIPE, text=True) as cluster:
            try:
                assert cluster.stdout is not None
                with distributed.Client(cluster.stdout.readline().strip()) as client:
                    return narrows.sweep(plan(), client, out=out, progress=lambda done, _: seen(done, cluster), **more)
            finally:
                cluster.kill()

    with pytest.raises(narrows.Error, match=r"client: lost its scheduler .* resume=True"):
        swept(lambda done, cluster: cluster.kill() if done == 3 else None)
    there = len(list(out.glob("part-*.parquet")))
    assert 3 <= there < 8
    told: list[int] = []
    same(swept(lambda done, _: told.append(done), resume=True), whole)
    assert told == list(range(there + 1, 9))
    assert polars.read_parquet(str(out / "*.parquet")).height == 24


def test_shards_in_any_order_are_the_whole(tmp_path: Path) -> None:
    base = [sys.executable, "-m", "narrows"]
    asked = ["compare", "sbd/nsb-2", "--cc", "lia,olia+ssc", "--seeds", "7", "--jobs", "1"]
    asked += ["--set", "warmup=1 s", "--set", "duration=2 s"]

    def done(*words: object) -> None:
        subprocess.run([*base, *map(str, words)], check=True, capture_output=True, cwd=tmp_path)

    done(*asked, "--out", "whole")
    folders = []
    for shard in random.Random(2).sample(range(1, 8), 7):
        done(*asked, "--shard", f"{shard}/7", "--out", f"shard-{shard}")
        folders.append(f"shard-{shard}")
    done(*asked, "--shard", "4/7", "--out", "again")
    done("merge", *folders, "again", "--out", "merged")
    assert files(tmp_path / "merged") == files(tmp_path / "whole")

    def refused(*words: object) -> str:
        output = subprocess.run([*base, *map(str, words)], capture_output=True, text=True, cwd=tmp_path, check=False)
        assert output.returncode == 2 and len(output.stderr.splitlines()) == 1, output.stderr
        return output.stderr

    without = [name for name in folders if name != "shard-4"]
    assert "which do not follow" in refused("merge", *without, "--out", "less")
    summary = next((tmp_path / "shard-2" / "runs").rglob("seed-2.json"))
    summary.write_text(summary.read_text()[:50])
    assert "seed-2.json" in refused("merge", *folders, "--out", "torn")
    assert not (tmp_path / "torn").exists()
    assert "at most 7 shards" in refused(*asked, "--shard", "8/8", "--out", "none")
    assert not (tmp_path / "none").exists()


def files(folder: Path) -> dict[str, bytes]:
    """All results; not where they come from, which has the time in it."""
    found = [path for path in folder.rglob("*") if path.is_file() and path.name != "provenance.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
