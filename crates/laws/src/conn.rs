//! A connection under control, for hosts that run its events one after another.

use crate::control::Control;
use crate::raw::{self, Event, MAX_PATHS, Path};

pub use crate::raw::Private;

/// What a law asks of its host about a path (`enum nr_advice`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    None,
    /// Stop scheduling data on this path.
    Backup,
    /// Close this path.
    Close,
}

/// The answer to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Output {
    /// Window, packets. In recovery: the window that recovery must end with.
    pub cwnd: u32,
    /// Slow start threshold, packets.
    pub ssthresh: u32,
    /// Pacing rate, bytes/s; 0: the host paces by its own rule.
    pub pacing_rate: u64,
    /// What the law asks about this path.
    pub advice: Advice,
}

/// What the paths of a connection share, and the control they run.
#[derive(Clone, Debug)]
pub struct Conn {
    raw: raw::Conn,
    control: Control,
}

impl Conn {
    /// A connection without paths.
    pub fn new(control: Control) -> Conn {
        Conn { raw: raw::Conn::new(control.law as u32, control.detector as u32), control }
    }

    /// The control this connection runs.
    pub fn control(&self) -> Control {
        self.control
    }

    /// An event will come: tells `load` which memory it will need, as far as all laws need it and
    /// the connection has `paths` paths.
    pub fn foresee(&self, paths: usize, load: impl Fn(&[Path], usize)) {
        let paths = &self.raw.path[..paths];
        load(paths, size_of_val(paths));
    }

    /// One event of `path`; `private` must be the one of that path. Panics if `path` is not below
    /// [`MAX_PATHS`].
    pub fn event(&mut self, path: usize, private: &mut Private, event: &Event) -> Output {
        assert!(path < MAX_PATHS, "path {path} of at most {MAX_PATHS}");
        let Control { law, detector, start } = self.control;
        // SAFETY: the pointers are valid and exclusive for the call, and `path` is in range.
        unsafe {
            raw::narrows_event(
                law as u32,
                detector as u32,
                start as u32,
                &mut self.raw,
                path as u32,
                private,
                event,
            );
        }
        let line = &self.raw.path[path];
        Output {
            cwnd: line.cwnd,
            ssthresh: line.ssthresh,
            pacing_rate: line.pacing_rate,
            advice: self.advice(path),
        }
    }

    /// What the law last asked about path `i`. Panics if `i` is not below [`MAX_PATHS`].
    pub fn advice(&self, i: usize) -> Advice {
        match self.raw.path[i].advice {
            1 => Advice::Backup,
            2 => Advice::Close,
            _ => Advice::None,
        }
    }

    /// The published line of path `i`. Panics if `i` is not below [`MAX_PATHS`].
    pub fn path(&self, i: usize) -> &Path {
        &self.raw.path[i]
    }

    /// The coupling mask of path `i`: bit j stands for path j, `i` itself included.
    pub fn mask(&self, i: usize) -> u8 {
        self.raw.masks.to_le_bytes()[i]
    }
}
