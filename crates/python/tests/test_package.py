"""What a package of Python has besides: types, documentation, a command."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import inspect
import os
import re
import subprocess
import sys
import types
from pathlib import Path
from types import GetSetDescriptorType
from typing import Any, get_args, get_origin

import narrows
import pytest
from conftest import brief
from narrows import _narrows


def test_types_are_those_of_the_code(tmp_path: Path) -> None:
    # MYPYPATH would let mypy take the package for one in source form.
    env = {**os.environ, "MYPY_CACHE_DIR": str(tmp_path)}
    # What the other modules import of Python 3.9 is not as typeshed has it.
    checked = "narrows" if sys.version_info >= (3, 10) else "narrows._narrows"
    command = [sys.executable, "-m", "mypy.stubtest", checked]
    output = subprocess.run(command, capture_output=True, text=True, env=env, check=False, cwd=tmp_path)
    assert output.returncode == 0, output.stdout + output.stderr
    typed = tmp_path / "typed.py"
    typed.write_text(
        "import narrows\n"
        "run: narrows.Run = narrows.run('sbd/nsb-2', cc='lia', seed=2)\n"
        "rows: narrows.Table = narrows.compare(['sbd/nsb-2'], ['lia'], 3).rows\n"
        "narrows.run('sbd/nsb-2', sead=1)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "typed.py"]
    output = subprocess.run(command, capture_output=True, text=True, env=env, check=False, cwd=tmp_path)
    assert "py.typed" not in output.stdout and output.stdout.count("error") == 1, output.stdout
    assert 'Unexpected keyword argument "sead"' in output.stdout


def public() -> dict[str, object]:
    """All that is public, and what is public in it, by name."""
    named = {name: getattr(narrows, name) for name in narrows.__all__ if not name.startswith("__")}
    for name, item in list(named.items()):
        if inspect.isclass(item):
            members = {member: getattr(item, member) for member in vars(item) if not member.startswith("_")}
            # Those of a dataclass with a default are among its attributes.
            fields = getattr(item, "__dataclass_fields__", {})
            named |= {f"{name}.{member}": value for member, value in members.items() if member not in fields}
    return named


PUBLIC = public()
CALLED = {name: item for name, item in PUBLIC.items() if callable(item) and not inspect.isclass(item)}


def returned() -> dict[str, str]:
    """What each function of Rust, and each method of its classes, returns as the stubs have it."""
    stubs = ast.parse((Path(narrows.__file__).parent / "_narrows.pyi").read_text())
    bodies = {"": stubs.body} | {f"{node.name}.": node.body for node in stubs.body if isinstance(node, ast.ClassDef)}
    return {
        f"{prefix}{node.name}": ast.unparse(node.returns)
        for prefix, body in bodies.items()
        for node in body
        if isinstance(node, ast.FunctionDef) and node.returns is not None
    }


def fits(value: object, hint: object) -> bool:
    """Is a value of a type, and what is in it of the types in that?"""
    if hint is Any or hint is object:
        return True
    if hint is None:
        return value is None
    origin, inner = get_origin(hint), get_args(hint)
    if origin is types.UnionType:
        return any(fits(value, one) for one in inner)
    if origin is list:
        return type(value) is list and all(fits(item, inner[0]) for item in value)
    if origin is dict:
        return type(value) is dict and all(fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items())
    if origin is tuple:
        return type(value) is tuple and len(value) == len(inner) and all(map(fits, value, inner))
    return type(value) is hint


@pytest.mark.skipif(sys.version_info < (3, 10), reason="a union of the stubs is no value there")
def test_what_is_given_is_of_the_types_of_the_stubs(tmp_path: Path) -> None:
    scenario = brief("sbd/sb-2")
    ours = narrows.run(scenario, cc="olia+ssc", series=True)
    compared = narrows.compare(brief(), "lia", 2, progress=False)
    rows = [(at / 10, flow, at % 7) for at in range(2000) for flow in ("a", "b")]
    swept = _narrows.Sweep(brief(), "lia", 1, None, None, "sim", None, None, False)
    results = _narrows.work(swept.task(0))
    [paper] = narrows.papers("cmpbbr/figure-1", quick=True, seeds=1)
    functions: dict[str, object] = {
        "build": _narrows.build(),
        "compare": compared,
        "detect": narrows.detect(rows),
        "listed": _narrows.listed("laws"),
        "papers": [paper],
        "run": ours,
        "work": results,
    }
    objects = [ours, ours.series, scenario, compared, functions["detect"], paper, swept]
    (tmp_path / "own.toml").write_text(scenario.to_toml())
    (tmp_path / "trace").write_text("1\n2\n3\n")
    arguments: dict[str, tuple[object, ...]] = {
        "Scenario.load": ("sbd/nsb-2",),
        "Scenario.from_file": (tmp_path / "own.toml",),
        "Scenario.from_dict": ({"base": "sbd/nsb-2", "name": "own"},),
        "Scenario.set": ("duration", "4 s"),
        "Scenario.replay": (scenario.links[0], tmp_path / "trace"),
        "Scenario.__eq__": (scenario,),
        "Scenario._restore": scenario.__reduce__()[1],
        "Run._restore": ours.__reduce__()[1],
        "Run.to_html": (tmp_path / "run.html",),
        "Run.to_pcap": (tmp_path / "pcap",),
        "Sweep.has": (0,),
        "Sweep.task": (0,),
        "Sweep.accept": (0, results),
    }
    names = {**vars(narrows), **vars(_narrows), "Any": Any}
    tried = set()
    for name, hint in returned().items():
        if name in functions:
            value: object = functions[name]
        elif "." in name and not name.endswith("__new__"):
            kind, member = name.split(".")
            [one] = [one for one in objects if type(one).__name__ == kind]
            value = getattr(one, member)
            if not isinstance(vars(type(one))[member], GetSetDescriptorType):
                value = value(*arguments.get(name, ()))
        else:
            continue
        assert fits(value, eval(hint, names)), (name, hint, type(value))
        tried.add(name)
    # The command ends a process.
    assert {name for name in returned() if not name.endswith("__new__") and name != "main"} == tried
    assert set(arguments) <= tried


def section(doc: str, name: str) -> str:
    """A section of a docstring in numpydoc's form; empty if there is none."""
    found = re.search(rf"(?:^|\n\n){name}\n-{{{len(name)}}}\n(.*?)(?=\n\n\S[^\n]*\n---|\Z)", doc, re.DOTALL)
    return found[1] if found else ""


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_is_documented(name: str) -> None:
    assert (inspect.getdoc(PUBLIC[name]) or "").split("\n\n")[0].endswith(".")


def entries(doc: str, name: str) -> list[tuple[str, str, str]]:
    """Those of a section, each with its type and text."""
    parts = re.split(r"^(\w+) : (\S.*)\n", section(doc, name), flags=re.MULTILINE)[1:]
    return list(zip(parts[::3], parts[1::3], parts[2::3]))


@pytest.mark.parametrize("name", CALLED)
def test_what_is_called_says_what_it_takes_gives_and_refuses(name: str) -> None:
    item: Any = CALLED[name]
    doc = inspect.getdoc(item) or ""
    takes = [name for name, _, text in entries(doc, "Parameters") if text.strip()]
    assert takes == [name for name in inspect.signature(item).parameters if name != "self"]
    # A type, and a sentence on it.
    gives = returned().get(name) != "None"
    assert bool(re.match(r"\S.*\n    \S", section(doc, "Returns"))) == gives
    # What takes arguments refuses wrong ones.
    assert bool(re.match(r"Error\n    \S", section(doc, "Raises"))) == bool(takes)


@pytest.mark.parametrize("name", ["run", "compare", "detect", "papers", "sweep"])
def test_what_computes_says_where_its_formulas_are_from(name: str) -> None:
    named = re.findall(r"`(\w+)\(\)`|`(\w+)\.(\w+)`", section(inspect.getdoc(PUBLIC[name]) or "", "References"))
    assert named
    # All of it is there, and has them.
    for catalogue, kind, member in named:
        if catalogue:
            assert {"source", "about", "title"} & set(getattr(narrows, catalogue)().column_names), catalogue
        else:
            assert hasattr(getattr(narrows, kind), member)


def test_a_table_says_what_its_rows_are() -> None:
    tables = [name for name, kind in returned().items() if kind == "Table" and "." in name]
    catalogues = [name for name, item in CALLED.items() if getattr(item, "__annotations__", {}).get("return") == "Table"]
    assert len(tables) > 10 and len(catalogues) == 6
    for name in tables + catalogues:
        assert re.search(r"\b[Rr]ow\b", inspect.getdoc(PUBLIC[name]) or ""), name


# Of what is a number: its unit, or what it counts.
UNITS = {
    "run.seed": "0 to 2\\^64-1",
    "run.threads": "Threads of the simulator",
    "compare.seeds": "How many, from 1 on",
    "compare.jobs": "Runs at the same time",
    "compare.progress": "the runs that are done and all",
    "detect.data": "time in s, .*delay in ms",
    "detect.flows": "so many of the largest flows, 1 to 64",
    "detect.min_packets": "fewer packets of data",
    "papers.seeds": "So many",
    "papers.jobs": "Runs at the same time",
    "sweep.progress": "the tasks that are done and all",
    "Plan.seeds": "How many, from 1 on",
    "Scenario.warmup_s": r"\bs\.",
    "Scenario.duration_s": r"\bs\.",
    "Scenario.set.value": "Text with its unit",
    "Run.seed": "seed",
    "Table.num_rows": "number of rows",
}


def numbers() -> dict[str, str]:
    """What is said of each argument, property and field that may be a number, by its name."""
    said = {}
    for name, item in CALLED.items():
        hints = getattr(item, "__annotations__", {})
        for argument, kind, text in entries(inspect.getdoc(item) or "", "Parameters"):
            hint = hints.get(argument, kind)
            if hint == "Seeds" or re.search(r"\b(int|float)\b", hint):
                said[f"{name}.{argument}"] = text
    for name, kind in returned().items():
        if isinstance(PUBLIC.get(name), GetSetDescriptorType) and kind in ("int", "float"):
            said[name] = inspect.getdoc(PUBLIC[name]) or ""
    fields = entries(inspect.getdoc(narrows.Plan) or "", "Attributes")
    assert [name for name, *_ in fields] == list(narrows.Plan.__dataclass_fields__)
    return said | {f"Plan.{name}": text for name, kind, text in fields if "int" in kind.split(", ")}


def test_a_number_has_its_unit() -> None:
    said = numbers()
    assert sorted(said) == sorted(UNITS)
    for name, unit in UNITS.items():
        assert re.search(unit, said[name], re.DOTALL), (name, said[name])


def test_the_command_comes_with_it() -> None:
    def narrows_(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "narrows", *words], capture_output=True, text=True, check=False)

    assert narrows_("--version").stdout.startswith(f"narrows {narrows.__version__}")
    assert "sbd/nsb-2" in narrows_("list", "scenarios").stdout
    # The wheel brings it as a command of its own, the library that cargo builds does not.
    project = Path(__file__).parents[1] / "pyproject.toml"
    [(name, target)] = re.findall(r"^\[project.scripts\]\n(\w+) = \"(\S+)\"$", project.read_text(), re.MULTILINE)
    module, function = target.split(":")
    assert callable(getattr(importlib.import_module(module), function))
    if any(importlib.metadata.distributions(name="narrows")):
        command = [Path(sys.executable).parent / name, "--version"]
        assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == narrows_("--version").stdout
    wrong = narrows_("run", "sbd/nsb2")
    assert wrong.returncode == 2 and "did you mean 'sbd/nsb-2'?" in wrong.stderr
