//! The C side: the structs and tables of `c/`, and the functions of `c/native.c`.
//!
//! Hosts use [`crate::Conn`]. This layer is for sharing a connection between threads, as in the
//! kernel, and for tests of that.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::sync::OnceLock;

/// Paths in a connection (`NR_MAX_PATHS`).
pub const MAX_PATHS: usize = 8;

/// Layout of [`Conn`], [`Path`] and [`Private`] (`NR_VERSION`).
pub const VERSION: u32 = 16;

/// Words of parameters that a law may have (`NR_LAW_PARAMS`).
pub const LAW_PARAMS: usize = 16;

/// Words of parameters that a slow start at the join may have (`NR_JOIN_PARAMS`).
pub const JOIN_PARAMS: usize = 4;

/// Words of state that a law may keep of a path (`NR_LAW_WORDS`).
#[cfg(any(all(feature = "user", target_os = "linux"), test))]
const LAW_WORDS: usize = 17;
/// Those of them in which a law with `per_round` keeps its growth (`NR_KEPT_WORDS`).
#[cfg(any(all(feature = "user", target_os = "linux"), test))]
const KEPT_WORDS: usize = 3;

/// Words of parameters of all window laws.
pub const WINDOW_PARAMS: usize = 2;

/// Words of parameters of decisions and of all detectors (`NR_PARAM_WORDS`).
pub const DETECTOR_PARAMS: usize = 128;

/// Numbers of detectors are below this (`NR_DETECTORS_MAX`).
pub(crate) const DETECTORS_MAX: u32 = 16;

/// Numbers of slow starts are below this (`NR_STARTS_MAX`).
pub(crate) const STARTS_MAX: u32 = 8;

/// Goes by delays and losses (`NR_BY_DELAY`).
pub(crate) const BY_DELAY: u32 = 1;

/// "Infinite" slow start threshold, packets (`NR_SSTHRESH_MAX`).
pub const SSTHRESH_MAX: u32 = 0x7fff_ffff;

/// Window growth credit of one packet (`NR_ONE`): credits are in 2^-40 packet.
pub const ONE_PACKET: i64 = 1 << 40;

/// What happened to a path (`enum nr_kind`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind {
    /// The path exists; the law sets its first window.
    Joined = 1,
    /// An acknowledgement, also inside recovery.
    Acked,
    /// Loss found by acknowledgements: reduce once.
    Recovery,
    /// Recovery is over.
    Recovered,
    /// The retransmission timer fired.
    Timeout,
    /// The last reduction was spurious.
    Undo,
    /// Congestion was marked: reduce once, no loss.
    Ecn,
    /// Data after idle; `cwnd` is the host's restart window.
    Restart,
    /// The path is gone; its slot becomes free.
    Left,
}

/// State of a path (`enum nr_state`).
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// No path in this slot.
    Free = 0,
    /// Handshake done, nothing acknowledged yet.
    Joining,
    /// Carries data: the only state that counts in a law's sums.
    Active,
    /// Nothing to send.
    Idle,
    /// Used only when others fail.
    Backup,
    /// Timeouts in a row without an acknowledgement.
    Failed,
}

/// Flags of an event (`enum nr_flag`).
pub mod flag {
    /// The sender was limited by the window.
    pub const CWND_LIMITED: u32 = 1 << 0;
    /// The rate sample was limited by the application.
    pub const APP_LIMITED: u32 = 1 << 1;
    /// The host runs loss recovery: no window growth.
    pub const IN_RECOVERY: u32 = 1 << 2;
    /// The sample's packet was sent after the last round began.
    pub const ROUND_START: u32 = 1 << 3;
    /// The sample's packet was retransmitted; with a timeout: by the timer.
    pub const RETRANS: u32 = 1 << 4;
    /// `owd_us` is valid.
    pub const OWD: u32 = 1 << 5;
    /// `dwell_us` is valid.
    pub const DWELL: u32 = 1 << 6;
    /// The host paces what it sends.
    pub const PACED: u32 = 1 << 7;
    /// A detector samples `srtt8_us`, not the delay of the sample.
    pub const SRTT: u32 = 1 << 8;
    /// A detector does not sample `rtt_us` in place of a one-way delay that is missing.
    pub const NO_DELAY: u32 = 1 << 9;
    /// If `mss` has changed, `cwnd` and `ssthresh` are in packets of that.
    pub const RESIZED: u32 = 1 << 10;
}

/// One event of one path (`struct nr_event`). The host fills all fields; unknown values are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Host's monotonic clock, µs.
    pub now_us: u64,
    /// When the sample's packet was sent, µs; with [`EventKind::Recovery`] and [`EventKind::Ecn`] the newest one
    /// that was lost, or whose acknowledgement told of the mark. 0: not known.
    pub sent_us: u64,
    /// Delivery rate of the sample, bytes/s.
    pub rate: u64,
    /// What happened: an [`EventKind`].
    pub kind: u32,
    /// Bits of [`flag`].
    pub flags: u32,
    /// [`State`] of this path in the host's view.
    pub state: u32,
    /// Packets newly acknowledged, selectively or not.
    pub delivered: u32,
    /// Packets newly marked lost.
    pub lost: u32,
    /// Packets newly reported with ECN CE.
    pub marked: u32,
    /// Round-trip time of the sample, µs.
    pub rtt_us: u32,
    /// Relative one-way delay of the sample, µs.
    pub owd_us: i32,
    /// Delay of the sample by a delayed acknowledgement, µs.
    pub dwell_us: u32,
    /// Packets in flight after this event.
    pub inflight: u32,
    /// Packets in flight when the sample's packet was sent.
    pub sample_inflight: u32,
    /// Packets delivered since it was sent.
    pub sample_delivered: u32,
    /// Packets lost since it was sent.
    pub sample_lost: u32,
    /// The host's window now, packets; outside recovery the law adopts it.
    pub cwnd: u32,
    /// The host's slow start threshold now, packets; likewise. 0: not reported.
    pub ssthresh: u32,
    /// Smoothed RTT, 1/8 µs.
    pub srtt8_us: u32,
    /// Payload bytes of a full packet.
    pub mss: u32,
    /// Until pacing lets the next packet leave, µs; 0: now.
    pub wait_us: u32,
}

/// A path's published line (`struct nr_path`).
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// [`State`] of the path.
    pub state: u32,
    /// Window, packets; in recovery already the window after it.
    pub cwnd: u32,
    /// Slow start threshold, packets.
    pub ssthresh: u32,
    /// Smoothed RTT, 1/8 µs; 0 before the first sample.
    pub srtt8_us: u32,
    /// Payload bytes of a full packet.
    pub mss: u32,
    /// Packets in flight, before the last event's acknowledgement.
    pub inflight: u32,
    /// Time of the last event, ms, wraps.
    pub seen_ms: u32,
    /// Packets siblings took from the window and the path has not settled (low 16 bits).
    pub debit: u32,
    /// Pacing rate, bytes/s; 0: chosen by the host.
    pub pacing_rate: u64,
    /// Model laws: bottleneck bandwidth estimate, bytes/s.
    pub bw: u64,
    /// The law's advice to the host (`enum nr_advice`).
    pub advice: u32,
    /// Number of joins this slot has seen.
    pub generation: u32,
    /// Published words of the law.
    pub word: [u32; 2],
}

/// What a path publishes of one interval for a detector (`struct nr_record`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Number of the interval + 1; 0: never written.
    pub stamp: u32,
    /// Words of the detector.
    pub word: [u32; 7],
}

/// What the paths of a connection share (`struct nr_conn`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conn {
    /// 8 coupling masks of 8 bits; byte i is the mask of path i.
    pub masks: u64,
    /// Likewise: the paths that are known to share its bottleneck.
    pub cuts: u64,
    /// Stamp of the last interval claimed for a decision.
    pub tick: u64,
    /// Layout version (`NR_VERSION`).
    pub version: u32,
    /// The law's number.
    pub law: u32,
    /// Parameters of all window laws.
    pub window: [u32; WINDOW_PARAMS],
    /// The law's parameters.
    pub param: [u32; LAW_PARAMS],
    /// The parameters of the slow start at the join.
    pub join: [u32; JOIN_PARAMS],
    /// The published lines.
    pub path: [Path; MAX_PATHS],
    /// The detectors' double-buffered records.
    pub record: [[Record; 2]; MAX_PATHS],
}

/// Observations that are kept (`NR_OBSERVATIONS`).
pub const OBSERVATIONS: usize = 32;

/// So long after a decision of the receiver that was obeyed the sender's detector does not decide, ms
/// (`NR_PEER_MS`).
pub const PEER_MS: u32 = 10_500;

/// An acknowledgement of one packet that comes so long after the one before it may have waited for a
/// second packet: the shortest wait of Linux, TCP_DELACK_MIN, µs (`NR_DELACK_US`).
pub const DELACK_US: u32 = 40_000;

/// State of a connection under a dynamic detector (`struct nr_detection`).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Detection {
    /// Parameters of decisions and detectors, as [`crate::Params::of_detectors`].
    pub params: [u32; DETECTOR_PARAMS],
    /// Time of the newest observation, µs.
    pub observed_us: u64,
    /// Time of the newest decision, µs.
    pub decided_us: u64,
    /// The newest observation: its stamp in the high half, 4 bits for each path in the low.
    pub observed: u64,
    /// The newest decision, likewise.
    pub decided: u64,
    /// Since when the group of each path is as it is: its join, or the decision that changed it, µs.
    pub since_us: [u64; MAX_PATHS],
    /// The last observations.
    pub ring: [u64; OBSERVATIONS],
    /// The stamps at which decisions last found two paths in one group; of a path with itself, a
    /// place for it. Kept where the detector holds them.
    pub found: [[u32; MAX_PATHS]; MAX_PATHS],
    /// State of each path.
    pub path: [PathDetection; MAX_PATHS],
    /// Set by the host, at first 0: pairs of paths that one event compares at most. Then a decision is
    /// spread over several acknowledgements, of any paths: one that claims it, those that take what paths
    /// published and those that compare pairs with new values, one that groups the paths and one that
    /// answers. 0: it is all in one event.
    pub at_once: u32,
    /// 1: a path is at a decision.
    pub busy: u32,
    /// Stamp of the interval that is being decided on; 0: none.
    pub stamp: u32,
    /// The next path that is taken.
    pub taken: u32,
    /// The next pair.
    pub next: [u32; 2],
    /// 1: the paths are grouped.
    pub grouped: u32,
    /// When a decision of the receiver was obeyed, ms of the host's clock, wraps; 0: none, or it is
    /// too long ago.
    pub peer_ms: u32,
    scratch: [u64; SCRATCH_WORDS],
    /// What the detector keeps of pairs of paths; what a native one keeps follows the detection.
    pub pairs: [u64; PAIRS_WORDS],
}

/// What the paths of a connection have received of the peer's decisions (`struct nr_peer_decision`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerDecision {
    parts: [[u32; MAX_PATHS]; 3],
    done: [u32; 2],
    /// Since when the sender looks for them, ms of the host's clock, wraps.
    pub begun_ms: u32,
    gone: u32,
    owner: [u64; MAX_PATHS],
    scratch: [u64; 29],
}

/// State of a path under a dynamic detector (`struct nr_path_detection`).
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PathDetection {
    due: [u64; 8],
    here: u32,
    /// Stamp of the interval before it joined, or left.
    pub since: u32,
    history: [u64; PATH_DETECTION_WORDS - 9],
}

/// Size of [`PathDetection`] in 64-bit words.
pub const PATH_DETECTION_WORDS: usize = 224;

/// Size of what paths published, and of the scratch memory of a decision, in 64-bit words.
const SCRATCH_WORDS: usize = 57;

/// Size of what a detector keeps of pairs of paths (`NR_PAIRS_WORDS`), in 64-bit words.
pub const PAIRS_WORDS: usize = 2093;

impl fmt::Debug for Detection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Detection").field("decided", &self.decided).finish_non_exhaustive()
    }
}

/// Private state of a path (`struct nr_private`): opaque to hosts, zero before the join.
#[repr(C)]
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Private([u64; PRIVATE_WORDS]);

/// Size of [`Private`] in 64-bit words.
pub const PRIVATE_WORDS: usize = 24;

impl Private {
    /// Credit towards the next packet of window, in 2^-40 packet.
    pub fn credit(&self) -> i64 {
        self.0[0] as i64
    }

    /// Discards the growth that a law with `per_round` keeps (`struct nr_kept`): the next
    /// acknowledgement computes it anew.
    pub fn discard_growth(&mut self) {
        self.0[PRIVATE_WORDS - 1] = 0; // cwnd, mask
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Private").field("credit", &self.credit()).finish_non_exhaustive()
    }
}

/// A law (`struct nr_module`).
#[repr(C)]
#[derive(Debug)]
pub struct Module {
    pub(crate) version: u32,
    reserved: u32,
    pub(crate) law: *const LawTable,
    pub(crate) event: unsafe extern "C" fn(u32, *mut Conn, u32, *mut Private, *const Event),
}

/// The module of the law that was loaded at run time.
pub(crate) static USER: OnceLock<&'static Module> = OnceLock::new();

// SAFETY: modules are constants, and so is all that they point to.
unsafe impl Sync for Module {}
// SAFETY: as above.
unsafe impl Send for Module {}

/// `struct nr_law`, up to the hook `acked`.
#[repr(C)]
pub(crate) struct LawTable {
    pub name: *const c_char,
    pub code: *const c_char,
    pub about: *const c_char,
    pub source: *const c_char,
    pub param: *const ParamRow,
    pub params: u32,
    pub kind: u32,
    pub couples: u32,
    pub start: u32,
    pub state: u32,
    pub alone: u32,
    pub by_time: u32,
    pub pairs: u32,
    pub per_round: u32,
    pub scales: u32,
    pub credit: *const c_void,
    pub ssthresh: *const c_void,
    pub joined: *const c_void,
    pub before: *const c_void,
    pub acked: *const c_void,
    pub begin: *const c_void,
    pub grown: *const c_void,
    pub lost: *const c_void,
    pub undo: *const c_void,
    pub timeout: *const c_void,
    pub restart: *const c_void,
    pub resized: *const c_void,
    pub event: *const c_void,
}

#[cfg(any(all(feature = "user", target_os = "linux"), test))]
impl LawTable {
    /// Maximum of `state`, bytes.
    pub fn room(&self) -> u32 {
        8 * (LAW_WORDS - if self.per_round != 0 { KEPT_WORDS } else { 0 }) as u32
    }
}

/// `struct nr_start`.
#[repr(C)]
pub(crate) struct StartTable {
    pub name: *const c_char,
    pub code: *const c_char,
    pub about: *const c_char,
    pub source: *const c_char,
    pub param: *const ParamRow,
    pub params: u32,
    pub state: u32,
    pub initial: *const c_void,
    pub acked: *const c_void,
    pub credit: *const c_void,
    pub timeout: *const c_void,
}

/// Facts of a detector (`struct nr_detector`); its hooks follow.
#[repr(C)]
pub(crate) struct DetectorTable {
    pub name: *const c_char,
    pub code: *const c_char,
    pub about: *const c_char,
    pub source: *const c_char,
    pub param: *const ParamRow,
    pub preset: *const Preset,
    pub params: u32,
    pub measures: u32,
    pub state: u32,
    pub summary: u32,
    pub summary_at: u32,
    pub pairs: u32,
    pub native: u32,
}

/// `struct nr_param`.
#[repr(C)]
pub(crate) struct ParamRow {
    pub name: *const c_char,
    pub about: *const c_char,
    pub source: *const c_char,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub unit: u32,
}

/// `struct nr_preset`.
#[repr(C)]
pub(crate) struct Preset {
    pub name: *const c_char,
    pub set: *const c_char,
}

/// What is known of two members (`struct nr_pair`).
#[repr(C)]
#[derive(Default)]
pub(crate) struct Pair {
    pub answer: u32,
    pub why: u32,
    pub stamp: u32,
    pub alike: u16,
    pub count: u16,
}

/// When and from what a detector decides (`struct nr_pace`).
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Pace {
    pub t_us: u32,
    pub settle_us: u32,
    pub observations: u32,
    pub together: u32,
    pub every: u32,
    pub hold_us: u32,
}

unsafe extern "C" {
    pub(crate) fn narrows_law(number: u32) -> *const Module;
    pub(crate) fn narrows_start(number: u32) -> *const StartTable;
    pub(crate) fn narrows_detector(number: u32) -> *const DetectorTable;
    pub(crate) fn narrows_decision_param(n: u32) -> *const ParamRow;
    pub(crate) fn narrows_window_param(n: u32) -> *const ParamRow;
    pub(crate) fn narrows_warm_up_us(detector: u32, params: *const [u32; DETECTOR_PARAMS]) -> u64;
    pub(crate) fn narrows_pace(detector: u32, params: *const [u32; DETECTOR_PARAMS]) -> Pace;
    pub(crate) fn narrows_pair(
        detector: u32,
        detection: *const Detection,
        i: u32,
        j: u32,
        pair: *mut Pair,
    ) -> i32;
    pub(crate) fn narrows_loses_at_random(detection: *const Detection, i: u32) -> i32;
    pub(crate) fn narrows_first_row(
        detector: u32,
        i: u32,
        params: *const [u32; DETECTOR_PARAMS],
    ) -> u32;

    pub(crate) fn narrows_conn_init(
        conn: *mut Conn,
        law: u32,
        detector: u32,
        window: *const [u32; WINDOW_PARAMS],
        param: *const [u32; LAW_PARAMS],
        join: *const [u32; JOIN_PARAMS],
    );

    pub(crate) fn narrows_detection_init(
        detection: *mut Detection,
        params: *const [u32; DETECTOR_PARAMS],
    );

    /// The detector's part of [`crate::event_shared`] alone, where no law runs.
    pub fn narrows_detect(
        detector: u32,
        conn: *mut Conn,
        detection: *mut Detection,
        i: u32,
        event: *const Event,
    );

    /// Path `i` receives its place in decision `epoch` of the peer: a group below 8, 0xfe not
    /// congested, 0xff undecided. 1: the decision is complete, and obeyed.
    pub fn narrows_peer_decide(
        conn: *mut Conn,
        detection: *mut Detection,
        peer: *mut PeerDecision,
        i: u32,
        epoch: u32,
        place: u32,
        now_us: u64,
    ) -> i32;

    /// Sets masks that were decided elsewhere. From any thread.
    pub fn narrows_masks_set(conn: *mut Conn, masks: u64, cuts: u64);

    /// Takes up to `want` packets from the window of path `donor` and leaves it at least `keep`;
    /// returns the packets taken. From any thread.
    pub fn narrows_debit_take(conn: *mut Conn, donor: u32, want: u32, keep: u32) -> u32;

    /// Claims decision interval `number`; 1 for exactly one caller. From any thread.
    pub fn narrows_tick_claim(conn: *mut Conn, number: u64) -> i32;

    /// Replaces all masks if they still are `seen`; 1 on success. From any thread.
    pub fn narrows_masks_store(conn: *mut Conn, seen: u64, masks: u64) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::ffi::Sample;
    use std::fmt::Write;
    use std::io::Write as _;
    use std::mem::offset_of;
    use std::process::{Command, Stdio};

    /// What must be so in C, and its value in Rust.
    type Claim = (String, usize);

    fn size_of_field<S, F>(_: impl Fn(&S) -> &F) -> usize {
        size_of::<F>()
    }

    /// A field of a struct: it begins in C where it does here, and is as large; one that is words for
    /// what only C knows begins where the first of that does.
    macro_rules! field {
        ($rust:ident, $c:ident, $field:ident) => {{
            let c = concat!("((struct ", stringify!($c), " *)0)->", stringify!($field));
            let size = size_of_field(|of: &$rust| &of.$field);
            [field!($rust, $c, $field, stringify!($field)), vec![(format!("sizeof({c})"), size)]]
                .concat()
        }};
        ($rust:ident, $c:ident, $field:ident, $first:expr) => {{
            let c = format!("offsetof(struct {}, {})", stringify!($c), $first);
            vec![(c, offset_of!($rust, $field))]
        }};
    }

    /// All fields of a struct; the compiler finds one that is missing.
    macro_rules! fields {
        ($rust:ident: $c:ident { $($field:ident $(= $first:literal)?),* $(,)? }) => {{
            let _ = |of: $rust| { let $rust { $($field: _),* } = of; };
            [$(field!($rust, $c, $field $(, $first)?)),*].concat()
        }};
    }

    fn structs() -> Vec<Claim> {
        [
            fields!(Event: nr_event {
                now_us, sent_us, rate, kind, flags, state, delivered, lost, marked, rtt_us, owd_us,
                dwell_us, inflight, sample_inflight, sample_delivered, sample_lost, cwnd, ssthresh,
                srtt8_us, mss, wait_us,
            }),
            fields!(Path: nr_path {
                state, cwnd, ssthresh, srtt8_us, mss, inflight, seen_ms, debit, pacing_rate, bw,
                advice, generation, word,
            }),
            fields!(Record: nr_record { stamp, word }),
            fields!(Conn: nr_conn {
                masks, cuts, tick, version, law, window, param, join, path, record,
            }),
            fields!(Detection: nr_detection {
                params, observed_us, decided_us, observed, decided, since_us, ring = "ring.of",
                found = "ring.found", path, at_once, busy, stamp, taken, next = "i", grouped,
                peer_ms, scratch = "summaries", pairs,
            }),
            fields!(PathDetection: nr_path_detection { due = "due_us", here, since, history }),
            fields!(PeerDecision: nr_peer_decision {
                parts = "part", done = "done", begun_ms, gone, owner, scratch,
            }),
            fields!(Module: nr_module { version, reserved, law, event }),
            fields!(LawTable: nr_law {
                name, code, about, source, param, params, kind, couples, start, state, alone,
                by_time, pairs, per_round, scales, credit, ssthresh, joined, before, acked, begin, grown,
                lost, undo, timeout, restart, resized, event,
            }),
            fields!(StartTable: nr_start {
                name, code, about, source, param, params, state, initial, acked, credit, timeout,
            }),
            fields!(DetectorTable: nr_detector {
                name, code, about, source, param, preset, params, measures, state, summary,
                summary_at, pairs, native,
            }),
            fields!(ParamRow: nr_param { name, about, source, value, low, high, unit }),
            fields!(Preset: nr_preset { name, set }),
            fields!(Pair: nr_pair { answer, why, stamp, alike, count }),
            fields!(Pace: nr_pace { t_us, settle_us, observations, together, every, hold_us }),
            fields!(Sample: nr_sample {
                now_us, bw, delay_us, delivered, lost, cycles, rtt_us, sampled, supposed, limited,
                resting,
            }),
        ]
        .concat()
    }

    fn sizes() -> Vec<Claim> {
        let sizes = [
            ("event", size_of::<Event>()),
            ("path", size_of::<Path>()),
            ("record", size_of::<Record>()),
            ("conn", size_of::<Conn>()),
            ("private", size_of::<Private>()),
            ("detection", size_of::<Detection>()),
            ("path_detection", size_of::<PathDetection>()),
            ("peer_decision", size_of::<PeerDecision>()),
            ("params", size_of::<[u32; DETECTOR_PARAMS]>()),
            ("module", size_of::<Module>()),
            ("law", size_of::<LawTable>()),
            ("start", size_of::<StartTable>()),
            ("param", size_of::<ParamRow>()),
            ("preset", size_of::<Preset>()),
            ("pair", size_of::<Pair>()),
            ("pace", size_of::<Pace>()),
            ("sample", size_of::<Sample>()),
        ];
        sizes.map(|(name, size)| (format!("sizeof(struct nr_{name})"), size)).into()
    }

    fn numbers() -> Vec<Claim> {
        let numbers = [
            ("NR_VERSION", VERSION as usize),
            ("NR_MAX_PATHS", MAX_PATHS),
            ("NR_LAW_PARAMS", LAW_PARAMS),
            ("NR_JOIN_PARAMS", JOIN_PARAMS),
            ("NR_LAW_WORDS", LAW_WORDS),
            ("NR_KEPT_WORDS", KEPT_WORDS),
            ("NR_PARAM_WORDS", DETECTOR_PARAMS),
            ("NR_DETECTORS_MAX", DETECTORS_MAX as usize),
            ("NR_STARTS_MAX", STARTS_MAX as usize),
            ("NR_BY_DELAY", BY_DELAY as usize),
            ("NR_SSTHRESH_MAX", SSTHRESH_MAX as usize),
            ("NR_ONE", ONE_PACKET as usize),
            ("NR_OBSERVATIONS", OBSERVATIONS),
            ("NR_PEER_MS", PEER_MS as usize),
            ("NR_DELACK_US", DELACK_US as usize),
            ("NR_PAIRS_WORDS", PAIRS_WORDS),
            ("offsetof(struct nr_params, decision)", 0),
            ("NR_JOINED", EventKind::Joined as usize),
            ("NR_ACKED", EventKind::Acked as usize),
            ("NR_RECOVERY", EventKind::Recovery as usize),
            ("NR_RECOVERED", EventKind::Recovered as usize),
            ("NR_TIMEOUT", EventKind::Timeout as usize),
            ("NR_UNDO", EventKind::Undo as usize),
            ("NR_ECN", EventKind::Ecn as usize),
            ("NR_RESTART", EventKind::Restart as usize),
            ("NR_LEFT", EventKind::Left as usize),
            ("NR_FREE", State::Free as usize),
            ("NR_JOINING", State::Joining as usize),
            ("NR_ACTIVE", State::Active as usize),
            ("NR_IDLE", State::Idle as usize),
            ("NR_BACKUP", State::Backup as usize),
            ("NR_FAILED", State::Failed as usize),
            ("NR_F_CWND_LIMITED", flag::CWND_LIMITED as usize),
            ("NR_F_APP_LIMITED", flag::APP_LIMITED as usize),
            ("NR_F_IN_RECOVERY", flag::IN_RECOVERY as usize),
            ("NR_F_ROUND_START", flag::ROUND_START as usize),
            ("NR_F_RETRANS", flag::RETRANS as usize),
            ("NR_F_OWD", flag::OWD as usize),
            ("NR_F_DWELL", flag::DWELL as usize),
            ("NR_F_PACED", flag::PACED as usize),
            ("NR_F_SRTT", flag::SRTT as usize),
            ("NR_F_NO_DELAY", flag::NO_DELAY as usize),
            ("NR_F_RESIZED", flag::RESIZED as usize),
            // Hooks follow what Rust has of a detector; growth is kept in the last words of a path.
            ("offsetof(struct nr_detector, masks)", size_of::<DetectorTable>().next_multiple_of(8)),
            ("offsetof(struct nr_private, credit)", 0),
            ("offsetof(struct nr_private, law[NR_LAW_WORDS])", size_of::<Private>()),
        ];
        numbers.map(|(name, value)| (name.into(), value)).into()
    }

    /// Every field, size and number that is written down here, against the headers themselves: what C
    /// counts, none of it chosen here. No bindgen, which would need libclang to build a crate that needs
    /// only a C compiler, and would not have the documentation.
    #[test]
    fn rust_and_c_see_the_same_memory() {
        let mut program = String::from(
            "#include <stddef.h>\n#include \"detectors.h\"\n#include \"detect/peer_decision.h\"\n\
             #include \"laws.def\"\n#include \"module.h\"\n",
        );
        for (c, here) in [structs(), sizes(), numbers()].concat() {
            let name = c.replace('"', "");
            writeln!(program, "_Static_assert(({c}) == {here}, \"{name}: {here} in Rust\");")
                .unwrap();
        }
        let headers = concat!(env!("CARGO_MANIFEST_DIR"), "/c");
        let mut compiler = Command::new("cc")
            .args(["-std=c11", "-ffreestanding", "-fsyntax-only", "-I", headers, "-xc", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        compiler.stdin.take().unwrap().write_all(program.as_bytes()).unwrap();
        let output = compiler.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
