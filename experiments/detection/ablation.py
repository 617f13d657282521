#!/usr/bin/env python3
"""Takes the rules of `xcorr` out, one at a time, and makes the table `ablation` of docs/xcorr.md.

    experiments/detection/ablation.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

A copy of the source gets a detector for each rule, `xcorr1`, `xcorr2`, .., which is `xcorr` without it, and is built.
All of them watch the same packets: each drawn network of the design once with separate bottlenecks and once with shared
ones, so that a rule that only favours one answer gains nothing, and those that shift. --quick has half of the seeds, and
writes the document to DIR.
"""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from statistics import mean

import cells
import comparisons
from comparisons import HOME, interval, seeds_of
from design import findings

TITLE = "ablation"
DOCUMENT = HOME / "docs/xcorr.md"
C = "crates/laws/c"
SIGNALS = ["receiver-us", "rtt"]
# Unseen when constants and rules were chosen.
HALVES = {False: (range(401, 403), range(403, 405)), True: (range(401, 402), range(403, 404))}


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
    call = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "narrows", "--target-dir", str(comparisons.TARGET)]
    subprocess.run(call, cwd=root, check=True)
    return shutil.copy(comparisons.TARGET / "release/narrows", out / "narrows")


# --- Running ---------------------------------------------------------------------------------------------


def twins(design):
    """The networks, by their names: each drawn one with separate and with shared bottlenecks, and those that shift."""
    levels = {level["name"]: level for factor in design["factor"] for level in factor["level"]}
    for drawn in design["drawn"]:
        parts = [*(levels[name] for name in drawn["levels"]), {"name": drawn["name"]}]
        yield drawn["name"], [cells.cell(design, "drawn", side, parts) for side in cells.SIDES]
    for level in levels.values():
        if "shifting" in level.get("networks", ()):
            yield level["name"], [cells.cell(design, "shifting", "shifting", [level])]


def calls(design, cell, quick):
    """The comparisons of a cell: half of the seeds under each mask."""
    names = [f"xcorr{number or ''}:{signal}" for number in range(len(RULES) + 1) for signal in SIGNALS]
    settings = [*cell.settings, f"detection.passive={json.dumps(names)}"]
    controls = design["open"]["controls"][cell.law]
    for half, seeds in enumerate(HALVES[quick]):
        call = ["compare", cell.scenario, "--cc", controls[half % len(controls)], "--seeds", f"{seeds[0]}..{seeds[-1]}"]
        yield half, controls[half % len(controls)], call + [part for one in settings for part in ("--set", one)]


# The figures of a run.
RIGHT, WRONG, FIRST = range(3)


def measured(options, narrows):
    """Of each network, by variant and signal: the shares right and wrong, and the first right answer, s."""
    design = cells.read()
    found = {}
    for half in (0, 1):
        for name, sides in twins(design):
            for cell in sides:
                _, control, call = list(calls(design, cell, options.quick))[half]
                folder = options.out / cell.folder / str(half)
                comparisons.run(narrows, folder, call, f"{half + 1} of 2: {cell.name}", options.jobs)
                for summary in seeds_of(folder, control).values():
                    for one in summary["passive"]:
                        of = findings(one)
                        if of.shares["right"] is None:
                            continue
                        # One that was never right counts with the length of its phase.
                        first = one["phases"][0]["length_s"] if of.first_s is None else of.first_s
                        figures = found.setdefault((one["detector"], one["signal"]), {})
                        sides_of = figures.setdefault(name, {}).setdefault(cell.side, [])
                        sides_of.append((100 * of.shares["right"], 100 * of.shares["wrong"], first))
    return found


# --- The table -------------------------------------------------------------------------------------------


def by_network(figures, which):
    """A figure of each network: over its sides the mean of their runs'."""
    return {name: mean(mean(run[which] for run in runs) for runs in sides.values()) for name, sides in figures.items()}


def earned(found, number, signal, which):
    """What a rule adds to a figure, mean and half its 95 % interval over networks."""
    whole, without = (by_network(found[name, signal], which) for name in ("xcorr", f"xcorr{number}"))
    return interval([whole[name] - without[name] for name in whole])


def made(found):
    """A row for each rule. It earns by what is right and wrong; a rule that waits for more has later first answers."""
    rows = []
    for number, rule in enumerate(RULES, 1):
        good = bad = False
        row = [rule.name]
        for which, better in ((RIGHT, 1), (WRONG, -1), (FIRST, 0)):
            for signal in SIGNALS:
                value, half = earned(found, number, signal, which)
                good |= better * value > half
                bad |= better * value < -half
                row.append(f"{value:+.2f} ± {half:.2f}")
        row.append("both" if good and bad else "yes" if good else "costs" if bad else "cannot be told")
        rows.append(row)
    heads = [f"{what}, {signal}" for what in ("right, points", "wrong, points", "first, s") for signal in SIGNALS]
    return comparisons.table(["rule", *heads, "earns"], rows)


def main():
    options = comparisons.arguments(__doc__, "a seed for each mask, in place of two").parse_args()
    options.out = (options.out or HOME / ("out/ablation-quick" if options.quick else "out/ablation")).resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    page = comparisons.read(DOCUMENT, [TITLE])
    found = measured(options, options.narrows.resolve() if options.narrows else build(options.out))
    page = comparisons.replaced(page, TITLE, made(found))
    comparisons.write(DOCUMENT, page, options.out, options.quick, options.check)


if __name__ == "__main__":
    main()
