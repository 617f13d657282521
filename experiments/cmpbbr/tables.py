#!/usr/bin/env python3
"""Regenerates the tables of docs/bbr.md: BBR coupled, beside one flow, and the experiments of the C-MPBBR paper.

    experiments/cmpbbr/tables.py [--quick] [--out DIR] [--narrows FILE] [--jobs J] [--check]

Runs what is missing in DIR (an interrupted call goes on where it ended; another build begins anew), then rewrites
the tables. --quick has 3 seeds and writes the document with its tables to DIR. --narrows takes a command that is
built already. --check leaves the document alone and fails if a table differs.
"""

import sys
from pathlib import Path

HOME = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(HOME / "experiments/detection"))
import comparisons
from comparisons import SAFE, interval, table

DOCUMENT = HOME / "docs/bbr.md"
# The paper has "at least 30" runs of 120 s.
SEEDS = {False: 10, True: 3}
DETECTORS = {False: 3, True: 3}
# Tables of many cells.
FEW = {False: 4, True: 3}
MODELS = ["bbr", "c-mpbbr", "han-bbr", "u-mpbbr", "bbr+btlbw", "bbr+xcorr", "bbr+ssc", "bbr+tr"]
WINDOWS = ["lia", "olia", "balia"]
LAWS = MODELS + WINDOWS
RIVALS = {"bbr": "BBR", "reno": "Reno", "cubic": "CUBIC"}


class Runs(comparisons.Runs):
    def get(self, scenario, controls, settings=(), seeds=None):
        """The summaries of each control, by seed."""
        place = "-".join((*settings, ",".join(controls))).translate(SAFE)
        return self.summaries(place, scenario, controls, settings, seeds or SEEDS[self.options.quick])

    def against(self, scenario, rival, flows=("tcp1",)):
        """All controls beside `rival`; "own" is BBR for model laws, Reno for the others (the paper's rule)."""
        if rival == "none":
            return self.get(scenario, LAWS)
        found = {}
        for laws, own in ((MODELS, "bbr"), (WINDOWS, "reno")):
            law = own if rival == "own" else rival
            found |= self.get(scenario, laws, [f"flows.{flow}.cc={law}" for flow in flows])
        return found


# --- Figures ---------------------------------------------------------------------------------------------


def goodput(name):
    """Mbit/s of a connection."""
    return lambda summary: next(one for one in summary["connections"] if one["name"] == name)["goodput_mbps"]


def subflow(name):
    """Mbit/s that a path of the connection under test delivered."""

    def of(summary):
        test = next(one for one in summary["connections"] if one["name"] == "mptcp")
        return next(one for one in test["paths"] if one["name"] == name)["goodput_mbps"]

    return of


def ratio(one, other):
    return lambda summary: one(summary) / other(summary)


def benefit(rates):
    """Ag_bft, equation 3: of the goodput and the rates of all paths."""
    best = max(rates)

    def of(summary):
        total = goodput("mptcp")(summary)
        return (total - best) / (sum(rates) - best if total >= best else best)

    return of


def jain(*flows):
    def of(summary):
        rates = [flow(summary) for flow in flows]
        return sum(rates) ** 2 / len(rates) / sum(rate**2 for rate in rates)

    return of


def spread(summaries, figure):
    return interval([figure(summary) for summary in summaries])


def text(found, digits=2):
    middle, half = found
    return f"{middle:.{digits}f}" if half is None else f"{middle:.{digits}f} ±{half:.{digits}f}"


MPTCP, TCP = goodput("mptcp"), goodput("tcp1")
# Bandwidth of the paths: scenarios 1 to 5; a link for each path.
RATES = {"one": (10, 5), "two": (10, 5), "three": (10, 10), "four": (50, 1), "five": (10, 10)}
COMPLEX = (20, 1, 1, 20, 20)


# --- Tables ----------------------------------------------------------------------------------------------


def one_flow(runs, law, shares):
    """A group of n paths beside one flow of the same law."""
    rows = []
    seeds = SEEDS[runs.options.quick]
    for share in shares:
        row = [share]
        for bdp in (1, 2):
            for paths in (2, 3, 4, 5):
                # SB-n of the MPTCP-SBD paper without its background: 20 Mbit/s, 20 ms, 35 packets.
                settings = [
                    f"generator.dumbbell.queue={35 * bdp} packets",
                    f"flows.tcp1.cc={law}",
                    f"{law}.share={share}",
                    "background=[]",
                ]
                found = runs.get(f"sbd/sb-{paths}", [law], settings, seeds)[law]
                row.append(text(spread(found, ratio(MPTCP, TCP))))
        rows.append(row)
    names = [f"{paths} paths, {bdp} BDP" for bdp in (1, 2) for paths in (2, 3, 4, 5)]
    return table([f"{law}.share", *names], rows)


def version_3(runs):
    """A flow beside one of a window law, 1 BDP; two beside each other where the queue marks; each without loss."""
    rows = []
    pair = "cmpbbr/two-bbr"
    clean = ["links.bottleneck1.loss=0 %", "links.bottleneck1.queue=17 packets"]
    marks = ["tcp.ecn=true", "links.bottleneck1.ecn=true", "links.bottleneck1.loss=0 %", "links.bottleneck1.queue=100 packets"]
    red = 'links.bottleneck1.aqm={ red = { min = "5 packets", weight = WEIGHT } }'
    for law in ("bbr", "bbr3", "cubic"):
        row = [law]
        for rival in ("cubic", "reno"):
            found = runs.get(pair, [law], [*clean, f"flows.flow2.cc={rival}"])[law]
            row += [text(spread(found, goodput(flow))) for flow in ("flow1", "flow2")]
        for weight in ("1.0", "0.002"):
            settings = [*marks, red.replace("WEIGHT", weight), f"flows.flow2.cc={law}"]
            found = runs.get(pair, [law], settings)[law]
            row.append(text(spread(found, lambda one: sum(goodput(flow)(one) for flow in ("flow1", "flow2")))))
            row.append(text(spread(found, lambda one: one["links"][0]["mean_queue_ms"]), 1))
        rows.append(row)
    beside = [f"beside {rival}{what}" for rival in ("CUBIC", "Reno") for what in ("", ": the rival")]
    marked = [f"{kind}: {what}" for kind in ("marks at once", "marks by the average") for what in ("both", "queue, ms")]
    return table(["law", *beside, *marked], rows)


def unequal(runs):
    """The same with unequal RTTs: SB-n-rtt of the MPTCP-SBD paper without its background."""
    rows = []
    for share in ("group", "none"):
        row = [share]
        for paths in (2, 3, 4, 5):
            settings = ["flows.tcp1.cc=bbr", f"bbr.share={share}", "background=[]"]
            found = runs.get(f"sbd/sb-{paths}-rtt", ["bbr"], settings)["bbr"]
            row.append(text(spread(found, ratio(MPTCP, TCP))))
        rows.append(row)
    return table(["bbr.share", *(f"{paths} paths" for paths in (2, 3, 4, 5))], rows)


def figure_1(runs):
    """Two BBR flows with loss."""
    found = runs.get("cmpbbr/two-bbr", ["bbr"])["bbr"]
    rows = [["throughput of each, Mbit/s", "3.60, 3.62", ", ".join(text(spread(found, goodput(one))) for one in ("flow1", "flow2"))]]
    return table(["", "paper", "ours"], rows)


def total(runs, name, rivals):
    """The connection and its rival in Mbit/s, under each control."""
    rows = []
    found = {rival: runs.against(f"cmpbbr/{name}", rival) for rival in rivals}
    for law in LAWS:
        row = [law]
        for rival in rivals:
            of = found[rival][law]
            row.append(text(spread(of, MPTCP), 1))
            if rival != "none":
                row += [text(spread(of, TCP), 2 if name == "four" else 1), text(spread(of, ratio(MPTCP, TCP)))]
            row.append(text(spread(of, benefit(RATES[name]))))
        rows.append(row)
    heads = []
    for rival in rivals:
        beside = {"own": ", vs BBR/Reno", "cubic": ", vs CUBIC", "none": ""}[rival]
        heads.append(f"connection{beside}")
        if rival != "none":
            heads += ["rival", "ratio"]
        heads.append("Ag_bft")
    return table(["control", *heads], rows)


def fairness(runs):
    """Norm_Thpt of the rival (equation 4), and Jain's index as for Figure 13."""
    rows = []
    for law in LAWS:
        row = [law]
        for name, fair, flows in (
            ("two", (5,), (subflow("path1"), TCP)),
            ("three", (10 / 3, 5), (MPTCP, TCP)),
            ("four", (0.5,), None),
        ):
            for rival in ("own", "cubic"):
                of = runs.against(f"cmpbbr/{name}", rival)[law]
                row.append(" / ".join(text(spread(of, lambda one, fair=share: TCP(one) / fair)) for share in fair))
                if flows:
                    row.append(text(spread(of, jain(*flows))))
        rows.append(row)
    heads = []
    for number, has in ((2, True), (3, True), (4, False)):
        for rival in ("BBR/Reno", "CUBIC"):
            heads.append(f"{number}, vs {rival}: rival")
            if has:
                heads.append("Jain")
    return table(["control", *heads], rows)


def complex_network(runs):
    rows = []
    flows = ("tcp1", "tcp2", "tcp3")
    for rival in ("own", "cubic"):
        found = runs.against("cmpbbr/complex", rival, flows)
        for law in LAWS:
            of = found[law]
            each = [text(spread(of, goodput(flow)), 1 if flow != "tcp2" else 2) for flow in flows]
            beside = "CUBIC" if rival == "cubic" else "BBR" if law in MODELS else "Reno"
            rows.append([law, beside, text(spread(of, MPTCP), 1), *each, text(spread(of, benefit(COMPLEX)))])
    return table(["control", "rivals", "connection", "rival of 20 Mbit/s", "of 1 Mbit/s", "of the pair's 20", "Ag_bft"], rows)


def near(found, published):
    """The published ratio: reproduced if within a quarter of it, unless ours is nearer to no effect, 1; else as our mean lies."""
    middle = found[0]
    if abs(middle - published) <= published / 4:
        return "reproduced" if abs(middle - published) <= abs(middle - 1) else "cannot be told"
    return "higher" if middle > published else "lower"


# What the paper shows in scenario 4 asks for buffers that fill.
SMALL = ["flows.mptcp.recv_buffer=1 MB", "flows.mptcp.send_buffer=1 MB"]
# Goal 1: what a control needs besides bbr.close. A detector that is not sure must not count as coupling there.
CLOSING = {"u-mpbbr": [], "c-mpbbr": [], "bbr+xcorr": ["decision.undecided=none"]}


def goal_1(runs):
    """Scenario 4 with advice, by what the buffers hold: the connection and the rival, Mbit/s."""
    rows = []
    parts = ("0", "0.4", "0.6", "0.95")
    for law in (*CLOSING, *WINDOWS):
        row = [law]
        for buffers in ([], SMALL):
            for part in parts:
                if law in WINDOWS and part != "0":
                    row.append("")
                    continue
                settings = [*buffers, *CLOSING.get(law, []), f"bbr.close={part}"]
                found = runs.get("cmpbbr/four", [law], settings, FEW[runs.options.quick])[law]
                row.append(f"{text(spread(found, MPTCP), 1)} / {text(spread(found, TCP))}")
        rows.append(row)
    heads = [f"{size}, {'off' if part == '0' else part}" for size in ("6 MB", "1 MB") for part in parts]
    return table(["control", *heads], rows)


def itself(runs):
    """Two connections of the same control: Jain's index, and what both have, Mbit/s."""
    rows = []
    others = {"c-mpbbr": "bbr+btlbw", "u-mpbbr": "bbr", "han-bbr": "bbr"}
    for law in ("c-mpbbr", "han-bbr", "u-mpbbr", "bbr+xcorr", *WINDOWS):
        row = [law]
        for name in ("two", "three", "complex"):
            settings = [f"flows.other.cc={others.get(law, law)}"]
            found = runs.get(f"cmpbbr/{name}-itself", [law], settings, FEW[runs.options.quick])[law]
            row.append(text(spread(found, jain(MPTCP, goodput("other"))), 3))
            row.append(text(spread(found, lambda one: MPTCP(one) + goodput("other")(one)), 1))
        rows.append(row)
    heads = [f"{name}{what}" for name in ("scenario 2", "scenario 3", "five paths") for what in (": Jain", ": both")]
    return table(["control", *heads], rows)


def detectors(runs):
    """How often a detector is right on a BBR connection."""
    rows = []
    listed = ["bbr+xcorr", "bbr+ssc", "bbr+tr", "bbr+btlbw"]
    for scenario in ("sbd/nsb-2", "sbd/nsb-3", "sbd/nsb-5", "sbd/sb-2", "sbd/sb-3", "sbd/sb-5", "phone/wifi-lte"):
        found = runs.get(scenario, listed, [], DETECTORS[runs.options.quick])
        rows.append([scenario, *(text(spread(found[one], lambda of: of["test"]["accuracy"])) for one in listed)])
    return table(["network", *listed], rows)


def pair(one, other):
    """The connection under one control over the same under the other, by seed: the same losses."""
    return interval([MPTCP(a) / MPTCP(b) for a, b in zip(one, other, strict=True)])


def beside(name, control, *figures):
    """The ratio of two figures under a control beside its own rivals."""
    return lambda runs: spread(runs.against(f"cmpbbr/{name}", "own")[control], ratio(*figures))


def over(name, one, other, rival="own"):
    """The connection under one control over that under the other."""

    def of(runs):
        found = runs.against(f"cmpbbr/{name}", rival)
        return pair(found[one], found[other])

    return of


def small(control):
    """Scenario 4 with buffers of 1 MB, beside the control's own rival."""
    rival = "bbr" if control in MODELS else "reno"
    return lambda runs: runs.get("cmpbbr/four", [control], [f"flows.tcp1.cc={rival}", *SMALL])[control]


def over_small(one, other):
    return lambda runs: pair(small(one)(runs), small(other)(runs))


def kept(found):
    """What the rival keeps, over its fair share of scenario 4."""
    return lambda runs: spread(found(runs), lambda one: TCP(one) / 0.5)


def four(control):
    return lambda runs: runs.against("cmpbbr/four", "own")[control]


def figure_1_used(runs):
    """Both flows of Figure 1 over their link of 10 Mbit/s."""
    found = runs.get("cmpbbr/two-bbr", ["bbr"])["bbr"]
    return spread(found, lambda one: (goodput("flow1")(one) + goodput("flow2")(one)) / 10)


FIRST = subflow("path1")
# Claims of the paper's text: where, what, published, ours, what decides it.
HEADLINES = [
    ("Figure 1", "two bbr / their link", (3.6 + 3.62) / 10, figure_1_used, "not known: theirs lose a third"),
    ("1", "c-mpbbr / lia", 11.7 / 8.8, over("one", "c-mpbbr", "lia", "none"), "how much is lost"),
    ("2", "c-mpbbr: first subflow / rival", 3.7 / 4.1, beside("two", "c-mpbbr", FIRST, TCP), "how far estimates exceed rates"),
    ("2", "lia: first subflow / rival", 1.4 / 7.4, beside("two", "lia", FIRST, TCP), "not known"),
    ("2", "c-mpbbr / lia", 7.5 / 4.9, over("two", "c-mpbbr", "lia"), "both rows above"),
    ("3", "c-mpbbr / rival", 4.3 / 3.8, beside("three", "c-mpbbr", MPTCP, TCP), "the division"),
    ("3", "han-bbr / rival", 6.1 / 2.5, beside("three", "han-bbr", MPTCP, TCP), "which formula they ran"),
    ("3", "u-mpbbr / rival", 5.7 / 2.6, beside("three", "u-mpbbr", MPTCP, TCP), "two flows to one"),
    ("3", "lia / rival", 2.8 / 5.4, beside("three", "lia", MPTCP, TCP), "not known"),
    ("4", "c-mpbbr / u-mpbbr", 36 / 16.5, over("four", "c-mpbbr", "u-mpbbr"), "buffers: 6 MB, nothing held up"),
    ("4", "c-mpbbr / u-mpbbr, 1 MB", 36 / 16.5, over_small("c-mpbbr", "u-mpbbr"), "how soon it is closed, how much is held up"),
    ("4", "c-mpbbr / han-bbr, 1 MB", 36 / 15.4, over_small("c-mpbbr", "han-bbr"), "the same"),
    ("4", "c-mpbbr / lia, 1 MB", 36 / 24.3, over_small("c-mpbbr", "lia"), "the same"),
    ("4", "lia / u-mpbbr, 1 MB", 24.3 / 16.5, over_small("lia", "u-mpbbr"), "LIA's window on the slow path"),
    ("4", "c-mpbbr: rival / its share", 0.86 / 0.5, kept(four("c-mpbbr")), "whether the path is closed"),
    ("4", "c-mpbbr: rival / its share, 1 MB", 0.86 / 0.5, kept(small("c-mpbbr")), "the same"),
    ("4", "han-bbr: rival / its share, 1 MB", 0.47 / 0.5, kept(small("han-bbr")), "how seldom the path may send"),
    ("4", "u-mpbbr: rival / its share, 1 MB", 0.4 / 0.5, kept(small("u-mpbbr")), "the same"),
    ("4", "lia: rival / its share, 1 MB", 0.8 / 0.5, kept(small("lia")), "LIA's window on the slow path"),
    ("5", "c-mpbbr / u-mpbbr", 14.5 / 15.5, over("five", "c-mpbbr", "u-mpbbr", "none"), "window divided, too"),
    ("5", "han-bbr / u-mpbbr", 13.0 / 15.5, over("five", "han-bbr", "u-mpbbr", "none"), "the formula"),
    ("5", "lia / u-mpbbr", 10.5 / 15.5, over("five", "lia", "u-mpbbr", "none"), "losses, which ours do not have"),
    ("5", "olia / u-mpbbr", 11.4 / 15.5, over("five", "olia", "u-mpbbr", "none"), "the same"),
    ("5", "balia / u-mpbbr", 12.0 / 15.5, over("five", "balia", "u-mpbbr", "none"), "the same"),
]


def claims(runs):
    rows = []
    for where, what, published, figure, decides in HEADLINES:
        found = figure(runs)
        rows.append([where, what, f"{published:.2f}", text(found), near(found, published), decides])
    return table(["scenario", "ratio of goodputs", "paper", "ours", "verdict", "what decides it, as far as seen"], rows)


# Figures 11 to 14 are pictures; the text ranks. Controls of the paper.
PUBLISHED = ["c-mpbbr", "han-bbr", "u-mpbbr", *WINDOWS]
BBRS = PUBLISHED[:3]


def rankings(runs):
    """What the text says of the pictures, against our means."""

    def means(figure, name, rival="own", flows=("tcp1",)):
        found = runs.against(f"cmpbbr/{name}", rival, flows)
        return {law: spread(found[law], figure)[0] for law in PUBLISHED}

    def listed(values, holds):
        ordered = sorted(values, key=values.get, reverse=True)
        return ", ".join(f"{law} {values[law]:.2f}" for law in ordered), "reproduced" if holds else "not"

    def above(values, these, those):
        return min(values[law] for law in these) > max(values[law] for law in those)

    def best(values):
        return max(values, key=values.get) == "c-mpbbr"

    rows = []

    def row(place, claim, values, holds):
        rows.append([place, claim, *listed(values, holds(values))])

    row("11(a)", "Ag_bft in scenario 1: BBR above the window laws", means(benefit(RATES["one"]), "one", "none"), lambda of: above(of, BBRS, WINDOWS))
    for rival, panels in (("own", "bcd"), ("cubic", "fgh")):
        against = "BBR/Reno" if rival == "own" else "CUBIC"
        two, three, slow = (means(benefit(RATES[name]), name, rival) for name in ("two", "three", "four"))
        row(f"11({panels[0]})", f"scenario 2, {against}: BBR above the window laws", two, lambda of: above(of, BBRS, WINDOWS))
        row(f"11({panels[0]})", f"scenario 2, {against}: Han and uncoupled above c-mpbbr", two, lambda of: above(of, BBRS[1:], BBRS[:1]))
        row(f"11({panels[1]})", f"scenario 3, {against}: BBR above the window laws", three, lambda of: above(of, BBRS, WINDOWS))
        row(f"11({panels[1]})", f"scenario 3, {against}: Han and uncoupled above c-mpbbr", three, lambda of: above(of, BBRS[1:], BBRS[:1]))
        row(f"11({panels[2]})", f"scenario 4, {against}: c-mpbbr best", slow, best)
        row(f"11({panels[2]})", f"scenario 4, {against}: window laws above Han and uncoupled", slow, lambda of: above(of, WINDOWS, BBRS[1:]))
        for panel, name, fair in (("a", "two", 5), ("b", "three", 10 / 3)):
            number = 2 if name == "two" else 3
            rest = means(lambda one, fair=fair: TCP(one) / fair, name, rival)
            row(f"12({panel})", f"rival's share, scenario {number}, {against}: with c-mpbbr nearest to 1 of the BBRs", rest, lambda of: min(BBRS, key=lambda law: abs(of[law] - 1)) == "c-mpbbr")
            row(f"12({panel})", f"rival's share, scenario {number}, {against}: more than 1 beside the window laws", rest, lambda of: min(of[law] for law in WINDOWS) > 1)
        rest = means(lambda one: TCP(one) / 0.5, "four", rival)
        row("12(c)", f"rival's share, scenario 4, {against}: highest with c-mpbbr, about 2", rest, lambda of: best(of) and abs(of["c-mpbbr"] - 2) <= 0.5)
        for name, flows in (("two", (FIRST, TCP)), ("three", (MPTCP, TCP))):
            number = 2 if name == "two" else 3
            row(f"13({'a' if rival == 'own' else 'b'})", f"Jain, scenario {number}, {against}: c-mpbbr best", means(jain(*flows), name, rival), best)
        row(f"14({'b' if rival == 'own' else 'c'})", f"Ag_bft, five paths, {against}: c-mpbbr best", means(benefit(COMPLEX), "complex", rival, ("tcp1", "tcp2", "tcp3")), best)
    return table(["figure", "claim", "ours", "verdict"], rows)


TABLES = {
    "one flow": lambda runs: one_flow(runs, "bbr", ("group", "published", "han", "none")),
    "unequal": unequal,
    "version 3": version_3,
    "one flow, version 3": lambda runs: one_flow(runs, "bbr3", ("group", "none")),
    "claims": claims,
    "rankings": rankings,
    "figure 1": figure_1,
    "scenario 1": lambda runs: total(runs, "one", ("none",)),
    "scenario 2": lambda runs: total(runs, "two", ("own", "cubic")),
    "scenario 3": lambda runs: total(runs, "three", ("own", "cubic")),
    "scenario 4": lambda runs: total(runs, "four", ("own", "cubic")),
    "scenario 5": lambda runs: total(runs, "five", ("none",)),
    "goal 1": goal_1,
    "fairness": fairness,
    "itself": itself,
    "five paths": complex_network,
    "detectors": detectors,
}


if __name__ == "__main__":
    comparisons.remake(__doc__, "3 seeds", "cmpbbr", DOCUMENT, TABLES, Runs)
