//! What was seen, for people and for programs.

use super::compared::{self, Compared};
use super::groups::{Groups, numbered};
use narrows_detect::{Evidence, Verdict, Why, because};
use narrows_foreign::Foreign;
use narrows_laws::Detector;
use narrows_laws::catalogue::control_of_kernel_name;
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::net::SocketAddr;

/// Version of the schema.
pub const FORMAT: u32 = 1;

/// What held for a larger share of the time is said of the whole.
const MOST: f64 = 0.5;

/// All that is watched.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// `FORMAT`.
    pub format: u32,
    /// Seconds since the watch began.
    pub t_s: f64,
    /// The MPTCP connections, or one object for all TCP flows.
    pub connections: Vec<Connection>,
    /// Connections, or TCP flows, that sent and that there was no room for.
    pub left_out: usize,
    /// Samples that were lost, as they were not read in time.
    pub missed_samples: u64,
}

/// Paths that are compared with each other.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Connection {
    /// MPTCP token on this side; null: TCP flows.
    pub token: Option<u32>,
    /// Has it a path that is open?
    pub open: bool,
    /// Its subflows, or TCP flows, also those that have ended.
    pub paths: Vec<Path>,
    /// The groups now: numbers of paths that meet in one bottleneck, or of one that meets no other. Open
    /// paths in none are undecided.
    pub groups: Vec<Vec<usize>>,
    /// On each two paths.
    pub verdicts: Vec<Pair>,
    /// The groups there were since the first answer, those of most of the time first.
    pub spent: Vec<Spent>,
    /// What was found in a sentence, and what coupling would change.
    pub sentence: String,
}

/// A subflow, or a TCP flow.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Path {
    /// From 1 on.
    pub number: usize,
    /// Is it watched still?
    pub open: bool,
    /// Network namespace.
    pub netns: Foreign,
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// The interface its packets leave by; null: there is no route.
    pub interface: Option<Foreign>,
    /// Congestion control, by its name in the kernel.
    pub control: String,
    /// Payload that the peer acknowledged in the last second, Mbit/s.
    pub mbit_per_s: f64,
    /// Likewise since it is watched.
    pub mean_mbit_per_s: f64,
    /// Smallest round-trip time of late, µs.
    pub min_rtt_us: u32,
    /// Packets lost since it is watched.
    pub lost_packets: u64,
}

/// Two paths.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Pair {
    /// Their numbers.
    pub paths: [usize; 2],
    /// shared, separate, cannot tell.
    pub verdict: &'static str,
    /// Why it cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<&'static str>,
    /// How likely the answer is right, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How alike their delays were when the answer was given last, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concordance: Option<f64>,
    /// From how many independent observations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observations: Option<u32>,
}

/// Groups, and how long they were in force.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Spent {
    /// As [`Connection::groups`].
    pub groups: Vec<Vec<usize>>,
    /// Seconds.
    pub seconds: f64,
    /// Share of the time since the first answer.
    pub share: f64,
}

impl Connection {
    pub(super) fn of(compared: &Compared) -> Connection {
        let Compared { token, paths, groups, spent, .. } = compared;
        let verdicts = compared.verdicts();
        let of = |groups: &Groups| -> Groups {
            groups.iter().map(|group| group.iter().map(|slot| slot + 1).collect()).collect()
        };
        let all_us = spent.values().sum::<u64>().max(1) as f64;
        let mut spent: Vec<Spent> = spent
            .iter()
            .map(|(groups, &us)| Spent {
                groups: of(groups),
                seconds: us as f64 / 1e6,
                share: us as f64 / all_us,
            })
            .collect();
        spent.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        let verdicts: Vec<&Verdict> =
            verdicts.iter().filter(|verdict| verdict.flows.1 < paths.len()).collect();
        let mut connection = Connection {
            token: *token,
            open: paths.iter().any(|path| path.open),
            paths: (1..).zip(paths).map(|(number, path)| Path::new(number, path)).collect(),
            groups: of(groups),
            verdicts: verdicts.iter().map(|verdict| Pair::new(verdict)).collect(),
            spent,
            sentence: String::new(),
        };
        connection.sentence = connection.sentence(&verdicts);
        connection
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        writeln!(text, "{}: {}\n", Compared::name(self.token), self.sentence)?;
        writeln!(text, "         Mbit/s  min RTT ms    lost  control          path")?;
        for path in &self.paths {
            let Path { number, mean_mbit_per_s, lost_packets, control, netns, .. } = path;
            let interface = path.interface.as_ref().map_or("-".into(), Foreign::to_string);
            writeln!(
                text,
                "  {:>3}  {mean_mbit_per_s:8.2}  {:10.1}  {lost_packets:6}  {control:15}  {netns} \
                 {interface} {} > {}{}",
                format!("#{number}"),
                f64::from(path.min_rtt_us) / 1e3,
                path.local,
                path.remote,
                if path.open || !self.open { "" } else { ", ended" },
            )?;
        }
        if !self.verdicts.is_empty() {
            writeln!(text, "\n     paths  bottleneck   how sure")?;
        }
        for pair in &self.verdicts {
            let [a, b] = pair.paths.map(|path| format!("#{path}"));
            writeln!(text, "  {a:>3}  {b:>3}  {:11}  {}", pair.verdict, pair.how_sure())?;
        }
        let open: Vec<usize> = (0..self.paths.len()).collect();
        for (row, spent) in self.spent.iter().enumerate() {
            let title = if row == 0 { "\n   time  who meets in one bottleneck\n" } else { "" };
            let groups = lowered(&spent.groups);
            writeln!(text, "{title}  {:3.0} %  {}", 100.0 * spent.share, numbered(&groups, &open))?;
        }
        Ok(())
    }

    /// What was found, and what coupling would change: by what held for most of the time.
    fn sentence(&self, verdicts: &[&Verdict]) -> String {
        let paths = self.paths.len();
        let kind = if self.token.is_some() { "path" } else { "flow" };
        let unknown = |why: &str| match paths {
            1 => format!("there is one {kind}, and nothing to compare it with."),
            _ => format!(
                "cannot tell whether the {} {kind}s meet in one bottleneck, because {why}.",
                word(paths),
            ),
        };
        let Some(most) = self.spent.iter().find(|one| !one.groups.is_empty()) else {
            return unknown(mostly(verdicts));
        };
        let met = self.together_for_most_of_the_time();
        let met: Vec<String> =
            met.into_iter().map(|(group, share)| self.meet(group, share, kind)).collect();
        if !met.is_empty() {
            return format!("{}.", met.join("; "));
        }
        if most.share <= MOST {
            return unknown("no answer held for most of the time");
        }
        match most.groups.len() == paths {
            true => format!(
                "the {} {kind}s have separate bottlenecks {}; {}.",
                word(paths),
                percent(most.share),
                match self.token {
                    Some(_) => "a control with a detector would couple none of them",
                    None => "none takes from another",
                }
            ),
            false => format!(
                "no two of the {} {kind}s are known to meet in one bottleneck.",
                word(paths)
            ),
        }
    }

    /// The largest groups whose paths were in one for most of the time since the first answer, and for
    /// which share of it.
    pub(crate) fn together_for_most_of_the_time(&self) -> Vec<(&[usize], f64)> {
        let within = |group: &[usize], of: &[usize]| group.iter().all(|path| of.contains(path));
        let share = |group: &[usize]| -> f64 {
            let inside = |one: &&Spent| one.groups.iter().any(|of| within(group, of));
            self.spent.iter().filter(inside).map(|one| one.share).sum()
        };
        let all = self.spent.iter().flat_map(|one| &one.groups);
        let all: BTreeSet<&[usize]> =
            all.map(Vec::as_slice).filter(|group| group.len() > 1).collect();
        let held = all.into_iter().map(|group| (group, share(group)));
        let held: Vec<_> = held.filter(|(_, share)| *share > MOST).collect();
        let mut largest = held.clone();
        largest.retain(|(group, _)| {
            !held.iter().any(|(other, _)| group.len() < other.len() && within(group, other))
        });
        largest
    }

    /// Of the paths of a group, which were in one for this share of the time.
    fn meet(&self, group: &[usize], share: f64, kind: &str) -> String {
        let (some, all) = (group.len(), self.paths.len());
        let who = match (some, all) {
            (2, 2) => format!("both {kind}s"),
            _ if some == all => format!("all {} {kind}s", word(all)),
            _ => {
                let numbers: Vec<String> = group.iter().map(|path| format!("#{path}")).collect();
                format!("{} of the {} {kind}s ({})", word(some), word(all), numbers.join(", "))
            }
        };
        let controls: BTreeSet<&str> =
            group.iter().map(|path| self.paths[path - 1].control.as_str()).collect();
        let change = match self.token {
            Some(_) if controls.iter().all(|control| couples(control)) => {
                let controls: Vec<&str> = controls.into_iter().collect();
                format!("{} couples them, so that they take one share there", controls.join(", "))
            }
            Some(_) => format!("coupled they would take one share there, not {}", word(some)),
            None => format!(
                "as subflows of one connection they would, coupled, take one share there, not {}",
                word(some)
            ),
        };
        format!("{who} meet in one bottleneck {}; {change}", percent(share))
    }
}

impl Path {
    fn new(number: usize, path: &compared::Path) -> Path {
        let [first, before, last] = path.acked;
        let mbit_per_s = |(bytes, at_us): (u64, u64)| match last.1.saturating_sub(at_us) {
            0 => 0.0,
            us => last.0.saturating_sub(bytes) as f64 * 8.0 / us as f64,
        };
        Path {
            number,
            open: path.open,
            netns: path.netns.clone(),
            local: path.local,
            remote: path.remote,
            interface: path.interface.clone(),
            control: path.control.clone(),
            mbit_per_s: mbit_per_s(before),
            mean_mbit_per_s: mbit_per_s(first),
            min_rtt_us: path.min_rtt_us,
            lost_packets: path.lost,
        }
    }
}

impl Pair {
    fn new(verdict: &Verdict) -> Pair {
        let mut pair = Pair {
            paths: [verdict.flows.0 + 1, verdict.flows.1 + 1],
            verdict: verdict.answer.name(),
            why: verdict.why.map(Why::name),
            confidence: None,
            concordance: None,
            observations: None,
        };
        if let Some(Evidence::Delays { confidence, concordance, observations }) = verdict.evidence {
            pair.confidence = Some(confidence);
            pair.concordance = Some(concordance);
            pair.observations = Some(observations);
        }
        pair
    }

    fn how_sure(&self) -> String {
        match (self.why, self.confidence, self.concordance, self.observations) {
            (_, Some(confidence), Some(concordance), Some(observations)) => {
                Evidence::Delays { confidence, concordance, observations }.to_string()
            }
            (why, ..) => why.unwrap_or("by the answers on others").into(),
        }
    }
}

fn lowered(groups: &[Vec<usize>]) -> Groups {
    groups.iter().map(|group| group.iter().map(|path| path - 1).collect()).collect()
}

/// Does a control couple subflows that meet in one bottleneck?
pub(crate) fn couples(control: &str) -> bool {
    control_of_kernel_name(control)
        .is_some_and(|control| control.law.couples() && control.detector != Detector::DISJOINT)
}

/// Why it mostly cannot be told.
fn mostly(verdicts: &[&Verdict]) -> &'static str {
    let all: Vec<Why> = verdicts.iter().filter_map(|verdict| verdict.why).collect();
    let most = |why: &&Why| all.iter().filter(|other| other == why).count();
    all.iter().max_by_key(most).map_or("nothing was sent", |why| because(*why))
}

fn percent(share: f64) -> String {
    format!("{:.0} % of the time", 100.0 * share)
}

/// A number, up to nine as a word.
fn word(number: usize) -> String {
    const WORDS: [&str; 10] =
        ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    WORDS.get(number).map_or_else(|| number.to_string(), |word| (*word).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(number: usize, control: &str) -> Path {
        let address = "10.77.1.1:5000".parse().unwrap();
        Path {
            number,
            open: true,
            netns: "blue".into(),
            local: address,
            remote: address,
            interface: None,
            control: control.into(),
            mbit_per_s: 0.0,
            mean_mbit_per_s: 0.0,
            min_rtt_us: 0,
            lost_packets: 0,
        }
    }

    /// The sentence on paths that run `control`, and the time that was spent in groups.
    fn said(
        token: Option<u32>,
        control: &str,
        paths: usize,
        spent: &[(&[&[usize]], f64)],
    ) -> String {
        let spent = spent.iter().map(|(groups, share)| Spent {
            groups: groups.iter().map(|group| group.to_vec()).collect(),
            seconds: 10.0 * share,
            share: *share,
        });
        let connection = Connection {
            token,
            open: true,
            paths: (1..=paths).map(|number| path(number, control)).collect(),
            groups: Vec::new(),
            verdicts: Vec::new(),
            spent: spent.collect(),
            sentence: String::new(),
        };
        connection.sentence(&[])
    }

    #[test]
    fn a_sentence_says_who_meets_how_long_and_what_coupling_would_change() {
        let some = Some(1);
        let two_of_three =
            [(&[&[1, 2][..], &[3]][..], 0.9), (&[&[1, 2, 3][..]], 0.02), (&[], 0.08)];
        assert_eq!(
            said(some, "cubic", 3, &two_of_three),
            "two of the three paths (#1, #2) meet in one bottleneck 92 % of the time; \
             coupled they would take one share there, not two."
        );
        let all = [(&[&[1, 2][..]][..], 1.0)];
        assert_eq!(
            said(some, "reno", 2, &all),
            "both paths meet in one bottleneck 100 % of the time; \
             coupled they would take one share there, not two."
        );
        assert_eq!(
            said(some, "nr_lia", 2, &all),
            "both paths meet in one bottleneck 100 % of the time; \
             nr_lia couples them, so that they take one share there."
        );
        assert!(
            said(some, "nr_lia_dj", 2, &all).contains("not two"),
            "lia+disjoint couples nobody"
        );
        assert_eq!(
            said(None, "cubic", 2, &all),
            "both flows meet in one bottleneck 100 % of the time; as subflows of one connection they \
             would, coupled, take one share there, not two."
        );
        assert_eq!(
            said(some, "cubic", 2, &[(&[&[1][..], &[2]], 1.0)]),
            "the two paths have separate bottlenecks 100 % of the time; \
             a control with a detector would couple none of them."
        );
        assert_eq!(
            said(some, "cubic", 3, &[(&[&[1][..]], 1.0)]),
            "no two of the three paths are known to meet in one bottleneck."
        );
        assert!(said(some, "cubic", 2, &[]).starts_with("cannot tell"));
    }

    #[test]
    fn what_held_for_less_than_most_of_the_time_is_not_said_of_the_whole() {
        let unknown = "cannot tell whether the two paths meet in one bottleneck, because no answer \
                       held for most of the time.";
        let (apart, one): (&[&[usize]], &[&[usize]]) = (&[&[1], &[2]], &[&[1, 2]]);
        for spent in [
            [(&[][..], 0.67), (apart, 0.31), (one, 0.02)],
            [(one, 0.46), (apart, 0.34), (&[], 0.2)],
            [(apart, 0.5), (one, 0.3), (&[], 0.2)],
        ] {
            assert_eq!(said(Some(1), "bbr", 2, &spent), unknown);
        }
        // In groups of several sizes for most of the time.
        let three: [(&[&[usize]], f64); 3] =
            [(&[&[1, 2], &[3]], 0.4), (&[&[1, 2, 3]], 0.35), (&[], 0.25)];
        assert!(
            said(Some(1), "bbr", 3, &three).starts_with("two of the three paths (#1, #2) meet")
        );
        let three: [(&[&[usize]], f64); 3] =
            [(&[&[1, 2, 3]], 0.4), (&[&[1, 2], &[3]], 0.35), (&[], 0.25)];
        assert!(said(Some(1), "bbr", 3, &three).contains("(#1, #2) meet in one bottleneck 75 %"));
        let three: [(&[&[usize]], f64); 3] =
            [(&[&[1], &[2], &[3]], 0.3), (&[&[1, 2], &[3]], 0.28), (&[&[1, 2, 3]], 0.42)];
        assert!(said(Some(1), "bbr", 3, &three).contains("(#1, #2) meet in one bottleneck 70 %"));
    }
}
