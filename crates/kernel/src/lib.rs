//! Narrows in the stock Linux kernel.
//!
//! The laws' C headers are compiled for BPF and loaded through the kernel's verifier; a control is
//! chosen by constants at load, so the verifier prunes and the JIT compiles that control alone.
//!
//! What is here: [`replay`], which runs recorded events through a control inside the kernel, away
//! from any socket. The tests compare every outcome with native code's, bit by bit, and bound what
//! the verifier must walk; the bench tells the cost of an acknowledgement.
//!
//! [`control`] puts a control into the kernel, where sockets can ask for it by its name (`struct
//! tcp_congestion_ops` by BPF struct_ops), and [`state`] reads what its connections share.
//!
//! Building needs clang (Debian: clang-19) and the headers of libelf and zlib (libelf-dev,
//! zlib1g-dev, pkg-config); running needs root and a kernel with BTF. See [`available`].

pub mod cgroup;
pub mod control;
mod error;
mod libbpf_log;
pub mod pins;
pub mod register;
pub mod replay;
pub mod state;
mod undo;

pub use error::Error;
pub use undo::Undo;

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Object, Program, ProgramType};
use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Why BPF cannot be used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Loading needs CAP_BPF and more.
    #[error("loading BPF programs needs root")]
    NotRoot,
    /// libbpf relocates against the kernel's types, and so will the congestion control.
    #[error("this kernel has no BTF (/sys/kernel/btf/vmlinux)")]
    NoBtf,
    /// The programs need type syscall (Linux 5.14) and loops that the verifier walks once (5.17).
    #[error("this kernel refuses BPF: no CAP_BPF here, locked down, or older than Linux 5.17")]
    Refused,
}

/// Can BPF programs be loaded by this process in this kernel?
pub fn available() -> Result<(), Unavailable> {
    if !is_root() {
        return Err(Unavailable::NotRoot);
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Unavailable::NoBtf);
    }
    // A refusal looks as a missing type does, and would pass for a helper that is there.
    let loops = libbpf_rs::libbpf_sys::BPF_FUNC_loop;
    let syscall = ProgramType::Syscall;
    match (syscall.is_supported(), syscall.is_helper_supported(loops)) {
        (Ok(true), Ok(true)) => Ok(()),
        _ => Err(Unavailable::Refused),
    }
}

/// Is this process root?
pub fn is_root() -> bool {
    // The owner of /proc/self is the effective user.
    std::fs::metadata("/proc/self").is_ok_and(|this| this.uid() == 0)
}

/// ELF wants more alignment than a byte array promises.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// Internal maps are called by their section, some with the object's name before it.
fn ends_with(name: &OsStr, section: &str) -> bool {
    name.as_encoded_bytes().ends_with(section.as_bytes())
}

/// Each program of the object with the instructions the verifier walked through in it.
fn verified_insns(object: &Object) -> Result<Vec<(String, u32)>, libbpf_rs::Error> {
    let mut all = Vec::new();
    for program in object.progs() {
        let id = Program::id_from_fd(program.as_fd())?;
        let info = ProgInfoIter::default().find(|info| info.id == id).expect("it is loaded");
        all.push((program.name().to_string_lossy().into_owned(), info.verified_insns));
    }
    Ok(all)
}
