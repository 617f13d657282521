"""Scenarios of dicts: what a file says, a dict says too; nothing that a dict can hold does harm."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import narrows
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SMALL = {
    "name": "small",
    "warmup": "1 s",
    "duration": "2 s",
    "test": "two",
    "links": {
        "wifi": {"rate": "20 Mbit/s", "queue": "50 packets"},
        "lte": {"rate": "10 Mbit/s", "queue": "80 packets"},
    },
    "routes": {
        "near": {"links": ["wifi"], "rtt": "20 ms"},
        "far": {"links": ["lte"], "rtt": "60 ms"},
    },
    "flows": {"two": {"kind": "mptcp", "routes": ["near", "far"], "cc": "lia"}},
}


def test_a_dict_is_a_scenario() -> None:
    scenario = narrows.Scenario.from_dict(SMALL)
    assert (scenario.name, scenario.links, scenario.flows) == ("small", ["wifi", "lte"], ["two"])
    goodput = narrows.run(scenario).to_dict()["test"]["goodput_mbps"]
    # What both links carry, and what waited in front of the receiver.
    assert 5 < goodput < 32
    assert "20 Mbit/s" in scenario.describe()


@pytest.mark.parametrize(
    ("path", "value", "field", "expected"),
    [
        (("links", "wifi", "rat"), "1 Mbit/s", "links.wifi.rat", "`rate`"),
        (("links", "wifi", "rate"), "1 Mbitt/s", "links.wifi.rate", "rate"),
        (("links", "wifi", "rate"), math.nan, "links.wifi.rate", "finite"),
        (("links", "wifi", "rate"), object(), "links.wifi.rate", "text, a number"),
        (("flows", "two", "cc"), "oila", "flows.two.cc", "olia"),
        (("routes", "far", "links", 0), "lite", None, None),
        (("links", "wifi"), {"trace": "trace"}, "links.wifi.trace", "an absolute path"),
    ],
)
def test_what_is_wrong_has_its_field(path, value, field, expected) -> None:
    fields = copy.deepcopy(SMALL)
    at = fields
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(narrows.Error) as error:
        narrows.Scenario.from_dict(fields)
    assert error.value.file is None
    assert field is None or error.value.field == field, str(error.value)
    assert expected is None or expected in error.value.expected, str(error.value)


def test_a_recorded_trace_has_an_absolute_path(tmp_path: Path) -> None:
    (tmp_path / "trace").write_text("1\n2\n")
    fields = copy.deepcopy(SMALL)
    fields["links"]["wifi"] = {"trace": str(tmp_path / "trace"), "queue": "50 packets"}
    assert narrows.run(narrows.Scenario.from_dict(fields)).seed == 1


def test_what_is_missing_is_the_field() -> None:
    with pytest.raises(narrows.Error, match="missing field `warmup`") as error:
        narrows.Scenario.from_dict({name: value for name, value in SMALL.items() if name != "warmup"})
    assert (error.value.file, error.value.field) == (None, "warmup")


def test_a_dict_in_itself_ends() -> None:
    fields: dict = {"name": "loop"}
    fields["links"] = fields
    with pytest.raises(narrows.Error, match="without end"):
        narrows.Scenario.from_dict(fields)


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["20 Mbit/s", "10 ms", "5 packets", "lia", "-1 s", "1e400 s", "near", "wifi"])
    | st.binary(max_size=3)
)
FIELDS = sorted(SMALL) + ["rate", "delay", "loss", "queue", "events", "phases", "base", "wifi", "near", "two", "tcp"]
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(st.sampled_from(FIELDS), TREES, max_size=6), st.booleans())
def test_any_dict_is_a_scenario_or_an_error(fields: dict, whole: bool) -> None:
    try:
        scenario = narrows.Scenario.from_dict({**SMALL, **fields} if whole else fields)
    except narrows.Error as error:
        assert "\n" not in str(error) and "internal error" not in str(error)
    else:
        assert narrows.Scenario._restore(scenario.__reduce__()[1][0]) == scenario
