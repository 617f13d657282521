//! Detection at the receiver. A program at the subflows of a cgroup (`src/bpf/receiver.bpf.c`)
//! decides what is received over, and tells the sender in a TCP option of pure acknowledgements; the
//! sender's obeys what it is told so. Nothing is pinned: program and maps end with the process, however
//! it ends.

use crate::cgroup::Cgroup;
use crate::object::{Aligned, detection, ends_with};
use crate::state::{self, PEERS};
use crate::{Error, available, libbpf_log};
use libbpf_rs::{Link, MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use narrows_laws::Params;
use std::os::fd::{AsFd, AsRawFd};

static RECEIVER: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/receiver.bpf.o")));

const NAME: &str = "nr_receiver";

/// The programs, attached to a cgroup.
pub struct ReceiverDetector {
    /// Detached when dropped.
    _link: Link,
    object: Object,
}

/// Decisions since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Made here, as the receiver.
    pub decided: u64,
    /// Obeyed here, as the sender.
    pub obeyed: u64,
}

impl ReceiverDetector {
    /// Attaches it to the connections of `cgroup` that begin from now on. The receiver's detector is
    /// `xcorr`.
    ///
    /// # Errors
    /// BPF cannot be used here, or the kernel refuses; a process detects at the receiver already; a state map of
    /// another layout is in use.
    pub fn start(cgroup: &Cgroup) -> Result<ReceiverDetector, Error> {
        available()?;
        if state::is_there(PEERS) {
            return Err(Error::input("receiver", "another process detects on this machine"));
        }
        let mut open = ObjectBuilder::default()
            .name("narrows")
            .and_then(|builder| builder.open_memory(&RECEIVER.0))
            .map_err(Error::bpf(NAME, "open"))?;
        for mut map in open.maps_mut() {
            if ends_with(map.name(), ".rodata.first") {
                // What the detector keeps is the first member.
                let detection = detection(&Params::default());
                map.initial_value_mut().expect("it has one")[..detection.len()]
                    .copy_from_slice(&detection);
            } else if state::SHARED.iter().any(|shared| map.name() == *shared) {
                state::not_pinned(&mut map);
                if let Some(living) = state::living(NAME, &map)? {
                    map.reuse_fd(living.as_fd()).map_err(Error::bpf(NAME, "share the maps of"))?;
                }
            }
        }
        let object = libbpf_log::load(NAME, open)?;
        let program = object.progs_mut().find(|program| program.name() == NAME);
        let program = program.expect("the object has the program");
        let (link, _) = libbpf_log::capture(|| program.attach_cgroup(cgroup.folder().as_raw_fd()));
        let place = cgroup.path.display().to_string();
        let link = link.map_err(Error::bpf(place, "attach the program to"))?;
        Ok(ReceiverDetector { _link: link, object })
    }

    /// Deletes what is kept of connections that had ended by the last call. To be called once a second.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn sweep(&mut self) -> Result<(), Error> {
        let program = self.object.progs_mut().find(|program| program.name() == "nr_sweep");
        let program = program.expect("the object has the program");
        let swept = program.test_run(ProgramInput::default());
        swept.map(|_| ()).map_err(Error::bpf(NAME, "run"))
    }

    /// What was decided so far.
    pub fn decisions(&self) -> Decisions {
        let bss = self.object.maps().find(|map| ends_with(map.name(), ".bss"));
        let value = bss.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        let word = |n: usize| {
            let bytes = value.as_ref()?.get(8 * n..8 * n + 8)?;
            Some(u64::from_ne_bytes(bytes.try_into().expect("8 bytes")))
        };
        let [decided, obeyed] = [0, 1].map(|n| word(n).unwrap_or(0));
        Decisions { decided, obeyed }
    }
}
