"""The rules that are taken out of `xcorr`, and what is made of their figures."""

import unittest

import ablation
import cells


class Rules(unittest.TestCase):
    def test_each_is_in_the_source_once(self):
        self.assertEqual({rule.name: ablation.times(rule) for rule in ablation.RULES}, {rule.name: 1 for rule in ablation.RULES})

    def test_a_network_is_there_with_separate_and_with_shared_bottlenecks(self):
        for name, sides in ablation.twins(cells.read()):
            with self.subTest(name):
                self.assertIn([cell.side for cell in sides], [["separate", "shared"], ["shifting"]])

    def test_a_rule_earns_what_is_worse_without_it(self):
        with_it = {name: {"separate": [(90, 0, 2)], "shared": [(100, 0, 2)]} for name in "abc"}
        without = {name: {"separate": [(80, 0, 2)], "shared": [(100, 0, 2 + n)]} for n, name in enumerate("abc")}
        found = {(detector, "rtt"): of for detector, of in (("xcorr", with_it), ("xcorr1", without))}
        self.assertEqual(ablation.earned(found, 1, "rtt", 0), (5, 0))
        first, half = ablation.earned(found, 1, "rtt", 2)
        self.assertEqual(first, -0.5)
        self.assertGreater(half, 0.5)


if __name__ == "__main__":
    unittest.main()
