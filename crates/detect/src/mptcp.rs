//! The connection of an MPTCP subflow, from its handshake (RFC 8684).

use sha2::{Digest, Sha256};

use crate::packet::Segment;

const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
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
        let key = |at: usize| option.get(at..at + 8).map(token);
        match (option[0] >> 4, option[0] & 0x0f) {
            // The SYN has no key, its answer that of the host that answers, all others have both.
            (MP_CAPABLE, VERSION_1) if segment.syn && segment.ack.is_some() => {
                self.token = self.token.or(key(2));
            }
            (MP_CAPABLE, VERSION_1) if !segment.syn => {
                self.own = self.own.or(key(2));
                self.token = self.token.or(key(10));
            }
            (MP_JOIN, _) if segment.syn && segment.ack.is_none() => {
                let named = option.get(2..6).map(|b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
                self.token = self.token.or(named);
            }
            _ => {}
        }
    }
}

/// The token of a host's key: the first 32 bits of its hash (section 3.2).
fn token(key: &[u8]) -> u32 {
    let hash = Sha256::digest(key);
    u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_packet_has_the_keys_of_both() {
        let option = [&[0x01, 0x81][..], &[1; 8], &[0; 8]].concat();
        let end = (std::net::IpAddr::from([10, 0, 0, 1]), 1);
        let segment = Segment {
            from: end,
            to: end,
            seq: 1,
            ack: Some(1),
            syn: false,
            len: 0,
            stamps: None,
            sack: None,
            mptcp: Some(&option),
            mss: None,
            cut: false,
        };
        let mut multipath = Multipath::default();
        multipath.see(&segment);
        assert_eq!((multipath.token, multipath.own), (Some(0xaf55_70f5), Some(token(&[1; 8]))));
    }

    #[test]
    fn a_token_is_the_beginning_of_the_hash() {
        // SHA-256 of eight zeros begins with af5570f5.
        assert_eq!(token(&[0; 8]), 0xaf55_70f5);
    }
}
