//! What the packets of one flow have in common: its addresses, its secrets, its TCP's constants.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use narrows_laws::MAX_PATHS;
use narrows_sim::capture::Captured;
use narrows_traffic::TcpConfig;

use super::secrets::{Ports, Secrets};
use crate::scenario::{Flow, Scenario};

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
    /// MSS option of each path.
    mss: Vec<u16>,
    /// Which paths are joined as backup.
    backup: Vec<bool>,
    /// Of the connection's ends; UDP has none.
    pub tcp: TcpConfig,
    /// The receiver's window scale.
    scale: u8,
    pub secrets: Secrets,
    /// The subflows that have been seen.
    subflows: BTreeMap<(usize, u8), Ports>,
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
            mss: flow.paths.iter().map(mss).collect(),
            backup: flow.paths.iter().map(|path| path.backup).collect(),
            tcp: TcpConfig::default(),
            scale: (0..MAX_SCALE).find(scale).unwrap_or(MAX_SCALE),
            secrets: Secrets::new(seed, number.into()),
            subflows: BTreeMap::new(),
        }
    }

    /// The ends of a packet's subflow.
    pub fn ports(&mut self, packet: &Captured) -> Ports {
        let number = packet.path as u64 + MAX_PATHS as u64 * u64::from(packet.generation);
        let place = (packet.path, packet.generation);
        *self.subflows.entry(place).or_insert_with(|| self.secrets.ports(number))
    }

    /// Addresses and ports of a packet's two ends: 10.P.x.y of the sender, 10.(100+P).x.y of the
    /// receiver, with P the number of the path from 1 and x.y that of the flow. The sender's port
    /// is another for each subflow, from 40001; the receiver's is 5001.
    pub fn addresses(&self, packet: &Captured) -> [(Ipv4Addr, u16); 2] {
        let [high, low] = self.number.to_be_bytes();
        let path = self.path(packet) as u8 + 1;
        let subflow = packet.path as u16 + MAX_PATHS as u16 * u16::from(packet.generation);
        [
            (Ipv4Addr::new(10, path, high, low), 40_001 + subflow),
            (Ipv4Addr::new(10, 100 + path, high, low), 5001),
        ]
    }

    /// The path of the scenario that a packet takes: subflows beyond are on the last (ndiffports).
    pub fn path(&self, packet: &Captured) -> usize {
        packet.path.min(self.mss.len() - 1)
    }

    /// A packet's path is joined as backup.
    pub fn is_backup(&self, packet: &Captured) -> bool {
        self.backup[self.path(packet)]
    }

    /// MSS option of a packet's path.
    pub fn mss(&self, packet: &Captured) -> u16 {
        self.mss[self.path(packet)]
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
