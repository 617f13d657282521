//! The connection of an MPTCP subflow, from its handshake (RFC 8684; version 0: RFC 6824).

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::packet::Segment;

const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
const VERSION_0: u8 = 0;
const VERSION_1: u8 = 1;

/// What has been seen of a flow's MPTCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multipath {
    /// It has carried an option of MPTCP.
    pub seen: bool,
    /// The token of the host that was connected to.
    pub token: Option<u32>,
    /// The other host's, which a subflow in the other direction would name.
    pub own: Option<u32>,
}

impl Multipath {
    /// Reads a segment.
    pub fn see(&mut self, segment: &Segment) {
        let Some(option) = segment.mptcp else { return };
        self.seen = true;
        let (kind, version) = (option[0] >> 4, option[0] & 0x0f);
        let key = |at: usize| option.get(at..at + 8).map(|key| token(key, version));
        match (kind, version) {
            // The SYN has its host's key in version 0 and none in 1, its answer that of the host that
            // answers, all others have both.
            (MP_CAPABLE, VERSION_0 | VERSION_1) => match (segment.syn, segment.ack) {
                (true, None) => self.own = self.own.or(key(2)),
                (true, Some(_)) => self.token = self.token.or(key(2)),
                (false, _) => {
                    self.own = self.own.or(key(2));
                    self.token = self.token.or(key(10));
                }
            },
            (MP_JOIN, _) if segment.syn && segment.ack.is_none() => {
                let named = option.get(2..6).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
                self.token = self.token.or(named);
            }
            _ => {}
        }
    }
}

/// The token of a host's key: the first 32 bits of its hash (section 3.2), which is SHA-1 in version 0.
fn token(key: &[u8], version: u8) -> u32 {
    let first = |hash: &[u8]| u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]);
    match version {
        VERSION_0 => first(&Sha1::digest(key)),
        _ => first(&Sha256::digest(key)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment with an option; the rest says nothing.
    fn segment(syn: bool, ack: Option<u32>, option: &[u8]) -> Segment<'_> {
        let end = (std::net::IpAddr::from([10, 0, 0, 1]), 1);
        Segment {
            from: end,
            to: end,
            seq: 1,
            ack,
            syn,
            len: 0,
            id: 0,
            hops: 64,
            flags: 0,
            window: 0,
            stamps: None,
            sack: None,
            mptcp: Some(option),
            mss: None,
            cut: false,
        }
    }

    #[test]
    fn the_third_packet_has_the_keys_of_both() {
        for (version, of_zeros, of_ones) in
            [(1, 0xaf55_70f5, token(&[1; 8], 1)), (0, 0x05fe_4057, token(&[1; 8], 0))]
        {
            let option = [&[version, 0x81][..], &[1; 8], &[0; 8]].concat();
            let mut multipath = Multipath::default();
            multipath.see(&segment(false, Some(1), &option));
            assert_eq!((multipath.token, multipath.own), (Some(of_zeros), Some(of_ones)));
        }
    }

    #[test]
    fn in_version_0_the_syn_has_its_key_and_the_answer_the_others() {
        let mut multipath = Multipath::default();
        multipath.see(&segment(true, None, &[&[0, 0x81][..], &[1; 8]].concat()));
        assert_eq!((multipath.token, multipath.own), (None, Some(token(&[1; 8], 0))));
        multipath.see(&segment(true, Some(1), &[&[0, 0x81][..], &[0; 8]].concat()));
        assert_eq!(multipath.token, Some(0x05fe_4057));
        // In version 1 it has none.
        let mut multipath = Multipath::default();
        multipath.see(&segment(true, None, &[1, 0x81]));
        assert_eq!((multipath.token, multipath.own), (None, None));
    }

    #[test]
    fn a_token_is_the_beginning_of_the_hash() {
        // SHA-256 and SHA-1 of eight zeros begin with af5570f5 and 05fe4057.
        assert_eq!([token(&[0; 8], 1), token(&[0; 8], 0)], [0xaf55_70f5, 0x05fe_4057]);
    }
}
