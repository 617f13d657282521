"""The cells of the design, and the figures made of their runs: `python3 -m unittest discover experiments/detection`."""

import unittest
from math import inf

import cells
import comparisons
import design


class Cells(unittest.TestCase):
    def setUp(self):
        self.design = cells.read()
        self.all = {cell.name: cell for cell in cells.cells(self.design)}

    def test_there_are_at_most_150_with_folders_of_their_own(self):
        self.assertEqual(len(self.all), 135)
        self.assertEqual(len({cell.folder for cell in self.all.values()}), len(self.all))

    def test_what_was_drawn_is_what_the_seed_draws(self):
        self.assertEqual(self.design["drawn"], list(cells.draw(self.design)))

    def test_one_bottleneck_takes_a_setting_once_and_each_path_takes_its_own(self):
        self.assertEqual(cells.numbered("links.bottleneck*.aqm=red", 3, 1), ["links.bottleneck1.aqm=red"])
        back = cells.numbered("routes.path*.back=['return*']", 2, 1)
        self.assertEqual(back, ["routes.path1.back=['return1']", "routes.path2.back=['return2']"])
        self.assertEqual(cells.numbered("tcp.pacing=true", 2, 2), ["tcp.pacing=true"])

    def test_a_rate_brings_its_queue_and_background(self):
        settings = self.all["shared, 100 Mbit/s"].settings
        self.assertIn("generator.dumbbell.queue=175 packets", settings)
        self.assertIn("background.udp_rate=['250 packets/s', '750 packets/s']", settings)
        self.assertIn("duration=50 s", settings)

    def test_rtts_are_spread_over_the_paths(self):
        spread = ["routes.path2.rtt=60 ms", "routes.path3.rtt=100 ms"]
        self.assertEqual(cells.spread_rtts(3, 100), spread)

    def test_levels_of_several_factors_are_combined(self):
        # 3 paths, CUBIC background, Wi-Fi and others.
        drawn = self.all["separate, drawn 14"]
        self.assertEqual((drawn.scenario, drawn.law, drawn.closed), ("sbd/nsb-3", "reno", False))
        self.assertIn("routes.path3.rtt=100 ms", drawn.settings)
        self.assertIn("links.bottleneck3.wifi={}", drawn.settings)
        self.assertIn("tcp.pacing=true", drawn.settings)

    def test_the_masks_and_seeds_are_those_of_the_design(self):
        cell = self.all["shared, OLIA"]
        [(kind, call)] = design.calls(self.design, cell, 30, None)
        self.assertEqual(kind, "open")
        self.assertIn("olia,olia+disjoint", call)
        self.assertIn("301..330", call)

    def test_a_level_may_lack_a_side(self):
        self.assertIn("separate, 20 and 5 Mbit/s", self.all)
        self.assertNotIn("shared, 20 and 5 Mbit/s", self.all)


def phase(pair_s, right, first, length=60):
    shares = {"right": right, "wrong": None if right is None else 1 - right, "unsure": None if right is None else 0}
    return {"pair_s": pair_s, **shares, "first_right_s": first, "length_s": length}


class Figures(unittest.TestCase):
    def test_the_interval_of_a_mean_is_student_s(self):
        middle, half = design.interval([1, 2, 3, 4, 5])
        # 2.776 * sqrt(2.5 / 5)
        self.assertAlmostEqual(middle, 3)
        self.assertAlmostEqual(half, 1.963, places=3)
        self.assertEqual(design.interval([1]), (1, None))
        self.assertEqual(design.interval([]), (None, None))

    def test_a_quantile_counts_what_never_came(self):
        self.assertEqual(design.quantile([3, None, 1, 2], 0.5), 2)
        self.assertEqual(design.quantile([3, None, 1, 2], 0.95), inf)
        self.assertEqual(design.quantile(list(range(1, 21)), 0.95), 19)
        self.assertIsNone(design.quantile([], 0.5))

    def test_shares_are_weighted_by_time_and_pairs(self):
        found = design.findings({"phases": [phase(30, 1.0, 2.0), phase(10, 0.5, None), phase(0, None, 4.0)]})
        self.assertAlmostEqual(found.shares["right"], 0.875)
        self.assertAlmostEqual(found.shares["wrong"], 0.125)
        self.assertEqual((found.first_s, found.switches_s), (2.0, [(None, 60), (4.0, 60)]))

    def test_the_masks_of_a_seed_are_one_value_of_the_interval(self):
        of = lambda right, first: design.findings({"phases": [phase(48, right, first), phase(10, right, first, 20)]})
        found = design.figures([[of(1.0, 1.0), of(0.5, 3.0)], [of(0.75, 2.0), of(0.75, None)]])
        self.assertEqual((found["runs"], found["right"], found["right_ci95"]), (4, 0.75, 0))
        self.assertEqual((found["first_median_s"], found["first_p95_s"]), (2.0, inf))
        # The one that was never followed counts with its 20 s.
        self.assertEqual((found["switches"], found["followed"], found["switch_mean_s"]), (4, 3, 6.5))

    def test_strong_answers_are_counted_together_over_masks_and_seeds(self):
        answers = [{"strength": s, "shared": True, "right": 5, "wrong": 1} for s in (5.5, 7.5, 20)]
        of = design.findings({"phases": [phase(48, 1.0, 1.0)], "answers": answers})
        self.assertEqual(design.figures([[of], [of]])["answers"], {(5.5, True): [10, 2], (7, True): [20, 4]})


class Documents(unittest.TestCase):
    def test_a_table_is_replaced_between_its_marks_and_nothing_else(self):
        text = "a\n<!-- table x -->\n\nold\n\n<!-- end -->\nb\n<!-- table y -->\n\nkept\n\n<!-- end -->\n"
        made = comparisons.replaced(text, "x", "new\n")
        self.assertEqual(made, text.replace("old\n", "new\n"))


if __name__ == "__main__":
    unittest.main()
