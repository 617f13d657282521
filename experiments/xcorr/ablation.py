#!/usr/bin/env python3
"""Takes the rules of `xcorr` out, one at a time, and makes the table `ablation` of docs/results/xcorr.md.

    experiments/xcorr/ablation.py [--quick] [--out DIR]

A copy of the source gets a detector for each rule, `xcorr1`, `xcorr2`, .., which is `xcorr` without it, and is built.
All of them watch the same packets, by `narrows papers detectors/twins`: each drawn network of the design once with
separate bottlenecks and once with shared ones, so that a rule that only favours one answer gains nothing. --quick has
one seed in place of two, and prints the table.
"""

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

HOME = Path(__file__).resolve().parents[2]
DOCUMENT = HOME / "docs/results/xcorr.md"
C = "crates/laws/c"
SIGNALS = ["receiver-us", "rtt"]
# Unseen when constants and rules were chosen.
FIRST_SEED, SEEDS = 401, {False: 2, True: 1}


# --- The rules -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """What `xcorr` is without: the text of its source that is replaced, once."""

    name: str
    old: str
    new: str = ""


RULES = [
    Rule("noise by the best lag where it is enough (first tally)", "if (count < least) {", "if (1) {"),
    Rule("else by all lags (second tally)", "if (count < least) {", "if (0) {"),
    Rule("two in a row to change shared to separate", "#define NR_XCORR_PART 2u", "#define NR_XCORR_PART 1u"),
    Rule("shared not said from r = 3/4 on, in place of 1", "squares * 4 >= count * 3)", "squares * 4 >= count * (smooth ? 3 : 4))"),
    Rule("shared taken back where refuted", "q->known.answer == NR_SHARED && g->noise & NR_XCORR_REFUTES", "0"),
    Rule("L < 0.5 - theta for separate where noise explains", "? 2 * NR_Q16 - less : NR_Q16", "? NR_Q16 : NR_Q16"),
    Rule("fast copy not separate where noise explains", "(slow || !(g->noise & NR_XCORR_EXPLAINS))", "1"),
    Rule(
        "slow copy goes by what the fast one found of noise",
        "\tnr_u32 squares, count, least, smooth;\n",
        "\tnr_u32 squares, count, least, smooth;\n\n\tif (g)\n\t\tg->noise = 0;\n",
    ),
    Rule("15/16 for noise in the fast copy, in place of 3/4", "#define NR_XCORR_FAST_STEPS 4u", "#define NR_XCORR_FAST_STEPS 2u"),
    Rule("the class of smooth pairs", "NR_XCORR_LINES : NR_XCORR_ROUGH", "NR_XCORR_ROUGH : NR_XCORR_ROUGH"),
    Rule("all rules of noise", "smooth = g->queues != NR_XCORR_ROUGH;", "smooth = g->queues = NR_XCORR_ROUGH;\n\treturn 0;"),
    Rule("clocks, drift", "if (slow)\n\t\tdrift =", "if (0)\n\t\tdrift ="),
    Rule("gaps up to G, in place of 40 ms", "#define NR_XCORR_GAP_MAX 12u", "#define NR_XCORR_GAP_MAX 2u"),
    Rule("gaps filled at all", "h->some && away <= h->gap", "0"),
    Rule("lags", "if (!g || !lag || lag->n < least)", "if (!g || !lag || lag->n < least || l != NR_XCORR_LAG_MAX)"),
    Rule("a lag counts with half the pairs of lag 0", "if (least < w->n / 2)", "if (0)"),
    Rule("the fast copy", "g->found = NR_UNSURE;\n", "g->found = NR_UNSURE;\n\tq->fast = (struct nr_xcorr_sums){0};\n"),
    Rule("the slow copy", "if (!p || !g || g->found || !g->right.m)", "if (!p || !g || g->found || !g->right.m || slow)"),
    Rule("n_eff, in place of n", "nr_xcorr_less(a, nr_fx_mul(nn, nr_fx(w->raa)))", "nr_fx(0)"),
    Rule("no answer below 0.04 ms^2", "#define NR_XCORR_FLAT 11u", "#define NR_XCORR_FLAT 1u"),
    Rule("shared only from L = 0.4 on", "#define NR_XCORR_LEAST 39322u", "#define NR_XCORR_LEAST 65535u"),
    Rule("no delays before the first loss, or 3 s", "start_us, start_s, SECONDS, 3,", "start_us, start_s, SECONDS, 0,"),
    Rule("none while the queue settles", "settle_us, settle_ms, MS, 500,", "settle_us, settle_ms, MS, 0,"),
    Rule("none after a pause", "pause_us, pause_ms, MS, 200,", "pause_us, pause_ms, MS, 10000,"),
    Rule("none while the application limits", "h->counts_us && !s->limited", "h->counts_us"),
    Rule("half a round trip back", "back = h->rtt_us / 2;", "back = 0;"),
]


def sources(root):
    """The detector's headers."""
    return [root / C / "detect/xcorr.h", *sorted((root / C / "detect/xcorr").glob("*.h"))]


def exchanged(path, *pairs):
    """The file with each old text, which it must have, replaced."""
    text = path.read_text()
    for old, new in pairs:
        if old not in text:
            sys.exit(f"{path.relative_to(HOME)}: expected {old!r}")
        text = text.replace(old, new)
    path.write_text(text)


def times(rule):
    """How often the source has the rule's text: once, or the rule is to be written anew."""
    return sum(path.read_text().count(rule.old) for path in sources(HOME))


def add(root, number, rule):
    """A detector without the rule."""
    if times(rule) != 1:
        sys.exit(f"{rule.name}: expected {rule.old!r} once in {C}/detect/xcorr")
    for path in sources(HOME):
        text = path.read_text()
        text = re.sub("xcorr|XCORR", rf"\g<0>{number}", text.replace(rule.old, rule.new))
        text = text.replace('.code = "xc"', f'.code = "x{number}"')
        to = root / C / "detect" / re.sub("xcorr", f"xcorr{number}", str(path.relative_to(HOME / C / "detect")))
        to.parent.mkdir(exist_ok=True)
        to.write_text(text)


def build(out):
    """The command with all of them."""
    root = out / "source"
    shutil.rmtree(root, ignore_errors=True)
    files = subprocess.run(["git", "ls-files"], cwd=HOME, capture_output=True, text=True, check=True).stdout.splitlines()
    for name in files:
        if (HOME / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(HOME / name, root / name)
    numbers = range(1, len(RULES) + 1)
    for number, rule in zip(numbers, RULES):
        add(root, number, rule)
    includes = "".join(f'#include "detect/xcorr{number}.h"\n' for number in numbers)
    rows = " \\\n".join(f"\tR({6 + number}, xcorr{number})" for number in numbers) + "\n"
    # After all others, as parameters are in the order of numbers.
    last = ("\tNR_NATIVE(R, 6, dcw)\n", "\tR(6, dcw)\n")
    xcorr = '#include "detect/xcorr.h"\n'
    appended = [(row, row.replace("\n", " \\\n") + rows) for row in last]
    exchanged(root / C / "detectors.def", (xcorr, xcorr + includes), *appended)
    exchanged(root / C / "detector.h", ("NR_DETECTORS_MAX 16", "NR_DETECTORS_MAX 64"))
    exchanged(root / C / "detect/deciding.h", ("NR_PARAM_WORDS 128", "NR_PARAM_WORDS 512"))
    raw = root / "crates/laws/src/raw.rs"
    exchanged(raw, ("DETECTORS_MAX: u32 = 16", "DETECTORS_MAX: u32 = 64"))
    exchanged(raw, ("DETECTOR_PARAMS: usize = 128", "DETECTOR_PARAMS: usize = 512"))
    exchanged(root / "crates/laws/src/params.rs", ("const WORDS: usize = 256;", "const WORDS: usize = 640;"))
    design = root / "crates/papers/src/detectors/design.toml"
    text = design.read_text()
    names = [f"xcorr{number or ''}:{signal}" for number in range(len(RULES) + 1) for signal in SIGNALS]
    text = re.sub(r"(?m)^passive = .*$", f"passive = {json.dumps(names)}", text, count=1)
    design.write_text(re.sub(r"(?m)^first = .*$", f"first = {FIRST_SEED}", text, count=1))
    target = out / "target"
    call = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "narrows", "--target-dir", str(target)]
    subprocess.run(call, cwd=root, check=True)
    return target / "release/narrows"


# --- The table -------------------------------------------------------------------------------------------


FIGURES = ("right", "wrong", "first_median_s")


def read(lines):
    """By detector and signal, and network: the mean over its two sides of each figure, shares in points."""
    found = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(lines):
        # A detector that was never right counts with the run, 100 s.
        first = min(float(row["first_median_s"]), 100.0)
        figures = (100 * float(row["right"]), 100 * float(row["wrong"]), first)
        if row["control"] == "all":
            network = row["cell"].split(", ", 1)[1]
            found[row["detector"], row["signal"]][network].append(figures)
    return {key: {name: [mean(one) for one in zip(*sides, strict=True)] for name, sides in of.items()} for key, of in found.items()}


def earned(found, number, signal, which):
    """What a rule adds to a figure, mean and half its 95 % interval over networks."""
    whole, without = found["xcorr", signal], found[f"xcorr{number}", signal]
    values = [whole[name][which] - without[name][which] for name in whole]
    # Student's t of some thirty networks.
    return mean(values), 2.045 * stdev(values) / sqrt(len(values))


def made(found):
    """A row for each rule. It earns by what is right and wrong; a rule that waits for more has later first answers."""
    heads = [f"{what}, {signal}" for what in ("right, points", "wrong, points", "first, s") for signal in SIGNALS]
    rows = [["rule", *heads, "earns"], ["---"] * (len(heads) + 2)]
    for number, rule in enumerate(RULES, 1):
        good = bad = False
        row = [rule.name]
        for which, better in enumerate((1, -1, 0)):
            for signal in SIGNALS:
                value, half = earned(found, number, signal, which)
                good |= better * value > half
                bad |= better * value < -half
                row.append(f"{value:+.2f} ± {half:.2f}")
        row.append("both" if good and bad else "yes" if good else "costs" if bad else "cannot be told")
        rows.append(row)
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one seed, and print the table")
    parser.add_argument("--out", type=Path, default=HOME / "out/ablation")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results"
    call = [build(out), "papers", "detectors/twins", "--seeds", str(SEEDS[options.quick]), "--out", results, "--resume"]
    subprocess.run(call, check=True, stdout=subprocess.DEVNULL)
    with (results / "detectors/twins.csv").open() as lines:
        table = made(read(lines))
    if options.quick:
        print(table, end="")
        return
    head, rest = DOCUMENT.read_text().split("<!-- table ablation -->\n", 1)
    _, after = rest.split("<!-- end -->", 1)
    DOCUMENT.write_text(f"{head}<!-- table ablation -->\n\n{table}\n<!-- end -->{after}")


if __name__ == "__main__":
    main()
