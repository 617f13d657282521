//! What a flow asks of noq's transport.

use narrows_quic_sim::{MtuDiscoveryConfig, VarInt};
use noq::TransportConfig;

use crate::scenario::Flow;

/// Headers of IPv4 and UDP, bytes.
const HEADERS: u32 = 28;

/// noq's window of a stream, bytes. It must stay: noq closes a connection with more than 1024 gaps in
/// one stream.
const STREAM_WINDOW: u64 = 1_250_000;

/// The transport of either end of a connection, the largest of whose paths takes packets of `mtu` bytes.
pub fn transport(flow: &Flow, mtu: u32) -> TransportConfig {
    let mut transport = narrows_quic_sim::transport();
    let mut discovery = MtuDiscoveryConfig::default();
    discovery.upper_bound(u16::try_from(mtu - HEADERS).unwrap_or(u16::MAX));
    transport.mtu_discovery_config(Some(discovery));
    transport.send_window(flow.send_buffer);
    transport.receive_window(VarInt::from_u64(flow.recv_buffer).unwrap_or(VarInt::MAX));
    transport
}

/// Over how many streams its data goes: as many as fill the receive buffer; noq allows a hundred.
pub fn streams(flow: &Flow) -> usize {
    flow.recv_buffer.div_ceil(STREAM_WINDOW).clamp(4, 100) as usize
}
