//! What applications send: from the file's words to the simulator's.

use narrows_net::{MILLISECOND, Nanos, SECOND};
use narrows_traffic::{MediaControl, SizeDist, Source};

use super::file;
use crate::units::Bytes;

/// A distribution of sizes in the simulator's form.
pub fn size_dist(size: &file::Size) -> Result<SizeDist, String> {
    let whole = |bytes: Bytes| match bytes.0 {
        0 => Err("expected a packet of at least 1 B".to_owned()),
        bytes if bytes > 65_535 => {
            Err(format!("expected a packet of at most 65535 B, found {bytes} B"))
        }
        bytes => Ok(bytes as u32),
    };
    let ordered = |min: u32, max: u32| {
        if min > max { Err(format!("{min} B to {max} B is not a range")) } else { Ok((min, max)) }
    };
    Ok(match size {
        file::Size::Constant(bytes) => SizeDist::Constant(whole(*bytes)?),
        file::Size::Uniform([min, max]) => {
            let (min, max) = ordered(whole(*min)?, whole(*max)?)?;
            SizeDist::Uniform { min, max }
        }
        file::Size::Exponential(size) => {
            let (min, max) = ordered(whole(size.min)?, whole(size.max)?)?;
            SizeDist::Exponential { mean: f64::from(whole(size.mean)?), min, max }
        }
    })
}

/// A UDP packet's size is that on the wire: refuses one without room for the headers of IPv4 and UDP.
pub fn check_udp(size: SizeDist) -> Result<(), String> {
    const HEADERS: u32 = 28;
    if size.min() < HEADERS {
        return Err(format!(
            "a udp packet has at least its headers' {HEADERS} B, found {} B",
            size.min()
        ));
    }
    Ok(())
}

/// Shortest mean burst or silence: less is not worth simulating packet by packet.
pub const MIN_PERIOD: Nanos = MILLISECOND;

/// Shortest interval of messages: 1200 B every 10 us are 1 Gbit/s.
const MIN_INTERVAL: Nanos = MILLISECOND / 100;

/// Largest rate of media: a report of NADA has 32 bits for it (RFC 8698, section 5.3).
const MAX_MEDIA_BPS: u64 = 4_000_000_000;

/// Refuses a Pareto shape that has no mean or is no number.
pub fn check_shape(shape: f64) -> Result<(), String> {
    if shape.is_finite() && shape > 1.0 {
        Ok(())
    } else {
        Err(format!("expected a finite Pareto shape above 1 (else no mean), found {shape}"))
    }
}

/// What an application sends, in the simulator's form.
pub fn source(source: &file::Source) -> Result<Source, String> {
    Ok(match source {
        file::Source::Greedy {} => Source::Greedy,
        file::Source::File(file) if file.size.0 == 0 => return Err("a file of 0 B".into()),
        file::Source::File(file) => Source::File { bytes: file.size.0 },
        file::Source::Rate(rate) => {
            Source::Rate { mean_pps: rate.mean.0, size: size_dist(&rate.size.0)? }
        }
        file::Source::OnOff(on_off) => {
            check_shape(on_off.shape)?;
            if on_off.on.0 < MIN_PERIOD || on_off.off.0 < MIN_PERIOD {
                return Err("on and off need a mean of at least 1 ms".into());
            }
            Source::OnOff {
                pps: on_off.rate.0,
                size: size_dist(&on_off.size.0)?,
                on_mean_s: on_off.on.0 as f64 / SECOND as f64,
                on_shape: on_off.shape,
                off_mean_s: on_off.off.0 as f64 / SECOND as f64,
            }
        }
        file::Source::Messages(messages) => Source::Messages {
            bytes: match u32::try_from(messages.size.0) {
                Ok(0) => return Err("a message of 0 B".into()),
                Ok(bytes) => bytes,
                Err(_) => {
                    let (found, most) = (messages.size.0, u32::MAX);
                    return Err(format!("expected a message of at most {most} B, found {found} B"));
                }
            },
            interval: match messages.interval.0 {
                short if short < MIN_INTERVAL => {
                    return Err("expected an interval of at least 10 us".into());
                }
                interval => interval,
            },
            poisson: messages.gaps == file::Gaps::Poisson,
        },
        file::Source::Nada(media) => self::media(MediaControl::Nada, media)?,
        file::Source::Scream(media) => self::media(MediaControl::Scream, media)?,
    })
}

fn media(control: MediaControl, media: &file::MediaSource) -> Result<Source, String> {
    let (min_bps, max_bps) = (media.min.0, media.max.0);
    if min_bps > max_bps {
        return Err(format!("min of {min_bps} bit/s is above max of {max_bps} bit/s"));
    }
    if max_bps > MAX_MEDIA_BPS {
        return Err(format!("expected a max of at most 4 Gbit/s, found {max_bps} bit/s"));
    }
    let SizeDist::Constant(bytes) = size_dist(&file::Size::Constant(media.size))? else {
        unreachable!("a constant stays one")
    };
    Ok(Source::Media { control, min_bps, max_bps, bytes, ecn: media.ecn })
}
