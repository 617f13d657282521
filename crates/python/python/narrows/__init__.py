"""Coupled congestion control for MPTCP: a simulator, detectors, and published figures made again.

A :class:`Scenario` is a network and what runs over it; :func:`run` runs it once, :func:`compare` under several
congestion controls with many seeds, :func:`sweep` the same on a cluster; :func:`detect` finds shared bottlenecks
in a capture. Results are Arrow tables, which pandas, Polars and PyArrow take without copying them. A simulated
result is a function of scenario and seed.

>>> import narrows
>>> run = narrows.run("sbd/nsb-2", cc="lia", series=True)  # doctest: +SKIP
>>> polars.DataFrame(run.series)  # doctest: +SKIP
"""

from narrows._api import (
    compare,
    controls,
    detect,
    detectors,
    laws,
    metrics,
    papers,
    parameters,
    run,
    scenarios,
)
from narrows._error import Error
from narrows._narrows import (
    Comparison,
    Detection,
    PaperTable,
    Run,
    Scenario,
    Table,
    __version__,
)
from narrows._sweep import Plan, sweep

__all__ = [
    "Comparison",
    "Detection",
    "Error",
    "PaperTable",
    "Plan",
    "Run",
    "Scenario",
    "Table",
    "__version__",
    "compare",
    "controls",
    "detect",
    "detectors",
    "laws",
    "metrics",
    "papers",
    "parameters",
    "run",
    "scenarios",
    "sweep",
]
