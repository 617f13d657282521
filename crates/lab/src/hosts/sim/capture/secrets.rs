//! What two ends of a connection draw at random or derive from it: initial sequence numbers,
//! timestamp offsets, and MPTCP's keys, tokens and proofs. All are functions of the seed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// One end of one subflow.
#[derive(Clone, Copy, Debug)]
pub struct Port {
    /// Initial sequence number: the SYN's.
    pub isn: u32,
    /// What the timestamp clock shows at time 0.
    pub clock: u32,
    /// MP_JOIN's random number (RFC 8684, section 3.2).
    pub nonce: u32,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// MP_CAPABLE's key (RFC 8684, section 3.1).
    pub key: u64,
    /// What names the connection in a join: the first 32 bits of the key's SHA-256.
    pub token: u32,
    /// Initial data sequence number: the last 64 bits of the key's SHA-256.
    pub idsn: u64,
}

/// Both ends of one subflow, the data's sender first.
pub type Ports = [Port; 2];

/// Both ends of a connection, the data's sender first.
#[derive(Clone, Debug)]
pub struct Secrets {
    seed: u64,
    flow: u64,
    pub hosts: [Host; 2],
}

impl Secrets {
    pub fn new(seed: u64, flow: u64) -> Secrets {
        let host = |end| {
            let key = long(&draw([seed, flow, u64::MAX, end]), 0);
            let hash: [u8; 32] = Sha256::digest(key.to_be_bytes()).into();
            Host { key, token: word(&hash, 0), idsn: long(&hash, 24) }
        };
        Secrets { seed, flow, hosts: [host(0), host(1)] }
    }

    /// Both ends of a subflow, the `number`th of the connection.
    pub fn ports(&self, number: u64) -> Ports {
        [0, 1].map(|end| {
            let drawn = draw([self.seed, self.flow, number, end]);
            Port { isn: word(&drawn, 0), clock: word(&drawn, 4), nonce: word(&drawn, 8) }
        })
    }

    /// The proof that an end knows both keys: the HMAC of both nonces under both keys, its own
    /// first (RFC 8684, section 3.2). The receiver's SYN/ACK shows 8 bytes of it, the sender's
    /// third packet 20.
    pub fn proof(&self, ports: &Ports, end: usize) -> [u8; 32] {
        let mut key = [0; 16];
        key[..8].copy_from_slice(&self.hosts[end].key.to_be_bytes());
        key[8..].copy_from_slice(&self.hosts[1 - end].key.to_be_bytes());
        let mut hmac = Hmac::<Sha256>::new_from_slice(&key).expect("any length will do");
        hmac.update(&ports[end].nonce.to_be_bytes());
        hmac.update(&ports[1 - end].nonce.to_be_bytes());
        hmac.finalize().into_bytes().into()
    }
}

fn draw(numbers: [u64; 4]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for number in numbers {
        hash.update(number.to_be_bytes());
    }
    hash.finalize().into()
}

fn word(bytes: &[u8; 32], at: usize) -> u32 {
    (long(bytes, at) >> 32) as u32
}

fn long(bytes: &[u8; 32], at: usize) -> u64 {
    bytes[at..at + 8].iter().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector of Linux's net/mptcp/crypto_test.c: both keys, then both nonces, are ASCII digits.
    #[test]
    fn the_proof_is_linuxs() {
        let word = |text: &str| u32::from_be_bytes(text.as_bytes().try_into().unwrap());
        let key = u64::from_be_bytes(*b"0b0b0b0b");
        let mut secrets = Secrets::new(1, 1);
        let mut ports = secrets.ports(0);
        (secrets.hosts[0].key, secrets.hosts[1].key) = (key, key);
        (ports[0].nonce, ports[1].nonce) = (word("4869"), word("2054"));
        let proof: String =
            secrets.proof(&ports, 0).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(proof, "8385e24fb4235ac37556b6b886db106284a1da671699f46db1f235ec622dcafa");
        assert_ne!(secrets.proof(&ports, 0), secrets.proof(&ports, 1), "the nonces change places");
    }
}
