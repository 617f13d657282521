"""The functions of the package, with their arguments by name."""

from __future__ import annotations

import csv
import io
import os
import reprlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

from narrows import _narrows
from narrows._error import Error
from narrows._narrows import Comparison, Detection, PaperTable, Run, Scenario, Table

# Python 3.9 has no `|` of types outside annotations.
#: A file or folder.
Path = Union[str, "os.PathLike[str]"]
#: A scenario, or one by its name or file.
ScenarioLike = Union[Scenario, Path]
#: ``30`` is 1 to 30; also ``"31..60"``, ``(31, 60)`` and ``range(31, 61)``.
Seeds = Union[int, str, "tuple[int, int]", range]
#: The values of a field: a list; numbers and their unit, ``([5, 6], "Mbit/s")``; or text, ``"1..100 Mbit/s:5:log"``.
Values = Union[str, "Iterable[Any]", "tuple[Iterable[float], str]"]


def run(
    scenario: ScenarioLike,
    *,
    cc: str | None = None,
    seed: int = 1,
    series: bool = False,
    signal: str | None = None,
    on: str = "sim",
    law: Path | None = None,
    threads: int = 1,
    force: bool = False,
) -> Run:
    """Run a scenario once.

    The GIL is released meanwhile, so that threads run at the same time. Ctrl-C stops it.

    Parameters
    ----------
    scenario : Scenario, str or path
        A scenario, or the name of a shipped one or of a file.
    cc : str, optional
        Congestion control of the connection under test, ``LAW[+DETECTOR][+START]`` (`controls()`); that of the
        scenario if there is none.
    seed : int
        Seed of the random generator, 0 to 2^64-1. The same scenario and seed give the same bytes.
    series : bool
        Keep a row for each path every 100 ms, in `Run.series`.
    signal : str, optional
        Delay signal of the detector: receiver-us, sender-us, sender-ms, rtt or srtt.
    on : str
        What runs it: ``"sim"``, the simulator; ``"quic"``, QUIC end points in virtual time, and ``"kernel"``, this
        machine's kernel, for root, where they are built in (the wheel has QUIC).
    law : str or path, optional
        A law of one's own, ``mine.h``, for use in `cc` (``narrows law new mine.h``); needs a C compiler. A process
        has one at most.
    threads : int
        Threads of the simulator. A large network whose parts are joined by links with a delay comes apart on them
        (``narrows run --dry-run`` says so), any other runs on one. The bytes are the same.
    force : bool
        Run even if it may take more memory than there is, or two days.

    Returns
    -------
    Run
        Its tables have a row for each connection, path, link or, with `series`, each path every 100 ms.

    Raises
    ------
    Error
        What is wrong of the arguments, or why it cannot run.
    KeyboardInterrupt
        Ctrl-C.

    References
    ----------
    `laws()`, `detectors()` and `parameters()` have the source of each; `scenarios()` has that of a network's numbers.
    """
    return _narrows.run(scenario, cc, seed, series, signal, on, law, threads, force)


def compare(
    scenarios: ScenarioLike | Iterable[ScenarioLike],
    cc: str | Sequence[str],
    seeds: Seeds = 10,
    *,
    sweep: Mapping[str, Values] | None = None,
    signal: str | Sequence[str] | None = None,
    on: str | Sequence[str] = "sim",
    law: Path | None = None,
    jobs: int | None = None,
    out: Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: bool | Callable[[int, int], object] = True,
) -> Comparison:
    """Run scenarios under several congestion controls with many seeds, on all cores.

    Parameters
    ----------
    scenarios : Scenario, str, path, or several
        What to run.
    cc : str or list of str
        Congestion controls of the connection under test.
    seeds : int, tuple, range or str
        How many, from 1 on; or from one to another.
    sweep : dict, optional
        Fields with several values, all combinations of them: a list, ``{"links.l.rate": ["1 Mbit/s", "9 Mbit/s"]}``;
        numbers and their unit, ``([1, 9], "Mbit/s")``; or text, ``"1..100 Mbit/s:5:log"`` (5 values, each as many times
        the one before).
    signal : str or list of str, optional
        Delay signals of the detectors, a row each.
    on : str or list of str
        What runs them, as of `run`, a row each.
    law : str or path, optional
        A law of one's own, for use in `cc`.
    jobs : int, optional
        Runs at the same time; one per core if there is none. It does not change the results.
    out : str or path, optional
        A folder for all results, as of ``narrows compare --out``; after Ctrl-C it has each run that had finished.
    resume : bool
        Go on with what is in `out`, which it needs.
    force : bool
        Run even if it may take more memory than there is, or two days.
    progress : bool or callable
        Show how far it is, on a terminal or in a notebook; or call this with the runs that are done and all.

    Returns
    -------
    Comparison
        Its rows are means over the seeds with half of Student's 95 % interval, a row for each scenario, value of `sweep`,
        `cc` and `signal`.

    Raises
    ------
    Error
        What is wrong of the arguments, or in a run.
    KeyboardInterrupt
        Ctrl-C; without `out` no run is kept.

    References
    ----------
    `laws()` and `detectors()` have the source of each, `metrics()` says what the columns are.
    """
    # The command's line is for a terminal.
    line = progress is True and not in_notebook()
    done = None if line else told(progress, "runs")
    return _narrows.compare(
        scenarios,
        cc,
        seeds,
        table(sweep, "sweep", "a dict of fields and their values"),
        signal,
        on,
        law,
        jobs or 0,
        out,
        resume,
        force,
        line,
        done,
    )


def detect(
    data: Path | Iterable[tuple[float, str, float]],
    *,
    detector: str = "xcorr",
    settings: Mapping[str, object] | None = None,
    flows: int = 16,
    min_packets: int = 100,
) -> Detection:
    """Find which flows share a bottleneck.

    Parameters
    ----------
    data : str, path or iterable of (time, flow, delay)
        A capture (pcap, pcapng) or a table of delays in CSV, plain or compressed by gzip or zstd; or the delays:
        time in s, in this order, name of the flow, one-way delay in ms, of which a constant offset does not matter.
    detector : str
        One of `detectors()` that goes by delays.
    settings : dict, optional
        Parameters of the detector, ``{"ssc.p_s": 0.15}``.
    flows : int
        Analyse so many of the largest flows, 1 to 64.
    min_packets : int
        Leave out flows with fewer packets of data.

    Returns
    -------
    Detection
        A verdict for each two flows, each decision, and each flow's traffic.

    Raises
    ------
    Error
        The file cannot be read, has no flow that gives a delay, or there is no such detector.

    References
    ----------
    `detectors()` has the source of each; ``ssc`` is RFC 8382.
    """
    chosen = table(settings, "settings", "a dict of parameters and their values") or {}
    if isinstance(data, (str, os.PathLike)):
        return _narrows.detect(data, None, detector, chosen, flows, min_packets)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["flow", "t_s", "owd_ms"])
    writer.writerows(_turned(data))
    # What is no Unicode is refused with its row.
    rows = text.getvalue().encode("utf-8", "surrogatepass")
    return _narrows.detect("data", rows, detector, chosen, flows, min_packets)


def _turned(data: Iterable[tuple[float, str, float]]) -> Iterator[tuple[str, float, float]]:
    """The rows as the table has them."""
    expected = "(time in s, flow, delay in ms)"
    columns = getattr(data, "columns", getattr(data, "column_names", None))
    # Of a data frame the items are columns, or their names.
    if isinstance(data, Mapping) or (columns is not None and not callable(columns)):
        expected = f"rows {expected}, as of Polars' iter_rows() or pandas' itertuples(index=False)"
        found = f"a {type(data).__name__}"
    elif isinstance(data, Iterable):
        for row in data:
            fields: tuple[Any, ...] = tuple(row) if isinstance(row, Iterable) and not isinstance(row, str) else ()
            if len(fields) != 3:
                raise wrong("data", shown(row), expected)
            time_s, flow, delay = fields
            # It would end the line.
            if isinstance(flow, str) and not {"\n", "\r"}.isdisjoint(flow):
                raise wrong("data", shown(row), f"{expected}, the flow a name without control characters")
            yield flow, time_s, delay
        return
    else:
        expected, found = f"a path, or rows {expected}", shown(data)
    raise wrong("data", found, expected)


def shown(value: object) -> str:
    """The beginning of a value, in one line."""
    return " ".join(reprlib.repr(value).split())


def wrong(field: str, found: str, expected: str) -> Error:
    """What is said of an argument."""
    return Error(f"{field}: found {found}; expected {expected}", field=field, expected=expected)


def table(value: Mapping[str, Any] | None, field: str, expected: str) -> dict[str, Any] | None:
    """A dict of what is one, or nothing."""
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise wrong(field, shown(value), expected)
    return dict(value)


def in_notebook() -> bool:
    """Does a notebook show what is written?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel") and not sys.stderr.isatty()


def told(progress: bool | Callable[[int, int], object] | None, what: str) -> Callable[[int, int], object] | None:
    """What is called with how far it is: of True a line, written over itself, not more often than one can read."""
    if progress is None or progress is False:
        return None
    if callable(progress):
        return progress
    if progress is not True:
        raise wrong("progress", shown(progress), f"True, or a function of the {what} that are done and all")
    last = 0.0

    def tell(done: int, of: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done < of and now - last < 0.2:
            return
        last = now
        sys.stderr.write(f"\r{done}/{of} {what}" + "\n" * (done >= of))
        sys.stderr.flush()

    return tell


def papers(
    names: str | Sequence[str],
    *,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    out: Path | None = None,
    resume: bool = False,
) -> list[PaperTable]:
    """Make published tables and figures again, and judge their claims.

    Parameters
    ----------
    names : str or list of str
        ``"lisa"``, ``"sbd/table-2"``, the beginning of a table's name, or ``"all"`` (``narrows papers list``).
    quick : bool
        Few seeds and a part of the networks.
    seeds : int, optional
        So many instead of each table's own.
    jobs : int, optional
        Runs at the same time; one per core if there is none.
    out : str or path, optional
        A folder that keeps each run.
    resume : bool
        Go on with what is in `out`, which it needs.

    Returns
    -------
    list of PaperTable
        The tables in the order of the registry, published values beside ours.

    Raises
    ------
    Error
        There is none of a name, or a run fails.

    References
    ----------
    `PaperTable.about` has a table's place in its paper, ``narrows papers list`` the papers.
    """
    return _narrows.papers(names, quick, seeds, jobs or 0, out, resume)


def laws() -> Table:
    """Laws, with what they do and their source.

    Returns
    -------
    Table
        A row for each law, with its source.
    """
    return _narrows.listed("laws")


def detectors() -> Table:
    """Detectors of shared bottlenecks, with what they do and their source.

    Returns
    -------
    Table
        A row for each detector, with its source.
    """
    return _narrows.listed("detectors")


def controls() -> Table:
    """All congestion controls, with their names in the kernel.

    Returns
    -------
    Table
        A row for each control.
    """
    return _narrows.listed("controls")


def parameters() -> Table:
    """Parameters of laws and detectors, with their defaults and sources.

    Returns
    -------
    Table
        A row for each parameter, with its unit, range and source.
    """
    return _narrows.listed("params")


def metrics() -> Table:
    """Metrics of results, with their units.

    Returns
    -------
    Table
        A row for each metric, with its unit.
    """
    return _narrows.listed("metrics")


def scenarios() -> Table:
    """Shipped scenarios, with the source of their numbers.

    Returns
    -------
    Table
        A row for each scenario, with its source.
    """
    return _narrows.listed("scenarios")
