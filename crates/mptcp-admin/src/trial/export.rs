//! What a trial counts, in the text format of Prometheus.

use super::report::{Arm, Limits, Report, end_of};
use crate::prometheus::{Samples, gauge, metric};
use narrows_kernel::trial::End;

/// The label `arm`: who keeps the control, and who gets the other one.
const ARMS: [&str; 2] = ["against", "tried"];

impl Report {
    /// In the text format of Prometheus, as [`crate::status::Status::prometheus`]. What a look may miss for a moment,
    /// as a connection closes at it, is a gauge: of a counter that falls Prometheus takes all for new.
    pub fn prometheus(&self) -> String {
        let mut text = String::new();
        metric(
            &mut text,
            "narrows_trial_connections_total",
            "counter",
            "Connections that were drawn, by arm of the trial.",
            self.by_arm(|arm| Some(arm.connections)),
        );
        gauge(
            &mut text,
            "narrows_trial_ended_connections",
            "Of the connections that were drawn those that have ended.",
            self.by_arm(|arm| Some(arm.connections.saturating_sub(arm.open))),
        );
        gauge(
            &mut text,
            "narrows_trial_acked_bytes",
            "Bytes that peers acknowledged on the connections that had something to send.",
            self.by_arm(|arm| Some(arm.bytes)),
        );
        gauge(
            &mut text,
            "narrows_trial_retransmitted_ratio",
            "Share of a connection's segments that were retransmitted, mean over connections.",
            self.by_arm(|arm| arm.retransmitted.value),
        );
        gauge(
            &mut text,
            "narrows_trial_guard_broken",
            "Was the trial ended by this guard?",
            self.broken_guards(),
        );
        text
    }

    /// Of each arm of which it is known.
    fn by_arm<V>(&self, value: impl Fn(&Arm) -> Option<V>) -> Samples<V> {
        let sample = |(name, arm): (&&str, &Arm)| {
            let control = arm.control.raw().to_owned();
            Some((vec![("arm", (*name).to_owned()), ("control", control)], value(arm)?))
        };
        ARMS.iter().zip(&self.arms).filter_map(sample).collect()
    }

    /// Of each guard that there is, by its name in the option.
    fn broken_guards(&self) -> Samples {
        let ended = self.ended.and_then(end_of);
        let Limits { goodput, retransmits, p95_srtt } = self.guards;
        let all = [
            ("goodput", goodput, End::Goodput),
            ("retransmits", retransmits, End::Retransmits),
            ("p95_srtt", p95_srtt, End::Srtt),
        ];
        let set = all.into_iter().filter(|(_, limit, _)| limit.is_some());
        set.map(|(name, _, end)| (vec![("guard", name.to_owned())], u64::from(ended == Some(end))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::{add, trial};
    use super::*;
    use narrows_kernel::trial::{Arm as Counted, Trial};

    /// Forty connections in each arm, of 50 and of 25 kB; those of the second sent a quarter of their segments again.
    fn report(change: impl FnOnce(&mut Trial)) -> Report {
        let mut arms = [Counted::default(), Counted::default()];
        for _ in 0..40 {
            add(&mut arms[0], 50_000.0, 1.0, 0.0, 20.0);
            add(&mut arms[1], 25_000.0, 1.0, 0.25, 20.0);
        }
        let mut trial = trial(arms);
        trial.living = [3, 40];
        change(&mut trial);
        Report::of(&trial)
    }

    #[test]
    fn what_a_trial_counts_is_exported_by_arm_and_guard() {
        let report = report(|trial| {
            // What others chose.
            trial.plan.controls[0] = "ev\"il".into();
            trial.plan.guards.retransmits = Some(1.5);
            trial.ended = Some(End::Retransmits);
        });
        let (kept, tried) =
            ("{arm=\"against\",control=\"ev\\\"il\"}", "{arm=\"tried\",control=\"nr_gcub_xc\"}");
        let expected = format!(
            "# HELP narrows_trial_connections_total Connections that were drawn, by arm of the trial.
# TYPE narrows_trial_connections_total counter
narrows_trial_connections_total{kept} 40
narrows_trial_connections_total{tried} 40
# HELP narrows_trial_ended_connections Of the connections that were drawn those that have ended.
# TYPE narrows_trial_ended_connections gauge
narrows_trial_ended_connections{kept} 37
narrows_trial_ended_connections{tried} 0
# HELP narrows_trial_acked_bytes Bytes that peers acknowledged on the connections that had something to send.
# TYPE narrows_trial_acked_bytes gauge
narrows_trial_acked_bytes{kept} 2000000
narrows_trial_acked_bytes{tried} 1000000
# HELP narrows_trial_retransmitted_ratio Share of a connection's segments that were retransmitted, mean over connections.
# TYPE narrows_trial_retransmitted_ratio gauge
narrows_trial_retransmitted_ratio{kept} 0
narrows_trial_retransmitted_ratio{tried} 0.25
# HELP narrows_trial_guard_broken Was the trial ended by this guard?
# TYPE narrows_trial_guard_broken gauge
narrows_trial_guard_broken{{guard=\"goodput\"}} 0
narrows_trial_guard_broken{{guard=\"retransmits\"}} 1
"
        );
        assert_eq!(report.prometheus(), expected);
    }

    #[test]
    fn what_is_not_known_and_what_is_no_guard_is_left_out() {
        let report = report(|trial| {
            trial.plan.guards.goodput = None;
            *trial.arms = [Counted::default(), Counted::default()];
            trial.ended = Some(End::Time);
        });
        let text = report.prometheus();
        assert!(text.contains("narrows_trial_acked_bytes{arm=\"tried\","), "{text}");
        assert!(!text.contains("_ratio") && !text.contains("_guard"), "{text}");
    }

    #[test]
    fn every_metric_is_in_the_guide() {
        let guide = include_str!("../../../../docs/guide/watch.md");
        let text = report(|_| {}).prometheus();
        for line in text.lines().filter(|line| line.starts_with("# TYPE ")) {
            let metric = line.split(' ').nth(2).unwrap();
            assert!(guide.contains(&format!("`{metric}`")), "docs/guide/watch.md has no {metric}");
        }
    }
}
