"""The networks, the figures made of their runs, and the verdicts: `python3 -m unittest discover experiments/tr`."""

import tomllib
import unittest
from math import sqrt

import networks
import tables

EXPERIMENTS = networks.experiments()


class Networks(unittest.TestCase):
    def test_every_way_leads_from_node_to_node(self):
        ends = {"T3": {"f1": ("n0", "n5"), "f2": ("n0", "n5")}}
        ends["T4"] = {"f0": ("n0", "n11"), "f1": ("n0", "n11"), "f2": ("n1", "n7"), "f3": ("n7", "n8")}
        for topology, ways in networks.WAYS.items():
            for flows, links in ways.items():
                start, end = ends[topology][flows]
                at = start
                for link in links:
                    a, b = networks.LAYOUT[link]
                    self.assertEqual(a, at, (topology, flows, link))
                    at = b
                self.assertEqual(at, end, (topology, flows))

    def test_one_link_limits(self):
        found = {name: one.bottleneck for name, one in EXPERIMENTS.items()}
        self.assertEqual(found.pop("T4-E5"), "L18")
        self.assertEqual(set(found.values()), {"L2"})

    def test_a_round_trip_is_twice_the_delays_of_its_links(self):
        found = {name: [one.rtt_ms(flows) for flows in one.ways] for name, one in EXPERIMENTS.items()}
        self.assertEqual(found["T3-E1"], [60, 100])
        self.assertEqual(found["T4-E5"], [400, 380, 120, 20])

    def test_scaled_flows_are_whole_and_ten_can_be_chosen(self):
        for one in EXPERIMENTS.values():
            for count in one.on_ways():
                self.assertEqual(count % one.scale, 0, one.name)
                self.assertGreaterEqual(count // one.scale, tables.CHOSEN, one.name)
        self.assertEqual({name: one.scale for name, one in EXPERIMENTS.items()}["T3-E4"], 5)

    def flows_per_mbps(self, network):
        """By link that limits."""
        file = tomllib.loads(network.text)
        flows = {link: 0 for link in file["links"]}
        for flow in (flow for flow in file["flows"].values() if flow["kind"] == "tcp"):
            flows[file["routes"][flow["routes"][0]]["links"][0]] += 1
        for background in file["background"]:
            flows[background["links"][0]] += background["greedy"][0]
        return {link: count / (int(file["links"][link]["rate"].split()[0]) / 1000) for link, count in flows.items()}

    def test_flows_per_mbps_are_the_papers(self):
        for one in EXPERIMENTS.values():
            crossing = sum(one.flows[flows] for flows, links in one.ways.items() if one.bottleneck in links)
            expected = crossing / one.links[one.bottleneck].mbps
            self.assertAlmostEqual(self.flows_per_mbps(networks.shared(one, "reno"))[one.bottleneck], expected, places=3)

    def test_separate_bottlenecks_have_equal_flows_per_mbps_or_half(self):
        for one in EXPERIMENTS.values():
            for factor in tables.FACTORS:
                first, second = self.flows_per_mbps(networks.apart(one, "cubic", factor)).values()
                self.assertAlmostEqual(first / second, factor, places=3)

    def test_a_ratio_of_rtts_is_that_of_the_paths_and_of_their_tcps(self):
        for one in EXPERIMENTS.values():
            as_published = tomllib.loads(networks.apart(one, "reno", 1).text)
            for ratio in networks.RATIOS:
                file = tomllib.loads(networks.apart(one, "reno", 1, ratio).text)
                first, second = (float(route["rtt"].split()[0]) for route in file["routes"].values())
                self.assertEqual(second, ratio * first)
                self.assertEqual([float(one["rtt"][0].split()[0]) for one in file["background"]], [first, second])
                self.assertEqual(file["links"], as_published["links"])

    def test_the_shipped_scenarios_are_those_of_the_ratios(self):
        for name, text in map(networks.shipped, networks.RATIOS[1:]):
            self.assertEqual((networks.SHIPPED.parent / f"{name}.toml").read_text(), text, name)
        names = [tomllib.loads(text)["name"] for _, text in map(networks.shipped, networks.RATIOS[1:])]
        self.assertEqual(names, [f"tr/t3-e1-apart-rtt-{ratio}" for ratio in ("1.25", "2", "4")])

    def test_another_queue_is_all_that_differs(self):
        one = EXPERIMENTS["T3-E1"]
        files = [tomllib.loads(networks.shared(one, "reno", queue_ms).text) for queue_ms in (None, 100)]
        self.assertEqual([file["links"]["L2"].pop("queue") for file in files], ["12 ms", "100 ms"])
        self.assertEqual(files[0] | {"name": ""}, files[1] | {"name": ""})

    def test_the_programs_rule_is_parameters_of_tr(self):
        file = tomllib.loads(networks.by_program(networks.apart(EXPERIMENTS["T3-E1"], "reno", 1)).text)
        self.assertEqual(file["tr"], {"t_s": 0.1, "settle_ms": 50, "eps": 0.15, "matches": 3})

    def test_a_paths_tcps_are_those_on_its_way(self):
        one = EXPERIMENTS["T4-E1"]
        names = ["mptcp", "tcp1", "tcp2", *(f"bg-L2-greedy{n}" for n in (1, 10)), "bg2-L2-greedy1", "bg3-L2-greedy1"]
        summary = {"connections": [{"name": name, "goodput_mbps": n} for n, name in enumerate(names)]}
        network = networks.shared(one, "reno")
        self.assertEqual([network.of_path(path, summary) for path in range(2)], [[1, 3, 4], [2, 5]])


class Figures(unittest.TestCase):
    def test_jain_is_of_the_mean_and_the_connection(self):
        self.assertEqual(tables.jain(2, 2), 1)
        self.assertAlmostEqual(tables.jain(1, 3), 16 / 20)

    def test_ten_are_chosen_and_the_same_ones_again(self):
        goodputs = list(range(30))
        chosen = tables.choose(goodputs, "T3-E1", 1)
        self.assertEqual(len(set(chosen)), 10)
        self.assertEqual(chosen, tables.choose(goodputs, "T3-E1", 1))
        self.assertNotEqual(chosen, tables.choose(goodputs, "T3-E1", 2))

    def on_two_paths(self, first, second, own):
        network = networks.apart(EXPERIMENTS["T3-E1"], "reno", 1)
        rates = {"mptcp": own, "tcp1": first, "tcp2": second}
        rates |= {f"bg-L0-greedy{n}": first for n in range(9)} | {f"bg2-L13-greedy{n}": second for n in range(14)}
        return network, {"connections": [{"name": name, "goodput_mbps": rate} for name, rate in rates.items()]}

    def test_the_gain_is_over_the_better_path(self):
        network, summary = self.on_two_paths(4, 2, 5)
        self.assertEqual(tables.over_best(network, 1, summary), 1.25)
        self.assertEqual(tables.possible(network, 1, summary), 1.5)

    def teeth(self, rise, fall=0.3, tooth=4):
        """Delays that rise for 4 s and fall, sampled every 100 ms."""
        return [(n / 10, 0.1 + rise * (n / 10 % tooth) - fall * (n / 10 // tooth % 1)) for n in range(400)]

    def test_lines_are_the_rises(self):
        lines = tables.rises(self.teeth(0.02))
        self.assertEqual(len(lines), 10)
        for line in lines:
            self.assertAlmostEqual(tables.slope(line), 0.02)
        self.assertEqual(tables.rises([(n / 10, 1 - n / 1000) for n in range(400)]), [])

    def test_a_dip_does_not_part_a_line_and_a_lower_delay_does(self):
        dip = [(n / 10, 0.1 + 0.02 * n / 10 - (0.003 if n == 20 else 0)) for n in range(40)]
        self.assertEqual(len(tables.rises(dip)), 1)
        lower = [(n / 10, 0.1 + 0.02 * n / 10 - (0.05 if n >= 20 else 0)) for n in range(40)]
        self.assertEqual(len(tables.rises(lower)), 2)

    def test_equation_13_is_a_line_of_squares(self):
        rate = 2 / tables.packets_per_s(1)
        delays = [(n / 10, sqrt(0.01 + rate * n / 10)) for n in range(100)]
        (line,) = tables.rises([(time, delay**2) for time, delay in delays])
        self.assertAlmostEqual(tables.slope(line), rate)

    def test_lines_of_two_paths_match_by_slope_and_time(self):
        one = self.teeth(0.02, tooth=5)
        self.assertEqual(len(tables.effective(one, self.teeth(0.023, tooth=5))), 8)
        self.assertEqual(tables.effective(one, self.teeth(0.03, tooth=5)), [])
        # Flat ones match nothing.
        self.assertEqual(tables.effective(self.teeth(0.005, tooth=5), self.teeth(0.005, tooth=5)), [])
        # More than a second apart within the period.
        early = [(time, delay if time % 5 < 1.5 else 0) for time, delay in one]
        late = [(time, delay if time % 5 > 3 else 0) for time, delay in one]
        self.assertEqual(tables.effective(early, late), [])


class Verdicts(unittest.TestCase):
    def test_an_index_is_reproduced_within_2_hundredths(self):
        for index, verdict in [(0.98, "reproduced"), (0.9605, "reproduced"), (0.959, "worse"), (1.001, "better")]:
            self.assertEqual(tables.fair(index, 0.98), verdict, index)

    def test_a_mean_is_near_if_its_interval_has_the_published_one(self):
        for found, verdict in [
            ((0.7, 0.05), "reproduced"),
            ((0.6, 0.05), "worse"),
            ((0.9, 0.05), "better"),
            ((0.74, None), "cannot be told"),
        ]:
            self.assertEqual(tables.near(found, 0.74), verdict, found)

    def test_a_bound_needs_the_whole_interval(self):
        for found, verdict in [
            ((0.9, 0.05), "met"),
            ((0.85, 0), "met"),
            ((0.86, 0.05), "cannot be told"),
            ((0.7, 0.05), "missed"),
            ((0.9, None), "cannot be told"),
        ]:
            self.assertEqual(tables.reached(found, 0.85), verdict, found)

    def test_a_slope_is_within_a_quarter(self):
        self.assertEqual([tables.slope_is(one, 10) for one in (8, 12, 14, 7)], ["reproduced", "reproduced", "larger", "smaller"])

    def test_a_claim_holds_in_more_than_half(self):
        self.assertEqual(tables.most(5, 9), "reproduced (5 of 9)")
        self.assertEqual(tables.most(2, 4), "not reproduced (2 of 4)")

    def test_verdicts_are_counted(self):
        self.assertEqual(tables.count(["worse", "better", "worse"]), "better 1, worse 2")


if __name__ == "__main__":
    unittest.main()
