//! A policer: what exceeds the contract is dropped at the entry.

use crate::{Nanos, SECOND};

/// A token bucket at the entry of a link: packets that find too few tokens are dropped, nothing
/// waits. In any time t at most `rate` t / 8 + `burst` bytes pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policer {
    /// Rate in bit/s at which the bucket fills, in 1..=10^15.
    pub rate: u64,
    /// Size of the bucket in bytes, full at the start; at least the link's MTU.
    pub burst: u64,
}

/// Tokens of one bit in units of bit/s times ns.
const BIT: u128 = SECOND as u128;

/// A policer's state.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    policer: Policer,
    /// In units of 1 / [`BIT`] bit: exact.
    tokens: u128,
    filled: Nanos,
}

impl Bucket {
    pub fn new(policer: Policer) -> Bucket {
        Bucket { policer, tokens: u128::from(policer.burst) * 8 * BIT, filled: 0 }
    }

    /// Whether a packet of `size` bytes may pass at `now`; takes its tokens if so.
    pub fn admits(&mut self, now: Nanos, size: u32) -> bool {
        let full = u128::from(self.policer.burst) * 8 * BIT;
        let gained = u128::from(now - self.filled) * u128::from(self.policer.rate);
        self.tokens = full.min(self.tokens + gained);
        self.filled = now;
        match self.tokens.checked_sub(u128::from(size) * 8 * BIT) {
            Some(rest) => {
                self.tokens = rest;
                true
            }
            None => false,
        }
    }
}
