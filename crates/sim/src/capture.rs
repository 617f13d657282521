//! Captures: packets as hosts send and get them and as links hand them on, with what their headers
//! hold besides what the simulation itself needs. How to write them down is not decided here.

use std::collections::BTreeMap;

use narrows_net::{Delivery, Ecn, Header, LinkId, Nanos, Seen};
use narrows_traffic::FlowId;

use crate::packet::{Body, Packet};

/// Where packets are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The host that sends the data: what leaves it and what reaches it, when it does.
    Sender(FlowId),
    /// The host that gets the data.
    Receiver(FlowId),
    /// The far end of a link: what the link did not drop, when it arrives there.
    Link(LinkId),
}

/// A packet as it passed a point.
#[derive(Clone, Copy, Debug)]
pub struct Captured {
    /// When it passed.
    pub time: Nanos,
    /// Where.
    pub point: Point,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Its path of the connection; 0 for UDP.
    pub path: usize,
    /// How many subflows were removed from that place before.
    pub generation: u8,
    /// It has options of MPTCP. A middlebox may take them on the way; captures show them as sent.
    pub multipath: bool,
    /// It is of a subflow that joined, not of the one that opened its connection.
    pub joins: bool,
    /// It travels from the flow's sender to its receiver, not back.
    pub forward: bool,
    /// Bytes on the wire, IPv4 header included.
    pub size: u32,
    /// IPv4's ECN field there (RFC 3168).
    pub ecn: Ecn,
    /// Number among the packets of its host on this path, as IPv4's identification; the same
    /// wherever the packet is seen.
    pub id: u16,
    /// When its host sent it: TSval (RFC 7323), in ticks.
    pub sent: Nanos,
    /// TSecr, in ticks: when the other end sent the packet that this one echoes. None in
    /// a SYN.
    pub echo: Option<Nanos>,
    /// What it carries.
    pub body: Body,
}

/// Which end of which subflow of which flow sends: place, generation, forward.
type End = (FlowId, u8, u8, bool);

/// What a packet's headers carry that the packet of the simulator does not.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    sent: Nanos,
    echo: Option<Nanos>,
    ecn: Ecn,
    multipath: bool,
    joins: bool,
}

/// A host's memory of one subflow.
#[derive(Debug, Default)]
struct Sent {
    next_id: u16,
    /// Of the latest packets, by identification.
    stamps: Vec<Stamp>,
    /// TS.Recent: the latest timestamp from the other end.
    recent: Option<Nanos>,
}

fn end(packet: &Packet, forward: bool) -> End {
    (packet.flow(), packet.path, packet.generation, forward)
}

/// Takes down what passes the points.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    points: Vec<Point>,
    ends: BTreeMap<End, Sent>,
    captured: Vec<Captured>,
}

impl Recorder {
    pub fn add(&mut self, point: Point) {
        self.points.push(point);
    }

    /// A host sends a packet, of MPTCP or not, of a subflow that joins or not. Returns the
    /// identification it gets.
    pub fn on_send(
        &mut self,
        now: Nanos,
        header: Header,
        (multipath, joins): (bool, bool),
        mut packet: Packet,
    ) -> u16 {
        let (flow, forward) = (packet.flow(), packet.body.is_forward());
        let end = self.ends.entry(end(&packet, forward)).or_default();
        packet.id = end.next_id;
        end.next_id = end.next_id.wrapping_add(1);
        let echo = match packet.body {
            Body::Syn { .. } | Body::Udp { .. } => None,
            Body::Ack(ack) => Some(ack.echo),
            Body::SynAck { echo, .. } => Some(echo),
            _ => end.recent,
        };
        let stamp = Stamp { sent: now, echo, ecn: header.ecn, multipath, joins };
        match end.stamps.get_mut(usize::from(packet.id)) {
            Some(old) => *old = stamp,
            None => end.stamps.push(stamp),
        }
        let host = if forward { Point::Sender(flow) } else { Point::Receiver(flow) };
        self.pass(now, host, header.size, false, &packet);
        packet.id
    }

    /// A host gets a packet.
    pub fn on_delivery(&mut self, delivery: &Delivery<Packet>) {
        let packet = &delivery.payload;
        let (flow, forward) = (packet.flow(), packet.body.is_forward());
        let Some(Stamp { sent, .. }) = self.stamp(packet) else { return };
        let end = self.ends.entry(end(packet, !forward)).or_default();
        end.recent = end.recent.max(Some(sent));
        let host = if forward { Point::Receiver(flow) } else { Point::Sender(flow) };
        self.pass(delivery.time, host, delivery.size, delivery.ce, packet);
    }

    /// A packet reached the far end of a link.
    pub fn on_link(&mut self, seen: &Seen<Packet>) {
        self.pass(seen.time, Point::Link(seen.link), seen.size, seen.ce, &seen.payload);
    }

    /// None for a packet that left before the recorder came.
    fn stamp(&self, packet: &Packet) -> Option<Stamp> {
        let end = self.ends.get(&end(packet, packet.body.is_forward()))?;
        end.stamps.get(usize::from(packet.id)).copied()
    }

    fn pass(&mut self, time: Nanos, point: Point, size: u32, ce: bool, packet: &Packet) {
        if !self.points.contains(&point) {
            return;
        }
        let Some(Stamp { sent, echo, ecn, multipath, joins }) = self.stamp(packet) else { return };
        self.captured.push(Captured {
            time,
            point,
            flow: packet.flow(),
            path: packet.path.into(),
            generation: packet.generation,
            multipath,
            joins,
            forward: packet.body.is_forward(),
            size,
            ecn: if ce { Ecn::Ce } else { ecn },
            id: packet.id,
            sent,
            echo,
            body: packet.body,
        });
    }

    /// What has passed since the last call, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Captured> + '_ {
        self.captured.drain(..)
    }
}
