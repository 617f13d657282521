"""The networks of docs/one-flow.md, as `narrows` takes them, and the controls compared there."""

import re
from dataclasses import dataclass, field
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]

# The laws compared; those of JUDGED also with the detector. Rivals are Reno flows, but for the laws in RIVALS.
LAWS = ["greno", "lia", "olia", "gcubic"]
JUDGED = ["greno", "gcubic"]
RIVALS = {"gcubic": "cubic"}
# All paths are one group, or the best detector finds the groups.
GROUPS = ["", "+xcorr"]

# Not used to find a law or a constant of it; by whether the form is quick. Twenty where one flow is most uncertain.
SEEDS = {False: range(11, 31), True: range(11, 13)}
TEN = {False: range(11, 21), True: range(11, 13)}
FIVE = {False: range(11, 16), True: range(11, 13)}


@dataclass
class Network:
    """A network, who is compared with the group there, and how."""

    name: str
    table: str
    scenario: str
    settings: list = field(default_factory=list)
    seeds: dict = field(default_factory=lambda: SEEDS)
    groups: list = field(default_factory=lambda: GROUPS)
    paths: int = 2
    rivals: list = field(default_factory=lambda: ["tcp1"])
    # Which background has TCPs of the rivals' kind: the only one, or those of a list by number.
    backgrounds: list = field(default_factory=lambda: [""])
    metric: str = "ratio_to_tcp"
    # Another multipath connection under the same control, which the ratio is to.
    other: str = ""
    # When one more TCP takes the connection's place, and on which route; none: it does not.
    one_more: tuple = ()
    # When the run ends, s.
    end: float = 140
    phases: list = field(default_factory=list)

    @property
    def folder(self):
        return re.sub(r"[^a-z0-9.]+", "-", self.name.lower()).strip("-")

    def controls(self, laws):
        """All laws with all paths in one group, and some with the detector; of the sweep's many runs those judged."""
        judged = [law for law in laws if law in JUDGED]
        if self.table == "sweep":
            return judged
        with_detector = laws if self.table in ("apart", "shifting") else judged
        return [f"{law}{group}" for group in self.groups for law in (with_detector if group else laws)]

    def with_rivals(self, kind):
        """The settings with rivals of a kind; Reno's are the scenarios' own."""
        if kind == "reno":
            return self.settings
        flows = [f"flows.{rival}.cc={kind}" for rival in self.rivals]
        return [*self.settings, *flows, *(f"background.{place}cc={kind}" for place in self.backgrounds)]

    def beside_one_more(self, kind):
        """The settings with one more TCP in the connection's place, which itself starts as the run ends."""
        start, route = self.one_more
        more = f'{{kind="tcp", routes=["{route}"], cc="{kind}", start="{start:g} s"}}'
        return [*self.with_rivals(kind), f"flows.mptcp.start={self.end - 0.1:g} s", f"flows.more={more}"]


def rival_of(law):
    return RIVALS.get(law, "reno")


def kinds():
    """The laws by the kind of their rivals."""
    found = {}
    for law in LAWS:
        found.setdefault(rival_of(law), []).append(law)
    return found


def shared():
    """One bottleneck: the networks of the papers."""
    for suffix in ("", "-red", "-rtt"):
        for paths in range(2, 6):
            name = f"sb-{paths}{suffix}"
            yield Network(name, "shared", f"sbd/{name}", paths=paths, one_more=(2, "path1"))
    for name in ("e1", "e5"):
        # One run has 30 or 60 flows for 300 s.
        yield Network(
            f"tr/{name}",
            "shared",
            f"tr/{name}",
            seeds=TEN,
            one_more=(0, "n1-n7"),
            backgrounds=["0.", "1."],
            end=300,
        )


def many():
    """Five TCPs, alike in all, beside the traffic of others, and beside nobody else."""
    for paths in (2, 5):
        for rate, offered in ((20, "50 %"), (100, "50 %"), (100, "0 %")):
            settings = [
                *(s for s in dumbbell(paths, rate, 20, 1) if not s.startswith("background.rtt")),
                "background.greedy=[4]",
                f"background.offered={offered}",
                "background.rtt=['20 ms', '20 ms']",
                "duration=60 s",
            ]
            alone = "" if offered != "0 %" else ", nobody else"
            yield Network(
                f"{paths} paths, {rate} Mbit/s{alone}",
                "many",
                f"sbd/sb-{paths}",
                settings,
                seeds=FIVE,
                groups=[""],
                paths=paths,
                metric="ratio_to_best",
            )


def dumbbell(paths, rate, rtt, bdp):
    """sbd/sb-n at another rate in Mbit/s, RTT in ms and buffer in BDPs; as many flows beside, at rates to match."""
    packets = rate * rtt * 1000 / 8 / 1500
    scale = rate / 20
    low, high = (f"{pps * scale:g} packets/s" for pps in (50, 150))
    return [
        f"generator.dumbbell.rate={rate:g} Mbit/s",
        f"generator.dumbbell.rtt={rtt:g} ms",
        f"generator.dumbbell.delay={rtt / 4:g} ms",
        f"generator.dumbbell.queue={max(4, round(packets * bdp))} packets",
        f"background.rtt=['{rtt:g} ms', '{4 * rtt:g} ms']",
        f"background.tcp_rate={150 * scale:g} packets/s",
        f"background.udp_rate=['{low}', '{high}']",
    ]


# Each rate with each RTT; numbers of paths and buffers take turns.
RATES_MBPS = (1, 10, 100, 1000)
RTTS_MS = (5, 20, 80, 200)
TURNS = ((2, 1), (8, 4), (4, 0.25), (3, 2), (5, 0.5))
# A run has 25 loss cycles of the fair flow and at least 60 s or so many packets. Networks where these cycles take more
# than the most packets are left out: a run that holds them takes minutes.
CYCLES, LEAST_S, LEAST_PACKETS, MOST_PACKETS = 25, 60, 4e5, 1.5e6


def sweep():
    """Rates, RTTs, paths and buffers."""
    for turn, (rate, rtt) in enumerate((rate, rtt) for rate in RATES_MBPS for rtt in RTTS_MS):
        for paths, bdp in (TURNS[turn % len(TURNS)], TURNS[(turn + 2) % len(TURNS)]):
            packets_per_s = rate * 1e6 / 12000
            # A quarter of the link, with half of the queue in the mean.
            full_s = rtt / 1000 * (1 + bdp / 2)
            cycles_s = CYCLES * 2 / 3 * (packets_per_s * full_s / 4) * full_s
            if cycles_s * packets_per_s <= MOST_PACKETS:
                length = max(cycles_s, min(LEAST_S, LEAST_PACKETS / packets_per_s))
                yield point(paths, rate, rtt, bdp, round(length))


def point(paths, rate, rtt, bdp, length):
    warmup = max(5, length // 5)
    settings = [*dumbbell(paths, rate, rtt, bdp), f"warmup={warmup} s", f"duration={length} s"]
    return Network(
        f"{rate} Mbit/s, {rtt} ms, {bdp} BDP, {paths} paths",
        "sweep",
        f"sbd/sb-{paths}" if paths <= 5 else f"experiments/detection/networks/sb-{paths}.toml",
        settings,
        TEN,
        [""],
        paths=paths,
        one_more=(2, "path1"),
        end=warmup + length,
    )


def apart():
    """Bottlenecks of their own."""
    for paths in range(2, 6):
        rivals = [f"tcp{n + 1}" for n in range(paths)]
        yield Network(
            f"nsb-{paths}", "apart", f"sbd/nsb-{paths}", seeds=FIVE, paths=paths, rivals=rivals
        )
    for name in ("wifi-lte", "wifi-handover"):
        rivals = ["tcp-wifi", "tcp-lte"]
        yield Network(f"phone/{name}", "apart", f"phone/{name}", seeds=FIVE, backgrounds=[], rivals=rivals)


def two():
    """Two such connections, and nobody else; the other one starts with the first, or twelve seconds later."""
    for paths in (2, 5):
        for start in (2, 14):
            routes = ", ".join(f'"path{n + 1}"' for n in range(paths))
            yield Network(
                f"two of {paths} paths, {start - 2} s apart",
                "two",
                f"sbd/sb-{paths}",
                seeds=FIVE,
                paths=paths,
                other=f'kind="mptcp", routes=[{routes}], scheduler="min-rtt", start="{start} s"',
            )


def shifting():
    """The bottleneck shifts between a shared one and one for each path; the first phase is the start."""
    apart_, together = ("apart", ["tcp1", "tcp2"]), ("shared", ["tcp3"])
    phases = [(50, 80, *apart_), (80, 110, *together), (110, 140, *apart_), (140, 170, *together)]
    yield Network(
        "shifting-30",
        "shifting",
        "sbd/shifting-30",
        seeds=TEN,
        groups=["+xcorr"],
        rivals=["tcp1", "tcp2", "tcp3"],
        backgrounds=["0.", "1."],
        phases=phases,
    )


def all_of_them():
    for make in (shared, many, sweep, apart, two, shifting):
        yield from make()
