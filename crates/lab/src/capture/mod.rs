//! Captures of a run as pcapng, one file per host or link, for Wireshark and its kin.
//!
//! The simulator tells what a packet carries ([`narrows_sim::capture`]); here it gets addresses,
//! sequence numbers that wrap, options and checksums. Two runs with the same seed give the same
//! bytes.

mod file;
mod flow;
mod options;
mod packet;
mod secrets;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;

use narrows_net::LinkId;
use narrows_sim::Sim;
use narrows_sim::capture::{Captured, Point};
use narrows_traffic::FlowId;

use crate::scenario::Scenario;
use crate::{Error, Output};
use flow::Wiring;

pub use file::PcapFile;

/// Which part of a flow or link a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Sender(usize),
    Receiver(usize),
    Link(usize),
}

/// A file being written: what it shows, and its name.
pub type CaptureFile = (Part, String, PcapFile<BufWriter<File>>);

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
    pub const HEADERS: u32 = 80;

    /// Opens the files in `output`: for each of `names` that is a flow one for each of its hosts,
    /// for each that is a link one. Without names it is the connection under test, or all listed
    /// flows if there is none. Of each packet at most `snaplen` bytes are kept.
    ///
    /// # Errors
    /// A name that is neither flow nor link, more flows than there are addresses, or a file that
    /// cannot be written.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        names: &[String],
        snaplen: u32,
        output: &mut Output,
    ) -> Result<Capture, Error> {
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
        let files = open(scenario, &parts(scenario, names)?, snaplen, output)?;
        Ok(Capture { files, wirings, numbers: BTreeMap::new(), points: Vec::new() })
    }

    /// The names of the files.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(_, name, _)| name.as_str())
    }

    /// Begins: `flows` and `links` are the scenario's in the simulator.
    pub(crate) fn begin(&mut self, sim: &mut Sim, flows: &[FlowId], links: &[LinkId]) {
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
    pub(crate) fn write(&mut self, sim: &mut Sim) -> Result<(), Error> {
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
        let (_, name, file) = &mut self.files[index.expect("a point that was asked for")];
        let (interface, outbound) = match packet.point {
            Point::Sender(_) => (path, Some(packet.forward)),
            Point::Receiver(_) => (path, Some(!packet.forward)),
            Point::Link(_) => (0, None),
        };
        let written = file.write(interface, packet.time, outbound, &headers, packet.size);
        written.map_err(Error::io(name.as_ref(), "write"))
    }

    /// Ends the files; the output still has to be committed.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        for (_, name, file) in &mut self.files {
            file.flush().map_err(Error::io(name.as_ref(), "write"))?;
        }
        Ok(())
    }
}

/// Opens a file for each of `parts`.
pub fn open(
    scenario: &Scenario,
    parts: &[Part],
    snaplen: u32,
    output: &mut Output,
) -> Result<Vec<CaptureFile>, Error> {
    let open = |&part: &Part| {
        let (name, interfaces) = describe(scenario, part);
        let to = output.create(&name)?;
        let file = PcapFile::new(to, &interfaces, snaplen);
        let file = file.map_err(Error::io(name.as_ref(), "write"))?;
        Ok((part, name, file))
    };
    parts.iter().map(open).collect()
}

/// What `--capture` asks for.
pub fn parts(scenario: &Scenario, names: &[String]) -> Result<Vec<Part>, Error> {
    let hosts = |flow| [Part::Sender(flow), Part::Receiver(flow)];
    let mut parts = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            continue;
        }
        let flow = scenario.flows.iter().position(|flow| flow.name == *name);
        let link = scenario.links.iter().position(|link| link.config.name == *name);
        if flow.is_none() && link.is_none() {
            return Err(Error::input("--capture", format!("no flow or link \"{name}\"")));
        }
        parts.extend(flow.into_iter().flat_map(hosts));
        parts.extend(link.map(Part::Link));
    }
    if names.is_empty() {
        let listed = (0..scenario.flows.len()).filter(|&flow| !scenario.flows[flow].background);
        let flows: Vec<usize> = scenario.test.map_or_else(|| listed.collect(), |test| vec![test]);
        parts.extend(flows.into_iter().flat_map(hosts));
    }
    Ok(parts)
}

/// File name and interfaces of a part.
fn describe(scenario: &Scenario, part: Part) -> (String, Vec<String>) {
    let host = |flow: usize, host: &str| {
        let flow = &scenario.flows[flow];
        let name = format!("{}.{host}", flow.name);
        let interfaces = flow.paths.iter().map(|path| format!("{name}:{}", path.name)).collect();
        (name, interfaces)
    };
    let (name, interfaces) = match part {
        Part::Sender(flow) => host(flow, "sender"),
        Part::Receiver(flow) => host(flow, "receiver"),
        Part::Link(link) => {
            let name = scenario.links[link].config.name.clone();
            (format!("{name}.link"), vec![name])
        }
    };
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' };
    (name.chars().map(plain).chain(".pcapng".chars()).collect(), interfaces)
}
