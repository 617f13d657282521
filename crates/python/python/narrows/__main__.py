"""The command ``narrows``: what the Rust program of this name does."""

from __future__ import annotations

import signal
import sys

from narrows import _narrows


def main() -> int:
    """Do what the command line says.

    Returns
    -------
    int
        The exit code.
    """
    # The command looks after Ctrl-C itself; where it does not, it ends at once.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _narrows.main(["narrows", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
