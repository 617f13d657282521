//! One pcapng file (draft-ietf-opsawg-pcapng): one interface per path of a host, or for a link.

use std::borrow::Cow;
use std::io::Write;
use std::time::Duration;

use narrows_net::Nanos;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::{DataLink, Endianness, PcapError};

/// Timestamps are 10^-9 s.
const NANOSECONDS: u8 = 9;
/// Flags of a packet, section 4.3.1: which way it passed the interface.
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// A capture file being written.
pub struct PcapFile<W: Write> {
    writer: PcapNgWriter<W>,
    snaplen: u32,
    data: Vec<u8>,
}

impl<W: Write> PcapFile<W> {
    /// Begins a file with its interfaces. Of each packet it keeps `snaplen` bytes at most.
    pub fn new(to: W, interfaces: &[String], snaplen: u32) -> std::io::Result<PcapFile<W>> {
        let section = SectionHeaderBlock {
            // The same bytes on any machine.
            endianness: Endianness::Little,
            options: vec![SectionHeaderOption::UserApplication("narrows".into())],
            ..SectionHeaderBlock::default()
        };
        let mut writer = PcapNgWriter::with_section_header(to, section).map_err(io)?;
        for name in interfaces {
            let interface = InterfaceDescriptionBlock {
                linktype: DataLink::RAW,
                snaplen,
                options: vec![
                    InterfaceDescriptionOption::IfName(name.into()),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            };
            writer.write_pcapng_block(interface).map_err(io)?;
        }
        Ok(PcapFile { writer, snaplen, data: Vec::new() })
    }

    /// Writes a packet of `size` bytes: what is given of it, then zeros. `outbound` is for hosts.
    pub fn write(
        &mut self,
        interface: usize,
        time: Nanos,
        outbound: Option<bool>,
        given: &[u8],
        size: u32,
    ) -> std::io::Result<()> {
        self.data.clear();
        self.data.extend(given);
        self.data.resize(size.min(self.snaplen) as usize, 0);
        let flags = outbound.map(|outbound| if outbound { OUTBOUND } else { INBOUND });
        let mut block = EnhancedPacketBlock::default();
        block.interface_id = interface as u32;
        block.timestamp = Duration::from_nanos(time);
        block.original_len = size;
        block.data = Cow::Borrowed(&self.data);
        block.options = flags.map(EnhancedPacketOption::Flags).into_iter().collect();
        self.writer.write_pcapng_block(block).map(|_| ()).map_err(io)
    }

    /// Writes what waits in buffers.
    pub fn flush(&mut self) -> std::io::Result<()> {
        self.writer.get_mut().flush()
    }
}

fn io(error: PcapError) -> std::io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => std::io::Error::other(other),
    }
}
