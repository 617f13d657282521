//! Figures 11 to 13: 3G and WLAN.

use narrows_lab::Error;

use super::networks::{Column, Figure, Network, Pair, Points, done};
use crate::figures::Interval;
use crate::{Kept, Runs};

/// Where the paths meet, and where each has its own bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A link at the server.
    Shared,
    /// 3G and WLAN.
    Apart,
}

impl Place {
    /// Both.
    pub const ALL: [Place; 2] = [Place::Shared, Place::Apart];

    /// As tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Place::Shared => "shared",
            Place::Apart => "apart",
        }
    }

    /// As it is shipped.
    pub fn network(self) -> Network {
        Network::of(match self {
            Place::Shared => "lisa/phone-shared",
            Place::Apart => "lisa/phone-apart",
        })
    }
}

/// What 3G carried, %.
pub fn share_of_3g(run: &Kept) -> Option<f64> {
    run.summary.connections[0].paths[0].share.map(|share| 100.0 * share)
}

/// The 95th percentile of 3G's RTT, ms.
pub fn srtt_of_3g(run: &Kept) -> Option<f64> {
    Some(run.summary.connections[0].paths[0].p95_srtt_ms)
}

/// Whether the connection left slow start with a loss.
pub fn has_loss(run: &Kept) -> Option<f64> {
    Some(f64::from(u8::from(run.test().first_loss_s.is_some())))
}

/// A figure of a file.
pub fn file(
    runs: &Runs,
    place: Place,
    kilobytes: u64,
    column: Column,
    of: Figure,
) -> Result<Pair, Error> {
    place.network().file(kilobytes).pair(runs, column, of)
}

/// How much less time a file takes, %.
pub fn gain(
    runs: &Runs,
    place: Place,
    kilobytes: u64,
    column: Column,
) -> Result<Option<Interval>, Error> {
    Ok(file(runs, place, kilobytes, column, done)?.less_percent())
}

/// How much less of a figure there is with LISA: of each seed the mean over the sizes where both have it.
pub fn over_sizes(
    runs: &Runs,
    place: Place,
    column: Column,
    of: Figure,
) -> Result<Option<Interval>, Error> {
    let each = runs
        .form()
        .phone_sizes()
        .into_iter()
        .map(|size| Ok(file(runs, place, size, column, of)?.differences()));
    let each = each.collect::<Result<Vec<_>, Error>>()?;
    let seeds = each.first().map_or(0, Vec::len);
    let of_seed = |seed: usize| {
        let known: Vec<f64> = each.iter().filter_map(|size| size[seed]).collect();
        Interval::of(&known).map(|found| found.mean)
    };
    let by_seed: Vec<f64> = (0..seeds).filter_map(of_seed).collect();
    Ok(Interval::of(&by_seed))
}

/// By how many ms the first loss is later with LISA.
pub fn first_loss(runs: &Runs, place: Place, column: Column) -> Result<Option<Interval>, Error> {
    let found = over_sizes(runs, place, column, |run| run.test().first_loss_s)?;
    Ok(found.filter(|found| found.half.is_some()).map(|found| found.times(-1000.0)))
}
