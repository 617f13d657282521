//! The connection of an MPTCP subflow, from its handshake (RFC 8684; version 0: RFC 6824).

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::packet::Segment;

const MP_CAPABLE: u8 = 0;
const MP_JOIN: u8 = 1;
const DSS: u8 = 2;
const MP_FAIL: u8 = 6;
const VERSION_0: u8 = 0;
const VERSION_1: u8 = 1;

/// Flags of a DSS (section 3.3): it has an acknowledgement, which is of 8 bytes; a mapping, whose sequence
/// number is of 8 bytes.
const DATA_ACK: u8 = 1;
const LONG_ACK: u8 = 2;
const MAPPING: u8 = 4;
const LONG_SEQUENCE: u8 = 8;

/// So many segments of data in a row without an option of MPTCP are plain TCP: one mapping covers 65,535 bytes
/// at most, 123 segments of the least size that is usual.
const SILENT: u64 = 256;

/// What has been seen of a flow's MPTCP, since its newest connection began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Multipath {
    /// A SYN has asked for it, and who answered has agreed or not.
    asked: bool,
    agreed: Option<bool>,
    /// A segment that is no SYN had an option of it.
    spoken: bool,
    /// Segments of data since the last that had one.
    silent: u64,
    /// It was given up: MP_FAIL, or a mapping without an end (section 3.7).
    failed: bool,
    /// The token of the host that was connected to.
    pub token: Option<u32>,
    /// The other host's, which a subflow in the other direction would name.
    pub own: Option<u32>,
}

impl Multipath {
    /// Reads a segment.
    pub fn see(&mut self, segment: &Segment) {
        if segment.syn && segment.ack.is_none() {
            *self = Multipath::default();
        }
        let Some(option) = segment.mptcp else {
            // Not if the capture may have cut it off.
            if (self.asked || self.spoken) && !segment.cut {
                let answers = segment.syn && segment.ack.is_some();
                self.agreed = if answers { Some(false) } else { self.agreed };
                self.silent += u64::from(segment.len > 0);
            }
            return;
        };
        let (kind, version) = (option[0] >> 4, option[0] & 0x0f);
        match (segment.syn, segment.ack) {
            (true, None) => self.asked = true,
            (true, Some(_)) => self.agreed = Some(true),
            (false, _) => (self.spoken, self.silent) = (true, 0),
        }
        self.failed |= kind == MP_FAIL || (kind == DSS && is_endless(option));
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

    /// Is it a subflow of MPTCP, also of a connection that was one? Not where the answer to a SYN that asked
    /// for it has no option of it.
    pub fn is(&self) -> bool {
        self.agreed.unwrap_or(self.asked && self.silent < SILENT) || self.spoken
    }

    /// It has gone on as plain TCP.
    pub fn fell_back(&self) -> bool {
        self.is() && (self.failed || self.silent >= SILENT)
    }
}

/// Has a DSS the mapping of all that follows, of length 0?
fn is_endless(option: &[u8]) -> bool {
    let Some(flags) = option.get(1) else { return false };
    let has = |flag: u8| flags & flag != 0;
    let ack = if !has(DATA_ACK) {
        0
    } else if has(LONG_ACK) {
        8
    } else {
        4
    };
    let sequence = if has(LONG_SEQUENCE) { 8 } else { 4 };
    // Behind its two first bytes, the acknowledgement, the sequence number and that of the subflow.
    let length = 2 + ack + sequence + 4;
    has(MAPPING) && option.get(length..length + 2) == Some(&[0, 0])
}

/// What the user should know of the MPTCP of flows, by their names.
pub fn notes<'a>(flows: impl Iterator<Item = (&'a Multipath, &'a str)> + Clone) -> Vec<String> {
    let of = |is: &dyn Fn(&Multipath) -> bool| {
        let names: Vec<&str> =
            flows.clone().filter(|(of, _)| is(of)).map(|(_, name)| name).collect();
        let more = match names.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        names.first().map(|name| format!("{name}{more}"))
    };
    let unknown = of(&|of| of.is() && of.token.is_none());
    let unknown = unknown.map(|names| {
        format!("of which connection is not known, as its handshake is not in the capture: {names}")
    });
    let fallen = of(&Multipath::fell_back);
    let fallen = fallen.map(|names| format!("went on as plain TCP (fallback of MPTCP): {names}"));
    unknown.into_iter().chain(fallen).collect()
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
    fn a_mapping_of_length_0_has_no_end() {
        let dss = |flags: u8, before: usize, length: u8| {
            is_endless(&[&[DSS << 4, flags][..], &vec![9; before], &[0, length, 7, 7]].concat())
        };
        for (flags, before) in [(4, 8), (5, 12), (7, 16), (12, 12), (13, 16), (15, 20)] {
            assert!(dss(flags, before, 0) && !dss(flags, before, 9), "{flags}");
        }
        // An acknowledgement alone, and one that was cut.
        assert!(!dss(1, 4, 0) && !is_endless(&[DSS << 4, 4]) && !is_endless(&[DSS << 4]));
    }

    #[test]
    fn a_token_is_the_beginning_of_the_hash() {
        // SHA-256 and SHA-1 of eight zeros begin with af5570f5 and 05fe4057.
        assert_eq!([token(&[0; 8], 1), token(&[0; 8], 0)], [0xaf55_70f5, 0x05fe_4057]);
    }
}
