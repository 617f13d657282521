"""What the tables of documents have in common: running comparisons, and rewriting tables in a document."""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from functools import cache
from math import sqrt
from pathlib import Path
from statistics import mean, stdev

HOME = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HOME / "target"))
QUICK = 5


# --- Running ---------------------------------------------------------------------------------------------


def build(features=""):
    """The command, built for release, with features, if any."""
    call = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "narrows", "--features", features]
    subprocess.run(call, cwd=HOME, check=True)
    return TARGET / "release/narrows"


@cache
def digest(narrows):
    return hashlib.sha256(narrows.read_bytes()).hexdigest()


def run(narrows, folder, call, title, jobs=None):
    """`narrows compare` with its results in `folder`, unless the same build has done the same there."""
    done = f"{' '.join(call)}\n{digest(narrows)}\n"
    mark, begun = folder / "done", folder / "begun"
    if mark.exists() and mark.read_text() == done:
        return
    if not begun.exists() or begun.read_text() != done:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        begun.write_text(done)
    print(title, file=sys.stderr)
    call = [narrows, *call, "--jobs", str(jobs or os.cpu_count()), "--out", folder.resolve(), "--resume"]
    subprocess.run(call, cwd=HOME, stdout=subprocess.DEVNULL, check=True)
    begun.rename(mark)


SAFE = str.maketrans({c: "_" for c in " =.{}\"',/[]+"})


class Runs:
    """Runs what is asked for, and reads it, once."""

    def __init__(self, options, narrows):
        self.options, self.narrows = options, narrows
        self.read = {}

    def summaries(self, place, scenario, controls, settings, seeds):
        """The summaries of each control, by seed; `place` is their folder within that of the scenario."""
        folder = self.options.out / scenario.replace("/", "-") / place
        key = folder, *controls
        if key in self.read:
            return self.read[key]
        call = ["compare", scenario, "--cc", ",".join(controls), "--seeds", f"1..{seeds}"]
        for setting in settings:
            call += ["--set", setting]
        run(self.narrows, folder, call, f"{scenario} {' '.join(settings)}", self.options.jobs)
        found = {control: list(seeds_of(folder, control).values()) for control in controls}
        for control, summaries in found.items():
            assert len(summaries) == seeds, f"{folder}: {control} has {len(summaries)} runs"
        self.read[key] = found
        return found


# --- Statistics ------------------------------------------------------------------------------------------


# Student's t, 97.5 %, with 1 to 30 degrees of freedom.
STUDENT = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
]


def interval(values):
    """Mean and half its 95 % interval over runs; none without values, an interval from two on."""
    if not values:
        return None, None
    if len(values) < 2:
        return mean(values), None
    freedom = len(values) - 1
    # Beyond the table within 0.002.
    t = STUDENT[freedom - 1] if freedom <= len(STUDENT) else 1.96 + 2.42 / freedom
    return mean(values), t * stdev(values) / sqrt(len(values))


# --- Results ---------------------------------------------------------------------------------------------


def seeds_of(folder, control):
    """The summaries of a control in the folder of a comparison, by seed."""
    found = {}
    for file in folder.glob(f"runs/**/{control}/seed-*.json"):
        if re.fullmatch(r"seed-\d+\.json", file.name):
            found[int(re.sub(r"\D", "", file.stem))] = json.loads(file.read_text())
    return dict(sorted(found.items()))


# --- Tables ----------------------------------------------------------------------------------------------


def table(names, rows):
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


def percent(share):
    return "-" if share is None else f"{100 * share:.0f}"


END = "<!-- end -->"


def mark(name):
    return f"<!-- table {name} -->\n"


def read(document, names):
    """The document's text; all these tables must have their marks in it."""
    text = document.read_text()
    for name in names:
        if mark(name) not in text:
            sys.exit(f"{document} has no {mark(name).strip()}")
    return text


def replaced(text, name, made):
    """The text with another table between the marks of `name`."""
    head, rest = text.split(mark(name), 1)
    _, tail = rest.split(END, 1)
    return f"{head}{mark(name)}\n{made}\n{END}{tail}"


def write(document, text, out, quick, check):
    """The document with its new text: of a quick form beside its results; with `check` it may not differ."""
    if quick:
        (out / document.name).write_text(text)
        print(out / document.name)
    elif not check:
        document.write_text(text)
    elif text != document.read_text():
        sys.exit(f"the tables are others than those of {document}")


# --- The command -----------------------------------------------------------------------------------------


def arguments(about, quick):
    """The parser of a command that makes tables; `quick` says what its quick form has."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{quick}, and the document in DIR")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--narrows", type=Path, help="a command that is built already")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--check", action="store_true", help="fail if a table of the document differs")
    return parser


def command(options, features=""):
    return options.narrows.resolve() if options.narrows else build(features)


def remake(about, quick, name, document, tables, runs, features=""):
    """Makes all tables of a document from what `runs` reads, with results in out/`name`; the command has `features`."""
    options = arguments(about, quick).parse_args()
    options.out = options.out or HOME / "out" / (f"{name}-quick" if options.quick else name)
    page = read(document, tables)
    found = runs(options, command(options, features))
    for title, make in tables.items():
        page = replaced(page, title, make(found))
    write(document, page, options.out, options.quick, options.check)
