//! What a host counts of a running scenario, from which all metrics are made.

use narrows_net::{Counters, Histogram, Nanos, SECOND};
use narrows_sim::{HeadOfLine, SlowStartEnd};

use crate::detection::{PhaseDetection, accuracy};
use crate::scenario::{Flow, FlowKind, Scenario};
use narrows_stats::{jain, mean, quantile};
use narrows_traffic::{Message, Source};

/// What can be seen of a running scenario. Flows, their paths and links are named by their indices
/// in the scenario.
pub trait Observed {
    /// State and counters of a flow.
    fn flow(&self, flow: usize) -> FlowState;
    /// How long a packet that came now would wait in a link's queue.
    fn queue_delay(&self, link: usize) -> Nanos;
    /// What a link did since the end of the warm-up.
    fn link(&self, link: usize) -> &Counters;
    /// The messages that a flow has written; none without [`Source::Messages`].
    fn messages(&self, flow: usize) -> Vec<Message>;
}

impl<T: Observed> Observed for &T {
    fn flow(&self, flow: usize) -> FlowState {
        T::flow(self, flow)
    }

    fn queue_delay(&self, link: usize) -> Nanos {
        T::queue_delay(self, link)
    }

    fn link(&self, link: usize) -> &Counters {
        T::link(self, link)
    }

    fn messages(&self, flow: usize) -> Vec<Message> {
        T::messages(self, flow)
    }
}

/// State of a flow, and what it counted since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct FlowState {
    /// Bytes handed in order to the receiving application; UDP: that arrived, with headers.
    pub delivered: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Segments given to a second subflow, where the host sees it.
    pub reinjections: Option<u64>,
    /// When the whole file was there.
    pub completed: Option<Nanos>,
    /// When the sender had the acknowledgement of the whole file, where the host sees it.
    pub acknowledged: Option<Nanos>,
    /// When a segment was first sent again as lost, likewise.
    pub first_loss: Option<Nanos>,
    /// How it stood when the last subflow had left its first slow start, likewise.
    pub slow_start_end: Option<SlowStartEnd>,
    /// MPTCP goes on as plain TCP.
    pub fallback: bool,
    /// What order costs at the receiver, where the host measures it.
    pub head_of_line: Option<HeadOfLine>,
    /// By path; none without feedback.
    pub paths: Vec<PathState>,
}

/// State of a path, and what it counted since the start of the run.
#[derive(Clone, Debug, Default)]
pub struct PathState {
    /// Payload bytes acknowledged.
    pub delivered: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow start threshold, packets; none before the first loss.
    pub ssthresh: Option<u32>,
    /// Smoothed RTT, of media the newest; 0 before it was measured.
    pub srtt: Nanos,
    /// Packets in flight.
    pub inflight: u32,
    /// A model law's estimate of the bandwidth, payload bytes/s; 0 of other laws and of hosts that do not tell it.
    pub bandwidth: u64,
}

/// The samples of a path in the analysed time.
#[derive(Clone, Debug, Default)]
pub struct PathSamples {
    /// Congestion window, packets.
    pub cwnd: Vec<f64>,
    /// Smoothed RTT, ms.
    pub srtt_ms: Vec<f64>,
}

/// A run at its end.
pub struct Measured<'a> {
    /// What ran.
    pub scenario: &'a Scenario,
    /// Who ran it, which knows what the links counted.
    pub host: &'a dyn Observed,
    /// Congestion control of a flow.
    pub cc: &'a dyn Fn(usize) -> Option<String>,
    /// The flows at the end of the warm-up.
    pub begin: Vec<FlowState>,
    /// The flows at the end.
    pub end: Vec<FlowState>,
    /// By flow and path.
    pub samples: Vec<Vec<PathSamples>>,
    /// The longest silence of each flow in the analysed time, where it always has more to send.
    pub silences: Vec<Option<Nanos>>,
    /// From the end of the warm-up to the end.
    pub duration: Nanos,
    /// How right the detector of the connection under test was.
    pub detection: &'a [PhaseDetection],
}

impl Measured<'_> {
    /// Congestion control of a flow.
    pub fn cc(&self, flow: usize) -> Option<String> {
        (self.cc)(flow)
    }

    /// Goodput of a flow, Mbit/s.
    pub fn goodput(&self, flow: usize) -> f64 {
        mbps(self.end[flow].delivered - self.begin[flow].delivered, self.duration)
    }

    /// Payload acknowledged on a path of a flow, Mbit/s.
    fn path_goodput(&self, flow: usize, path: usize) -> f64 {
        let [begin, end] = [&self.begin, &self.end].map(|flows| flows[flow].paths[path].delivered);
        mbps(end - begin, self.duration)
    }

    /// `own` over the goodput of the rivals that a flow meets on one path, or on all; for multipath
    /// connections and the connection under test, if their rivals got anything.
    fn ratio(&self, own: f64, flow: usize, path: Option<usize>) -> Option<f64> {
        let of = &self.scenario.flows[flow];
        let multipath = of.kind == FlowKind::Mptcp || self.scenario.test == Some(flow);
        let rivals = self.scenario.rivals_of(of, path);
        let sum: f64 = rivals.map(|rival| self.goodput(rival.flow)).sum();
        (multipath && sum > 0.0).then_some(own / sum)
    }

    /// Jain's index, see [`crate::Fairness`].
    pub fn jain(&self) -> f64 {
        let Scenario { flows, .. } = self.scenario;
        let mut shares = Vec::new();
        if let Some(test) = self.scenario.test {
            for rival in self.scenario.rivals_of(&flows[test], None) {
                let through = flows[test].paths.iter().enumerate();
                let through = through.filter(|(_, path)| path.links.contains(&rival.link));
                shares.push(through.map(|(path, _)| self.path_goodput(test, path)).sum());
                shares.push(self.goodput(rival.flow));
            }
        }
        if shares.is_empty() {
            let listed = (0..flows.len())
                .filter(|&flow| !flows[flow].background && flows[flow].kind != FlowKind::Udp);
            shares.extend(listed.map(|flow| self.goodput(flow)));
        }
        jain(&shares)
    }

    /// Goodputs of the greedy TCPs, other than a flow itself, that cross any of `links`.
    fn greedy_tcps(&self, links: &[usize], other_than: usize) -> Vec<f64> {
        let crosses = |flow: &Flow| flow.paths[0].links.iter().any(|link| links.contains(link));
        let counts = |(index, flow): (usize, &Flow)| {
            let greedy = flow.kind == FlowKind::Tcp && matches!(flow.source, Source::Greedy);
            (greedy && index != other_than && crosses(flow)).then_some(index)
        };
        let greedy = self.scenario.flows.iter().enumerate().filter_map(counts);
        greedy.map(|flow| self.goodput(flow)).collect()
    }

    /// Share of right decisions over all phases.
    pub fn accuracy(&self) -> Option<f64> {
        accuracy(self.detection)
    }
}

/// A flow of a run.
#[derive(Clone, Copy)]
pub struct OfFlow<'a> {
    /// The run.
    pub run: &'a Measured<'a>,
    /// Index of the flow.
    pub flow: usize,
}

impl<'a> OfFlow<'a> {
    /// The flow in the scenario.
    pub fn flow(&self) -> &'a Flow {
        &self.run.scenario.flows[self.flow]
    }

    /// What it counted until the end of the warm-up.
    pub fn begin(&self) -> &'a FlowState {
        &self.run.begin[self.flow]
    }

    /// What it counted until the end.
    pub fn end(&self) -> &'a FlowState {
        &self.run.end[self.flow]
    }

    /// Segments retransmitted.
    pub fn retransmits(&self) -> u64 {
        self.end().retransmits - self.begin().retransmits
    }

    /// Segments given to a second subflow.
    pub fn reinjections(&self) -> Option<u64> {
        // A flow that has not begun has none.
        let begin = self.begin().reinjections.unwrap_or(0);
        self.end().reinjections.map(|end| end - begin)
    }

    /// The longest silence, seconds.
    pub fn silence_s(&self) -> Option<f64> {
        self.run.silences[self.flow].map(seconds)
    }

    /// Goodput over that of the rivals.
    pub fn ratio(&self) -> Option<f64> {
        self.run.ratio(self.run.goodput(self.flow), self.flow, None)
    }

    /// R of arXiv:1812.05816, equation 20: goodput over the mean of the greedy TCPs' at the true
    /// bottleneck where that is highest.
    pub fn ratio_to_best(&self) -> Option<f64> {
        let at = |link| mean(&self.run.greedy_tcps(&[link], self.flow));
        let best = self.bottlenecks().into_iter().map(at).fold(0.0, f64::max);
        (best > 0.0).then(|| self.run.goodput(self.flow) / best)
    }

    /// Equation 19: Jain's index over its goodput and the mean of the greedy TCPs' at all its true
    /// bottlenecks.
    pub fn jain_mean(&self) -> Option<f64> {
        let tcps = self.run.greedy_tcps(&self.bottlenecks(), self.flow);
        (!tcps.is_empty()).then(|| jain(&[self.run.goodput(self.flow), mean(&tcps)]))
    }

    /// The true bottlenecks that it crosses, each with a rival.
    fn bottlenecks(&self) -> Vec<usize> {
        let rivals = self.run.scenario.rivals_of(self.flow(), None);
        rivals.map(|rival| rival.link).collect()
    }

    /// From the start of the flow until the whole file was there, seconds.
    pub fn completion_s(&self) -> Option<f64> {
        self.since_start_s(self.end().completed)
    }

    /// From the first SYN until the sender had the acknowledgement of the whole file, seconds.
    pub fn acknowledged_s(&self) -> Option<f64> {
        self.since_start_s(self.end().acknowledged)
    }

    /// From the first SYN until a segment was first sent again, seconds; of a file.
    pub fn first_loss_s(&self) -> Option<f64> {
        self.since_start_s(self.end().first_loss.filter(|_| self.is_file()))
    }

    /// How it stood when the last subflow had left slow start; of a file.
    pub fn slow_start_end(&self) -> Option<SlowStartEnd> {
        self.end().slow_start_end.filter(|_| self.is_file())
    }

    fn is_file(&self) -> bool {
        matches!(self.flow().source, Source::File { .. })
    }

    /// The latencies of the messages written in the analysed time, ascending, ms: infinite for those
    /// that were not delivered; none without a source of messages.
    fn latencies_ms(&self) -> Option<Vec<f64>> {
        let Source::Messages { .. } = self.flow().source else { return None };
        let latency = |message: Message| match message.delivered {
            Some(delivered) => ms(delivered.saturating_sub(message.written)),
            None => f64::INFINITY,
        };
        let written = self.run.host.messages(self.flow).into_iter();
        let analysed = written.filter(|message| message.written >= self.run.scenario.warmup);
        let mut latencies: Vec<f64> = analysed.map(latency).collect();
        latencies.sort_by(f64::total_cmp);
        Some(latencies)
    }

    /// Messages written in the analysed time.
    pub fn messages(&self) -> Option<u64> {
        Some(self.latencies_ms()?.len() as u64)
    }

    /// Those of them that were not delivered.
    pub fn undelivered(&self) -> Option<u64> {
        Some(self.latencies_ms()?.iter().filter(|latency| latency.is_infinite()).count() as u64)
    }

    /// The nearest-rank quantile of the messages' latencies; none without a message, or if the message
    /// of that rank was not delivered.
    pub fn latency_ms(&self, p: f64) -> Option<f64> {
        let latencies = self.latencies_ms()?;
        let rank = libm::ceil(p * latencies.len() as f64) as usize;
        latencies.get(rank.checked_sub(1)?).copied().filter(|latency| latency.is_finite())
    }

    fn since_start_s(&self, time: Option<Nanos>) -> Option<f64> {
        let start = self.flow().active.first().map_or(0, |period| period.0);
        time.map(|time| seconds(time.saturating_sub(start)))
    }

    /// What order costs at the receiver, of MPTCP.
    pub fn waits(&self) -> Option<HeadOfLine> {
        self.end().head_of_line.filter(|_| self.flow().kind == FlowKind::Mptcp)
    }

    /// The paths whose state a host sees: none without feedback.
    pub fn paths(&self) -> Vec<OfPath<'a>> {
        let paths = if self.flow().has_feedback() { self.flow().paths.len() } else { 0 };
        (0..paths).map(|path| OfPath { of: *self, path }).collect()
    }

    /// Queueing delay in ms at the bottlenecks it crosses: a statistic over the packets, mean over
    /// the bottlenecks.
    pub fn queue_ms(&self, statistic: fn(&Histogram) -> Nanos) -> f64 {
        let flow = self.flow();
        let mut crossed = self.bottlenecks();
        // Without rivals the bottlenecks are unknown: use all links that the connection crosses.
        if crossed.is_empty() {
            crossed = flow.paths.iter().flat_map(|path| path.links.clone()).collect();
            crossed.sort_unstable();
            crossed.dedup();
        }
        let delay = |&link: &usize| ms(statistic(&self.run.host.link(link).queue_delay));
        mean(&crossed.iter().map(delay).collect::<Vec<_>>())
    }

    /// Quantile of smoothed RTTs over the samples of all paths, ms.
    pub fn srtt_ms(&self, p: f64) -> f64 {
        quantile_of(self.run.samples[self.flow].iter().flat_map(|path| &path.srtt_ms), p)
    }
}

/// A path of a flow.
pub struct OfPath<'a> {
    of: OfFlow<'a>,
    path: usize,
}

impl OfPath<'_> {
    /// Name of the route.
    pub fn name(&self) -> String {
        self.of.flow().paths[self.path].name.clone()
    }

    /// Payload acknowledged, Mbit/s.
    pub fn goodput(&self) -> f64 {
        self.of.run.path_goodput(self.of.flow, self.path)
    }

    /// Payload acknowledged on this path over that on all.
    pub fn share(&self) -> Option<f64> {
        let [begin, end] = [self.of.begin(), self.of.end()];
        let of = |path: usize| end.paths[path].delivered - begin.paths[path].delivered;
        let all: u64 = (0..end.paths.len()).map(of).sum();
        (all > 0).then(|| of(self.path) as f64 / all as f64)
    }

    /// Goodput over that of the rivals on this path.
    pub fn ratio(&self) -> Option<f64> {
        self.of.run.ratio(self.goodput(), self.of.flow, Some(self.path))
    }

    /// Segments retransmitted.
    pub fn retransmits(&self) -> u64 {
        let [begin, end] = [self.of.begin(), self.of.end()].map(|flow| &flow.paths[self.path]);
        end.retransmits - begin.retransmits
    }

    /// Its samples in the analysed time.
    pub fn samples(&self) -> &PathSamples {
        &self.of.run.samples[self.of.flow][self.path]
    }

    /// Quantile of smoothed RTTs, ms.
    pub fn srtt_ms(&self, p: f64) -> f64 {
        quantile_of(&self.samples().srtt_ms, p)
    }
}

/// A link of a run.
pub struct OfLink<'a> {
    /// The run.
    pub run: &'a Measured<'a>,
    /// Index of the link.
    pub link: usize,
}

impl OfLink<'_> {
    /// Its name.
    pub fn name(&self) -> String {
        self.run.scenario.links[self.link].config.name.clone()
    }

    /// What it counted since the end of the warm-up.
    pub fn counters(&self) -> &Counters {
        self.run.host.link(self.link)
    }

    /// Bits sent over what it could send.
    pub fn utilization(&self) -> f64 {
        let Measured { scenario, duration, .. } = *self.run;
        let share = duration as f64 / scenario.duration as f64;
        // What arrived in the analysed time was sent a delay before.
        let delay = scenario.links[self.link].config.delay.min(scenario.warmup);
        let [begin, end] = [scenario.warmup, scenario.end()].map(|time| time - delay);
        let capacity = scenario.capacity(self.link, begin, end) * share;
        // A link that is down all the time sends nothing of nothing. Where the rate changes, a packet
        // on the way and what jitter or an event did to the delay would make it a little more than all.
        if capacity < 1.0 {
            return 0.0;
        }
        (self.counters().bytes_sent as f64 * 8.0 / capacity).min(1.0)
    }
}

fn quantile_of<'a>(values: impl IntoIterator<Item = &'a f64>, p: f64) -> f64 {
    let mut sorted: Vec<f64> = values.into_iter().copied().collect();
    sorted.sort_by(f64::total_cmp);
    quantile(&sorted, p)
}

pub fn seconds(time: Nanos) -> f64 {
    time as f64 / SECOND as f64
}

pub fn ms(time: Nanos) -> f64 {
    time as f64 / 1e6
}

pub fn mbps(bytes: u64, time: Nanos) -> f64 {
    bytes as f64 * 8.0 * 1e3 / time as f64
}
