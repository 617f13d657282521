#!/usr/bin/env python3
"""Regenerates the tables of docs/detection.md, each between two marks.

    experiments/detection/tables.py [--seeds N] [--out DIR] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build or another number of
seeds begins anew), then rewrites the tables. --check leaves the document alone and fails if a table differs.
"""

import argparse
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from statistics import mean, median

HOME = Path(__file__).resolve().parents[2]
DOCUMENT = HOME / "docs/detection.md"
PUBLISHED = HOME / "experiments/detection/published.csv"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HOME / "target"))

SIGNALS = ["receiver-us", "sender-us", "sender-ms", "rtt"]
PAPER = ["ssc.preset=mptcp-sbd"]
KINDS = [f"sbd/{kind}-{n}" for kind in ("nsb", "sb") for n in range(2, 6)]
TRACES = [f"e{n}" for n in range(1, 6)]
CUBIC = [f"{field}.cc=cubic" for field in ("flows.tcp1", "flows.tcp2", "background.0", "background.1")]

# The Linux that the paper ran, and the least ssthresh of the authors' OLIA (Remark 1).
ERA = ["era=linux-3.14"]
FLOOR = ["olia.floor=2"]

# A comparison: its folder, scenarios, controls, signals, settings, seeds (a share of those asked for).
Cell = namedtuple("Cell", "name scenarios controls signals settings share", defaults=((), (), 1.0))


def cells():
    """All comparisons that the tables are made of."""
    for suffix in ("", "-red", "-rtt"):
        scenarios = [kind + suffix for kind in KINDS]
        yield Cell(f"sbd{suffix}", scenarios, ["olia+ssc"], SIGNALS, PAPER)
    yield Cell("laws", KINDS, ["reno", "olia", "lia"])
    yield Cell("rfc8382", KINDS, ["olia+ssc"], SIGNALS[:2], ["ssc.preset=rfc8382"], 0.5)
    yield Cell("full", KINDS, ["reno+ssc"], SIGNALS[:1], PAPER, 0.5)
    yield Cell("lia", KINDS, ["lia+ssc", "lia+tr"], ["rtt"], PAPER, 0.5)
    shifting = ["sbd/shifting-30", "sbd/shifting-60", "sbd/realnet-shifting"]
    yield Cell("shifting", shifting, ["olia", "olia+ssc"], SIGNALS[:2], PAPER, 0.5)
    real = ["sbd/realnet-nsb", "sbd/realnet-sb-2", "sbd/realnet-sb-5"]
    yield Cell("realnet", real, ["reno", "olia", "olia+ssc"], SIGNALS[:1], PAPER)
    shared = [f"tr/{trace}{queue}" for trace in TRACES for queue in ("", "-red")]
    apart = [f"tr/{trace}-apart" for trace in TRACES]
    for law, settings in (("reno", []), ("cubic", CUBIC)):
        detectors = [f"{law}+tr", f"{law}+ssc"]
        yield Cell(f"traces-{law}", shared + apart, detectors, ["rtt"], PAPER + settings, 0.15)
    yield Cell("apart", apart, ["reno", "lia", "lia+ssc", "lia+tr"], ["rtt"], PAPER, 0.15)
    yield Cell("floor", KINDS[4:], ["olia"], settings=FLOOR)
    yield Cell("era-floor", KINDS[4:], ["olia"], settings=ERA + FLOOR)
    for suffix in ("", "-red", "-rtt"):
        scenarios = [kind + suffix for kind in KINDS]
        yield Cell(f"era{suffix}", scenarios, ["olia+ssc"], SIGNALS[:1], PAPER + ERA)
    yield Cell("era-laws", KINDS, ["reno", "olia"], settings=ERA)


# --- Running ---------------------------------------------------------------------------------------------


def build():
    """The command, built for release."""
    call = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "narrows"]
    subprocess.run(call, cwd=HOME, check=True)
    return TARGET / "release/narrows"


def run(narrows, cell, seeds, out):
    """Runs the comparison, unless the same build has done it with as many seeds."""
    folder = out / cell.name
    seeds = max(1, round(seeds * cell.share))
    call = ["compare", *cell.scenarios, "--cc", ",".join(cell.controls), "--seeds", str(seeds)]
    if cell.signals:
        call += ["--signal", ",".join(cell.signals)]
    for setting in cell.settings:
        call += ["--set", setting]
    done = f"{' '.join(call)}\n{hashlib.sha256(narrows.read_bytes()).hexdigest()}\n"
    mark, begun = folder / "done", folder / "begun"
    if mark.exists() and mark.read_text() == done:
        return
    if not begun.exists() or begun.read_text() != done:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        begun.write_text(done)
    print(f"{cell.name}: {len(cell.scenarios)} scenarios, {seeds} seeds", file=sys.stderr)
    call = [narrows, *call, "--jobs", str(os.cpu_count()), "--out", folder, "--resume"]
    subprocess.run(call, stdout=subprocess.DEVNULL, check=True)
    begun.rename(mark)


# --- Results ---------------------------------------------------------------------------------------------


class Results:
    """What the comparisons left in their folders."""

    def __init__(self, out):
        self.out = out
        self.kept = {}

    def row(self, cell, scenario, control, signal=None):
        """The row of `rows.json`."""
        if cell not in self.kept:
            rows = json.loads((self.out / cell / "rows.json").read_text())["rows"]
            self.kept[cell] = {(r["scenario"], r["cc"], r.get("signal")): r for r in rows}
        return self.kept[cell][scenario, control, signal]

    def mean(self, field, *which):
        """Mean over the seeds of a metric of a row."""
        return self.row(*which)[field]["mean"]

    def runs(self, cell, scenario, control, signal=None):
        """The summary of each seed, and the decisions if its detector listens."""
        folder = self.out / cell / "runs" / scenario / control / (signal or "")
        for summary in sorted(folder.glob("seed-*.json")):
            decisions = summary.with_name(f"{summary.stem}.decisions.csv")
            rows = []
            if decisions.exists():
                with decisions.open() as lines:
                    rows = list(csv.DictReader(lines))
            yield json.loads(summary.read_text()), rows

    def phases(self, *which):
        """The phases of every seed: how right the detector was in each."""
        return [phase for summary, _ in self.runs(*which) for phase in summary["detection"]]

    def share(self, field, *which):
        """Mean of a share over phases and seeds; none where no run has it."""
        values = [phase[field] for phase in self.phases(*which) if phase[field] is not None]
        return mean(values) if values else None

    def shares(self, field, *which):
        """Mean over phases and seeds of a histogram's shares."""
        found = [phase[field] for phase in self.phases(*which) if sum(phase[field])]
        shares = [[count / sum(counts) for count in counts] for counts in found]
        return [mean(column) for column in zip(*shares)]


def published():
    """The paper's share of decisions by number of groups, by table and scenario."""
    with PUBLISHED.open() as lines:
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        values = lambda row: [float(row[f"groups_{n}"]) for n in range(1, 6) if row[f"groups_{n}"]]
        return {row["scenario"]: (row["table"], values(row)) for row in rows}


# --- Tables ----------------------------------------------------------------------------------------------


def table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def percent(share):
    return "-" if share is None else f"{100 * share:.0f}"


def spread(value):
    """A share with its 95 % interval, in percent."""
    if value is None:
        return "-"
    return f"{100 * value['mean']:.0f} ± {100 * (value['ci95'] or 0):.0f}"


def label(scenario):
    """sbd/nsb-2-red: NSB-2."""
    return re.sub(r"-(red|rtt)$", "", scenario.removeprefix("sbd/")).upper()


def right_groups(scenario):
    return int(scenario.split("-")[1]) if "/nsb" in scenario else 1


def accuracy(results, suffix):
    """A table of the paper next to ours, by signal; bold: more than 5 points below."""
    rows = []
    for scenario in (kind + suffix for kind in KINDS):
        _, theirs = published()[scenario]
        theirs = theirs[right_groups(scenario) - 1]
        row = [label(scenario), f"{100 * theirs:.0f}"]
        for signal in SIGNALS:
            ours = results.row(f"sbd{suffix}", scenario, "olia+ssc", signal)["accuracy"]
            low = ours is None or ours["mean"] < theirs - 0.05
            row.append(f"**{spread(ours)}**" if low else spread(ours))
        counts = [count for run in results.runs(f"sbd{suffix}", scenario, "olia+ssc", "receiver-us")
                  for count in groups_with_one_for_clear(*run)]
        row.append(percent(mean(count == right_groups(scenario) for count in counts)))
        era = results.row(f"era{suffix}", scenario, "olia+ssc", "receiver-us")["accuracy"]
        low = era is None or era["mean"] < theirs - 0.05
        row.append(f"**{spread(era)}**" if low else spread(era))
        rows.append(row)
    names = ["receiver-us, one group of them", "receiver-us, Linux 3.14"]
    return table(["accuracy, %", "paper", *SIGNALS, *names], rows)


def groups_with_one_for_clear(summary, decisions):
    """How many groups each decision after the warm-ups found, if all that are not congested are one."""
    counting = [d for d in decisions if float(d["time_s"]) >= 20 and not d["undecided"]]
    return [len(d["groups"].split()) + bool(d["uncongested"]) for d in counting]


def full(results):
    """The same detector where no coupling makes paths thin."""
    rows = []
    for scenario in KINDS:
        both = [("full", scenario, "reno+ssc", "receiver-us"), ("sbd", scenario, "olia+ssc", "receiver-us")]
        row = [label(scenario), *(spread(results.row(*which)["accuracy"]) for which in both)]
        for field in ("false_merge_rate", "false_split_rate"):
            row += [percent(results.share(field, *which)) for which in both]
        rows.append(row)
    names = ["accuracy, %", "reno+ssc", "olia+ssc"]
    return table(names + [f"{what}, {law}" for what in ("merged", "split") for law in ("reno", "olia")], rows)


def groups(results, suffix):
    """How many groups were found, theirs and ours at the receiver."""
    rows = []
    for scenario in (kind + suffix for kind in KINDS):
        which = (f"sbd{suffix}", scenario, "olia+ssc", "receiver-us")
        cells = [" ".join(map(percent, published()[scenario][1]))]
        cells.append(" ".join(map(percent, results.shares("groups_hist", *which))))
        for field in ("false_merge_rate", "false_split_rate", "uncongested_share", "undecided_share"):
            cells.append(percent(results.share(field, *which)))
        rows.append([label(scenario), *cells])
    names = ["1, 2, .. groups, %", "paper", "ours", "merged", "split", "not congested", "undecided"]
    return table(names, rows)


def observations(results):
    """Figure 4: how many of a decision's ten observations are right."""
    rows = []
    for scenario in KINDS:
        row = [label(scenario), {"N": 45, "S": 90}[label(scenario)[0]]]
        for signal in SIGNALS[:2]:
            shares = results.shares("correct_observations_hist", "sbd", scenario, "olia+ssc", signal)
            parts = [shares[10], sum(shares[5:10]), sum(shares[1:5]), shares[0]] if shares else []
            row.append(" / ".join(map(percent, parts)))
        rows.append(row)
    return table(["10 / 5-9 / 1-4 / 0 right, %", "paper, 10", *SIGNALS[:2]], rows)


def gains(results):
    """Figure 5: what is gained over OLIA, and what is taken from TCP."""
    rows = []
    for scenario in KINDS:
        olia = results.mean("goodput_mbps", "laws", scenario, "olia")
        row = [label(scenario)]
        row += [f"{results.mean('ratio_to_tcp', 'laws', scenario, law):.2f}" for law in ("reno", "olia")]
        for signal in SIGNALS:
            which = ("sbd", scenario, "olia+ssc", signal)
            gain = results.mean("goodput_mbps", *which) / olia - 1
            row.append(f"{results.mean('ratio_to_tcp', *which):.2f} ({100 * gain:+.0f} %)")
        rows.append(row)
    return table(["ratio (gain)", "reno", "olia", *SIGNALS], rows)


def era_gains(results):
    """The same with the rules of the paper's Linux."""
    rows = []
    for scenario in KINDS:
        ratio = lambda *which: f"{results.mean('ratio_to_tcp', *which):.2f}"
        olia = results.mean("goodput_mbps", "era-laws", scenario, "olia")
        which = ("era", scenario, "olia+ssc", "receiver-us")
        gain = results.mean("goodput_mbps", *which) / olia - 1
        row = [label(scenario), *(ratio("era-laws", scenario, law) for law in ("reno", "olia"))]
        row.append(f"{ratio(*which)} ({100 * gain:+.0f} %)")
        for field in ("false_merge_rate", "false_split_rate"):
            row.append(percent(results.share(field, *which)))
        rows.append(row)
    return table(["ratio (gain)", "reno", "olia", "receiver-us", "merged, %", "split, %"], rows)


def uncoupled(results):
    """LIA with each detector, hearing the RTT: what it gets, and how right that is."""
    rows = []
    for scenario in KINDS:
        ratio = lambda row: f"{row['ratio_to_tcp']['mean']:.2f}"
        row = [label(scenario), ratio(results.row("laws", scenario, "lia"))]
        for control in ("lia+ssc", "lia+tr"):
            found = results.row("lia", scenario, control, "rtt")
            row.append(f"{ratio(found)} ({spread(found['accuracy'])})")
        rows.append(row)
    return table(["ratio (accuracy, %)", "lia", "lia+ssc", "lia+tr"], rows)


def presets(results):
    """The parameters of the paper and of the RFC."""
    rows = []
    for scenario in KINDS:
        row = [label(scenario)]
        for signal in SIGNALS[:2]:
            for cell in ("sbd", "rfc8382"):
                which = (cell, scenario, "olia+ssc", signal)
                clear = percent(results.share("uncongested_share", *which))
                row.append(f"{spread(results.row(*which)['accuracy'])} ({clear})")
        rows.append(row)
    names = [f"{signal}, {name}" for signal in SIGNALS[:2] for name in ("mptcp-sbd", "rfc8382")]
    return table(["accuracy (not congested), %", *names], rows)


Shift = namedtuple("Shift", "delays phases after")


def shifts(results, scenario, signal):
    """What came after each shift towards a shared and towards separate bottlenecks."""
    kinds = {"SB": Shift([], [], []), "NSB": Shift([], [], [])}
    for summary, decisions in results.runs("shifting", scenario, "olia+ssc", signal):
        phases = summary["detection"]
        ends = [phase["start_s"] for phase in phases[1:]] + [float("inf")]
        for index, (phase, end) in enumerate(zip(phases, ends)):
            if index == 0:
                continue
            kind = kinds["SB" if index % 2 == 0 else "NSB"]
            kind.phases.append(phase)
            if phase["first_correct_s"] is None:
                continue
            kind.delays.append(phase["transition_delay_s"])
            after = [d["correct"] == "true" for d in decisions
                     if phase["first_correct_s"] <= float(d["time_s"]) < end and d["correct"]]
            kind.after.append(mean(after))
    return kinds


def shifting(results):
    """Figures 8 and 11: how long a shift takes to be seen, and how right it is from then on."""
    rows = []
    for scenario in ("sbd/shifting-30", "sbd/shifting-60", "sbd/realnet-shifting"):
        for signal in SIGNALS[:2]:
            for kind, shift in shifts(results, scenario, signal).items():
                seen = len(shift.delays)
                row = [scenario, signal, kind, f"{seen} of {len(shift.phases)}"]
                row += [f"{mean(shift.delays):.1f}", f"{median(shift.delays):.1f}"] if seen else ["-", "-"]
                row.append(percent(mean(shift.after)) if seen else "-")
                rows.append(row)
    names = ["scenario", "signal", "shift to", "seen", "delay, mean s", "median s", "right afterwards, %"]
    return table(names, rows)


def progress(results):
    """Figure 7: right observations in a decision's window, by the time since the shift."""
    steps = [3.5 * n for n in range(9)]
    rows = []
    for signal in SIGNALS[:2]:
        for name, parity in (("SB", 0), ("NSB", 1)):
            found = [[] for _ in steps[1:]]
            for summary, decisions in results.runs("shifting", "sbd/shifting-30", "olia+ssc", signal):
                starts = [phase["start_s"] for phase in summary["detection"]]
                for decision in decisions:
                    time = float(decision["time_s"])
                    index = sum(start <= time for start in starts) - 1
                    since = int((time - starts[index]) / 3.5)
                    if index > 0 and index % 2 == parity and since < len(found):
                        found[since].append(int(decision["correct_observations"]) / 10)
            rows.append([f"{name}, {signal}", *(percent(mean(f)) if f else "-" for f in found)])
    return table(["right, %", *(f"{step:.1f} s" for step in steps[1:])], rows)


def real(results):
    """Section V-A and V-B."""
    rows = []
    paper = {"sbd/realnet-nsb": ("70", "+20 %"), "sbd/realnet-sb-2": ("91", "about 0"), "sbd/realnet-sb-5": ("85", "a little")}
    for scenario, (accuracy, gain) in paper.items():
        which = ("realnet", scenario, "olia+ssc", "receiver-us")
        ours = results.row(*which)["accuracy"]
        clear = results.share("uncongested_share", *which)
        olia = results.mean("goodput_mbps", "realnet", scenario, "olia")
        gained = results.mean("goodput_mbps", *which) / olia - 1
        reno = results.mean("goodput_mbps", "realnet", scenario, "reno") / olia - 1
        rows.append([scenario, accuracy, spread(ours), percent(clear), gain, f"{100 * gained:+.0f} %", f"{100 * reno:+.0f} %"])
    return table(["scenario", "accuracy, paper", "ours, %", "not congested, %", "gain over OLIA, paper", "ours", "reno"], rows)


def first(results, cell, scenario, control):
    """Seconds until the first positive: median over the seeds; none: in more than half there was none."""
    never = float("inf")
    found = [phase["first_correct_s"] for phase in results.phases(cell, scenario, control, "rtt")]
    time = median([never if one is None else one for one in found])
    return None if time == never else time


def traces(results):
    """The first positive of TR beside that of SSC, and how right each is from then on."""
    rows = []
    earlier = all_of_them = 0
    for trace in TRACES:
        for queue in ("", "-red"):
            for law in ("cubic", "reno"):
                scenario, cell = f"tr/{trace}{queue}", f"traces-{law}"
                times = {d: first(results, cell, scenario, f"{law}+{d}") for d in ("tr", "ssc")}
                never = float("inf")
                all_of_them += 1
                earlier += (times["tr"] or never) < (times["ssc"] or never)
                row = [trace.upper(), "RED" if queue else "droptail", law]
                for detector, time in times.items():
                    right = results.row(cell, scenario, f"{law}+{detector}", "rtt")["accuracy"]
                    row += [f"{time:.1f}" if time else "never", percent(right and right["mean"])]
                rows.append(row)
    names = ["", "queue", "law", "tr, first s", "right, %", "ssc, first s", "right, %"]
    return table(names, rows) + f"\nTR is first in {earlier} of {all_of_them}.\n"


def positives(results):
    """False positives on separate bottlenecks, and what that costs."""
    rows = []
    for trace in TRACES:
        scenario = f"tr/{trace}-apart"
        row = [trace.upper()]
        for law in ("reno", "cubic"):
            for detector in ("tr", "ssc"):
                row.append(percent(results.share("false_merge_rate", f"traces-{law}", scenario, f"{law}+{detector}", "rtt")))
        for control, signal in (("reno", None), ("lia", None), ("lia+ssc", "rtt"), ("lia+tr", "rtt")):
            row.append(f"{results.mean('ratio_to_best', 'apart', scenario, control, signal):.2f}")
        rows.append(row)
    names = ["", "tr, reno", "ssc, reno", "tr, cubic", "ssc, cubic", "R reno", "R lia", "R lia+ssc", "R lia+tr"]
    return table(names, rows)


def floor(results):
    """Remark 1: the least ssthresh of OLIA."""
    rows = []
    for scenario in KINDS[4:]:
        ratio = lambda row: f"{row['ratio_to_tcp']['mean']:.2f} ± {row['ratio_to_tcp']['ci95'] or 0:.2f}"
        builds = ("laws", "floor", "era-laws", "era-floor")
        rows.append([label(scenario), *(ratio(results.row(cell, scenario, "olia")) for cell in builds)])
    return table(["ratio", "1 packet", "2 packets", "1, Linux 3.14", "2, Linux 3.14"], rows)


TABLES = {
    "II": lambda results: accuracy(results, ""),
    "III": lambda results: accuracy(results, "-red"),
    "IV": lambda results: accuracy(results, "-rtt"),
    "II groups": lambda results: groups(results, ""),
    "III groups": lambda results: groups(results, "-red"),
    "IV groups": lambda results: groups(results, "-rtt"),
    "full": full,
    "observations": observations,
    "gains": gains,
    "era gains": era_gains,
    "presets": presets,
    "shifting": shifting,
    "progress": progress,
    "real": real,
    "lia": uncoupled,
    "traces": traces,
    "positives": positives,
    "floor": floor,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--out", type=Path, default=HOME / "out/detection")
    parser.add_argument("--check", action="store_true", help="fail if a table of the document differs")
    options = parser.parse_args()
    narrows = build()
    for cell in cells():
        run(narrows, cell, options.seeds, options.out)
    results = Results(options.out)
    text = DOCUMENT.read_text()
    for name, make in TABLES.items():
        begin, end = f"<!-- table {name} -->\n", "<!-- end -->"
        if begin not in text:
            sys.exit(f"experiments/detection/tables.py: {DOCUMENT} has no {begin.strip()}")
        head, rest = text.split(begin, 1)
        _, tail = rest.split(end, 1)
        text = f"{head}{begin}\n{make(results)}\n{end}{tail}"
    if not options.check:
        DOCUMENT.write_text(text)
    elif text != DOCUMENT.read_text():
        sys.exit("experiments/detection/tables.py: the tables are others than those of docs/detection.md")


if __name__ == "__main__":
    main()
