//! SHA-256 of a file, in pieces: no more of it is in memory.

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// The hash of a file from its beginning to where it has been read.
pub(crate) struct Hasher {
    hash: Sha256,
    at: u64,
    piece: Vec<u8>,
}

impl Hasher {
    pub fn new() -> Hasher {
        Hasher { hash: Sha256::new(), at: 0, piece: vec![0; PIECE] }
    }

    /// Reads on to `end`, as long as `more` wants it.
    pub fn read(&mut self, file: &File, end: u64, more: impl Fn() -> bool) -> io::Result<()> {
        while self.at < end && more() {
            let length = (end - self.at).min(PIECE as u64) as usize;
            let piece = &mut self.piece[..length];
            file.read_exact_at(piece, self.at)?;
            self.hash.update(piece);
            self.at += length as u64;
        }
        Ok(())
    }

    /// In hexadecimal digits.
    pub fn finish(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A flag that is set when its value is dropped, wherever that is: who reads a file stops.
#[derive(Default)]
pub(crate) struct Dropped(Arc<AtomicBool>);

impl Dropped {
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.0.clone()
    }
}

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
