"""What a package of Python has besides: types, documentation, a command."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import narrows
import pytest


def test_types_are_those_of_the_code(tmp_path: Path) -> None:
    # MYPYPATH would let mypy take the package for one in source form.
    env = {**os.environ, "MYPY_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-m", "mypy.stubtest", "narrows", "--ignore-missing-stub"]
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


PUBLIC = [getattr(narrows, name) for name in narrows.__all__ if not name.startswith("__")]


@pytest.mark.parametrize("item", PUBLIC, ids=lambda item: item.__name__)
def test_everything_public_is_documented(item: object) -> None:
    doc = inspect.getdoc(item)
    assert doc and doc.splitlines()[0].endswith((".", "`."))
    if inspect.isclass(item):
        for name, member in vars(item).items():
            if not name.startswith("_") and member.__doc__ is not None:
                assert member.__doc__.strip(), name
            assert name.startswith("_") or member.__doc__ or item in (narrows.Plan, narrows.Error), name
        return
    for name in inspect.signature(item).parameters:
        assert f"\n{name} : " in doc, f"{name} of {item}"
    # What it is, and a sentence on it.
    assert re.search(r"\nReturns\n-------\n\S.*\n    \S", doc), item


def test_the_command_comes_with_it() -> None:
    def narrows_(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, "-m", "narrows", *words], capture_output=True, text=True, check=False)

    assert narrows_("--version").stdout.startswith(f"narrows {narrows.__version__}")
    assert "sbd/nsb-2" in narrows_("list", "scenarios").stdout
    wrong = narrows_("run", "sbd/nsb2")
    assert wrong.returncode == 2 and "did you mean 'sbd/nsb-2'?" in wrong.stderr
