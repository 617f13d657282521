#!/usr/bin/env python3
"""Regenerates the table of docs/laws.md: every law on the same networks.

    experiments/laws/tables.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build begins anew), then rewrites
the table. --quick has 3 seeds and writes the document with its table to DIR. --narrows takes a command that is
built already. --check leaves the document alone and fails if the table differs.
"""

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "experiments/detection"))
import comparisons
from comparisons import interval, table

SEEDS = {False: 20, True: 3}
ALONE = ["reno", "cubic", "u-mpbbr"]
COUPLED = ["ewtcp", "lia", "olia", "balia", "wvegas", "greno", "gcubic", "bbr", "bbr3"]
FOUND = ["lia+xcorr", "greno+xcorr", "gcubic+xcorr", "bbr+xcorr", "bbr3+xcorr"]
NETWORKS = {"sbd/nsb-2": "separate", "phone/wifi-lte": "separate", "sbd/sb-2": "shared", "sbd/sb-5": "shared, 5 paths"}


def ratios(runs):
    """Goodput over that of the TCP flows beside it."""
    controls = ALONE + COUPLED + FOUND
    seeds = SEEDS[runs.options.quick]
    found = {network: runs.summaries(".", network, controls, [], seeds) for network in NETWORKS}
    rows = []
    for control in controls:
        row = [f"`{control}`"]
        for of in found.values():
            middle, half = interval([summary["test"]["ratio_to_tcp"] for summary in of[control]])
            row.append(f"{middle:.2f} ±{half:.2f}")
        rows.append(row)
    return table(["control", *(f"{network}, {what}" for network, what in NETWORKS.items())], rows)


if __name__ == "__main__":
    comparisons.remake(__doc__, "3 seeds", "laws", HOME / "docs/laws.md", {"ratios": ratios}, comparisons.Runs)
