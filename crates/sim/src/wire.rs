//! How an end point sends: the network at one moment.

use narrows_net::{Ecn, Header, Nanos, Network, RouteId};

use crate::capture::Recorder;
use crate::packet::{Body, Media, Packet, Payload, Segment};

/// The network as one flow sees it at one moment.
pub(crate) struct Wire<'a> {
    pub now: Nanos,
    pub flow: u32,
    /// Headers of MPTCP instead of TCP.
    pub multipath: bool,
    /// Generation of each path, a byte each.
    pub generations: u64,
    /// Path and generation of the subflow that opened the connection; the others join.
    pub first: (u8, u8),
    pub network: &'a mut Network<Packet>,
    pub recorder: Option<&'a mut Recorder>,
}

impl Wire<'_> {
    /// Sends a packet.
    // Inlined, the parts of the packet go straight to their place in the network.
    #[inline(always)]
    pub fn send(&mut self, route: RouteId, path: usize, body: Body) {
        let generation = self.generations.to_le_bytes()[path];
        let joins = self.first != (path as u8, generation);
        let size = body.size(self.multipath, joins);
        // Eight paths and a bit: connections and UDP flows are numbered apart.
        let udp = u32::from(matches!(body, Body::Udp { .. }));
        let ecn = match body {
            Body::Data(Segment { ecn, .. }) => ecn,
            Body::Udp { payload: Payload::Media(Media { ecn: true, .. }), .. } => Ecn::Ect,
            _ => Ecn::NotEct,
        };
        let header = Header { size, flow: self.flow << 4 | udp << 3 | path as u32, ecn };
        let mut packet = Packet { flow: self.flow, path: path as u8, generation, id: 0, body };
        if let Some(recorder) = &mut self.recorder {
            let kind = (self.multipath, joins);
            packet.id = recorder.on_send(self.now, header, kind, packet);
        }
        self.network.enqueue(self.now, route, header, packet);
    }
}
