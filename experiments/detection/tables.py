#!/usr/bin/env python3
"""Regenerates the tables of docs/detection.md, each between two marks.

    experiments/detection/tables.py [--quick | --seeds N] [--out DIR] [--check | --table NAME]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build or another number of
seeds begins anew), then rewrites the tables, and writes the data of figures to DIR/figures. --quick has 5 seeds,
and writes the document with its tables to DIR. --check leaves the document alone and fails if a table differs.
--table runs what one table needs, and prints it.
"""

import argparse
import csv
import json
import re
from collections import namedtuple
from functools import cache
from pathlib import Path
from statistics import mean, median, quantiles

import comparisons
import figures
from comparisons import HOME, QUICK, percent, table

DOCUMENT = HOME / "docs/detection.md"
PUBLISHED = HOME / "experiments/detection/published.csv"

SIGNALS = ["receiver-us", "sender-us", "sender-ms", "rtt"]
LEAST = 20
PAPER = ["ssc.preset=mptcp-sbd"]
ALIKE = [f"sbd/nsb-{n}" for n in range(2, 6)]
UNEVEN = [f"{kind}-uneven" for kind in ALIKE]
# Chosen after accuracies had been seen, and the background of a script for D-ITG.
UNLIKE = [f"{kind}-unlike" for kind in ALIKE]
ITG = [f"{kind}-itg" for kind in ALIKE]
SHARED = [f"sbd/sb-{n}" for n in range(2, 6)]
KINDS = ALIKE + UNEVEN + SHARED
# With droptail and equal RTTs, that is in Table II and Figures 2, 4 and 5.
SEPARATE = ALIKE + UNEVEN + UNLIKE + ITG
DROPTAIL = SEPARATE + SHARED
SBD = "mptcp-sbd"
TRACES = [f"e{n}" for n in range(1, 6)]
CUBIC = [f"{field}.cc=cubic" for field in ("flows.tcp1", "flows.tcp2", "background.0", "background.1")]

# The Linux that the paper ran, and the least ssthresh of the authors' OLIA (Remark 1).
ERA = ["era=linux-3.14"]
FLOOR = ["olia.floor=2"]

# A path is uncongested only if it was in all ten observations, as in the authors' user-space program.
ALWAYS = ["decision.clear_always=on"]

# The throttled links of the real network with short queues.
SHORT = [f"links.isp{n}.queue=100 packets" for n in (1, 2)]

# How unlike bottlenecks are: from those of NSB-n, all with 50 % and one greedy TCP, in tenths of the way to the
# loads, %, and greedy TCPs of NSB-n unlike.
TENTHS = [0, 2, 4, 6, 8, 10]
FAR = [(30, 2), (50, 5), (85, 20), (10, 0), (70, 10)]

# Without the connection under test: it starts as the run ends.
ALONE = ["flows.mptcp.start=139.9 s"]

# The trace experiments plot every single finding: of TR each 5 s, of SSC each 350 ms, none is held.
EACH = [*PAPER, "tr.hold_s=1", *(f"decision.{field}=1" for field in ("observations", "together", "every"))]

# A comparison: its folder, scenarios, controls, signals (none: those of the scenarios), settings.
Cell = namedtuple("Cell", "name scenarios controls signals settings", defaults=((), ()))


def signals_of(suffix):
    """The signals of a table of MPTCP-SBD's: all of Table II, two of the others."""
    return SIGNALS[: 2 if suffix else 4]


def on_the_way(tenths):
    """Loads, %, and greedy TCPs of five bottlenecks so far from alike."""
    loads, flows = zip(*FAR)
    greedy = [int(1 + (count - 1) * tenths / 10 + 0.5) for count in flows]
    return [f"{50 + (load - 50) * tenths / 10:g}" for load in loads], greedy


def kinds(suffix):
    """The scenarios of a table of MPTCP-SBD's."""
    return [kind + suffix for kind in KINDS] if suffix else DROPTAIL


def cells():
    """All comparisons that the tables are made of."""
    for suffix in ("", "-red", "-rtt"):
        scenarios = kinds(suffix)
        yield Cell(f"sbd{suffix}", scenarios, [SBD], signals_of(suffix))
        yield Cell(f"none{suffix}", scenarios, [SBD], settings=["decision.clear=none"])
        yield Cell(f"era{suffix}", scenarios, [SBD], settings=ERA)
    yield Cell("always-red", kinds("-red"), [SBD], settings=ALWAYS)
    for tenths in TENTHS:
        loads, greedy = on_the_way(tenths)
        for paths in (2, 5):
            offered = ", ".join(f'"{load} %"' for load in loads[:paths])
            settings = [f"background.offered=[{offered}]", f"background.greedy={greedy[:paths]}"]
            controls = [SBD, "olia+xcorr"]
            yield Cell(f"unlike-{paths}-{tenths}", [f"sbd/nsb-{paths}"], controls, SIGNALS[:1], settings)
    yield Cell("laws", DROPTAIL, ["reno", "lia", "olia", "balia"])
    yield Cell("era-laws", DROPTAIL, ["reno", "lia", "olia", "balia"], settings=ERA)
    yield Cell("alone", SEPARATE, ["reno"], settings=ALONE)
    yield Cell("rfc8382", KINDS, [SBD], settings=["ssc.preset=rfc8382"])
    yield Cell("full", KINDS, ["reno+ssc", "lia+ssc"], settings=PAPER)
    yield Cell("lia", KINDS, ["ssc-lia", "tr-lia"])
    shifting = ["sbd/shifting-30", "sbd/shifting-60", "sbd/realnet-shifting"]
    yield Cell("shifting", shifting, [SBD], SIGNALS[:2])
    real = ["sbd/realnet-nsb", *(f"sbd/realnet-sb-{n}" for n in range(2, 6))]
    yield Cell("realnet", real, ["reno", "olia", SBD])
    yield Cell("realnet-100", real[:1], ["reno", "olia", SBD], settings=SHORT)
    yield Cell("realnet-100-none", real[:1], [SBD], settings=[*SHORT, "decision.clear=none"])
    shared = [f"tr/{trace}{queue}" for trace in TRACES for queue in ("", "-red")]
    apart = [f"tr/{trace}{kind}" for trace in TRACES for kind in ("-apart", "-unequal")]
    yield Cell("traces-reno", shared, ["reno+tr", "reno+ssc"], settings=EACH)
    yield Cell("traces-cubic", shared, ["cubic+tr", "cubic+ssc"], settings=EACH + CUBIC)
    systems = ["reno", "ssc-lia", "tr-lia"]
    yield Cell("apart", apart, systems)
    yield Cell("together", shared[::2], systems)
    yield Cell("srtt", apart + shared[::2], ["tr-lia"], ["srtt"])
    yield Cell("floor", SHARED, ["olia"], settings=FLOOR)
    yield Cell("era-floor", SHARED, ["olia"], settings=ERA + FLOOR)


# --- Running ---------------------------------------------------------------------------------------------


def run(narrows, cell, seeds, out):
    """Runs the comparison."""
    call = ["compare", *cell.scenarios, "--cc", ",".join(cell.controls), "--seeds", str(seeds)]
    if cell.signals:
        call += ["--signal", ",".join(cell.signals)]
    for setting in cell.settings:
        call += ["--set", setting]
    comparisons.run(narrows, out / cell.name, call, f"{cell.name}: {len(cell.scenarios)} scenarios, {seeds} seeds")


# --- Results ---------------------------------------------------------------------------------------------


class Results:
    """What the comparisons left in their folders. `need` runs a comparison, by its name, that is missing there."""

    def __init__(self, out, need):
        self.out = out
        self.need = cache(need)
        self.kept = {}

    def row(self, cell, scenario, control, signal=None):
        """The row of `rows.json`."""
        self.need(cell)
        if cell not in self.kept:
            rows = json.loads((self.out / cell / "rows.json").read_text())["rows"]
            self.kept[cell] = {(r["scenario"], r["cc"], r.get("signal")): r for r in rows}
        return self.kept[cell][scenario, control, signal]

    def mean(self, field, *which):
        """Mean over the seeds of a metric of a row."""
        return self.row(*which)[field]["mean"]

    def interval(self, field, *which):
        """Mean over the seeds of a metric of a row, with its 95 % interval."""
        value = self.row(*which)[field]
        return f"{value['mean']:.2f} ± {value['ci95'] or 0:.2f}"

    def ratio(self, *which):
        return f"{self.mean('ratio_to_tcp', *which):.2f}"

    def runs(self, cell, scenario, control, signal=None):
        """The summary of each seed, and the decisions if it has a detector."""
        self.need(cell)
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


@cache
def published():
    """The paper's share of decisions by number of groups, by table and scenario."""
    with PUBLISHED.open() as lines:
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return {
            row["scenario"]: [float(row[f"groups_{n}"]) for n in range(1, 6) if row[f"groups_{n}"]]
            for row in rows
        }


def theirs(scenario):
    """The same for a scenario; the paper's are of one family of separate bottlenecks."""
    return published()[re.sub(r"-(uneven|unlike|itg)", "", scenario)]


# --- Tables ----------------------------------------------------------------------------------------------


def spread(value):
    """A share with its 95 % interval, in percent."""
    if value is None:
        return "-"
    return f"{100 * value['mean']:.0f} ± {100 * (value['ci95'] or 0):.0f}"


def label(scenario):
    """sbd/nsb-2-uneven-red: NSB-2 uneven."""
    kind, paths, *family = re.sub(r"-(red|rtt)$", "", scenario.removeprefix("sbd/")).split("-")
    return " ".join([f"{kind.upper()}-{paths}", *family])


def right_groups(scenario):
    return int(scenario.split("-")[1]) if "/nsb" in scenario else 1


def accuracy(results, suffix):
    """A table of the paper next to ours; bold: more than 5 points below."""
    signals = signals_of(suffix)
    variants = [(f"sbd{suffix}", signals[0]), (f"none{suffix}", None), (f"era{suffix}", None)]
    names = ["receiver-us", "uncongested alone", "Linux 3.14"]
    if suffix == "-red":
        variants.append(("always-red", None))
        names.append("uncongested in 10 of 10")
    variants += [(f"sbd{suffix}", signal) for signal in signals[1:]]
    rows = []
    for scenario in kinds(suffix):
        paper = theirs(scenario)[right_groups(scenario) - 1]
        row = [label(scenario), f"{100 * paper:.0f}"]
        for cell, signal in variants:
            which = (cell, scenario, SBD, signal)
            ours = results.row(*which)["accuracy"]
            low = ours is None or ours["mean"] < paper - 0.05
            text = f"**{spread(ours)}**" if low else spread(ours)
            row.append(f"{text} ({results.ratio(*which)})")
        rows.append(row)
    return table(["accuracy, % (ratio)", "paper", *names, *signals[1:]], rows)


def unlikeness(results):
    """How unlike bottlenecks must be to be told apart."""
    rows = []
    for tenths in TENTHS:
        loads, greedy = on_the_way(tenths)
        row = [f"{tenths / 10:.1f}", " ".join(loads), " ".join(map(str, greedy))]
        for control in (SBD, "olia+xcorr"):
            for paths in (2, 5):
                which = (f"unlike-{paths}-{tenths}", f"sbd/nsb-{paths}", control, SIGNALS[0])
                row.append(spread(results.row(*which)["accuracy"]))
        rows.append(row)
    names = [f"{name}, NSB-{paths}" for name in ("ssc", "xcorr") for paths in (2, 5)]
    return table(["unlikeness", "loads, %", "greedy TCPs", *names], rows)


def groups_with_one_for_clear(summary, decisions):
    """How many groups each decision after the warm-ups found, if all that are not congested are one."""
    counting = [d for d in decisions if float(d["time_s"]) >= 20 and not d["undecided"]]
    return [len(d["groups"].split()) + bool(d["uncongested"]) for d in counting]


def full(results):
    """The same detector where no coupling makes paths thin."""
    rows = []
    for scenario in KINDS:
        both = [("full", scenario, "reno+ssc", None), ("sbd", scenario, SBD, "receiver-us")]
        row = [label(scenario), *(spread(results.row(*which)["accuracy"]) for which in both)]
        for field in ("false_merge_rate", "false_split_rate"):
            row += [percent(results.share(field, *which)) for which in both]
        rows.append(row)
    names = ["accuracy, %", "reno+ssc", SBD]
    return table(names + [f"{what}, {law}" for what in ("merged", "split") for law in ("reno", SBD)], rows)


def groups(results, suffix):
    """How many groups were found, theirs and ours at the receiver."""
    rows = []
    for scenario in kinds(suffix):
        which = (f"sbd{suffix}", scenario, SBD, "receiver-us")
        cells = [" ".join(map(percent, theirs(scenario)))]
        cells.append(" ".join(map(percent, results.shares("groups_hist", *which))))
        for field in ("false_merge_rate", "false_split_rate", "uncongested_share", "undecided_share"):
            cells.append(percent(results.share(field, *which)))
        counts = [count for run in results.runs(*which) for count in groups_with_one_for_clear(*run)]
        cells.append(percent(mean(count == right_groups(scenario) for count in counts) if counts else None))
        rows.append([label(scenario), *cells])
    names = ["1, 2, .. groups, %", "paper", "ours", "merged", "split", "not congested", "undecided"]
    return table([*names, "right, those as one group"], rows)


def alone(results):
    """The single-path TCPs by themselves: what stands behind the uneven family."""
    rows = []
    for scenario in SEPARATE:
        found = {}
        for summary, _ in results.runs("alone", scenario, "reno"):
            for connection in summary["connections"]:
                if connection["name"].startswith("tcp"):
                    found.setdefault(connection["name"], []).append(connection["goodput_mbps"])
        rates = [mean(rates) for _, rates in sorted(found.items())]
        rows.append([label(scenario), f"{rates[0]:.1f}", " : ".join(f"{rate / rates[0]:.2f}" for rate in rates)])
    return table(["", "TCP1 alone, Mbit/s", "TCP1 : TCP2 : .."], rows)


def coupled(results):
    """Figure 2: the laws, by path and in all; medians, as the paper has them."""
    rows = []
    published = {"NSB-2": "0.70 0.45, 0.6", "NSB-5": "below 0.4"}
    families = (ALIKE, UNEVEN, UNLIKE, ITG)
    for scenario in [*(family[n] for n in (0, 3) for family in families), SHARED[0], SHARED[3]]:
        name = label(scenario)
        row = [name, published.get(name.split()[0], "close to 1")]
        for cell in ("laws", "era-laws"):
            for law in ("reno", "lia", "olia", "balia"):
                found = results.row(cell, scenario, law)
                median_of = lambda part: f"{part['ratio_to_tcp']['median']:.2f}"
                by_path = law != "reno" and "nsb-2" in scenario
                paths = [median_of(path) for path in found["paths"]] if by_path else []
                row.append(", ".join([" ".join(paths), median_of(found)]) if paths else median_of(found))
        rows.append(row)
    laws = ["reno", "lia", "olia", "balia"]
    return table(["ratio", "paper", *laws, *(f"{law}, 3.14" for law in laws)], rows)


def observations(results):
    """Figure 4: how many of a decision's ten observations are right."""
    rows = []
    for scenario in DROPTAIL:
        row = [label(scenario), {"N": 45, "S": 90}[label(scenario)[0]]]
        for cell, signal in (("sbd", "receiver-us"), ("sbd", "sender-us"), ("era", None)):
            shares = results.shares("correct_observations_hist", cell, scenario, SBD, signal)
            parts = [shares[10], sum(shares[5:10]), sum(shares[1:5]), shares[0]] if shares else []
            row.append(" / ".join(map(percent, parts)))
        rows.append(row)
    return table(["10 / 5-9 / 1-4 / 0 right, %", "paper, 10", *SIGNALS[:2], "Linux 3.14"], rows)


def gains(results):
    """Figure 5: what is taken from TCP, and what that gains over OLIA."""
    rows = []
    # Of the paper's coupled laws near 0.6 and below 0.4, and its gains; from two bounds follows no level.
    published = {"NSB-2": "0.6, up to +40 %", "NSB-5": "< 0.4, > +100 %", "SB": "1, a little more"}
    for scenario in DROPTAIL:
        name = label(scenario).split()[0]
        row = [label(scenario), published.get(name, published.get(name.split("-")[0], ""))]
        for prefix, signal in (("", "receiver-us"), ("era-", None)):
            laws, cell = f"{prefix}laws", prefix.strip("-") or "sbd"
            olia = results.mean("goodput_mbps", laws, scenario, "olia")
            which = (cell, scenario, SBD, signal)
            gain = results.mean("goodput_mbps", *which) / olia - 1
            row += [results.ratio(laws, scenario, law) for law in ("reno", "olia")]
            row.append(f"{results.interval('ratio_to_tcp', *which)} ({100 * gain:+.0f} %)")
        rows.append(row)
    names = ["reno", "olia", f"{SBD} (gain)"]
    return table(["ratio", "paper", *names, *(f"{name}, 3.14" for name in names)], rows)


def uncoupled(results):
    """LIA with each detector: what it gets, and how right that is."""
    rows = []
    for scenario in KINDS:
        row = [label(scenario), results.ratio("laws", scenario, "lia")]
        for cell, control in (("full", "lia+ssc"), ("lia", "ssc-lia"), ("lia", "tr-lia")):
            which = (cell, scenario, control)
            row.append(f"{results.ratio(*which)} ({spread(results.row(*which)['accuracy'])})")
        rows.append(row)
    names = ["lia+ssc (receiver-us)", "ssc-lia (srtt)", "tr-lia (rtt)"]
    return table(["ratio (accuracy, %)", "lia", *names], rows)


def presets(results):
    """The parameters of the paper and of the RFC."""
    rows = []
    for scenario in KINDS:
        row = [label(scenario)]
        for cell, signal in (("sbd", "receiver-us"), ("rfc8382", None)):
            which = (cell, scenario, SBD, signal)
            row.append(f"{spread(results.row(*which)['accuracy'])} ({results.ratio(*which)})")
        rows.append(row)
    return table(["accuracy, % (ratio)", "Table I", "RFC 8382"], rows)


Shift = namedtuple("Shift", "delays phases after")


def shifts(results, scenario, signal):
    """What came after each shift towards a shared and towards separate bottlenecks."""
    kinds = {"SB": Shift([], [], []), "NSB": Shift([], [], [])}
    for summary, decisions in results.runs("shifting", scenario, SBD, signal):
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
                parts = quantiles(shift.delays, n=4, method="inclusive") if seen > 1 else []
                row += [f"{mean(shift.delays):.1f}" if seen else "-"]
                row += [f"{part:.1f}" for part in [min(shift.delays), *parts, max(shift.delays)]] if parts else ["-"] * 5
                row.append(percent(mean(shift.after)) if seen else "-")
                rows.append(row)
    names = ["scenario", "signal", "shift to", "seen", "delay, mean s", "least", "25 %", "median", "75 %", "most"]
    return table([*names, "right afterwards, %"], rows)


def progress(results):
    """Figure 7: right observations in a decision's window, by the time since the shift."""
    steps = [3.5 * n for n in range(9)]
    rows = []
    for signal in SIGNALS[:2]:
        for name, parity in (("SB", 0), ("NSB", 1)):
            found = [[] for _ in steps[1:]]
            for summary, decisions in results.runs("shifting", "sbd/shifting-30", SBD, signal):
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
    """Section V-A and V-B, Figure 10."""
    paper = {
        "sbd/realnet-nsb": ("70", "+20 %, reno +25 %"),
        "sbd/realnet-sb-2": ("91", "about 0"),
        "sbd/realnet-sb-3": ("", "a little"),
        "sbd/realnet-sb-4": ("", "a little"),
        "sbd/realnet-sb-5": ("about 85", "a little"),
    }
    # The cell of the system, that of the laws beside it, the scenario, and how it differs.
    nsb = "sbd/realnet-nsb"
    cells = [
        ("realnet-100", "realnet-100", nsb, ", 100 packets"),
        ("realnet-100-none", "realnet-100", nsb, ", 100 packets, uncongested alone"),
        ("realnet", "realnet", nsb, ", 1000 packets"),
        *(("realnet", "realnet", scenario, "") for scenario in list(paper)[1:]),
    ]
    rows = []
    for cell, laws, scenario, queue in cells:
        which = (cell, scenario, SBD)
        sbd = results.mean("goodput_mbps", *which)
        olia, reno = (results.mean("goodput_mbps", laws, scenario, law) for law in ("olia", "reno"))
        row = [scenario + queue, paper[scenario][0], spread(results.row(*which)["accuracy"])]
        row += [percent(results.share("uncongested_share", *which)), paper[scenario][1], f"{olia:.1f}"]
        rows.append([*row, f"{100 * (sbd / olia - 1):+.0f} %", f"{100 * (reno / olia - 1):+.0f} %"])
    names = ["scenario", "accuracy, paper", "ours, %", "not congested, %", "gain over OLIA, paper"]
    return table([*names, "olia, Mbit/s", f"gain, {SBD}", "gain, reno"], rows)


def first(results, cell, scenario, control):
    """Seconds until the first positive: median over the seeds; none: in more than half there was none."""
    never = float("inf")
    found = [phase["first_correct_s"] for phase in results.phases(cell, scenario, control)]
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
                    right = results.row(cell, scenario, f"{law}+{detector}")["accuracy"]
                    row += [f"{time:.1f}" if time else "never", percent(right and right["mean"])]
                rows.append(row)
    names = ["", "queue", "law", "tr, first s", "right, %", "ssc, first s", "right, %"]
    return table(names, rows) + f"\nTR is first in {earlier} of {all_of_them}.\n"


def positives(results, kind):
    """False positives on separate bottlenecks, and what that costs."""
    rows = []
    for trace in TRACES:
        scenario = f"tr/{trace}-{kind}"
        row = [trace.upper()]
        held = [("apart", "ssc-lia", None), ("apart", "tr-lia", None), ("srtt", "tr-lia", "srtt")]
        for cell, control, signal in held:
            row.append(percent(results.share("false_merge_rate", cell, scenario, control, signal)))
        for cell, control, signal in [("apart", "reno", None), *held]:
            row.append(results.interval("ratio_to_best", cell, scenario, control, signal))
        rows.append(row)
    names = ["", *(f"{name}, %" for name in SYSTEMS)]
    return table([*names, *(f"R {name}" for name in ("reno", *SYSTEMS))], rows)


# The systems of the trend-line paper, with what their detectors sample.
SYSTEMS = ["ssc-lia", "tr-lia (rtt)", "tr-lia (srtt)"]


def fairness(results):
    """Shared bottlenecks: its Jain's index, and the ratio."""
    rows = []
    for trace in TRACES:
        row = [trace.upper()]
        runs = [("together", control, None) for control in ("reno", "ssc-lia", "tr-lia")]
        for cell, control, signal in [*runs, ("srtt", "tr-lia", "srtt")]:
            which = (cell, f"tr/{trace}", control, signal)
            row.append(f"{results.mean('jain_mean', *which):.3f} ({results.ratio(*which)})")
        rows.append(row)
    return table(["J (ratio)", "reno", *SYSTEMS], rows)


def floor(results):
    """Remark 1: the least ssthresh of OLIA."""
    rows = []
    for scenario in SHARED:
        builds = ("laws", "floor", "era-laws", "era-floor")
        rows.append([label(scenario), *(results.interval("ratio_to_tcp", cell, scenario, "olia") for cell in builds)])
    return table(["ratio", "1 packet", "2 packets", "1, Linux 3.14", "2, Linux 3.14"], rows)


TABLES = {
    "II": lambda results: accuracy(results, ""),
    "III": lambda results: accuracy(results, "-red"),
    "IV": lambda results: accuracy(results, "-rtt"),
    "II groups": lambda results: groups(results, ""),
    "III groups": lambda results: groups(results, "-red"),
    "IV groups": lambda results: groups(results, "-rtt"),
    "unlikeness": unlikeness,
    "full": full,
    "observations": observations,
    "gains": gains,
    "coupled": coupled,
    "alone": alone,
    "presets": presets,
    "shifting": shifting,
    "progress": progress,
    "real": real,
    "lia": uncoupled,
    "traces": traces,
    "fairness": fairness,
    "positives": lambda results: positives(results, "apart"),
    "positives unequal": lambda results: positives(results, "unequal"),
    "floor": floor,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=LEAST, help=f"at least {LEAST}")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} seeds, and the document in DIR")
    parser.add_argument("--out", type=Path)
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--check", action="store_true", help="fail if a table of the document differs")
    only.add_argument("--table", choices=TABLES, metavar="NAME", help=f"print one of {', '.join(TABLES)}")
    options = parser.parse_args()
    if options.seeds < LEAST:
        parser.error(f"--seeds: expected at least {LEAST}; --quick (make detection-quick) has {QUICK}")
    out = options.out or HOME / ("out/detection-quick" if options.quick else "out/detection")
    text = comparisons.read(DOCUMENT, TABLES)
    narrows = comparisons.build()
    by_name = {cell.name: cell for cell in cells()}
    seeds = QUICK if options.quick else options.seeds
    results = Results(out, lambda name: run(narrows, by_name[name], seeds, out))
    if options.table:
        print(TABLES[options.table](results))
        return
    for name in by_name:
        results.need(name)
    for name, make in TABLES.items():
        text = comparisons.replaced(text, name, make(results))
    figures.write(results, out / "figures", DROPTAIL, shifts)
    comparisons.write(DOCUMENT, text, out, options.quick, options.check)


if __name__ == "__main__":
    main()
