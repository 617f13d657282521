#!/usr/bin/env python3
"""Regenerates the tables of docs/tr.md: the trend-line paper's Mininet experiments on multipath QUIC.

    experiments/tr/tables.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build begins anew), then rewrites
the tables, and writes the data of the paper's Figures 8 and 9 to DIR/rates.csv. --quick has 1 seed and writes the
document with its tables to DIR. --narrows takes a command that is built already, with the feature quic. --check
leaves the document alone and fails if a table differs.
"""

import csv
import hashlib
import random
import sys
from collections import namedtuple
from itertools import pairwise
from math import inf
from pathlib import Path
from statistics import mean, median

import networks

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "experiments/detection"))
import comparisons
from comparisons import SAFE, interval, percent, seeds_of, table

DOCUMENT = HOME / "docs/tr.md"
# Of shared bottlenecks; all else has one run, and the means of separate ones are over the networks.
SEEDS = {False: 3, True: 1}
EXPERIMENTS = networks.experiments()
FACTORS = (1, 2)
CHOSEN = 10

# A row: the control, what its detector samples, and the law of the TCPs beside it.
Row = namedtuple("Row", "control signal rival")
NEXT_TO = {
    "reno": ["reno", "lia", "ssc-lia rtt", "ssc-lia srtt", "tr-lia rtt", "tr-lia srtt", "greno+xcorr rtt"],
    "cubic": ["cubic", "ssc-lia srtt", "tr-lia srtt", "gcubic+xcorr rtt"],
}
ROWS = [Row(*(name.split() + [None])[:2], rival) for rival, names in NEXT_TO.items() for name in names]
# The paper's systems, whose TCPs it does not name.
SYSTEMS = {name: [row for row in ROWS if row.control == f"{name}-lia"] for name in ("ssc", "tr")}
XCORR = [row for row in ROWS if row.control.endswith("xcorr")]
# What is worse on shared bottlenecks: the network, what runs there, and its queue in ms if it differs.
CAUSES = [(name, Row("lia", None, "cubic"), None) for name in ("T4-E4", "T4-E5")]
CAUSES += [(name, Row("ssc-lia", signal, "reno"), queue_ms) for name, signal in [("T3-E1", "srtt"), ("T3-E2", "srtt"), ("T3-E2", "rtt")] for queue_ms in (50, 100)]
# Of the table by RTTs, beside Reno.
BY_RTTS = [("reno", None), ("tr-lia", "rtt"), ("tr-lia", "srtt")]
BBR_CONTROLS = ["lia", "tr-lia", "ssc-lia", "reno", "cubic", "greno+xcorr", "gcubic+xcorr"]


def name_of(row):
    return f"{row.control}{f', {row.signal}' if row.signal else ''}, {row.rival.upper() if row.rival == 'cubic' else 'Reno'}"


class Runs(comparisons.Runs):
    def __init__(self, options, narrows):
        super().__init__(options, narrows)
        self.seeds = SEEDS[options.quick]

    def get(self, network, controls, signal=None, seeds=1):
        """The summaries of each control, by seed."""
        key = (network.name, signal, seeds, *controls)
        if key not in self.read:
            found = {control: {} for control in controls}
            for seed in range(1, seeds + 1):
                folder = self.run(network, controls, signal, seed)
                for control in controls:
                    found[control] |= seeds_of(folder, f"{control}/{signal}" if signal else control)
            for control, summaries in found.items():
                assert len(summaries) == seeds, f"{network.name}: {control} has {len(summaries)} runs"
            self.read[key] = found
        return self.read[key]

    def run(self, network, controls, signal, seed):
        """Runs one seed, if it is missing, and returns the folder."""
        digest = hashlib.sha256(network.text.encode()).hexdigest()[:8]
        place = self.options.out / f"{network.name}-{digest}"
        place.mkdir(parents=True, exist_ok=True)
        file = place / "network.toml"
        file.write_text(network.text)
        call = ["compare", str(file.resolve()), "--on", "quic", "--cc", ",".join(controls), "--seeds", f"{seed}..{seed}"]
        if signal:
            call += ["--signal", signal]
        folder = place / f"{signal or 'none'}-{'-'.join(controls)}-{seed}".translate(SAFE)
        comparisons.run(self.narrows, folder, call, f"{network.name} {signal or ''}, seed {seed}", self.options.jobs)
        return folder

    def of(self, make, row, *more):
        """The network that `make` makes for a row, and the row's summaries there, by seed."""
        network = make(*more, row.rival) if make is networks.shared else make(more[0], row.rival, *more[1:])
        seeds = self.seeds if make is networks.shared else 1
        return network, self.get(network, self.together(row), row.signal, seeds)[row.control]

    def together(self, row):
        """The controls of one comparison with a row: those with the same signal and TCPs."""
        return [one.control for one in ROWS if (one.signal, one.rival) == (row.signal, row.rival)]

    def series(self, network, controls, control, signal=None, seed=1):
        """The time series of a seed."""
        folder = self.run(network, controls, signal, seed)
        (file,) = folder.glob(f"runs/**/{control}/{f'{signal}/' if signal else ''}seed-{seed}.csv")
        with file.open() as lines:
            return list(csv.DictReader(lines))


# --- Figures ---------------------------------------------------------------------------------------------


def goodput(summary, name="mptcp"):
    return next(one for one in summary["connections"] if one["name"] == name)["goodput_mbps"]


def choose(goodputs, of, seed):
    """Ten by chance, the same of a network and seed under every control."""
    return random.Random(f"{of} {seed}").sample(goodputs, CHOSEN)


def jain(single, multi):
    """Equation 19."""
    return (single + multi) ** 2 / (2 * (single**2 + multi**2))


def ratio(network, seed, summary):
    """The connection's goodput over the mean of ten TCPs of both ways."""
    both = [one for path in range(2) for one in network.of_path(path, summary)]
    return goodput(summary) / mean(choose(both, network.name, seed))


def on_paths(network, seed, summary):
    """By path, the mean of ten TCPs."""
    return [mean(choose(network.of_path(path, summary), network.name, seed)) for path in range(2)]


def over_best(network, seed, summary):
    """Equation 20."""
    return goodput(summary) / max(on_paths(network, seed, summary))


def possible(network, seed, summary):
    """Equation 20 of a connection that has a TCP's share on both paths."""
    rates = on_paths(network, seed, summary)
    return sum(rates) / max(rates)


def each(runs, figure, make, row, *more):
    """A figure, by seed."""
    network, found = runs.of(make, row, *more)
    return [figure(network, seed, summary) for seed, summary in found.items()]


def of_all(runs, figure, row, factor):
    """By network with separate bottlenecks, a figure's mean."""
    return [mean(each(runs, figure, networks.apart, row, one, factor)) for one in EXPERIMENTS.values()]


def first(summary):
    """When all was first found right, s; infinite if it was not."""
    found = summary["detection"][0]["first_correct_s"]
    return inf if found is None else found


def wrong(network, seed, summary):
    """The share of decisions that group the two paths though each has its bottleneck; none without a detector."""
    return summary["detection"][0]["false_merge_rate"] if "detection" in summary else None


def text(found, digits=2):
    middle, half = found
    if middle is None:
        return "-"
    return f"{middle:.{digits}f}" + ("" if half is None else f" ±{half:.{digits}f}")


# --- Verdicts --------------------------------------------------------------------------------------------

# Of Jain's index; of the slope of a trend line.
JAIN_WITHIN, SLOPE_WITHIN = 0.02, 0.25
GAIN, OURS = 0.74, 0.85


def fair(index, published):
    """Jain's index: reproduced within 0.02, better above that."""
    if abs(index - published) <= JAIN_WITHIN:
        return "reproduced"
    return "better" if index > published else "worse"


def near(found, published):
    """A mean: reproduced if its interval has the published one; without an interval it cannot be told."""
    middle, half = found
    if half is None:
        return "cannot be told"
    if abs(middle - published) <= half:
        return "reproduced"
    return "better" if middle > published else "worse"


def reached(found, bound):
    """A bound: met if the whole interval reaches it, missed if none of it does."""
    middle, half = found
    if half is None or abs(middle - bound) < half:
        return "cannot be told"
    return "met" if middle >= bound else "missed"


def slope_is(found, expected):
    """A slope: reproduced within a quarter."""
    if abs(found / expected - 1) <= SLOPE_WITHIN:
        return "reproduced"
    return "larger" if found > expected else "smaller"


def most(number, of):
    """A claim of several networks: reproduced in more than half of them."""
    return f"{'reproduced' if number > of / 2 else 'not reproduced'} ({number} of {of})"


def count(verdicts):
    """How many there are of each."""
    return ", ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in sorted(set(verdicts)))


# --- Trend lines -----------------------------------------------------------------------------------------

# Sampled every 100 ms: rises that are less far apart are one, and one has at least so many samples.
APART_S, LEAST = 0.35, 10


def rises(samples):
    """The trend lines of (time in s, delay) by the paper's Algorithms 1 and 2: groups of delays that do not fall, merged with
    the one before if they are near and above its end."""
    groups = []
    for (_, before), (time, delay) in pairwise(samples):
        if delay < before:
            groups.append([])
        elif groups and groups[-1]:
            groups[-1].append((time, delay))
        else:
            groups = [*groups[:-1], [(time, delay)]]
    merged = []
    for group in filter(None, groups):
        last = merged[-1][-1] if merged else None
        if last and group[0][0] - last[0] <= APART_S and mean(delay for _, delay in group) > last[1]:
            merged[-1] += group
        else:
            merged.append(group)
    return [group for group in merged if len(group) >= LEAST]


def slope(points):
    """Of the regression line."""
    x, y = (mean(one) for one in zip(*points, strict=True))
    return sum((a - x) * (b - y) for a, b in points) / sum((a - x) ** 2 for a, _ in points)


def delays(rows, connection, path):
    """Time and smoothed RTT of a path, s."""
    rows = (row for row in rows if (row["connection"], row["path"]) == (connection, path))
    found = [(float(row["time_s"]), float(row["srtt_ms"] or 0) / 1000) for row in rows]
    return [(time, rtt) for time, rtt in found if rtt]


# Figures 1 and 2 begin after slow start.
SETTLED_S = 10


def settled(rows):
    """Of a connection on one path."""
    return [(time, rtt) for time, rtt in delays(rows, "mptcp", "row") if time > SETTLED_S]


def packets_per_s(mbps):
    return mbps * 1e6 / (8 * 1500)


# --- Tables ----------------------------------------------------------------------------------------------


def jains(runs, row, experiment):
    return [jain(1, one) for one in each(runs, ratio, networks.shared, row, experiment)]


def shared(runs):
    """Tables 3 and 4."""
    rows = []
    for name, experiment in EXPERIMENTS.items():
        cells = []
        for row in ROWS:
            ours = mean(jains(runs, row, experiment))
            of_tcp = mean(each(runs, ratio, networks.shared, row, experiment))
            cells.append(f"{ours:.3f} ({of_tcp:.2f})")
        rows.append([name, *(f"{one:.4f}" for one in experiment.jain.values()), *cells])
    return table(["J (ratio)", "paper: ssc", "paper: tr", *map(name_of, ROWS)], rows)


def verdicts(runs):
    """Each of Tables 3 and 4 against ours."""
    listed = [(system, row) for system, rows in SYSTEMS.items() for row in rows]
    listed += [("tr", row) for row in XCORR]
    rows = []
    for name, experiment in EXPERIMENTS.items():
        judged = [fair(mean(jains(runs, row, experiment)), experiment.jain[system]) for system, row in listed]
        rows.append([name, *judged])
    rows.append(["**all**", *(count([row[n] for row in rows]) for n in range(1, len(listed) + 1))])
    return table(["", *(name_of(row) for _, row in listed)], rows)


def causes(runs):
    """What is worse on shared bottlenecks, where one thing differs."""
    rows = []
    for name, row, queue_ms in CAUSES:
        experiment = EXPERIMENTS[name]
        network = networks.shared(experiment, row.rival, queue_ms)
        found = runs.get(network, [row.control], row.signal, runs.seeds)[row.control]
        ratios = [ratio(network, seed, summary) for seed, summary in found.items()]
        index = mean(jain(1, one) for one in ratios)
        when = right = ""
        if row.signal:
            time = median(first(summary) for summary in found.values())
            when, right = "never" if time == inf else f"{time:.1f}", percent(mean(one["detection"][0]["accuracy"] for one in found.values()))
        published = experiment.jain["ssc" if row.control == "ssc-lia" else "tr"]
        differs = f"queue {queue_ms} ms" if queue_ms else "no detector: always coupled"
        rows.append([name, name_of(row), differs, f"{index:.3f} ({mean(ratios):.2f})", fair(index, published), when, right])
    return table(["", "control", "what differs", "J (ratio)", "verdict", "first s", "right, %"], rows)


def firsts(runs):
    """When the shared bottleneck is first found."""
    listed = [row for row in ROWS if "+" in row.control or row.control.endswith("-lia")]
    rows = []
    for name, experiment in EXPERIMENTS.items():
        cells = []
        for row in listed:
            _, found = runs.of(networks.shared, row, experiment)
            time = median(first(summary) for summary in found.values())
            right = mean(summary["detection"][0]["accuracy"] for summary in found.values())
            cells.append(f"{'never' if time == inf else f'{time:.1f}'} ({percent(right)})")
        rows.append([name, *cells])
    return table(["first s (right, %)", *map(name_of, listed)], rows)


def apart(runs, factor):
    """Separate bottlenecks: equation 20."""
    rows = []
    for name, experiment in EXPERIMENTS.items():
        cells = []
        for row in ROWS:
            ours = mean(each(runs, over_best, networks.apart, row, experiment, factor))
            merged = each(runs, wrong, networks.apart, row, experiment, factor)
            cells.append(f"{ours:.2f}" + (f" ({percent(mean(merged))})" if None not in merged else ""))
        rows.append([name, f"{mean(each(runs, possible, networks.apart, ROWS[0], experiment, factor)):.2f}", *cells])
    means = [text(interval(of_all(runs, over_best, row, factor))) for row in ROWS]
    rows.append(["**mean**", text(interval(of_all(runs, possible, ROWS[0], factor))), *means])
    return table(["R (wrong, %)", "a TCP's share on both", *map(name_of, ROWS)], rows)


def of_rtts(runs, control, signal, figure, experiment, ratio):
    """A figure of a network with separate bottlenecks whose RTTs have a ratio, beside Reno."""
    network = networks.apart(experiment, "reno", 1, ratio)
    (summary,) = runs.get(network, [control], signal)[control].values()
    return figure(network, 1, summary)


def gain_of_rtts(runs, control, signal, ratio):
    """The mean gain over the networks, and half its interval."""
    return interval([of_rtts(runs, control, signal, over_best, one, ratio) - 1 for one in EXPERIMENTS.values()])


def gain_text(gain):
    middle, half = gain
    return f"{100 * middle:+.0f} ±{100 * half:.0f} %"


def by_rtts(runs):
    """Separate bottlenecks of equal n/C, by how many times the first path's RTT the second has: equation 20."""
    rows = []
    for name, experiment in EXPERIMENTS.items():
        cells = []
        for ratio in networks.RATIOS:
            for row in BY_RTTS:
                own, merged = (of_rtts(runs, *row, figure, experiment, ratio) for figure in (over_best, wrong))
                cells.append(f"{own:.2f}" + ("" if merged is None else f" ({percent(merged)})"))
        rows.append([name, *cells])
    columns = [(ratio, *row) for ratio in networks.RATIOS for row in BY_RTTS]
    gains_ = [gain_of_rtts(runs, control, signal, ratio) for ratio, control, signal in columns]
    judged = [f", {near(gain, GAIN)}" if control == "tr-lia" else "" for gain, (_, control, _) in zip(gains_, columns, strict=True)]
    rows.append(["**gain**", *(gain_text(gain) + verdict for gain, verdict in zip(gains_, judged, strict=True))])
    names = [f"{ratio:g}: {control}{f', {signal}' if signal else ''}" for ratio, control, signal in columns]
    return table(["R (wrong, %)", *names], rows)


def of_program(runs, experiment):
    """Of the author's rule, by whether the bottleneck is shared: the network and the summary of its run. Not `tr-lia`, which has
    the paper's parameters whatever the network says."""
    found = {}
    for shares, network in (True, networks.shared(experiment, "reno")), (False, networks.apart(experiment, "reno", 1)):
        network = networks.by_program(network)
        (summary,) = runs.get(network, ["lia+tr"], "rtt")["lia+tr"].values()
        found[shares] = network, summary
    return found


def gain_of_program(runs):
    found = [of_program(runs, one)[False] for one in EXPERIMENTS.values()]
    return interval([over_best(network, 1, summary) - 1 for network, summary in found])


def by_program(runs):
    """TR by the rule of the author's program, as far as it goes: shared and separate bottlenecks, one run each."""
    rows = []
    for name, experiment in EXPERIMENTS.items():
        found = of_program(runs, experiment)
        network, summary = found[True]
        of_tcp, time = ratio(network, 1, summary), first(summary)
        right = percent(summary["detection"][0]["accuracy"])
        when = "never" if time == inf else f"{time:.1f}"
        verdict = fair(jain(1, of_tcp), experiment.jain["tr"])
        apart_ = f"{over_best(found[False][0], 1, found[False][1]):.2f}", percent(wrong(found[False][0], 1, found[False][1]))
        rows.append([name, f"{jain(1, of_tcp):.3f} ({of_tcp:.2f})", verdict, when, right, *apart_])
    gain = gain_of_program(runs)
    rows.append(["**all**", "", count([row[2] for row in rows]), "", "", f"{gain_text(gain)}, {near(gain, GAIN)}", ""])
    return table(["", "shared: J (ratio)", "verdict", "first s", "right, %", "separate: R", "wrong, %"], rows)


def traces():
    """Of docs/detection.md, which has the paper's trace experiments: by experiment, queue and law when TR and SSC first find it,
    and the share of SSC's findings that are right."""
    made = comparisons.read(HOME / "docs/detection.md", ["traces"]).split(comparisons.mark("traces"))[1].split(comparisons.END)[0]
    lines = [line.strip("| ").split(" | ") for line in made.strip().splitlines() if line.startswith("| E")]
    return {tuple(line[:3]): (float(line[3]), float(line[5]), line[6]) for line in lines}


def headline(runs):
    """What the paper's abstract and conclusion rest on."""
    own = {row: interval([one - 1 for one in of_all(runs, over_best, row, 1)]) for row in ROWS}
    tr, ssc = ([row for row in SYSTEMS[name] if row.rival == "reno"] for name in ("tr", "ssc"))
    reno, cubic = (next(row for row in ROWS if row.control == law) for law in ("reno", "cubic"))

    def by_ratio(signal):
        found = [(ratio, gain_of_rtts(runs, "tr-lia", signal, ratio)) for ratio in networks.RATIOS]
        return "; ".join(f"{ratio:g}: {gain_text(gain)}, {near(gain, GAIN)}" for ratio, gain in found)

    program = gain_of_program(runs)
    found = traces()
    earlier = sum(a < b for a, b, _ in found.values())
    failed = found["E3", "droptail", "reno"]
    indices = {row: [fair(mean(jains(runs, row, one)), one.jain["tr"]) for one in EXPERIMENTS.values()] for row in SYSTEMS["tr"]}
    equal = [text_ for row in tr for text_ in [f"{row.signal} {gain_text(own[row])}"]]
    fairer = {row: sum(mean(jains(runs, row, one)) > mean(jains(runs, other, one)) for one in EXPERIMENTS.values()) for row, other in zip(tr, ssc, strict=True)}
    of = len(EXPERIMENTS)
    rows = [
        ["two subflows over one path, separate bottlenecks", "+74 %", "; ".join(equal), ", ".join(sorted({near(own[row], GAIN) for row in tr})),
         f"like slopes n/(C r) couple; no coupling has {gain_text(own[reno])} beside Reno, {gain_text(own[cubic])} beside CUBIC"],
        *([f"the same, by ratio of RTTs, {signal}", "+74 %", by_ratio(signal), "", "how unlike the slopes are"] for signal in ("rtt", "srtt")),
        ["the same, by the rule of the author's program, rtt", "+74 %", gain_text(program), near(program, GAIN), "matches of 100 ms in all of three periods, not one of 5 s"],
        ["TR finds a shared bottleneck before SSC, traces", "13 of 16", f"{earlier} of {len(found)}", most(earlier, len(found)).split(" (")[0],
         "SSC as published waits for 60 intervals, 21 s"],
        ["SSC fails, traces, E3, droptail, Reno", "yes", f"finds it after {failed[1]:.1f} s, right in {failed[2]} %", "not reproduced" if failed[1] < inf else "reproduced",
         "not found; the author's program has another SSC"],
        *([f"TR-LIA's J, Tables 3 and 4: {name_of(row)}", "0.81 to 1.00", count(verdict), "", "the law of the TCPs beside it" if row.rival == "cubic" else ""] for row, verdict in indices.items()),
        *([f"TR is fairer than SSC, {row.signal}, beside Reno", "in 7 of 9", f"{number} of {of}", most(number, of).split(" (")[0],
           "whether and when SSC finds it"] for row, number in fairer.items()),
        ["TR has more than SSC, separate bottlenecks, beside Reno", "yes", "; ".join(f"{a.signal}: {gain_text(own[a])} and {gain_text(own[b])}" for a, b in zip(tr, ssc, strict=True)),
         most(sum(own[a][0] > own[b][0] for a, b in zip(tr, ssc, strict=True)), 2).split(" (")[0],
         "where SSC couples nothing it has what no coupling has"],
    ]  # fmt: skip
    return table(["claim", "published", "ours", "verdict", "what decides it"], rows)


def gains(runs):
    """The mean gain over one path, of both halves, and the verdicts."""
    rows = []
    for row in ROWS:
        cells = []
        for factor in FACTORS:
            own = [one - 1 for one in of_all(runs, over_best, row, factor)]
            most = [one - 1 for one in of_all(runs, possible, row, factor)]
            part = [one / other for one, other in zip(own, most, strict=True)]
            cells += [f"{100 * mean(own):+.0f} %", text(interval(part))]
            if row in SYSTEMS["tr"]:
                cells.append(near(interval(own), GAIN))
            elif row in XCORR:
                cells.append(reached(interval(own if factor == 1 else part), OURS))
            else:
                cells.append("")
        rows.append([name_of(row), *cells])
    halves = [f"{half}: {what}" for half in ("equal", "factor 2") for what in ("gain", "of what is possible", "verdict")]
    return table(["", *halves], rows)


def claims(runs):
    """The text's other claims."""
    ours = {row: [jains(runs, row, one) for one in EXPERIMENTS.values()] for rows in SYSTEMS.values() for row in rows}
    rows = []
    for tr in SYSTEMS["tr"]:
        ssc = next(row for row in SYSTEMS["ssc"] if (row.signal, row.rival) == (tr.signal, tr.rival))
        fairer = sum(mean(a) > mean(b) for a, b in zip(ours[tr], ours[ssc], strict=True))
        earlier = 0
        for one in EXPERIMENTS.values():
            times = [[first(summary) for summary in runs.of(networks.shared, row, one)[1].values()] for row in (tr, ssc)]
            earlier += median(times[0]) < median(times[1])
        both = [[mean(of_all(runs, over_best, row, factor)) for factor in FACTORS] for row in (tr, ssc)]
        more = "; ".join(f"{a:.2f} and {b:.2f}" for a, b in zip(*both, strict=True))
        where = f"{tr.signal}, beside {'CUBIC' if tr.rival == 'cubic' else 'Reno'}"
        of = len(EXPERIMENTS)
        rows += [
            [f"TR is fairer than SSC, {where}", "in 7 of 9", most(fairer, of)],
            [f"TR finds it earlier, {where}", "yes", most(earlier, of)],
            [f"separate, equal; factor 2: TR has more than SSC, {where}: R {more}", "yes", most(sum(a > b for a, b in zip(*both, strict=True)), 2)],
        ]
    return table(["claim", "paper", "ours"], rows)


def figure_1(runs):
    """One Reno flow alone: equation 13, by which the square of the RTT rises by 2 n / C in a second."""
    network = networks.alone()
    rows = runs.series(network, ["reno"], "reno")
    lines = rises([(time, rtt**2) for time, rtt in settled(rows)])
    found = weighted([(slope(line), len(line)) for line in lines])
    expected = 2 / packets_per_s(networks.ALONE_MBPS)
    return table(
        ["slope of RTT², s²/s", "2 n / C", "ours", "rises", "verdict"],
        [["one Reno flow, 1 Mbit/s", f"{expected:.4f}", f"{found:.4f}", len(lines), slope_is(found, expected)]],
    )


def weighted(slopes):
    """The median of slopes, each with the samples of its line."""
    return median(found for found, samples in slopes for _ in range(samples))


def table_1(runs):
    """One path with others on it: n / C, and n / (C r) with the line's mean RTT."""
    rows = []
    for experiment, (mbps, _, law) in networks.SINGLE.items():
        for flows in networks.SINGLE_FLOWS:
            network = networks.single(experiment, flows)
            lines = rises(settled(runs.series(network, [law], law)))
            found = 1000 * weighted([(slope(line), len(line)) for line in lines])
            rtt = weighted([(mean(delay for _, delay in line), len(line)) for line in lines])
            plain = 1000 * flows / packets_per_s(mbps)
            exact = plain / rtt
            judged = [slope_is(found, one) for one in (plain, exact)]
            rows.append([experiment, law, flows, f"{found:.0f}", f"{plain:.0f}", judged[0], f"{exact:.0f}", judged[1]])
    return table(["", "law", "flows", "slope, ms/s", "n / C", "verdict", "n / (C r)", "verdict"], rows)


# Table 5, and the detector's constants (sections 4.3): its period and the gap of two lines in s, the error of two slopes; flat
# lines match nothing.
PUBLISHED_PAIRS = [
    (473, 441), (219, 190), (397, 454), (140, 147), (447, 410), (348, 317), (335, 341), (182, 190), (286, 283),
]  # fmt: skip
PERIOD_S, TAU_S, EPS, FLAT = 5, 1, 0.2, 0.010


def effective(one, other):
    """By period, the slopes of two paths' longest lines, from their (time, delay), if they match by Algorithm 3."""
    found = []
    for period in range(networks.DURATION_S // PERIOD_S):
        inside = lambda sample, period=period: period * PERIOD_S <= sample[0] < (period + 1) * PERIOD_S
        lines = [max(rises(list(filter(inside, path))), key=len, default=None) for path in (one, other)]
        if None in lines:
            continue
        slopes = [slope(line) for line in lines]
        apart = max(line[0][0] for line in lines) - min(line[-1][0] for line in lines)
        if min(slopes) > FLAT and apart <= TAU_S and difference(slopes) <= EPS:
            found.append(slopes)
    return found


def difference(slopes):
    """Equation 18."""
    return (max(slopes) - min(slopes)) / max(slopes)


def table_5(runs):
    """Pairs of slopes that match, in T4-E5."""
    rows = []

    def middle(pairs):
        return median(one for pair in pairs for one in pair)

    def add(name, pairs, runs_):
        both = [one for pair in pairs for one in pair]
        spans = [f"{min(both):.0f} to {max(both):.0f}", f"{middle(pairs):.0f}"] if pairs else ["-", "-"]
        largest = f"{max(map(difference, pairs)):.2f}" if pairs else "-"
        rows.append([name, f"{len(pairs) / runs_:.1f}", *spans, largest])

    add("paper", PUBLISHED_PAIRS, 1)
    rows[-1].append("")
    for row in SYSTEMS["tr"]:
        network = networks.shared(EXPERIMENTS["T4-E5"], row.rival)
        pairs = []
        for seed in range(1, runs.seeds + 1):
            series = runs.series(network, runs.together(row), row.control, row.signal, seed)
            found = effective(*(delays(series, "mptcp", path) for path in networks.ROUTES))
            pairs += [[1000 * one for one in pair] for pair in found]
        add(name_of(row), pairs, runs.seeds)
        rows[-1].append(slope_is(middle(pairs), middle(PUBLISHED_PAIRS)) if pairs else "none")
    return table(["", "pairs in a run", "slopes, ms/s", "median", "largest error", "median's verdict"], rows)


# Windows of Figures 8 and 9, s.
WINDOWS = (0, 5, 10, 20, 40, 80, networks.DURATION_S)


def rates(runs):
    """Figures 8 and 9: T3-E1, seed 1; every 100 ms in rates.csv."""
    rows, lines = [], []
    for row in (one for rows in SYSTEMS.values() for one in rows if one.rival == "reno"):
        network = networks.shared(EXPERIMENTS["T3-E1"], row.rival)
        found = runs.series(network, runs.together(row), row.control, row.signal)
        for connection in ("mptcp", "tcp1", "tcp2"):
            of = {}
            for line in (line for line in found if line["connection"] == connection):
                of[float(line["time_s"])] = of.get(float(line["time_s"]), 0) + float(line["goodput_mbps"] or 0)
            lines += [[row.control, row.signal, connection, time, f"{rate:.3f}"] for time, rate in of.items()]
            # A sample is about the 100 ms before it.
            windows = [
                mean(rate for time, rate in of.items() if start < time <= end) for start, end in pairwise(WINDOWS)
            ]
            rows.append([f"{row.control}, {row.signal}: {connection}", *(f"{one:.1f}" for one in windows)])
    with (runs.options.out / "rates.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["control", "signal", "connection", "time_s", "goodput_mbps"])
        writer.writerows(lines)
    return table(["Mbit/s", *(f"{start} to {end} s" for start, end in pairwise(WINDOWS))], rows)


def bbr(runs):
    """One BBR flow: files of equal size, and the share of the link."""
    rows = []
    for control in BBR_CONTROLS:
        for paths in (2, 1) if control in ("reno", "cubic") else (2,):
            row = [f"{control}, {'two paths' if paths == 2 else 'one path'}"]
            for queue in networks.BBR_QUEUES_MS:
                done = bbr_found(runs, control, queue, paths, True)
                share = interval([goodput(one) / (goodput(one) + goodput(one, "tcp1")) for one in bbr_found(runs, control, queue, paths, False)])
                times = [mean(completion(one, name) for one in done) for name in ("mptcp", "tcp1")]
                row.append(f"{times[0]:.0f} / {times[1]:.0f}, {percent(share[0])}")
            rows.append(row)
    return table(["s / BBR's s, share in %", *(f"queue {queue} ms" for queue in networks.BBR_QUEUES_MS)], rows)


def completion(summary, name):
    found = next(one for one in summary["connections"] if one["name"] == name)["completion_s"]
    return inf if found is None else found


def bbr_found(runs, control, queue, paths, file):
    controls = BBR_CONTROLS if paths == 2 else ["reno", "cubic"]
    return runs.get(networks.beside_bbr(queue, paths, file), controls)[control].values()


def bbr_claims(runs):
    """The paper: a multipath connection is done after one TCP in its place, and "nearly starves"."""
    rows = []
    for control in BBR_CONTROLS:
        if control in ("reno", "cubic"):
            continue
        later = starved = 0
        for queue in networks.BBR_QUEUES_MS:
            own = mean(completion(one, "mptcp") for one in bbr_found(runs, control, queue, 2, True))
            tcp = mean(completion(one, "mptcp") for one in bbr_found(runs, "cubic" if "cubic" in control else "reno", queue, 1, True))
            later += own > tcp
            greedy = bbr_found(runs, control, queue, 2, False)
            starved += mean(goodput(one) / (goodput(one) + goodput(one, "tcp1")) for one in greedy) < 0.1
        rows.append([control, *(most(one, len(networks.BBR_QUEUES_MS)) for one in (later, starved))])
    return table(["", "done after one path of its law", "less than a tenth of the link"], rows)


TABLES = {
    "headline": headline,
    "verdicts": verdicts,
    "gains": gains,
    "claims": claims,
    "shared": shared,
    "causes": causes,
    "first": firsts,
    "apart, equal": lambda runs: apart(runs, 1),
    "apart, factor 2": lambda runs: apart(runs, 2),
    "apart, by RTTs": by_rtts,
    "the program's rule": by_program,
    "figure 1": figure_1,
    "table 1": table_1,
    "table 5": table_5,
    "figures 8 and 9": rates,
    "bbr": bbr,
    "bbr claims": bbr_claims,
}


if __name__ == "__main__":
    comparisons.remake(__doc__, "1 seed", "tr", DOCUMENT, TABLES, Runs, "quic")
