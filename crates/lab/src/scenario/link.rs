//! Links: from the file's words to the network's.

use std::str::FromStr;

use narrows_net::{
    CoDel, Discipline, FqCoDel, GilbertElliott, Limit, LinkConfig, Loss, Nanos, Pie, Policer, Rate,
    Red, Reorder, Weight, Wifi,
};
use serde::Deserialize;

use super::either::Either;
use super::resolve::FindTrace;
use super::{Fault, Link, file};
use crate::units::{BitRate, Bytes, Queue, Share, Time};

/// Losses in bursts, where plain loss is a [`Share`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    good_to_bad: Share,
    bad_to_good: Share,
    loss_good: Option<Share>,
    loss_bad: Option<Share>,
}

/// A queue discipline by its name, with its default parameters.
#[derive(Clone, Copy, Debug)]
pub struct AqmName(Discipline);

impl FromStr for AqmName {
    type Err = String;

    fn from_str(name: &str) -> Result<AqmName, String> {
        Ok(AqmName(match name {
            "droptail" => Discipline::DropTail,
            "red" => Discipline::Red(Red::default()),
            "codel" => Discipline::CoDel(CoDel::default()),
            "fq-codel" => Discipline::FqCoDel(FqCoDel::default()),
            "pie" => Discipline::Pie(Pie::default()),
            _ => {
                return Err(format!(
                    "unknown queue discipline \"{name}\"; there is: droptail, red, codel, \
                     fq-codel, pie"
                ));
            }
        }))
    }
}

/// A queue discipline with parameters: one of these.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Aqm {
    red: Option<RedFile>,
    codel: Option<CoDelFile>,
    fq_codel: Option<FqCoDelFile>,
    pie: Option<PieFile>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedFile {
    min: Option<Queue>,
    max: Option<Queue>,
    max_p: Option<Share>,
    weight: Option<f64>,
    time_constant: Option<Time>,
    gentle: Option<bool>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CoDelFile {
    target: Option<Time>,
    interval: Option<Time>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FqCoDelFile {
    target: Option<Time>,
    interval: Option<Time>,
    flows: Option<u32>,
    quantum: Option<Bytes>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PieFile {
    target: Option<Time>,
    update: Option<Time>,
    burst: Option<Time>,
    alpha: Option<f64>,
    beta: Option<f64>,
}

/// A token bucket at the entry.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerFile {
    rate: BitRate,
    burst: Bytes,
}

/// Some packets are overtaken.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderFile {
    share: Share,
    delay: Time,
}

/// A Wi-Fi channel.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiFile {
    packets: Option<u32>,
    time: Option<Time>,
    overhead: Option<Time>,
    contention: Option<Time>,
}

/// The links of `file`.
pub fn links(file: &file::File, find_trace: FindTrace) -> Result<Vec<Link>, Fault> {
    file.links.iter().map(|(name, written)| link(name, written, find_trace)).collect()
}

fn link(name: &str, link: &file::Link, find_trace: FindTrace) -> Result<Link, Fault> {
    let fault = |field: &str, message: String| Fault::new(["links", name, field], message);
    let rate = match (&link.rate, &link.trace) {
        (Some(rate), None) => Rate::Constant(rate.0),
        (None, Some(trace)) => {
            let trace = find_trace(trace).map_err(|message| fault("trace", message))?;
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
    let time = |time: Option<Time>| time.map_or(0, |time| time.0);
    let mut config = LinkConfig {
        name: name.to_owned(),
        rate,
        delay: time(link.delay),
        jitter: time(link.jitter),
        loss: link.loss.as_ref().map_or(Loss::None, loss),
        limit: link.queue.map(|queue| queue.0).unwrap_or_default(),
        ecn: link.ecn,
        policer: link.policer.as_ref().map(|p| Policer { rate: p.rate.0, burst: p.burst.0 }),
        reorder: link.reorder.as_ref().map(|r| Reorder { share: r.share.0, delay: r.delay.0 }),
        wifi: link.wifi.as_ref().map(wifi),
        ..LinkConfig::default()
    };
    if let Some(aqm) = &link.aqm {
        config.discipline = discipline(aqm).map_err(|message| fault("aqm", message))?;
    }
    if let Some(mtu) = link.mtu {
        if !(576..=65_535).contains(&mtu.0) {
            return Err(fault("mtu", format!("expected 576 B to 65535 B, found {} B", mtu.0)));
        }
        config.mtu = mtu.0 as u32;
    }
    config.validate().map_err(|error| Fault::new(["links", name], error.to_string()))?;
    Ok(Link { config })
}

fn loss(loss: &Either<Share, Bursts>) -> Loss {
    match loss {
        Either::Word(share) => Loss::Random(share.0),
        Either::Table(bursts) => {
            let default = GilbertElliott::default();
            Loss::GilbertElliott(GilbertElliott {
                good_to_bad: bursts.good_to_bad.0,
                bad_to_good: bursts.bad_to_good.0,
                loss_good: bursts.loss_good.map_or(default.loss_good, |share| share.0),
                loss_bad: bursts.loss_bad.map_or(default.loss_bad, |share| share.0),
            })
        }
    }
}

/// A time that is given, or the default.
fn or(time: Option<Time>, default: Nanos) -> Nanos {
    time.map_or(default, |time| time.0)
}

fn discipline(aqm: &Either<AqmName, Aqm>) -> Result<Discipline, String> {
    let aqm = match aqm {
        Either::Word(name) => return Ok(name.0),
        Either::Table(aqm) => aqm,
    };
    match aqm {
        Aqm { red: Some(red), codel: None, fq_codel: None, pie: None } => {
            self::red(red).map(Discipline::Red)
        }
        Aqm { red: None, codel: Some(codel), fq_codel: None, pie: None } => {
            Ok(Discipline::CoDel(self::codel(codel.target, codel.interval)))
        }
        Aqm { red: None, codel: None, fq_codel: Some(fq), pie: None } => {
            let default = FqCoDel::default();
            let quantum = fq.quantum.map_or(u64::from(default.quantum), |bytes| bytes.0);
            Ok(Discipline::FqCoDel(FqCoDel {
                codel: codel(fq.target, fq.interval),
                flows: fq.flows.unwrap_or(default.flows),
                quantum: u32::try_from(quantum).map_err(|_| "a quantum of more than 4 GB")?,
            }))
        }
        Aqm { red: None, codel: None, fq_codel: None, pie: Some(pie) } => {
            let default = Pie::default();
            Ok(Discipline::Pie(Pie {
                target: or(pie.target, default.target),
                update: or(pie.update, default.update),
                burst: or(pie.burst, default.burst),
                alpha: pie.alpha.unwrap_or(default.alpha),
                beta: pie.beta.unwrap_or(default.beta),
            }))
        }
        _ => Err("expected one of red, codel, fq-codel, pie".into()),
    }
}

fn codel(target: Option<Time>, interval: Option<Time>) -> CoDel {
    let default = CoDel::default();
    CoDel { target: or(target, default.target), interval: or(interval, default.interval) }
}

/// Floyd's parameters where none are given; a maximum is three times the minimum.
fn red(red: &RedFile) -> Result<Red, String> {
    let default = Red::default();
    let min = red.min.map_or(default.min, |min| min.0);
    let thrice = match min {
        Limit::Unlimited => Limit::Unlimited,
        Limit::Packets(packets) => Limit::Packets(packets.saturating_mul(3)),
        Limit::Bytes(bytes) => Limit::Bytes(bytes.saturating_mul(3)),
        Limit::Time(time) => Limit::Time(time.saturating_mul(3)),
    };
    Ok(Red {
        min,
        max: red.max.map_or(thrice, |max| max.0),
        max_p: red.max_p.map_or(default.max_p, |share| share.0),
        weight: match (red.weight, red.time_constant) {
            (None, None) => default.weight,
            (Some(weight), None) => Weight::Fixed(weight),
            (None, Some(time)) => Weight::TimeConstant(time.0),
            (Some(_), Some(_)) => return Err("a weight or a time_constant, not both".into()),
        },
        gentle: red.gentle.unwrap_or(default.gentle),
    })
}

fn wifi(wifi: &WifiFile) -> Wifi {
    let default = Wifi::default();
    Wifi {
        packets: wifi.packets.unwrap_or(default.packets),
        time: or(wifi.time, default.time),
        overhead: or(wifi.overhead, default.overhead),
        contention: or(wifi.contention, default.contention),
    }
}
