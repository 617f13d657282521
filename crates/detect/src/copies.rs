//! Packets that are in a capture more than once: of `any` over a bond, a bridge or a router, or of both
//! ports of a switch.
//!
//! What a sender sends again is told from a copy by its timestamp and by its identification, which are others, and by the
//! hops that are left, which are fewer of a copy that has passed a router. It is in doubt within [`SOON`] where the
//! timestamp is the same, as of a clock that is coarse or stands still, and
//! - there is no identification (IPv6, or 0); then also without timestamps, within [`AT_ONCE`]; or
//! - it comes in other segments than before, or those were not all as long: what a network card puts together or cuts has
//!   identifications of its own.
//!
//! What is in doubt is decided for each direction of a flow, all of it at once ([`crate::tally::Way::doubled`]): copies, if there
//! is one for each nine other segments, else sent again. So it errs
//! - where so much was sent again, as at a loss of a ninth and more: that is left out, and counts as no loss;
//! - where fewer are copies, as of an interface that was captured for a part of the time: these count as losses.
//!
//! And without a doubt it errs
//! - where a copy that has passed no router comes later, after its packet was forgotten, or in other segments without a
//!   timestamp: it counts as sent again;
//! - where what was sent again comes over more routers than before, with the same timestamp, and has no identification or
//!   other segments: it counts as a copy.

use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::fast::FixedState;

use crate::packet::{End, Segment};

/// Packets that are remembered, of all flows: most of 60,000 packets/s for [`SOON`], in 2 MB.
const SEEN: usize = 1 << 16;

/// Runs of data that are remembered, of all flows: one for each tick of a flow's timestamps.
const RUNS: usize = 1 << 14;

/// A copy comes no later, nanoseconds, unless it has passed a router, in whose queue it may wait for as long as it
/// is remembered; 200 ms is the shortest retransmission timeout of Linux.
const SOON: i64 = 200_000_000;

/// Nor later than this, if neither IP's identification nor a timestamp tells a retransmission from it,
/// nanoseconds.
const AT_ONCE: i64 = 3_000_000;

/// A segment that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The same packet, or its data. It is not `sure` where a sender may have sent it again, within a tick of its
    /// timestamps: without an identification, or in other segments; unless it has passed a router.
    Copy { sure: bool },
    /// With other addresses, after it passed a router or its host translated them: what [`ends`] gives for
    /// those before.
    Translated(u64),
}

/// What has passed of late.
#[derive(Debug)]
pub struct Copies {
    seen: Vec<Seen>,
    runs: Vec<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    segment: u64,
    ends: u64,
    time: i64,
    hops: u8,
}

/// Data of a flow without a gap, that was sent within a tick of its timestamps; without these, [at once](AT_ONCE).
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Of the flow and the timestamps.
    of: u64,
    /// When it began.
    time: i64,
    from: u32,
    to: u32,
    /// Bytes of each of its segments, if all are as long and have identifications; else 0.
    cut: u32,
    hops: u8,
}

impl Default for Copies {
    fn default() -> Copies {
        let time = i64::MIN;
        Copies {
            seen: vec![Seen { segment: 0, ends: 0, time, hops: 0 }; SEEN],
            runs: vec![Run { of: 0, time, from: 0, to: 0, cut: 0, hops: 0 }; RUNS],
        }
    }
}

impl Copies {
    /// A segment that passes at a time.
    pub fn see(&mut self, time: i64, segment: &Segment) -> Option<Again> {
        let now = Seen {
            segment: fingerprint(segment),
            ends: ends(segment.from, segment.to),
            time,
            hops: segment.hops,
        };
        let seen = place(&mut self.seen, now.segment, |seen| (seen.segment, seen.time));
        let apart = time.abs_diff(seen.time);
        let told_apart = segment.id != 0 || segment.stamps.is_some();
        let soon = apart <= if told_apart { SOON } else { AT_ONCE } as u64;
        // What is sent again has as many hops left.
        let passed_a_router = now.hops < seen.hops && (told_apart || apart <= SOON as u64);
        if seen.segment == now.segment && (soon || passed_a_router) {
            if seen.ends == now.ends {
                return Some(Again::Copy { sure: segment.id != 0 || passed_a_router });
            }
            // Translated on a host it has passed no router: no other packet has all that it has.
            let local = segment.id != 0 && segment.stamps.is_some() && now.hops == seen.hops;
            // Answers to a scan are alike, from whoever they come.
            if passed_a_router && (told_apart || segment.len > 0) || local {
                return Some(Again::Translated(seen.ends));
            }
        }
        *seen = now;
        (segment.len > 0).then(|| self.cut_otherwise(now.ends, time, segment)).flatten()
    }

    /// Data that passes once more, in longer or shorter segments: a network card put it together, or a router cut
    /// it (GRO, GSO), which leaves timestamps as they are.
    fn cut_otherwise(&mut self, ends: u64, time: i64, segment: &Segment) -> Option<Again> {
        let of = FixedState::default().hash_one((ends, segment.stamps));
        let (from, to, hops) = (segment.seq, segment.end(), segment.hops);
        let cut = if segment.id == 0 { 0 } else { to.wrapping_sub(from) };
        let run = place(&mut self.runs, of, |run| (run.of, run.time));
        let (known, passed_a_router) = (run.of == of, hops < run.hops);
        let within = if segment.stamps.is_some() { SOON } else { AT_ONCE };
        let soon = time.abs_diff(run.time) <= within as u64;
        let told_apart = match segment.stamps {
            Some(_) => passed_a_router || soon,
            None => passed_a_router && time.abs_diff(run.time) <= SOON as u64,
        };
        if known && told_apart && !after(run.from, from) && !after(to, run.to) {
            // A copy of a segment as it was has its identification, which has been looked for.
            let as_it_was = cut != 0 && cut == run.cut && from.wrapping_sub(run.from) % cut == 0;
            let sent_again = as_it_was && !passed_a_router;
            return (!sent_again).then_some(Again::Copy { sure: passed_a_router });
        }
        if !(known && soon) {
            *run = Run { of, time, from, to, cut, hops };
        } else if hops == run.hops && from == run.to {
            run.to = to;
            run.cut = if cut == run.cut { cut } else { 0 };
        } else if !passed_a_router {
            *run = Run { of, time, from, to, cut, hops };
        }
        None
    }
}

/// Where what has a hash is in a table of what has one and a time: at one of two places, where it is new at that of
/// the older.
fn place<T>(table: &mut [T], hash: u64, is: impl Fn(&T) -> (u64, i64)) -> &mut T {
    let at = hash as usize % table.len();
    let [(one, first), (other, second)] = [at, at ^ 1].map(|at| is(&table[at]));
    let first = one == hash || (other != hash && first <= second);
    &mut table[if first { at } else { at ^ 1 }]
}

/// Is `a` behind `b` in the order of sequence numbers?
pub fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

/// Two ends in one number.
pub fn ends(from: End, to: End) -> u64 {
    let bits = |(address, port): End| match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 16 | u128::from(port),
        IpAddr::V6(address) => address.to_bits().rotate_left(16) ^ u128::from(port),
    };
    let fold = |bits: u128| bits as u64 ^ (bits >> 64) as u64;
    FixedState::default().hash_one((fold(bits(from)), fold(bits(to))))
}

/// What a switch, a router and a translation of addresses leave as it is, and no two packets have in
/// common.
fn fingerprint(segment: &Segment) -> u64 {
    let pair = |(a, b): (u32, u32)| u64::from(a) << 32 | u64::from(b);
    let numbers = pair((segment.seq, segment.ack.unwrap_or_default()));
    let shape = pair((segment.len, u32::from(segment.id) << 16 | u32::from(segment.flags)));
    let options = segment.stamps.map_or(0, pair) ^ segment.sack.map_or(0, pair).rotate_left(32);
    let window = u64::from(segment.window) << 48;
    FixedState::default().hash_one((numbers, shape, options ^ window))
}

/// The note on copies.
pub fn again_note(copies: u64, packets: u64) -> Option<String> {
    (copies > 0).then(|| {
        format!(
            "left out: {copies} of {packets} packets are copies of others (a capture of several \
             interfaces or ports has each packet more than once)"
        )
    })
}

#[cfg(test)]
mod tests {
    use etherparse::PacketBuilder;

    use super::*;
    use crate::packet::{Link, segment};

    const MS: i64 = 1_000_000;

    /// Packets of 100 bytes: when, the client's last byte, hops left, identification, timestamp if any.
    type Is = (i64, u8, u8, u16, Option<u32>);

    fn again(packets: &[Is]) -> Vec<Option<Again>> {
        let mut copies = Copies::default();
        let each = packets.iter().map(|&(time, client, hops, id, stamp)| {
            let tcp = PacketBuilder::ipv4([10, 0, 0, client], [10, 0, 1, 1], hops);
            let options = stamp.map(|stamp| etherparse::TcpOptionElement::Timestamp(stamp, 7));
            let tcp = tcp.tcp(443, 5000, 9, 100).options(options.as_slice()).unwrap();
            let mut bytes = Vec::new();
            tcp.write(&mut bytes, &[0; 100]).unwrap();
            bytes[4..6].copy_from_slice(&id.to_be_bytes());
            copies.see(time, &segment(Link::Raw, &bytes, bytes.len() as u32).unwrap())
        });
        each.collect()
    }

    const SURE: Option<Again> = Some(Again::Copy { sure: true });
    const UNSURE: Option<Again> = Some(Again::Copy { sure: false });

    #[test]
    fn a_copy_has_the_same_identification_and_may_have_passed_a_router() {
        let stamp = Some(5);
        let three = [(0, 1, 64, 8, stamp), (20_000, 1, 64, 8, stamp), (90 * MS, 1, 63, 8, stamp)];
        assert_eq!(again(&three), [None, SURE, SURE]);
        // In disorder, as two interfaces give them.
        assert_eq!(again(&[(20_000, 1, 64, 8, None), (0, 1, 64, 8, None)]), [None, SURE]);
    }

    #[test]
    fn a_copy_that_has_passed_a_router_may_have_waited_long() {
        let later =
            |hops, id| again(&[(0, 1, 64, id, Some(5)), (700 * MS, 1, hops, id, Some(5))])[1];
        assert_eq!((later(63, 8), later(64, 8), later(63, 0)), (SURE, None, SURE));
        let other = again(&[(0, 1, 64, 8, None), (700 * MS, 2, 63, 8, None)])[1];
        assert!(matches!(other, Some(Again::Translated(_))));
    }

    /// Segments: when, where the data begins and ends, hops left, timestamp if any.
    #[test]
    fn data_may_be_put_together_and_cut_between_two_interfaces() {
        type Is = (i64, u32, u32, u8, Option<u32>);
        let again = |segments: &[Is]| {
            let mut copies = Copies::default();
            let each = segments.iter().zip(1..).map(|(&(time, from, to, hops, stamp), id)| {
                let tcp = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 1, 1], hops);
                let options = stamp.map(|stamp| etherparse::TcpOptionElement::Timestamp(stamp, 7));
                let tcp = tcp.tcp(443, 5000, from, 100).options(options.as_slice()).unwrap();
                let mut bytes = Vec::new();
                tcp.write(&mut bytes, &vec![0; (to - from) as usize]).unwrap();
                bytes[4..6].copy_from_slice(&u16::to_be_bytes(id));
                copies.see(time, &segment(Link::Raw, &bytes, bytes.len() as u32).unwrap())
            });
            each.collect::<Vec<_>>()
        };
        let stamp = Some(5);
        // Put together at first; and cut at first, by a bridge.
        for (hops, copy) in [(63, SURE), (64, UNSURE)] {
            let cut =
                [(0, 0, 300, 64, stamp), (9, 0, 100, hops, stamp), (9, 100, 300, hops, stamp)];
            assert_eq!(again(&cut), [None, copy, copy]);
            let joined =
                [(0, 0, 100, 64, stamp), (9, 100, 300, 64, stamp), (9, 0, 300, hops, stamp)];
            assert_eq!(again(&joined), [None, None, copy]);
        }
        // Each segment of a tick before its copy.
        let turns = [(0, 0, 300, 64, stamp), (9, 0, 200, 63, stamp), (10, 300, 500, 64, stamp)];
        let turns = [&turns[..], &[(11, 200, 300, 63, stamp), (12, 300, 500, 63, stamp)]].concat();
        assert_eq!(again(&turns), [None, SURE, None, SURE, SURE]);
        // Without timestamps a router's alone, as a part may be sent again; with others than before never.
        let then = |first: Is, second: Is| again(&[first, second])[1];
        assert_eq!(then((0, 0, 300, 64, None), (9, 100, 200, 63, None)), SURE);
        assert_eq!(then((0, 0, 300, 64, None), (9, 100, 200, 64, None)), None);
        assert_eq!(then((0, 0, 300, 64, stamp), (9, 100, 200, 64, Some(6))), None);
        assert_eq!(then((0, 0, 300, 64, stamp), (201 * MS, 100, 200, 64, stamp)), None);
        assert_eq!(
            then((0, 0, 300, 64, stamp), (9, 200, 400, 63, stamp)),
            None,
            "more than there was"
        );
    }

    /// By a sender whose clock stands still: it counts its packets, so that these have identifications.
    #[test]
    fn what_was_sent_again_as_it_was_is_no_copy_though_its_timestamp_is_the_same() {
        // When, where the data begins and ends, identification.
        type Is = (i64, u32, u32, u16);
        let again = |segments: &[Is]| {
            let mut copies = Copies::default();
            let each = segments.iter().map(|&(time, from, to, id)| {
                let tcp = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 1, 1], 64);
                let stamp = [etherparse::TcpOptionElement::Timestamp(5, 7)];
                let tcp = tcp.tcp(443, 5000, from, 100).options(&stamp).unwrap();
                let mut bytes = Vec::new();
                tcp.write(&mut bytes, &vec![0; (to - from) as usize]).unwrap();
                bytes[4..6].copy_from_slice(&id.to_be_bytes());
                copies.see(time, &segment(Link::Raw, &bytes, bytes.len() as u32).unwrap())
            });
            each.collect::<Vec<_>>()
        };
        let sent = [(0, 0, 100, 1), (9, 100, 200, 2), (18, 200, 300, 3)];
        let then = |segment: Is| again(&[&sent[..], &[segment]].concat())[3];
        assert_eq!(then((20 * MS, 100, 200, 4)), None);
        assert_eq!(then((20 * MS, 100, 200, 2)), SURE, "the packet itself");
        assert_eq!(then((20 * MS, 100, 200, 0)), UNSURE, "no identification");
        // Put together, or cut: identifications tell nothing.
        assert_eq!(then((20 * MS, 0, 200, 1)), UNSURE);
        assert_eq!(then((20 * MS, 100, 150, 2)), UNSURE);
        // What was sent again may have copies, too.
        let twice = [&sent[..], &[(20 * MS, 100, 200, 4), (21 * MS, 100, 200, 4)]].concat();
        assert_eq!(again(&twice)[3..], [None, SURE]);
        // Segments that differ tell nothing of how any was.
        let differ = [(0, 0, 100, 1), (9, 100, 300, 2), (20 * MS, 0, 100, 3)];
        assert_eq!(again(&differ)[2], UNSURE);
    }

    #[test]
    fn what_was_sent_again_is_no_copy() {
        let sent_again = |first: Is, then: Is| again(&[first, then])[1];
        assert_eq!(sent_again((0, 1, 64, 8, None), (MS, 1, 64, 9, None)), None, "identification");
        assert_eq!(sent_again((0, 1, 64, 0, Some(5)), (MS, 1, 64, 0, Some(6))), None, "timestamp");
        assert_eq!(sent_again((0, 1, 64, 0, None), (4 * MS, 1, 64, 0, None)), None, "time");
        assert_eq!(sent_again((0, 1, 64, 8, None), (201 * MS, 1, 64, 8, None)), None, "time");
        assert_eq!(sent_again((0, 1, 64, 0, None), (MS, 1, 64, 0, None)), UNSURE);
        assert_eq!(sent_again((0, 1, 64, 0, Some(5)), (MS, 1, 64, 0, Some(5))), UNSURE);
    }

    #[test]
    fn with_other_addresses_it_is_translated_if_it_has_passed_a_router() {
        let of = again(&[(0, 1, 64, 8, None), (9_000, 2, 63, 8, None), (9_000, 3, 64, 8, None)]);
        let end = |client| (std::net::IpAddr::from([10, 0, 0, client]), 443);
        let to = (std::net::IpAddr::from([10, 0, 1, 1]), 5000);
        let translated = Some(Again::Translated(ends(end(1), to)));
        assert_eq!(of, [None, translated, None]);
        // On a host it has passed none: an identification and a timestamp show that it is the same.
        let local = |id, stamp| again(&[(0, 1, 64, id, stamp), (9_000, 2, 64, id, stamp)])[1];
        assert_eq!(local(8, Some(5)), translated);
        assert_eq!((local(0, Some(5)), local(8, None)), (None, None));
        // Not where it would have to go back.
        assert_eq!(again(&[(0, 1, 63, 8, Some(5)), (9_000, 2, 64, 8, Some(5))])[1], None);
    }
}
