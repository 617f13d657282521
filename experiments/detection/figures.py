"""The data of figures of the two papers, from the runs that the tables are made of: a CSV file each."""

import csv

# As in the legend of the trend-line paper's Figure 7.
EXPERIMENTS = [(f"e{n}", queue, law) for n in range(1, 6) for queue in ("", "-red") for law in ("cubic", "reno")]


def write(results, folder, droptail, shifts):
    """Writes all of them into `folder`: `droptail` are the scenarios of MPTCP-SBD's Table II, `shifts(results,
    scenario, signal)` finds the shifts of a scenario."""
    folder.mkdir(parents=True, exist_ok=True)

    def save(name, columns, rows):
        with (folder / name).open("w", newline="") as file:
            lines = csv.writer(file, lineterminator="\n")
            lines.writerow(columns)
            lines.writerows(rows)

    save("sbd-4.csv", ["scenario", "right_observations", "share"], right_observations(results, droptail))
    save("sbd-8a.csv", ["scenario", "shift_to", "delay_s"], delays(results, shifts))
    columns = ["queue", "law", "connection", "path", "time_s", "srtt_ms"]
    save("tr-6.csv", columns, traces(results))
    columns = ["experiment", "queue", "law", "detector", "from_s", "until_s"]
    save("tr-7.csv", columns, positives(results))
    save("tr-8-9.csv", ["control", "connection", "path", "time_s", "goodput_mbps"], rates(results))


def right_observations(results, scenarios):
    """MPTCP-SBD, Figure 4: decisions by the number of right observations among their ten."""
    for scenario in scenarios:
        shares = results.shares("correct_observations_hist", "sbd", scenario, "mptcp-sbd", "receiver-us")
        for right, share in enumerate(shares):
            yield [scenario, right, f"{share:.4f}"]


def delays(results, shifts):
    """Its Figure 8(a): from each shift, over all seeds, to the first right decision."""
    for scenario in ("sbd/shifting-30", "sbd/shifting-60"):
        for kind, shift in shifts(results, scenario, "receiver-us").items():
            for delay in sorted(shift.delays):
                yield [scenario, kind, delay]


def traces(results):
    """The trend-line paper, Figure 6: RTTs of four flows of E5, two on each path, in the first 100 s."""
    for queue in ("", "-red"):
        for law in ("cubic", "reno"):
            for row in series(results, f"traces-{law}", f"tr/e5{queue}", f"{law}+tr"):
                if float(row["time_s"]) <= 100 and float(row["srtt_ms"]):
                    yield [queue_name(queue), law, row["connection"], row["path"], row["time_s"], row["srtt_ms"]]


def positives(results):
    """Its Figure 7: when each detector has the two paths in one group, seed 1."""
    for experiment, queue, law in EXPERIMENTS:
        for detector in ("tr", "ssc"):
            which = (f"traces-{law}", f"tr/{experiment}{queue}", f"{law}+{detector}")
            _, decisions = next(results.runs(*which))
            since = None
            for time, together in [*((d["time_s"], "+" in d["groups"]) for d in decisions), ("end", False)]:
                if together and since is None:
                    since = time
                elif not together and since is not None:
                    yield [experiment, queue_name(queue), law, detector, since, time]
                    since = None


def rates(results):
    """Its Figures 8 and 9, on the shared bottleneck of E1: goodput each 100 ms under TR-LIA and SSC-LIA."""
    for control in ("tr-lia", "ssc-lia"):
        for row in series(results, "together", "tr/e1", control):
            yield [control, row["connection"], row["path"], row["time_s"], row["goodput_mbps"]]


def series(results, cell, scenario, control):
    """The series of seed 1."""
    with (results.out / cell / "runs" / scenario / control / "seed-1.csv").open() as lines:
        yield from csv.DictReader(lines)


def queue_name(queue):
    return "red" if queue else "droptail"
