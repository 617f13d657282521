//! Captures, pcap and pcapng, packet by packet, as far as they can be read.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use crate::input::Reader;
use crate::packet::Link;
use crate::{Error, Input};

/// Bytes read at once.
const BUFFER: usize = 1 << 20;
/// A block or packet that is longer is damage.
const LONGEST: usize = 32 << 20;

/// How the file begins: pcapng, and pcap with microseconds or nanoseconds, of either byte order, and
/// its modified form.
const BEGINNINGS: [[u8; 4]; 7] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x34, 0xcd, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xcd, 0x34],
];

/// Is a file that begins so a capture?
pub fn is_capture(beginning: &[u8]) -> bool {
    BEGINNINGS.iter().any(|known| beginning == known)
}

/// A packet as it was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Nanoseconds since 1970.
    pub time: i64,
    /// `None` for a link type that is not known here.
    pub link: Option<Link>,
    /// What was kept of it.
    pub data: &'a [u8],
    /// Its bytes on the wire.
    pub wire: u32,
    /// Its time is days from that of the packets around it.
    pub far: bool,
}

/// What a file's packets came through.
struct Interface {
    link: Option<Link>,
    /// Units of its timestamps in a second.
    units: u64,
    /// Seconds to add.
    offset: i64,
}

impl Interface {
    /// Nanoseconds since 1970 of a time in the interface's units; never before, so that the difference
    /// of two fits.
    fn time(&self, stamp: u64) -> i64 {
        let (seconds, rest) = (stamp / self.units, stamp % self.units);
        let rest = match 1_000_000_000 / self.units {
            each if each * self.units == 1_000_000_000 => rest * each,
            _ => (u128::from(rest) * 1_000_000_000 / u128::from(self.units)) as u64,
        } as i64;
        let seconds = (seconds as i64).saturating_add(self.offset);
        seconds.saturating_mul(1_000_000_000).saturating_add(rest).max(0)
    }
}

/// Times of packets in a row are no further apart, nanoseconds: a day.
const APART: i64 = 86_400_000_000_000;

/// Finds packets whose time is damaged: it is far from that of all around them.
#[derive(Debug, Default)]
struct Times {
    last: Option<i64>,
    /// That of the packet before, if it was far from the last.
    far: Option<i64>,
    /// The first packet, until the second shows whether its time is damaged.
    first: Option<Kept>,
}

/// A packet with a copy of its data.
#[derive(Debug)]
struct Kept {
    time: i64,
    link: Option<Link>,
    data: Vec<u8>,
    wire: u32,
}

impl Times {
    /// A packet; gives it, or of the second both, to `each`.
    fn see(&mut self, packet: Packet, each: &mut impl FnMut(Packet)) {
        let Packet { time, link, data, wire, .. } = packet;
        let near = |other: i64| time.abs_diff(other) <= APART as u64;
        if let Some(first) = self.first.take() {
            first.give(!near(first.time), each);
        } else if self.last.is_none() {
            self.last = Some(time);
            self.first = Some(Kept { time, link, data: data.to_vec(), wire });
            return;
        }
        // Two that are far from those before them are a gap.
        let fit = self.last.is_none_or(near) || self.far.is_some_and(near);
        if fit {
            self.last = Some(time);
        }
        self.far = (!fit).then_some(time);
        each(Packet { far: !fit, ..packet });
    }

    /// There is no more packet.
    fn end(self, each: &mut impl FnMut(Packet)) {
        if let Some(only) = self.first {
            only.give(false, each);
        }
    }
}

impl Kept {
    fn give(&self, far: bool, each: &mut impl FnMut(Packet)) {
        let Kept { time, link, ref data, wire } = *self;
        each(Packet { time, link, data, wire, far });
    }
}

/// Gives every packet to `each`. A file that is damaged or ends too early is read up to there, and
/// what is wrong is returned.
///
/// # Errors
/// The file cannot be opened.
pub fn for_each(input: &Input, mut each: impl FnMut(Packet)) -> Result<Option<String>, Error> {
    let mut times = Times::default();
    let damage = read(input, |packet| times.see(packet, &mut each));
    times.end(&mut each);
    damage
}

fn read(input: &Input, mut each: impl FnMut(Packet)) -> Result<Option<String>, Error> {
    let (from, _) = input.open()?;
    let failed = Arc::new(AtomicBool::new(false));
    let file = UntilFailure { from, failed: Arc::clone(&failed) };
    let mut reader = match create_reader(BUFFER, file) {
        Ok(reader) => reader,
        Err(_) => return Ok(Some("its header is damaged, nothing can be read".into())),
    };
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut size = BUFFER;
    loop {
        let at = reader.consumed();
        let damage = |what: &str| Ok(Some(format!("{what} at byte {at}, read up to there")));
        match reader.next() {
            Ok((read, block)) => {
                match block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        let nanoseconds = header.is_nanosecond_precision();
                        interfaces = vec![Interface {
                            link: Link::of(header.network.0 & LINK_TYPE),
                            units: if nanoseconds { 1_000_000_000 } else { 1_000_000 },
                            offset: 0,
                        }];
                    }
                    PcapBlockOwned::Legacy(packet) => {
                        let Some(from) = interfaces.first() else { return damage("no header") };
                        let stamp = u64::from(packet.ts_sec) * from.units;
                        let time = from.time(stamp + u64::from(packet.ts_usec));
                        let (data, wire) = (kept(packet.data, packet.caplen), packet.origlen);
                        each(Packet { time, link: from.link, data, wire, far: false });
                    }
                    PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        if interfaces.len() == usize::from(u16::MAX) {
                            return damage("too many interfaces");
                        }
                        interfaces.push(Interface {
                            link: Link::of(interface.linktype.0),
                            units: interface.ts_resolution().unwrap_or(1_000_000).max(1),
                            offset: interface.ts_offset(),
                        });
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let Some(from) = interfaces.get(packet.if_id as usize) else {
                            return damage("a packet of an unknown interface");
                        };
                        let stamp = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                        let time = from.time(stamp);
                        let (data, wire) = (kept(packet.data, packet.caplen), packet.origlen);
                        each(Packet { time, link: from.link, data, wire, far: false });
                    }
                    // Statistics, names, and packets without a time.
                    PcapBlockOwned::NG(_) => {}
                }
                reader.consume(read);
            }
            Err(PcapError::Eof | PcapError::UnexpectedEof) if failed.load(Ordering::Relaxed) => {
                return damage("unreadable data");
            }
            Err(PcapError::Eof) => return Ok(None),
            Err(PcapError::Incomplete(_)) => {
                if reader.refill().is_err() {
                    return damage("it is damaged");
                }
            }
            Err(PcapError::BufferTooSmall) if size < LONGEST => {
                size *= 2;
                if !reader.grow(size) || reader.refill().is_err() {
                    return damage("it is damaged");
                }
            }
            Err(PcapError::UnexpectedEof) => return damage("it ends within the packet"),
            Err(_) => return damage("it is damaged"),
        }
    }
}

/// Ends where it cannot be read on, and remembers that.
struct UntilFailure {
    from: Reader,
    failed: Arc<AtomicBool>,
}

impl Read for UntilFailure {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.from.read(buffer).or_else(|_| {
            self.failed.store(true, Ordering::Relaxed);
            Ok(0)
        })
    }
}

/// The upper bits of pcap's field describe a frame check sequence (draft-ietf-opsawg-pcap, section 4).
const LINK_TYPE: i32 = 0xffff;

/// Without the padding.
fn kept(data: &[u8], length: u32) -> &[u8] {
    &data[..data.len().min(length as usize)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_unit_and_offset_are_after_1970() {
        let time = |units, offset, stamp| Interface { link: None, units, offset }.time(stamp);
        assert_eq!(time(1_000_000, 0, 5_000_007), 5_000_007_000);
        assert_eq!(time(1 << 20, 3, (2 << 20) + (1 << 19)), 5_500_000_000);
        assert_eq!(time(1_000, -6, 5_000), 0);
        assert_eq!(time(1, i64::MIN, u64::MAX), 0);
        assert_eq!(time(1, i64::MAX, 7), i64::MAX);
    }

    #[test]
    fn one_time_among_others_is_damaged_and_two_are_a_gap() {
        let mut far = Vec::new();
        let mut times = Times::default();
        let day = APART;
        for time in [9 * day, 101, 102, -3 * day, 103, 9 * day, 9 * day + 1, 9 * day + 2] {
            let packet = Packet { time, link: None, data: &[], wire: 0, far: false };
            times.see(packet, &mut |packet: Packet| far.push(packet.far));
        }
        times.end(&mut |_: Packet| unreachable!("the first is given with the second"));
        assert_eq!(far, [true, true, false, true, false, true, false, false]);
    }
}
