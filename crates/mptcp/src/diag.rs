//! TCP and MPTCP sockets of the network namespace this thread is in, as the kernel's sock_diag
//! reports them (what `ss` reads). Needs no root for one's own namespace; before Linux 6.18 the kernel
//! distinguishes an MPTCP subflow from a plain TCP socket to CAP_NET_ADMIN only.

use crate::netlink::{self, Wanted};
use netlink_packet_core::{
    DecodeError, NlasIterator, parse_string, parse_u8, parse_u32, parse_u64,
};
use netlink_packet_sock_diag::inet::nlas::TcpInfoBuffer;
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseBuffer, InetResponseHeader, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{
    AF_INET, AF_INET6, INET_DIAG_CONG, INET_DIAG_INFO, INET_DIAG_SKMEMINFO, IPPROTO_TCP,
    SOCK_DIAG_BY_FAMILY,
};
use netlink_packet_utils::{Emitable, Parseable};
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

/// `struct tcp_info`; times in µs, rates in bytes/s.
pub use netlink_packet_sock_diag::inet::nlas::TcpInfo;

/// linux/in.h; too large for the request's byte, so it goes into an attribute.
const IPPROTO_MPTCP: u32 = 262;

// linux/inet_diag.h
const INET_DIAG_REQ_PROTOCOL: u16 = 3;
const INET_DIAG_ULP_INFO: u16 = 19;
const INET_DIAG_CGROUP_ID: u16 = 21;
const INET_ULP_INFO_NAME: u16 = 1;
const INET_ULP_INFO_MPTCP: u16 = 3;
/// linux/sock_diag.h; the attribute is an array of u32.
const SK_MEMINFO_SNDBUF: usize = 3;
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;

// linux/mptcp.h
const MPTCP_SUBFLOW_ATTR_TOKEN_REM: u16 = 1;
const MPTCP_SUBFLOW_ATTR_TOKEN_LOC: u16 = 2;
const MPTCP_SUBFLOW_ATTR_FLAGS: u16 = 8;
const MPTCP_SUBFLOW_ATTR_ID_REM: u16 = 9;
const MPTCP_SUBFLOW_ATTR_ID_LOC: u16 = 10;

/// A TCP socket: a subflow of an MPTCP connection, or plain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Socket {
    /// Where it stands in TCP's state diagram.
    pub state: State,
    /// Local address and port.
    pub local: SocketAddr,
    /// The peer's address and port.
    pub remote: SocketAddr,
    /// The interface it is bound to; 0: none, routing decides.
    pub interface: u32,
    /// The kernel's own number of the socket, never given twice.
    pub cookie: u64,
    /// The socket's file, 0 for a subflow that the kernel opened and no process holds.
    pub inode: u32,
    /// Its cgroup's id (the inode of the folder); 0: not reported.
    pub cgroup: u64,
    /// Its congestion control.
    pub control: String,
    /// Its send buffer now, bytes; 0: not reported.
    pub send_buffer: u32,
    /// What TCP knows of the path; a listener has none of worth.
    pub info: Option<TcpInfo>,
    /// Was it opened as MPTCP, be it a subflow, a listener or fallen back?
    pub mptcp: bool,
    /// The connection it is a subflow of, as far as the kernel reports.
    pub subflow: Option<Subflow>,
}

/// The inode of each connection's file, by the connection's token; 0: it is closing. A subflow has
/// that of its connection, or 0 while it is being opened and if the kernel opened it.
pub fn inodes(sockets: &[Socket]) -> HashMap<u32, u32> {
    let mut inodes: HashMap<u32, u32> = HashMap::new();
    for socket in sockets {
        if let Some(subflow) = socket.subflow {
            let inode = inodes.entry(subflow.token).or_default();
            *inode = socket.inode.max(*inode);
        }
    }
    inodes
}

/// What an MPTCP subflow knows of its connection (`tcp-ulp-mptcp` in `ss -ti`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subflow {
    /// The connection's token on this side.
    pub token: u32,
    /// The peer's token; of the first subflow 0.
    pub peer_token: u32,
    /// Id of the local address.
    pub local_id: u8,
    /// Id of the peer's address.
    pub remote_id: u8,
    /// Bits of [`flag`].
    pub flags: u32,
}

/// Flags of a subflow (`MPTCP_SUBFLOW_FLAG_*` in linux/mptcp.h).
pub mod flag {
    /// The peer speaks MPTCP on the first subflow.
    pub const CAPABLE_PEER: u32 = 1 << 0;
    /// The peer accepted the join.
    pub const JOIN_PEER: u32 = 1 << 2;
    /// This side asked for the join.
    pub const JOIN_HERE: u32 = 1 << 3;
    /// The peer wants it as backup.
    pub const BACKUP_PEER: u32 = 1 << 4;
    /// This side wants it as backup.
    pub const BACKUP_HERE: u32 = 1 << 5;
    /// The handshake of MPTCP is over.
    pub const ESTABLISHED: u32 = 1 << 6;
    /// The handshake of TCP is over.
    pub const CONNECTED: u32 = 1 << 7;
}

impl Subflow {
    /// The peer, or a middlebox, answered without MPTCP: it continues as plain TCP.
    pub fn fell_back(&self) -> bool {
        let spoken = flag::CAPABLE_PEER | flag::JOIN_PEER | flag::JOIN_HERE;
        self.flags & flag::CONNECTED != 0 && self.flags & spoken == 0
    }

    /// Does one of the sides want it for the time that the others fail only?
    pub fn is_backup(&self) -> bool {
        self.flags & (flag::BACKUP_HERE | flag::BACKUP_PEER) != 0
    }
}

/// TCP's states (`TCP_ESTABLISHED` to `TCP_NEW_SYN_RECV` in net/tcp_states.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)]
pub enum State {
    Established,
    SynSent,
    SynRecv,
    FinWait1,
    FinWait2,
    TimeWait,
    Close,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    Unknown,
}

impl State {
    fn of(number: u8) -> State {
        use State::*;
        const ALL: [State; 11] = [
            Established,
            SynSent,
            SynRecv,
            FinWait1,
            FinWait2,
            TimeWait,
            Close,
            CloseWait,
            LastAck,
            Listen,
            Closing,
        ];
        ALL.get(usize::from(number).wrapping_sub(1)).copied().unwrap_or(Unknown)
    }
}

/// An MPTCP connection, as the application's socket sees it (`ss -M`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Local address and port of the first subflow.
    pub local: SocketAddr,
    /// The peer's address and port of the first subflow.
    pub remote: SocketAddr,
    /// Its state, of TCP's.
    pub state: State,
    /// Its token on this side.
    pub token: u32,
    /// Subflows beside the first.
    pub extra_subflows: u8,
    /// How many subflows beside the first it may have.
    pub extra_subflows_max: u8,
    /// It goes on as plain TCP.
    pub fell_back: bool,
    /// Payload that went out again on another subflow, bytes; 0 before Linux 6.5, which counts it.
    pub retransmitted_bytes: u64,
}

/// All TCP sockets but those in TIME_WAIT, listeners included.
///
/// # Errors
/// The kernel has no sock_diag for TCP (`CONFIG_INET_DIAG`), or refused.
pub fn sockets() -> io::Result<Vec<Socket>> {
    let mut sockets = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let wanted = ExtensionFlags::INFO | ExtensionFlags::CONG | ExtensionFlags::SKMEMINFO;
        let states = StateFlags::all() - StateFlags::TIME_WAIT - StateFlags::CLOSE;
        let request = request(family, wanted, states);
        netlink::ask(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, Wanted::All, &request, |answer| {
            sockets.push(Socket::parse(answer)?);
            Ok(())
        })?;
    }
    Ok(sockets)
}

/// All MPTCP connections that applications hold open.
///
/// # Errors
/// The kernel has no sock_diag for MPTCP (`CONFIG_INET_MPTCP_DIAG`), or refused.
pub fn connections() -> io::Result<Vec<Connection>> {
    let mut connections = Vec::new();
    for family in [AF_INET, AF_INET6] {
        let states = StateFlags::all() - StateFlags::LISTEN - StateFlags::CLOSE;
        let mut request = request(family, ExtensionFlags::INFO, states);
        let protocol = IPPROTO_MPTCP.to_ne_bytes();
        request.extend(netlink::attribute(INET_DIAG_REQ_PROTOCOL, &protocol));
        netlink::ask(NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY, Wanted::All, &request, |answer| {
            connections.push(Connection::parse(answer)?);
            Ok(())
        })?;
    }
    Ok(connections)
}

fn request(family: u8, extensions: ExtensionFlags, states: StateFlags) -> Vec<u8> {
    let socket_id = if family == AF_INET { SocketId::new_v4() } else { SocketId::new_v6() };
    let protocol = IPPROTO_TCP;
    let request = InetRequest { family, protocol, extensions, states, socket_id };
    let mut bytes = vec![0; request.buffer_len()];
    request.emit(&mut bytes);
    bytes
}

/// `struct inet_diag_msg`.
fn header(answer: &[u8]) -> Result<InetResponseHeader, DecodeError> {
    let buffer = InetResponseBuffer::new_checked(answer);
    buffer.and_then(|buffer| InetResponseHeader::parse(&buffer)).map_err(cut_off)
}

fn cut_off(error: netlink_packet_utils::DecodeError) -> DecodeError {
    DecodeError::from(error.to_string())
}

fn addresses(id: &SocketId) -> (SocketAddr, SocketAddr) {
    // An IPv6 socket that talks to an IPv4 peer has its addresses mapped.
    let local = (id.source_address.to_canonical(), id.source_port);
    let remote = (id.destination_address.to_canonical(), id.destination_port);
    (local.into(), remote.into())
}

impl Socket {
    /// An answer of sock_diag: `struct inet_diag_msg` and its attributes.
    ///
    /// # Errors
    /// It is cut off.
    pub fn parse(answer: &[u8]) -> Result<Socket, DecodeError> {
        let header = header(answer)?;
        let (local, remote) = addresses(&header.socket_id);
        let mut socket = Socket {
            state: State::of(header.state),
            local,
            remote,
            interface: header.socket_id.interface_id,
            cookie: u64::from_ne_bytes(header.socket_id.cookie),
            inode: header.inode,
            cgroup: 0,
            control: String::new(),
            send_buffer: 0,
            info: None,
            mptcp: false,
            subflow: None,
        };
        for attribute in NlasIterator::new(&answer[MESSAGE..]) {
            let attribute = attribute?;
            let value = attribute.value();
            match attribute.kind() {
                INET_DIAG_CONG => socket.control = parse_string(value)?,
                // Older kernels report less; what is missing is zero.
                INET_DIAG_INFO => {
                    let info = TcpInfoBuffer::new(padded::<512>(value));
                    socket.info = Some(TcpInfo::parse(&info).map_err(cut_off)?);
                }
                INET_DIAG_SKMEMINFO => {
                    let send_buffer = value.get(SK_MEMINFO_SNDBUF * 4..).and_then(|v| v.get(..4));
                    socket.send_buffer = send_buffer.map_or(Ok(0), parse_u32)?;
                }
                INET_DIAG_CGROUP_ID => socket.cgroup = parse_u64(value)?,
                INET_DIAG_ULP_INFO => (socket.mptcp, socket.subflow) = parse_ulp(value)?,
                _ => {}
            }
        }
        Ok(socket)
    }
}

/// Is the protocol above TCP MPTCP, and what does it report of the connection?
fn parse_ulp(value: &[u8]) -> Result<(bool, Option<Subflow>), DecodeError> {
    let (mut mptcp, mut subflow) = (false, None);
    for attribute in NlasIterator::new(value) {
        let attribute = attribute?;
        match attribute.kind() {
            INET_ULP_INFO_NAME => mptcp = parse_string(attribute.value())? == "mptcp",
            INET_ULP_INFO_MPTCP => subflow = Some(Subflow::parse(attribute.value())?),
            _ => {}
        }
    }
    // A listener is reported to have a connection without a token.
    Ok((mptcp, subflow.filter(|subflow: &Subflow| subflow.token != 0)))
}

impl Subflow {
    fn parse(value: &[u8]) -> Result<Subflow, DecodeError> {
        let mut subflow = Subflow::default();
        for attribute in NlasIterator::new(value) {
            let attribute = attribute?;
            let value = attribute.value();
            match attribute.kind() {
                MPTCP_SUBFLOW_ATTR_TOKEN_LOC => subflow.token = parse_u32(value)?,
                MPTCP_SUBFLOW_ATTR_TOKEN_REM => subflow.peer_token = parse_u32(value)?,
                MPTCP_SUBFLOW_ATTR_ID_LOC => subflow.local_id = parse_u8(value)?,
                MPTCP_SUBFLOW_ATTR_ID_REM => subflow.remote_id = parse_u8(value)?,
                MPTCP_SUBFLOW_ATTR_FLAGS => subflow.flags = parse_u32(value)?,
                _ => {}
            }
        }
        Ok(subflow)
    }
}

impl Connection {
    /// An answer of sock_diag for MPTCP: `struct inet_diag_msg` and its attributes.
    ///
    /// # Errors
    /// It is cut off.
    pub fn parse(answer: &[u8]) -> Result<Connection, DecodeError> {
        let header = header(answer)?;
        let (local, remote) = addresses(&header.socket_id);
        // struct mptcp_info: eight bytes, of them six counters, then flags and token; from 48 on the
        // bytes sent again.
        let mut info = [0; 56];
        for attribute in NlasIterator::new(&answer[MESSAGE..]) {
            let attribute = attribute?;
            if attribute.kind() == INET_DIAG_INFO {
                info = padded(attribute.value());
            }
        }
        let word = |at: usize| u32::from_ne_bytes(info[at..at + 4].try_into().unwrap());
        Ok(Connection {
            local,
            remote,
            state: State::of(header.state),
            token: word(12),
            extra_subflows: info[0],
            extra_subflows_max: info[3],
            fell_back: word(8) & 1 != 0,
            retransmitted_bytes: u64::from_ne_bytes(info[48..56].try_into().unwrap()),
        })
    }
}

/// The first N bytes, followed by zeros where there are fewer.
fn padded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    let known = bytes.len().min(N);
    padded[..known].copy_from_slice(&bytes[..known]);
    padded
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_testkit::recorded_netlink as answer;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_joined_subflow_knows_its_connection() {
        let socket = Socket::parse(&answer("joined")).unwrap();
        assert_eq!((socket.state, socket.interface), (State::Established, 3));
        assert_eq!(socket.local, address("10.77.2.1:37281"));
        assert_eq!(socket.remote, address("10.77.1.2:5000"));
        assert_eq!(socket.control, "bbr");
        assert!(socket.mptcp);
        let subflow = socket.subflow.unwrap();
        assert_eq!((subflow.token, subflow.peer_token), (0xd984_4442, 0x6692_f9d0));
        assert_eq!((subflow.local_id, subflow.remote_id), (1, 0));
        assert_eq!(
            subflow.flags,
            flag::JOIN_PEER | flag::JOIN_HERE | flag::ESTABLISHED | flag::CONNECTED
        );
        assert!(!subflow.fell_back() && !subflow.is_backup());
        let info = socket.info.unwrap();
        assert_eq!((info.snd_mss, info.snd_ssthresh), (1448, 142));
    }

    #[test]
    fn a_first_subflow_and_the_connection_share_a_token() {
        let first = Socket::parse(&answer("first")).unwrap().subflow.unwrap();
        assert_eq!((first.peer_token, first.local_id, first.remote_id), (0, 0, 0));
        assert!(!first.fell_back());
        let joined = Socket::parse(&answer("joined")).unwrap().subflow.unwrap();
        let connection = Connection::parse(&answer("connection")).unwrap();
        assert_eq!(connection.token, joined.token);
        assert_eq!(connection.remote, address("10.77.1.2:5000"));
        assert_eq!((connection.extra_subflows, connection.extra_subflows_max), (1, 4));
        assert!(!connection.fell_back);
    }

    #[test]
    fn who_fell_back_to_tcp_is_seen_on_the_subflow_and_on_the_connection() {
        let socket = Socket::parse(&answer("fallen-back")).unwrap();
        assert!(socket.mptcp && socket.subflow.unwrap().fell_back());
        let connection = Connection::parse(&answer("connection-fallen-back")).unwrap();
        assert!(connection.fell_back);
        assert_eq!(connection.token, socket.subflow.unwrap().token);
    }

    #[test]
    fn a_listener_that_speaks_mptcp_differs_from_a_plain_one() {
        let listener = Socket::parse(&answer("listener")).unwrap();
        assert_eq!((listener.state, listener.mptcp), (State::Listen, true));
        assert_eq!(listener.subflow, None);
        let plain = Socket::parse(&answer("plain-listener")).unwrap();
        assert_eq!((plain.state, plain.mptcp), (State::Listen, false));
        assert_eq!(plain.local, address("10.77.1.2:5001"));
    }

    #[test]
    fn no_answer_however_short_makes_the_parsers_fall() {
        for name in ["joined", "connection", "listener"] {
            let answer = answer(name);
            for end in 0..answer.len() {
                let _ = Socket::parse(&answer[..end]);
                let _ = Connection::parse(&answer[..end]);
            }
        }
    }
}
