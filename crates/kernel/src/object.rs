//! What all our BPF objects have in common.

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Object, Program};
use narrows_laws::{Control, Law, Params};
use std::ffi::OsStr;
use std::os::fd::AsFd;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The BPF object of a law, as it is installed for bpftool.
pub fn of(law: Law) -> &'static [u8] {
    find(CONTROL, law)
}

/// The one that replays events through it.
pub(crate) fn replay_of(law: Law) -> &'static [u8] {
    find(REPLAY, law)
}

fn find(all: &'static [(u32, &'static Aligned<[u8]>)], law: Law) -> &'static [u8] {
    let of = all.iter().find(|(number, _)| *number == law.number());
    &of.expect("each law has been compiled").1.0
}

/// What an object has as constants (`control` in both): how `control` runs with `params`.
pub(crate) fn constants(control: Control, params: &Params) -> Vec<u8> {
    let of = [control.detector.number(), control.start()];
    let words = of.into_iter().chain(params.of_window()).chain(params.of_law(control.law));
    words.flat_map(u32::to_ne_bytes).collect()
}

/// ELF wants more alignment than a byte array promises.
#[repr(C, align(8))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

/// Internal maps are called by their section, some with the object's name before it.
pub(crate) fn ends_with(name: &OsStr, section: &str) -> bool {
    name.as_encoded_bytes().ends_with(section.as_bytes())
}

/// Each program of the object with the instructions the verifier walked through in it.
pub(crate) fn verified_insns(object: &Object) -> Result<Vec<(String, u32)>, libbpf_rs::Error> {
    let mut all = Vec::new();
    for program in object.progs() {
        let id = Program::id_from_fd(program.as_fd())?;
        let info = ProgInfoIter::default().find(|info| info.id == id).expect("it is loaded");
        all.push((program.name().to_string_lossy().into_owned(), info.verified_insns));
    }
    Ok(all)
}
