from __future__ import annotations

import os
from pathlib import Path

import narrows
import pytest


def resident() -> int:
    """Memory of this process, bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


def brief(name: str = "sbd/nsb-2") -> narrows.Scenario:
    """A shipped scenario, seconds long."""
    return narrows.Scenario.load(name).set("warmup", "1 s").set("duration", "3 s")


@pytest.fixture
def scenario() -> narrows.Scenario:
    return brief()
