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
SEEDS = {False: 5, True: 1}
TOO_MUCH = 1.25  # as `narrows fuzz` has it


def shared_networks():
    """Those with one TCP beside the connection, and no steps in time."""
    recordings = os.environ.get("NARROWS_TEST_DATA")
    for cell in cells.cells(cells.read()):
        if cell.side == "shared" and not cell.traces and cell.scenario.startswith("sbd/"):
            if any(one.startswith("flows.tcp1.start=") for one in cell.settings):
                continue
            settings = [one for one in cell.settings if not one.startswith(("warmup=", "duration="))]
            cell.settings = [*settings, f"flows.mptcp.start={START_S} s"]
            yield cell.folder, cell.scenario, [one for one in cell.options(recordings) if one != "--set"]


def measured(options, narrows):
    """By window and control, each network's ratio in the mean of its seeds."""
    found = {}
    runs = comparisons.Runs(options, narrows)
    networks = list(shared_networks())
    for folder, scenario, settings in networks:
        for begin, end in WINDOWS_S:
            times = [f"warmup={START_S + begin} s", f"duration={end - begin} s"]
            place = f"{folder}-{begin}"
            these = runs.summaries(place, scenario, CONTROLS, [*settings, *times], SEEDS[options.quick])
            for control, summaries in these.items():
                ratios = [one["test"]["ratio_to_tcp"] for one in summaries]
                if None not in ratios:
                    found.setdefault((begin, end), {}).setdefault(control, []).append(mean(ratios))
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
