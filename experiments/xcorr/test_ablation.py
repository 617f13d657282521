"""The rules that are taken out of `xcorr`, and what is made of their figures."""

import unittest

import ablation

HEAD = "cell,detector,signal,control,right,wrong,first_median_s\n"


class Rules(unittest.TestCase):
    def test_each_is_in_the_source_once(self):
        self.assertEqual({rule.name: ablation.times(rule) for rule in ablation.RULES}, {rule.name: 1 for rule in ablation.RULES})

    def test_a_rule_earns_what_is_worse_without_it(self):
        rows = []
        for number, name in enumerate("abc"):
            for detector, separate, first in (("xcorr", 0.9, "2"), ("xcorr1", 0.8, "inf" if number == 2 else "2")):
                rows.append(f'"separate, {name}",{detector},rtt,all,{separate},0,2')
                rows.append(f'"shared, {name}",{detector},rtt,all,1,0,{first}')
                rows.append(f'"shared, {name}",{detector},rtt,lia,0,0,2')
        found = ablation.read((HEAD + "\n".join(rows)).splitlines())
        middle, half = ablation.earned(found, 1, "rtt", 0)
        self.assertAlmostEqual(middle, 5)
        self.assertAlmostEqual(half, 0)
        # One of three networks has a side that was never right: 100 s in place of 2 there.
        first, half = ablation.earned(found, 1, "rtt", 2)
        self.assertAlmostEqual(first, -98 / 2 / 3)
        self.assertGreater(half, 0.5)


if __name__ == "__main__":
    unittest.main()
