"""One run: its tables, its bytes, its errors, and what stops it."""

from __future__ import annotations

import gc
import json
import multiprocessing
import pickle
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import narrows
import pandas
import polars
import pyarrow
import pytest
from conftest import brief, resident

import bench

if sys.version_info >= (3, 11):
    import tomllib
else:
    # pytest brings it there.
    import tomli as tomllib


def test_results_are_tables_of_every_library(scenario: narrows.Scenario) -> None:
    run = narrows.run(scenario, cc="olia+ssc", seed=3, series=True)
    assert (run.seed, run.cc) == (3, "olia+ssc")
    series = polars.DataFrame(run.series)
    # Two paths of MPTCP and two TCP flows every 100 ms of 4 s.
    assert series.shape == (40 * 4, 9)
    assert series["cwnd_packets"].dtype == polars.UInt32
    # Few names in many rows: no text is copied.
    assert series["path"].dtype == series["connection"].dtype == polars.Categorical
    assert series.filter(connection="mptcp", path="path2").height == 40
    assert run.series.to_pylist()[0]["path"] == series["path"][0]
    # pandas reads the interface itself from version 3 on.
    of = getattr(pandas.DataFrame, "from_arrow", lambda table: pyarrow.table(table).to_pandas())
    assert of(run.series).shape == series.shape
    # It stays as it is, however often it is read.
    assert pyarrow.table(run.series).num_rows == series.height == len(run.series)
    goodput = run.summary.to_pylist()[0]["goodput_mbps"]
    assert goodput == run.to_dict()["test"]["goodput_mbps"] > 0
    assert run.summary.units["goodput_mbps"] == "Mbit/s"
    flows = {row["name"]: row for row in run.connections.to_pylist()}
    assert flows["mptcp"]["goodput_mbps"] == goodput
    assert [path["name"] for path in flows["mptcp"]["paths"]] == ["path1", "path2"]
    assert [row["name"] for row in run.links.to_pylist()] == scenario.links
    assert "goodput" in run.report() or "Mbit/s" in run.report()


def test_the_tables_of_a_run_are_joined_by_its_names(scenario: narrows.Scenario) -> None:
    run = narrows.run(scenario, cc="lia", series=True)
    compared = narrows.compare(scenario, "lia", 2, progress=False)
    series, connections, paths = [polars.DataFrame(table) for table in (run.series, run.connections, compared.paths)]
    assert series.join(connections, left_on="connection", right_on="name").height == series.height
    each = connections.select(connection="name", path="paths").explode("path").drop_nulls().unnest("path")
    joined = series.join(each, left_on=["connection", "path"], right_on=["connection", "name"])
    assert joined.height == series.height
    assert series.join(paths, on="path").height == series.height
    of = getattr(pandas.DataFrame, "from_arrow", lambda table: pyarrow.table(table).to_pandas())
    merged = of(run.series).merge(of(run.connections), left_on="connection", right_on="name")
    assert len(merged) == series.height
    names = pyarrow.table(run.connections).select(["name", "goodput_mbps"])
    assert pyarrow.table(run.series).join(names, keys="connection", right_keys="name").num_rows == series.height


def test_connections_are_of_quic_where_it_is_built_in(scenario: narrows.Scenario) -> None:
    try:
        run = narrows.run(scenario, cc="gcubic+xcorr", on="quic")
    except narrows.Error as error:
        assert "built without quic" in str(error)
        pytest.skip("built without QUIC")
    assert "on quic" in repr(run)
    assert run.summary.to_pylist()[0]["goodput_mbps"] > 0


def test_decisions_and_events_of_a_run() -> None:
    handover = narrows.Scenario.load("phone/wifi-handover")
    events = narrows.run(handover, cc="lia").events.to_pylist()
    assert events and all(event["time_s"] >= 0 and event["event"] for event in events)
    decided = narrows.run(brief("sbd/sb-2").set("duration", "10 s"), cc="olia+ssc").decisions
    assert {"time_s", "groups", "correct"} <= set(decided.column_names)
    assert len(decided) > 0


def test_scenario_and_seed_fix_every_byte(scenario: narrows.Scenario) -> None:
    def whole(seed: int) -> bytes:
        return pickle.dumps(narrows.run(scenario, cc="lia", seed=seed, series=True).__reduce__()[1])

    alone = [whole(seed) for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(whole, range(4))) == alone
    assert alone[0] != alone[1]


def test_threads_of_one_run_change_no_byte() -> None:
    tree = narrows.Scenario.load("lisa/fat-tree").set("warmup", "0 s").set("duration", "300 ms")

    def whole(threads: int) -> bytes:
        return pickle.dumps(narrows.run(tree, series=True, threads=threads).__reduce__()[1])

    assert whole(2) == whole(1)


def _goodput(scenario: narrows.Scenario) -> float:
    return narrows.run(scenario, cc="lia").to_dict()["test"]["goodput_mbps"]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_that_fork_or_spawn(scenario: narrows.Scenario, start: str) -> None:
    here = _goodput(scenario)
    with multiprocessing.get_context(start).Pool(1) as pool:
        assert pool.apply_async(_goodput, (scenario,)).get(60) == here


def test_what_is_pickled_is_whole(scenario: narrows.Scenario, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('base = "sbd/nsb-2"\nname = "mine"\ntitle = ""\nsource = ""\nduration = "3 s"\nwarmup = "1 s"\n')
    mine = narrows.Scenario.from_file(file).set("links.bottleneck1.rate", 5, "Mbit/s")
    text = pickle.dumps(mine)
    run = narrows.run(mine, cc="lia", series=True)
    file.unlink()
    again = pickle.loads(text)
    assert again == mine != scenario
    assert again.settings == {"links.bottleneck1.rate": "5 Mbit/s"}
    assert narrows.run(again, cc="lia").to_dict() == run.to_dict()
    copy = pickle.loads(pickle.dumps(run))
    assert copy.to_dict() == run.to_dict()
    assert polars.DataFrame(copy.series).equals(polars.DataFrame(run.series))
    assert copy._repr_html_() == run._repr_html_()


def test_a_recorded_trace_stays_what_it_was(
    scenario: narrows.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    Path("trace").write_text("".join(f"{ms}\n" for ms in range(1, 1000, 2)))
    Path("delays").write_text("0 20\n1 30\n2 20\n")
    fields = 'base = "sbd/nsb-2"\nname = "mine"\ntitle = ""\nsource = ""\nduration = "3 s"\nwarmup = "1 s"\n'
    Path("mine.toml").write_text(fields + '[links.bottleneck1.jitter.trace]\nfile = "delays"\n')
    both = [
        scenario.replay("bottleneck1", "trace"),
        scenario.set("links.bottleneck1", {"trace": "./trace", "queue": "60 packets"}),
        narrows.Scenario.load("mine.toml").replay("bottleneck2", "trace"),
    ]
    runs = [narrows.run(one, cc="lia", series=True) for one in both]
    goodput = [run.to_dict()["test"]["goodput_mbps"] for run in runs]
    text = pickle.dumps((both, runs))

    def same(scenarios: list[narrows.Scenario]) -> None:
        for one, mbps in zip(scenarios, goodput):
            compared = narrows.compare(one, "lia", 1, progress=False).runs.to_pylist()
            assert compared[0]["goodput_mbps"] == narrows.run(one, cc="lia").to_dict()["test"]["goodput_mbps"] == mbps
            assert narrows.run(one.set("ssc.p_s", 0.2), cc="lia+ssc").seed == 1

    # From another folder; where others stand in their place; where they are gone.
    monkeypatch.chdir(there)
    for change in [lambda _: None, lambda file: file.write_text("1\n500\n"), Path.unlink]:
        for file in (here / "trace", here / "delays"):
            change(file)
        same(both)
        scenarios, copies = pickle.loads(text)
        assert scenarios == both
        same(scenarios)
        for copy, run in zip(copies, runs):
            assert copy.to_dict() == run.to_dict() and copy._repr_html_() == run._repr_html_()
    # What is replayed again is read again.
    (here / "trace").write_text("1\n2000\n")
    assert both[0].replay("bottleneck1", here / "trace") != both[0]
    assert both[0].set("links.bottleneck1.trace", str(here / "trace")) != both[0]


def test_the_page_of_a_run(scenario: narrows.Scenario, tmp_path: Path) -> None:
    run = narrows.run(scenario, cc="lia", series=True)
    html = run._repr_html_()
    assert html.startswith("<iframe srcdoc=") and "narrows run sbd/nsb-2" in html
    assert '"' not in html.split('srcdoc="')[1].split('" style=')[0], "the page must not end its own quotes"
    run.to_html(tmp_path / "run.html")
    assert (tmp_path / "run.html").read_text().startswith("<!DOCTYPE html>")
    assert narrows.run(scenario)._repr_html_().startswith("<pre>")
    with pytest.raises(narrows.Error, match="series=True"):
        _ = narrows.run(scenario).series


def test_packets_of_a_run(scenario: narrows.Scenario, tmp_path: Path) -> None:
    run = narrows.run(scenario, cc="lia")
    files = run.to_pcap(tmp_path / "pcap")
    assert len(files) == 2
    # A section header block of pcapng.
    assert all(Path(file).read_bytes()[:4] == b"\x0a\x0d\x0d\x0a" for file in files)
    with pytest.raises(narrows.Error, match="mptpc"):
        run.to_pcap(tmp_path / "other", ["mptpc"])
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("call", "field", "expected", "hint"),
    [
        (lambda s: s.set("links.bottleneck1.rat", "5 Mbit/s"), "links.bottleneck1.rat", "`rate`", "'rate'"),
        (lambda s: s.set("links.bottleneck1.rate", 5), "links.bottleneck1.rate", "rate", None),
        (lambda s: s.set("links.bottleneck1.rate", "nan Mbit/s"), "links.bottleneck1.rate", "rate", None),
        (lambda s: s.set("ssc.p_s", float("inf")), "ssc.p_s", "finite", None),
        (lambda s: narrows.run(s, cc="oila"), "cc", "olia", "'olia'"),
        (lambda s: narrows.run(s, seed=-1), "seed", "from 0 to 2^64-1", None),
        (lambda s: narrows.run(s, seed="x"), "seed", "from 0 to 2^64-1", None),
        (lambda s: narrows.run(s, threads=0), "threads", "from 1 to 1024", None),
        (lambda s: narrows.run(s, threads=2, on="quic"), "threads", 'on="sim"', None),
        (lambda s: narrows.run(s, cc="lia", signal="rtt"), "signal", None, "delay-based"),
        (lambda s: narrows.run(s, on="kernal"), "on", "kernel", "'kernel'"),
        (lambda s: narrows.compare(s, "lia", 10**9), "seeds", "at most 100000", None),
        (lambda s: narrows.compare(s, "lia", 2, sweep={"links.bottleneck1.rate": []}), "sweep", "list", None),
        (lambda s: narrows.compare(s, "lia", 2, jobs=10**9), "jobs", "from 0 to 1024", None),
        (lambda s: narrows.compare(s, "lia", 2, jobs=-1), "jobs", "from 0 to 1024", None),
        (lambda s: narrows.detect([(0.0, "a", 1.0)], flows=-1), "flows", "from 1 to 64", None),
        (lambda s: narrows.compare([], "lia", 2), "scenarios", "at least one", None),
        (lambda s: narrows.compare([s, s], "lia", 2), None, None, "two scenarios of this name"),
        (lambda s: narrows.detect([(0.0, "a", 1.0)], detector="xcor"), "detector", "xcorr", "'xcorr'"),
        (lambda s: narrows.papers("sdb"), "names", "sbd", "'sbd'"),
        (lambda s: narrows.papers("sbd/tabel-2"), "names", "table-2", "'table-2'"),
        (lambda s: narrows.run("sbd/nsb2"), "scenario", "a shipped scenario", "'sbd/nsb-2'"),
        (lambda s: narrows.compare(["sbd/nsb2"], "lia", 2), "scenario", "a shipped scenario", "'sbd/nsb-2'"),
        (lambda s: narrows.compare(s, "lia", -1), "seeds", "from 1 to at most", "found -1"),
        (lambda s: narrows.compare(s, "lia", (5, 3)), "seeds", "from 1 to at most", "found 5..3"),
        (lambda s: narrows.compare(s, "lia", range(1, 9, 2)), "seeds", "from 1 to at most", "found range(1, 9, 2)"),
        (lambda s: narrows.detect([(0.0, "a", 1.0), (0.1, "a")]), "data", "(time in s, flow, delay in ms)", "found (0.1, 'a')"),
        (lambda s: narrows.detect([(0.0, "a", 1.0), ("soon", "a", 1.0)]), "data", None, "line 3"),
        (lambda s: narrows.Scenario.load("\ud800"), "name", "a path", "no Unicode"),
        (lambda s: narrows.run("\ud800"), "scenario", "a Scenario", None),
        (lambda s: narrows.run(s, cc="\ud800"), "cc", "text", "no Unicode"),
        (lambda s: narrows.run(s, law="\ud800"), "law", "a path", "no Unicode"),
        (lambda s: s.set("\ud800", 1), "field", "text", "no Unicode"),
        (lambda s: s.set("duration", 1, "\ud800"), "unit", "text", "no Unicode"),
        (lambda s: s.replay("bottleneck1", "\ud800"), "path", "a path", "no Unicode"),
        (lambda s: narrows.detect([(0.0, "\ud800", 1.0)]), "data", "UTF-8", "line 2"),
        (lambda s: narrows.detect([(0.0, "a\nb", 1.0)]), "data", "without control characters", r"'a\nb'"),
        (lambda s: narrows.detect(polars.DataFrame({"a": range(99)})), "data", "iter_rows()", "found a DataFrame"),
        (lambda s: narrows.detect(pandas.DataFrame({"t_s": [1.0]})), "data", "itertuples(index=False)", None),
        (lambda s: narrows.detect([list(range(999))]), "data", "(time in s, flow, delay in ms)", "4, 5, ...]"),
        (lambda s: narrows.detect(5), "data", "a path, or rows", "found 5"),
        (lambda s: narrows.detect([(0.0, "a", 1.0)], settings={"ssc.ps": 1}), "ssc.ps", None, "'ssc.p_s'"),
        (lambda s: narrows.detect([(0.0, "a", 1.0)], settings=["ssc.ps"]), "settings", "a dict", None),
        (lambda s: narrows.papers(None), "names", "text, or a list", None),
        (lambda s: narrows.compare(s, "lia", 1, sweep=[1]), "sweep", "a dict", "found [1]"),
        (lambda s: narrows.compare(s, "lia,olia", 1), "cc", "a list", '"lia,olia"'),
        (lambda s: narrows.compare(s, {"lia", "olia"}, 1), "cc", "a list", None),
        (lambda s: narrows.compare(s, "lia", 1, resume=True), "resume", "out", None),
        (lambda s: narrows.papers("cmpbbr/figure-1", quick=True, seeds=1, resume=True), "resume", "out", None),
        (lambda s: narrows.compare(s, "lia", 1, out="s3://bucket/x"), "out", "no URL", "s3://bucket/x"),
        (lambda s: narrows.compare(s, "lia", 1, out=Path("s3://bucket/x")), "out", "no URL", None),
        (lambda s: narrows.papers("cmpbbr/figure-1", quick=True, seeds=1, out="gs://bucket/x"), "out", "no URL", None),
        (lambda s: narrows.compare(untested(), "lia", 1), "test", 'test = "FLOW"', "no flow is under test"),
        (lambda s: narrows.sweep(narrows.Plan(untested(), "lia", 1)), "test", 'test = "FLOW"', "no flow is under test"),
        (lambda s: narrows.sweep(narrows.Plan(s, "lia", 1), "tcp://host:8786"), "client", "Client(address)", "tcp://"),
        (lambda s: narrows.sweep(s), "plan", "a narrows.Plan", None),
        (lambda s: narrows.sweep(narrows.Plan(s, "lia", 1), progress="all"), "progress", "True, or a function", "'all'"),
        (lambda s: narrows.compare(s, "lia", 1, progress=3), "progress", "True, or a function", "found 3"),
        (lambda s: s.replay("wifi", "trace"), "links.wifi.trace", None, "unknown link"),
    ],
)
def test_errors_say_where_and_what(scenario, call, field, expected, hint) -> None:
    with pytest.raises(narrows.Error) as error:
        call(scenario)
    error = error.value
    assert "\n" not in str(error) and "--" not in str(error)
    assert field is None or error.field == field, (error.field, str(error))
    assert expected is None or expected in error.expected, str(error)
    assert hint is None or hint in str(error)
    # What was found is in the line alone, and no name of a scenario or paper is a file.
    assert "found" not in (error.expected or "") and error.file is None
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.file, copy.field, copy.expected) == (str(error), error.file, error.field, error.expected)


def untested() -> narrows.Scenario:
    """One in which no flow is under test."""
    fields = tomllib.loads(brief().to_toml())
    for of_test in ("test", "phases", "rivals", "detection"):
        fields.pop(of_test, None)
    return narrows.Scenario.from_dict(fields)


# As nobody, who may not do what the kernel's runs need.
KERNEL = """
import os, narrows
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
calls = [
    lambda: narrows.run("sbd/nsb-2", on="kernel"),
    lambda: narrows.compare("sbd/nsb-2", "lia", 1, on=["sim", "kernel"], progress=False),
    lambda: narrows.sweep(narrows.Plan("sbd/nsb-2", "lia", 1, on="kernel")),
]
for call in calls:
    try:
        call()
    except narrows.Error as error:
        print(f"{error.field}: {error}")
"""


def test_the_kernel_is_not_in_the_wheel_or_needs_root() -> None:
    output = subprocess.run([sys.executable, "-c", KERNEL], capture_output=True, text=True, check=False)
    assert output.returncode == 0, output.stderr
    lines = output.stdout.splitlines()
    missing = "on: on: built without kernel support; `scripts/python wheel kernel` in a checkout includes it"
    # Tests of all crates together build the library with it.
    if missing in lines:
        assert lines == [missing] * 3
        command = [sys.executable, "-m", "narrows", "kernel", "load", "olia"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
        assert said == f"narrows: {missing.replace('on: on:', 'kernel:')}\n"
    else:
        run, compare, sweep = lines
        assert run == compare == "kernel: kernel: emulation needs root, to create network namespaces"
        assert sweep.startswith("on: on: kernel runs in real time")


# Neither a thread nor memory for its stack, as under a limit of a batch system.
NO_THREAD = """
import resource
from pathlib import Path
import bench
import narrows
scenario = narrows.Scenario.load("sbd/nsb-2")
pages = int(Path("/proc/self/statm").read_text().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 2**20,) * 2)
try:
    narrows.run(scenario)
except narrows.Error as error:
    print(error)
"""


def test_a_system_without_a_thread_to_give_is_an_error() -> None:
    output = subprocess.run([sys.executable, "-c", NO_THREAD], capture_output=True, text=True, check=False)
    assert output.stdout.startswith("narrows: cannot start a thread: "), output.stderr


def test_a_panic_is_an_error(scenario: narrows.Scenario) -> None:
    run = narrows.run(scenario, cc="lia+xcorr", series=True)
    restore, (text,) = run.__reduce__()
    # What was pickled and is damaged: the page looks up where a decision has each path, and finds nothing.
    state = json.loads(text)
    state["run"]["decisions"][1]["places"] = []
    with pytest.raises(narrows.Error, match="narrows: internal error: .*out of bounds") as error:
        restore(json.dumps(state))._repr_html_()
    assert "\n" not in str(error.value)


def test_errors_command_no_terminal() -> None:
    with pytest.raises(narrows.Error) as error:
        narrows.run("sbd/nsb-2", cc="\x1b[2J")
    assert "\x1b" not in str(error.value) and "[2J" in str(error.value)


def test_errors_of_a_file_have_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('base = "sbd/nsb-2"\nname = "wrong"\n[links.bottleneck1]\nrate = "fast"\n')
    with pytest.raises(narrows.Error) as error:
        narrows.Scenario.load(file)
    assert str(error.value).startswith(f"{file}:4: ")
    assert (error.value.file, error.value.field) == (str(file), "links.bottleneck1.rate")
    delays = tmp_path / "delays.csv"
    delays.write_text("flow,t_s,owd_ms\na,soon,1\n")
    with pytest.raises(narrows.Error, match="line 2") as error:
        narrows.detect(delays)
    assert (error.value.file, error.value.field) == (str(delays), None)
    with pytest.raises(narrows.Error) as error:
        narrows.Scenario.from_file(tmp_path / "none.toml")
    assert error.value.file == str(tmp_path / "none.toml")
    # The file as it was named, and what is missing there.
    monkeypatch.chdir(tmp_path)
    file.write_text('name = "wrong"\ntitle = ""\nsource = ""\nduration = "3 s"\n')
    with pytest.raises(narrows.Error, match="missing field `warmup`") as error:
        narrows.Scenario.load("wrong.toml")
    assert (error.value.file, error.value.field) == ("wrong.toml", "warmup")
    # A trace, from the root.
    for wrong in (lambda: brief().replay("bottleneck1", "none"), lambda: brief().set("links.bottleneck1.trace", "./none")):
        with pytest.raises(narrows.Error) as error:
            wrong()
        assert error.value.field == "links.bottleneck1.trace"
        assert (error.value.file == str(tmp_path / "none")) == ("cannot read" in str(error.value))
    with pytest.raises(narrows.Error, match="cannot read") as error:
        brief().replay("bottleneck1", "none")
    assert error.value.file == str(tmp_path / "none")


@pytest.mark.parametrize("call", ["run", "compare", "sweep", "points", "page", "pcap", "detect", "papers"])
def test_ctrl_c_stops_what_runs_within_100_ms(call: str, tmp_path: Path) -> None:
    with bench.long(call, str(tmp_path)) as child:
        try:
            # At any time of the looks for Ctrl-C; once more where other work kept the processor away.
            rounds: list[list[float]] = []
            while not rounds or (max(rounds[-1]) >= 0.1 and len(rounds) < 12):
                rounds.append([bench.after_ctrl_c(child, 0.05 + 0.013 * each) for each in range(5)])
        finally:
            child.kill()
    assert max(rounds[-1]) < 0.1, rounds


# Values without end, which nothing of Python counts.
ENDLESS = """
import itertools, narrows
print("ready", flush=True)
narrows.compare("sbd/nsb-2", "lia", 1, sweep={"links.bottleneck1.queue": itertools.count()})
"""


def test_ctrl_c_stops_what_reads_its_arguments() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "ready\n"
            time.sleep(0.2)
            child.send_signal(signal.SIGINT)
            said = child.communicate(timeout=10)[1]
        finally:
            child.kill()
    assert said.endswith("KeyboardInterrupt\n"), said


class Wrong:
    """A path, and values, that raise what they are told."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __fspath__(self) -> str:
        raise self.error

    def __iter__(self) -> Iterator[str]:
        yield "sbd/nsb-2"
        raise self.error

    def __str__(self) -> str:
        raise self.error


class Number:
    """The same as a whole number, a scalar of NumPy or a range."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __index__(self) -> int:
        raise self.error

    def item(self) -> float:
        raise self.error

    @property
    def start(self) -> int:
        raise self.error


class Listed(Wrong, list):
    """The same as a list."""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError("mine"), TypeError("mine")])
@pytest.mark.parametrize(
    "call",
    [
        lambda s, e: narrows.compare(s, "lia", 1, sweep={"links.bottleneck1.rate": iter(Wrong(e))}),
        lambda s, e: narrows.compare(s, "lia", 1, sweep={"links.bottleneck1.rate": Wrong(e)}),
        lambda s, e: narrows.compare(iter(Wrong(e)), "lia", 1),
        lambda s, e: narrows.compare(s, "lia", Wrong(e)),
        lambda s, e: narrows.compare(s, Listed(e), 1),
        lambda s, e: narrows.run(s, seed=Wrong(e)),
        lambda s, e: narrows.run(s, seed=Number(e)),
        lambda s, e: narrows.run(Wrong(e)),
        lambda s, e: narrows.compare(s, "lia", (1, Number(e))),
        lambda s, e: narrows.compare(s, "lia", Number(e)),
        lambda s, e: s.set("ssc.p_s", Number(e)),
        lambda s, e: narrows.detect([iter(Wrong(e))]),
        lambda s, e: s.set("flows.x.routes", Listed(e)),
        lambda s, e: narrows.sweep(narrows.Plan(s, "lia", sweep={"links.bottleneck1.rate": Wrong(e)})),
        lambda s, e: narrows.detect(Wrong(e)) if isinstance(e, KeyboardInterrupt) else narrows.detect(r for r in Rows(e)),
    ],
)
def test_what_arguments_raise_is_raised(scenario: narrows.Scenario, call, error: BaseException) -> None:
    with pytest.raises(type(error)) as raised:
        call(scenario, error)
    assert raised.value is error


class Rows(Wrong):
    """Rows of delays."""

    def __iter__(self) -> Iterator[tuple[float, str, float]]:  # type: ignore[override]
        yield (0.0, "a", 1.0)
        raise self.error


def test_many_values_are_read_at_once() -> None:
    start = time.process_time()
    values = [str(value) for value in range(10**5)]
    with pytest.raises(narrows.Error, match="found 7 twice"):
        narrows.compare("sbd/nsb-2", "lia", 1, sweep={"links.bottleneck1.queue": [*values, "7"]})
    # To compare each with each took 15 s; this is that of the unoptimised library on a machine that does other work.
    assert time.process_time() - start < 2


def test_other_threads_go_on_meanwhile(scenario: narrows.Scenario) -> None:
    longer = scenario.set("duration", "300 s")
    worker = threading.Thread(target=lambda: narrows.run(longer, cc="lia"))
    looks = [time.monotonic()]
    worker.start()
    while worker.is_alive():
        time.sleep(0.001)
        looks.append(time.monotonic())
    # Who waited for the run would have been away for nearly all of it.
    away = max(later - earlier for earlier, later in zip(looks, looks[1:]))
    assert away < 0.5 * (looks[-1] - looks[0]), (away, len(looks))


@pytest.mark.slow
def test_many_runs_take_no_more_memory_than_a_few(scenario: narrows.Scenario) -> None:
    def some(runs: int) -> int:
        for seed in range(runs):
            polars.DataFrame(narrows.run(scenario, cc="lia+xcorr", seed=seed, series=True).series)
        gc.collect()
        return resident()

    sizes = [some(40), *(some(160) for _ in range(4))]
    # A series of 160 rows that leaked would be 3 MB in each round, a run's network more; what the
    # allocators and the threads of Polars keep for themselves comes once.
    assert min(later - earlier for earlier, later in zip(sizes, sizes[1:])) < 1 << 20, sizes


@pytest.mark.skipif(shutil.which("cc") is None, reason="a law of one's own needs a C compiler")
def test_a_law_of_ones_own(tmp_path: Path) -> None:
    code = """
import os, sys, narrows
# Another package of this name, where the run starts a child.
os.mkdir("elsewhere")
open("elsewhere/narrows.py", "w").write("raise SystemExit(3)")
os.chdir("elsewhere")
for _ in range(2):
    try:
        narrows.run("sbd/nsb-2", cc="unfit", law="../unfit.h")
    except narrows.Error as error:
        print("kernel name" in str(error))
run = narrows.run(narrows.Scenario.load("sbd/nsb-2").set("duration", "2 s"), cc="mine", law="../mine.h")
print(run.cc, run.to_dict()["test"]["goodput_mbps"] > 0)
try:
    narrows.run("sbd/nsb-2", cc="other", law="../other.h")
except narrows.Error as error:
    print(error.field)
"""
    command = [sys.executable, "-m", "narrows", "law", "new"]
    for name in ["mine.h", "other.h", "unfit.h"]:
        subprocess.run([*command, name], cwd=tmp_path, check=True, capture_output=True)
    unfit = tmp_path / "unfit.h"
    unfit.write_text(re.sub(r'(\.code = ")[^"]*', r"\1much_too_long_a_name", unfit.read_text()))
    output = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert output.stdout == "True\nTrue\nmine True\nlaw\n", output.stderr


def test_the_command_of_the_same_is_one_or_says_that_there_is_none(scenario: narrows.Scenario) -> None:
    def said(scenarios: object, **more: object) -> str:
        return narrows.compare(scenarios, "lia", 1, progress=False, **more)._repr_html_()

    both = [narrows.Scenario.load("sbd/nsb-2"), narrows.Scenario.load("sbd/sb-2")]
    brief = [each.set("warmup", "1 s").set("duration", "2 s") for each in both]
    assert "narrows compare sbd/nsb-2 sbd/sb-2 '--cc=lia'" in said(brief)
    none = "narrows.compare(..) in Python"
    assert none in said([brief[0], brief[1].set("duration", "3 s")])
    own = narrows.Scenario.from_dict(tomllib.loads(scenario.to_toml()))
    assert none in said(own)
    assert "narrows.run(..) in Python" in narrows.run(own, cc="lia", series=True)._repr_html_()


def test_errors_say_which_file_and_what_was_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(narrows.Error, match="cannot") as error:
        narrows.detect("capture")
    assert (error.value.file, error.value.field) == ("capture", None)
    for wrong in [0, -1, 65, True, "many"]:
        with pytest.raises(narrows.Error, match="from 1 to 64") as error:
            narrows.detect([], flows=wrong)
        assert error.value.field == "flows"
    for call in [narrows.compare, narrows.papers]:
        with pytest.raises(narrows.Error, match="a whole number"):
            call("sbd/nsb-2", *(["lia"] if call is narrows.compare else []), jobs=-1)
    with pytest.raises(narrows.Error, match="true"):
        narrows.detect([(0.0, "a", 1.0)], settings={"ssc.p_s": True})


def test_detection_in_rows_and_in_files(tmp_path: Path) -> None:
    def delays() -> list[tuple[float, str, float]]:
        # Two flows that see one queue, which grows and shrinks, and a third that sees another.
        rows = []
        for step in range(12000):
            time_s = step * 0.01
            one = 20 + 15 * abs((time_s % 2.0) - 1.0)
            other = 20 + 15 * abs((time_s % 3.3) - 1.65)
            noise = (step * 7919 % 13) / 100
            rows += [(time_s, "a", one + noise), (time_s, "b", 5 + one - noise), (time_s, "c", other + noise)]
        return rows

    found = narrows.detect(delays())
    verdicts = {(row["a"], row["b"]): row["verdict"] for row in found.verdicts.to_pylist()}
    assert verdicts[("a", "b")] == "shared"
    assert len(found.flows) == 3 and len(found.decisions) > 0
    file = tmp_path / "delays.csv"
    file.write_text("flow,t_s,owd_ms\n" + "".join(f"{flow},{t},{owd}\n" for t, flow, owd in delays()))
    assert narrows.detect(file).verdicts.to_pylist() == found.verdicts.to_pylist()
    assert found.report().splitlines()[0] in repr(found)


def test_catalogues_are_tables() -> None:
    names = {
        what.__name__: {row["name"] for row in what().to_pylist()}
        for what in [narrows.laws, narrows.detectors, narrows.controls, narrows.parameters, narrows.scenarios]
    }
    assert {"lia", "olia", "balia"} <= names["laws"]
    assert "xcorr" in names["detectors"] and "ssc.p_s" in names["parameters"]
    assert "sbd/nsb-2" in names["scenarios"] and "olia+ssc" in names["controls"]
    units = {row["name"]: row["unit"] for row in narrows.metrics().to_pylist()}
    assert units["goodput_mbps"] == "Mbit/s"


def test_a_table_of_a_paper(tmp_path: Path) -> None:
    [table] = narrows.papers("cmpbbr/figure-1", quick=True, seeds=1, out=tmp_path / "papers")
    assert table.name == "cmpbbr/figure-1" and len(table.cells) == 2
    assert table.to_markdown().startswith("| ") and "<iframe" in table._repr_html_()
