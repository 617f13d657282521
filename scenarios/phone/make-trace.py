"""Makes lte.trace, a short LTE downlink in Mahimahi's format (one line per packet of 1504 bytes:
its millisecond). Not a recording: a stated rule, so that the repository owns a trace.

The rate is drawn anew every 100 ms. Its logarithm is an AR(1) process around 12 Mbit/s (memory
0.95 per step, about 2 s; standard deviation 0.4), cut to 5..25 Mbit/s. 20 s, seed 2.

    python3 make-trace.py > lte.trace
"""

import math
import random

rng = random.Random(2)
MEMORY, DEVIATION, CENTRE = 0.95, 0.4, math.log(12.0)
noise = DEVIATION * math.sqrt(1.0 - MEMORY * MEMORY)

level, credit = 0.0, 0.0
for ms in range(1, 20_001):
    if ms % 100 == 1:
        # A sum of 12 uniform draws is close to normal and the same in every Python.
        level = MEMORY * level + noise * (sum(rng.random() for _ in range(12)) - 6.0)
        rate = min(25.0, max(5.0, math.exp(CENTRE + level)))
    credit += rate * 1e6 / 8.0 / 1000.0 / 1504.0
    for _ in range(int(credit)):
        print(ms)
    credit -= int(credit)
