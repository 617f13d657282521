//! What all our BPF objects have in common.

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Object, Program};
use std::ffi::OsStr;
use std::os::fd::AsFd;

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
