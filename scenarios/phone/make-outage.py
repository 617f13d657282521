"""Makes outage.trace.gz, an LTE downlink of 12 Mbit/s that falls silent from 20 to 50 s, in Mahimahi's format
(one line per packet of 1504 bytes: its millisecond), packed. Not a recording: a stated rule.

    python3 make-outage.py
"""

import gzip

lines = "".join(f"{ms}\n" for ms in range(1, 70_001) if not 20_000 < ms <= 50_000)
with open("outage.trace.gz", "wb") as file:
    file.write(gzip.compress(lines.encode(), mtime=0))
