//! `narrows run`.

use std::fmt::Write;

use narrows_lab::{
    App, CaptureRequest, Fitness, HostId, Job, Output, Run, Scenario, describe, detection, load,
    run as run_on, series,
};

use crate::args::lab::{RunArgs, Series, control, hosts, signals};
use crate::error::Error;
use crate::size::Size;
use crate::{print, stop};

/// Runs one scenario once.
pub fn run(args: &RunArgs) -> Result<(), Error> {
    let host = hosts(std::slice::from_ref(&args.on))?[0];
    let mut scenario = load(&args.scenario, &args.edit.edits()?)?;
    let control = args.cc.as_deref().map(control).transpose()?;
    if control.is_some() {
        let Some(test) = scenario.test else {
            let message =
                "no flow of this scenario is under test; expected a field test = \"FLOW\"";
            return Err(Error::input("--cc", message));
        };
        scenario.flows[test].control = control;
    }
    let under_test = scenario.test.and_then(|test| scenario.flows[test].control);
    let signal = signals(args.signal.as_slice(), under_test.as_slice())?;
    signal.into_iter().for_each(|signal| scenario.listen_to(signal));
    let app = args.app.clone().map(|client| App { client, server: args.serve.clone() });
    // Before the folders are there, which Ctrl-C takes away again.
    let stop = stop::on_signal()?;
    let (series, seed) = (args.out.is_some(), args.seed);
    let mut job = Job { control, seed, series, app: app.as_ref(), ..Job::new(&scenario, &stop) };
    host.check(&job)?;
    if args.dry_run {
        return print(&describe(&scenario, host));
    }
    Size::of([&scenario], &[host], 1, 1).check(args.force)?;
    let output = args.out.as_deref().map(Output::new).transpose()?;
    let mut pcap = args.pcap.as_deref().map(Output::new).transpose()?;
    let request = |output| CaptureRequest { names: &args.capture, snaplen: args.snaplen, output };
    job.capture = pcap.as_mut().map(request);
    let result = run_on(host, job)?;
    for note in &result.notes {
        eprintln!("{note}");
    }
    let json = json(&result.summary);
    let mut text = if args.json { json.clone() } else { tell(&scenario, &result) };
    if let Some(mut output) = output {
        output.write("summary.json", |to| to.write_all(json.as_bytes()))?;
        let name = match args.series {
            Series::Csv => {
                output.write("series.csv", |to| series::write_csv(&result.series, to))?;
                "series.csv"
            }
            #[cfg(feature = "parquet")]
            Series::Parquet => {
                let mut bytes = Vec::new();
                let written = series::write_parquet(&result.series, &mut bytes);
                output.write("series.parquet", |to| written.and_then(|()| to.write_all(&bytes)))?;
                "series.parquet"
            }
        };
        let mut names = vec!["summary.json", name];
        if result.decisions.is_empty() {
            output.leave_out("decisions.csv");
        } else {
            let decisions = &result.decisions;
            output.write("decisions.csv", |to| detection::write_csv(decisions, to))?;
            names.push("decisions.csv");
        }
        if !args.json {
            let folder = output.target().display();
            let names: Vec<_> = names.iter().map(|name| format!("{folder}/{name}")).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\nfiles: {}", names.join(", "));
        }
        output.commit()?;
    }
    if let Some(pcap) = pcap {
        if !args.json {
            let folder = pcap.target().display();
            let _ = writeln!(text, "\ncaptures in {folder}: {}", pcap.created().join(", "));
        }
        pcap.commit()?;
    }
    print(&text)
}

/// A value as JSON for files and people.
pub fn json(value: &impl serde::Serialize) -> String {
    // Only maps with keys other than strings fail, and results have none.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

/// The summary for people: the listed connections, then the links.
fn tell(scenario: &Scenario, run: &Run) -> String {
    let summary = &run.summary;
    let on = match summary.host {
        HostId::SIM => String::new(),
        host => format!(" on {host}"),
    };
    let mut text = format!(
        "{} under {}{on}, seed {}, {} s analysed\n\n",
        summary.scenario,
        summary.cc.as_deref().unwrap_or("-"),
        summary.seed,
        summary.duration_s
    );
    let optional = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.2}"));
    let _ = writeln!(
        text,
        "{:14} {:6} {:12} {:>7} {:>7} {:>6} {:>6} {:>8} {:>8}",
        "connection", "kind", "cc", "Mbit/s", "ratio", "retx", "cwnd", "srtt ms", "p95 ms"
    );
    let mut background = Vec::new();
    for (flow, connection) in scenario.flows.iter().zip(&summary.connections) {
        if flow.background {
            background.push(connection.goodput_mbps);
            continue;
        }
        let _ = writeln!(
            text,
            "{:14} {:6} {:12} {:7.2} {:>7} {:6}",
            connection.name,
            connection.kind.name(),
            connection.cc.as_deref().unwrap_or("-"),
            connection.goodput_mbps,
            optional(connection.ratio_to_tcp),
            connection.retransmits
        );
        for path in &connection.paths {
            let _ = writeln!(
                text,
                "  {:32} {:7.2} {:>7} {:6} {:6.1} {:8.1} {:8.1}",
                path.name,
                path.goodput_mbps,
                optional(path.ratio_to_tcp),
                path.retransmits,
                path.mean_cwnd_packets,
                path.mean_srtt_ms,
                path.p95_srtt_ms
            );
        }
    }
    if !background.is_empty() {
        let total: f64 = background.iter().sum();
        let _ = writeln!(text, "{} background flows {total:21.2}", background.len());
    }
    let _ = writeln!(
        text,
        "\n{:14} {:>6} {:>7} {:>9} {:>9}",
        "link", "used", "drops", "queue ms", "p95 ms"
    );
    for link in &summary.links {
        let _ = writeln!(
            text,
            "{:14} {:5.1}% {:7} {:9.1} {:9.1}",
            link.name,
            link.utilization * 100.0,
            link.drops,
            link.mean_queue_ms,
            link.p95_queue_ms
        );
    }
    let _ = writeln!(text, "\nJain's index {:.3}", summary.fairness.jain);
    if let Some(fitness) = &summary.fitness {
        let _ = writeln!(text, "{}", tell_fitness(fitness));
    }
    text
}

/// `fit: packets 0.02 ms late in the median, 0.21 at 99 %, at most 1.30; worst second 0.4 % off`.
fn tell_fitness(fitness: &Fitness) -> String {
    let Fitness { lateness_p50_ms, lateness_p99_ms, lateness_max_ms, worst_second, .. } = fitness;
    let verdict = match (fitness.fit, &fitness.why) {
        (true, _) => "fit".into(),
        (false, Some(why)) => format!("unfit ({why})"),
        (false, None) => "unfit".into(),
    };
    format!(
        "{verdict}: packets {lateness_p50_ms:.2} ms late in the median, {lateness_p99_ms:.2} at \
         99 %, at most {lateness_max_ms:.2}; worst second {:.1} % off",
        100.0 * worst_second
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fitness_is_told_in_a_line() {
        let mut fitness = Fitness {
            lateness_p50_ms: 0.02,
            lateness_p99_ms: 0.214,
            lateness_max_ms: 1.3,
            worst_second: 0.004,
            fit: true,
            why: None,
        };
        let told = "packets 0.02 ms late in the median, 0.21 at 99 %, at most 1.30; worst second \
                    0.4 % off";
        assert_eq!(tell_fitness(&fitness), format!("fit: {told}"));
        fitness = Fitness { fit: false, why: Some("late".into()), ..fitness };
        assert_eq!(tell_fitness(&fitness), format!("unfit (late): {told}"));
    }
}
