//! The state of connections, as the programs keep it in the kernel (`src/bpf/state.h`).

use crate::register::{available_controls, is_ours, padded};
use crate::{Delay, Error};
use libbpf_rs::query::{MapInfo, MapInfoIter};
use libbpf_rs::{
    AsRawLibbpf, MapCore, MapFlags, MapHandle, MapType, OpenMap, OpenMapMut, libbpf_sys,
};
use narrows_laws::raw::{Conn, Detection, PeerDecision};
use narrows_laws::{Control, Decision, Detector, Event, Law, MAX_PATHS, Path as Line, Private};
use std::mem::offset_of;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Where the BPF file system is mounted.
pub const BPFFS: &str = "/sys/fs/bpf";
/// The state map of all controls: from the token of an MPTCP connection to an entry with its paths.
pub const CONNS: &str = "nr_conns";
/// The map from network namespace, by its cookie, to the control for its plain TCP.
pub const PLAIN: &str = "nr_plain";
/// The map from user to what he has (`struct nr_used`): entries of [`CONNS`], then of [`DETECTIONS`].
pub const USERS: &str = "nr_users";
/// Of an entry of [`USERS`] (`struct nr_used`).
const USED_BYTES: u32 = 8;
/// Where [`USERS`] has what all users have.
pub const USERS_ALL: u32 = 65536;
/// The map of what a detector keeps of a connection, keyed as [`CONNS`].
pub const DETECTIONS: &str = "nr_detections";
/// The map of what a sender has received of its peer's decisions, keyed as [`CONNS`]; there while a
/// process detects at the receiver ([`crate::receiver`]).
pub const PEERS: &str = "nr_peers";
/// The maps that all controls share; the last one, those with a detector that decides.
pub const SHARED: [&str; 4] = [CONNS, PLAIN, USERS, DETECTIONS];

/// The counters of each control, in the order of `enum nr_counter`.
pub const COUNTERS: [&str; 19] = [
    "joins",
    "leaves",
    "fallback_law",
    "fallback_version",
    "fallback_slots",
    "fallback_full",
    "fallback_user",
    "fallback_race",
    "fallback_lost",
    "fallback_outside",
    "coupled_later",
    "tcp_fallbacks",
    "plain",
    "alone",
    "repaired",
    "repaired_ssthresh",
    "undetected",
    "decisions",
    "regroupings",
];

/// Readings of what a detector keeps until two agree.
const READ_TRIES: u32 = 8;

const WORD_CLOSED: u64 = 1 << 8;
/// Round trips with subflows outside the entry until a path runs the fallback law.
const OUTSIDE_ROUNDS: u32 = 2;

/// `struct nr_ident`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Ident {
    saddr: [u32; 4],
    daddr: [u32; 4],
    sport: u32,
    dport: u32,
    family: u32,
    local_id: u8,
    remote_id: u8,
    delay: u8,
    reserved: u8,
}

/// `struct nr_slot`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Slot {
    owner: u64,
    outside: u32,
    looked_ms: u32,
    event: Event,
    private: Private,
}

/// `struct nr_entry`: integers only, so any bytes are valid.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    word: u64,
    user: u32,
    netns: u32,
    build: u32,
    reserved: u32,
    conn: Conn,
    slot: [Slot; MAX_PATHS],
    ident: [Ident; MAX_PATHS],
}

/// An MPTCP connection that runs one of our controls.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its local MPTCP token, the key in the map.
    pub token: u32,
    /// Whose it is: a uid of the initial user namespace.
    pub user: u32,
    /// Its control; none if unknown to this build.
    pub control: Option<Control>,
    /// `NR_VERSION` of the build that made it.
    pub version: u32,
    /// Inode number of its network namespace.
    pub netns: u32,
    /// It is being created or deleted.
    pub closed: bool,
    /// Its paths, by slot.
    pub paths: Vec<ConnectionPath>,
}

/// A path of a connection: a subflow.
#[derive(Clone, Debug)]
pub struct ConnectionPath {
    /// Its slot in the entry.
    pub slot: usize,
    /// Its own address.
    pub local: SocketAddr,
    /// Its peer's address.
    pub remote: SocketAddr,
    /// MPTCP id of its own address.
    pub local_id: u8,
    /// MPTCP id of its peer's address.
    pub remote_id: u8,
    /// The paths it is coupled with, a bit each.
    pub mask: u8,
    /// What a detector samples of it.
    pub delay: Delay,
    /// Does it run the fallback law, as its connection has subflows outside the entry?
    pub outside: bool,
    /// Its published line: window, threshold, RTT.
    pub line: Line,
    /// Its newest event; part of it may be of the one before.
    pub event: Event,
}

/// All connections that run our controls on this machine.
///
/// # Errors
/// Reading maps needs root.
pub fn connections() -> Result<Vec<Connection>, Error> {
    crate::available()?;
    let mut all = Vec::new();
    for map in maps(CONNS).into_iter().filter(is_readable) {
        // Whole buckets at a time: going from key to key starts over when the key has gone.
        let batches = map.lookup_batch(512, MapFlags::ANY, MapFlags::ANY);
        for (key, value) in batches.map_err(Error::bpf(CONNS, "read"))? {
            if let (Ok(key), true) = (key.try_into(), value.len() == size_of::<Entry>()) {
                // SAFETY: the length is right, and any bytes are valid.
                let entry = unsafe { value.as_ptr().cast::<Entry>().read_unaligned() };
                all.push(decode(u32::from_ne_bytes(key), &entry));
            }
        }
    }
    Ok(all)
}

/// What the detectors keep of the connections on this machine.
pub struct Detections {
    detections: Option<MapHandle>,
    peers: Option<MapHandle>,
}

impl Detections {
    /// Of controls of this build.
    ///
    /// # Errors
    /// Reading maps needs root.
    pub fn open() -> Result<Detections, Error> {
        crate::available()?;
        Ok(Detections { detections: detections(), peers: maps(PEERS).into_iter().next() })
    }

    /// Since when the sender of this connection looks for its peer's decisions ([`crate::receiver`]), ms
    /// of the kernel's monotonic clock, wraps; none: it does not.
    pub fn peer_since(&self, token: u32) -> Option<u32> {
        // The map may have gone with its process meanwhile.
        let value = self.peers.as_ref()?.lookup(&token.to_ne_bytes(), MapFlags::ANY).ok()??;
        let word = value.get(offset_of!(PeerDecision, begun_ms)..)?.first_chunk()?;
        Some(u32::from_ne_bytes(*word))
    }

    /// What is kept of a connection, by slot, as of one moment; none: it has one path, its detector
    /// does not decide, or there is no room.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn of(&self, token: u32) -> Result<Option<Box<Detection>>, Error> {
        let Some(mut detection) = self.read(token)? else { return Ok(None) };
        // It changes while it is copied: once in 240 ms, for less than a millisecond.
        for _ in 0..READ_TRIES {
            let Some(later) = self.read(token)? else { return Ok(None) };
            if later.busy == 0 && later.observed == detection.observed {
                break;
            }
            detection = later;
        }
        Ok(Some(detection))
    }

    fn read(&self, token: u32) -> Result<Option<Box<Detection>>, Error> {
        let Some(map) = &self.detections else { return Ok(None) };
        let value = map.lookup(&token.to_ne_bytes(), MapFlags::ANY);
        let value = value.map_err(Error::bpf(DETECTIONS, "read"))?;
        Ok(value.map(|value| {
            let mut detection = Box::<Detection>::new_uninit();
            assert_eq!(value.len(), size_of::<Detection>(), "as `detections` asks for");
            // SAFETY: the length is right, and any bytes are valid.
            unsafe {
                detection.as_mut_ptr().cast::<u8>().copy_from(value.as_ptr(), value.len());
                detection.assume_init()
            }
        }))
    }

    /// How many connections something is kept of, as counted for all users, and how many there is
    /// room for; none: there is no map.
    pub fn count(&self) -> Option<(usize, u32)> {
        let map = self.detections.as_ref()?;
        let [_, users] = shared()?;
        let used = users.lookup(&USERS_ALL.to_ne_bytes(), MapFlags::ANY).ok()??;
        let detections = u32::from_ne_bytes(used.get(4..8)?.try_into().ok()?);
        Some((detections as usize, map.max_entries()))
    }
}

/// Has a connection an entry now?
///
/// # Errors
/// Reading maps needs root.
pub fn has_entry(token: u32) -> Result<bool, Error> {
    for map in maps(CONNS).into_iter().filter(is_readable) {
        let entry = map.lookup(&token.to_ne_bytes(), MapFlags::ANY);
        if entry.map_err(Error::bpf(CONNS, "read"))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The newest decision of the detector of a connection, its places by slot; none: nothing is kept of
/// it ([`Detections::of`]), or nothing was decided yet.
///
/// # Errors
/// Reading maps needs root.
pub fn decision(token: u32) -> Result<Option<Decision>, Error> {
    Ok(Detections::open()?.of(token)?.and_then(|detection| detection.decision()))
}

/// How many connections the state map has room for; none: there is no map.
pub fn capacity() -> Option<u32> {
    all_of(CONNS).first().map(|info| info.max_entries)
}

fn is_readable(map: &MapHandle) -> bool {
    map.value_size() as usize == size_of::<Entry>()
}

/// The map of connections that controls of this build share, and that of its users; none: no
/// control is loaded, or run by a socket.
pub(crate) fn shared() -> Option<[MapHandle; 2]> {
    let conns = maps(CONNS).into_iter().find(is_readable)?;
    let users = maps(USERS).into_iter().find(|map| map.value_size() == USED_BYTES)?;
    Some([conns, users])
}

/// The map of what detectors of this build keep; none: no control that has one is loaded, or run.
pub(crate) fn detections() -> Option<MapHandle> {
    let fits = |map: &MapHandle| map.value_size() as usize == size_of::<Detection>();
    maps(DETECTIONS).into_iter().find(fits)
}

/// The maps with entries of what detectors of any build keep.
pub(crate) fn all_detections() -> Vec<MapHandle> {
    maps(DETECTIONS).into_iter().filter(|map| map.keys().next().is_some()).collect()
}

/// Ids of state maps of other builds, with a layout that this one cannot read.
pub fn of_other_builds() -> Vec<u32> {
    let maps = all_of(CONNS).into_iter();
    maps.filter(|info| info.value_size as usize != size_of::<Entry>()).map(|info| info.id).collect()
}

fn decode(token: u32, entry: &Entry) -> Connection {
    let word = entry.word;
    let bits = |low: u32, width: u32| (word >> low & ((1 << width) - 1)) as u32;
    let control = || {
        let (join, exit) = Control::starts_of(bits(26, 6))?;
        Some(Control {
            law: Law::from_number(bits(16, 6))?,
            detector: Detector::from_number(bits(22, 4))?,
            join,
            exit,
        })
    };
    let paths = (0..MAX_PATHS).filter(|slot| word >> slot & 1 == 1).map(|slot| {
        let ident = &entry.ident[slot];
        ConnectionPath {
            slot,
            local: SocketAddr::new(address(ident.family, ident.saddr), ident.sport as u16),
            remote: SocketAddr::new(address(ident.family, ident.daddr), ident.dport as u16),
            local_id: ident.local_id,
            remote_id: ident.remote_id,
            mask: (entry.conn.masks >> (8 * slot)) as u8,
            delay: Delay::from_number(ident.delay),
            outside: entry.slot[slot].outside == OUTSIDE_ROUNDS,
            line: entry.conn.path[slot],
            event: entry.slot[slot].event,
        }
    });
    Connection {
        token,
        user: entry.user,
        control: control(),
        version: bits(10, 6),
        netns: entry.netns,
        closed: word & WORD_CLOSED != 0,
        paths: paths.collect(),
    }
}

/// An address of `struct nr_ident`; mapped IPv4 as what it is.
fn address(family: u32, words: [u32; 4]) -> IpAddr {
    let mut bytes = [0; 16];
    for (to, word) in bytes.chunks_exact_mut(4).zip(words) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    const AF_INET: u32 = 2;
    if family == AF_INET {
        return Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).into();
    }
    Ipv6Addr::from(bytes).to_canonical()
}

/// A control's counters from its map, by name.
///
/// # Errors
/// The kernel refuses.
pub fn counters(map: &MapHandle) -> Result<Vec<(&'static str, u64)>, libbpf_rs::Error> {
    let mut all = Vec::new();
    for (index, name) in COUNTERS.iter().enumerate() {
        let value = map.lookup(&(index as u32).to_ne_bytes(), MapFlags::ANY)?.unwrap_or_default();
        all.push((*name, value.try_into().map_or(0, u64::from_ne_bytes)));
    }
    Ok(all)
}

/// Is there a map of this name?
pub(crate) fn is_there(name: &str) -> bool {
    !all_of(name).is_empty()
}

/// The existing maps of a name: first the pinned one, which bpftool shares, then the oldest.
fn all_of(name: &str) -> Vec<MapInfo> {
    let pinned = MapHandle::from_pinned_path(Path::new(BPFFS).join(name)).ok();
    let pinned = pinned.and_then(|map| map.info().ok()).map(|about| about.info.id);
    let mut all: Vec<_> = MapInfoIter::default().filter(|info| info.name == name).collect();
    all.sort_by_key(|info| (Some(info.id) != pinned, info.id));
    all
}

/// Likewise, open.
fn maps(name: &str) -> Vec<MapHandle> {
    // One may have died meanwhile.
    all_of(name).into_iter().filter_map(|info| MapHandle::from_map_id(info.id).ok()).collect()
}

/// Hands plain TCP of a network namespace, by its cookie (SO_NETNS_COOKIE), to `control`; with none
/// it runs the law as one path.
///
/// # Errors
/// No control of ours is loaded; the kernel refuses.
pub fn set_plain(netns: u64, control: Option<&str>) -> Result<(), Error> {
    let failed = |doing| Error::bpf(PLAIN, doing);
    let key = netns.to_ne_bytes();
    // It may have died meanwhile.
    let map = all_of(PLAIN).into_iter().find_map(|info| MapHandle::from_map_id(info.id).ok());
    let Some(map) = map else {
        return match control {
            Some(_) => Err(Error::input(PLAIN, "no control has this map")),
            None => Ok(()),
        };
    };
    match control {
        Some(control) => map.update(&key, &padded(control), MapFlags::ANY).map_err(failed("set")),
        None => match map.lookup(&key, MapFlags::ANY).map_err(failed("read"))? {
            Some(_) => map.delete(&key).map_err(failed("change")),
            None => Ok(()),
        },
    }
}

/// The existing map to reuse instead of a new `map`.
///
/// # Errors
/// A map of another layout is in use: its connections could not be shared with the new control.
pub(crate) fn living(control: &str, map: &OpenMap<'_>) -> Result<Option<MapHandle>, Error> {
    let name = map.name().to_string_lossy();
    let ours =
        shape(map.map_type(), map.key_size(), map.value_size(), map.max_entries(), map.map_flags());
    let mut found = None;
    for info in all_of(&name) {
        let Ok(handle) = MapHandle::from_map_id(info.id) else { continue };
        let theirs =
            shape(info.ty, info.key_size, info.value_size, info.max_entries, info.map_flags);
        if theirs == ours {
            found = found.or(Some(handle));
        } else if has_entries(&handle) || others_than(control)? {
            return Err(Error::Layout {
                name: control.to_owned(),
                map: name.into_owned(),
                id: info.id,
                differs: differences(&theirs, &ours),
            });
        }
    }
    Ok(found)
}

/// Is something in a map? An array has all its keys from the beginning: what is in use of it is told by
/// the maps beside it.
fn has_entries(map: &MapHandle) -> bool {
    map.map_type() != MapType::Array && map.keys().next().is_some()
}

/// What builds that share a map have to agree on.
type Shape = [(&'static str, u32); 5];

fn shape(kind: MapType, key: u32, value: u32, room: u32, flags: u32) -> Shape {
    [
        ("type", kind as u32),
        ("bytes a key", key),
        ("bytes an entry", value),
        ("entries at most", room),
        ("flags", flags),
    ]
}

/// In what a map of another build differs from ours.
fn differences(theirs: &Shape, ours: &Shape) -> String {
    let differ = theirs.iter().zip(ours).filter(|(theirs, ours)| theirs != ours);
    let lines = differ.map(|((what, theirs), (_, ours))| format!("{what}: {theirs}, here {ours}"));
    lines.collect::<Vec<_>>().join("; ")
}

/// Keeps libbpf from pinning a map that asks for it, and from taking over what is pinned.
pub(crate) fn not_pinned(map: &mut OpenMapMut<'_>) {
    // SAFETY: the map is open and not loaded yet; null means that nothing is pinned.
    unsafe {
        libbpf_sys::bpf_map__set_pin_path(map.as_libbpf_object().as_ptr(), std::ptr::null());
    }
}

/// Are controls of ours registered, besides this one?
fn others_than(control: &str) -> Result<bool, Error> {
    let ours = |name: &String| name != control && is_ours(name);
    Ok(available_controls()?.iter().any(ours))
}

#[cfg(test)]
mod tests {
    use super::*;
    use libbpf_rs::ObjectBuilder;
    use libbpf_rs::btf::types::{Array, Composite, Int};
    use libbpf_rs::btf::{Btf, BtfType};
    use narrows_laws::Law;

    #[test]
    fn a_map_of_another_build_is_told_by_what_differs() {
        let ours = shape(MapType::Hash, 4, 4096, 262_144, 1);
        let room = shape(MapType::Hash, 4, 4096, 65_536, 1);
        assert_eq!(differences(&room, &ours), "entries at most: 65536, here 262144");
        let more = shape(MapType::Hash, 8, 2048, 262_144, 1);
        let expected = "bytes a key: 8, here 4; bytes an entry: 2048, here 4096";
        assert_eq!(differences(&more, &ours), expected);
    }

    #[test]
    fn rust_and_bpf_see_the_same_memory() {
        let object = crate::object::of(Law::OLIA);
        let open = ObjectBuilder::default().open_memory(object).unwrap();
        let map = |name: &str| open.maps().find(|map| map.name() == name).unwrap();
        assert_eq!(map(CONNS).value_size() as usize, size_of::<Entry>());
        assert_eq!(map("nr_counters").max_entries() as usize, COUNTERS.len());
        let object = crate::object::of_control("olia+xcorr".parse().unwrap());
        let open = ObjectBuilder::default().open_memory(object).unwrap();
        let detections = open.maps().find(|map| map.name() == DETECTIONS).unwrap();
        assert_eq!(detections.value_size() as usize, size_of::<Detection>());
    }

    /// What builds that share maps must agree on besides sizes, as a number: names, offsets and types.
    const LAYOUT: (u32, u64) = (16, 0x6d31_b2e9_9085_3721);

    fn describe(btf: &Btf<'_>, of: BtfType<'_>, text: &mut String) {
        let of = of.skip_mods_and_typedefs();
        if let Ok(members) = Composite::try_from(of) {
            for member in members.iter() {
                *text += &format!("{:?} {:?} ", member.name, member.attr);
                describe(btf, btf.type_by_id(member.ty).unwrap(), text);
            }
        } else if let Ok(array) = Array::try_from(of) {
            *text += &format!("{} of ", array.capacity());
            describe(btf, array.contained_type(), text);
        } else if let Ok(int) = Int::try_from(of) {
            *text += &format!("{} {:?};", int.bits, int.encoding);
        } else {
            *text += &format!("{:?};", of.kind());
        }
    }

    #[test]
    fn another_layout_has_another_version() {
        let object = crate::object::of_control("lia+xcorr".parse().unwrap());
        let btf = Btf::from_raw("control", object).unwrap().unwrap();
        let mut text = String::new();
        for name in
            ["nr_entry", "nr_detection", "nr_used", "nr_xcorr", "nr_xcorr_pairs", "nr_ssc", "nr_tr"]
        {
            describe(&btf, btf.type_by_name(name).expect(name), &mut text);
        }
        // FNV-1a.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        assert!(text.len() > 1000, "{text}");
        let now = (narrows_laws::raw::VERSION, hash);
        assert_eq!(now, LAYOUT, "another layout: raise NR_VERSION, and set LAYOUT");
    }
}
