//! Trials of several hosts as one: of a thousand hosts each has too few connections to tell.
//!
//! A connection is drawn for an arm at random, with the same share on every host. So which host it is of does not
//! depend on its arm, and the arms of all hosts together are compared as those of one; that hosts differ widens the
//! intervals. With another share on one host it would: the arm that has more of a fast host's connections would look
//! better without being so (Simpson, *The Interpretation of Interaction in Contingency Tables*, JRSS B 13(2), 1951). So
//! only trials are added up that were begun alike. Where the interval is narrowest is chosen before there are results:
//! at the largest number that a host planned.

use super::minutes::{self, Minute};
use super::report::{BYTES_FROM, FORMAT, Limits, Origin, Report, end_of};
use narrows_foreign::Foreign;
use narrows_kernel::Error;
use narrows_kernel::trial::{Arm, Guards, PORTS_MAX, Plan, SIZES, SRTT_BINS, STRATA, Sums, Trial};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a [`Report`] has as JSON, of one trial or several.
#[derive(Clone, Debug, Deserialize)]
pub struct Part {
    format: u32,
    version: Foreign,
    trials: Vec<Origin>,
    ran_s: f64,
    lasts_s: f64,
    share: f64,
    mptcp_only: bool,
    ports: Vec<u16>,
    guards: Limits,
    arms: [PartOfArm; 2],
    strata: Vec<Kind>,
    planned_connections: u32,
    others: u64,
    full: u64,
    refused: u64,
    given_again: u64,
    put_back: u64,
    longest_look_ms: f64,
    #[serde(default)]
    minutes_sums: Vec<[Minute; 2]>,
}

#[derive(Clone, Debug, Deserialize)]
struct PartOfArm {
    control: Foreign,
    connections: u64,
    open: u64,
    srtt_bins: Vec<(usize, u64)>,
}

#[derive(Clone, Debug, Deserialize)]
struct Kind {
    paths: usize,
    bytes_from: u64,
    sums: [Sums; 2],
}

/// The report of all of them, each with the name of its file.
///
/// # Errors
/// They were not begun alike, one is there twice, or one is none that a report writes.
pub fn merge(parts: &[(Foreign, Part)]) -> Result<Report, Error> {
    let Some((first, like)) = parts.first() else {
        return Err(Error::input("merge", "expected a file"));
    };
    let (mut files, mut origins) = (BTreeMap::new(), Vec::new());
    for (file, part) in parts {
        let wrong = |message: String| Err(Error::input(file.to_string(), message));
        if part.format != FORMAT {
            return wrong(format!("format {}: expected {FORMAT}", part.format));
        }
        if part.ports.len() > PORTS_MAX {
            return wrong(format!("{} ports: expected at most {PORTS_MAX}", part.ports.len()));
        }
        let unlike = part.terms().into_iter().zip(like.terms()).find(|(one, other)| one != other);
        if let Some(((what, here), (_, there))) = unlike {
            return wrong(format!("{what} is {here}, and {there} in {first}: expected the same"));
        }
        for origin in &part.trials {
            if let Some(other) = files.insert(&origin.id, file) {
                return wrong(format!("has the trial of host {} that {other} has", origin.host));
            }
            origins.push(origin.clone());
        }
    }
    let trials = parts.iter().map(|(file, part)| {
        part.trial().map_err(|message| Error::input(file.to_string(), message))
    });
    let all = trials.reduce(|all, other| Ok(joined(all?, &other?))).expect("there is one")?;
    Ok(Report { version: like.version.clone(), ..Report::pooled(&all, origins) })
}

fn joined(mut all: Trial, other: &Trial) -> Trial {
    all.ended = None;
    // One of which they are not known would be missed in each.
    all.minutes = match minutes::are_all_in(&all) && minutes::are_all_in(other) {
        true => minutes::joined(&all.minutes, &other.minutes),
        false => Vec::new(),
    };
    all.plan.lasts = all.plan.lasts.max(other.plan.lasts);
    all.plan.planned = all.plan.planned.max(other.plan.planned);
    all.ran = all.ran.max(other.ran);
    all.longest_look = all.longest_look.max(other.longest_look);
    let counts = [
        (&mut all.others, other.others),
        (&mut all.full, other.full),
        (&mut all.refused, other.refused),
        (&mut all.given, other.given),
        (&mut all.put_back, other.put_back),
    ];
    let by_arm = all.drawn.iter_mut().zip(other.drawn);
    let by_arm = by_arm.chain(all.living.iter_mut().zip(other.living));
    for (all, more) in counts.into_iter().chain(by_arm) {
        *all = all.saturating_add(more);
    }
    all.arms.iter_mut().zip(other.arms.iter()).for_each(|(all, more)| all.join(more));
    all
}

impl Part {
    /// In what trials must be alike, as a message names it.
    fn terms(&self) -> [(&'static str, String); 7] {
        let mut ports = self.ports.clone();
        ports.sort_unstable();
        let Limits { goodput, retransmits, p95_srtt } = self.guards;
        let guards: Vec<String> =
            [("goodput>=", goodput), ("retransmits<=", retransmits), ("p95_srtt<=", p95_srtt)]
                .into_iter()
                .filter_map(|(name, limit)| Some(format!("{name}{}x", limit?)))
                .collect();
        let list = |all: Vec<String>, none: &str| match all.is_empty() {
            true => none.to_owned(),
            false => all.join(","),
        };
        [
            ("version", self.version.to_string()),
            ("the control that is tried", self.arms[1].control.to_string()),
            ("--against", self.arms[0].control.to_string()),
            ("--share", format!("{} %", (self.share * 1e6).round() / 1e4)),
            ("--mptcp-only", self.mptcp_only.to_string()),
            ("--port", list(ports.iter().map(u16::to_string).collect(), "any")),
            ("--guard", list(guards, "none")),
        ]
    }

    /// What the kernel counted, with the minutes if it has all of them.
    fn trial(&self) -> Result<Trial, String> {
        if self.trials.is_empty() {
            return Err("trials: expected at least one".into());
        }
        if !(self.share > 0.0 && self.share < 1.0) {
            return Err(format!("share {}: expected one between 0 and 1", self.share));
        }
        // Of several no single one has ended.
        let ended = match &self.trials[..] {
            [Origin { ended: Some(why), .. }] => {
                let end = end_of(why.raw());
                Some(end.ok_or_else(|| format!("ended: '{why}' is none that a trial has"))?)
            }
            _ => None,
        };
        let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let mut arms = Box::new([Arm::default(), Arm::default()]);
        for kind in &self.strata {
            let size = BYTES_FROM.iter().position(|from| *from == kind.bytes_from);
            let size = size.filter(|_| (1..=STRATA / SIZES).contains(&kind.paths));
            let Some(size) = size else {
                let Kind { paths, bytes_from, .. } = kind;
                return Err(format!("strata: {paths} paths and {bytes_from} bytes are no stratum"));
            };
            let stratum = (kind.paths - 1) * SIZES + size;
            arms.iter_mut().zip(&kind.sums).for_each(|(arm, sums)| arm.strata[stratum].join(sums));
        }
        for (arm, part) in arms.iter_mut().zip(&self.arms) {
            for &(bin, n) in &part.srtt_bins {
                let found = arm.srtt.get_mut(bin);
                let all =
                    found.ok_or_else(|| format!("srtt_bins: {bin} is not below {SRTT_BINS}"))?;
                *all = all.saturating_add(n);
            }
        }
        let Limits { goodput, retransmits, p95_srtt } = self.guards;
        let mut trial = Trial {
            plan: Plan {
                controls: self.arms.each_ref().map(|arm| arm.control.raw().to_owned()),
                share: self.share,
                netns: None,
                ports: self.ports.clone(),
                mptcp_only: self.mptcp_only,
                lasts: time(self.lasts_s),
                guards: Guards { goodput, retransmits, p95_srtt },
                planned: self.planned_connections,
            },
            began: Duration::ZERO,
            ran: time(self.ran_s),
            ended,
            drawn: self.arms.each_ref().map(|arm| arm.connections),
            living: self.arms.each_ref().map(|arm| arm.open),
            others: self.others,
            full: self.full,
            refused: self.refused,
            given: self.given_again,
            put_back: self.put_back,
            longest_look: time(self.longest_look_ms / 1e3),
            arms,
            minutes: minutes::ends(&self.minutes_sums),
        };
        if !minutes::are_all_in(&trial) {
            trial.minutes.clear();
        }
        Ok(trial)
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{add, end, normal, trial};
    use super::*;
    use narrows_kernel::trial::End;
    use narrows_testkit::Random;

    /// As a file of a host has it, whose trial began then.
    fn part(mut trial: Trial, began: u64, change: impl FnOnce(&mut Trial)) -> Part {
        trial.began = Duration::from_secs(began);
        change(&mut trial);
        read(&Report::of(&trial))
    }

    fn read(report: &Report) -> Part {
        serde_json::from_str(&serde_json::to_string(report).unwrap()).unwrap()
    }

    fn named(parts: Vec<Part>) -> Vec<(Foreign, Part)> {
        let name = |(n, part)| (Foreign::from(format!("{n}.json")), part);
        (1..).zip(parts).map(name).collect()
    }

    /// Connections of `hosts`, by turns and half of them in each arm; what those of the second have of the goodput.
    fn trials(hosts: usize, connections: usize, of_second: f64) -> (Vec<[Arm; 2]>, [Arm; 2]) {
        let mut random = Random(7);
        let mut each = vec![[Arm::default(), Arm::default()]; hosts];
        let mut all = [Arm::default(), Arm::default()];
        for n in 0..connections {
            let (host, arm) = (n % hosts, usize::from(random.unit() < 0.5));
            // Hosts differ by more than the arms do.
            let rate = 1e6 * (normal(&mut random) + (host % 8) as f64 / 4.0).exp2();
            let rate = if arm == 1 { of_second * rate } else { rate };
            let bytes = 2e4 * (3.0 * normal(&mut random).abs()).exp2();
            let lost = if random.unit() < 0.1 { 0.02 } else { 0.0 };
            let srtt_ms = 40.0 * normal(&mut random).exp2();
            add(&mut each[host][arm], bytes, bytes / rate, lost, srtt_ms);
            add(&mut all[arm], bytes, bytes / rate, lost, srtt_ms);
        }
        (each, all)
    }

    #[test]
    fn pooled_hosts_have_the_report_of_one_host_with_all_their_connections() {
        let (each, all) = trials(3, 3000, 0.8);
        let half = |trial: &mut Trial| trial.plan.share = 0.5;
        let parts = (0..).zip(each).map(|(n, arms)| part(trial(arms), n, half)).collect();
        let mut pooled = named(parts);
        let merged = merge(&pooled).unwrap();
        let mut whole = trial(all);
        half(&mut whole);
        let [mut found, mut expected] = [&merged, &Report::of(&whole)].map(|report| {
            let json = serde_json::to_value(report).unwrap();
            json.as_object().unwrap().clone()
        });
        assert_eq!((&found["others"], found["trials"].as_array().unwrap().len()), (&9.into(), 3));
        for differs in ["others", "trials"] {
            found.remove(differs);
            expected.remove(differs);
        }
        assert_eq!(found, expected);
        let head = "nr_gcub_xc against cubic, 50 % of new connections: 3 trials, 0 of them ended\n";
        assert!(merged.text().starts_with(head), "{}", merged.text());
        // What was pooled is pooled again, in any order.
        let last = pooled.pop().unwrap();
        let again = [last, ("two.json".into(), read(&merge(&pooled).unwrap()))];
        let again = serde_json::to_value(merge(&again).unwrap()).unwrap();
        assert_eq!(again["goodput"], found["goodput"]);
        assert_eq!(again["strata"], found["strata"]);
    }

    #[test]
    fn minutes_are_added_up_where_all_trials_have_all_of_theirs() {
        let (each, _) = trials(1, 100, 1.0);
        let of = |began: u64, ends: &[u64], ran: u64| {
            part(trial(each[0]), began, |trial| {
                trial.ran = Duration::from_secs(ran);
                trial.minutes = ends.iter().map(|bytes| end(*bytes)).collect();
            })
        };
        let bytes = |report: &Report| -> Vec<u64> {
            report.minutes_sums.iter().map(|arms| arms[1].bytes).collect()
        };
        // One ended after its first minute.
        let (long, short) = (of(1, &[1_000_000, 3_000_000], 150), of(2, &[500_000], 60));
        let merged = merge(&named(vec![long.clone(), short.clone()])).unwrap();
        assert_eq!(bytes(&merged), [1_500_000, 2_000_000]);
        assert_eq!(merged.minutes, [[Some(1.0); 2]; 2]);
        assert_eq!(merged.minutes_silent_s, [[Some(6.0); 2]; 2]);
        let again = merge(&named(vec![of(3, &[500_000], 60), read(&merged)])).unwrap();
        assert_eq!(bytes(&again), [2_000_000, 2_000_000]);
        // What a timer keeps has the last one alone.
        let line = Part { minutes_sums: long.minutes_sums[1..].to_vec(), ..long };
        for parts in [vec![line.clone()], vec![short, line]] {
            let merged = merge(&named(parts)).unwrap();
            assert!(merged.minutes.is_empty() && merged.minutes_sums.is_empty(), "{merged:?}");
        }
    }

    #[test]
    fn many_hosts_find_what_none_of_them_can_tell() {
        let (each, _) = trials(100, 4000, 0.7);
        let half = |trial: &mut Trial| trial.plan.share = 0.5;
        for arms in &each {
            let few = Report::of(&trial(*arms)).goodput;
            assert!(few.ratio.is_none(), "{few:?}");
        }
        let parts = (0..).zip(each).map(|(n, arms)| part(trial(arms), n, half)).collect();
        let merged = merge(&named(parts)).unwrap();
        assert!(merged.goodput.differs && merged.goodput.high.unwrap() < 1.0, "{merged:?}");
        assert!((merged.goodput.ratio.unwrap() - 0.7).abs() < 0.1, "{:?}", merged.goodput);
        assert!(merged.sentence.contains(" % less goodput than cubic"), "{}", merged.sentence);
    }

    #[test]
    fn what_was_not_begun_alike_is_not_added_up() {
        let (each, _) = trials(1, 100, 1.0);
        let of = |began, change: fn(&mut Trial)| part(trial(each[0]), began, change);
        let refused = |parts| merge(&named(parts)).unwrap_err().to_string();
        let first = of(1, |_| {});
        type Case = (fn(&mut Trial), &'static str);
        let cases: [Case; 6] = [
            (
                |trial| trial.plan.controls[1] = "nr_greno".into(),
                "the control that is tried is nr_greno, and nr_gcub_xc in",
            ),
            (|trial| trial.plan.controls[0] = "bbr\n".into(), r"--against is bbr\n, and cubic in"),
            (|trial| trial.plan.share = 0.5, "--share is 50 %, and 5 % in"),
            (|trial| trial.plan.mptcp_only = true, "--mptcp-only is true, and false in"),
            (|trial| trial.plan.ports = vec![443, 80], "--port is 80,443, and any in"),
            (
                |trial| trial.plan.guards = Guards::default(),
                "--guard is none, and goodput>=0.9x in",
            ),
        ];
        for (change, message) in cases {
            let expected = format!("2.json: {message} 1.json: expected the same");
            assert_eq!(refused(vec![first.clone(), of(2, change)]), expected);
        }
        let older = Part { version: "0.0.9".into(), ..of(2, |_| {}) };
        let message = refused(vec![first.clone(), older]);
        assert!(message.starts_with("2.json: version is 0.0.9, and "), "{message}");
        let newer = Part { format: 2, ..of(2, |_| {}) };
        assert_eq!(refused(vec![newer]), "1.json: format 2: expected 1");
        let message = refused(vec![first.clone(), of(2, |_| {}), first.clone()]);
        assert!(message.starts_with("3.json: has the trial of host "), "{message}");
        assert!(message.ends_with(" that 1.json has"), "{message}");
        // The order of ports is none.
        let ports: [fn(&mut Trial); 2] =
            [|trial| trial.plan.ports = vec![80, 443], |trial| trial.plan.ports = vec![443, 80]];
        assert!(merge(&named(vec![of(1, ports[0]), of(2, ports[1])])).is_ok());
    }

    #[test]
    fn which_trials_have_ended_is_said_and_those_that_a_guard_ended() {
        let (each, _) = trials(1, 1000, 1.0);
        let ended = |began: u64, end: Option<End>| {
            part(trial(each[0]), began, |trial| {
                (trial.ended, trial.plan.planned) = (end, 8000 * began as u32);
            })
        };
        let runs = merge(&named(vec![ended(1, Some(End::Goodput)), ended(2, None)])).unwrap();
        assert_eq!((runs.ended, runs.planned_connections), (None, 16_000));
        let text = runs.text();
        assert!(text.contains(": 2 trials, 1 of them ended\n"), "{text}");
        assert!(text.contains("\nended on "), "{text}");
        assert!(text.contains(": guard, goodput fell\n"), "{text}");
        let over = vec![ended(1, Some(End::Time)), ended(2, Some(End::Stopped))];
        let over = merge(&named(over)).unwrap();
        assert_eq!(over.ended, Some("all trials have ended"));
        // One alone is what it was.
        let alone = merge(&named(vec![ended(1, Some(End::Goodput))])).unwrap();
        let expected = "nr_gcub_xc broke a guard, goodput fell: its connections get cubic back.";
        assert_eq!((alone.ended, &*alone.sentence), (Some("guard, goodput fell"), expected));
    }

    #[test]
    fn what_no_report_writes_is_refused() {
        let (each, _) = trials(1, 100, 1.0);
        let good = part(trial(each[0]), 1, |_| {});
        let refused = |change: fn(&mut Part)| {
            let mut part = good.clone();
            change(&mut part);
            merge(&named(vec![part])).unwrap_err().to_string()
        };
        for (message, expected) in [
            (refused(|part| part.trials.clear()), "trials: expected at least one"),
            (refused(|part| part.share = 1.0), "share 1: expected one between 0 and 1"),
            (
                refused(|part| part.strata[0].paths = 4),
                "strata: 4 paths and 0 bytes are no stratum",
            ),
            (
                refused(|part| part.arms[0].srtt_bins.push((256, 1))),
                "srtt_bins: 256 is not below 256",
            ),
            (refused(|part| part.ports = vec![80; 9]), "9 ports: expected at most 8"),
            (
                refused(|part| part.trials[0].ended = Some("a\nb".into())),
                r"ended: 'a\nb' is none that a trial has",
            ),
        ] {
            assert_eq!(message, format!("1.json: {expected}"));
        }
        // Times that no clock shows, and sums that no host has, are added up without a word.
        let mut huge = Part { ran_s: 1e300, others: u64::MAX, ..good.clone() };
        let most = Sums { n: u64::MAX, bytes: u64::MAX, paths: u64::MAX, ..Sums::default() };
        for one in &mut huge.strata {
            one.sums = [most; 2];
        }
        let again = Kind { paths: 2, ..huge.strata[0].clone() };
        huge.strata.push(again);
        for arm in &mut huge.arms {
            arm.srtt_bins = vec![(80, u64::MAX), (120, u64::MAX)];
        }
        let other = part(trial(each[0]), 2, |_| {});
        let merged = merge(&named(vec![huge, other])).unwrap();
        assert_eq!((merged.others, merged.arms[0].counted), (u64::MAX, u64::MAX));
        assert_eq!(merged.arms[1].bytes, u64::MAX);
        assert!(merged.text().contains(": 2 trials, "));
    }

    #[test]
    fn a_bin_that_is_there_twice_counts_twice() {
        let (each, _) = trials(1, 100, 1.0);
        let mut twice = part(trial(each[0]), 1, |_| {});
        twice.arms[0].srtt_bins = vec![(80, 2), (120, 1), (80, 3)];
        let merged = merge(&named(vec![twice])).unwrap();
        assert_eq!(merged.arms[0].srtt_bins, [(80, 5), (120, 1)]);
    }
}
