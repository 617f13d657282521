#!/usr/bin/env python3
"""Regenerates the tables of docs/lisa.md: short transfers with linked slow start, and the claims of its paper.

    experiments/lisa/tables.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build begins anew), then rewrites
the tables. --quick has 3 seeds and fewer queues and sizes, and writes the document with its tables to DIR. --narrows
takes a command that is built already. --check leaves the document alone and fails if a table differs.
"""

import json
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from statistics import correlation, mean, pstdev

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "experiments/detection"))
import comparisons
from comparisons import SAFE, interval, table

DOCUMENT = HOME / "docs/lisa.md"
ERAS = {"today": [], "3.14": ["era=linux-3.14"]}
LAWS = ["lia", "olia", "gcubic"]
CONTROLS = [control for law in LAWS for control in (law, f"{law}+lisa")]
# The paper's "10 times for each queue size", and its three queues.
SEEDS = {False: 10, True: 3}
THREE = (9, 17, 30)
QUEUES = {False: range(1, 35), True: (4, 8, 12, 17, 24, 30)}
SIZES = {False: (50, 100, 150, 200, 250, *range(300, 1000, 100)), True: (100, 200, 300, 500, 900)}
RTT_QUEUES = {False: (5, 10, 20, 30, 40, 50, 60, 70, 80, 92), True: (5, 30, 60, 92)}
# Long enough that every subflow leaves slow start (Section V-A: "a long enough file").
LONG_KB = 5000
# Figure 9: "from 2 up to 42 packets", and "good, medium and bad" queues for the sizes of files.
TREE_QUEUES = {False: range(2, 43, 4), True: (2, 10, 26, 42)}
TREE_THREE = (10, 25, 40)
TREE_SIZES = {False: (50, 100, 200, 300, 500, 900), True: (100, 300, 900)}
# Figures 11 to 13: "15 samples for each experiment", "ranging from 100 KB to 1000 KB".
PHONE_SEEDS = {False: 15, True: 3}
PHONE_SIZES = {False: range(100, 1001, 100), True: (100, 200, 500, 1000)}
PHONE = ("shared", "apart")


class Runs(comparisons.Runs):
    def __init__(self, options, narrows):
        super().__init__(options, narrows)
        self.seeds = SEEDS[options.quick]

    def get(self, scenario, era, settings, controls=None, seeds=None):
        """The summaries of each control, by seed."""
        controls = controls or CONTROLS
        settings = [*settings, *ERAS[era]]
        place = Path(era) / ("-".join(settings).translate(SAFE) or "as-is")
        return self.summaries(place, scenario, controls, settings, seeds or self.seeds)

    def draws(self, era, control, settings):
        """The connections over core switches, for each draw of the fat tree's traffic; all hosts run `control`."""
        settings = [*settings, *ERAS[era]]
        folder = self.options.out / "lisa-fat-tree" / era / "-".join(settings).translate(SAFE) / control
        if folder not in self.read:
            sweep = f"generator.fat-tree.seed=1..{self.seeds}:{self.seeds}"
            call = ["compare", "lisa/fat-tree", "--cc", control, "--seeds", "1", "--sweep", sweep]
            for setting in [f"generator.fat-tree.cc={control}", *settings]:
                call += ["--set", setting]
            comparisons.run(self.narrows, folder, call, f"lisa/fat-tree {control} {' '.join(settings)}", self.options.jobs)
            runs = folder / "runs/lisa/fat-tree"
            self.read[folder] = [
                [one for one in json.loads(file.read_text())["connections"] if one["name"] in over_core(self.narrows, draw)]
                for draw in range(1, self.seeds + 1)
                for file in [runs / f"generator.fat-tree.seed={draw}/{control}/seed-1.json"]
            ]
        return self.read[folder]


@cache
def over_core(narrows, draw):
    """The flows of a draw of the fat tree that lead from one pod to another."""
    call = [narrows, "show", "lisa/fat-tree", "--resolved", "--set", f"generator.fat-tree.seed={draw}"]
    file = tomllib.loads(subprocess.run(call, stdout=subprocess.PIPE, check=True, text=True).stdout)
    crosses = lambda flow: any("core" in link for link in file["routes"][flow["routes"][0]]["links"])
    return {name for name, flow in file["flows"].items() if crosses(flow)}


# --- Figures ---------------------------------------------------------------------------------------------


def test(metric):
    return lambda summary: summary["test"][metric]


def of_tcp(metric):
    return lambda summary: next(one for one in summary["connections"] if one["name"] == "tcp1")[metric]


DONE = test("acknowledged_s")


def spread(summaries, figure):
    """Mean and half its 95 % interval; none if a run has no such figure."""
    values = [figure(summary) for summary in summaries]
    return (None, None) if None in values else interval(values)


def pairs(one, other, percent=False):
    """How much less the first are than the second, pair by pair; in percent of the second's mean if asked for."""
    both = [(a, b) for a, b in zip(one, other, strict=True) if None not in (a, b)]
    middle, half = interval([b - a for a, b in both])
    if half is None:
        return None, None
    scale = 100 / mean(b for _, b in both) if percent else 1
    return scale * middle, scale * half


def averages(lists):
    """By seed or draw, the mean of some lists; none where one of them has none."""
    return [None if None in values else mean(values) for values in zip(*lists, strict=True)]


def times(scale, found):
    """A difference in another unit, or the other way round."""
    middle, half = found
    # No minus before a zero.
    return (None, None) if middle is None else (scale * middle + 0, abs(scale) * half)


def both(runs, scenario, cell, settings, figure):
    """A figure with LISA and without, by seed."""
    era, law = cell
    found = runs.get(scenario, era, settings)
    return [[figure(summary) for summary in found[control]] for control in (f"{law}+lisa", law)]


def text(found, digits=2):
    """With another digit where both are less than one of the last."""
    middle, half = found
    if middle is None:
        return "-"
    if 0 < max(abs(middle), half) < 10**-digits:
        digits += 1
    return f"{middle:.{digits}f} ±{half:.{digits}f}"


def queue(scenario, packets):
    if scenario.endswith("-rtt"):
        links = ("bottleneck1", "bottleneck2") if "apart" in scenario else ("bottleneck1",)
        return [f"links.{link}.queue={packets} packets" for link in links]
    return [f"generator.{'disjoint' if 'apart' in scenario else 'dumbbell'}.queue={packets} packets"]


def size(kilobytes):
    return [f"flows.mptcp.source.file.size={kilobytes} kB"]


# --- Verdicts --------------------------------------------------------------------------------------------


def near(found, published):
    """A published value: reproduced if our interval has it, and not also 0."""
    middle, half = found
    if middle is None or abs(middle) <= half and abs(middle - published) <= half:
        return "cannot be told"
    if abs(middle - published) <= half:
        return "reproduced"
    return "better" if middle > published else "worse"


def above(found, bound):
    """A bound that the figure exceeds: reproduced if its whole interval does, worse if none of it does."""
    middle, half = found
    if middle is None or abs(middle - bound) <= half:
        return "cannot be told"
    return "reproduced" if middle > bound else "worse"


def weakest(verdicts):
    """Of several queues or sizes, with the number of those where it is reproduced."""
    for verdict in ("worse", "cannot be told", "better"):
        if verdict in verdicts:
            return f"{verdict} ({verdicts.count('reproduced')} of {len(verdicts)} reproduced)"
    return "reproduced"


def all_above(spreads, bound):
    """At every point."""
    return weakest([above(found, bound) for found in spreads])


def at_some(spreads):
    """More than 0 at some points, and at more of them than less than 0: both are counted."""
    verdicts = [above(found, 0) for found in spreads]
    fewer, more = verdicts.count("reproduced"), verdicts.count("worse")
    verdict = "reproduced" if fewer > more else "worse" if more > fewer else "cannot be told"
    return f"{verdict} ({fewer} fewer, {more} more of {len(verdicts)})"


def within(found, low, high):
    """A published range: reproduced if our interval meets it, and not also 0."""
    middle, half = found
    if middle is None or abs(middle) <= half and low - half <= middle <= high + half:
        return "cannot be told"
    if low - half <= middle <= high + half:
        return "reproduced"
    return "better" if middle > high else "worse"


def most(by_size, published):
    """A published maximum over sizes, by the size where ours is most."""
    at = max(by_size, key=lambda kilobytes: by_size[kilobytes][0] or 0)
    return f"{near(by_size[at], published)} ({at} kB)"


def no_change(spreads):
    """In percent: intervals that leave 0 out decide, worse if one is below; without, reproduced if none is wider than 10."""
    if any(middle is None for middle, _ in spreads):
        return "cannot be told"
    gains = [middle for middle, half in spreads if abs(middle) > half]
    if gains:
        return "better" if min(gains) > 0 else "worse"
    return "reproduced" if max(half for _, half in spreads) <= 10 else "cannot be told"


def no_trend(spreads):
    """Those that leave 0 out lie on both sides, at most three quarters on one, or are no more than chance gives."""
    verdicts = [above(found, 0) for found in spreads]
    more, less = verdicts.count("reproduced"), verdicts.count("worse")
    by_chance = len(verdicts) / 20 + 1
    none = more + less <= by_chance or max(more, less) <= 3 / 4 * (more + less)
    verdict = "reproduced" if none else "better" if more > less else "worse"
    return f"{verdict} ({more} better, {less} worse of {len(verdicts)})"


# --- Tables ----------------------------------------------------------------------------------------------


def cells(eras=ERAS):
    return [(era, law) for era in eras for law in LAWS]


def heads():
    return [f"{law}, {era}" for era, law in cells()]


def alone(runs, era, packets):
    """One CUBIC over the first path, in place of the two subflows."""
    one = [
        "flows.mptcp.kind=tcp",
        'flows.mptcp.routes=["path1"]',
        'phases=[{start="0 s", groups=[["path1"]]}]',
    ]
    return runs.get("lisa/two", era, [*queue("lisa/two", packets), *one], ["cubic"])["cubic"]


# Queues of Figures 1 and 2 in packets, which the paper does not give, and in bandwidth-delay products.
BDPS = {7: 0.5, 15: 1, 29: 2}


def figure_1(runs):
    """Completion beside CUBIC's over the first path."""
    rows = []
    for scenario, subflows in (("lisa/two", 2), ("lisa/three", 3)):
        for packets, bdp in BDPS.items():
            for era in ERAS:
                settings = queue(scenario, packets)
                cubic = alone(runs, era, packets) if subflows == 2 else None
                found = runs.get(scenario, era, settings)
                tcp = text(spread(cubic, DONE)) if cubic else ""
                row = [f"{subflows}, {bdp:g} BDP, {era}", tcp]
                for law in LAWS:
                    pair = [found[law], found[f"{law}+lisa"]]
                    row.append(" / ".join(text(spread(one, DONE)) for one in pair))
                    row.append(" / ".join(text(spread(one, test("retransmits")), 0) for one in pair))
                rows.append(row)
    names = [name for law in LAWS for name in (f"{law} / +lisa, s", "retx")]
    return table(["subflows, queue, Linux", "CUBIC, s", *names], rows)


def slow_start(runs, scenario):
    """Figures 6 and 8, (a) and (b)."""
    rows = []
    for packets in QUEUES[runs.options.quick]:
        row = [packets]
        for era, law in cells():
            found = runs.get(scenario, era, [*queue(scenario, packets), *size(LONG_KB)])
            for metric in ("slow_start_retransmits", "slow_start_cwnd_packets"):
                pair = [spread(found[one], test(metric))[0] for one in (law, f"{law}+lisa")]
                row.append(" / ".join("-" if one is None else f"{one:.0f}" for one in pair))
        rows.append(row)
    names = [name for head in heads() for name in (f"retx, {head}", "cwnd")]
    return table(["queue", *names], rows)


def fewer(runs, scenario, metric, scale):
    """By era and law: at each queue of 8 packets and more, how much less LISA has of a metric of slow start."""
    queues = [packets for packets in QUEUES[runs.options.quick] if packets >= 8]
    settings = {packets: [*queue(scenario, packets), *size(LONG_KB)] for packets in queues}
    return {
        cell: [times(scale, pairs(*both(runs, scenario, cell, settings[packets], test(metric)))) for packets in queues]
        for cell in cells()
    }


def over_queues(runs, scenario, cell, kilobytes, queues, figure, settings=()):
    """With LISA and without, by seed: the mean of a figure over queues."""
    each = [both(runs, scenario, cell, [*queue(scenario, one), *size(kilobytes), *settings], figure) for one in queues]
    return [averages(lists) for lists in zip(*each, strict=True)]


def gains(runs, scenario, queues, figure=DONE, percent=True, settings=(), eras=ERAS):
    """By era and law, and size: how much less of a figure there is with LISA."""
    return {
        cell: {
            kilobytes: pairs(*over_queues(runs, scenario, cell, kilobytes, queues, figure, settings), percent)
            for kilobytes in SIZES[runs.options.quick]
        }
        for cell in cells(eras)
    }


def falls(runs, scenario, cell):
    """How much more is gained from 250 to 500 kB than beyond, percentage points."""
    by_seed = []
    for sizes in (lambda kilobytes: 250 <= kilobytes <= 500, lambda kilobytes: kilobytes > 500):
        each = [over_queues(runs, scenario, cell, one, THREE, DONE) for one in SIZES[runs.options.quick] if sizes(one)]
        by_seed.append(averages([[100 * (b - a) / mean(other) for a, b in zip(one, other, strict=True)] for one, other in each]))
    return pairs(by_seed[1], by_seed[0])


def by_size(runs, found, digits=1):
    rows = [[kilobytes, *(text(found[cell][kilobytes], digits) for cell in cells())] for kilobytes in SIZES[runs.options.quick]]
    return table(["kB", *heads()], rows)


def later(runs, scenario, settings=(), eras=ERAS):
    """By era and law: at each queue, by how many ms LISA is done later with 200 and 20 ms."""
    return {
        cell: {
            packets: times(-1000, pairs(*both(runs, scenario, cell, [*queue(scenario, packets), *settings], DONE)))
            for packets in RTT_QUEUES[runs.options.quick]
        }
        for cell in cells(eras)
    }


def rtts(runs, scenario):
    found = later(runs, scenario)
    rows = [[packets, *(text(found[cell][packets], 0) for cell in cells())] for packets in RTT_QUEUES[runs.options.quick]]
    return table(["queue", *heads()], rows)


def retransmits_of_tcp(runs):
    return gains(runs, "lisa/shared-tcp", THREE, of_tcp("retransmits"), False)


def retransmits_of_file(runs):
    """Figure 6(d)."""
    return gains(runs, "lisa/shared", THREE, test("retransmits"), False)


# --- Figure 9 ---------------------------------------------------------------------------------------------


def tree_queue(packets):
    return [f"generator.fat-tree.core.queue={packets} packets"]


def tree_size(kilobytes):
    return [f"generator.fat-tree.source.file.size={kilobytes} kB"]


def by_draw(found, metric, law):
    """Means of a metric over the connections that have it both without and with LISA, by draw: with, and without."""
    with_lisa, without = [], []
    for one, other in zip(found[f"{law}+lisa"], found[law], strict=True):
        pair = [(a[metric], b[metric]) for a, b in zip(one, other, strict=True)]
        pair = [(a, b) for a, b in pair if None not in (a, b)]
        with_lisa.append(mean(a for a, _ in pair) if pair else None)
        without.append(mean(b for _, b in pair) if pair else None)
    return with_lisa, without


def tree_slow_start(runs, metric):
    """By era and law, and queue: a metric of slow start with LISA and without, by draw."""
    found = {}
    for packets in TREE_QUEUES[runs.options.quick]:
        for era, law in cells():
            settings = [*tree_queue(packets), *tree_size(LONG_KB)]
            drawn = {one: runs.draws(era, one, settings) for one in (law, f"{law}+lisa")}
            found.setdefault((era, law), {})[packets] = by_draw(drawn, metric, law)
    return found


def tree_files(runs, metric):
    """By era and law, and size: the mean of a metric over the three queues with LISA and without, by draw."""
    found = {}
    for kilobytes in TREE_SIZES[runs.options.quick]:
        for era, law in cells():
            each = []
            for packets in TREE_THREE:
                settings = [*tree_queue(packets), *tree_size(kilobytes)]
                drawn = {one: runs.draws(era, one, settings) for one in (law, f"{law}+lisa")}
                each.append(by_draw(drawn, metric, law))
            found.setdefault((era, law), {})[kilobytes] = [averages(lists) for lists in zip(*each, strict=True)]
    return found


def figure_9(runs):
    """(a) and (b): as Figure 6."""
    found = {metric: tree_slow_start(runs, metric) for metric in ("slow_start_retransmits", "slow_start_cwnd_packets")}
    rows = []
    for packets in TREE_QUEUES[runs.options.quick]:
        row = [packets]
        for cell in cells():
            for by_cell in found.values():
                one, other = by_cell[cell][packets]
                means = [interval([value for value in values if value is not None])[0] for values in (other, one)]
                row.append(" / ".join("-" if value is None else f"{value:.1f}" for value in means))
        rows.append(row)
    names = [name for head in heads() for name in (f"retx, {head}", "cwnd")]
    return table(["queue", *names], rows)


def follows(time, retransmits):
    """By draw, how the gain of time goes with that of retransmissions over the sizes, a correlation."""
    def gains_of(by_size):
        return list(zip(*([b - a for a, b in zip(*found, strict=True)] for found in by_size.values()), strict=True))

    drawn = zip(gains_of(time), gains_of(retransmits), strict=True)
    return interval([correlation(one, other) for one, other in drawn if pstdev(one) and pstdev(other)])


def figure_9_files(runs, metric, percent):
    found = tree_files(runs, metric)
    sizes = TREE_SIZES[runs.options.quick]
    rows = [[one, *(text(pairs(*found[cell][one], percent), 1) for cell in cells())] for one in sizes]
    return table(["kB", *heads()], rows)


# --- Figures 11 to 13 ------------------------------------------------------------------------------------


def phone(runs, place, figure, percent=False):
    """By era and law, and size: how much less of a figure there is with LISA, by seed."""
    found = {}
    for kilobytes in PHONE_SIZES[runs.options.quick]:
        for era, law in cells():
            found.setdefault((era, law), {})[kilobytes] = pairs(*phone_runs(runs, place, era, law, kilobytes, figure), percent)
    return found


def phone_runs(runs, place, era, law, kilobytes, figure):
    """A figure with LISA and without, by seed."""
    seeds = PHONE_SEEDS[runs.options.quick]
    found = runs.get(f"lisa/phone-{place}", era, size(kilobytes), seeds=seeds)
    return [[figure(one) for one in found[control]] for control in (f"{law}+lisa", law)]


def share_of_3g(summary):
    share = summary["connections"][0]["paths"][0]["share"]
    return None if share is None else 100 * share


def over_sizes(runs, place, cell, figure):
    """How much less of a figure there is with LISA: of each seed the mean over the sizes where both have it."""
    found = [phone_runs(runs, place, *cell, kilobytes, figure) for kilobytes in PHONE_SIZES[runs.options.quick]]
    by_seed = []
    for seed in range(PHONE_SEEDS[runs.options.quick]):
        known = [(one[seed], other[seed]) for one, other in found if None not in (one[seed], other[seed])]
        by_seed += [mean(other - one for one, other in known)] if known else []
    return interval(by_seed) if len(by_seed) > 1 else (None, None)


def srtt_of_3g(summary):
    return summary["connections"][0]["paths"][0]["p95_srtt_ms"]


def has_loss(summary):
    """Did the connection leave slow start with a loss?"""
    return int(summary["test"]["first_loss_s"] is not None)


def first_loss(runs, place, cell):
    """By how many ms the first loss is later with LISA."""
    return times(-1000, over_sizes(runs, place, cell, test("first_loss_s")))


def phone_sizes(runs, figure, percent=False):
    """Both networks side by side."""
    found = {place: phone(runs, place, figure, percent) for place in PHONE}
    rows = []
    for kilobytes in PHONE_SIZES[runs.options.quick]:
        rows.append([kilobytes, *(text(found[place][cell][kilobytes], 1) for place in PHONE for cell in cells())])
    return table(["kB", *(f"{place}: {head}" for place in PHONE for head in heads())], rows)


def phone_loss(runs):
    rows = [[place, *(text(first_loss(runs, place, cell), 0) for cell in cells())] for place in PHONE]
    return table(["network", *heads()], rows)


# --- Why 200 and 20 ms differ ----------------------------------------------------------------------------


def cause(runs):
    """By scheduler and loss detection: how much later olia is with LISA, and the first subflow's part."""
    rows = []
    for place in ("shared", "apart"):
        for packets in RTT_QUEUES[runs.options.quick]:
            row = [f"{place}, {packets}"]
            for settings in CAUSES.values():
                scenario = f"lisa/{place}-rtt"
                asked = runs, scenario, ("today", "olia"), [*queue(scenario, packets), *settings]
                row.append(text(times(-1000, pairs(*both(*asked, DONE))), 0))
                row.append(" / ".join(f"{mean(values):.0f}" for values in reversed(both(*asked, share_of_first))))
            rows.append(row)
    return table(["network, queue", *(name for cause in CAUSES for name in (f"{cause}: ms later", "first, kB"))], rows)


MIN_RTT, FACK = "flows.mptcp.scheduler=min-rtt", "tcp.loss_detection=fack"
CAUSES = {"today": [], "min-rtt": [MIN_RTT], "FACK": [FACK], "min-rtt, FACK": [MIN_RTT, FACK]}


def scheduler(runs):
    """Figure 6(c) under today's Linux with the scheduler of the lowest RTT."""
    found = gains(runs, "lisa/shared", THREE, settings=[MIN_RTT], eras=["today"])
    rows = [[one, *(text(found["today", law][one], 1) for law in LAWS)] for one in SIZES[runs.options.quick]]
    return table(["kB", *LAWS], rows)


def variant(*settings):
    """Figure 6(c) with other settings."""
    return lambda runs: by_size(runs, gains(runs, "lisa/shared", THREE, settings=settings))


def donor(runs):
    """What a donor chosen by its RTT changes: of the fastest / the nearest."""
    rules = ([], ["lisa.donor=nearest"])

    def time(cell, kilobytes, settings):
        return pairs(*over_queues(runs, "lisa/shared", cell, kilobytes, THREE, DONE, settings), True)

    def late(cell, scenario, settings):
        queues = [packets for packets in RTT_QUEUES[runs.options.quick] if packets >= 8]
        each = [both(runs, scenario, cell, [*queue(scenario, packets), *settings], DONE) for packets in queues]
        return times(-1000, pairs(*[averages(lists) for lists in zip(*each, strict=True)]))

    rows = [
        *((f"40 ms, {size} kB: less time, %", lambda cell, rule, size=size: text(time(cell, size, rule), 1)) for size in (300, 500)),
        *((f"200 and 20 ms, {place}: ms later", lambda cell, rule, place=place: text(late(cell, f"lisa/{place}-rtt", rule), 0)) for place in ("shared", "apart")),
    ]
    return table(["network", *heads()], [[name, *(" / ".join(figure(cell, rule) for rule in rules) for cell in cells())] for name, figure in rows])


def v089(runs):
    """The most that the scheduler of the paper's version of MPTCP changes with the paper's kernel."""
    figures = {
        "6(c), points": lambda settings: gains(runs, "lisa/shared", THREE, settings=settings, eras=["3.14"]),
        "7(b), ms": lambda settings: later(runs, "lisa/shared-rtt", settings, ["3.14"]),
    }
    rows = []
    for name, figure in figures.items():
        before, after = figure([]), figure(["flows.mptcp.scheduler=mptcp-v0.89"])
        most = [max(abs(after[cell][at][0] - before[cell][at][0]) for at in before[cell]) for cell in cells(["3.14"])]
        rows.append([name, *(f"{change:.1f}" for change in most)])
    return table(["Figure", *LAWS], rows)


def share_of_first(summary):
    """What the first subflow carried of the 500 kB, kB."""
    return 500 * summary["connections"][0]["paths"][0]["share"]


# --- The claims ------------------------------------------------------------------------------------------


def claims(runs):
    """The paper's claims, each judged for each law and kernel."""
    shared = gains(runs, "lisa/shared", THREE)
    favourable = gains(runs, "lisa/apart", (20,))
    tcp, total = retransmits_of_tcp(runs), retransmits_of_file(runs)
    sizes = SIZES[runs.options.quick]
    small = [kilobytes for kilobytes in sizes if kilobytes <= 200]
    middle = [kilobytes for kilobytes in sizes if 250 <= kilobytes <= 500]

    def earlier(cell, packets):
        return times(1000, pairs(*both(runs, "lisa/two", cell, queue("lisa/two", packets), DONE)))

    def of_cubic(cell, packets):
        _, without = both(runs, "lisa/two", cell, queue("lisa/two", packets), DONE)
        return times(1000, pairs([DONE(one) for one in alone(runs, cell[0], packets)], without))

    def reduction(cell, packets, scenario):
        """By seed, how many retransmissions there are less with LISA."""
        with_lisa, without = both(runs, scenario, cell, queue(scenario, packets), test("retransmits"))
        return [b - a for a, b in zip(with_lisa, without, strict=True)]

    def below_8(cell):
        each = [
            pairs(*both(runs, "lisa/shared", cell, [*queue("lisa/shared", packets), *size(LONG_KB)], test("slow_start_retransmits")), True)
            for packets in QUEUES[runs.options.quick]
            if packets < 8
        ]
        return no_change(each)

    def percent_later(scenario, cell):
        queues = [packets for packets in RTT_QUEUES[runs.options.quick] if packets >= 8]
        return [pairs(*both(runs, scenario, cell, queue(scenario, packets), DONE), True) for packets in queues]

    tree_retransmits = tree_slow_start(runs, "slow_start_retransmits")
    tree_windows = tree_slow_start(runs, "slow_start_cwnd_packets")
    tree_time, tree_all = (tree_files(runs, metric) for metric in ("acknowledged_s", "retransmits"))
    fewer_shared = fewer(runs, "lisa/shared", "slow_start_retransmits", 1)
    fewer_apart = fewer(runs, "lisa/apart", "slow_start_retransmits", 1)
    larger = fewer(runs, "lisa/shared", "slow_start_cwnd_packets", -1)
    larger_apart = fewer(runs, "lisa/apart", "slow_start_cwnd_packets", -1)
    apart = gains(runs, "lisa/apart", THREE)
    late = later(runs, "lisa/apart-rtt")
    # Below 8 packets LISA does nothing, as the paper says.
    late_from_8 = lambda cell: [found for packets, found in late[cell].items() if packets >= 8]
    rtt_queues = f"{sum(packets >= 8 for packets in RTT_QUEUES[runs.options.quick])} queues from 8 packets on"
    tree_queues = f"{len(TREE_QUEUES[runs.options.quick])} queues"
    judged = [
        *(
            (f"Figure 1, {bdp:g} BDP: {who} {ms} ms before MPTCP", lambda cell, of=of, ms=ms, packets=packets: near(of(cell, packets), ms))
            for who, ms, of in (("CUBIC is done", 50, of_cubic), ("LISA is done", 200, earlier))
            for packets, bdp in BDPS.items()
        ),
        ("Figure 1(b): fewer retransmissions, at each of three queues", lambda cell: all_above([interval(reduction(cell, one, "lisa/two")) for one in BDPS], 0)),
        ("Figure 2(b): a greater reduction with 3 subflows, at each of three queues", lambda cell: all_above([pairs(reduction(cell, one, "lisa/two"), reduction(cell, one, "lisa/three")) for one in BDPS], 0)),
        ("Figure 6(c): at the size where it is most, 17 % less time (300 kB)", lambda cell: most(shared[cell], 17)),
        ("more than 10 % less up to 500 kB", lambda cell: all_above([shared[cell][one] for one in middle], 10)),
        ("no change up to 200 kB", lambda cell: no_change([shared[cell][one] for one in small])),
        ("Figure 6(a): fewer retransmissions at every queue from 8 packets on", lambda cell: all_above(fewer_shared[cell], 0)),
        ("Figure 6(a): similar retransmissions below 8 packets", below_8),
        ("Figure 6(c): less is gained beyond 500 kB", lambda cell: above(falls(runs, "lisa/shared", cell), 0)),
        ("Figure 6(b): a larger sum of windows at (almost) all of them", lambda cell: all_above(larger[cell], 0)),
        ("Figure 6(d): fewer retransmissions, at every size (its text names no result)", lambda cell: all_above(list(total[cell].values()), 0)),
        ("Figure 7(a): the Reno flow has fewer retransmissions, at every size", lambda cell: all_above(list(tcp[cell].values()), 0)),
        (f"Figure 7(b): with 200 and 20 ms a very small difference, at each of {rtt_queues}", lambda cell: no_change(percent_later("lisa/shared-rtt", cell))),
        ("Figure 8(a): non-shared, fewer retransmissions at some queues", lambda cell: at_some(fewer_apart[cell])),
        ("Figure 8(b): non-shared, sum of windows without a clear trend over the queues", lambda cell: no_trend(larger_apart[cell])),
        ("Figure 8(c): non-shared, time without a clear trend over the sizes", lambda cell: no_trend(list(apart[cell].values()))),
        ("Figure 8: non-shared, queue 20: consistently less time", lambda cell: all_above(list(favourable[cell].values()), 0)),
        (f"non-shared, 200 and 20 ms: less than 50 ms later, at each of {rtt_queues}", lambda cell: all_above([times(-1, found) for found in late_from_8(cell)], -50)),
        (f"Figure 9(a): fewer retransmissions in slow start, at each of {tree_queues}", lambda cell: all_above([pairs(*found) for found in tree_retransmits[cell].values()], 0)),
        (f"Figure 9(b): a smaller sum of windows, at each of {tree_queues}", lambda cell: all_above([pairs(*found) for found in tree_windows[cell].values()], 0)),
        ("Figure 9(c): less time, at every size", lambda cell: all_above([pairs(*found) for found in tree_time[cell].values()], 0)),
        ("Figure 9(d): fewer retransmissions, at every size", lambda cell: all_above([pairs(*found) for found in tree_all[cell].values()], 0)),
        ("Figure 9(c), (d): the less is retransmitted, the less time it takes", lambda cell: above(follows(tree_time[cell], tree_all[cell]), 0)),
    ]
    for place, saved, later_loss in (("shared", 10, 100), ("apart", 20, 50)):
        time, retransmits = phone(runs, place, DONE, True), phone(runs, place, test("retransmits"))
        share = phone(runs, place, share_of_3g)
        judged += [
            (f"Figure 11, {place}: less time, at every size", lambda cell, time=time: all_above(list(time[cell].values()), 0)),
            (f"Figure 11, {place}: {saved} % less at 100 kB", lambda cell, time=time, saved=saved: near(time[cell][100], saved)),
            (f"Figure 11, {place}: against it, no change up to 200 kB", lambda cell, time=time: no_change([time[cell][100], time[cell][200]])),
            (f"Figure 12, {place}: fewer retransmissions, at every size", lambda cell, found=retransmits: all_above(list(found[cell].values()), 0)),
            (f"Figure 13, {place}: 5 to 7 points less over 3G, at every size", lambda cell, share=share: weakest([within(one, 5, 7) for one in share[cell].values()])),
            (f"{place}: less bufferbloat on 3G (95th percentile of its RTT)", lambda cell, place=place: above(over_sizes(runs, place, cell, srtt_of_3g), 0)),
            (f"{place}: fewer transfers that leave slow start with a loss", lambda cell, place=place: above(over_sizes(runs, place, cell, has_loss), 0)),
            (f"{place}: the first loss {later_loss} ms later", lambda cell, place=place, ms=later_loss: near(first_loss(runs, place, cell), ms)),
        ]
    return table(["claim", *heads()], [[claim, *(judge(cell) for cell in cells())] for claim, judge in judged])


def headlines(runs):
    """What the abstract and the text stress: published, ours with the paper's kernel and with what we recommend, and why."""
    shown = [("3.14", "lia"), ("today", "gcubic")]
    shared = gains(runs, "lisa/shared", THREE)
    sizes = SIZES[runs.options.quick]
    queues = fewer(runs, "lisa/shared", "slow_start_retransmits", 1)
    late = later(runs, "lisa/apart-rtt")
    time = {place: phone(runs, place, DONE, True) for place in PHONE}

    def largest(cell):
        at = max(sizes, key=lambda one: shared[cell][one][0])
        return f"{text(shared[cell][at], 1)} at {at} kB"

    def least(cell, chosen):
        found = [shared[cell][one] for one in sizes if chosen(one)]
        return f"{min(middle for middle, _ in found):.1f} to {max(middle for middle, _ in found):.1f}"

    def count(cell):
        return f"fewer at {sum(above(one, 0) == 'reproduced' for one in queues[cell])} of {len(queues[cell])} queues"

    def worst(cell):
        at = max((one for one in late[cell] if one >= 8), key=lambda one: late[cell][one][0])
        return f"{text(late[cell][at], 0)} at {at} packets"

    rows = [
        ("less time, one bottleneck, at most, %", "17 (300 kB)", largest, "perhaps [the hosts' timing and acknowledgements](#figure-6-one-bottleneck-5-mbits-40-ms)"),
        ("the same from 250 to 500 kB, %", "more than 10", lambda cell: least(cell, lambda one: 250 <= one <= 500), "as above"),
        ("the same up to 200 kB, %", "0", lambda cell: least(cell, lambda one: one <= 200), "when the second subflow joins"),
        ("retransmissions in slow start, from 8 packets on", "fewer at all", count, "the debit itself"),
        *(
            (f"3G and WLAN, {place}, 100 kB: less time, %", published, lambda cell, place=place: text(time[place][cell][100], 1), "the scheduler: what 3G was given before WLAN joined")
            for place, published in (("shared", "10"), ("apart", "20"))
        ),
        ("200 and 20 ms, a bottleneck each: later at most, ms", "less than 50", worst, "[scheduler and loss detection](#why-200-and-20-ms-differ-scheduler-and-loss-detection)"),
    ]
    names = [f"{law}, {era}" for era, law in shown]
    return table(["claim", "published", *names, "decided by"], [[claim, published, *(ours(cell) for cell in shown), why] for claim, published, ours, why in rows])


TABLES = {
    "headlines": headlines,
    "claims": claims,
    "figure 1": figure_1,
    "figure 6 slow start": lambda runs: slow_start(runs, "lisa/shared"),
    "figure 6 time": lambda runs: by_size(runs, gains(runs, "lisa/shared", THREE)),
    "figure 6 receiver opens": variant("tcp.opener=receiver"),
    "figure 6 every packet": variant("jitter=1 packet", "tcp.receiver_acks=every-packet"),
    "figure 6 retransmits": lambda runs: by_size(runs, retransmits_of_file(runs)),
    "figure 7 tcp": lambda runs: by_size(runs, retransmits_of_tcp(runs)),
    "figure 7 rtt": lambda runs: rtts(runs, "lisa/shared-rtt"),
    "figure 8 slow start": lambda runs: slow_start(runs, "lisa/apart"),
    "figure 8 time": lambda runs: by_size(runs, gains(runs, "lisa/apart", THREE)),
    "figure 8 queue 20": lambda runs: by_size(runs, gains(runs, "lisa/apart", (20,))),
    "apart rtt": lambda runs: rtts(runs, "lisa/apart-rtt"),
    "rtt cause": cause,
    "donor": donor,
    "figure 6 scheduler": scheduler,
    "v0.89": v089,
    "figure 9 slow start": figure_9,
    "figure 9 time": lambda runs: figure_9_files(runs, "acknowledged_s", True),
    "figure 9 retransmits": lambda runs: figure_9_files(runs, "retransmits", False),
    "figure 11": lambda runs: phone_sizes(runs, DONE, True),
    "figure 12": lambda runs: phone_sizes(runs, test("retransmits")),
    "figure 13": lambda runs: phone_sizes(runs, share_of_3g),
    "first loss": phone_loss,
}


if __name__ == "__main__":
    comparisons.remake(__doc__, "3 seeds, fewer queues and sizes", "lisa", DOCUMENT, TABLES, Runs)
