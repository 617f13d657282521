//! What a flow asks of noq's transport.

use narrows_quic::Coupling;
use narrows_quic_sim::{MtuDiscoveryConfig, VarInt};
use noq::TransportConfig;

use crate::scenario::{Flow, Link};

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u32 = 28;

/// noq's window of a stream, bytes. It must stay: noq closes a connection with more than 1024 gaps in
/// one stream.
const STREAM_WINDOW: u64 = 1_250_000;

/// What the sender holds until it is acknowledged, and the receiver until it is in order, bytes at most.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    send: u64,
    recv: u64,
}

impl Buffers {
    /// Those of a flow. Under a model law default ones are as large as they may grow in the simulator
    /// under one: BBR has two windows and more in flight, and would take the buffers for its application.
    pub fn of(flow: &Flow, links: &[Link], coupling: &Coupling) -> Buffers {
        let model = coupling.control().law.is_model();
        let grown = |most: Option<u64>, buffer| most.filter(|_| model).unwrap_or(buffer);
        Buffers {
            send: grown(flow.send_buffer_max(links), flow.send_buffer),
            recv: grown(flow.recv_buffer_max(links), flow.recv_buffer),
        }
    }

    /// Over how many streams data goes: as many as fill the receive buffer; noq allows a hundred.
    pub fn streams(self) -> usize {
        self.recv.div_ceil(STREAM_WINDOW).clamp(4, 100) as usize
    }
}

/// The transport of either end of a connection, the largest of whose paths takes packets of `mtu` bytes.
pub fn transport(buffers: Buffers, mtu: u32) -> TransportConfig {
    let mut transport = narrows_quic_sim::transport();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(u16::try_from(mtu - HEADERS).unwrap_or(u16::MAX));
    transport.mtu_discovery_config(Some(discovery));
    transport.send_window(buffers.send);
    transport.receive_window(VarInt::from_u64(buffers.recv).unwrap_or(VarInt::MAX));
    transport
}
