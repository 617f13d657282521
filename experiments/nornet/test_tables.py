"""Tests of the verdicts: python3 -m unittest discover experiments/nornet"""

import unittest
from types import SimpleNamespace

import tables


def around(middle):
    return [0.99 * middle, middle, 1.01 * middle]


class Judge(unittest.TestCase):
    def check(self, cells, needed, verdict):
        self.assertEqual(tables.judge([around(cell) for cell in cells], 10, 20, needed), verdict)

    def test_enough_cells_must_be_inside(self):
        self.check([12, 15, 18], "all", "reproduced (3 of 3)")
        self.check([12, 15, 30], "most", "reproduced (2 of 3)")
        self.check([12, 30], "most", "better (1 of 2)")

    def test_others_are_above_or_below_or_reach_into_the_range(self):
        self.check([12, 15, 30], "all", "better (2 of 3)")
        self.check([12, 15, 5], "all", "worse (2 of 3)")
        self.check([12, 5, 30], "all", "worse (1 of 3)")
        self.check([12, 15, 20], "all", "cannot be told (2 of 3)")
        self.check([12, 10, 20], "most", "cannot be told (1 of 3)")


# Goodput with a fibre pair first, as the text has it; with an ADSL pair first 3 % less.
TEXT = {"cubic": 24, "reno": 23.5, "balia": 22, "lia": 22, "olia": 22, "wvegas": 21}


class Model:
    """Stands for the runs of a network in which a connection has these goodputs, but for `other` ones."""

    options = SimpleNamespace(quick=True)

    def __init__(self, adsl=0.97, once_up=1, **other):
        self.adsl, self.once_up, self.goodputs = adsl, once_up, TEXT | other

    def summaries(self, factor, goodputs):
        of = lambda value: [{"test": {"goodput_mbps": factor * one}} for one in (0.999 * value, value, 1.001 * value)]
        return {control: of(value) for control, value in goodputs.items()}

    def tcp(self, era, pair):
        return self.summaries(0.22 if pair in tables.ADSL else 12, dict.fromkeys(TEXT, 1))

    def first(self, era, pair):
        return self.summaries(self.adsl if pair in tables.ADSL else 1, self.goodputs)

    def later(self, era, pair):
        return self.summaries(self.once_up if pair in tables.ADSL else 1, self.goodputs)

    def cell(self, size, row, pair, later=False):
        """The text's goodputs with long queues alone."""
        goodputs = self.goodputs if row == ("500 ms", None) else dict.fromkeys(TEXT, 10)
        return self.summaries(1 if later or pair in tables.FIBRE else self.adsl, goodputs)


class Claims(unittest.TestCase):
    def verdicts(self, model):
        """Of the first column, by the claim's text."""
        rows = [line.strip("| ").split(" | ") for line in tables.claims(model).splitlines()[2:]]
        return {row[1]: row[3].split(" (")[0] for row in rows}

    def test_what_the_text_says_is_reproduced(self):
        self.assertEqual(set(self.verdicts(Model()).values()), {"reproduced"})

    def test_the_contrary_is_not(self):
        for model, claim, verdict in [
            (Model(cubic=15, reno=15), "V-B: uncoupled, 20 to 27 Mbit/s", "worse"),
            (Model(cubic=30, reno=30), "V-B: uncoupled, 20 to 27 Mbit/s", "better"),
            (Model(cubic=15, reno=15), "uncoupled, the sum", "worse"),
            (Model(adsl=0.8), "V-B: uncoupled, ADSL first", "worse"),
            (Model(adsl=1.1), "V-B: uncoupled, ADSL first", "better"),
            (Model(cubic=11, reno=11), "V-B: uncoupled, more than TCP", "worse"),
            (Model(once_up=0.8), "V-B: uncoupled, no difference", "worse"),
            (Model(once_up=1.2), "V-B: uncoupled, no difference", "better"),
            (Model(cubic=23, reno=24), "V-B: CUBIC", "worse"),
            (Model(wvegas=11), "V-C: coupled, more than TCP", "worse"),
            (Model(wvegas=23), "V-C: wVegas the lowest", "better"),
            (Model(lia=18), "V-C: Balia, LIA, OLIA", "worse"),
            (Model(balia=18, lia=18, olia=18), "V-C: coupled slightly less", "worse"),
            (Model(balia=26, lia=26, olia=26), "V-C: coupled slightly less", "better"),
        ]:
            found = self.verdicts(model)
            self.assertEqual([found[one] for one in found if one.startswith(claim)], [verdict], claim)

    def test_the_map_names_the_claims_that_hold_in_a_cell(self):
        rows = {line.split(" | ")[0].strip("| "): line for line in tables.holds(Model()).splitlines()}
        self.assertIn("| b c d e f g h i j k |", rows["ADSL 500 ms"])
        self.assertIn("| e f g i j k |", rows["ADSL 100 ms"])
        self.assertIn("| 23.0 to 24.0; 20.4 to 22.0 |".replace("23.0", "22.8"), tables.goodput_map(Model()))


if __name__ == "__main__":
    unittest.main()
