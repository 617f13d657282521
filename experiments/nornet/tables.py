#!/usr/bin/env python3
"""Regenerates the tables of docs/nornet.md: six controls over three by two providers, and the claims of its paper.

    experiments/nornet/tables.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build begins anew), then rewrites
the tables. --quick has 5 seeds and writes the document with its tables to DIR. --narrows takes a command that is
built already. --check leaves the document alone and fails if a table differs.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
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
# "Once all subflows are established": from then on.
LATER = ["warmup=10 s", "duration=50 s"]
# The map: buffers; queues of ADSL, and loss to UiB; its first pairs.
BUFFERS = ["800 KiB", "1600 KiB", "3200 KiB", "6400 KiB", "16 MiB"]
ROWS = [(queue, None) for queue in ("100 ms", "200 ms", "500 ms", "2600 ms")]
ROWS += [("200 ms", loss) for loss in ("0.01 %", "0.03 %", "0.1 %")]
ONE_OF_EACH = ["path3-1"], ["path1-1"]


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

    def later(self, era, pair):
        """The same once all subflows are up: what counts begins later."""
        settings = [*ERAS[era], opened_over(pair), *LATER]
        return self.of((era.translate(SAFE), "later", pair), UNCOUPLED, settings, SEEDS)

    def other(self, settings):
        """The connection in a network that differs."""
        place = "other", "-".join(settings).translate(SAFE) or "as-is"
        return self.of(place, PUBLISHED + OURS, [*OLD, opened_over("path1-1"), *settings], FEW)

    def cell(self, size, row, pair, later=False):
        """The published controls on the paper's Linux in a cell of the map, opened over a pair."""
        queue, loss = row
        place = "map", f"{size}-{queue}-{f'{loss}-' if loss else ''}{pair}{'-later' if later else ''}".translate(SAFE)
        lossy = uib("loss", loss) if loss else []
        settings = [*OLD, opened_over(pair), *buffers(size), *adsl_queue(queue), *lossy, *(LATER if later else [])]
        return self.of(place, UNCOUPLED if later else PUBLISHED, settings, FEW)


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


REINJECT = "flows.mptcp.scheduler=mptcp-v0.89-reinject"
OTHERS = {
    "as it is": [],
    "buffers of 400 KiB": buffers("400 KiB"),
    "buffers of 16 MiB": buffers("16 MiB"),
    "ADSL with a queue of 50 packets": adsl_queue("50 packets"),
    "the same, buffers of 16 MiB": [*adsl_queue("50 packets"), *buffers("16 MiB")],
    "UiB's queues of 22 ms": uib("queue", "22 ms"),
    "0.1 % of loss to UiB": uib("loss", "0.1 %"),
    "both fibres before ADSL": [routes([*reversed(FIBRE), *reversed(ADSL)])],
    "reinjection after timeouts": [REINJECT],
    "ADSL first": [opened_over("path3-1")],
    "the same, reinjection after timeouts": [opened_over("path3-1"), REINJECT],
    "ADSL first, then both fibres": [routes(["path3-1", *FIBRE, *(one for one in ADSL if one != "path3-1")])],
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


@dataclass
class Judged:
    """A claim of the text: its place and what, the cells that it is of, from, to, and in how many of them."""

    claim: str
    cells: Callable
    least: float
    most: float
    needed: str

    def verdict(self):
        return judge(self.cells(), self.least, self.most, self.needed)


def judged(tcp, first, later, adsl=ADSL, fibre=FIBRE):
    """The text's claims, of the goodputs of a control and pair, by seed: of one TCP, of the connection opened over the pair,
    and of that once all subflows are up."""

    def each(figure, controls, pairs):
        return lambda: [figure(control, pair) for control in controls for pair in pairs]

    def best_tcp(control):
        return [max(values) for values in zip(*(tcp(control, one) for one in FIBRE), strict=True)]

    def lowest(controls, pair):
        return [min(values) for values in zip(*(first(control, pair) for control in controls), strict=True)]

    def to_reno(control, pair):
        return ratios(tcp(control, pair), tcp("reno", pair))

    def aggregated(control, pair):
        return ratios(first(control, pair), best_tcp(control))

    def of_sum(control, pair):
        # A line each: both pairs over it are the same to one TCP.
        lines = [*FIBRE, "path2-2", "path3-2"]
        total = [sum(values) for values in zip(*(tcp(control, one) for one in lines), strict=True)]
        return ratios(first(control, pair), total)

    def adsl_first(control, _):
        return ratios(*(averages([first(control, pair) for pair in pairs]) for pairs in (adsl, fibre)))

    def once_up(control, pair):
        return ratios(later(control, pair), averages([later(control, one) for one in fibre]))

    def cubic(_, pair):
        return ratios(first("cubic", pair), first("reno", pair))

    def wvegas(_, pair):
        return ratios(first("wvegas", pair), lowest(COUPLED[:3], pair))

    def winner(_, pair):
        means = {law: mean(first(law, pair)) for law in COUPLED[:3]}
        worst, best = min(means, key=means.get), max(means, key=means.get)
        return ratios(first(worst, pair), first(best, pair))

    def coupled(_, pair):
        both = (averages([first(control, pair) for control in controls]) for controls in (COUPLED, UNCOUPLED))
        return ratios(*both)

    pairs = [*adsl, *fibre]
    about = 1 - SLIGHTLY, 1 + SLIGHTLY
    return {
        "a": Judged("V-A: with one path all controls as Reno", each(to_reno, PUBLISHED, pairs), *about, "all"),
        "b": Judged("V-B: uncoupled, 20 to 27 Mbit/s, whatever pair is first", each(first, UNCOUPLED, pairs), 20, 27, "all"),
        "c": Judged("uncoupled, the sum of the links", each(of_sum, UNCOUPLED, pairs), about[0], inf, "all"),
        "d": Judged("V-B: uncoupled, more than TCP over the best pair", each(aggregated, UNCOUPLED, pairs), 1, inf, "all"),
        "e": Judged("V-B: uncoupled, ADSL first slightly less than fibre first", each(adsl_first, UNCOUPLED, [None]), about[0], 1, "all"),
        "f": Judged("V-B: uncoupled, no difference once all subflows are up", each(once_up, UNCOUPLED, adsl), *about, "all"),
        "g": Judged("V-B: CUBIC slightly more than Reno", each(cubic, [None], pairs), 1, about[1], "most"),
        "h": Judged("V-C: coupled, more than TCP over the best pair", each(aggregated, COUPLED, pairs), 1, inf, "all"),
        "i": Judged("V-C: wVegas the lowest of the coupled", each(wvegas, [None], pairs), 0, 1, "most"),
        "j": Judged("V-C: Balia, LIA, OLIA without a winner", each(winner, [None], pairs), *about, "all"),
        "k": Judged("V-C: coupled slightly less than uncoupled", each(coupled, [None], pairs), about[0], 1, "most"),
    }


def of_era(runs, era):
    """The claims, judged on a Linux."""
    of = lambda get: lambda control, pair: goodputs(get(era, pair)[control])
    return judged(of(runs.tcp), of(runs.first), of(runs.later))


def of_cell(runs, size, row):
    """The claims, judged in a cell of the map."""
    few = FEW[runs.options.quick]
    # One TCP needs no more than the least buffer; a queue of ADSL it fills whatever its length.
    tcp = lambda control, pair: goodputs(runs.tcp("3.14", pair)[control])[:few]
    first = lambda control, pair: goodputs(runs.cell(size, row, pair)[control])
    later = lambda control, pair: goodputs(runs.cell(size, row, pair, later=True)[control])
    return judged(tcp, first, later, *ONE_OF_EACH)


def claims(runs):
    found = {era: of_era(runs, era) for era in ERAS}
    rows = []
    for letter, one in found["3.14"].items():
        rows.append([letter, one.claim, one.needed, *(of[letter].verdict() for of in found.values())])
    return table(["", "claim", "cells", *ERAS], rows)


def by_cell(of):
    """A table of queues and losses by buffers."""
    name = lambda queue, loss: f"ADSL {queue}" + (f", {loss} of loss" if loss else "")
    rows = [[name(*row), *(of(size, row) for size in BUFFERS)] for row in ROWS]
    return table(["", *BUFFERS], rows)


def holds(runs):
    """Which claims are reproduced in a cell; not a, which is of one TCP."""

    def of(size, row):
        found = of_cell(runs, size, row)
        return " ".join(letter for letter, one in found.items() if letter != "a" and one.verdict().startswith("reproduced"))

    return by_cell(of)


def spread(controls, cell):
    """From the least to the most of the means of some controls over first pairs."""
    pairs = [*ONE_OF_EACH[0], *ONE_OF_EACH[1]]
    return span([mean(goodputs(cell(pair)[control])) for control in controls for pair in pairs], 1)


# Of the headline, what the map and the table below it show to decide a claim.
DECIDES = {
    "b": "the buffer, and ADSL's queue",
    "d": "the buffer, and ADSL's queue",
    "e": "the order of the subflows, and the buffer",
    "f": "the order of the subflows, and the buffer",
    "g": "loss to UiB, and the buffer",
    "h": "the buffer, and loss to UiB",
    "i": "the buffer, and ADSL's queue",
    "j": "the buffer, and loss to UiB",
    "k": "loss to UiB, and the buffer",
}


def headline(runs):
    """What the paper's abstract and conclusion rest on, on its Linux, and in how many cells of the map, by buffer, it holds."""
    era = "3.14, v0.89"
    found = of_era(runs, era)
    cells = {size: [of_cell(runs, size, row) for row in ROWS] for size in BUFFERS}
    over = lambda controls, pairs: span([mean(goodputs(runs.first(era, pair)[control])) for control in controls for pair in pairs], 1)
    by = lambda letter, digits=2: span([mean(values) for values in found[letter].cells()], digits)
    one = lambda pairs, digits: span([mean(goodputs(runs.tcp(era, pair)[control])) for control in PUBLISHED for pair in pairs], digits)
    lines = [
        ("one TCP over fibre; ADSL, Mbit/s", "12; 0.22", f"{one(FIBRE, 1)}; {one(ADSL, 2)}", None),
        ("uncoupled over 3 by 2 providers, Mbit/s", "20 to 27", over(UNCOUPLED, PAIRS), "b"),
        ("uncoupled, over TCP's best pair", "more", by("d"), "d"),
        ("uncoupled, ADSL over fibre first", "slightly less", by("e"), "e"),
        ("the same once all subflows are up", "as much", by("f"), "f"),
        ("CUBIC over Reno", "slightly more", by("g"), "g"),
        ("coupled, over TCP's best pair", "more", by("h"), "h"),
        ("wVegas over the least other coupled", "lowest in most", by("i"), "i"),
        ("least over most of Balia, LIA, OLIA", "no winner", by("j"), "j"),
        ("coupled over uncoupled", "slightly less", by("k"), "k"),
    ]
    rows = []
    for claim, published, ours, letter in lines:
        if letter is None:
            rows.append(["", claim, published, ours, "set by it", "", *[""] * len(BUFFERS)])
            continue
        held = [sum(cell[letter].verdict().startswith("reproduced") for cell in cells[size]) for size in BUFFERS]
        rows.append([letter, claim, published, ours, found[letter].verdict(), DECIDES[letter], *held])
    names = [f"{size}: of {len(ROWS)}" for size in BUFFERS]
    return table(["", "claim", "published", "ours", "verdict", "what decides it", *names], rows)


def span(values, digits):
    least, most = (f"{of(values):.{digits}f}" for of in (min, max))
    return least if least == most else f"{least} to {most}"


def goodput_map(runs):
    def of(size, row):
        cell = lambda pair: runs.cell(size, row, pair)
        return f"{spread(UNCOUPLED, cell)}; {spread(COUPLED, cell)}"

    return by_cell(of)


TABLES = {"headline": headline, "claims": claims}
TABLES |= {f"figure 2, {era}": lambda runs, era=era: figure_2(runs, era) for era in TCPS}
TABLES |= {f"figures 3 and 4, {era}": lambda runs, era=era: figures_3_and_4(runs, era) for era in ERAS}
TABLES |= {f"where, {era}": lambda runs, era=era: where(runs, era) for era in ERAS}
TABLES |= {"map, claims": holds, "map, Mbit/s": goodput_map, "others": others, "detector": detector}


if __name__ == "__main__":
    comparisons.remake(__doc__, "5 seeds", "nornet", DOCUMENT, TABLES, Runs)
