//! Deletes entries of the map of connections that no path has any more (`src/bpf/reap.bpf.c`).

use crate::object::Aligned;
use crate::state::{self, CONNS, DETECTIONS, USERS};
use crate::{Error, libbpf_log};
use libbpf_rs::{MapCore, MapHandle, Object, ObjectBuilder, ProgramInput};
use std::os::fd::AsFd;
use std::thread::sleep;
use std::time::Duration;

static REAP: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/reap.bpf.o")));

/// Between the two looks at an entry. A path joins or leaves in well under 1 µs; this also covers a
/// virtual CPU that is not running for some time slices of its host.
const APART: Duration = Duration::from_millis(100);

/// Deletes the entries that were left behind in the maps of connections, and what detectors kept of
/// them, and returns how many. An entry that has a living path is never deleted: its socket is asked.
///
/// # Errors
/// The kernel refuses.
pub fn reap() -> Result<u32, Error> {
    // Mostly there is nothing, and nothing to load.
    let Some(shared) = state::shared() else { return Ok(0) };
    if shared[0].keys().next().is_none() {
        return Ok(0);
    }
    // Builds whose detectors keep different things have a map each: first the entries that have
    // something in one of them.
    let mut detections = state::all_detections();
    let last = detections.pop();
    let mut reaped = 0;
    for map in &detections {
        reaped += reap_of(&shared, Some(map), true)?;
    }
    Ok(reaped + reap_of(&shared, last.as_ref(), false)?)
}

/// Deletes entries, of those `detected` only that are in the map `detections`.
fn reap_of(
    [conns, users]: &[MapHandle; 2],
    detections: Option<&MapHandle>,
    detected: bool,
) -> Result<u32, Error> {
    let failed = |doing| Error::bpf(CONNS, doing);
    let mut open = ObjectBuilder::default()
        .name("narrows")
        .and_then(|builder| builder.open_memory(&REAP.0))
        .map_err(failed("open the program for"))?;
    // What is in a detection does not matter, so one of another build's layout goes, too.
    for (name, living) in [(CONNS, Some(conns)), (USERS, Some(users)), (DETECTIONS, detections)] {
        let mut map = open.maps_mut().find(|map| map.name() == name).expect("the object has it");
        state::not_pinned(&mut map);
        if let Some(living) = living {
            map.reuse_fd(living.as_fd()).map_err(failed("share"))?;
        }
    }
    let mut object = libbpf_log::load("nr_reap", open)?;
    let mut reaped = 0;
    // As many at a time as the program has room for.
    loop {
        if run(&mut object, "nr_find", detected)? == 0 {
            return Ok(reaped);
        }
        sleep(APART);
        match run(&mut object, "nr_reap", detected)? {
            0 => return Ok(reaped),
            some => reaped += some,
        }
    }
}

fn run(object: &mut Object, name: &'static str, detected: bool) -> Result<u32, Error> {
    let program = object.progs_mut().find(|program| program.name() == name);
    let program = program.expect("the object has the program");
    // struct which.
    let mut which = u32::from(detected).to_ne_bytes();
    let input = ProgramInput { context_in: Some(&mut which), ..ProgramInput::default() };
    let output = program.test_run(input).map_err(Error::bpf(CONNS, name))?;
    Ok(output.return_value)
}
