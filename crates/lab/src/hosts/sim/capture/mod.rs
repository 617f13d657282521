//! Captures of a simulation, for Wireshark and similar tools.
//!
//! The simulator reports what a packet carries ([`narrows_sim::capture`]); here it gets addresses,
//! sequence numbers that wrap, options and checksums. Two runs with the same seed give the same
//! bytes.

mod options;
mod packet;
mod secrets;
mod wiring;

use std::collections::BTreeMap;

use narrows_net::LinkId;
use narrows_sim::Sim;
use narrows_sim::capture::{Captured, Point};
use narrows_traffic::FlowId;

use crate::Error;
use crate::capture::{CaptureFile, CaptureRequest, Part, open, parts};
use crate::scenario::Scenario;
use narrows_traffic::Opener;
use wiring::Wiring;

/// Captures of a simulation, being written.
pub struct Capture {
    files: Vec<CaptureFile>,
    /// The scenario's flows on the wire.
    wirings: Vec<Wiring>,
    /// Which of them a connection or UDP flow of the simulator is.
    numbers: BTreeMap<FlowId, usize>,
    /// Where each file's packets come from, once the simulation is built.
    points: Vec<Point>,
}

impl Capture {
    /// Headers of a packet at most: IPv4, TCP, and TCP's options.
    const HEADERS: u32 = 80;

    /// Opens the files of `request`.
    ///
    /// # Errors
    /// A name that is neither flow nor link, more flows than there are addresses, or a file that
    /// cannot be written.
    pub fn new(scenario: &Scenario, seed: u64, request: CaptureRequest) -> Result<Capture, Error> {
        let numbered = |(index, flow)| {
            let number = u16::try_from(index + 1).ok()?;
            Some(Wiring::new(scenario, seed, number, flow))
        };
        let wirings: Option<Vec<_>> = scenario.flows.iter().enumerate().map(numbered).collect();
        let wirings = wirings.ok_or_else(|| {
            let message =
                format!("{} flows; captures have addresses for {}", scenario.flows.len(), u16::MAX);
            Error::input("--pcap", message)
        })?;
        if let Some(link) = scenario.links.iter().find(|link| link.config.mtu > u16::MAX.into()) {
            let message =
                format!("links.{}.mtu: IPv4 packets have {} B at most", link.config.name, u16::MAX);
            return Err(Error::input("--pcap", message));
        }
        // A captured packet's direction is known by what it is.
        let download = scenario.flows.iter().find(|flow| flow.tcp.opener == Opener::Receiver);
        if let Some(flow) = download {
            let message = format!(
                "flow \"{}\" has tcp.opener = \"receiver\"; expected \"sender\" of all flows",
                flow.name
            );
            return Err(Error::input("--pcap", message));
        }
        let CaptureRequest { names, snaplen, output } = request;
        let snaplen = snaplen.unwrap_or(Self::HEADERS);
        let files = open(scenario, &parts(scenario, names)?, snaplen, output)?;
        Ok(Capture { files, wirings, numbers: BTreeMap::new(), points: Vec::new() })
    }

    /// Begins: `flows` and `links` are the scenario's in the simulator.
    pub fn begin(&mut self, sim: &mut Sim, flows: &[FlowId], links: &[LinkId]) {
        self.numbers = flows.iter().enumerate().map(|(index, &flow)| (flow, index)).collect();
        for (&flow, wiring) in flows.iter().zip(&mut self.wirings) {
            if let FlowId::Connection(connection) = flow {
                wiring.tcp = sim.tcp(connection);
            }
        }
        let point = |part| match part {
            Part::Sender(flow) => Point::Sender(flows[flow]),
            Part::Receiver(flow) => Point::Receiver(flows[flow]),
            Part::Link(link) => Point::Link(links[link]),
        };
        self.points = self.files.iter().map(|&(part, ..)| point(part)).collect();
        self.points.iter().for_each(|&point| sim.capture(point));
    }

    /// Writes down what has passed since the last call.
    pub fn write(&mut self, sim: &mut Sim) -> Result<(), Error> {
        for packet in sim.drain_captured() {
            self.write_one(&packet)?;
        }
        Ok(())
    }

    fn write_one(&mut self, packet: &Captured) -> Result<(), Error> {
        let wiring = &mut self.wirings[self.numbers[&packet.flow]];
        let headers = packet::headers(packet, wiring);
        let path = wiring.path(packet);
        let index = self.points.iter().position(|&point| point == packet.point);
        let (_, place, file) = &mut self.files[index.expect("a point that was asked for")];
        let (interface, outbound) = match packet.point {
            Point::Sender(_) => (path, Some(packet.forward)),
            Point::Receiver(_) => (path, Some(!packet.forward)),
            Point::Link(_) => (0, None),
        };
        let written = file.write(interface, packet.time, outbound, &headers, packet.size);
        written.map_err(Error::io(place, "write"))
    }

    /// Ends the files; the output still has to be committed.
    pub fn finish(&mut self) -> Result<(), Error> {
        for (_, place, file) in &mut self.files {
            file.flush().map_err(Error::io(place, "write"))?;
        }
        Ok(())
    }
}
