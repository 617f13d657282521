//! Narrows in the stock Linux kernel.
//!
//! The laws' C headers are compiled for BPF and loaded through the kernel's verifier; a control is
//! chosen by constants at load, so the verifier prunes and the JIT compiles that control alone.
//!
//! [`control`] loads a control into the kernel, where sockets can select it by name (`struct
//! tcp_congestion_ops` by BPF struct_ops); [`pins`] makes it outlive the command that loaded it,
//! [`cgroup`] selects it for the sockets of a cgroup, [`state`] reads the state of connections, and
//! [`reap()`] deletes what was left of them. [`sampler`] reads round-trip times of sockets under any
//! control. [`receiver`] detects at the receiver. [`trial`] gives a share of new connections another control,
//! and counts what becomes of them.
//!
//! [`replay`] runs recorded events through a control in the kernel, without sockets. The tests compare
//! every outcome with native code's, bit by bit, and bound the verified instructions; the bench
//! measures the cost of an acknowledgement.
//!
//! Building needs clang (Debian: clang-19) and the headers of libelf and zlib (libelf-dev,
//! zlib1g-dev, pkg-config); running needs root and a kernel with BTF. See [`available`].

mod available;
pub mod bpffs;
pub mod cgroup;
mod clang;
pub mod control;
mod error;
mod libbpf_log;
pub mod object;
pub mod pins;
mod reap;
pub mod receiver;
pub mod register;
pub mod replay;
mod run;
pub mod sampler;
mod settings;
mod signal;
pub mod state;
pub mod trial;
mod undo;

pub use available::{Unavailable, available, is_root};
pub use error::Error;
pub use reap::reap;
pub use run::run_folder;
pub use settings::Settings;
pub use signal::{Delay, Signal};
pub use undo::Undo;
