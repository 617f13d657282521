#!/usr/bin/env python3
"""Regenerates the tables of docs/one-flow.md: what a group of paths takes, by its law, and what it costs others.

    experiments/one_flow/tables.py [--quick] [--only TEXT] [--out DIR] [--narrows FILE] [--jobs J] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build begins anew), then rewrites
the tables, and writes their figures to DIR/cells.csv. --quick has few seeds and writes the document with its tables
to DIR; so does --only, which runs the networks with TEXT in their names. --narrows takes a command that is built
already. --check leaves the document alone and fails if a table differs.
"""

import csv
import shutil
import subprocess
import sys
from statistics import mean

import networks
from networks import HOME

sys.path.insert(0, str(HOME / "experiments/detection"))
import comparisons
from comparisons import interval, seeds_of, table

DOCUMENT = HOME / "docs/one-flow.md"
PACKET_BITS = 8 * 1448
# Of a Reno flow that peaks at w, a cycle has w / 2 round trips, and its mean is 3 w / 4.
CYCLE_RTTS = 2 / 3
# A group is judged where one flow has this many packets for each of its paths, and so many loss cycles.
JUDGED_PACKETS, JUDGED_CYCLES = 3, 20
# Shifts: windows of 5 s, the first after each shift reported apart.
STEP_S = 5


# --- Running ---------------------------------------------------------------------------------------------


def compare(narrows, options, network, kind, controls, settings):
    """Runs a network under some controls."""
    seeds = network.seeds[options.quick]
    call = ["compare", network.scenario, "--cc", ",".join(controls), "--seeds", f"{seeds[0]}..{seeds[-1]}"]
    for setting in settings:
        call += ["--set", setting]
    what = f"{network.name}: {kind}, {len(seeds)} seeds"
    comparisons.run(narrows, options.out / kind / network.folder, call, what, options.jobs)


def runs(options, network, kind, control):
    """The summaries of a control, by seed."""
    return seeds_of(options.out / (f"{kind}-{control}" if network.other else kind) / network.folder, control)


def series(narrows, options, network, kind, control):
    """The time series of each seed: `compare` writes that of the first alone."""
    for seed in network.seeds[options.quick]:
        folder = options.out / "series" / network.folder / control / str(seed)
        done = folder / "done"
        if not done.exists() or done.read_text() != comparisons.digest(narrows):
            call = [narrows, "run", network.scenario, "--cc", control, "--seed", str(seed)]
            for setting in network.with_rivals(kind):
                call += ["--set", setting]
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            subprocess.run([*call, "--out", folder / "run"], cwd=HOME, stdout=subprocess.DEVNULL, check=True)
            done.write_text(comparisons.digest(narrows))
        with (folder / "run/series.csv").open() as lines:
            yield list(csv.DictReader(lines))


def run(narrows, options, chosen):
    for network in (one for one in chosen if not one.phases):
        for kind, laws in networks.kinds().items():
            settings, controls = network.with_rivals(kind), network.controls(laws)
            if network.other:
                for control in controls:
                    other = f'flows.other={{{network.other}, cc="{control}"}}'
                    compare(narrows, options, network, f"{kind}-{control}", [control], [*settings, other])
            else:
                compare(narrows, options, network, kind, controls, settings)
            if network.table == "apart":
                compare(narrows, options, network, f"{kind}-uncoupled", [kind], settings)
            if network.one_more:
                compare(narrows, options, network, f"{kind}-more", ["lia"], network.beside_one_more(kind))


# --- Figures ---------------------------------------------------------------------------------------------


def quotient(these, those):
    """Mean over mean of as many runs, with half its 95 % interval (delta method): a mean of quotients is larger."""
    pairs = [(this, that) for this, that in zip(these, those) if None not in (this, that)]
    if not pairs:
        return None, None
    middle = sum(this for this, _ in pairs) / sum(that for _, that in pairs)
    size = mean(that for _, that in pairs)
    return middle, interval([(this - middle * that) / size for this, that in pairs])[1]


def connection(summary, name):
    return next(one for one in summary["connections"] if one["name"] == name)


def loss_rate(summary, rivals):
    """Of the rivals' packets, the share sent again."""
    again = sum(connection(summary, rival)["retransmits"] for rival in rivals)
    bits = sum(connection(summary, rival)["goodput_mbps"] for rival in rivals) * 1e6 * summary["duration_s"]
    return again / (bits / PACKET_BITS) if bits else None


def goodput(summary, name="mptcp"):
    return connection(summary, name)["goodput_mbps"]


class Results:
    """What was found, by network and control; all of it is in cells.csv."""

    def __init__(self, options, narrows):
        self.options, self.narrows = options, narrows
        self.rows = []

    def keep(self, network, control, figure, count, found):
        middle, half = found
        row = {"table": network.table, "network": network.name, "control": control, "figure": figure, "runs": count}
        self.rows.append({**row, "mean": middle, "ci95": half})
        return found

    def ratios(self, network, kind, control):
        """The group's goodput over one rival's; where bottlenecks are apart, over the uncoupled law's."""
        found = runs(self.options, network, kind, control)
        if network.table == "apart":
            alone = runs(self.options, network, f"{kind}-uncoupled", kind)
            value = quotient(map(goodput, found.values()), map(goodput, alone.values()))
        elif network.other:
            value = quotient(map(goodput, found.values()), (goodput(one, "other") for one in found.values()))
        else:
            value = interval([summary["test"][network.metric] for summary in found.values()])
        return self.keep(network, control, "ratio", len(found), value)

    def losses(self, network, kind, control):
        """The rivals' loss rate, over that beside one more TCP."""
        found = runs(self.options, network, kind, control).values()
        more = runs(self.options, network, f"{kind}-more", "lia").values()
        value = quotient(*([loss_rate(one, network.rivals) for one in part] for part in (found, more)))
        return self.keep(network, control, "rivals' loss rate", len(found), value)

    def fair(self, network, kind):
        """The window of one more TCP, packets, and its loss cycles in the run; means over the seeds."""
        windows, cycles = [], []
        for summary in runs(self.options, network, f"{kind}-more", "lia").values():
            path = connection(summary, "more")["paths"][0]
            windows.append(path["mean_cwnd_packets"])
            cycle_s = CYCLE_RTTS * windows[-1] * path["mean_srtt_ms"] / 1000
            cycles.append(summary["duration_s"] / cycle_s if cycle_s else 0)
        return mean(windows), mean(cycles)

    def windows(self, network, kind, control):
        """By the kind of phase and the time since its shift, 5 s each: goodput over the rivals' then."""
        found = {}
        for rows in series(self.narrows, self.options, network, kind, control):
            rates = {}
            for row in rows:
                # A row is about the 100 ms before it.
                key = int((float(row["time_s"]) - 0.05) // STEP_S), row["connection"]
                rates[key] = rates.get(key, 0) + float(row["goodput_mbps"] or 0)
            for start, end, phase, rivals in network.phases:
                for at in range(start // STEP_S, end // STEP_S):
                    these, those = found.setdefault((phase, at * STEP_S - start), ([], []))
                    these.append(rates[at, "mptcp"])
                    those.append(sum(rates[at, rival] for rival in rivals))
        return {
            (phase, since): self.keep(network, control, f"{phase}, {since} s", len(these), quotient(these, those))
            for (phase, since), (these, those) in found.items()
        }


# --- Tables ----------------------------------------------------------------------------------------------


def text(found, digits=2):
    middle, half = found
    if middle is None:
        return "-"
    return f"{middle:.{digits}f}" + ("" if half is None else f" ±{half:.{digits}f}")


def grid(results, chosen, name, figure):
    """A row for each network, a column for each control."""
    rows, heads = {}, {}
    for network in (one for one in chosen if one.table == name):
        for kind, laws in networks.kinds().items():
            for control in network.controls(laws):
                heads[control] = None
                rows.setdefault(network.name, {})[control] = text(figure(network, kind, control))
    return table(["", *heads], [[row, *(found.get(head, "-") for head in heads)] for row, found in rows.items()])


def sweep(results, chosen):
    """Rates, paths, buffers and RTTs: judged where the group is thick and the run long enough."""
    rows, judged, inside = [], 0, 0
    for network in (one for one in chosen if one.table == "sweep"):
        for kind, laws in networks.kinds().items():
            for control in network.controls(laws):
                window, cycles = results.fair(network, kind)
                found = results.ratios(network, kind, control)
                row = [network.name, control, f"{window:.0f}", f"{cycles:.0f}", "", text(found)]
                if window >= JUDGED_PACKETS * network.paths and cycles >= JUDGED_CYCLES:
                    row[4] = "yes"
                    judged += 1
                    inside += 0.92 <= found[0] <= 1.08
                rows.append([*row, text(results.losses(network, kind, control))])
    made = table(["", "law", "fair window", "cycles", "judged", "ratio", "rivals' loss"], rows)
    return f"{made}\nOf {judged} judged, {inside} are within 0.92 to 1.08.\n"


def shifting(results, chosen):
    """What came after each shift, 5 s by 5 s."""
    rows, steps = [], []
    for network in (one for one in chosen if one.table == "shifting"):
        for kind, control in ((kind, one) for kind, laws in networks.kinds().items() for one in network.controls(laws)):
            found = results.windows(network, kind, control)
            for phase in dict.fromkeys(phase for phase, _ in found):
                cells = [text(value) for (one, _), value in found.items() if one == phase]
                steps = cells if len(cells) > len(steps) else steps
                rows.append([f"{control}, {phase}", *cells])
    return table(["since the shift", *(f"{STEP_S * n} s" for n in range(len(steps)))], rows)


TABLES = {
    "one flow": lambda results, chosen: grid(results, chosen, "shared", results.ratios),
    "losses": lambda results, chosen: grid(results, chosen, "shared", results.losses),
    "many": lambda results, chosen: grid(results, chosen, "many", results.ratios),
    "sweep": sweep,
    "apart": lambda results, chosen: grid(results, chosen, "apart", results.ratios),
    "two": lambda results, chosen: grid(results, chosen, "two", results.ratios),
    "shifting": shifting,
}


def write_figures(results, out):
    with (out / "cells.csv").open("w", newline="") as file:
        lines = csv.DictWriter(file, list(results.rows[0]), lineterminator="\n")
        lines.writeheader()
        lines.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in results.rows)


# --- The command -----------------------------------------------------------------------------------------


def main():
    parser = comparisons.arguments(__doc__, "few seeds")
    parser.add_argument("--only", metavar="TEXT", help="networks with TEXT in their names, and the document in DIR")
    options = parser.parse_args()
    part = options.quick or options.only is not None
    options.out = options.out or HOME / ("out/one-flow-quick" if part else "out/one-flow")
    chosen = [network for network in networks.all_of_them() if (options.only or "") in network.name]
    if not chosen:
        parser.error(f"--only: no network has {options.only} in its name")
    page = comparisons.read(DOCUMENT, TABLES)
    narrows = comparisons.command(options)
    run(narrows, options, chosen)
    results = Results(options, narrows)
    for name, make in TABLES.items():
        page = comparisons.replaced(page, name, make(results, chosen))
    write_figures(results, options.out)
    comparisons.write(DOCUMENT, page, options.out, part, options.check)


if __name__ == "__main__":
    main()
