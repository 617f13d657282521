//! Packets as a capture has them, made by hand.

#![allow(dead_code)]

use std::net::Ipv4Addr;

use etherparse::{PacketBuilder, TcpOptionElement, TcpOptions};
use narrows_detect::{Error, Input, Limits, Observation, Source};

/// Bytes of data in a segment.
pub const MSS: u32 = 1000;

/// A TCP packet, before it has its place in a file.
#[derive(Clone, Debug)]
pub struct Tcp {
    /// Nanoseconds.
    pub time: i64,
    /// From the client, 10.0.0.x, to the server, 10.0.1.1, or back.
    pub forward: bool,
    /// The client's last byte, and its port.
    pub client: u8,
    pub seq: u32,
    pub ack: u32,
    pub len: u32,
    pub stamps: Option<(u32, u32)>,
    pub sack: Option<(u32, u32)>,
    /// Of a SYN: the maximum segment size that it announces.
    pub mss: Option<u16>,
    /// A SYN without an acknowledgement.
    pub asks: bool,
    /// MPTCP's option, from its subtype on.
    pub mptcp: Vec<u8>,
}

impl Tcp {
    /// Data of the client.
    pub fn data(time: i64, client: u8, seq: u32, stamps: Option<(u32, u32)>) -> Tcp {
        Tcp { forward: true, seq, ack: 1, len: MSS, ..Tcp::ack(time, client, 1, stamps) }
    }

    /// The server's acknowledgement.
    pub fn ack(time: i64, client: u8, ack: u32, stamps: Option<(u32, u32)>) -> Tcp {
        Tcp {
            time,
            forward: false,
            client,
            seq: 1,
            ack,
            len: 0,
            stamps,
            sack: None,
            mss: None,
            asks: false,
            mptcp: Vec::new(),
        }
    }

    /// From the IP header on, without the data; and its length on the wire.
    pub fn packet(&self) -> (Vec<u8>, u32) {
        let ends = [
            (Ipv4Addr::new(10, 0, 0, self.client), 1000 + u16::from(self.client)),
            (Ipv4Addr::new(10, 0, 1, 1), 443),
        ];
        let [from, to] = if self.forward { ends } else { [ends[1], ends[0]] };
        let mut options = Vec::new();
        if let Some((stamp, echo)) = self.stamps {
            options.push(TcpOptionElement::Timestamp(stamp, echo));
        }
        if let Some(block) = self.sack {
            options.push(TcpOptionElement::SelectiveAcknowledgement(block, [None; 3]));
        }
        options.extend(self.mss.map(TcpOptionElement::MaximumSegmentSize));
        // Before the others, whose end may be one of all.
        let mut raw = Vec::new();
        if !self.mptcp.is_empty() {
            raw.extend([30, 2 + self.mptcp.len() as u8]);
            raw.extend(&self.mptcp);
            raw.resize(raw.len().next_multiple_of(4), 1);
        }
        raw.extend(TcpOptions::try_from_elements(&options).unwrap().as_slice());
        let mut builder = PacketBuilder::ipv4(from.0.octets(), to.0.octets(), 64)
            .tcp(from.1, to.1, self.seq, 1000);
        if !self.asks {
            builder = builder.ack(self.ack);
        }
        if self.mss.is_some() || self.asks {
            builder = builder.syn();
        }
        let builder = builder.options_raw(&raw).unwrap();
        let mut bytes = Vec::new();
        builder.write(&mut bytes, &vec![0; self.len as usize]).unwrap();
        let wire = bytes.len() as u32;
        bytes.truncate(bytes.len() - self.len as usize);
        (bytes, wire)
    }
}

/// A packet in a file: when, what was kept, bytes on the wire.
pub type Record = (i64, Vec<u8>, u32);

/// Packets in the order of time.
pub fn records(packets: &[Tcp]) -> Vec<Record> {
    let mut sorted = packets.to_vec();
    sorted.sort_by_key(|packet| packet.time);
    let record = |packet: &Tcp| {
        let (data, wire) = packet.packet();
        (packet.time, data, wire)
    };
    sorted.iter().map(record).collect()
}

/// A pcap file with nanoseconds and without link headers; packets in the order of time.
pub fn pcap(packets: &[Tcp]) -> Vec<u8> {
    file(101, &records(packets))
}

/// A pcap file with nanoseconds, of a link type.
pub fn file(link: u32, records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, 65_535, link] {
        bytes.extend(u32::to_le_bytes(word));
    }
    for (time, data, wire) in records {
        let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
        for word in [seconds as u32, rest as u32, data.len() as u32, *wire] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(data);
    }
    bytes
}

/// What a source tells of its flows.
pub fn observations(source: &Source) -> Vec<Observation> {
    let mut all = Vec::new();
    source
        .measure::<Error>(|observation| {
            all.push(observation);
            Ok(())
        })
        .unwrap();
    all
}

/// A file of these bytes, with up to 16 flows.
pub fn open(bytes: Vec<u8>) -> Source {
    Source::open(Input::bytes("test", bytes), None, Limits::default()).unwrap()
}
