//! Can BPF be used on this machine?

use libbpf_rs::ProgramType;
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
    // Missing permission looks like a missing type, and would be taken for a present helper.
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
