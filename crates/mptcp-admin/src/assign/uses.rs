//! Where controls are used, and what was there before: a map that is pinned beside the controls, so
//! that it survives the command and goes with the BPF file system.

use libbpf_rs::libbpf_sys::{BPF_F_NO_PREALLOC, bpf_map_create_opts};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use narrows_kernel::Error;
use narrows_kernel::pins::FOLDER;
use narrows_kernel::register::NAME_MAX;
use std::path::{Path, PathBuf};

const PLACE_MAX: usize = 1024;

/// A target, found: the key of its record.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) kind: u64,
    /// Cookie of the network namespace, never given twice, or id of the cgroup.
    pub(super) id: u64,
}

pub(super) const KIND_NETNS: u64 = 1;
pub(super) const KIND_CGROUP: u64 = 2;

/// What is remembered of a use: integers only, so any bytes are valid.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Record {
    pub(super) name: [u8; NAME_MAX],
    pub(super) before: [u8; NAME_MAX],
    pub(super) mptcp_only: u32,
    pub(super) inum: u32,
    pub(super) place: [u8; PLACE_MAX],
}

/// The pinned map of uses.
pub(super) struct Uses(MapHandle);

impl Uses {
    pub(super) fn pin() -> PathBuf {
        Path::new(FOLDER).join("uses")
    }

    pub(super) fn open() -> Result<Option<Uses>, Error> {
        let pin = Uses::pin();
        if !pin.exists() {
            return Ok(None);
        }
        let map = MapHandle::from_pinned_path(&pin).map_err(Uses::failed("open"))?;
        if map.value_size() as usize != size_of::<Record>() {
            let message = "written by another build of narrows; unload with that build";
            return Err(Error::input(pin.display().to_string(), message));
        }
        Ok(Some(Uses(map)))
    }

    pub(super) fn open_or_make() -> Result<Uses, Error> {
        if let Some(uses) = Uses::open()? {
            return Ok(uses);
        }
        let options = bpf_map_create_opts {
            sz: size_of::<bpf_map_create_opts>() as _,
            map_flags: BPF_F_NO_PREALLOC,
            ..Default::default()
        };
        let (key, value) = (size_of::<Key>() as u32, size_of::<Record>() as u32);
        let made = MapHandle::create(MapType::Hash, Some("nr_uses"), key, value, 4096, &options);
        let mut map = made.map_err(Uses::failed("make"))?;
        map.pin(Uses::pin()).map_err(Uses::failed("pin"))?;
        Ok(Uses(map))
    }

    pub(super) fn get(&self, key: Key) -> Result<Option<Record>, Error> {
        let value = self.0.lookup(&key.bytes(), MapFlags::ANY).map_err(Uses::failed("read"))?;
        Ok(value.map(|bytes| Record::from_bytes(&bytes)))
    }

    pub(super) fn all(&self) -> Result<Vec<(Key, Record)>, Error> {
        let mut all = Vec::new();
        for bytes in self.0.keys() {
            let key = Key::from_bytes(&bytes);
            all.extend(self.get(key)?.map(|record| (key, record)));
        }
        all.sort_by_key(|(key, _)| (key.kind, key.id));
        Ok(all)
    }

    /// The use at a place that was called so.
    pub(super) fn called(&self, kind: u64, place: &Path) -> Result<Option<(Key, Record)>, Error> {
        let here = |record: &Record| Path::new(&text(&record.place)) == place;
        Ok(self.all()?.into_iter().find(|(key, record)| key.kind == kind && here(record)))
    }

    pub(super) fn set(&self, key: Key, record: &Record) -> Result<(), Error> {
        self.0
            .update(&key.bytes(), &record.bytes(), MapFlags::ANY)
            .map_err(Uses::failed("write to"))
    }

    pub(super) fn remove(&self, key: Key) -> Result<(), Error> {
        self.0.delete(&key.bytes()).map_err(Uses::failed("remove from"))
    }

    pub(super) fn failed(doing: &'static str) -> impl FnOnce(libbpf_rs::Error) -> Error {
        Error::bpf(Uses::pin().display().to_string(), doing)
    }
}

impl Key {
    pub(super) fn bytes(self) -> Vec<u8> {
        [self.kind, self.id].map(u64::to_ne_bytes).concat()
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Key {
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        Key { kind: word(0), id: word(8) }
    }
}

impl Record {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = [self.name, self.before].concat();
        bytes.extend(self.mptcp_only.to_ne_bytes());
        bytes.extend(self.inum.to_ne_bytes());
        bytes.extend(self.place);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Record {
        let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
        Record {
            name: bytes[..16].try_into().unwrap(),
            before: bytes[16..32].try_into().unwrap(),
            mptcp_only: word(32),
            inum: word(36),
            place: bytes[40..40 + PLACE_MAX].try_into().unwrap(),
        }
    }
}

pub(super) fn place_of(place: &[u8]) -> Result<[u8; PLACE_MAX], Error> {
    let mut bytes = [0; PLACE_MAX];
    let Some(to) = bytes.get_mut(..place.len()) else {
        let place = String::from_utf8_lossy(place);
        return Err(Error::input(place, format!("longer than {PLACE_MAX} bytes")));
    };
    to.copy_from_slice(place);
    Ok(bytes)
}

pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
