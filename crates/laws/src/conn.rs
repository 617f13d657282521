//! A connection under a control, for hosts that run its events sequentially.

use crate::EventKind;
use crate::control::{Control, Detector};
use crate::pair::Pair;
use crate::params::Params;
use crate::place::{Place, agreement};
use crate::raw::{self, Detection, Event, MAX_PATHS, Module, Path};
use std::fmt;
use std::ops::Deref;

pub use crate::raw::Private;

/// A law's advice to the host about a path (`enum nr_advice`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Nothing.
    None,
    /// Stop scheduling data on this path.
    Backup,
    /// Close this path.
    Close,
}

impl Path {
    /// The law's advice about it.
    pub fn advice(&self) -> Advice {
        match self.advice {
            1 => Advice::Backup,
            2 => Advice::Close,
            _ => Advice::None,
        }
    }
}

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// Window, packets. In recovery: the window that recovery must end with.
    pub cwnd: u32,
    /// Slow start threshold, packets.
    pub ssthresh: u32,
    /// Pacing rate, bytes/s; 0: chosen by the host.
    pub pacing_rate: u64,
    /// The law's advice about this path.
    pub advice: Advice,
}

impl Output {
    /// A window and a threshold alone, packets.
    pub fn new(cwnd: u32, ssthresh: u32) -> Output {
        Output { cwnd, ssthresh, pacing_rate: 0, advice: Advice::None }
    }
}

/// A detector's observation or decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Decision {
    /// Number of its interval, counted from 1 at time 0; wraps.
    pub number: u32,
    /// When it was made, µs.
    pub at_us: u64,
    /// The place of each path.
    pub places: [Place; MAX_PATHS],
}

impl Decision {
    /// One that a host puts together.
    pub fn new(number: u32, at_us: u64, places: [Place; MAX_PATHS]) -> Decision {
        Decision { number, at_us, places }
    }

    /// From `struct nr_places` of 8 members; none before the first.
    fn unpack(word: u64, at_us: u64) -> Option<Decision> {
        let number = (word >> 32) as u32;
        let places = std::array::from_fn(|i| match (word >> (4 * i)) as u8 & 0xf {
            0xe => Place::Clear,
            0xf => Place::Undecided,
            group => Place::Group(group),
        });
        (number != 0).then_some(Decision { number, at_us, places })
    }
}

impl raw::Conn {
    /// An empty connection for the law and the detector of `control`.
    pub fn new(control: Control, params: &Params) -> Self {
        let (law, detector) = (control.law, control.detector);
        let mut conn = std::mem::MaybeUninit::zeroed();
        // SAFETY: narrows_conn_init writes every field, and reads as many parameters as there are.
        unsafe {
            raw::narrows_conn_init(
                conn.as_mut_ptr(),
                law.number(),
                detector.number(),
                &params.of_window(),
                &params.of_law(law),
                &params.of_join(control.join),
            );
            conn.assume_init()
        }
    }
}

impl Detection {
    /// The newest decision.
    pub fn decision(&self) -> Option<Decision> {
        Decision::unpack(self.decided, self.decided_us)
    }

    /// Does the receiver decide at `now_us` of the host's clock: is its newest decision that was obeyed
    /// less than [`raw::PEER_MS`] old?
    pub fn receiver_decides(&self, now_us: u64) -> bool {
        let age_ms = ((now_us / 1000) as u32).wrapping_sub(self.peer_ms) as i32;
        self.peer_ms != 0 && age_ms < raw::PEER_MS as i32
    }

    /// What `detector` knows of paths `i` and `j`, as [`Conn::pair`]; none of a native one. Panics if
    /// `i` or `j` is not below [`MAX_PATHS`], or they are one path.
    pub fn pair(&self, detector: Detector, i: usize, j: usize) -> Option<Pair> {
        assert!(i < MAX_PATHS && j < MAX_PATHS && i != j, "{i} and {j} of {MAX_PATHS} paths");
        if !detector.decides() || detector.is_native() {
            return None;
        }
        // SAFETY: a dynamic detector that keeps all in it, and paths in range.
        unsafe { pair(detector, self, i, j) }
    }

    /// Are the losses of path `i` random? Then what its delays have in common with another's is no queue.
    /// Panics if `i` is not below [`MAX_PATHS`].
    pub fn loses_at_random(&self, i: usize) -> bool {
        assert!(i < MAX_PATHS, "{i} of {MAX_PATHS} paths");
        // SAFETY: a path in range.
        unsafe { raw::narrows_loses_at_random(self, i as u32) != 0 }
    }

    /// How sure the newest decision of `detector` is of the place of each path, 0 to 1: the share of
    /// the observations with a place that agree ([`FlowsDecision::confidence`]). None before its first
    /// decision, and of a detector that decides by one observation.
    ///
    /// [`FlowsDecision::confidence`]: crate::detect::FlowsDecision::confidence
    pub fn confidence(&self, detector: Detector) -> Option<[f64; MAX_PATHS]> {
        let decision = self.decision().filter(|_| detector.decides())?;
        // SAFETY: a dynamic detector, and parameters of the C side's layout.
        let pace = unsafe { raw::narrows_pace(detector.number(), &self.params) };
        if pace.observations < 2 {
            return None;
        }
        let counts = |number: u32| decision.number.wrapping_sub(number) < pace.observations;
        let observed = self.ring.iter().filter_map(|&word| Decision::unpack(word, 0));
        let observed = observed.filter(|observed| counts(observed.number)).map(|mut observed| {
            for (place, path) in observed.places.iter_mut().zip(&self.path) {
                // Of the slot's path before.
                if observed.number.wrapping_sub(path.since) as i32 <= 0 {
                    *place = Place::Undecided;
                }
            }
            observed.places
        });
        let observed: Vec<_> = observed.collect();
        Some(std::array::from_fn(|path| {
            agreement(observed.iter().map(|places| &places[..]), &decision.places, path)
        }))
    }

    /// Of a connection without paths, for [`event_shared`].
    pub fn new(params: &Params) -> Box<Detection> {
        let mut detection = Box::<Detection>::new_uninit();
        // SAFETY: narrows_detection_init writes every byte.
        unsafe {
            raw::narrows_detection_init(detection.as_mut_ptr(), &params.of_detectors());
            detection.assume_init()
        }
    }
}

/// What `detector` knows of paths `i` and `j`.
///
/// # Safety
/// The detector is dynamic, `detection` is made for it, with what a native one keeps of pairs behind
/// it, and the paths are in range.
unsafe fn pair(
    detector: Detector,
    detection: *const Detection,
    i: usize,
    j: usize,
) -> Option<Pair> {
    let mut pair = raw::Pair::default();
    let number = detector.number();
    // SAFETY: guaranteed by the caller.
    let (kept, pace) = unsafe {
        let kept = raw::narrows_pair(number, detection, i as u32, j as u32, &mut pair) != 0;
        (kept, raw::narrows_pace(number, &(*detection).params))
    };
    kept.then(|| Pair::unpack(&pair, 0, pace.t_us.into()))
}

/// A [`Detection`], and behind it what a native detector keeps of pairs.
#[derive(Clone)]
struct DetectionState(Box<[u64]>);

impl DetectionState {
    /// Of a connection without paths, under dynamic `detector`.
    fn new(detector: Detector, params: &Params) -> DetectionState {
        let behind = if detector.is_native() { detector.table().pairs } else { 0 };
        let words = (size_of::<Detection>() + behind as usize).div_ceil(8);
        let mut memory = vec![0u64; words].into_boxed_slice();
        // SAFETY: the memory has room for a Detection, and its alignment.
        unsafe { raw::narrows_detection_init(memory.as_mut_ptr().cast(), &params.of_detectors()) };
        DetectionState(memory)
    }
}

impl Deref for DetectionState {
    type Target = Detection;

    fn deref(&self) -> &Detection {
        // SAFETY: `new` initialised a Detection there.
        unsafe { &*self.0.as_ptr().cast() }
    }
}

impl fmt::Debug for DetectionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Detection::fmt(self, f)
    }
}

/// One event of path `i` under `control`; `detection` may be null unless the detector is dynamic. The
/// result is in `conn.path[i]`.
///
/// # Safety
/// All pointers but `detection` are valid, `i` is below [`MAX_PATHS`], and `private` is that path's. The
/// detector is not native ([`Detector::is_native`]), as it would write behind `detection`; a debug build
/// panics. The events of one path are sequential; those of siblings may run on other threads at the
/// same time.
pub unsafe fn event_shared(
    control: Control,
    conn: *mut raw::Conn,
    detection: *mut Detection,
    i: u32,
    private: *mut Private,
    event: *const Event,
) {
    debug_assert!(
        !control.detector.is_native(),
        "{} writes behind the detection",
        control.detector.name()
    );
    let module = control.law.module();
    // SAFETY: guaranteed by the caller.
    unsafe { event_of(module, control, conn, detection, i, private, event) }
}

/// The same with a known module of the law, which saves the lookup at every event.
///
/// # Safety
/// As [`event_shared`].
unsafe fn event_of(
    module: &Module,
    control: Control,
    conn: *mut raw::Conn,
    detection: *mut Detection,
    i: u32,
    private: *mut Private,
    event: *const Event,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // Without a detection the detector's answer is fixed, and given when a path joins.
        if !detection.is_null() || (*event).kind == EventKind::Joined as u32 {
            raw::narrows_detect(control.detector.number(), conn, detection, i, event);
        }
        (module.event)(control.start(), conn, i, private, event);
    }
}

/// What the paths of a connection share, and the control they run.
#[derive(Clone, Debug)]
pub struct Conn {
    raw: raw::Conn,
    detection: Option<DetectionState>,
    control: Control,
    module: &'static Module,
}

impl Conn {
    /// A connection without paths.
    pub fn new(control: Control) -> Conn {
        Conn::with_params(control, &Params::default())
    }

    /// A connection without paths, whose law and detector run with `params`. Panics if
    /// [`Params::check`] finds fault with them.
    pub fn with_params(control: Control, params: &Params) -> Conn {
        if let Err(error) = params.check() {
            panic!("{error}");
        }
        let raw = raw::Conn::new(control, params);
        let detection =
            control.detector.decides().then(|| DetectionState::new(control.detector, params));
        Conn { raw, detection, control, module: control.law.module() }
    }

    /// The same, whose dynamic detector is elsewhere: [`Conn::set_decided`] obeys it. Until then all
    /// paths may share.
    pub fn decided_elsewhere(control: Control, params: &Params) -> Conn {
        Conn { detection: None, ..Conn::with_params(control, params) }
    }

    /// The control this connection runs.
    pub fn control(&self) -> Control {
        self.control
    }

    /// Prefetch for an event: calls `load` with the memory that laws need of a connection of
    /// `paths` paths.
    pub fn prefetch(&self, paths: usize, load: impl Fn(&[Path], usize)) {
        let paths = &self.raw.path[..paths];
        load(paths, size_of_val(paths));
    }

    /// One event of `path`; `private` must be the one of that path. Panics if `path` is not below
    /// [`MAX_PATHS`].
    pub fn event(&mut self, path: usize, private: &mut Private, event: &Event) -> Output {
        assert!(path < MAX_PATHS, "path {path} of at most {MAX_PATHS}");
        let detection = self.detection();
        // SAFETY: the pointers are valid and exclusive for the call, or null with a fixed detector,
        // and `path` is in range.
        unsafe {
            let module = self.module;
            event_of(module, self.control, &mut self.raw, detection, path as u32, private, event);
        }
        let line = &self.raw.path[path];
        Output {
            cwnd: line.cwnd,
            ssthresh: line.ssthresh,
            pacing_rate: line.pacing_rate,
            advice: self.advice(path),
        }
    }

    /// The detector's part of an event, for a detector without a law, at a receiver. Panics if
    /// `path` is not below [`MAX_PATHS`].
    pub fn detect(&mut self, path: usize, event: &Event) {
        assert!(path < MAX_PATHS, "path {path} of at most {MAX_PATHS}");
        let (detector, detection) = (self.control.detector.number(), self.detection());
        // SAFETY: as in `event`.
        unsafe { raw::narrows_detect(detector, &mut self.raw, detection, path as u32, event) }
    }

    /// Spreads each decision over several acknowledgements, in which at most `pairs` pairs of paths are
    /// compared (`Detection::at_once`), as a host does that may not hold one up. 0, at first: one
    /// decides.
    pub fn compare_at_once(&mut self, pairs: u32) {
        // SAFETY: exclusive, and a Detection is there.
        if let Some(detection) = unsafe { self.detection().as_mut() } {
            detection.at_once = pairs;
        }
    }

    fn detection(&mut self) -> *mut Detection {
        self.detection
            .as_mut()
            .map_or(std::ptr::null_mut(), |detection| detection.0.as_mut_ptr().cast())
    }

    /// All coupling masks: byte i is the mask of path i.
    pub fn masks(&self) -> u64 {
        self.raw.masks
    }

    /// Likewise the paths that are known to share a bottleneck: they are cut together.
    pub fn cuts(&self) -> u64 {
        self.raw.cuts
    }

    /// Sets masks that were decided elsewhere, of paths that are known to share. Each path is put into
    /// its own mask, and coupling is made mutual.
    pub fn set_masks(&mut self, masks: u64) {
        self.set_decided(masks, masks);
    }

    /// The same, where only those in `cuts` are known to share.
    pub fn set_decided(&mut self, masks: u64, cuts: u64) {
        // SAFETY: the pointer is valid and exclusive.
        unsafe { raw::narrows_masks_set(&mut self.raw, masks, cuts) }
    }

    /// The newest decision, of a dynamic detector.
    pub fn decision(&self) -> Option<Decision> {
        self.detection.as_ref()?.decision()
    }

    /// The newest observation, of a dynamic detector: of one interval, not yet filtered.
    pub fn observation(&self) -> Option<Decision> {
        let detection = self.detection.as_ref()?;
        Decision::unpack(detection.observed, detection.observed_us)
    }

    /// What is known of paths `i` and `j`; none if the detector does not compare pairs. In
    /// [`Conn::decision`] a group may also be of paths that are only not known to be apart: they are
    /// known to share a bottleneck if a chain of pairs connects them whose answer is shared. Panics
    /// if `i` or `j` is not below [`MAX_PATHS`], or they are one path.
    pub fn pair(&self, i: usize, j: usize) -> Option<Pair> {
        assert!(i < MAX_PATHS && j < MAX_PATHS && i != j, "{i} and {j} of {MAX_PATHS} paths");
        let detection = self.detection.as_ref()?;
        // SAFETY: made for the detector, with what it keeps of pairs, and paths in range.
        unsafe { pair(self.control.detector, detection.0.as_ptr().cast(), i, j) }
    }

    /// The shared state of the paths and of a dynamic detector, for comparing runs.
    pub fn shared(&self) -> (&raw::Conn, Option<&Detection>) {
        (&self.raw, self.detection.as_deref())
    }

    /// The law's last advice about path `i`. Panics if `i` is not below [`MAX_PATHS`].
    pub fn advice(&self, i: usize) -> Advice {
        self.raw.path[i].advice()
    }

    /// The published line of path `i`. Panics if `i` is not below [`MAX_PATHS`].
    pub fn path(&self, i: usize) -> &Path {
        &self.raw.path[i]
    }

    /// The coupling mask of path `i`: bit j is path j, `i` included.
    pub fn mask(&self, i: usize) -> u8 {
        self.raw.masks.to_le_bytes()[i]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    #[should_panic(expected = "dcw writes behind the detection")]
    fn a_native_detector_is_not_for_shared_memory() {
        let params = Params::default();
        let control = Control { detector: Detector::DCW, ..Control::LIA };
        let (mut conn, mut detection) = (raw::Conn::new(control, &params), Detection::new(&params));
        let (mut private, event) = (Private::default(), Event::default());
        // SAFETY: all are there; the call panics before it reaches the detector.
        unsafe { event_shared(control, &mut conn, &mut *detection, 0, &mut private, &event) }
    }

    #[test]
    fn only_a_native_detector_has_memory_behind_the_detection() {
        for detector in Detector::all().filter(|detector| detector.decides()) {
            let bytes = 8 * DetectionState::new(detector, &Params::default()).0.len();
            let pairs = detector.table().pairs as usize;
            let own = if detector.is_native() { pairs } else { 0 };
            assert_eq!(bytes, size_of::<Detection>() + own, "{}", detector.name());
        }
    }
}
