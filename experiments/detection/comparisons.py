"""What the tables of detectors have in common: running comparisons, and rewriting tables in a document."""

import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", HOME / "target"))
QUICK = 5


# --- Running ---------------------------------------------------------------------------------------------


def build():
    """The command, built for release."""
    call = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "narrows"]
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
