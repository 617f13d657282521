#!/usr/bin/env python3
"""Regenerates the tables of docs/nornet.md: six controls over three by two providers, and the claims of its paper.

    experiments/nornet/tables.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build begins anew), then rewrites
the tables. --quick has 5 seeds and writes the document with its tables to DIR. --narrows takes a command that is
built already. --check leaves the document alone and fails if a table differs.
"""

import sys
from math import inf
from pathlib import Path
from statistics import mean

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "experiments/detection"))
import comparisons
from comparisons import SAFE, interval, table

DOCUMENT = HOME / "docs/nornet.md"
SCENARIO = "nornet/mesh"
# The paper's "repeated 50 times"; what else differs from it has fewer.
SEEDS = {False: 50, True: 5}
FEW = {False: 10, True: 3}
# One TCP has no scheduler.
TCPS = {"3.14": ["era=linux-3.14"], "today": []}
OLD = [*TCPS["3.14"], "flows.mptcp.scheduler=mptcp-v0.89"]
ERAS = {"3.14": TCPS["3.14"], "3.14, v0.89": OLD, "today": []}
UNCOUPLED, COUPLED = ["cubic", "reno"], ["balia", "lia", "olia", "wvegas"]
PUBLISHED, OURS = UNCOUPLED + COUPLED, ["greno+xcorr", "gcubic+xcorr"]
# ADSL first, as in the paper's figures.
ADSL = ["path3-2", "path3-1", "path2-2", "path2-1"]
FIBRE = ["path1-2", "path1-1"]
PAIRS = ADSL + FIBRE
FROM, TO = ["Uninett", "Telenor", "PowerTech"], ["Uninett", "BKK"]
NAMES = {f"path{m}-{n}": f"{client}-{server}" for m, client in enumerate(FROM, 1) for n, server in enumerate(TO, 1)}
# "Slightly", "about", "no difference".
SLIGHTLY = 0.1


def routes(pairs):
    return f"flows.mptcp.routes={list(pairs)}".replace("'", '"')


def opened_over(pair):
    return routes([pair, *(one for one in PAIRS if one != pair)])


class Runs(comparisons.Runs):
    def of(self, place, controls, settings, seeds):
        return self.summaries(Path(*place), SCENARIO, controls, settings, seeds[self.options.quick])

    def tcp(self, era, pair):
        """One TCP over a pair."""
        era = era.split(",")[0]
        alone = ["flows.mptcp.kind=tcp", routes([pair]), f'phases=[{{start="0 s", groups=[["{pair}"]]}}]']
        return self.of((era, "tcp", pair), PUBLISHED, [*TCPS[era], *alone], SEEDS)

    def first(self, era, pair):
        """The connection, opened over a pair."""
        settings = [*ERAS[era], opened_over(pair), 'detection.passive=["xcorr"]']
        return self.of((era.translate(SAFE), "first", pair), PUBLISHED + OURS, settings, SEEDS)

    def other(self, settings):
        """The connection in a network that differs."""
        place = "other", "-".join(settings).translate(SAFE) or "as-is"
        return self.of(place, PUBLISHED + OURS, [*OLD, opened_over("path1-1"), *settings], FEW)


# --- Figures ---------------------------------------------------------------------------------------------


def goodput(summary):
    return summary["test"]["goodput_mbps"]


def goodputs(summaries):
    return [goodput(one) for one in summaries]


def ratios(above, below):
    """By seed: the same background."""
    return [one / other for one, other in zip(above, below, strict=True)]


def averages(lists):
    """By seed, the mean of some lists."""
    return [mean(values) for values in zip(*lists, strict=True)]


def text(values, digits=1):
    middle, half = interval(values)
    return f"{middle:.{digits}f} ±{half:.{digits}f}"


# --- Verdicts --------------------------------------------------------------------------------------------


def judge(cells, least, most, needed):
    """Over cells, each with the values of its runs: whether enough of them are from `least` to `most`."""
    inside = above = below = 0
    for values in cells:
        middle, half = interval(values)
        inside += least <= middle - half and middle + half <= most
        above += middle - half > most
        below += middle + half < least
    need = len(cells) if needed == "all" else len(cells) // 2 + 1
    if inside >= need:
        verdict = "reproduced"
    elif len(cells) - above - below >= need:
        verdict = "cannot be told"
    else:
        verdict = "better" if above > below else "worse"
    return f"{verdict} ({inside} of {len(cells)})"


# --- Tables ----------------------------------------------------------------------------------------------


def figure_2(runs, era):
    rows = []
    for control in PUBLISHED:
        cells = [text(goodputs(runs.tcp(era, pair)[control]), 3 if pair in ADSL else 2) for pair in PAIRS]
        rows.append([control, *cells])
    return table(["control", *(NAMES[pair] for pair in PAIRS)], rows)


def figures_3_and_4(runs, era):
    rows = []
    for control in PUBLISHED + OURS:
        cells = [goodputs(runs.first(era, pair)[control]) for pair in PAIRS]
        sides = [averages(cells[: len(ADSL)]), averages(cells[len(ADSL) :])]
        rows.append([control, *(text(cell) for cell in cells), text(ratios(*sides), 2)])
    return table(["control", *(f"{NAMES[pair]} first" for pair in PAIRS), "ADSL / fibre first"], rows)


def of_paths(name, pairs):
    """The sum of a figure of the paths over some pairs."""

    def of(summary):
        test = next(one for one in summary["connections"] if one["name"] == "mptcp")
        return sum(path[name] for path in test["paths"] if path["name"] in pairs)

    return of


def waits(summary):
    test = next(one for one in summary["connections"] if one["name"] == "mptcp")
    return test["head_of_line"]["p95_ms"]


def queue(link):
    return lambda summary: next(one for one in summary["links"] if one["name"] == link)["mean_queue_ms"]


def where(runs, era):
    """Where the data went, opened over the fibres of Uninett."""
    figures = [
        ("to Uninett, Mbit/s", of_paths("goodput_mbps", ["path1-1"]), 1),
        ("to BKK, Mbit/s", of_paths("goodput_mbps", ["path1-2"]), 1),
        ("ADSL, Mbit/s", of_paths("goodput_mbps", ADSL), 2),
        ("retx, fibre", of_paths("retransmits", FIBRE), 0),
        ("retx, ADSL", of_paths("retransmits", ADSL), 0),
        ("queue at BKK, ms", queue("server2"), 0),
        ("data waits, p95, ms", waits, 0),
    ]
    rows = []
    for control in PUBLISHED + OURS:
        of = runs.first(era, "path1-1")[control]
        rows.append([control, *(text([figure(one) for one in of], digits) for _, figure, digits in figures)])
    return table(["control", *(name for name, _, _ in figures)], rows)


def over_pairs(found, control, figure):
    """By seed, the mean of a figure over first pairs."""
    return averages([[figure(one) for one in each[control]] for each in found])


DETECTED = {
    "accuracy, %": lambda one: 100 * (one["test"]["accuracy"] or 0),
    "pairs right, %": lambda one: 100 * one["passive"][0]["right"],
    "wrong, %": lambda one: 100 * one["passive"][0]["wrong"],
    "unsure, %": lambda one: 100 * one["passive"][0]["unsure"],
}


def detector(runs):
    """What `xcorr` found, and what it gains."""
    rows = []
    for era in ERAS:
        found = [runs.first(era, pair) for pair in PAIRS]
        for control in OURS:
            own = over_pairs(found, control, goodput)
            # The law alone, uncoupled: Reno or CUBIC.
            laws = [control.split("+")[0][1:], "lia", "olia", "balia"]
            gains = [text(ratios(own, over_pairs(found, law, goodput)), 2) for law in laws]
            shares = [text(over_pairs(found, control, figure), 0) for figure in DETECTED.values()]
            rows.append([control, era, *shares, *gains])
    return table(["control", "Linux", *DETECTED, "/ uncoupled", "/ lia", "/ olia", "/ balia"], rows)


def adsl_queue(value):
    return [f"links.{line}.queue={value}" for line in ("client2", "client3")]


def uib(field, value):
    return [f"links.{link}.{field}={value}" for link in ("server1", "server2")]


def buffers(value):
    return [f"flows.mptcp.{end}_buffer={value}" for end in ("send", "recv")]


OTHERS = {
    "as it is": [],
    "buffers of 400 KiB": buffers("400 KiB"),
    "buffers of 16 MiB": buffers("16 MiB"),
    "ADSL with a queue of 50 packets": adsl_queue("50 packets"),
    "the same, buffers of 16 MiB": [*adsl_queue("50 packets"), *buffers("16 MiB")],
    "UiB's queues of 22 ms": uib("queue", "22 ms"),
    "0.1 % of loss to UiB": uib("loss", "0.1 %"),
    "both fibres before ADSL": [routes([*reversed(FIBRE), *reversed(ADSL)])],
    "scheduler `min-rtt`": ["flows.mptcp.scheduler=min-rtt"],
    "scheduler `linux`": ["flows.mptcp.scheduler=linux"],
    "no ADSL": [routes(FIBRE), f"phases=[{{start='0 s', groups={[[pair] for pair in FIBRE]}}}]"],
}


def others(runs):
    rows = []
    for name, settings in OTHERS.items():
        found = runs.other(settings)
        rows.append([name, *(text(goodputs(found[control])) for control in PUBLISHED + OURS)])
    return table(["", *PUBLISHED, *OURS], rows)


def claims(runs):
    """The text's claims: its place, what, the cells of an era, from, to, in how many of them."""

    def tcp(era, control, pair):
        return goodputs(runs.tcp(era, pair)[control])

    def first(era, control, pair):
        return goodputs(runs.first(era, pair)[control])

    def each(figure, controls, pairs):
        return lambda era: [figure(era, control, pair) for control in controls for pair in pairs]

    def lowest(era, controls, pair, of=min):
        return [of(values) for values in zip(*(first(era, control, pair) for control in controls), strict=True)]

    def to_reno(era, control, pair):
        return ratios(tcp(era, control, pair), tcp(era, "reno", pair))

    def aggregated(era, control, pair):
        best = [max(values) for values in zip(*(tcp(era, control, one) for one in FIBRE), strict=True)]
        return ratios(first(era, control, pair), best)

    def of_sum(era, control, pair):
        # A line each: both pairs over it are the same to one TCP.
        lines = [*FIBRE, "path2-2", "path3-2"]
        total = [sum(values) for values in zip(*(tcp(era, control, one) for one in lines), strict=True)]
        return ratios(first(era, control, pair), total)

    def adsl_first(era, control, _):
        return ratios(*(averages([first(era, control, pair) for pair in pairs]) for pairs in (ADSL, FIBRE)))

    def cubic(era, _, pair):
        return ratios(first(era, "cubic", pair), first(era, "reno", pair))

    def wvegas(era, _, pair):
        return ratios(first(era, "wvegas", pair), lowest(era, COUPLED[:3], pair))

    def winner(era, _, pair):
        means = {law: mean(first(era, law, pair)) for law in COUPLED[:3]}
        worst, best = min(means, key=means.get), max(means, key=means.get)
        return ratios(first(era, worst, pair), first(era, best, pair))

    def coupled(era, _, pair):
        both = (averages([first(era, control, pair) for control in controls]) for controls in (COUPLED, UNCOUPLED))
        return ratios(*both)

    judged = [
        ("V-A: with one path all controls as Reno", each(to_reno, PUBLISHED, PAIRS), 1 - SLIGHTLY, 1 + SLIGHTLY, "all"),
        ("V-B: uncoupled, 20 to 27 Mbit/s, whatever pair is first", each(first, UNCOUPLED, PAIRS), 20, 27, "all"),
        ("uncoupled, the sum of the links", each(of_sum, UNCOUPLED, PAIRS), 1 - SLIGHTLY, inf, "all"),
        ("V-B: uncoupled, ADSL first slightly less than fibre first", each(adsl_first, UNCOUPLED, [None]), 1 - SLIGHTLY, 1, "all"),
        ("V-B: CUBIC slightly more than Reno", each(cubic, [None], PAIRS), 1, 1 + SLIGHTLY, "most"),
        ("V-C: coupled, more than TCP over the best pair", each(aggregated, COUPLED, PAIRS), 1, inf, "all"),
        ("V-C: wVegas the lowest of the coupled", each(wvegas, [None], PAIRS), 0, 1, "most"),
        ("V-C: Balia, LIA, OLIA without a winner", each(winner, [None], PAIRS), 1 - SLIGHTLY, 1 + SLIGHTLY, "all"),
        ("V-C: coupled slightly less than uncoupled", each(coupled, [None], PAIRS), 1 - SLIGHTLY, 1, "most"),
    ]
    rows = []
    for claim, cells, least, most, needed in judged:
        rows.append([claim, needed, *(judge(cells(era), least, most, needed) for era in ERAS)])
    return table(["claim", "cells", *ERAS], rows)


TABLES = {"claims": claims}
TABLES |= {f"figure 2, {era}": lambda runs, era=era: figure_2(runs, era) for era in TCPS}
TABLES |= {f"figures 3 and 4, {era}": lambda runs, era=era: figures_3_and_4(runs, era) for era in ERAS}
TABLES |= {f"where, {era}": lambda runs, era=era: where(runs, era) for era in ERAS}
TABLES |= {"others": others, "detector": detector}


if __name__ == "__main__":
    comparisons.remake(__doc__, "5 seeds", "nornet", DOCUMENT, TABLES, Runs)
