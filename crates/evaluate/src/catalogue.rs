//! The criteria of RFC 9743 in its order. Headings and keywords are the RFC's; everything else, which it leaves to authors, is our
//! choice.

use std::fmt;
use std::iter::successors;

use narrows_lab::Error;
use narrows_lab::catalogue::hint;
use narrows_papers::Form;
use serde::Serialize;

use crate::cell::Cell;
use crate::mixed::{self, STARVED};
use crate::{general, multipath, single, special};

/// The RFC's word for a criterion; `ought` and `should` in small letters are its words, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Keyword {
    /// MUST, or REQUIRED.
    #[serde(rename = "MUST")]
    Must,
    /// SHOULD.
    #[serde(rename = "SHOULD")]
    Should,
    /// `should` without the weight of BCP 14.
    #[serde(rename = "should")]
    LowerShould,
    /// `ought to`.
    #[serde(rename = "ought")]
    Ought,
    /// `need to`.
    #[serde(rename = "need")]
    Need,
    /// A description without a verb of the kind.
    #[serde(rename = "-")]
    Says,
}

impl fmt::Display for Keyword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keyword::Must => "MUST",
            Keyword::Should => "SHOULD",
            Keyword::LowerShould => "should",
            Keyword::Ought => "ought",
            Keyword::Need => "need",
            Keyword::Says => "-",
        })
    }
}

/// How a criterion is judged.
#[derive(Clone, Copy)]
pub enum Make {
    /// By cells that are run.
    Runs(fn(&str, Form) -> Vec<Cell>),
    /// The same, of what the host does: a law cannot fail it but by ending the run.
    Host(fn(&str, Form) -> Vec<Cell>),
    /// By a paragraph of the law's header.
    Prose,
}

/// A criterion.
pub struct Criterion {
    /// Section of RFC 9743.
    pub section: &'static str,
    /// A word for it.
    pub name: &'static str,
    /// Heading of the section.
    pub heading: &'static str,
    /// The RFC's word.
    pub keyword: Keyword,
    /// What is run, or asked for.
    pub runs: &'static str,
    /// What a cell is measured by; greater is worse.
    pub figure: &'static str,
    /// The most that it may be.
    pub limit: f64,
    /// How it is judged.
    pub make: Make,
}

/// Harm that counts: a fifth, so that shares of 0.8 to 1.25 are right, as for the search for the worst networks.
const HARM: f64 = 0.2;
/// Jain's index may be less by this share of that of the standard that shares worst.
const UNFAIR: f64 = 0.1;

/// The sections that have criteria, with their headings.
const HEADINGS: &[(&str, &str)] = &[
    ("3.1", "Evaluation Guidelines"),
    ("3.2", "Document-Status Guidelines"),
    ("4", "Specifying Algorithms for Use in Controlled Environments"),
    ("5.1.1", "Protection Against Congestion Collapse"),
    ("5.1.2", "Protection Against Bufferbloat"),
    ("5.1.3", "Protection Against High Packet Loss"),
    ("5.1.4", "Fairness Within the Proposed Congestion Control Algorithm"),
    ("5.1.5", "Short Flows"),
    ("5.2", "Mixed Algorithm Behavior"),
    ("5.2.1", "Existing General-Purpose Congestion Control"),
    ("5.2.2", "Real-Time Congestion Control"),
    ("5.2.3", "Short and Long Flows"),
    ("5.3.1", "Differences with Congestion Control Principles"),
    ("5.3.2", "Incremental Deployment"),
    ("6.1", "Paths with Tail-Drop Queues"),
    ("6.2", "Tunnel Behavior"),
    ("6.3", "Wired Paths"),
    ("6.4", "Wireless Paths"),
    ("7.1", "Active Queue Management (AQM)"),
    ("7.2", "Operation with the Envelope Set by Network Circuit Breakers"),
    ("7.3", "Paths with Varying Delay"),
    ("7.4", "Internet of Things and Constrained Nodes"),
    ("7.5", "Paths with High Delay"),
    ("7.6", "Misbehaving Nodes"),
    ("7.7", "Extreme Packet Reordering"),
    ("7.8", "Transient Events"),
    ("7.9", "Sudden Changes in the Path"),
    ("7.10", "Multipath Transport"),
    ("7.11", "Data Centers"),
    ("8", "Security Considerations"),
];

/// The heading of a section; a build without it fails.
const fn heading(section: &str) -> &'static str {
    let mut at = 0;
    while at < HEADINGS.len() {
        let (known, heading) = HEADINGS[at];
        if same(known.as_bytes(), section.as_bytes()) {
            return heading;
        }
        at += 1;
    }
    panic!("a section without heading")
}

const fn same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

const fn runs(
    section: &'static str,
    name: &'static str,
    keyword: Keyword,
    [runs, figure]: [&'static str; 2],
    limit: f64,
    make: fn(&str, Form) -> Vec<Cell>,
) -> Criterion {
    Criterion {
        section,
        name,
        heading: heading(section),
        keyword,
        runs,
        figure,
        limit,
        make: Make::Runs(make),
    }
}

const fn host(criterion: Criterion) -> Criterion {
    match criterion.make {
        Make::Runs(make) => Criterion { make: Make::Host(make), ..criterion },
        _ => criterion,
    }
}

const fn prose(
    section: &'static str,
    name: &'static str,
    keyword: Keyword,
    asks: &'static str,
) -> Criterion {
    let (runs, figure) = (asks, "prose in the law's header");
    Criterion {
        section,
        name,
        heading: heading(section),
        keyword,
        runs,
        figure,
        limit: 0.0,
        make: Make::Prose,
    }
}

use Keyword::{LowerShould, Must, Need, Ought, Says, Should};

const GOODPUT: &str = "goodput that the rivals lose";
const ALL: &str = "goodput, loss and queueing delay that the rivals lose";
const OWN: &str = "goodput that the law lacks";

/// All criteria.
pub const CATALOGUE: &[Criterion] = &[
    prose(
        "3.1",
        "experience",
        Should,
        "experience with implementations and in use; implementations and evaluations by others",
    ),
    prose(
        "3.2",
        "status",
        Must,
        "the abstract says whether it is safe for the Internet, and where it is not recommended",
    ),
    prose(
        "4",
        "environment",
        Need,
        "only of laws that rely on functions of the network: what specifies these",
    ),
    runs(
        "5.1.1",
        "loss",
        LowerShould,
        ["a flow at 10 Mbit/s, 40 ms, 10 to 50 % random loss", "packets sent more"],
        HARM,
        single::loss,
    ),
    host(runs(
        "5.1.1",
        "blackout",
        LowerShould,
        [
            "nothing passes for a minute, one path and two",
            "packets sent more on each path; up to 8 do not count",
        ],
        HARM,
        single::blackout,
    )),
    runs(
        "5.1.1",
        "crowd",
        LowerShould,
        ["10 to 60 flows on 1 Mbit/s, 100 ms", "share dropped more"],
        HARM,
        single::thin_crowd,
    ),
    runs(
        "5.1.2",
        "queue",
        Ought,
        ["a flow of one path and of two, queues of 0.25 to 20 BDP", "mean queueing delay more"],
        HARM,
        single::bufferbloat,
    ),
    runs(
        "5.1.3",
        "shallow",
        Need,
        ["1 to 16 flows of one path and of two, queues of 0.1 to 1.5 BDP", "share dropped more"],
        HARM,
        single::shallow,
    ),
    runs(
        "5.1.4",
        "flows",
        LowerShould,
        [
            "2 to 100 flows of one RTT, two with RTTs 1 to 2 up to 1 to 10; each of one path, of 2 and (whole form) of 8",
            "Jain's index less",
        ],
        UNFAIR,
        single::fairness,
    ),
    runs(
        "5.1.4",
        "late",
        LowerShould,
        [
            "a flow that starts 30 s after another, its share 15 s later; both of one path, of 2 and (whole form) of 8",
            "share less",
        ],
        HARM,
        single::late,
    ),
    runs(
        "5.1.4",
        "paths",
        LowerShould,
        [
            "a connection of 2 to 8 paths beside a flow of its own law, one bottleneck",
            "what the flow has less than beside one, what they have less than a flow of a standard beside another",
        ],
        HARM,
        single::of_paths,
    ),
    runs(
        "5.1.5",
        "short-and-long",
        Must,
        [
            "files of web sizes that load a link by 20 and 50 % beside a long flow, all of the law",
            "completion time more, goodput of the long one less",
        ],
        HARM,
        single::short,
    ),
    runs(
        "5.2",
        "starvation",
        Must,
        [
            "a rival at queues of 0.25 to 10 BDP, its RTT 1 and 5 times, the law with 1 to 4 paths",
            "goodput that the rivals lose; less than 5 % of a fair share",
        ],
        STARVED,
        mixed::starvation,
    ),
    host(runs(
        "5.2",
        "feedback",
        Must,
        [
            "no acknowledgement returns for a minute, one path and two",
            "packets sent more on each path; up to 8 do not count",
        ],
        HARM,
        single::feedback,
    )),
    runs(
        "5.2.1",
        "one-path",
        Must,
        ["beside 1 and 4 of Reno and of CUBIC, queues of 0.5 to 4 BDP", ALL],
        HARM,
        mixed::one_path,
    ),
    runs(
        "5.2.1",
        "several-paths",
        Must,
        ["the same, the law with 2 and 4 paths through the link", ALL],
        HARM,
        mixed::several_paths,
    ),
    runs(
        "5.2.1",
        "deployed",
        LowerShould,
        ["beside BBR v1 and v3, one path and two", GOODPUT],
        HARM,
        mixed::deployed,
    ),
    runs(
        "5.2.2",
        "constant-rate",
        Should,
        [
            "datagrams at a mean of 1 Mbit/s through the same 6 Mbit/s, one path and two",
            "95 % quantile of the delay that the datagrams meet, and the share of them dropped, more",
        ],
        HARM,
        mixed::constant_rate,
    ),
    runs(
        "5.2.2",
        "adaptive",
        Should,
        [
            "media under NADA (RFC 8698) and under SCReAM (RFC 8298) on the link of RFC 8867, 2 Mbit/s, 100 ms: beside a long flow (its section 5.6), queues of 300 ms and (whole form) 1 s, and CoDel; beside files of 30 to 50 kB (5.7), each second on average; one path and two",
            "the media's rate less, and the 95 % quantile of its RTT, less the base RTT, more",
        ],
        HARM,
        mixed::adaptive,
    ),
    runs(
        "5.2.3",
        "short-and-long",
        Must,
        [
            "files of web sizes of Reno and CUBIC, 20 and 50 % load, beside a long flow of the law; long ones beside files of the law",
            "completion time more, goodput less",
        ],
        HARM,
        mixed::short_and_long,
    ),
    prose("5.3.1", "principles", Must, "deviations from RFC 2914 and RFC 7141"),
    prose(
        "5.3.2",
        "deployment",
        Must,
        "whether it can be deployed step by step; what is known of it with routers, proxies, home routers and the like (SHOULD)",
    ),
    runs(
        "6.1",
        "tail-drop",
        Must,
        [
            "points of a space-filling design: 1 Mbit/s to 10 Gbit/s (quick: 120 Mbit/s), 1 to 600 ms, 0.25 to 10 BDP; the kinds of rivals, and one path and two, in turns",
            "goodput, loss and queueing delay that a rival loses; goodput that the law lacks",
        ],
        HARM,
        general::tail_drop,
    ),
    prose(
        "6.2",
        "tunnels",
        Must,
        "only of laws that rely on explicit signals: what traffic in a tunnel does to them",
    ),
    runs(
        "6.2",
        "outer-flow",
        Must,
        [
            "the law and its rival in one tunnel, its outer flow in one queue of FQ-CoDel; ECN by the normal mode of RFC 6040 and by its compatibility mode; one path and two",
            ALL,
        ],
        HARM,
        special::tunnel,
    ),
    runs(
        "6.3",
        "wired",
        Says,
        ["alone on one link and on two, 10 Mbit/s to 1 Gbit/s", OWN],
        HARM,
        general::wired,
    ),
    runs(
        "6.4",
        "wireless",
        LowerShould,
        [
            "random loss of 0.1 and 1 %, an LTE trace, Wi-Fi, jitter of 30 ms, link-layer retransmission (in order, 30 ms each 200 ms); alone, beside Reno and CUBIC, one path and two",
            "goodput that the law lacks or a rival loses",
        ],
        HARM,
        general::wireless,
    ),
    runs(
        "7.1",
        "disciplines",
        Should,
        ["RED, CoDel, PIE, with and without ECN; one path and two", ALL],
        HARM,
        special::aqm,
    ),
    runs(
        "7.1",
        "queue-by-flow",
        Should,
        ["FQ-CoDel, with and without ECN; one path against a flow, two against two", ALL],
        HARM,
        special::by_flow,
    ),
    runs(
        "7.1",
        "marks",
        Need,
        [
            "RED, CoDel and DualPI2 that mark, a queue that never drops: the reaction to CE of RFC 3168",
            "mean queueing delay more",
        ],
        HARM,
        special::marks,
    ),
    runs(
        "7.1",
        "l4s",
        Should,
        [
            "DualPI2 (RFC 9332), beside a scalable flow (DCTCP), the law without ECN and with ECT(0); one path and two",
            "goodput, loss and queueing delay that the scalable flow loses; goodput that the law lacks",
        ],
        HARM,
        special::l4s,
    ),
    runs(
        "7.2",
        "breaker",
        Ought,
        [
            "four flows whose link falls to a tenth, from 5 to 35 s later; what a breaker (RFC 8084) counts then, in all and in its worst 5 s",
            "share dropped, or sent again, more",
        ],
        HARM,
        special::breaker,
    ),
    runs(
        "7.3",
        "delay",
        Should,
        [
            "30 and 100 ms more, and less, each 10 s; alone, and beside Reno and CUBIC",
            "goodput that the law lacks or a rival loses",
        ],
        HARM,
        special::varying_delay,
    ),
    runs(
        "7.4",
        "thin",
        Says,
        [
            "10 to 100 kbit/s, 200 ms, queues of four packets",
            "goodput that the law lacks or a rival loses, share dropped more",
        ],
        HARM,
        special::thin,
    ),
    prose(
        "7.4",
        "constrained",
        Says,
        "the number of control packets, and what it takes of power, CPU and memory",
    ),
    runs(
        "7.5",
        "satellite",
        Ought,
        [
            "600 ms at 10 Mbit/s, 0.5 and 1 BDP; alone, and beside a rival",
            "goodput that the law lacks or a rival loses",
        ],
        HARM,
        special::high_delay,
    ),
    runs(
        "7.6",
        "receivers",
        Should,
        [
            "the law's receiver acknowledges lost data (two paths against two such flows of half the buffer), hides marks, or acknowledges each packet; one path and two",
            "goodput that a rival loses more than where a standard's receiver does so",
        ],
        HARM,
        special::receivers,
    ),
    prose(
        "7.6",
        "nodes",
        Should,
        "senders, receivers and routers that do not comply, and attackers from outside",
    ),
    runs(
        "7.7",
        "reordering",
        Ought,
        ["1 to 30 % of the packets late by 10 and 50 ms", OWN],
        HARM,
        special::reordering,
    ),
    runs(
        "7.8",
        "transient",
        Should,
        [
            "nine tenths of the link taken for 10 s, 5 s of outage, 1 s of silence each 10 s, a host that moves: one path, and from Wi-Fi to LTE and back",
            "share dropped more, goodput that the law lacks or a rival loses",
        ],
        HARM,
        special::transient,
    ),
    runs(
        "7.9",
        "sudden",
        Must,
        [
            "rate to a tenth and ten times, RTT five times, another route each 10 s",
            "goodput that the law lacks or a rival loses, queueing delay more",
        ],
        HARM,
        special::sudden,
    ),
    runs(
        "7.10",
        "shared",
        Must,
        [
            "k of n paths through one bottleneck, or through two of them, n up to 5, from 30 s on; all 13 patterns (quick: four)",
            ALL,
        ],
        HARM,
        multipath::shared,
    ),
    runs(
        "7.10",
        "undecided",
        Must,
        [
            "the same from 2 to 10 s, before a detector can know",
            "goodput that the rival there loses",
        ],
        HARM,
        multipath::undecided,
    ),
    runs(
        "7.10",
        "coupled-limit",
        Must,
        [
            "two paths through one policer, which delays nothing",
            "goodput that the rival there loses",
        ],
        HARM,
        multipath::coupled_limit,
    ),
    runs(
        "7.10",
        "elsewhere",
        Should,
        ["k of n paths share; a rival on a link of another path", "goodput that this rival loses"],
        HARM,
        multipath::elsewhere,
    ),
    runs(
        "7.10",
        "independent",
        Need,
        ["1 to 8 rivals on one path", "goodput that the law lacks on the other path"],
        HARM,
        multipath::independent,
    ),
    runs(
        "7.10",
        "fail-over",
        Must,
        [
            "the first path is silent for 20 s, the other a backup or in use",
            "goodput that a rival on the other loses, or the law lacks once it is back",
        ],
        HARM,
        multipath::fail_over,
    ),
    runs(
        "7.10",
        "fail-over-own",
        Must,
        [
            "the same, the 20 s of silence",
            "goodput that the law lacks against a flow that starts then on the other path",
        ],
        STARVED,
        multipath::fail_over_own,
    ),
    runs(
        "7.10",
        "fail-over-together",
        Ought,
        [
            "10 to 100 connections fail over at once to a link with rivals, a backup or in use, or come back to one",
            "drops more, goodput that the rivals lose",
        ],
        HARM,
        multipath::together,
    ),
    runs(
        "7.10",
        "synchronised",
        Ought,
        [
            "4 to 64 connections of two paths through one link",
            "drops more, use of the link and Jain's index less",
        ],
        HARM,
        multipath::synchronised,
    ),
    runs(
        "7.11",
        "incast",
        Says,
        ["8 to 64 answers of 64 kB at once through a port of 1 Gbit/s", "completion time more"],
        HARM,
        special::data_center,
    ),
    runs(
        "7.11",
        "fabric",
        Says,
        [
            "a file of 1 MB from each of 16 hosts of a fat tree (core links of 50 Mbit/s), all of the law, as TCP and over 4 and (whole form) 8 paths by ECMP with Linux's scheduler",
            "completion time more, on average and of the last",
        ],
        HARM,
        special::fabric,
    ),
    prose(
        "7.11",
        "coexistence",
        Should,
        "only of laws for data centres: with which controls they coexist safely",
    ),
    prose("8", "security", Must, "security and privacy issues of the design"),
];

impl Criterion {
    /// Is it of this section, or of one within?
    fn is_of(&self, section: &str) -> bool {
        let within = self.section.strip_prefix(section);
        within.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }
}

/// The criteria that a selection names: `5.1.2`, `7.10`, all of `5.2`, or `5.1.4/late`; all of none.
///
/// # Errors
/// A section that has none.
pub fn select(only: &[String]) -> Result<Vec<&'static Criterion>, Error> {
    // `5.1.2, 7.10` is what people write.
    let only: Vec<&str> = only.iter().map(|name| name.trim()).collect();
    let chosen = |criterion: &Criterion, name: &str| match name.split_once('/') {
        Some((section, one)) => criterion.section == section && criterion.name == one,
        None => criterion.is_of(name),
    };
    for &name in &only {
        if !CATALOGUE.iter().any(|criterion| chosen(criterion, name)) {
            let mut known: Vec<&str> =
                CATALOGUE.iter().map(|criterion| criterion.section).collect();
            known.dedup();
            let known = known.join(", ");
            let no = match name.contains('/') {
                true => {
                    let ids: Vec<String> = CATALOGUE.iter().map(Criterion::id).collect();
                    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
                    format!("no such criterion{}", hint(name, &ids))
                }
                false => "no such section".to_owned(),
            };
            let message =
                format!("{no}; expected {known}, or a criterion of `narrows evaluate list`");
            return Err(Error::input(name, message));
        }
    }
    let named =
        |criterion: &&Criterion| only.is_empty() || only.iter().any(|name| chosen(criterion, name));
    Ok(CATALOGUE.iter().filter(named).collect())
}

/// What names criteria of [`select`], in its order, whatever named them there: the largest sections of which all are
/// selected, else `5.1.4/late`; nothing if all are.
pub fn selection(criteria: &[&Criterion]) -> Vec<String> {
    let is_selected = |one: &Criterion| criteria.iter().any(|other| other.id() == one.id());
    if CATALOGUE.iter().all(is_selected) {
        return Vec::new();
    }
    let name = |criterion: &&Criterion| {
        let (mut name, mut most) = (criterion.id(), 0);
        let above = |section: &&'static str| section.rsplit_once('.').map(|(above, _)| above);
        for section in successors(Some(criterion.section), above) {
            let within = || CATALOGUE.iter().filter(|one| one.is_of(section));
            let count = within().count();
            if count > most && within().all(is_selected) {
                (name, most) = (section.to_owned(), count);
            }
        }
        name
    };
    let mut names: Vec<String> = criteria.iter().map(name).collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(only: &[&str]) -> Result<Vec<String>, String> {
        let only: Vec<String> = only.iter().map(|name| name.to_string()).collect();
        let found = select(&only).map_err(|error| error.to_string())?;
        Ok(found.iter().map(|criterion| criterion.id()).collect())
    }

    #[test]
    fn a_selection_is_of_sections_or_of_one_criterion() {
        assert_eq!(named(&["5.1.2"]).unwrap(), ["5.1.2/queue"]);
        assert_eq!(named(&["5.1.4/late"]).unwrap(), ["5.1.4/late"]);
        // 7.1 is not 7.10.
        assert_eq!(
            named(&["7.1"]).unwrap(),
            ["7.1/disciplines", "7.1/queue-by-flow", "7.1/marks", "7.1/l4s"]
        );
        assert!(named(&["5.2"]).unwrap().contains(&"5.2.3/short-and-long".into()));
        assert_eq!(named(&[]).unwrap().len(), CATALOGUE.len());
        assert_eq!(named(&["5.1.2", " 7.10 "]), named(&["5.1.2", "7.10"]));
        assert!(named(&[" "]).unwrap_err().contains("no such section"));
        let error = named(&["7.12"]).unwrap_err();
        let sections = "expected 3.1, 3.2, 4, 5.1.1, ";
        assert!(error.starts_with(&format!("7.12: no such section; {sections}")), "{error}");
        let error = named(&["9/x"]).unwrap_err();
        assert!(error.starts_with("9/x: no such criterion; expected 3.1, "), "{error}");
        let error = named(&["5.1.4/lat"]).unwrap_err();
        assert!(error.contains("criterion (did you mean '5.1.4/late'?); expected 3"), "{error}");
        assert!(named(&["5.1.4/earl"]).is_err());
    }

    #[test]
    fn a_selection_has_one_name_however_it_is_typed() {
        let name = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|name| name.to_string()).collect();
            selection(&select(&only).unwrap()).join(" ")
        };
        for typed in
            [&["7.10", "5.1.2"][..], &["5.1.2/queue", " 7.10"], &["5.1.2", "7.10", "5.1.2"]]
        {
            assert_eq!(name(typed), "5.1.2 7.10");
        }
        assert_eq!(name(&["5.1.4/paths", "5.1.4/late"]), "5.1.4/late 5.1.4/paths");
        assert_eq!(name(&["5.1.4/paths", "5.1.4/late", "5.1.4/flows"]), "5.1.4");
        assert_eq!(name(&["5.3.2", "5.3.1"]), "5.3");
        assert_eq!(name(&["5.2", "5.1", "5.3"]), "5");
        // 4 has no other section, and 7.1 is not 7.10.
        assert_eq!(name(&["4"]), "4");
        assert_eq!(name(&["3.2"]), "3.2");
        assert_eq!(name(&["7.1"]), "7.1");
        assert_eq!(name(&[]), "");
        assert_eq!(name(&["8", "7", "6", "5", "4", "3"]), "");
        // By its name it is selected.
        for criterion in CATALOGUE {
            let id = criterion.id();
            let only = selection(&select(std::slice::from_ref(&id)).unwrap());
            let ids: Vec<String> = select(&only).unwrap().iter().map(|one| one.id()).collect();
            assert_eq!(ids, [id]);
        }
    }

    #[test]
    fn criteria_stand_in_the_order_of_the_rfc_each_once() {
        let place = |section: &str| {
            section.split('.').map(|part| part.parse::<u32>().unwrap()).collect::<Vec<_>>()
        };
        assert!(CATALOGUE.windows(2).all(|two| place(two[0].section) <= place(two[1].section)));
        let mut names: Vec<String> = CATALOGUE.iter().map(Criterion::id).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CATALOGUE.len());
        // Each heading is used.
        for (section, _) in HEADINGS {
            assert!(CATALOGUE.iter().any(|criterion| criterion.section == *section), "{section}");
        }
    }

    /// A header answers by sections, so none has two questions.
    #[test]
    fn what_cannot_be_run_is_asked_in_prose() {
        let prose = CATALOGUE.iter().filter(|criterion| matches!(criterion.make, Make::Prose));
        let sections: Vec<&str> = prose.map(|criterion| criterion.section).collect();
        let expected = ["3.1", "3.2", "4", "5.3.1", "5.3.2", "6.2", "7.4", "7.6", "7.11", "8"];
        assert_eq!(sections, expected);
    }

    #[test]
    fn the_page_has_the_catalogue() {
        let page = format!("{}/../../docs/{}", env!("CARGO_MANIFEST_DIR"), crate::PAGE);
        let page = std::fs::read_to_string(page).unwrap();
        let made = narrows_papers::grid::replaced(&page, "criteria", &crate::catalogue(CATALOGUE))
            .expect("its marks");
        assert!(
            made == page,
            "expected in docs/{}:\n{}",
            crate::PAGE,
            crate::catalogue(CATALOGUE).markdown()
        );
    }
}
