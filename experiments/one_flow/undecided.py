#!/usr/bin/env python3
"""Regenerates the table `undecided` of docs/one-flow.md: what a connection takes of a shared bottleneck from its start on.

    experiments/one_flow/undecided.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

On every shared network of the detectors' design, drawn ones too, the connection starts 10 s after the TCP beside it,
so that of its first seconds nothing is known. --quick has one seed, and writes the document to DIR.
"""

import os
import sys
from statistics import mean, quantiles

from networks import HOME

sys.path.insert(0, str(HOME / "experiments/detection"))
import cells
import comparisons

TITLE = "undecided"
DOCUMENT = HOME / "docs/one-flow.md"
CONTROLS = ["reno", "lia", "greno+xcorr"]
START_S = 10
WINDOWS_S = [(0, 5), (5, 10), (10, 20), (20, 40)]
SEEDS = {False: range(301, 306), True: range(301, 302)}  # as those of the design: no constant was chosen by them
TOO_MUCH = 1.25  # as `narrows fuzz` has it


def shared_networks():
    """Those of up to five paths, each once, with a TCP beside the connection, both greedy."""
    recordings = os.environ.get("NARROWS_TEST_DATA")
    known = set()
    for cell in cells.cells(cells.read()):
        if cell.side != "shared" or cell.traces or not cell.scenario.startswith("sbd/"):
            continue
        # A share says nothing of a connection that the application limits: the design has none of those closed.
        if not cell.closed and cell.factor != "drawn" or any(one.startswith("flows.tcp1.start=") for one in cell.settings):
            continue
        settings = [one for one in cell.options(recordings) if not one.startswith(("--set", "warmup=", "duration="))]
        if (cell.scenario, *settings) not in known:
            known.add((cell.scenario, *settings))
            yield cell.folder, cell.scenario, [*settings, f"flows.mptcp.start={START_S} s"]


def summaries(options, narrows, folder, scenario, settings):
    """Of each control, by seed."""
    seeds = SEEDS[options.quick]
    call = ["compare", scenario, "--cc", ",".join(CONTROLS), "--seeds", f"{seeds[0]}..{seeds[-1]}"]
    for setting in settings:
        call += ["--set", setting]
    comparisons.run(narrows, options.out / folder, call, f"{scenario} {' '.join(settings)}", options.jobs)
    return {control: comparisons.seeds_of(options.out / folder, control).values() for control in CONTROLS}


def measured(options, narrows):
    """By window and control, each network's ratio in the mean of its seeds."""
    found = {}
    for folder, scenario, settings in shared_networks():
        for begin, end in WINDOWS_S:
            times = [f"warmup={START_S + begin} s", f"duration={end - begin} s"]
            these = summaries(options, narrows, f"{folder}-{begin}", scenario, [*settings, *times])
            for control, runs in these.items():
                ratio = mean(one["test"]["ratio_to_tcp"] for one in runs)
                found.setdefault((begin, end), {}).setdefault(control, []).append(ratio)
    return found


def made(found):
    """Median, quartiles, and how many networks are above what is right."""
    rows = []
    for control in CONTROLS:
        row = [control]
        for window in WINDOWS_S:
            ratios = found[window][control]
            low, middle, high = quantiles(ratios, n=4)
            many = sum(ratio > TOO_MUCH for ratio in ratios)
            row.append(f"{middle:.2f} ({low:.2f}-{high:.2f}), {many} of {len(ratios)}")
        rows.append(row)
    return comparisons.table(["", *(f"{begin}-{end} s" for begin, end in WINDOWS_S)], rows)


if __name__ == "__main__":
    tables = {TITLE: made}
    comparisons.remake(__doc__, "one seed", "undecided", DOCUMENT, tables, measured)
