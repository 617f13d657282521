"""The networks of docs/tr.md, as `narrows` takes them: the Mininet topologies of the trend-line paper, and what else it shows."""

import csv
import re
from dataclasses import dataclass, field
from pathlib import Path

PUBLISHED = Path(__file__).parent / "published.csv"

# The layout, by what the paper's tables have in common; its Figure 5 cannot be read. docs/tr.md has it as a figure.
LAYOUT = {
    "L0": ("n0", "n1"),
    "L1": ("n1", "n3"),
    "L13": ("n0", "n2"),
    "L7": ("n2", "n3"),
    "L2": ("n3", "n5"),
    "L3": ("n5", "n7"),
    "L10": ("n5", "n8"),
    "L11": ("n7", "n8"),
    "L17": ("n8", "n10"),
    "L18": ("n10", "n11"),
}
# By topology, the links of each kind of flow. The connection under test has the first two ways: those from n0.
WAYS = {
    "T3": {"f1": ["L0", "L1", "L2"], "f2": ["L13", "L7", "L2"]},
    "T4": {
        "f0": ["L0", "L1", "L2", "L10", "L17", "L18"],
        "f1": ["L13", "L7", "L2", "L10", "L17", "L18"],
        "f2": ["L1", "L2", "L3"],
        "f3": ["L11"],
    },
}
# The first link of each of the two ways, which all flows of n0 take and no other.
FIRST = ("L0", "L13")
ROUTES = ("via-n1", "via-n2")


@dataclass
class Link:
    mbps: int
    delay_ms: int
    # In packets; none where the table has ten times Q, which never limits.
    queue: int | None


@dataclass
class Network:
    """A scenario, as a file, and which of its TCPs are on which path."""

    name: str
    text: str
    # By path, the prefixes of the names of the TCPs that go the same way as it.
    tcps: list = field(default_factory=list)

    def of_path(self, path, summary):
        """The goodputs of the TCPs that go the way of a path."""
        own, background = self.tcps[path]
        is_one = lambda name: name == own or re.fullmatch(rf"{background}\d+", name)
        return [one["goodput_mbps"] for one in summary["connections"] if is_one(one["name"])]


@dataclass
class Experiment:
    """A row of Tables 3 and 4."""

    name: str
    links: dict
    flows: dict
    jain: dict

    @property
    def ways(self):
        return WAYS[self.name.split("-")[0]]

    @property
    def bottleneck(self):
        """The link whose queue is Q."""
        (name,) = (name for name, link in self.links.items() if link.queue is not None)
        return name

    @property
    def scale(self):
        """What rates and numbers of flows are divided by, so that a run takes a second: as much as leaves whole numbers of
        them, and ten on each way of the connection."""
        counts = [count for flows, count in self.flows.items() if self.bottleneck in self.ways[flows]]
        fits = lambda n: not any(count % n for count in counts) and min(self.on_ways()) >= 10 * n
        return max(filter(fits, range(1, max(counts))))

    def on_ways(self):
        """The TCPs on each way of the connection."""
        return [self.flows[flows] for flows in list(self.ways)[:2]]

    def rtt_ms(self, flows):
        return 2 * sum(self.links[link].delay_ms for link in self.ways[flows])

    def queue_ms(self):
        link = self.links[self.bottleneck]
        return link.queue * 1500 * 8 / link.mbps / 1000


def experiments():
    """Those of Tables 3 and 4, by name."""
    lines = [line for line in PUBLISHED.read_text().splitlines() if not line.startswith("#")]
    return {one.name: one for one in map(experiment, csv.DictReader(lines))}


def experiment(row):
    packets = int(row["Q"])

    def link(entry):
        mbps, delay_ms, queue = entry.split("/")
        return Link(int(mbps), int(delay_ms), packets if queue == "Q" else None)

    return Experiment(
        row["experiment"],
        {name: link(row[name]) for name in LAYOUT if row[name]},
        {name: int(row[name]) for name in ("f0", "f1", "f2", "f3") if row[name]},
        {system: float(row[f"jain_{system}"]) for system in ("ssc", "tr")},
    )


# --- Scenarios -------------------------------------------------------------------------------------------

# The paper's text has no length; its Table 5 goes to 166 s.
DURATION_S = 170
SOURCE = "Delay trend line (Zhang, arXiv 1812.05816)"


def scenario(name, title, links, routes, flows, background, duration_s=DURATION_S, rivals=()):
    """The text of a file. `links` and `routes` are tables; `flows` are lines, `background` tables."""
    groups = {}
    for route, over in routes.items():
        groups.setdefault(over["links"][0], []).append(route)
    lines = [
        f'name = "{name}"',
        f'title = "{title}"',
        f'source = "{SOURCE}"',
        'warmup = "0 s"',
        f'duration = "{duration_s:g} s"',
        'test = "mptcp"',
        # The paper's Linux: before 6.6.
        'tcp.receiver_acks = "linux-6.5"',
        'detection.signal = "rtt"',
        *(f"links.{link} = {inline(table)}" for link, table in links.items()),
        *(f"routes.{route} = {inline(table)}" for route, table in routes.items()),
        *(f'rivals.{link} = "{flow}"' for link, flow in rivals),
        f'phases = [{{ start = "0 s", groups = {list(groups.values())} }}]'.replace("'", '"'),
        *(f"flows.{flow} = {inline(table)}" for flow, table in flows.items()),
        "background = [",
        *(f"    {inline(table)}," for table in background),
        "]",
    ]
    return "\n".join(lines) + "\n"


def inline(table):
    return "{ " + ", ".join(f"{key} = {value(of)}" for key, of in table.items()) + " }"


def value(of):
    if isinstance(of, dict):
        return inline(of)
    if isinstance(of, list):
        return "[" + ", ".join(map(value, of)) + "]"
    return f'"{of}"' if isinstance(of, str) else str(of)


def greedy(link, count, rtt_ms, law):
    rtt = f"{rtt_ms} ms"
    return {"links": [link], "greedy": [count], "rtt": [rtt, rtt], "cc": law}


def connection(routes=ROUTES):
    return {"kind": "mptcp", "routes": list(routes), "cc": "lia"}


def tcp(route, law, **more):
    return {"kind": "tcp", "routes": [route], "cc": law, **more}


def limit(mbps, queue_ms):
    """A link that limits."""
    return {"rate": f"{1000 * mbps:.0f} kbit/s", "queue": f"{queue_ms:g} ms"}


def both_ways(experiment, law, name, title, links, bottlenecks, rtts=None):
    """The connection's two paths, of which each has its bottleneck, and as many TCPs of `law` as go the same way; in place
    of the RTTs that the table has, `rtts` in ms."""
    kinds = list(experiment.ways)[:2]
    rtts = rtts or [experiment.rtt_ms(flows) for flows in kinds]
    ends = list(zip(ROUTES, kinds, bottlenecks, rtts, strict=True))
    count = lambda flows: experiment.flows[flows] // experiment.scale
    background = [greedy(link, count(flows) - 1, rtt, law) for _, flows, link, rtt in ends]
    for flows in list(experiment.ways)[2:]:
        if bottlenecks[0] in experiment.ways[flows]:
            background.append(greedy(bottlenecks[0], count(flows), experiment.rtt_ms(flows), law))
    return Network(
        name,
        scenario(
            name,
            title,
            links,
            {route: {"links": [link], "rtt": f"{rtt} ms"} for route, _, link, rtt in ends},
            {"mptcp": connection()} | {f"tcp{n}": tcp(route, law, start="0.5 s") for n, route in enumerate(ROUTES, 1)},
            background,
            rivals=dict(zip(bottlenecks, ("tcp1", "tcp2"), strict=True)).items(),
        ),
        [("tcp1", f"bg-{bottlenecks[0]}-greedy"), ("tcp2", f"bg2-{bottlenecks[1]}-greedy")],
    )


def shared(experiment, law, queue_ms=None):
    """As the table has it: one bottleneck; or with another queue."""
    bottleneck = experiment.bottleneck
    name = f"tr-{experiment.name.lower()}{f'-{queue_ms}ms' if queue_ms else ''}-{law}"
    links = {bottleneck: limit(experiment.links[bottleneck].mbps / experiment.scale, queue_ms or experiment.queue_ms())}
    return both_ways(experiment, law, name, "Two paths through one bottleneck", links, [bottleneck] * 2)


def apart(experiment, law, factor, ratio=None):
    """A bottleneck for each way: the first links share out the bottleneck's rate by their flows, so that n/C is its n/C on
    both; the second then has `factor` times that rate. With `ratio` the second way has so many times the first's RTT."""
    rate = experiment.links[experiment.bottleneck].mbps / experiment.scale
    counts = experiment.on_ways()
    rates = [rate * count / sum(counts) for count in counts]
    rates[1] *= factor
    links = {link: limit(mbps, experiment.queue_ms()) for link, mbps in zip(FIRST, rates, strict=True)}
    rtt = experiment.rtt_ms(next(iter(experiment.ways)))
    rtts = ratio and [rtt, f"{ratio * rtt:g}"]
    name = f"tr-{experiment.name.lower()}-apart-{factor}{f'-rtt-{ratio}' if ratio else ''}-{law}"
    return both_ways(experiment, law, name, "Two paths with a bottleneck each", links, list(FIRST), rtts)


# Of those with the RTTs of a ratio, T3-E1's beside Reno come as scenarios.
SHIPPED = Path(__file__).parents[2] / "scenarios/tr"
RATIOS = (1, 1.25, 2, 4)


def shipped(ratio):
    """The scenario of a ratio: its name and the text of its file."""
    made = apart(experiments()["T3-E1"], "reno", 1, ratio).text
    title = f"25 flows on two paths with a bottleneck each, RTT 60 and {60 * ratio:g} ms"
    made = made.replace(made.splitlines()[0], f'name = "tr/t3-e1-apart-rtt-{ratio}"')
    made = made.replace("Two paths with a bottleneck each", title)
    made = made.replace(SOURCE, f"{SOURCE}, Table 3, E1; separate bottlenecks and their RTTs by our rule")
    about = f"""\
# T3-E1 of the trend-line paper with a bottleneck for each way of its own, of the same n / C, as in docs/tr.md, scaled by 2; the
# second path has {ratio:g} times the first's RTT, so that the slopes n / (C r) differ by as much. Runs with --on quic. Made by
# experiments/tr/networks.py.
"""
    return f"tr/t3-e1-apart-rtt-{ratio}", about + made


# The nearest to the rule of the author's ns-3 program that `tr` has: crates/laws/c/detect/tr.h.
PROGRAM = {"tr.t_s": 0.1, "tr.settle_ms": 50, "tr.eps": 0.15, "tr.matches": 3}


def by_program(network):
    """The network, where `tr` has the rule of the author's program."""
    settings = "".join(f"{name} = {of}\n" for name, of in PROGRAM.items())
    return Network(f"{network.name}-program", network.text + settings, network.tcps)


# Table 1: the narrow link and the least RTT of its three links in a row.
SINGLE = {"1": (20, 180, "reno"), "2": (40, 240, "cubic")}
SINGLE_FLOWS = (15, 30, 60)


def single(experiment, flows):
    """Table 1: one path and so many flows, of which the connection under test is one. Its queue is not given: 100 ms, as
    in Table 2."""
    mbps, rtt_ms, law = SINGLE[experiment]
    name = f"tr-t1-{experiment}-{flows}"
    links = {"L1": limit(mbps, 100)}
    routes = {"row": {"links": ["L1"], "rtt": f"{rtt_ms} ms"}}
    flows_ = {"mptcp": connection(["row"]), "tcp1": tcp("row", law, start="0.5 s")}
    text = scenario(name, "One path", links, routes, flows_, [greedy("L1", flows - 2, rtt_ms, law)], rivals=[("L1", "tcp1")])
    return Network(name, text)


# Figure 1: 1 Mbit/s with 50 ms one way. Its queue is not given: 1 s.
ALONE_MBPS, ALONE_RTT_MS = 1, 100


def alone():
    """Figure 1: one flow, alone."""
    links = {"L1": limit(ALONE_MBPS, 1000)}
    routes = {"row": {"links": ["L1"], "rtt": f"{ALONE_RTT_MS} ms"}}
    flows = {"mptcp": connection(["row"])}
    return Network("tr-figure-1", scenario("tr-figure-1", "One flow alone", links, routes, flows, [], 300))


# Beside BBR, whose network the paper does not give: 20 Mbit/s, as Table 1's first, and the RTTs of T3-E1.
BBR_MBPS, BBR_RTTS_MS, BBR_FILE = 20, (60, 100), "50 MB"
BBR_QUEUES_MS = (25, 50, 100, 200)


def beside_bbr(queue_ms, paths, file):
    """A connection of one or two paths beside one BBR flow on its first: files of equal size, or as long as the run."""
    name = f"tr-bbr-{queue_ms}-{paths}-{'file' if file else 'greedy'}"
    source = {"source": {"file": {"size": BBR_FILE}}} if file else {}
    routes = {
        route: {"links": ["L2"], "rtt": f"{rtt} ms"} for route, rtt in list(zip(ROUTES, BBR_RTTS_MS, strict=True))[:paths]
    }
    links = {"L2": limit(BBR_MBPS, queue_ms)}
    flows = {"mptcp": connection(routes) | source, "tcp1": tcp(ROUTES[0], "bbr") | source}
    # Long enough for the second half of the files at a tenth of the link.
    length = 400 if file else 120
    return Network(name, scenario(name, "Beside one BBR flow", links, routes, flows, [], length, [("L2", "tcp1")]))


if __name__ == "__main__":
    for name, text in map(shipped, RATIOS[1:]):
        (SHIPPED.parent / f"{name}.toml").write_text(text)
