"""The verdicts, and the figures they judge: `python3 -m unittest discover experiments/lisa`."""

import unittest

import tables


class Verdicts(unittest.TestCase):
    def test_a_value_is_near_if_its_interval_has_the_published_one_and_not_0(self):
        for found, verdict in [
            ((180, 30), "reproduced"),
            ((180, 10), "worse"),
            ((220, 10), "better"),
            ((180, 190), "cannot be told"),
            # Clearly not 200, whatever the sign.
            ((20, 50), "worse"),
            ((-180, 30), "worse"),
            ((None, None), "cannot be told"),
        ]:
            self.assertEqual(tables.near(found, 200), verdict, found)

    def test_a_bound_needs_the_whole_interval(self):
        for found, verdict in [
            ((12, 1), "reproduced"),
            ((8, 1), "worse"),
            ((12, 3), "cannot be told"),
            ((8, 3), "cannot be told"),
            ((None, None), "cannot be told"),
        ]:
            self.assertEqual(tables.above(found, 10), verdict, found)

    def test_a_range_is_met_by_the_interval(self):
        for found, verdict in [
            ((6, 0.5), "reproduced"),
            ((4, 1.5), "reproduced"),
            ((3, 1), "worse"),
            ((9, 1), "better"),
            ((4, 5), "cannot be told"),
            ((0, 0), "worse"),
        ]:
            self.assertEqual(tables.within(found, 5, 7), verdict, found)

    def test_of_many_the_weakest_holds(self):
        self.assertEqual(tables.weakest(["reproduced"] * 3), "reproduced")
        self.assertEqual(tables.weakest(["reproduced", "better"]), "better (1 of 2 reproduced)")
        self.assertEqual(tables.weakest(["better", "cannot be told", "reproduced"]), "cannot be told (1 of 3 reproduced)")
        self.assertEqual(tables.weakest(["cannot be told", "worse", "better"]), "worse (0 of 3 reproduced)")
        self.assertEqual(tables.all_above([(3, 1), (1, 2), (-3, 1)], 0), "worse (1 of 3 reproduced)")

    def test_at_some_points_counts_those_against_it(self):
        fewer, neither, more = (3, 1), (1, 2), (-3, 1)
        self.assertEqual(tables.at_some([fewer, neither, neither]), "reproduced (1 fewer, 0 more of 3)")
        self.assertEqual(tables.at_some([fewer, more, more]), "worse (1 fewer, 2 more of 3)")
        self.assertEqual(tables.at_some([fewer, more, neither]), "cannot be told (1 fewer, 1 more of 3)")
        self.assertEqual(tables.at_some([neither]), "cannot be told (0 fewer, 0 more of 1)")

    def test_no_change_is_no_wide_interval(self):
        for spreads, verdict in [
            ([(1, 3), (-2, 10)], "reproduced"),
            ([(1, 3), (0, 11)], "cannot be told"),
            # Those that leave 0 out decide, however wide another is.
            ([(5, 3), (0, 11)], "better"),
            ([(5, 3), (-5, 3)], "worse"),
            ([(None, None), (5, 3)], "cannot be told"),
        ]:
            self.assertEqual(tables.no_change(spreads), verdict, spreads)


    def test_a_trend_lies_on_one_side(self):
        more, neither, less = (3, 1), (1, 2), (-3, 1)
        self.assertEqual(tables.no_trend([more] * 3 + [less] * 2), "reproduced (3 better, 2 worse of 5)")
        self.assertEqual(tables.no_trend([more] * 4 + [less]), "better (4 better, 1 worse of 5)")
        self.assertEqual(tables.no_trend([less] * 2 + [neither] * 3), "worse (0 better, 2 worse of 5)")
        # By chance one of twenty leaves 0 out.
        self.assertEqual(tables.no_trend([less] * 2 + [neither] * 18), "reproduced (0 better, 2 worse of 20)")


class Figures(unittest.TestCase):
    def test_pairs_are_of_one_seed_and_positive_if_the_first_are_less(self):
        middle, half = tables.pairs([1, 11, 21], [2, 12, 22])
        self.assertEqual((middle, half), (1, 0))
        self.assertEqual(tables.pairs([1, 11], [2, 18], percent=True)[0], 40)
        # A pair without one of its figures is none, and one pair has no interval.
        self.assertEqual(tables.pairs([1, None, 3], [2, 2, 4]), (1, 0))
        self.assertEqual(tables.pairs([1, None], [2, 2]), (None, None))

    def test_queues_are_averaged_within_a_seed(self):
        self.assertEqual(tables.averages([[1, 2], [3, 4], [5, 9]]), [3, 5])
        self.assertEqual(tables.averages([[1, 2], [None, 4]]), [None, 3])

    def test_gains_that_go_with_others_correlate(self):
        # Two draws, three sizes: without less with is 1, 2, 3 s, and 10, 20, 30 packets or the other way round.
        time = {size: ([1, 1], [1 + size, 1 + size]) for size in (1, 2, 3)}
        fewer = {size: ([0, 0], [10 * size, 10 * size]) for size in (1, 2, 3)}
        more = {size: ([0, 0], [40 - 10 * size, 40 - 10 * size]) for size in (1, 2, 3)}
        for found, expected in ((fewer, 1), (more, -1)):
            self.assertAlmostEqual(tables.follows(time, found)[0], expected)

    def test_later_is_the_other_way_round(self):
        self.assertEqual(tables.times(-1000, (0.5, 0.25)), (-500, 250))
        self.assertEqual(tables.times(-1000, (None, None)), (None, None))

    def test_small_figures_have_another_digit(self):
        self.assertEqual(tables.text((0.04, 0.03), 1), "0.04 ±0.03")
        self.assertEqual(tables.text((0.0, 0.0), 1), "0.0 ±0.0")
        self.assertEqual(tables.text((12.34, 0.03), 1), "12.3 ±0.0")


if __name__ == "__main__":
    unittest.main()
