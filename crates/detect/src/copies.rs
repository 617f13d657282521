//! Packets that are in a capture more than once: of `any` over a bond, a bridge or a router, or of both
//! ports of a switch.

use std::hash::BuildHasher;
use std::net::IpAddr;

use foldhash::fast::FixedState;

use crate::packet::{End, Segment};

/// Packets that are remembered, of all flows: 60,000 packets/s for [`SOON`], in 512 kB.
const SEEN: usize = 1 << 14;

/// A copy comes no later, nanoseconds. It may wait in a router's queue; 200 ms is the shortest
/// retransmission timeout of Linux.
const SOON: i64 = 200_000_000;

/// Nor later than this, if neither IP's identification nor a timestamp tells a retransmission from it,
/// nanoseconds.
const AT_ONCE: i64 = 3_000_000;

/// A segment that was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// The same packet. It is not `sure` where a sender repeats a packet to the byte: without an
    /// identification, within a tick of its timestamps.
    Copy { sure: bool },
    /// With other addresses, after it passed a router or its host translated them: what [`ends`] gives for
    /// those before.
    Translated(u64),
}

/// What has passed of late.
#[derive(Debug)]
pub struct Copies(Vec<Seen>);

#[derive(Clone, Copy, Debug)]
struct Seen {
    segment: u64,
    ends: u64,
    time: i64,
    hops: u8,
}

impl Default for Copies {
    fn default() -> Copies {
        Copies(vec![Seen { segment: 0, ends: 0, time: i64::MIN, hops: 0 }; SEEN])
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
        let seen = &mut self.0[now.segment as usize % SEEN];
        let told_apart = segment.id != 0 || segment.stamps.is_some();
        let soon = if told_apart { SOON } else { AT_ONCE };
        if seen.segment == now.segment && time.abs_diff(seen.time) <= soon as u64 {
            if seen.ends == now.ends {
                return Some(Again::Copy { sure: segment.id != 0 });
            }
            // Translated on a host it has passed no router: no other packet has all that it has.
            let local = segment.id != 0 && segment.stamps.is_some() && now.hops == seen.hops;
            if now.hops < seen.hops || local {
                return Some(Again::Translated(seen.ends));
            }
        }
        *seen = now;
        None
    }
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
