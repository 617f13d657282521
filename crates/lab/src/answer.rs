//! The answer of a comparison in three sentences, computed from its rows: what coupling costs
//! where bottlenecks are apart, what it gains where they are shared, and what follows.

use crate::compare::{Case, Row};
use crate::host::Host;
use crate::scenario::Scenario;

/// Where the paths of the connection under test meet, by the scenario's right groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// Each path has a bottleneck of its own, at all times.
    Apart,
    /// All share one, at all times.
    Shared,
}

fn layout(scenario: &Scenario) -> Option<Layout> {
    let paths = scenario.flows.get(scenario.test?)?.paths.len();
    let all = |groups: usize| scenario.phases.iter().all(|phase| phase.groups.len() == groups);
    match () {
        () if paths < 2 || scenario.phases.is_empty() => None,
        () if all(paths) => Some(Layout::Apart),
        () if all(1) => Some(Layout::Shared),
        () => None,
    }
}

/// Mean ratios of a kind of control over the scenarios of a layout.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    mean: f64,
    high: f64,
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (low, high) = (format!("{:.2}", self.low), format!("{:.2}", self.high));
        if low == high { f.write_str(&low) } else { write!(f, "{low} to {high}") }
    }
}

/// How far from 1 a ratio is still about 1: the width the paper's "close to 1" is read with.
const CLOSE: f64 = 0.2;

/// Three sentences for each host, or what is missing to say them.
pub fn answer(cases: &[Case], rows: &[Row]) -> String {
    let on = |host: Host| rows.iter().filter(move |row| row.host == host);
    let hosts: Vec<Host> =
        Host::ALL.into_iter().filter(|&host| on(host).next().is_some()).collect();
    if hosts.len() < 2 {
        return answer_on(cases, &rows.iter().collect::<Vec<_>>());
    }
    let of = |&host: &Host| {
        let place = match host {
            Host::Sim => "In the simulator",
            Host::Kernel => "In this machine's kernel",
        };
        format!("{place}:\n{}", answer_on(cases, &on(host).collect::<Vec<_>>()))
    };
    hosts.iter().map(of).collect::<Vec<_>>().join("\n")
}

fn answer_on(cases: &[Case], rows: &[&Row]) -> String {
    let range = |at: Layout, is_coupled: bool| -> Option<Range> {
        let of = rows.iter().filter(|row| {
            layout(&cases[row.case].scenario) == Some(at)
                && row.control.couples() == is_coupled
                // A detector's answer is no fixed one.
                && !row.control.listens()
        });
        let ratios: Vec<f64> =
            of.filter_map(|row| row.ratio_to_tcp).map(|ratio| ratio.mean).collect();
        (!ratios.is_empty()).then(|| Range {
            low: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            mean: crate::stats::mean(&ratios),
            high: ratios.iter().copied().fold(0.0, f64::max),
        })
    };
    let names = |at: Layout| {
        let of = cases.iter().filter(|case| layout(&case.scenario) == Some(at));
        let mut names: Vec<&str> = of.map(|case| case.scenario.name.as_str()).collect();
        names.dedup();
        names.join(", ")
    };

    let mut sentences = Vec::new();
    let mut costs = None;
    let (apart_c, apart_u) = (range(Layout::Apart, true), range(Layout::Apart, false));
    if let (Some(coupled), Some(uncoupled)) = (apart_c, apart_u) {
        let loss = 100.0 * (1.0 - coupled.mean / uncoupled.mean);
        costs = Some(loss >= 10.0);
        let verdict = match loss {
            10.0.. => format!("there coupling gives away {loss:.0} %"),
            0.5.. => format!("there coupling costs little ({loss:.0} %)"),
            _ => "there coupling costs nothing".into(),
        };
        sentences.push(format!(
            "Where every path has a bottleneck of its own ({}), the coupled laws get {coupled} times \
             what TCP gets beside them, the uncoupled {uncoupled}: {verdict}.",
            names(Layout::Apart)
        ));
    }
    let (shared_c, shared_u) = (range(Layout::Shared, true), range(Layout::Shared, false));
    if let (Some(coupled), Some(uncoupled)) = (shared_c, shared_u) {
        let verdict = if (1.0 - CLOSE..=1.0 + CLOSE).contains(&coupled.mean) {
            "so coupling shares fairly"
        } else if (coupled.mean - 1.0).abs() < (uncoupled.mean - 1.0).abs() {
            "so coupling is nearer to TCP's part, but not at it"
        } else {
            "so coupling does not help here"
        };
        sentences.push(format!(
            "Where the paths share one bottleneck ({}), the uncoupled laws take {uncoupled} times \
             TCP's part and the coupled {coupled}: {verdict}.",
            names(Layout::Shared)
        ));
    }
    let polite = |range: Range| range.mean <= 1.0 + CLOSE;
    let verdict = match (costs, shared_c, shared_u) {
        (Some(_), Some(_), Some(uncoupled)) if polite(uncoupled) => {
            "In this table uncoupled control is good enough on both kinds of network, so it makes no \
             case for detecting bottlenecks."
        }
        (Some(false), Some(coupled), Some(_)) if polite(coupled) => {
            "In this table coupled control is good enough on both kinds of network, so it makes no \
             case for detecting bottlenecks."
        }
        (Some(true), Some(coupled), Some(uncoupled)) if coupled.mean < uncoupled.mean => {
            "Neither is right on both networks, and a sender cannot choose in advance: which paths \
             meet in one bottleneck has to be detected."
        }
        (Some(_), Some(_), Some(_)) => {
            "In this table neither leaves TCP its part of a shared bottleneck, so it makes no case \
             for detecting bottlenecks."
        }
        _ => {
            "To weigh what coupling costs against what it protects, compare coupled and uncoupled \
             laws on both sbd/nsb-2 and sbd/sb-2."
        }
    };
    sentences.push(verdict.into());
    sentences.iter().map(|sentence| wrap(sentence, 100)).collect()
}

/// Breaks a text into lines of at most `width` characters, each ended.
fn wrap(text: &str, width: usize) -> String {
    let mut lines = String::new();
    let mut line = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if line > 0 && line + 1 + length > width {
            lines.push('\n');
            line = 0;
        }
        if line > 0 {
            lines.push(' ');
            line += 1;
        }
        lines.push_str(word);
        line += length;
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use narrows_laws::Control;

    use super::*;
    use crate::compare::rows;
    use crate::compare::tests::finished;
    use crate::metrics::Detail;
    use crate::stats::Spread;
    use crate::{Edits, load};

    /// The answer to a comparison of sbd/nsb-2 and sbd/sb-2 in which these were the ratios of LIA
    /// and Reno on the first and on the second.
    fn answer_to(nsb: [f64; 2], sb: [f64; 2]) -> String {
        let case = |name| Case { scenario: load(name, &Edits::default()).unwrap(), set: None };
        let cases = [case("sbd/nsb-2"), case("sbd/sb-2")];
        let row = |case: usize, control: Control, ratio: f64| Row {
            scenario: cases[case].scenario.name.clone(),
            set: None,
            cc: control.to_string(),
            signal: None,
            host: Host::Sim,
            seeds: 1,
            unfit: 0,
            why: None,
            goodput_mbps: None,
            ratio_to_tcp: Spread::of(&[ratio]),
            jain: None,
            retransmits: None,
            queue_ms: None,
            accuracy: None,
            detail: Detail::default(),
            control: control.into(),
            case,
        };
        let rows = [
            row(0, Control::LIA, nsb[0]),
            row(0, Control::RENO, nsb[1]),
            row(1, Control::LIA, sb[0]),
            row(1, Control::RENO, sb[1]),
        ];
        answer(&cases, &rows).replace('\n', " ")
    }

    #[test]
    fn the_papers_figure_makes_the_case_for_detection() {
        let told = answer_to([0.6, 1.0], [1.0, 2.0]);
        assert!(told.contains("the coupled laws get 0.60 times"), "{told}");
        assert!(told.contains("the uncoupled 1.00: there coupling gives away 40 %."), "{told}");
        assert!(told.contains("uncoupled laws take 2.00 times TCP's part"), "{told}");
        assert!(told.contains("so coupling shares fairly."), "{told}");
        assert!(told.ends_with("has to be detected. "), "{told}");
    }

    #[test]
    fn a_table_that_says_otherwise_is_told_as_it_is() {
        let told = answer_to([0.98, 1.0], [1.0, 2.0]);
        assert!(told.contains("coupling costs little (2 %)"), "{told}");
        assert!(told.contains("coupled control is good enough on both"), "{told}");
        assert!(answer_to([1.1, 1.0], [1.0, 2.0]).contains("coupling costs nothing"));
        let told = answer_to([0.6, 1.0], [1.5, 2.0]);
        assert!(told.contains("nearer to TCP's part, but not at it"), "{told}");
        let told = answer_to([0.6, 1.0], [1.1, 1.1]);
        assert!(told.contains("uncoupled control is good enough on both"), "{told}");
        // Far below TCP's part is no nearer to it than a little above.
        let told = answer_to([0.6, 1.0], [0.3, 1.3]);
        assert!(told.contains("so coupling does not help here"), "{told}");
    }

    #[test]
    fn a_detector_is_neither_coupled_nor_uncoupled() {
        let case = |name| Case { scenario: load(name, &Edits::default()).unwrap(), set: None };
        let cases = [case("sbd/nsb-2")];
        let told = |controls: &[(&str, f64)]| {
            let run = |&(cc, goodput): &(&str, f64)| finished(cc, Host::Sim, 1, goodput, None);
            let all: Vec<_> = controls.iter().map(run).collect();
            answer(&cases, &rows(&cases, &all))
        };
        let fixed = [("lia", 5.0), ("reno", 10.0)];
        assert_eq!(told(&[fixed[0], fixed[1], ("lia+ssc", 8.0)]), told(&fixed));
    }

    #[test]
    fn each_host_has_an_answer_of_its_own() {
        let case = |name| Case { scenario: load(name, &Edits::default()).unwrap(), set: None };
        let cases = [case("sbd/nsb-2")];
        let run = |cc, host, goodput| finished(cc, host, 1, goodput, None);
        let of = |hosts: &[(Host, f64)]| {
            let mut all = Vec::new();
            for (cc, part) in [("reno", 1.0), ("lia", 0.5), ("kernel:lia", 1.0)] {
                all.extend(hosts.iter().map(|&(host, goodput)| run(cc, host, part * goodput)));
            }
            answer(&cases, &rows(&cases, &all))
        };
        let alone = |host, goodput| of(&[(host, goodput)]);
        assert!(alone(Host::Sim, 10.0).contains("get 0.50 times"));
        assert_eq!(
            of(&[(Host::Sim, 10.0), (Host::Kernel, 12.0)]),
            format!(
                "In the simulator:\n{}\nIn this machine's kernel:\n{}",
                alone(Host::Sim, 10.0),
                alone(Host::Kernel, 12.0)
            )
        );
    }

    #[test]
    fn control_that_starves_tcp_is_never_called_good_enough() {
        for (nsb, sb) in [([0.6, 1.0], [2.0, 2.0]), ([1.0, 1.0], [1.5, 2.0])] {
            let told = answer_to(nsb, sb);
            assert!(told.contains("neither leaves TCP its part"), "{told}");
        }
    }
}
