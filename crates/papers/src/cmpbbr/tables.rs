//! Tables of what we have, without a verdict.

use narrows_lab::{Error, HostId};

use super::{
    MODELS, Rival, SMALL, WINDOWS, against, benefit, estimate, estimated, even,
    fairness as jain_of, few, get, laws, over, rates, seeds, tcp, to_rival, twice,
};
use crate::figures::{quotient, spread, text};
use crate::goodput::{goodput, mptcp};
use crate::{Ask, Controls, Grid, Kept, Runs};

const PATHS: [usize; 4] = [2, 3, 4, 5];

/// A group of N paths beside one flow of the same law, by share and by the packets of a burst.
pub fn one_flow(runs: &Runs, law: &str, shares: &[(&str, u32)]) -> Result<Grid, Error> {
    let cells = || [1, 2].into_iter().flat_map(|bdp| PATHS.map(|paths| (bdp, paths)));
    let heads = cells().map(|(bdp, paths)| format!("{paths} paths, {bdp} BDP"));
    let mut grid = Grid::new([format!("{law}.share")].into_iter().chain(heads));
    for &(share, burst) in shares {
        let mut row = vec![match burst {
            1 => share.to_string(),
            _ => format!("{share}, bursts of {burst}"),
        }];
        for (bdp, paths) in cells() {
            // SB-n of the MPTCP-SBD paper without its background: 20 Mbit/s, 20 ms, 35 packets.
            let settings = [
                format!("generator.dumbbell.queue={} packets", 35 * bdp),
                format!("flows.tcp1.cc={law}"),
                format!("{law}.share={share}"),
                format!("tcp.tso={burst} packets"),
                "background=[]".into(),
            ];
            let found = get(runs, &format!("sbd/sb-{paths}"), &[law], settings, seeds(runs))?;
            row.push(text(over(&found[law], to_rival), 2));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// The same with unequal RTTs: SB-n-rtt of the MPTCP-SBD paper without its background.
pub fn unequal(runs: &Runs) -> Result<Grid, Error> {
    let heads = PATHS.map(|paths| format!("{paths} paths"));
    let mut grid = Grid::new(["bbr.share".to_owned()].into_iter().chain(heads));
    for share in ["group", "none"] {
        let mut row = vec![share.to_owned()];
        for paths in PATHS {
            let settings = ["flows.tcp1.cc=bbr", &format!("bbr.share={share}"), "background=[]"];
            let found = get(runs, &format!("sbd/sb-{paths}-rtt"), &["bbr"], settings, seeds(runs))?;
            row.push(text(over(&found["bbr"], to_rival), 2));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// A flow beside one of a window law, 1 BDP; two beside each other where the queue marks; each without loss.
pub fn version_3(runs: &Runs) -> Result<Grid, Error> {
    const TWO: &str = "cmpbbr/two-bbr";
    const LAWS: [&str; 3] = ["bbr", "bbr3", "cubic"];
    let of = |flow: &str, what: &str, value: &str| format!("{flow}.bottleneck1.{what}={value}");
    let clean = of("links", "loss", "0 %");
    let beside = |rival: &str| {
        let queue = of("links", "queue", "17 packets");
        get(
            runs,
            TWO,
            &LAWS,
            [clean.clone(), queue, format!("flows.flow2.cc={rival}")],
            seeds(runs),
        )
    };
    let marked = |law: &str, weight: &str| {
        let red = format!("{{ red = {{ min = \"5 packets\", weight = {weight} }} }}");
        let settings = [
            "tcp.ecn=true".into(),
            of("links", "ecn", "true"),
            clean.clone(),
            of("links", "queue", "100 packets"),
            of("links", "aqm", &red),
            format!("flows.flow2.cc={law}"),
        ];
        get(runs, TWO, &[law], settings, seeds(runs))
    };
    let rivals = [beside("cubic")?, beside("reno")?];
    let mut grid = Grid::new([
        "law",
        "beside CUBIC",
        "beside CUBIC: the rival",
        "beside Reno",
        "beside Reno: the rival",
        "marks at once: both",
        "marks at once: queue, ms",
        "marks by the average: both",
        "marks by the average: queue, ms",
    ]);
    for law in LAWS {
        let mut row = vec![law.to_owned()];
        for found in &rivals {
            let each =
                ["flow1", "flow2"].map(|flow| text(over(&found[law], |run| goodput(run, flow)), 2));
            row.extend(each);
        }
        for weight in ["1.0", "0.002"] {
            let found = &marked(law, weight)?[law];
            let both = over(found, |run| goodput(run, "flow1") + goodput(run, "flow2"));
            row.push(text(both, 2));
            row.push(text(over(found, |run| run.summary.links[0].mean_queue_ms), 1));
        }
        grid.row(row);
    }
    Ok(grid)
}

pub fn figure_1(runs: &Runs) -> Result<Grid, Error> {
    let found = get(runs, "cmpbbr/two-bbr", &["bbr"], [""; 0], seeds(runs))?;
    let each =
        ["flow1", "flow2"].map(|flow| text(over(&found["bbr"], |run| goodput(run, flow)), 2));
    let mut grid = Grid::new(["", "paper", "ours"]);
    grid.row(["throughput of each, Mbit/s".to_owned(), "3.60, 3.62".into(), each.join(", ")]);
    let found = estimated(runs)?;
    let each =
        ["flow1", "flow2"].map(|flow| text(spread(&found["bbr"], |run| estimate(run, flow)), 2));
    grid.row(["estimate of each, Mbit/s".to_owned(), "6.93, 7.23".into(), each.join(", ")]);
    Ok(grid)
}

/// The rivals of a scenario in the paper.
fn rivals(scenario: &str) -> &'static [Rival] {
    match scenario {
        "one" | "five" => &[Rival::Nothing],
        _ => &[Rival::Own, Rival::Cubic],
    }
}

/// The connection and its rival in Mbit/s, under each control.
pub fn total(runs: &Runs, scenario: &str) -> Result<Grid, Error> {
    let mut heads = vec!["control".to_owned()];
    let mut found = Vec::new();
    for &rival in rivals(scenario) {
        match rival {
            Rival::Nothing => heads.push("connection".into()),
            _ => heads.extend([
                format!("connection, vs {}", rival.name()),
                "rival".into(),
                "ratio".into(),
            ]),
        }
        heads.push("Ag_bft".into());
        found.push((rival, against(runs, scenario, rival)?));
    }
    let mut grid = Grid::new(heads);
    for law in laws() {
        let mut row = vec![law.to_owned()];
        for (rival, found) in &found {
            let of = &found[law];
            row.push(text(over(of, mptcp), 1));
            if *rival != Rival::Nothing {
                row.push(text(over(of, tcp), if scenario == "four" { 2 } else { 1 }));
                row.push(text(over(of, to_rival), 2));
            }
            row.push(text(over(of, |run| benefit(run, rates(scenario))), 2));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// `Norm_Thpt` of the rival, equation 4, over its fair shares in Mbit/s; Jain's index where Figure 13 has it.
pub fn fairness(runs: &Runs) -> Result<Grid, Error> {
    const SCENARIOS: [(&str, &str, &[f64], bool); 3] = [
        ("2", "two", &[5.0], true),
        ("3", "three", &[10.0 / 3.0, 5.0], true),
        ("4", "four", &[0.5], false),
    ];
    let mut heads = vec!["control".to_owned()];
    let mut found = Vec::new();
    for (number, scenario, fair, index) in SCENARIOS {
        for rival in [Rival::Own, Rival::Cubic] {
            heads.push(format!("{number}, vs {}: rival", rival.name()));
            heads.extend(index.then(|| "Jain".into()));
            found.push((scenario, fair, index, against(runs, scenario, rival)?));
        }
    }
    let mut grid = Grid::new(heads);
    for law in laws() {
        let mut row = vec![law.to_owned()];
        for (scenario, fair, index, found) in &found {
            let of = &found[law];
            let shares = fair.iter().map(|share| text(over(of, |run| tcp(run) / share), 2));
            row.push(shares.collect::<Vec<_>>().join(" / "));
            row.extend(index.then(|| text(over(of, |run| jain_of(run, scenario)), 2)));
        }
        grid.row(row);
    }
    Ok(grid)
}

/// Scenario 4 with advice, by what the buffers hold: the connection and the rival, Mbit/s.
pub fn goal_1(runs: &Runs) -> Result<Grid, Error> {
    const PARTS: [&str; 4] = ["0", "0.4", "0.6", "0.95"];
    const CLOSING: [&str; 2] = ["u-mpbbr", "c-mpbbr"];
    const DETECTING: &str = "bbr+xcorr";
    let sizes: [(&str, &[&str]); 2] = [("6 MB", &[]), ("1 MB", &SMALL)];
    let mut heads = vec!["control".to_owned()];
    let mut found = Vec::new();
    for (size, buffers) in sizes {
        for part in PARTS {
            heads.push(format!("{size}, {}", if part == "0" { "off" } else { part }));
            let close = format!("bbr.close={part}");
            let settings = [buffers, &[&close]].concat();
            // Window laws close nothing.
            let windows = if part == "0" { &WINDOWS[..] } else { &[] };
            let plain =
                get(runs, "cmpbbr/four", &[&CLOSING, windows].concat(), settings, few(runs))?;
            // A detector that is not sure must not count as coupling there.
            let settings = [buffers, &["decision.undecided=none", &close]].concat();
            let own = get(runs, "cmpbbr/four", &[DETECTING], settings, few(runs))?;
            found.push((part, plain.and(own)));
        }
    }
    let mut grid = Grid::new(heads);
    for law in [&CLOSING[..], &[DETECTING], &WINDOWS].concat() {
        let cells = found.iter().map(|(part, found)| {
            if WINDOWS.contains(&law) && *part != "0" {
                return String::new();
            }
            format!("{} / {}", text(over(&found[law], mptcp), 1), text(over(&found[law], tcp), 2))
        });
        grid.row([law.to_owned()].into_iter().chain(cells));
    }
    Ok(grid)
}

/// Two connections of the same control: Jain's index, and what both have, Mbit/s.
pub fn itself(runs: &Runs) -> Result<Grid, Error> {
    const CONTROLS: [&str; 4] = ["c-mpbbr", "han-bbr", "u-mpbbr", "bbr+xcorr"];
    let scenarios = [("scenario 2", "two"), ("scenario 3", "three"), ("five paths", "complex")];
    let heads =
        scenarios.iter().flat_map(|(name, _)| [format!("{name}: Jain"), format!("{name}: both")]);
    let mut grid = Grid::new(["control".to_owned()].into_iter().chain(heads));
    for law in CONTROLS.into_iter().chain(WINDOWS) {
        let mut row = vec![law.to_owned()];
        for (_, scenario) in scenarios {
            let found = twice(runs, scenario, law, few(runs))?;
            row.push(text(over(&found, even), 3));
            row.push(text(over(&found, |run| mptcp(run) + goodput(run, "other")), 1));
        }
        grid.row(row);
    }
    Ok(grid)
}

pub fn five_paths(runs: &Runs) -> Result<Grid, Error> {
    let mut grid = Grid::new([
        "control",
        "rivals",
        "connection",
        "rival of 20 Mbit/s",
        "of 1 Mbit/s",
        "of the pair's 20",
        "Ag_bft",
    ]);
    for rival in [Rival::Own, Rival::Cubic] {
        let found = against(runs, "complex", rival)?;
        for law in laws() {
            let beside = match rival {
                Rival::Cubic => "CUBIC",
                _ if MODELS.contains(&law) => "BBR",
                _ => "Reno",
            };
            let of = &found[law];
            let each = [("tcp1", 1), ("tcp2", 2), ("tcp3", 1)]
                .map(|(flow, digits)| text(over(of, |run| goodput(run, flow)), digits));
            let gain = text(over(of, |run| benefit(run, rates("complex"))), 2);
            let head = [law.to_owned(), beside.into(), text(over(of, mptcp), 1)];
            grid.row(head.into_iter().chain(each).chain([gain]));
        }
    }
    Ok(grid)
}

pub fn detectors(runs: &Runs) -> Result<Grid, Error> {
    const LISTED: [&str; 4] = ["bbr+xcorr", "bbr+ssc", "bbr+tr", "bbr+btlbw"];
    const NETWORKS: [&str; 7] = [
        "sbd/nsb-2",
        "sbd/nsb-3",
        "sbd/nsb-5",
        "sbd/sb-2",
        "sbd/sb-3",
        "sbd/sb-5",
        "phone/wifi-lte",
    ];
    let mut grid = Grid::new(["network"].into_iter().chain(LISTED));
    for network in NETWORKS {
        let found = get(runs, network, &LISTED, [""; 0], runs.seeds(3, 3))?;
        let cells = LISTED.map(|one| text(spread(&found[one], |run| run.test().accuracy), 2));
        grid.row([network.to_owned()].into_iter().chain(cells));
    }
    Ok(grid)
}

/// The scenarios under C-MPBBR, for 20 s: in the simulator, and on the host that takes its place beside that.
pub fn hosts(runs: &Runs) -> Result<Grid, Error> {
    // Linux's send buffer begins with ten packets a subflow, and grows with the windows, the simulator's with what path
    // and queue hold. Scenario 4 is the one that this decides.
    const CASES: [(&str, &str, Option<&str>); 6] = [
        ("1", "one", None),
        ("2", "two", None),
        ("3", "three", None),
        ("4", "four", None),
        ("4, send buffer of 8 MB", "four", Some("flows.mptcp.send_buffer=8 MB")),
        ("5", "five", None),
    ];
    type Value = fn(&Kept) -> f64;
    const FIGURES: [(&str, Value); 3] =
        [("connection, Mbit/s", mptcp), ("rival, Mbit/s", tcp), ("connection / rival", to_rival)];
    // Real time, the scheduler that Linux has, and no closing, which takes a path manager.
    const SETTINGS: [&str; 4] =
        ["warmup=5 s", "duration=20 s", "flows.mptcp.scheduler=linux", "bbr.close=0"];
    const LAW: &str = "c-mpbbr";
    let other = Some(runs.host()).filter(|host| *host != HostId::SIM);
    let mut heads = ["scenario", "figure", "simulator"].map(String::from).to_vec();
    heads.extend(other.iter().flat_map(|host| [host.to_string(), format!("{host} / simulator")]));
    let mut grid = Grid::new(heads);
    for (case, scenario, setting) in CASES {
        let ask = Ask::of(&format!("cmpbbr/{scenario}"), [LAW]).set(SETTINGS).set(setting);
        let ask = ask.seeds(seeds(runs)).brief(runs.form());
        // The other host first, as it may lack what is asked for.
        let there = other.map(|_| runs.get(&ask)).transpose()?;
        let here = runs.get(&ask.simulated())?;
        let alone = rivals(scenario).contains(&Rival::Nothing);
        for (name, figure) in FIGURES.into_iter().take(if alone { 1 } else { FIGURES.len() }) {
            let mut row = vec![case.into(), name.into(), text(over(&here[LAW], figure), 2)];
            if let Some(there) = &there {
                let by_seed = |found: &Controls| {
                    found[LAW].iter().map(|run| Some(figure(run))).collect::<Vec<_>>()
                };
                row.push(text(over(&there[LAW], figure), 2));
                row.push(text(quotient(&by_seed(there), &by_seed(&here)), 2));
            }
            grid.row(row);
        }
    }
    Ok(grid)
}
