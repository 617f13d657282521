//! The table of metrics. An entry here is a key of `summary.json`; with a column it is shown in
//! terminal tables and their legends, and those of the connection under test are in the rows of
//! comparisons too. What an entry is made of stands in `measured.rs`.

use narrows_sim::HeadOfLine;
use serde::{Deserialize, Serialize};

use crate::measured::{OfFlow, OfLink, OfPath, ms};
use crate::passive::{AnswerCount, OfPassive, PassivePhase, over, transition};
use crate::scenario::FlowKind;
use narrows_stats::{mean, round};

/// A metric of `T`: a connection, a path, a link.
#[derive(Debug)]
pub struct Metric<T> {
    /// Key in JSON and column in CSV, with the unit.
    pub name: &'static str,
    /// The unit; 1 of a ratio.
    pub unit: &'static str,
    /// What it is, one line.
    pub about: &'static str,
    /// Where a terminal shows it, if it does.
    pub column: Option<Column>,
    /// Runs may be without it: over seeds it is the mean of those that have it. Of another metric
    /// there is no mean if one has none.
    pub sparse: bool,
    /// Its value in a summary; none where there is nothing to measure.
    pub get: fn(&T) -> Option<f64>,
}

/// A column of a terminal table. Metrics with the same head share one: `12/20`.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its place among the columns.
    pub place: u8,
    /// What stands above it.
    pub head: &'static str,
    /// How a value is written.
    pub form: Form,
}

/// How a value is written, with so many decimals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The value; over seeds their mean.
    Number(usize),
    /// The same in percent.
    Percent(usize),
    /// Over seeds the mean with half its 95 % interval: `0.62 ±0.03`.
    Interval(usize),
}

/// What can be the value of a metric.
trait Value: Copy {
    /// With the precision of result files.
    fn rounded(self) -> Self;
    /// As a number, if there is one.
    fn number(self) -> Option<f64>;
}

impl Value for f64 {
    fn rounded(self) -> f64 {
        round(self)
    }

    fn number(self) -> Option<f64> {
        Some(self)
    }
}

impl Value for u64 {
    fn rounded(self) -> u64 {
        self
    }

    fn number(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Value for bool {
    fn rounded(self) -> bool {
        self
    }

    fn number(self) -> Option<f64> {
        Some(f64::from(u8::from(self)))
    }
}

impl<V: Value> Value for Option<V> {
    fn rounded(self) -> Option<V> {
        self.map(V::rounded)
    }

    fn number(self) -> Option<f64> {
        self.and_then(V::number)
    }
}

impl Value for HeadOfLineSummary {
    fn rounded(self) -> HeadOfLineSummary {
        self
    }

    fn number(self) -> Option<f64> {
        Some(self.mean_ms)
    }
}

const fn column(place: u8, head: &'static str, form: Form) -> Option<Column> {
    Some(Column { place, head, form })
}

/// A part of the summary, how it is read from a run, and its metrics as a table: an entry is name,
/// type, unit, what it is, column, how it is read, and whether it is sparse.
macro_rules! metrics {
    ($(
        $(#[$doc:meta])*
        $part:ident, $table:ident, $run:ty {
            $(labels { $($(#[$label_doc:meta])* $label:ident: $label_type:ty = $label_get:expr;)+ })?
            metrics {
                $($name:ident: $type:ty, $unit:literal, $about:literal, $column:expr, $get:expr
                    $(, $sparse:ident)?;)+
            }
            $(parts { $($(#[$rest_doc:meta])* $rest:ident: $rest_type:ty = $rest_get:expr;)+ })?
        }
    )+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub struct $part {
            $($($(#[$label_doc])* pub $label: $label_type,)+)?
            $(#[doc = $about] pub $name: $type,)+
            $($($(#[$rest_doc])* pub $rest: $rest_type,)+)?
        }

        impl $part {
            pub(crate) fn read(run: &$run) -> $part {
                $($(let get: fn(&$run) -> $label_type = $label_get; let $label = get(run);)+)?
                $(let get: fn(&$run) -> $type = $get; let $name = get(run).rounded();)+
                $($(let get: fn(&$run) -> $rest_type = $rest_get; let $rest = get(run);)+)?
                $part { $($($label,)+)? $($name,)+ $($($rest,)+)? }
            }
        }

        #[doc = concat!("Metrics of [`", stringify!($part), "`].")]
        pub const $table: &[Metric<$part>] = &[$(Metric {
            name: stringify!($name),
            unit: $unit,
            about: $about,
            column: $column,
            sparse: !<[&str]>::is_empty(&[$(stringify!($sparse))?]),
            get: |part| part.$name.number(),
        },)+];
    )+};
}

use Form::{Interval, Number, Percent};

metrics! {
    /// The connection under test, as comparisons show it.
    TestSummary, TEST, OfFlow<'_> {
        metrics {
            goodput_mbps: f64, "Mbit/s", "payload delivered in order to the application",
                column(3, "goodput", Interval(1)), |of| of.run.goodput(of.flow);
            ratio_to_tcp: Option<f64>, "1",
                "goodput over the sum of the rival TCPs' at the bottlenecks it crosses",
                column(0, "ratio", Interval(2)), |of| of.ratio();
            jain: f64, "1",
                "fairness between it and the rival at each bottleneck, without rivals of all listed flows; 1 is equal",
                column(4, "Jain", Number(2)), |of| of.run.jain();
            ratio_to_best: Option<f64>, "1",
                "goodput over the mean of the greedy TCPs' at the bottleneck where that is highest",
                None, |of| of.ratio_to_best();
            jain_mean: Option<f64>, "1",
                "fairness between it and the mean of the greedy TCPs at its bottlenecks, 1 is equal",
                None, |of| of.jain_mean();
            retransmits: u64, "segments", "segments retransmitted",
                column(7, "retx", Number(0)), |of| of.retransmits();
            acknowledged_s: Option<f64>, "s",
                "of a file, from the first SYN until its last byte was acknowledged at the sender",
                column(1, "done", Interval(3)), |of| of.acknowledged_s(), sparse;
            first_loss_s: Option<f64>, "s",
                "of a file, from the first SYN until a segment was first sent again",
                column(8, "loss", Number(3)), |of| of.first_loss_s(), sparse;
            slow_start_retransmits: Option<u64>, "segments",
                "of a file, segments retransmitted until all subflows had left slow start and its recovery",
                column(9, "slow start", Number(0)), |of| of.slow_start_end().map(|end| end.retransmits), sparse;
            slow_start_cwnd_packets: Option<f64>, "packets",
                "sum of the congestion windows then",
                column(9, "slow start", Number(0)), |of| of.slow_start_end().map(|end| f64::from(end.cwnd)), sparse;
            silence_s: Option<f64>, "s",
                "longest time without delivery while it has more to send and a path is there, in steps of 100 ms; of a greedy source or a file",
                None, |of| of.silence_s(), sparse;
            queue_ms: f64, "ms", "queueing delay at the bottlenecks, mean over packets",
                None, |of| of.queue_ms(|delay| delay.mean());
            accuracy: Option<f64>, "1",
                "share of its detector's decisions with the right groups",
                column(2, "accuracy", Interval(2)), |of| of.run.accuracy(), sparse;
            p50_queue_ms: f64, "ms", "queueing delay at the bottlenecks, median over packets",
                column(5, "queue", Number(0)), |of| of.queue_ms(|delay| delay.quantile(0.5));
            p95_queue_ms: f64, "ms", "the same, 95 % quantile",
                column(5, "queue", Number(0)), |of| of.queue_ms(|delay| delay.quantile(0.95));
            p50_rtt_ms: f64, "ms", "smoothed RTT on all paths, median of samples every 100 ms",
                column(6, "RTT", Number(0)), |of| of.srtt_ms(0.5);
            p95_rtt_ms: f64, "ms", "the same, 95 % quantile",
                column(6, "RTT", Number(0)), |of| of.srtt_ms(0.95);
            p50_message_ms: Option<f64>, "ms",
                "of messages, from the write until the receiver had all of it and all before it: median",
                column(10, "message", Number(0)), |of| of.latency_ms(0.5);
            p95_message_ms: Option<f64>, "ms",
                "the same, 95 % quantile; a message that was not delivered counts as later than all",
                column(10, "message", Number(0)), |of| of.latency_ms(0.95);
            p99_message_ms: Option<f64>, "ms", "the same, 99 % quantile",
                column(10, "message", Number(0)), |of| of.latency_ms(0.99);
            messages: Option<u64>, "messages", "messages written",
                None, |of| of.messages();
            undelivered_messages: Option<u64>, "messages",
                "messages given up, as the send buffer was full, or under way at the end",
                column(11, "undelivered", Number(0)), |of| of.undelivered();
        }
    }

    /// One connection or flow.
    ConnectionSummary, CONNECTION, OfFlow<'_> {
        labels {
            /// Name in the scenario.
            name: String = |of| of.flow().name.clone();
            /// What carries it.
            kind: FlowKind = |of| of.flow().kind;
            /// Congestion control; none for UDP.
            cc: Option<String> = |of| of.run.cc(of.flow);
        }
        metrics {
            goodput_mbps: f64, "Mbit/s",
                "payload delivered in order to the application; for UDP what arrived, with headers",
                column(0, "Mbit/s", Number(2)), |of| of.run.goodput(of.flow);
            completion_s: Option<f64>, "s", "from the start of the flow until the file was received",
                None, |of| of.completion_s();
            acknowledged_s: Option<f64>, "s",
                "of a file, from the first SYN until its last byte was acknowledged at the sender",
                None, |of| of.acknowledged_s();
            first_loss_s: Option<f64>, "s",
                "of a file, from the first SYN until a segment was first sent again",
                None, |of| of.first_loss_s();
            slow_start_retransmits: Option<u64>, "segments",
                "of a file, segments retransmitted until all subflows had left slow start and its recovery",
                None, |of| of.slow_start_end().map(|end| end.retransmits);
            slow_start_cwnd_packets: Option<f64>, "packets",
                "sum of the congestion windows then",
                None, |of| of.slow_start_end().map(|end| f64::from(end.cwnd));
            retransmits: u64, "segments", "segments retransmitted",
                column(2, "retx", Number(0)), |of| of.retransmits();
            reinjections: Option<u64>, "segments",
                "segments sent again on another subflow, as the first failed, closed or made no progress",
                None, |of| of.reinjections();
            fallback: bool, "", "whether MPTCP fell back to TCP because the path removes its options",
                None, |of| of.end().fallback;
            head_of_line: Option<HeadOfLineSummary>, "",
                "how long segments wait at the receiver for earlier data on other paths, for MPTCP",
                None, |of| of.waits().as_ref().map(HeadOfLineSummary::read);
            silence_s: Option<f64>, "s",
                "longest time without delivery while it has more to send and a path is there, in steps of 100 ms; of a greedy source or a file",
                None, |of| of.silence_s();
            ratio_to_tcp: Option<f64>, "1",
                "goodput over the sum of the rivals' at the true bottlenecks that it crosses",
                column(1, "ratio", Number(2)), |of| of.ratio();
            p50_message_ms: Option<f64>, "ms",
                "of messages, from the write until the receiver had all of it and all before it: median",
                None, |of| of.latency_ms(0.5);
            p95_message_ms: Option<f64>, "ms",
                "the same, 95 % quantile; a message that was not delivered counts as later than all",
                None, |of| of.latency_ms(0.95);
            p99_message_ms: Option<f64>, "ms", "the same, 99 % quantile",
                None, |of| of.latency_ms(0.99);
            messages: Option<u64>, "messages", "messages written",
                None, |of| of.messages();
            undelivered_messages: Option<u64>, "messages",
                "messages given up, as the send buffer was full, or under way at the end",
                None, |of| of.undelivered();
        }
        parts {
            /// Per path; empty without feedback.
            paths: Vec<PathSummary> = |of| of.paths().iter().map(PathSummary::read).collect();
        }
    }

    /// Waiting for earlier data from the start of the run on, over all segments, those that did not
    /// wait included.
    #[derive(Copy)]
    HeadOfLineSummary, HEAD_OF_LINE, HeadOfLine {
        metrics {
            mean_ms: f64, "ms", "mean", None, |waits| ms(waits.mean);
            p95_ms: f64, "ms", "95 % quantile", None, |waits| ms(waits.p95);
            max_ms: f64, "ms", "the longest", None, |waits| ms(waits.max);
        }
    }

    /// One path of a connection.
    PathSummary, PATH, OfPath<'_> {
        labels {
            /// Name of the route.
            name: String = |of| of.name();
        }
        metrics {
            goodput_mbps: f64, "Mbit/s", "payload acknowledged on this path",
                column(0, "Mbit/s", Number(2)), |of| of.goodput();
            share: Option<f64>, "1", "payload acknowledged on this path over that on all paths",
                None, |of| of.share();
            ratio_to_tcp: Option<f64>, "1", "goodput over that of the rivals on this path",
                column(1, "ratio", Number(2)), |of| of.ratio();
            retransmits: u64, "segments", "segments retransmitted",
                column(2, "retx", Number(0)), |of| of.retransmits();
            mean_cwnd_packets: f64, "packets", "congestion window, mean of samples every 100 ms",
                column(3, "cwnd", Number(1)), |of| mean(&of.samples().cwnd);
            mean_srtt_ms: f64, "ms", "smoothed RTT, mean of samples every 100 ms",
                column(4, "srtt ms", Number(1)), |of| mean(&of.samples().srtt_ms);
            p95_srtt_ms: f64, "ms", "the same, 95 % quantile",
                column(5, "p95 ms", Number(1)), |of| of.srtt_ms(0.95);
        }
    }

    /// A passive detector of the connection under test.
    PassiveSummary, PASSIVE, OfPassive<'_> {
        labels {
            /// The detector.
            detector: String = |of| of.findings.by.detector.name().into();
            /// What it sampled.
            signal: String = |of| of.findings.by.signal.name().into();
        }
        metrics {
            right: Option<f64>, "1",
                "share of time and of pairs of paths with the right answer, from 10 s after a start or switch on",
                column(0, "right", Interval(3)), |of| over(&of.phases, |phase| phase.right), sparse;
            wrong: Option<f64>, "1", "the same with the wrong answer",
                column(1, "wrong", Interval(3)), |of| over(&of.phases, |phase| phase.wrong), sparse;
            unsure: Option<f64>, "1", "the same without a sure answer",
                column(2, "unsure", Interval(3)), |of| over(&of.phases, |phase| phase.unsure), sparse;
            first_right_s: Option<f64>, "s",
                "from the connection's start until all pairs were first answered rightly",
                column(3, "first", Number(1)), |of| of.phases.first()?.first_right_s, sparse;
            transition_s: Option<f64>, "s",
                "from a switch until then, mean; one that was never followed counts with its phase",
                column(4, "switch", Number(1)), |of| transition(&of.phases), sparse;
        }
        parts {
            /// Phase by phase of the scenario.
            phases: Vec<PassivePhase> = |of| of.phases.clone();
            /// How often it was right, by how sure it was; empty unless it compares pairs.
            answers: Vec<AnswerCount> = |of| of.answers();
        }
    }

    /// One link.
    LinkSummary, LINK, OfLink<'_> {
        labels {
            /// Name in the scenario.
            name: String = |of| of.name();
        }
        metrics {
            utilization: f64, "1",
                "bits sent over what the link could send: a trace at its mean rate, nothing while down",
                column(0, "used", Percent(1)), |of| of.utilization();
            drops: u64, "packets", "packets dropped, for any reason",
                column(1, "drops", Number(0)), |of| of.counters().dropped();
            aqm_drops: u64, "packets", "of these, dropped by AQM before the queue was full",
                None, |of| of.counters().dropped_aqm;
            marks: u64, "packets", "packets marked with ECN instead of dropped", None, |of| of.counters().marked;
            mean_queue_ms: f64, "ms", "queueing delay, mean over packets",
                column(2, "queue ms", Number(1)), |of| ms(of.counters().queue_delay.mean());
            p95_queue_ms: f64, "ms", "the same, 95 % quantile",
                column(3, "p95 ms", Number(1)), |of| ms(of.counters().queue_delay.quantile(0.95));
        }
    }
}

/// Name, unit and meaning of each metric, by what it is of.
pub fn listed() -> Vec<(&'static str, Vec<[&'static str; 3]>)> {
    fn each<T>(metrics: &[Metric<T>]) -> Vec<[&'static str; 3]> {
        metrics.iter().map(|metric| [metric.name, metric.unit, metric.about]).collect()
    }
    vec![
        ("test", each(TEST)),
        ("connections", each(CONNECTION)),
        ("connections.head_of_line", each(HEAD_OF_LINE)),
        ("connections.paths", each(PATH)),
        ("links", each(LINK)),
        ("passive", each(PASSIVE)),
    ]
}
