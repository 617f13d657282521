#!/usr/bin/env python3
"""Runs the design of detectors in design.toml, and rewrites the tables of docs/detectors-compared.md.

    experiments/detection/design.py [--quick | --seeds N] [--only TEXT] [--out DIR] [--check]
    experiments/detection/design.py --list | --draw | --dry-run [NARROWS]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build or another number of seeds
begins anew), then rewrites the tables, and writes their data to DIR/open.csv and DIR/closed.csv. --quick has few seeds,
and writes the document with its tables to DIR; so does --only, which has the cells with TEXT in their names. --check
leaves the document alone and fails if a table differs. --list prints the cells as commands, --draw the drawn ones as
the seed draws them, and --dry-run checks that every cell is a scenario to the command NARROWS.
"""

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from math import ceil, inf
from pathlib import Path
from statistics import mean

import comparisons
from cells import cells, draw, read
from comparisons import HOME, interval, seeds_of, table

DOCUMENT = HOME / "docs/detectors-compared.md"


# --- Running ---------------------------------------------------------------------------------------------


def calls(design, cell, seeds, folder):
    """The comparisons of a cell, by their kind."""
    first = design["seeds"]["first"]

    def options(count):
        return ["--seeds", f"{first}..{first + count - 1}", *cell.options(folder)]

    passive = ["--set", f"detection.passive={json.dumps(cell.passive)}"]
    yield "open", ["compare", cell.scenario, "--cc", ",".join(design["open"]["controls"][cell.law]), *options(seeds), *passive]
    if cell.closed:
        closed = design["closed"]
        count = min(seeds, closed["seeds"])
        signal = ["--set", f"detection.signal={closed['signal']}"]
        yield "closed", ["compare", cell.scenario, "--cc", ",".join(closed["controls"]), *options(count), *signal]


def recordings():
    """The folder of recordings, if there is one."""
    return os.environ.get("NARROWS_TEST_DATA")


def lacks_recordings(cell):
    return bool(cell.traces) and not recordings()


def run(narrows, design, chosen, seeds, out):
    """Runs all cells that can be run; those that lack recordings are skipped."""
    for number, cell in enumerate(chosen, 1):
        if lacks_recordings(cell):
            print(f"{cell.name}: skipped, as NARROWS_TEST_DATA is not set", file=sys.stderr)
            continue
        for kind, call in calls(design, cell, seeds, recordings()):
            what = f"{number} of {len(chosen)}, {kind}: {cell.name}, {seeds} seeds"
            comparisons.run(narrows, out / kind / cell.folder, call, what)


def dry_run(narrows, chosen):
    """How many cells are no scenarios, after saying why."""
    wrong = 0
    for cell in chosen:
        call = [narrows, "run", cell.scenario, *cell.options(recordings()), "--dry-run"]
        done = subprocess.run(call, cwd=HOME, capture_output=True, text=True, check=False)
        if done.returncode:
            wrong += 1
            print(f"{cell.name}: {done.stderr.strip()}", file=sys.stderr)
    return wrong


# --- Statistics ------------------------------------------------------------------------------------------


def quantile(values, share):
    """The least value that so many are not above; infinite if those never came."""
    ordered = sorted(inf if value is None else value for value in values)
    return ordered[max(ceil(share * len(ordered)), 1) - 1] if ordered else None


# --- Results ---------------------------------------------------------------------------------------------


SHARES = ("right", "wrong", "unsure")

# Answers of this strength and more are one row; below it they come in steps of 0.5.
STRONG = 7


class Answers(dict):
    """Right and wrong answers, by their strength and whether they were "shared"."""

    def add(self, key, right, wrong):
        counts = self.setdefault(key, [0, 0])
        counts[0] += right
        counts[1] += wrong

    def merge(self, other):
        for key, counts in other.items():
            self.add(key, *counts)


@dataclass
class Findings:
    """What a detector found in one run."""

    shares: dict
    # From the connection's start until all pairs were right; none if never.
    first_s: float
    # The same from each switch, and how long the phase was.
    switches_s: list
    answers: Answers


def findings(passive):
    """What a passive detector found in one run: shares over all phases, by their time and pairs."""
    phases = passive["phases"]
    shares = {}
    for name in SHARES:
        counted = [(phase[name], phase["pair_s"]) for phase in phases if phase[name] is not None]
        total = sum(weight for _, weight in counted)
        shares[name] = sum(share * weight for share, weight in counted) / total if total else None
    switches = [(phase["first_right_s"], phase["length_s"]) for phase in phases[1:]]
    answers = Answers()
    for one in passive.get("answers", []):
        answers.add((min(one["strength"], STRONG), one["shared"]), one["right"], one["wrong"])
    return Findings(shares, phases[0]["first_right_s"], switches, answers)


def figures(runs):
    """Figures of a detector over the runs of a cell: for each seed a list with one `Findings` for each mask."""
    found = {"runs": sum(len(masks) for masks in runs)}
    for name in SHARES:
        by_mask = [[one.shares[name] for one in masks if one.shares[name] is not None] for masks in runs]
        found[name], found[f"{name}_ci95"] = interval([mean(shares) for shares in by_mask if shares])
    every = [one for masks in runs for one in masks]
    firsts = [one.first_s for one in every]
    found["first_median_s"], found["first_p95_s"] = quantile(firsts, 0.5), quantile(firsts, 0.95)
    switches = [switch for one in every for switch in one.switches_s]
    found["switches"] = len(switches)
    found["followed"] = sum(first is not None for first, _ in switches)
    # One that was never followed counts with the length of its phase.
    found["switch_mean_s"] = mean(length if first is None else first for first, length in switches) if switches else None
    found["switch_p95_s"] = quantile([first for first, _ in switches], 0.95)
    found["answers"] = Answers()
    for one in every:
        found["answers"].merge(one.answers)
    return found


def open_loop(design, cell, out):
    """By detector and signal, and by mask and over all masks: figures of a cell that was run."""
    controls = design["open"]["controls"][cell.law]
    runs = {control: seeds_of(out / "open" / cell.folder, control) for control in controls}
    if lacks_recordings(cell) or not all(runs.values()):
        return {}
    result = {}
    for name in cell.passive:
        per = {
            control: [[findings(passive(summary, name))] for summary in summaries.values()]
            for control, summaries in runs.items()
        }
        for control, found in per.items():
            result[name, control] = figures(found)
        result[name, "all"] = figures([[one for [one] in masks] for masks in zip(*per.values(), strict=True)])
    return result


def passive(summary, name):
    """The one of a run with this detector and signal."""
    return next(one for one in summary["passive"] if f"{one['detector']}:{one['signal']}" == name)


def closed_loop(design, cell, out):
    """By control: ratio to TCP and accuracy of a cell, each with its interval."""
    result = {}
    for control in design["closed"]["controls"]:
        summaries = [] if lacks_recordings(cell) else seeds_of(out / "closed" / cell.folder, control).values()
        ratios = [summary["test"]["ratio_to_tcp"] for summary in summaries]
        right = [summary["test"]["accuracy"] for summary in summaries]
        pick = lambda values: [value for value in values if value is not None]
        result[control] = {
            "runs": len(ratios),
            **dict(zip(("ratio_to_tcp", "ratio_to_tcp_ci95"), interval(pick(ratios)))),
            **dict(zip(("accuracy", "accuracy_ci95"), interval(pick(right)))),
        }
    return result


# --- Tables ----------------------------------------------------------------------------------------------


def percent(share):
    """A share in percent: of small ones it matters whether they are none."""
    return "-" if share is None else f"{100 * share:.1f}"


def plus_minus(found, name, digits=2, factor=1):
    """A mean with its interval."""
    if found.get(name) is None:
        return "-"
    value, half = f"{factor * found[name]:.{digits}f}", found[f"{name}_ci95"]
    return value if half is None else f"{value} ± {factor * half:.{digits}f}"


def seconds(time):
    return "-" if time is None else "never" if time == inf else f"{time:.1f}"


def title(name):
    """xcorr:rtt: xcorr, rtt."""
    return name.replace(":", ", ")


class Results:
    """What was found in each cell."""

    def __init__(self, design, chosen, out):
        self.controls = design["closed"]["controls"]
        self.cells = chosen
        self.open = {cell.name: open_loop(design, cell, out) for cell in chosen}
        self.closed = {cell.name: closed_loop(design, cell, out) for cell in chosen if cell.closed}

    def found(self, cell, name):
        """The figures of a detector over all masks; empty where the cell was skipped."""
        return self.open[cell.name].get((name, "all"), {})

    def names(self):
        """All detectors with their signals."""
        return list(dict.fromkeys(name for cell in self.cells for name in cell.passive))

    def all_of(self, name, figure):
        """A figure of a detector in all cells that have it."""
        values = [self.found(cell, name).get(figure) for cell in self.cells]
        return [value for value in values if value is not None]

    def table(self, head, chosen, text):
        """A row for each cell, a column for each detector; cells with other detectors have a table of their own."""
        groups = {}
        for cell in chosen:
            groups.setdefault(tuple(cell.passive), []).append(cell)
        tables = []
        for names, group in groups.items():
            found = [(cell.name, [self.found(cell, name) for name in names]) for cell in group]
            rows = [[cell, *(text(one) if one else "-" for one in figures)] for cell, figures in found]
            tables.append(table([head, *map(title, names)], rows))
        return "\n".join(tables) or "None.\n"


# What is asked of `xcorr` in a cell: a figure, and the most or least that it may be.
ASKED = {
    "wrong <= 1 %": ("wrong", lambda share: share <= 0.01),
    "right >= 99.5 %": ("right", lambda share: share >= 0.995),
    "not sure <= 5 %": ("unsure", lambda share: share <= 0.05),
    "first, median <= 1.5 s": ("first_median_s", lambda time: time <= 1.5),
    "first, 95 % <= 5 s": ("first_p95_s", lambda time: time <= 5),
}


def summary(results):
    """In how many cells each detector does what is asked of `xcorr`, and its shares in the mean of the cells."""
    rows = []
    for name in results.names():
        row = [title(name)]
        for figure, good in ASKED.values():
            values = results.all_of(name, figure)
            row.append(f"{sum(map(good, values))} of {len(values)}")
        for share in SHARES:
            values = results.all_of(name, share)
            row.append(percent(mean(values)) if values else "-")
        rows.append(row)
    return table(["cells with", *ASKED, "right, mean %", "wrong", "not sure"], rows)


def wrong(results):
    """The cells in which `xcorr` is wrong in more than 1 %, with any signal."""

    def fails(cell):
        shares = [results.found(cell, name).get("wrong") or 0 for name in cell.passive if name.startswith("xcorr:")]
        return max(shares) > 0.01

    chosen = [cell for cell in results.cells if fails(cell)]
    return results.table("wrong, %", chosen, lambda found: plus_minus(found, "wrong", 1, 100))


def accuracy(results, factors):
    """Right, wrong and not sure of every detector, cell by cell."""
    chosen = [cell for cell in results.cells if factors(cell.factor)]

    def shares(found):
        return " / ".join([plus_minus(found, "right", 1, 100), percent(found["wrong"]), percent(found["unsure"])])

    return results.table("right / wrong / not sure, %", chosen, shares)


def first(results):
    """How long until all pairs were first right: half of the runs, and 95 % of them."""

    def times(found):
        return f"{seconds(found['first_median_s'])} / {seconds(found['first_p95_s'])}"

    return results.table("median / 95 %, s", results.cells, times)


def switches(results):
    """How long a switch takes to be followed."""

    def times(found):
        both = f"{seconds(found['switch_mean_s'])} / {seconds(found['switch_p95_s'])}"
        return f"{both} ({found['followed']} of {found['switches']})"

    chosen = [cell for cell in results.cells if any(results.found(cell, n).get("switches") for n in cell.passive)]
    return results.table("mean / 95 %, s (followed)", chosen, times)


def calibration(results):
    """How often answers were right, by their strength."""
    names = [name for name in results.names() if name.startswith("xcorr:")]
    counts = {name: Answers() for name in names}
    for cell in results.cells:
        for name in names:
            counts[name].merge(results.found(cell, name).get("answers", {}))
    rows = []
    for strength in sorted({key for answers in counts.values() for key, _ in answers}):
        row = [f"{strength:g} and more" if strength == STRONG else f"{strength:g} to {strength + 0.5:g}"]
        for name in names:
            for shared in (True, False):
                right, wrong = counts[name].get((strength, shared), (0, 0))
                row.append(f"{100 * right / (right + wrong):.2f} ({right + wrong})" if right + wrong else "-")
        rows.append(row)
    heads = [f"{title(name)}: {answer}" for name in names for answer in ("shared", "separate")]
    return table(["right, % (answers)", *heads], rows)


def ratios(results):
    """Closed loop: what the connection gets, and how right its detector is."""
    rows = []
    for cell in (cell for cell in results.cells if cell.closed):
        if all(results.closed[cell.name][control].get("ratio_to_tcp") is None for control in results.controls):
            continue
        row = [cell.name]
        for control in results.controls:
            found = results.closed[cell.name][control]
            text = plus_minus(found, "ratio_to_tcp")
            row.append(text if found["accuracy"] is None else f"{text} ({percent(found['accuracy'])})")
        rows.append(row)
    return table(["ratio (accuracy, %)", *results.controls], rows)


TABLES = {
    "design summary": summary,
    "design wrong": wrong,
    "design cells": lambda results: accuracy(results, lambda factor: factor != "drawn"),
    "design drawn": lambda results: accuracy(results, lambda factor: factor == "drawn"),
    "design first": first,
    "design switches": switches,
    "design calibration": calibration,
    "design ratios": ratios,
}


def drawn_levels(design):
    """What the drawn cells are."""
    rows = [[f"{drawn['side']}, {drawn['name']}", "; ".join(drawn["levels"])] for drawn in design["drawn"]]
    return table(["cell", "levels"], rows)


def write_data(results, out):
    """The figures of all tables, by mask, too."""

    def save(name, keys, found):
        rows = [{**dict(zip(keys, key)), **figures} for key, figures in found]
        for row in rows:
            row.pop("answers", None)
        with (out / name).open("w", newline="") as file:
            lines = csv.DictWriter(file, list(rows[0]) if rows else keys, lineterminator="\n")
            lines.writeheader()
            lines.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)

    opened = (
        ((cell.name, cell.factor, cell.side, *name.split(":"), mask), found)
        for cell in results.cells
        for (name, mask), found in results.open[cell.name].items()
    )
    save("open.csv", ["cell", "factor", "side", "detector", "signal", "control"], opened)
    closed = (
        ((cell.name, cell.factor, cell.side, control), found)
        for cell in results.cells
        for control, found in results.closed.get(cell.name, {}).items()
    )
    save("closed.csv", ["cell", "factor", "side", "control"], closed)


# --- The command -----------------------------------------------------------------------------------------


def main():
    design = read()
    seeds = design["seeds"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=seeds["full"], help=f"at least {seeds['full']}")
    parser.add_argument("--quick", action="store_true", help=f"{seeds['quick']} seeds, and the document in DIR")
    parser.add_argument("--only", metavar="TEXT", help="cells with TEXT in their names, and the document in DIR")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--check", action="store_true", help="fail if a table of the document differs")
    parser.add_argument("--list", action="store_true", help="print the cells as commands")
    parser.add_argument("--draw", action="store_true", help="print the drawn cells")
    parser.add_argument(
        "--dry-run", metavar="NARROWS", nargs="?", const="", help="check that every cell is a scenario to this command"
    )
    options = parser.parse_args()
    if options.seeds < seeds["full"]:
        parser.error(f"--seeds: expected at least {seeds['full']}; --quick has {seeds['quick']}")
    if options.draw:
        for drawn in draw(design):
            print(json.dumps(drawn))
        return
    part = options.quick or options.only is not None
    count = seeds["quick"] if options.quick else options.seeds
    chosen = [cell for cell in cells(design) if options.only in (None, "") or options.only in cell.name]
    if not chosen:
        parser.error(f"--only: no cell has {options.only} in its name; --list shows them")
    if options.list:
        for cell in chosen:
            print(f"# {cell.name}")
            for _, call in calls(design, cell, count, "$NARROWS_TEST_DATA"):
                print("narrows", *(f'"{part}"' if "$" in part else shlex.quote(part) for part in call))
        return
    if options.dry_run is not None:
        sys.exit(dry_run(Path(options.dry_run or comparisons.build()).resolve(), chosen) > 0)
    text = comparisons.read(DOCUMENT, ["design drawn levels", *TABLES])
    out = options.out or HOME / ("out/design-quick" if part else "out/design")
    narrows = comparisons.build()
    # Before hours of runs.
    if dry_run(narrows, chosen):
        sys.exit(1)
    run(narrows, design, chosen, count, out)
    results = Results(design, chosen, out)
    write_data(results, out)
    text = comparisons.replaced(text, "design drawn levels", drawn_levels(design))
    for name, make in TABLES.items():
        text = comparisons.replaced(text, name, make(results))
    comparisons.write(DOCUMENT, text, out, part, options.check)


if __name__ == "__main__":
    main()
