//! Captures of hosts on the kernel: what they sent and got, as it was.
//!
//! The thread that carries packets only copies their first bytes; another one writes the files.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use narrows_emu::{Direction, Tap};
use narrows_net::Nanos;

use super::plan::{FlowPlan, Plan, RECEIVER, SENDER};
use crate::Error;
use crate::capture::{CaptureFile, CaptureRequest, Part, open, parts};
use crate::scenario::Scenario;

/// Bytes that are collected before the other thread gets them.
const BATCH: usize = 64 << 10;

/// Captures of hosts, being written.
pub struct Capture {
    files: Vec<CaptureFile>,
    snaplen: usize,
    writer: Option<JoinHandle<Result<(), Error>>>,
}

impl Capture {
    /// Headers of a packet at most: IPv6, TCP, and TCP's options.
    const HEADERS: u32 = 100;

    /// Opens the files of `request`, whose names are flows.
    ///
    /// # Errors
    /// A name that is no flow, or a file that cannot be written.
    pub fn new(scenario: &Scenario, request: CaptureRequest) -> Result<Capture, Error> {
        let CaptureRequest { names, snaplen, output } = request;
        let snaplen = snaplen.unwrap_or(Self::HEADERS);
        let parts = parts(scenario, names)?;
        let link = parts.iter().find_map(|part| match part {
            Part::Link(link) => Some(&scenario.links[*link].config.name),
            _ => None,
        });
        if let Some(link) = link {
            let message =
                format!("\"{link}\" is a link; on the kernel, only hosts can be captured");
            return Err(Error::input("--capture", message));
        }
        let files = open(scenario, &parts, snaplen, output)?;
        Ok(Capture { files, snaplen: snaplen as usize, writer: None })
    }

    /// Begins: what the network of `plan`, the scenario's, is started with.
    ///
    /// # Errors
    /// The thread that writes cannot start.
    pub fn taps(&mut self, plan: &Plan) -> Result<Vec<Tap>, Error> {
        let (to, batches) = mpsc::channel();
        let tap = |(file, (part, ..)): (usize, &CaptureFile)| {
            let (flow, end) = match *part {
                Part::Sender(flow) => (flow, SENDER),
                Part::Receiver(flow) => (flow, RECEIVER),
                Part::Link(_) => unreachable!("refused"),
            };
            let flow = &plan.flows[flow];
            let mut collector = Collector {
                own: addresses(flow, end),
                peer: addresses(flow, RECEIVER - end),
                snaplen: self.snaplen,
                batch: Batch { file, ..Batch::default() },
                to: to.clone(),
            };
            let see = move |time, _, direction, packet: &[u8]| {
                collector.see(time, direction == Direction::Sent, packet);
            };
            Tap { host: flow.hosts[end], device: None, see: Box::new(see) }
        };
        let taps = self.files.iter().enumerate().map(tap).collect();
        let files = std::mem::take(&mut self.files);
        let writer = Builder::new().name("nr-pcap".into()).spawn(|| write(files, batches));
        self.writer = Some(writer.map_err(|error| Error::input("--pcap", error))?);
        Ok(taps)
    }

    /// Ends the files, once the taps are gone; the output still has to be committed.
    ///
    /// # Errors
    /// A file could not be written.
    pub fn finish(&mut self) -> Result<(), Error> {
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Ok(()),
        }
    }
}

/// Packets of a file.
#[derive(Default)]
struct Batch {
    /// Its number.
    file: usize,
    packets: Vec<Packet>,
    /// The bytes that are kept of all of them.
    bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Packet {
    time: Nanos,
    path: usize,
    sent: bool,
    size: usize,
    kept: usize,
}

/// Collects what a host of a flow sends and gets. Dropped, it hands on the rest.
struct Collector {
    /// The flow's addresses in this host; other flows may be there, too.
    own: Vec<(IpAddr, usize)>,
    /// Those of its other host.
    peer: Vec<(IpAddr, usize)>,
    snaplen: usize,
    batch: Batch,
    to: mpsc::Sender<Batch>,
}

impl Collector {
    fn see(&mut self, time: Nanos, sent: bool, packet: &[u8]) {
        let path = |of: &[(IpAddr, usize)], source| {
            let address = address(packet, source)?;
            of.iter().find(|known| known.0 == address).map(|known| known.1)
        };
        let Some(own) = path(&self.own, sent) else { return };
        // A path is named by the address that is not the first.
        let path = own.max(path(&self.peer, !sent).unwrap_or(0));
        let (size, kept) = (packet.len(), packet.len().min(self.snaplen));
        self.batch.packets.push(Packet { time, path, sent, size, kept });
        self.batch.bytes.extend_from_slice(&packet[..kept]);
        if self.batch.bytes.len() >= BATCH {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        let next = Batch {
            file: self.batch.file,
            packets: Vec::with_capacity(self.batch.packets.len()),
            bytes: Vec::with_capacity(self.batch.bytes.len() + self.snaplen),
        };
        // The other thread ends after this one.
        self.to.send(std::mem::replace(&mut self.batch, next)).ok();
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.hand_on();
    }
}

/// The addresses of a flow's end, with their paths.
fn addresses(flow: &FlowPlan, end: usize) -> Vec<(IpAddr, usize)> {
    let paths = flow.paths.iter().enumerate();
    paths.flat_map(|(path, at)| at.ends[end].iter().map(move |address| (address, path))).collect()
}

/// The source or destination address of an IP packet.
fn address(packet: &[u8], source: bool) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => {
            let bytes: [u8; 4] =
                packet.get(if source { 12..16 } else { 16..20 })?.try_into().ok()?;
            Some(Ipv4Addr::from(bytes).into())
        }
        6 => {
            let bytes: [u8; 16] =
                packet.get(if source { 8..24 } else { 24..40 })?.try_into().ok()?;
            Some(Ipv6Addr::from(bytes).into())
        }
        _ => None,
    }
}

/// Writes packets until all collectors are gone. After a failure the rest is discarded.
fn write(mut files: Vec<CaptureFile>, batches: mpsc::Receiver<Batch>) -> Result<(), Error> {
    let mut written = Ok(());
    for batch in batches {
        let (_, path, file) = &mut files[batch.file];
        let mut rest = &batch.bytes[..];
        let mut each = batch.packets.iter().map(|&Packet { time, path, sent, size, kept }| {
            let (bytes, others) = rest.split_at(kept);
            rest = others;
            file.write(path, time, Some(sent), bytes, size as u32)
        });
        if written.is_ok() {
            written = each.try_for_each(|done| done).map_err(Error::io(path, "write"));
        }
    }
    for (_, path, file) in &mut files {
        file.flush().map_err(Error::io(path, "write"))?;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, Output, load};
    use pcap_file::pcapng::{Block, PcapNgReader};
    use std::fs::File;
    use std::path::Path;

    /// An IPv4 packet of zeros.
    fn packet(from: [u8; 4], to: [u8; 4], size: usize) -> Vec<u8> {
        let mut packet = vec![0; size];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&from);
        packet[16..20].copy_from_slice(&to);
        packet
    }

    /// Interface, time in ns, size and kept bytes of every packet in a file.
    fn read(file: &Path) -> Vec<(u32, u128, u32, usize)> {
        let mut reader = PcapNgReader::new(File::open(file).unwrap()).unwrap();
        let mut packets = Vec::new();
        while let Some(block) = reader.next_block() {
            if let Block::EnhancedPacket(block) = block.unwrap() {
                let (time, kept) = (block.timestamp.as_nanos(), block.data.len());
                packets.push((block.interface_id, time, block.original_len, kept));
            }
        }
        packets
    }

    #[test]
    fn a_file_has_what_its_host_sent_and_got_of_its_flow() {
        let scenario = load("phone/wifi-lte", &Edits::default()).unwrap();
        let plan = Plan::new(&scenario, 1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::new(folder.path()).unwrap();
        let names = ["mptcp", "tcp-lte"].map(String::from);
        let request = CaptureRequest { names: &names, snaplen: None, output: &mut output };
        let mut capture = Capture::new(&scenario, request).unwrap();
        let mut taps = capture.taps(&plan).unwrap();
        assert_eq!(taps.iter().map(|tap| tap.host).collect::<Vec<_>>(), [0, 1, 2, 3]);
        // More than a batch, over both paths.
        for n in 0..2000 {
            let sent = packet([10, 1 + (n % 2) as u8, 0, 1], [10, 101, 0, 1], 1500);
            (taps[0].see)(n, 0, Direction::Sent, &sent);
        }
        (taps[0].see)(2000, 1, Direction::Got, &packet([10, 101, 0, 1], [10, 2, 0, 1], 60));
        // The receiver's first address, and the path is that of the sender's.
        (taps[1].see)(5, 0, Direction::Got, &packet([10, 2, 0, 1], [10, 101, 0, 1], 60));
        // The third flow, and a neighbour in the same host.
        (taps[3].see)(7, 0, Direction::Got, &packet([10, 1, 0, 3], [10, 101, 0, 3], 1500));
        (taps[3].see)(8, 0, Direction::Got, &packet([10, 1, 0, 2], [10, 101, 0, 2], 1500));
        (taps[3].see)(9, 0, Direction::Got, &[]);
        drop(taps);
        capture.finish().unwrap();
        drop(capture);
        output.commit().unwrap();
        let sender = read(&folder.path().join("mptcp.sender.pcapng"));
        assert_eq!(sender.len(), 2001);
        assert_eq!(sender[1999], (1, 1999, 1500, 100));
        assert_eq!(sender[2000], (1, 2000, 60, 60));
        assert_eq!(read(&folder.path().join("mptcp.receiver.pcapng")), [(1, 5, 60, 60)]);
        assert_eq!(read(&folder.path().join("tcp-lte.receiver.pcapng")), [(0, 7, 1500, 100)]);
    }

    #[test]
    fn a_link_is_refused() {
        let scenario = load("phone/wifi-lte", &Edits::default()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut output = Output::new(folder.path()).unwrap();
        let request = CaptureRequest { names: &["lte".into()], snaplen: None, output: &mut output };
        let message = Capture::new(&scenario, request).err().unwrap();
        let line = "--capture: \"lte\" is a link; on the kernel, only hosts can be captured";
        assert_eq!(message.to_string(), line);
    }
}
