//! Links: from the file's words to the network's.

use narrows_net::{
    CoDel, Discipline, Distribution, DualPi2, FqCoDel, GilbertElliott, Limit, LinkConfig, Loss,
    Pie, Policer, Rate, Red, Reorder, SECOND, Variation, Weight, Wifi,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::either::{Either, Kinds, OneOf};
use super::trace::{self, DelayFormat, TraceFormat, Traces};
use super::{Fault, Link, file};
use crate::units::{BitRate, Bytes, MAX_BYTES, MAX_TIME, Queue, Share, Time};

/// Losses in bursts, where plain loss is a share.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// For each packet.
    good_to_bad: Share,
    /// For each packet.
    bad_to_good: Share,
    /// Loss in the good state.
    #[serde(default = "loss_good")]
    loss_good: Share,
    /// Loss in the bad state.
    #[serde(default = "loss_bad")]
    loss_bad: Share,
}

fn loss_good() -> Share {
    Share(GilbertElliott::default().loss_good)
}

fn loss_bad() -> Share {
    Share(GilbertElliott::default().loss_bad)
}

/// A queue discipline.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aqm {
    Red(RedFile),
    Codel(CoDelFile),
    FqCodel(FqCoDelFile),
    Pie(PieFile),
    Dualpi2(DualPi2File),
    Droptail {},
}

impl Kinds for Aqm {
    const WHAT: &str = "queue discipline";
    const NAMES: &[&str] = &["red", "codel", "fq-codel", "pie", "dualpi2", "droptail"];
}

impl Default for OneOf<Aqm> {
    fn default() -> Self {
        OneOf(Aqm::Droptail {})
    }
}

/// RED, with Floyd's parameters where none are given.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct RedFile {
    /// Least mean queue at which it drops.
    min: Queue,
    /// Default: three times the minimum.
    max: Option<Queue>,
    /// Drop probability at the maximum.
    max_p: Share,
    /// Of a packet in the average queue. Default: `0.002`.
    weight: Option<f64>,
    /// In place of a weight.
    time_constant: Option<Time>,
    /// Above the maximum the probability rises to 1.
    gentle: bool,
}

impl Default for RedFile {
    fn default() -> RedFile {
        let Red { min, max_p, gentle, .. } = Red::default();
        let (weight, time_constant) = (None, None);
        RedFile { min: Queue(min), max: None, max_p: Share(max_p), weight, time_constant, gentle }
    }
}

impl RedFile {
    fn max(&self) -> Limit {
        match (self.max, self.min.0) {
            (Some(max), _) => max.0,
            (None, Limit::Unlimited) => Limit::Unlimited,
            (None, Limit::Packets(packets)) => Limit::Packets(packets.saturating_mul(3)),
            (None, Limit::Bytes(bytes)) => Limit::Bytes((3 * bytes).min(MAX_BYTES as u64)),
            (None, Limit::Time(time)) => Limit::Time((3 * time).min(MAX_TIME as u64)),
        }
    }

    fn weight(&self) -> Result<Weight, String> {
        match (self.weight, self.time_constant) {
            (None, None) => Ok(Red::default().weight),
            (Some(weight), None) => Ok(Weight::Fixed(weight)),
            (None, Some(time)) => Ok(Weight::TimeConstant(time.0)),
            (Some(_), Some(_)) => Err("a weight or a time_constant, not both".into()),
        }
    }
}

/// CoDel (RFC 8289).
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoDelFile {
    /// Least queueing delay that counts as standing.
    target: Time,
    /// For how long it must stand.
    interval: Time,
}

impl Default for CoDelFile {
    fn default() -> CoDelFile {
        let CoDel { target, interval } = CoDel::default();
        CoDelFile { target: Time(target), interval: Time(interval) }
    }
}

/// FQ-CoDel (RFC 8290).
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FqCoDelFile {
    /// As of CoDel.
    target: Time,
    /// As of CoDel.
    interval: Time,
    /// Number of queues.
    flows: u32,
    /// Bytes of a queue in its turn.
    quantum: Bytes,
}

impl Default for FqCoDelFile {
    fn default() -> FqCoDelFile {
        let (CoDelFile { target, interval }, FqCoDel { flows, quantum, .. }) = Default::default();
        FqCoDelFile { target, interval, flows, quantum: Bytes(quantum.into()) }
    }
}

/// PIE (RFC 8033).
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PieFile {
    /// Queueing delay that it aims at.
    target: Time,
    /// Between two updates of the probability.
    update: Time,
    /// Before which nothing is dropped.
    burst: Time,
    /// Weight of the difference from the target, per second.
    alpha: f64,
    /// Weight of the change of delay, per second.
    beta: f64,
}

impl Default for PieFile {
    fn default() -> PieFile {
        let Pie { target, update, burst, alpha, beta } = Pie::default();
        PieFile { target: Time(target), update: Time(update), burst: Time(burst), alpha, beta }
    }
}

/// DualPI2 (RFC 9332).
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DualPi2File {
    /// Queueing delay of classic flows that it aims at.
    target: Time,
    /// Longest round-trip time for which it is stable.
    rtt_max: Time,
    /// Marks of scalable flows over the square root of those of classic ones.
    coupling: f64,
    /// Queueing delay of scalable flows from which on they are marked.
    threshold: Time,
    /// Above the threshold: from there on all are.
    range: Time,
}

impl Default for DualPi2File {
    fn default() -> DualPi2File {
        let DualPi2 { target, rtt_max, coupling, threshold, range } = DualPi2::default();
        let [target, rtt_max, threshold, range] = [target, rtt_max, threshold, range].map(Time);
        DualPi2File { target, rtt_max, coupling, threshold, range }
    }
}

/// Random delay with a distribution, where one that is uniform is a [`Time`].
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
#[schemars(title = "one of uniform, normal, pareto, trace as a table")]
pub enum JitterFile {
    Uniform(UniformFile),
    Normal(NormalFile),
    Pareto(ParetoFile),
    Trace(RecordedFile),
}

/// From 0 to the largest.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct UniformFile {
    /// The largest delay.
    max: Time,
    /// How alike those of neighbours are, below 100 %.
    #[serde(default)]
    correlation: Share,
}

/// Normal; what is below 0 is 0.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NormalFile {
    /// The largest delay; what is above has it.
    max: Time,
    /// Its mean.
    mean: Time,
    /// Its standard deviation.
    deviation: Time,
    /// How alike those of neighbours are, below 100 %.
    #[serde(default)]
    correlation: Share,
}

/// Pareto's, from 0 on (Lomax): most delays are short and some are long.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ParetoFile {
    /// The largest delay; what is above has it.
    max: Time,
    /// Its mean, without that bound.
    mean: Time,
    /// Above 1; the smaller, the more long ones. That of netem's table is 3.
    #[serde(default = "shape")]
    shape: f64,
    /// How alike those of neighbours are, below 100 %.
    #[serde(default)]
    correlation: Share,
}

/// As it was measured: what each delay is above the smallest, linear between two, again after the last.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordedFile {
    /// A file beside this one, plain or gzip: a line for each measurement, in the order of time.
    pub file: String,
    /// The columns: time and delay by their units, or `ping`, the answers that `ping -D` prints.
    #[serde(default)]
    pub format: DelayFormat,
}

fn shape() -> f64 {
    3.0
}

/// The largest delay and its distribution.
fn jitter(jitter: &Either<Time, JitterFile>, kept: &Traces) -> Result<(Time, Variation), String> {
    let (max, distribution, correlation) = match jitter {
        Either::Word(max) => return Ok((*max, Variation::default())),
        Either::Table(JitterFile::Trace(RecordedFile { file, format })) => {
            let delays = trace::find_delays(file, *format, kept)?;
            let max = Time(delays.max());
            let distribution = Distribution::Recorded(delays);
            return Ok((max, Variation { distribution, correlation: 0.0 }));
        }
        Either::Table(JitterFile::Uniform(UniformFile { max, correlation })) => {
            (max, Distribution::Uniform, correlation)
        }
        Either::Table(JitterFile::Normal(NormalFile { max, mean, deviation, correlation })) => {
            let (mean, deviation) = (mean.0, deviation.0);
            (max, Distribution::Normal { mean, deviation }, correlation)
        }
        Either::Table(JitterFile::Pareto(ParetoFile { max, mean, shape, correlation })) => {
            (max, Distribution::Pareto { mean: mean.0, shape: *shape }, correlation)
        }
    };
    Ok((*max, Variation { distribution, correlation: correlation.0 }))
}

/// A token bucket at the entry.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerFile {
    /// Of tokens.
    rate: BitRate,
    /// Size of the bucket.
    burst: Bytes,
}

/// Some packets are overtaken.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderFile {
    /// Of the packets.
    share: Share,
    /// That they take longer.
    delay: Time,
}

/// A Wi-Fi channel.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct WifiFile {
    /// Most that are sent at once.
    packets: u32,
    /// Longest time of these.
    time: Time,
    /// Of each aggregate.
    overhead: Time,
    /// Mean wait for the medium.
    contention: Time,
}

impl Default for WifiFile {
    fn default() -> WifiFile {
        let Wifi { packets, time, overhead, contention } = Wifi::default();
        let [time, overhead, contention] = [time, overhead, contention].map(Time);
        WifiFile { packets, time, overhead, contention }
    }
}

/// The links of `file`.
pub fn links(file: &file::File) -> Result<Vec<Link>, Fault> {
    file.links.iter().map(|(name, written)| link(name, written, &file.kept)).collect()
}

fn link(name: &str, link: &file::Link, kept: &Traces) -> Result<Link, Fault> {
    let fault = |field: &str, message: String| Fault::new(["links", name, field], message);
    let of_trace = [("format", link.format.is_some()), ("step", link.step.is_some())];
    if let Some((field, _)) = of_trace.iter().find(|of| of.1 && link.trace.is_none()) {
        return Err(fault(field, "only a trace has one, and this link has none".into()));
    }
    let rate = match (&link.rate, &link.trace) {
        (Some(rate), None) => Rate::Constant(rate.0),
        (None, Some(trace)) => {
            let format = link.format.unwrap_or_default();
            if link.step.is_some() && !matches!(format, TraceFormat::Rates(_)) {
                let message = "only a trace of rates without times has one, see its format";
                return Err(fault("step", message.into()));
            }
            let step = link.step.map_or(SECOND, |step| step.0);
            let trace = trace::find(trace, format, step, kept);
            let trace = trace.map_err(|message| fault("trace", message))?;
            if trace.mean_rate() == 0 {
                let message = format!("{}: less than 1 bit/s on average", trace.name());
                return Err(fault("trace", message));
            }
            Rate::Trace(trace)
        }
        (None, None) => return Err(Fault::new(["links", name], "expected a rate or a trace")),
        (Some(_), Some(_)) => {
            return Err(fault("trace", "a link has a rate or a trace, not both".into()));
        }
    };
    let (most, variation) = jitter(&link.jitter, kept)
        .map_err(|message| Fault::new(["links", name, "jitter", "trace", "file"], message))?;
    let mut config = LinkConfig {
        name: name.to_owned(),
        rate,
        delay: link.delay.unwrap_or_default().0,
        jitter: most.0,
        variation,
        loss: link.loss.as_ref().map_or(Loss::None, loss),
        limit: link.queue.map(|queue| queue.0).unwrap_or_default(),
        ecn: link.ecn,
        policer: link.policer.as_ref().map(|p| Policer { rate: p.rate.0, burst: p.burst.0 }),
        reorder: link.reorder.as_ref().map(|r| Reorder { share: r.share.0, delay: r.delay.0 }),
        wifi: link.wifi.as_ref().map(|w| Wifi {
            packets: w.packets,
            time: w.time.0,
            overhead: w.overhead.0,
            contention: w.contention.0,
        }),
        discipline: discipline(&link.aqm.0).map_err(|message| fault("aqm", message))?,
        ..LinkConfig::default()
    };
    if let Some(mtu) = link.mtu {
        if !(576..=65_535).contains(&mtu.0) {
            return Err(fault("mtu", format!("expected 576 B to 65535 B, found {} B", mtu.0)));
        }
        config.mtu = mtu.0 as u32;
    }
    config.validate().map_err(|error| {
        // The field names the link already.
        let (message, link) = (error.to_string(), format!("link '{name}': "));
        Fault::new(["links", name], message.strip_prefix(&link).unwrap_or(&message))
    })?;
    Ok(Link { config })
}

fn loss(loss: &Either<Share, Bursts>) -> Loss {
    match loss {
        Either::Word(share) => Loss::Random(share.0),
        Either::Table(bursts) => Loss::GilbertElliott(GilbertElliott {
            good_to_bad: bursts.good_to_bad.0,
            bad_to_good: bursts.bad_to_good.0,
            loss_good: bursts.loss_good.0,
            loss_bad: bursts.loss_bad.0,
        }),
    }
}

fn discipline(aqm: &Aqm) -> Result<Discipline, String> {
    let codel = |target: Time, interval: Time| CoDel { target: target.0, interval: interval.0 };
    Ok(match aqm {
        Aqm::Droptail {} => Discipline::DropTail,
        Aqm::Red(red) => Discipline::Red(Red {
            min: red.min.0,
            max: red.max(),
            max_p: red.max_p.0,
            weight: red.weight()?,
            gentle: red.gentle,
        }),
        Aqm::Codel(file) => Discipline::CoDel(codel(file.target, file.interval)),
        Aqm::FqCodel(fq) => Discipline::FqCoDel(FqCoDel {
            codel: codel(fq.target, fq.interval),
            flows: fq.flows,
            quantum: u32::try_from(fq.quantum.0).map_err(|_| "a quantum of more than 4 GB")?,
        }),
        Aqm::Pie(pie) => Discipline::Pie(Pie {
            target: pie.target.0,
            update: pie.update.0,
            burst: pie.burst.0,
            alpha: pie.alpha,
            beta: pie.beta,
        }),
        Aqm::Dualpi2(dual) => Discipline::DualPi2(DualPi2 {
            target: dual.target.0,
            rtt_max: dual.rtt_max.0,
            coupling: dual.coupling,
            threshold: dual.threshold.0,
            range: dual.range.0,
        }),
    })
}

impl file::Link {
    /// The files that it names: its trace and that of its delays.
    pub fn traces(&mut self) -> impl Iterator<Item = &mut String> {
        let delays = match &mut self.jitter {
            Either::Table(JitterFile::Trace(of)) => Some(&mut of.file),
            _ => None,
        };
        self.trace.iter_mut().chain(delays)
    }

    /// Writes the defaults out; `link` is what this resolves to.
    pub fn fill(&mut self, link: &Link) {
        self.delay.get_or_insert(Time(link.config.delay));
        self.queue.get_or_insert(Queue(link.config.limit));
        self.mtu.get_or_insert(Bytes(link.config.mtu.into()));
        if let OneOf(Aqm::Red(red)) = &mut self.aqm {
            red.max = Some(Queue(red.max()));
            if let Ok(Weight::Fixed(weight)) = red.weight() {
                red.weight = Some(weight);
            }
        }
    }
}
