"""Makes 5g.trace.gz, a short 5G downlink in Mahimahi's format (one line per packet of 1504 bytes: its
millisecond), packed. Not a recording: a stated rule, so that the repository owns a trace.

The rate is drawn anew every 100 ms. Its logarithm is an AR(1) process around 60 Mbit/s (memory 0.95
per step, about 2 s; standard deviation 0.7), cut to 20..150 Mbit/s. 20 s, seed 5.

    python3 make-trace.py
"""

import gzip
import math
import random

rng = random.Random(5)
MEMORY, DEVIATION, CENTRE = 0.95, 0.7, math.log(60.0)
noise = DEVIATION * math.sqrt(1.0 - MEMORY * MEMORY)

level, credit, lines = 0.0, 0.0, []
for ms in range(1, 20_001):
    if ms % 100 == 1:
        # A sum of 12 uniform draws is close to normal and the same in every Python.
        level = MEMORY * level + noise * (sum(rng.random() for _ in range(12)) - 6.0)
        rate = min(150.0, max(20.0, math.exp(CENTRE + level)))
    credit += rate * 1e6 / 8.0 / 1000.0 / 1504.0
    lines += [str(ms)] * int(credit)
    credit -= int(credit)
with open("5g.trace.gz", "wb") as file:
    file.write(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))
