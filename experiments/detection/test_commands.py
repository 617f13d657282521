"""What make calls begins: it gets as far as building the command."""

import sys
import unittest
from unittest.mock import patch

import design
import tables


class Reached(Exception):
    """The build."""


class Commands(unittest.TestCase):
    def test_each_begins_to_build(self):
        for module, arguments in [(tables, []), (tables, ["--table", "II"]), (design, []), (design, ["--quick"])]:
            with (
                self.subTest(module.__name__, arguments=arguments),
                patch("subprocess.run", side_effect=Reached),
                patch.object(sys, "argv", [module.__file__, *arguments]),
                self.assertRaises(Reached),
            ):
                module.main()


if __name__ == "__main__":
    unittest.main()
