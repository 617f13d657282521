//! Captures, pcap and pcapng, packet by packet, as far as they can be read.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pcap_parser::traits::PcapReaderIterator;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};

use crate::input::Reader;
use crate::order::{Order, Part};
use crate::packet::{Link, Packet, Skip};
use crate::sorted::Sorted;
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

/// What pcap's header begins with, in its own byte order: microseconds and nanoseconds; and its version, 2.4, in two
/// halves of either order.
const MAGIC: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
const VERSION: [u32; 2] = [2 << 16 | 4, 4 << 16 | 2];

/// Is a file that begins so a capture?
pub fn is_capture(beginning: &[u8]) -> bool {
    BEGINNINGS.iter().any(|known| beginning == known)
}

/// What a file's packets came through.
struct Interface {
    link: Result<Link, u16>,
    /// Units of its timestamps in a second, if 64 bits count them.
    units: Option<u64>,
    /// Seconds to add.
    offset: i64,
}

impl Interface {
    /// Nanoseconds since 1970 of a time in the interface's units; never before, so that the difference
    /// of two fits.
    fn time(&self, stamp: u64) -> Result<i64, &'static str> {
        const RESOLUTION: &str =
            "a packet of an interface with a resolution of times that cannot be (if_tsresol)";
        let units = self.units.ok_or(RESOLUTION)?;
        let (seconds, rest) = (stamp / units, stamp % units);
        let rest = match 1_000_000_000 / units {
            each if each * units == 1_000_000_000 => rest * each,
            _ => (u128::from(rest) * 1_000_000_000 / u128::from(units)) as u64,
        } as i64;
        let seconds = (seconds as i64).saturating_add(self.offset);
        Ok(seconds.saturating_mul(1_000_000_000).saturating_add(rest).max(0))
    }
}

/// Units of time in a second by an interface's `if_tsresol`: a power of ten, or of two if the highest bit is
/// set (draft-ietf-opsawg-pcapng, section 4.2). The parser gives none of two.
fn units(resolution: u8) -> Option<u64> {
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(u32::from(resolution & 0x7f))
}

/// Times of packets in a row are no further apart, nanoseconds: a day.
const APART: i64 = 86_400_000_000_000;

/// Finds packets whose time is damaged: it is far from that of all around them.
#[derive(Debug, Default)]
struct Times {
    last: Option<i64>,
    /// That of the packet before, if it was far from the last.
    far: Option<i64>,
}

impl Times {
    /// Is the time of the next packet damaged? Of the first, what follows shows that.
    fn far(&mut self, time: i64) -> bool {
        let near = |other: i64| !apart(time, other);
        // Two that are far from those before them are a gap.
        let fit = self.last.is_none_or(near) || self.far.is_some_and(near);
        if fit {
            self.last = Some(time);
        }
        self.far = (!fit).then_some(time);
        !fit
    }
}

/// Are two times further apart than those of packets in a row?
pub fn apart(a: i64, b: i64) -> bool {
    a.abs_diff(b) > APART as u64
}

/// How a file was read.
#[derive(Debug)]
pub struct Ended {
    /// What is wrong with it, if it is damaged or ends too early; it was read up to there.
    pub damage: Option<String>,
    /// Packets that were given [behind](Sorted::behind) later ones.
    pub behind: u64,
}

/// Gives every packet to `each`, in `order`.
///
/// # Errors
/// The file cannot be opened.
pub fn for_each(
    input: &Input,
    order: &Order,
    mut each: impl FnMut(Packet),
) -> Result<Ended, Error> {
    let parts: Vec<Part> = order.parts().collect();
    // Together they have no more memory than one.
    let longest = (LONGEST / parts.len()).max(BUFFER);
    let readings = parts.into_iter().map(|part| Reading::begin(input, part, longest));
    let mut readings = readings.collect::<Result<Vec<_>, _>>()?;
    let mut sorted = Sorted::new(order.disorder());
    while let Some(first) = first(&mut readings) {
        first.give(&mut |packet| sorted.add(packet, &mut each));
    }
    sorted.end(&mut each);
    let damage = readings.into_iter().find_map(|reading| reading.packets.damage);
    Ok(Ended { damage, behind: sorted.behind() })
}

/// Bytes that tell of every capture how long its first block is: pcap's header.
pub const HEADER: u64 = 24;

/// Bytes of the first block of a capture that begins so, at most a buffer: it is parsed in one piece.
pub fn first_block(beginning: &[u8]) -> u64 {
    let word = |at: usize| beginning.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let (Some(length), Some(order)) = (word(4), word(8)) else { return HEADER };
    if !beginning.starts_with(&BEGINNINGS[0]) {
        return HEADER;
    }
    // The byte-order magic of a section.
    let little = order == 0x1a2b_3c4d_u32.to_le_bytes();
    let length = if little { u32::from_le_bytes(length) } else { u32::from_be_bytes(length) };
    u64::from(length).clamp(HEADER, BUFFER as u64)
}

/// Gives every packet of a stream to `each` as it comes, until that says no. What is wrong with the stream is
/// returned, if it is damaged; it was read up to there.
pub fn follow(
    from: impl Read + Send + 'static,
    mut each: impl FnMut(Packet) -> bool,
) -> Option<String> {
    let mut packets = Packets::of(Box::new(from), LONGEST);
    while let Some(next) = packets.next() {
        let Placed { number, time, link, wire, skip, .. } = next;
        let data = packets.data(&next);
        if !each(Packet { number, time, link, data, wire, skip }) {
            break;
        }
    }
    packets.damage
}

/// The part of a file whose next packet came first.
fn first(readings: &mut [Reading]) -> Option<&mut Reading> {
    if let [one] = readings {
        return one.next.is_some().then_some(one);
    }
    // Who has no right time need not wait.
    let time = |next: &Placed| if next.skip.is_some() { i64::MIN } else { next.time };
    let next = |reading: &&mut Reading| reading.next.as_ref().map_or(i64::MAX, time);
    readings.iter_mut().filter(|reading| reading.next.is_some()).min_by_key(next)
}

/// A part of a file, packet by packet.
struct Reading {
    part: Part,
    packets: Packets,
    next: Option<Placed>,
}

impl Reading {
    fn begin(input: &Input, part: Part, longest: usize) -> Result<Reading, Error> {
        let mut packets = Packets::open(input, longest)?;
        let mut next = packets.next();
        while next.is_some_and(|next| next.number < part.packets.start) {
            next = packets.next();
        }
        let mut reading = Reading { part, packets, next: None };
        reading.place(next);
        Ok(reading)
    }

    /// The next packet, in the time of all parts, unless it is one of another part.
    fn place(&mut self, next: Option<Placed>) {
        let next = next.filter(|next| next.number < self.part.packets.end);
        self.next =
            next.map(|next| Placed { time: self.part.time(next.number, next.time), ..next });
    }

    /// Gives the next packet.
    fn give(&mut self, each: &mut impl FnMut(Packet)) {
        let Some(next) = &self.next else { return };
        let Placed { number, time, link, wire, skip, .. } = *next;
        let data = self.packets.data(next);
        each(Packet { number, time, link, data, wire, skip });
        let next = self.packets.next();
        self.place(next);
    }
}

/// A packet, and where its data is in the buffer.
#[derive(Clone, Copy, Debug)]
struct Placed {
    number: u64,
    time: i64,
    link: Result<Link, u16>,
    wire: u32,
    skip: Option<Skip>,
    from: usize,
    length: usize,
}

/// The packets of a file, one after the other.
struct Packets {
    /// Until it ends.
    reader: Option<Box<dyn PcapReaderIterator + Send>>,
    failed: Arc<AtomicBool>,
    /// Bytes of the buffer, at most, and of the block that was read last.
    size: usize,
    longest: usize,
    taken: usize,
    big_endian: bool,
    interfaces: Vec<Interface>,
    /// Packets so far.
    number: u64,
    times: Times,
    /// The first packet is far from the second.
    first_far: bool,
    damage: Option<String>,
}

impl Packets {
    /// A block may have so many bytes.
    fn open(input: &Input, longest: usize) -> Result<Packets, Error> {
        let mut beginning = Packets::begin(input, longest)?;
        let mut time =
            || beginning.read().filter(|packet| packet.skip.is_none()).map(|packet| packet.time);
        let first_far = time().zip(time()).is_some_and(|(first, second)| apart(first, second));
        Ok(Packets { first_far, ..Packets::begin(input, longest)? })
    }

    fn begin(input: &Input, longest: usize) -> Result<Packets, Error> {
        let (from, _) = input.open()?;
        Ok(Packets::of(from, longest))
    }

    fn of(from: Reader, longest: usize) -> Packets {
        let failed = Arc::new(AtomicBool::new(false));
        let file = UntilFailure { from, failed: Arc::clone(&failed) };
        let reader = create_reader(BUFFER, file).ok();
        let damaged = reader.is_none();
        Packets {
            reader,
            failed,
            size: BUFFER,
            longest,
            taken: 0,
            big_endian: false,
            interfaces: Vec::new(),
            number: 0,
            times: Times::default(),
            first_far: false,
            damage: damaged.then(|| "its header is damaged, nothing can be read".into()),
        }
    }

    /// The data of the packet that was read last.
    fn data(&self, packet: &Placed) -> &[u8] {
        let buffer = self.reader.as_ref().map_or(&[][..], |reader| reader.data());
        buffer.get(packet.from..packet.from + packet.length).unwrap_or_default()
    }

    /// The next packet.
    fn next(&mut self) -> Option<Placed> {
        let mut packet = self.read()?;
        if packet.skip.is_none() {
            let far = self.times.far(packet.time) || (self.number == 1 && self.first_far);
            packet.skip = far.then_some(Skip::Far);
        }
        Some(packet)
    }

    /// The next packet, of any time.
    fn read(&mut self) -> Option<Placed> {
        loop {
            let reader = self.reader.as_mut()?;
            reader.consume(std::mem::take(&mut self.taken));
            let at = reader.consumed();
            let wrong = match reader.next() {
                Ok((length, block)) => {
                    self.taken = length;
                    match found(block, &mut self.interfaces, &mut self.big_endian) {
                        Ok(None) => continue,
                        Ok(Some((start, packet))) => {
                            self.number += 1;
                            let from = start as usize - reader.data().as_ptr() as usize;
                            return Some(Placed { number: self.number, from, ..packet });
                        }
                        Err(wrong) => wrong,
                    }
                }
                Err(PcapError::Eof | PcapError::UnexpectedEof)
                    if self.failed.load(Ordering::Relaxed) =>
                {
                    "unreadable data"
                }
                Err(PcapError::Eof) => {
                    self.reader = None;
                    return None;
                }
                Err(PcapError::Incomplete(_)) => {
                    if reader.refill().is_ok() {
                        continue;
                    }
                    "it is damaged"
                }
                Err(PcapError::BufferTooSmall) if self.size < self.longest => {
                    self.size *= 2;
                    if reader.grow(self.size) && reader.refill().is_ok() {
                        continue;
                    }
                    "it is damaged"
                }
                Err(PcapError::UnexpectedEof) => "it ends within the packet",
                Err(_) => "it is damaged",
            };
            self.damage = Some(format!("{wrong} at byte {at}, read up to there"));
            self.reader = None;
        }
    }
}

/// The packet in a block, if it has one, and where its data begins.
fn found(
    block: PcapBlockOwned,
    interfaces: &mut Vec<Interface>,
    big_endian: &mut bool,
) -> Result<Option<(*const u8, Placed)>, &'static str> {
    const UNKNOWN: &str = "a packet of an unknown interface";
    let packet = |from: &Interface, stamp: u64, data: &[u8], kept: u32, wire: u32| {
        let length = data.len().min(kept as usize);
        let (time, link) = (from.time(stamp)?, from.link);
        let packet = Placed { number: 0, time, link, wire, skip: None, from: 0, length };
        Ok(Some((data.as_ptr(), packet)))
    };
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let nanoseconds = header.is_nanosecond_precision();
            *interfaces = vec![Interface {
                link: Link::of(header.network.0 & LINK_TYPE),
                units: Some(if nanoseconds { 1_000_000_000 } else { 1_000_000 }),
                offset: 0,
            }];
        }
        PcapBlockOwned::Legacy(of) => {
            // Its header in place of a packet's.
            if MAGIC.contains(&of.ts_sec) && VERSION.contains(&of.ts_usec) && of.caplen == 0 {
                return Err("another capture, behind the first (mergecap joins them),");
            }
            let from = interfaces.first().ok_or("no header")?;
            let units = from.units.unwrap_or_default();
            let stamp = u64::from(of.ts_sec) * units + u64::from(of.ts_usec);
            return packet(from, stamp, of.data, of.caplen, of.origlen);
        }
        PcapBlockOwned::NG(Block::SectionHeader(section)) => {
            *big_endian = section.big_endian();
            interfaces.clear();
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            if interfaces.len() == usize::from(u16::MAX) {
                return Err("too many interfaces");
            }
            // The parser takes the offset for little-endian.
            let offset = interface.ts_offset();
            let offset = if *big_endian { offset.swap_bytes() } else { offset };
            let units = units(interface.if_tsresol);
            interfaces.push(Interface { link: Link::of(interface.linktype.0), units, offset });
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(of)) => {
            let from = interfaces.get(of.if_id as usize).ok_or(UNKNOWN)?;
            let stamp = u64::from(of.ts_high) << 32 | u64::from(of.ts_low);
            return packet(from, stamp, of.data, of.caplen, of.origlen);
        }
        PcapBlockOwned::NG(Block::SimplePacket(of)) => {
            let from = interfaces.first().ok_or(UNKNOWN)?;
            let (time, link, wire) = (0, from.link, of.origlen);
            let skip = Some(Skip::Untimed);
            let packet = Placed { number: 0, time, link, wire, skip, from: 0, length: 0 };
            return Ok(Some((of.data.as_ptr(), packet)));
        }
        // Before pcapng had enhanced packets (its appendix A).
        PcapBlockOwned::NG(Block::Unknown(of)) if [2, 2 << 24].contains(&of.block_type) => {
            let Some((header, data)) = of.data.split_first_chunk::<20>() else {
                return Err("it is damaged");
            };
            let word = |at: usize| {
                let bytes = [header[at], header[at + 1], header[at + 2], header[at + 3]];
                if *big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
            };
            // The interface is the first 16 bits; the others count drops.
            let interface = if *big_endian { word(0) >> 16 } else { word(0) & 0xffff };
            let from = interfaces.get(interface as usize).ok_or(UNKNOWN)?;
            let stamp = u64::from(word(4)) << 32 | u64::from(word(8));
            return packet(from, stamp, data, word(12), word(16));
        }
        // Statistics and names.
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_unit_and_offset_are_after_1970() {
        let time = |units, offset, stamp| {
            Interface { link: Err(7), units: Some(units), offset }.time(stamp).unwrap()
        };
        assert_eq!(time(1_000_000, 0, 5_000_007), 5_000_007_000);
        assert_eq!(time(1 << 20, 3, (2 << 20) + (1 << 19)), 5_500_000_000);
        assert_eq!(time(1_000, -6, 5_000), 0);
        assert_eq!(time(1, i64::MIN, u64::MAX), 0);
        assert_eq!(time(1, i64::MAX, 7), i64::MAX);
    }

    #[test]
    fn a_second_has_a_power_of_ten_or_of_two_units() {
        assert_eq!([0, 6, 9].map(units), [1_u64, 1_000_000, 1_000_000_000].map(Some));
        assert_eq!([0x80, 0x94, 0xbf].map(units), [1_u64, 1 << 20, 1 << 63].map(Some));
        // 10^19 is the last that 64 bits hold.
        assert!(units(19).is_some());
        assert_eq!([20, 0x7f, 0xc0, 0xff].map(units), [None; 4]);
    }

    #[test]
    fn one_time_among_others_is_damaged_and_two_are_a_gap() {
        let mut times = Times::default();
        let day = APART;
        let seen = [9 * day, 101, 102, -3 * day, 103, 9 * day, 9 * day + 1, 9 * day + 2];
        let far = seen.map(|time| times.far(time));
        assert_eq!(far, [false, true, false, true, false, true, false, false]);
    }
}
