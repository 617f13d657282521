"""What the cells of design.toml are: networks as `narrows` takes them."""

import random
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from comparisons import HOME

DESIGN = HOME / "experiments/detection/design.toml"
NETWORKS = "experiments/detection/networks"

# The centre: 35 packets are a bandwidth-delay product of 20 Mbit/s and 20 ms.
RATE_MBPS, QUEUE_PACKETS, RTT_MS = 20, 35, 20
LEAST_QUEUE = 10
# The background of sbd/base: packets/s of a TCP flow, and of a UDP flow in its bursts.
TCP_PPS, UDP_PPS = 150, (50, 150)

SIDES = {"separate": ("nsb", "disjoint"), "shared": ("sb", "dumbbell")}


def read():
    """The design, as its file has it."""
    return tomllib.loads(DESIGN.read_text())


@dataclass
class Cell:
    """A network that detectors are compared on."""

    name: str
    factor: str
    side: str
    scenario: str
    settings: list = field(default_factory=list)
    traces: dict = field(default_factory=dict)
    law: str = ""
    passive: list = field(default_factory=list)
    closed: bool = False

    @property
    def folder(self):
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-")

    def options(self, recordings):
        """What makes the network, as options of `narrows`; without a folder of recordings the shipped traces stay."""
        changes = [part for setting in self.settings for part in ("--set", setting)]
        traces = self.traces.items() if recordings else ()
        replayed = [f"{link}={Path(recordings, 'traces', file)}" for link, file in traces]
        return changes + [part for trace in replayed for part in ("--trace", trace)]


def numbered(setting, paths, bottlenecks):
    """The setting once for each bottleneck, rival or path, if its field says so by a star."""
    what = re.match(r"[^=]*?(bottleneck|tcp|path)\*", setting)
    if not what:
        return [setting]
    count = paths if what[1] == "path" else bottlenecks
    return [setting.replace("*", str(number)) for number in range(1, count + 1)]


def network(side, paths):
    """The scenario of so many paths: shipped up to five."""
    kind, _ = SIDES[side]
    return f"sbd/{kind}-{paths}" if paths <= 5 else f"{NETWORKS}/{kind}-{paths}.toml"


def link_settings(side, rate, bdp):
    """Rate and queue of all bottlenecks, and packet rates of a background with as many flows as at the centre."""
    scale = rate / RATE_MBPS
    queue = max(LEAST_QUEUE, round(QUEUE_PACKETS * scale * bdp))
    _, generator = SIDES[side]
    settings = [f"generator.{generator}.rate={rate:g} Mbit/s", f"generator.{generator}.queue={queue} packets"]
    if scale != 1:
        low, high = (f"{pps * scale:g} packets/s" for pps in UDP_PPS)
        settings.append(f"background.tcp_rate={TCP_PPS * scale:g} packets/s")
        settings.append(f"background.udp_rate=['{low}', '{high}']")
    return settings


def spread_rtts(paths, most):
    """Base RTTs, evenly from the centre's to `most` ms."""
    step = (most - RTT_MS) / (paths - 1)
    return [f"routes.path{path + 1}.rtt={RTT_MS + path * step:g} ms" for path in range(1, paths)]


def cell(design, factor, side, levels):
    """The cell of one level, or of levels of several factors; none if a level has no such side."""
    if any(level.get(side) is False for level in levels):
        return None
    merged = {key: value for level in levels for key, value in level.items()}
    paths = merged.get("paths", 2)
    networks = merged.get("networks")
    scenario = networks[side] if networks else network(side, paths)
    warmup, duration = merged.get("time", design["time"].values())
    settings = [f"warmup={warmup}", f"duration={duration}"]
    if "rate_mbps" in merged or "queue_bdp" in merged:
        settings += link_settings(side, merged.get("rate_mbps", RATE_MBPS), merged.get("queue_bdp", 1))
    if "rtt_ms" in merged:
        settings += spread_rtts(paths, merged["rtt_ms"])
    for setting in (s for level in levels for s in [*level.get("set", []), *level.get(side, [])]):
        settings += numbered(setting, paths, paths if side == "separate" else 1)
    return Cell(
        name=f"{side}, {merged['name']}",
        factor=factor,
        side=side,
        scenario=scenario,
        settings=settings,
        traces=merged.get("traces", {}).get(side, {}),
        law=merged.get("law", design["open"]["law"]),
        passive=merged.get("passive", design["open"]["passive"]),
        closed=merged.get("closed", True),
    )


def cells(design):
    """All cells, in the order of the design."""
    levels = {level["name"]: level for factor in design["factor"] for level in factor["level"]}
    for factor in design["factor"]:
        for level in factor["level"]:
            for side in level.get("networks", SIDES):
                made = cell(design, factor["name"], side, [level])
                if made:
                    yield made
    for drawn in design.get("drawn", []):
        parts = [levels[name] for name in drawn["levels"]]
        yield cell(design, "drawn", drawn["side"], [*parts, {"name": drawn["name"], "closed": False}])


def draw(design):
    """The drawn cells: of each factor with `draw` one of its levels there, uniformly; sides in turn."""
    # Of Python's generator only `random` is the same in all its versions.
    take = random.Random(design["draw"]["seed"]).random
    for number in range(1, design["draw"]["cells"] + 1):
        levels = [f["draw"][int(take() * len(f["draw"]))] for f in design["factor"] if "draw" in f]
        levels = [level for level in levels if level != "centre"]
        yield {"name": f"drawn {number}", "side": list(SIDES)[number % 2], "levels": levels}
