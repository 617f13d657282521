//! What the packets of one flow have in common: its addresses, its secrets, its TCP's constants.

use std::net::Ipv4Addr;

use narrows_net::Nanos;
use narrows_sim::Timestamps;

use super::secrets::Secrets;
use crate::scenario::{Flow, FlowKind, Scenario};

/// Index of the data's sender among the two ends.
pub const FROM_SENDER: usize = 0;
/// Index of the data's receiver.
pub const FROM_RECEIVER: usize = 1;

/// The largest window scale, RFC 7323, section 2.3.
const MAX_SCALE: u8 = 14;
/// The sender's scale: it gets no data, so its window is Linux's first and stays.
const SENDER_SCALE: u8 = 7;
/// Window of a SYN, which is never scaled: Linux's with an MSS of 1460.
const SYN_WINDOW: u16 = 64_240;
/// IPv4 and TCP header without options, which the MSS option does not count (RFC 6691).
const PLAIN_HEADERS: u32 = 40;

/// One flow on the wire.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// From 1, in the order of the scenario.
    number: u16,
    pub multipath: bool,
    /// MSS option of each path.
    pub mss: Vec<u16>,
    /// Length of a timestamp's tick.
    pub tick: Nanos,
    /// The receiver's window scale.
    scale: u8,
    pub secrets: Secrets,
}

impl Wiring {
    pub fn new(scenario: &Scenario, seed: u64, number: u16, flow: &Flow) -> Wiring {
        let mtu = |path: &crate::FlowPath| {
            let mtus = path.links.iter().map(|&link| scenario.links[link].config.mtu);
            mtus.min().unwrap_or(u16::MAX.into())
        };
        let mss = |path| mtu(path).saturating_sub(PLAIN_HEADERS) as u16;
        let scale = |scale: &u8| flow.recv_buffer >> scale <= u16::MAX.into();
        Wiring {
            number,
            multipath: flow.kind == FlowKind::Mptcp,
            mss: flow.paths.iter().map(mss).collect(),
            tick: Timestamps::default().tick(),
            scale: (0..MAX_SCALE).find(scale).unwrap_or(MAX_SCALE),
            secrets: Secrets::new(seed, number.into(), flow.paths.len()),
        }
    }

    /// Address and port of an end of a path: 10.P.x.y:4000P of the sender, 10.(100+P).x.y:5001 of
    /// the receiver, with P from 1 and x.y the flow's number.
    pub fn address(&self, path: usize, end: usize) -> (Ipv4Addr, u16) {
        let [high, low] = self.number.to_be_bytes();
        let path = path as u8 + 1;
        match end {
            FROM_SENDER => (Ipv4Addr::new(10, path, high, low), 40_000 + u16::from(path)),
            _ => (Ipv4Addr::new(10, 100 + path, high, low), 5001),
        }
    }

    /// A byte's data sequence number: MP_CAPABLE's SYN has the first (RFC 8684, section 3.3.1).
    pub fn data_sequence(&self, end: usize, byte: u64) -> u64 {
        self.secrets.hosts[end].idsn.wrapping_add(1).wrapping_add(byte)
    }

    /// The window scale that the sender (`forward`) or the receiver announces.
    pub fn window_scale(&self, forward: bool) -> u8 {
        if forward { SENDER_SCALE } else { self.scale }
    }

    /// The window field of the receiver for `room` bytes.
    pub fn receive_window(&self, room: u64) -> u16 {
        (room >> self.scale).min(u16::MAX.into()) as u16
    }

    /// The window field of the sender.
    pub fn send_window(&self, syn: bool) -> u16 {
        if syn { SYN_WINDOW } else { SYN_WINDOW >> SENDER_SCALE }
    }
}
