"""The networks of one flow, and the figures made of their runs: `python3 -m unittest discover experiments/one_flow`."""

import unittest

import networks
import tables
import undecided


class Networks(unittest.TestCase):
    def setUp(self):
        self.all = {network.name: network for network in networks.all_of_them()}

    def test_each_has_a_folder_of_its_own(self):
        self.assertEqual(len({network.folder for network in self.all.values()}), len(self.all))

    def test_the_sweep_spans_what_is_asked(self):
        sweep = list(networks.sweep())
        self.assertEqual({network.paths for network in sweep}, {2, 3, 4, 5, 8})
        for rate in networks.RATES_MBPS:
            self.assertTrue(any(network.name.startswith(f"{rate} Mbit/s") for network in sweep))

    def test_one_more_tcp_takes_the_connections_place(self):
        settings = self.all["tr/e1"].beside_one_more("reno")
        self.assertIn("flows.mptcp.start=299.9 s", settings)
        self.assertIn('flows.more={kind="tcp", routes=["n1-n7"], cc="reno", start="0 s"}', settings)

    def test_rivals_are_of_the_laws_kind(self):
        settings = self.all["tr/e1"].with_rivals("cubic")
        self.assertEqual(settings, ["flows.tcp1.cc=cubic", "background.0.cc=cubic", "background.1.cc=cubic"])
        self.assertEqual(self.all["tr/e1"].with_rivals("reno"), [])


class Undecided(unittest.TestCase):
    def test_the_tcp_is_there_before_the_connection(self):
        shared = list(undecided.shared_networks())
        self.assertGreater(len(shared), 45)
        self.assertEqual(len({(scenario, *settings) for _, scenario, settings in shared}), len(shared))
        for folder, _, settings in shared:
            self.assertIn("flows.mptcp.start=10 s", settings, folder)
            self.assertFalse([one for one in settings if one.startswith(("flows.tcp1.start", "warmup", "duration"))])

    def test_a_row_has_the_quartiles_of_a_control(self):
        ratios = {control: [1, 1, 1.5, 2] for control in undecided.CONTROLS}
        found = dict.fromkeys(undecided.WINDOWS_S, ratios)
        self.assertIn("| lia | 1.25 (1.00-1.88), 2 of 4 |", undecided.made(found))


class Figures(unittest.TestCase):
    def test_a_quotient_is_of_the_means(self):
        middle, half = tables.quotient([1, 3, None], [2, 2, 5])
        self.assertEqual(middle, 1)
        # Student's t with one degree of freedom on -0.5 and 0.5.
        self.assertAlmostEqual(half, 12.706 * 0.5, places=3)

    def test_the_loss_rate_is_of_the_rivals(self):
        flow = {"name": "tcp1", "retransmits": 10, "goodput_mbps": 1.1584}
        # 1000 packets of 1448 bytes in 10 s.
        self.assertAlmostEqual(tables.loss_rate({"duration_s": 10, "connections": [flow]}, ["tcp1"]), 0.01)


if __name__ == "__main__":
    unittest.main()
