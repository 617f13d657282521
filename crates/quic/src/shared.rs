//! What the paths of a connection share.
//!
//! noq calls the controllers of a connection one at a time, under its lock, so the lock here is free
//! whenever a controller takes it; one that finds it taken or poisoned does not wait, and goes on
//! [`Alone`](crate::alone::Alone). Readers look at a copy.

use crate::ack_wait::AckWait;
use crate::qlog::{self, Qlog, QlogVersion};
use crate::snapshot::{PairState, PathState, Snapshot};
use narrows_laws::{
    Conn, Control, Event, EventKind, MAX_PATHS, Output, Params, Place, Private, State,
};
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Time 0 of laws is so long before the first path, as some take 0 for never.
const BEFORE: Duration = Duration::from_secs(1);

/// What an event of a path led to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub output: Output,
    /// Fraction of a packet that the window has earned, in 2^-40.
    pub credit: i64,
    /// Bandwidth estimate of a model law, bytes/s.
    pub bw: u64,
}

/// The shared state cannot be used: the path goes on alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost;

/// A connection's paths.
#[derive(Debug)]
struct Paths {
    conn: Conn,
    private: [Private; MAX_PATHS],
    taken: [bool; MAX_PATHS],
    /// One path has had the handshake: another one is of another connection.
    has_first: bool,
    masks: u64,
    decision: u32,
}

/// What all controllers of one factory share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub control: Control,
    pub params: Params,
    /// Events carry [`narrows_laws::flag::SRTT`]: the detector samples the smoothed RTT.
    pub srtt: bool,
    paths: Mutex<Paths>,
    /// Bit n: the path in slot n is gone, and the next event of another removes it.
    gone: AtomicU8,
    /// The factory serves several connections: all paths go on alone.
    mixed: AtomicBool,
    alone: AtomicU64,
    origin: OnceLock<Instant>,
    seen: Mutex<Snapshot>,
    /// How often the receiver was asked for another [`AckWait`], and what it is: noq tells one path only.
    ack_updates: AtomicU32,
    ack_threshold: AtomicU32,
    ack_delay_us: AtomicU32,
    /// A qlog file, and time 0 of it.
    qlog: OnceLock<(Mutex<Qlog>, Instant)>,
}

impl Shared {
    pub fn new(control: Control, params: &Params, srtt: bool) -> Shared {
        let conn = Conn::with_params(control, params);
        let (masks, wait) = (conn.masks(), AckWait::default());
        let paths = Paths {
            conn,
            private: [Private::default(); MAX_PATHS],
            taken: [false; MAX_PATHS],
            has_first: false,
            masks,
            decision: 0,
        };
        Shared {
            control,
            params: *params,
            srtt,
            paths: Mutex::new(paths),
            gone: AtomicU8::new(0),
            mixed: AtomicBool::new(false),
            alone: AtomicU64::new(0),
            origin: OnceLock::new(),
            seen: Mutex::new(Snapshot {
                control: control.to_string(),
                paths: Vec::new(),
                decision: 0,
                pairs: Vec::new(),
                alone: 0,
            }),
            ack_updates: AtomicU32::new(0),
            ack_threshold: AtomicU32::new(wait.threshold),
            ack_delay_us: AtomicU32::new(wait.delay_us),
            qlog: OnceLock::new(),
        }
    }

    /// How often the receiver was asked to delay acknowledgements in another way.
    pub fn ack_updates(&self) -> u32 {
        self.ack_updates.load(Ordering::Relaxed)
    }

    /// How the receiver delays acknowledgements of a path that was built after `built` updates: noq's
    /// takes over a threshold for the paths that there are, a delay for all.
    pub fn ack_wait(&self, built: u32) -> AckWait {
        let mut wait = AckWait::default();
        if self.ack_updates() > built {
            wait.threshold = self.ack_threshold.load(Ordering::Relaxed);
        }
        wait.delay_us = self.ack_delay_us.load(Ordering::Relaxed);
        wait
    }

    /// The receiver is asked for this.
    pub fn set_ack_wait(&self, wait: AckWait) {
        self.ack_threshold.store(wait.threshold, Ordering::Relaxed);
        self.ack_delay_us.store(wait.delay_us, Ordering::Relaxed);
        self.ack_updates.fetch_add(1, Ordering::Relaxed);
    }

    /// A time of noq's in µs.
    pub fn us(&self, now: Instant) -> u64 {
        let origin = *self.origin.get_or_init(|| now);
        (now.saturating_duration_since(origin) + BEFORE).as_micros() as u64
    }

    /// Begins a qlog file.
    pub fn log_to(
        &self,
        version: QlogVersion,
        writer: Box<dyn Write + Send>,
        start: Instant,
    ) -> io::Result<()> {
        let twice = || io::Error::new(io::ErrorKind::AlreadyExists, "a second qlog file");
        if self.qlog.get().is_some() {
            return Err(twice());
        }
        let qlog = Qlog::new(version, writer, &self.control.to_string())?;
        self.qlog.set((Mutex::new(qlog), start)).map_err(|_| twice())
    }

    /// Writes an event to the qlog file, if there is one and nobody else writes to it.
    fn log(&self, now_us: u64, event: qlog::Event) {
        let Some((qlog, start)) = self.qlog.get() else { return };
        let (Some(origin), Ok(mut qlog)) = (self.origin.get(), qlog.try_lock()) else { return };
        let before = origin.saturating_duration_since(*start).as_secs_f64()
            - start.saturating_duration_since(*origin).as_secs_f64();
        let ms = now_us as f64 / 1e3 + (before - BEFORE.as_secs_f64()) * 1e3;
        qlog.write(ms, &event);
    }

    /// Runs `work` on the paths, once those that are gone have left.
    fn with<T>(&self, now_us: u64, work: impl FnOnce(&mut Paths) -> T) -> Result<T, Lost> {
        let mut paths = self.paths.try_lock().map_err(|_| Lost)?;
        if self.mixed.load(Ordering::Relaxed) {
            return Err(Lost);
        }
        let gone = self.gone.swap(0, Ordering::Relaxed);
        for slot in (0..MAX_PATHS).filter(|slot| gone >> slot & 1 != 0) {
            paths.leave(slot, now_us);
            self.log(now_us, qlog::Event::PathLeft { slot });
        }
        if gone != 0 {
            self.forget(gone);
        }
        Ok(work(&mut paths))
    }

    /// A path is opened: its slot, or none if all are taken.
    pub fn join(&self, event: &Event) -> Result<(usize, Reply), Lost> {
        let joined = self.with(event.now_us, |paths| {
            let slot = paths.taken.iter().position(|taken| !taken)?;
            paths.taken[slot] = true;
            Some((slot, paths.event(slot, event)))
        })?;
        let (slot, reply) = joined.ok_or(Lost)?;
        tracing::debug!(slot, cwnd = reply.output.cwnd, "path joins");
        self.log(event.now_us, qlog::Event::PathJoined { slot });
        Ok((slot, reply))
    }

    /// An event of the path in `slot`, after which it has the state `state`.
    pub fn event(&self, slot: usize, event: &Event) -> Result<Reply, Lost> {
        self.with(event.now_us, |paths| paths.event(slot, event))
    }

    /// The path that calls had the handshake. If that is the second, the factory serves two
    /// connections, whose paths have nothing to do with each other.
    pub fn first(&self, now_us: u64) -> Result<(), Lost> {
        let second = self.with(now_us, |paths| std::mem::replace(&mut paths.has_first, true))?;
        if second && !self.mixed.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "one factory for several connections: each path is controlled alone; expected a factory for each"
            );
        }
        if second { Err(Lost) } else { Ok(()) }
    }

    /// The path in `slot` is gone.
    pub fn leave(&self, slot: usize) {
        tracing::debug!(slot, "path leaves");
        self.gone.fetch_or(1 << slot, Ordering::Relaxed);
    }

    /// A path goes on alone.
    pub fn count_alone(&self, now_us: u64) {
        let before = self.alone.fetch_add(1, Ordering::Relaxed);
        self.log(now_us, qlog::Event::PathAlone { count: before + 1 });
        if before == 0 {
            tracing::warn!(
                "a path is controlled alone: the state of the connection is not to be had"
            );
        }
    }

    /// Publishes a path for readers; not while one reads, as the next event publishes again.
    pub fn publish(&self, now_us: u64, state: PathState) {
        let Ok(mut paths) = self.paths.try_lock() else { return };
        let Ok(mut seen) = self.seen.try_lock() else { return };
        // Readers may have been looking when a path left.
        seen.keep(paths.taken());
        if paths.changed() {
            tracing::debug!(masks = format_args!("{:#018x}", paths.masks), "coupling changes");
            (seen.pairs, seen.decision) = (paths.pairs(), paths.decision);
        }
        if self.qlog.get().is_some() {
            if let Some(places) = paths.places() {
                let (number, pairs) = (paths.decision, &seen.pairs[..]);
                self.log(now_us, qlog::Event::DetectorDecided { number, places: &places, pairs });
            }
            self.log(now_us, qlog::Event::GroupsUpdated { groups: paths.groups() });
            self.log(now_us, qlog::Event::MetricsUpdated(&state));
        }
        let place = paths.conn.decision().map(|decision| decision.places[state.slot]);
        let coupled = paths.conn.mask(state.slot) & paths.taken();
        let state = PathState { place, coupled, ..state };
        match seen.paths.iter_mut().find(|path| path.slot == state.slot) {
            Some(path) => *path = state,
            None => seen.paths.push(state),
        }
        // A path's siblings may give or withdraw its advice.
        for path in &mut seen.paths {
            path.advice = paths.conn.advice(path.slot);
        }
    }

    /// Takes paths from what readers see.
    fn forget(&self, gone: u8) {
        if let Ok(mut seen) = self.seen.try_lock() {
            seen.keep(!gone);
        }
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let gone = self.gone.load(Ordering::Relaxed);
        seen.keep(!gone);
        seen.paths.sort_by_key(|path| path.slot);
        seen.alone = self.alone.load(Ordering::Relaxed);
        seen
    }
}

impl Paths {
    fn event(&mut self, slot: usize, event: &Event) -> Reply {
        let output = self.conn.event(slot, &mut self.private[slot], event);
        Reply { output, credit: self.private[slot].credit(), bw: self.conn.path(slot).bw }
    }

    fn leave(&mut self, slot: usize, now_us: u64) {
        let event = Event {
            kind: EventKind::Left as u32,
            state: State::Free as u32,
            now_us,
            ..Event::default()
        };
        self.event(slot, &event);
        self.taken[slot] = false;
    }

    fn taken(&self) -> u8 {
        (0..MAX_PATHS).fold(0, |taken, slot| taken | u8::from(self.taken[slot]) << slot)
    }

    /// Is there a new decision, or new masks?
    fn changed(&mut self) -> bool {
        let masks = self.conn.masks();
        let decision = self.conn.decision().map_or(0, |decision| decision.number);
        let before = (self.masks, self.decision);
        (self.masks, self.decision) = (masks, decision);
        before != (masks, decision)
    }

    /// The places of the newest decision, if there is one, by slot.
    fn places(&self) -> Option<Vec<(usize, Place)>> {
        let decision = self.conn.decision()?;
        let taken = (0..MAX_PATHS).filter(|slot| self.taken[*slot]);
        Some(taken.map(|slot| (slot, decision.places[slot])).collect())
    }

    /// The paths that are coupled with each other, as bits, group by group.
    fn groups(&self) -> Vec<u8> {
        let taken = (0..MAX_PATHS).filter(|slot| self.taken[*slot]);
        let mut groups: Vec<u8> = taken.map(|slot| self.conn.mask(slot) & self.taken()).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    fn pairs(&self) -> Vec<PairState> {
        let taken: Vec<usize> = (0..MAX_PATHS).filter(|slot| self.taken[*slot]).collect();
        let pairs =
            taken.iter().enumerate().flat_map(|(n, &i)| taken[..n].iter().map(move |&j| (j, i)));
        let state = |(i, j)| {
            let pair = self.conn.pair(i, j)?;
            let shared = pair.answer == narrows_laws::detect::Answer::Shared;
            Some(PairState { slots: (i, j), shared, confidence: pair.confidence()? })
        };
        pairs.filter_map(state).collect()
    }
}

/// A path's place in [`Shared`]. A controller and its clones hold it together: the path leaves with
/// the last of them, or when it is abandoned.
#[derive(Debug)]
pub(crate) struct Slot {
    pub shared: Arc<Shared>,
    /// Its number, once it has joined; none if it found no place.
    pub number: OnceLock<usize>,
    left: AtomicBool,
    /// It is used only while no other path works.
    parked: AtomicBool,
}

impl Slot {
    pub fn new(shared: Arc<Shared>) -> Slot {
        let [left, parked] = [(); 2].map(|()| AtomicBool::new(false));
        Slot { shared, number: OnceLock::new(), left, parked }
    }

    pub fn park(&self, parked: bool) {
        self.parked.store(parked, Ordering::Relaxed);
    }

    pub fn is_parked(&self) -> bool {
        self.parked.load(Ordering::Relaxed)
    }

    pub fn leave(&self) {
        if !self.left.swap(true, Ordering::Relaxed)
            && let Some(&number) = self.number.get()
        {
            self.shared.leave(number);
        }
    }

    pub fn has_left(&self) -> bool {
        self.left.load(Ordering::Relaxed)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::PathController;
    use noq_proto::congestion::Controller;

    fn shared() -> Arc<Shared> {
        Arc::new(Shared::new(Control::LIA, &Params::default(), false))
    }

    /// Two paths that have sent a packet.
    fn paths(shared: &Arc<Shared>, now: Instant) -> [PathController; 2] {
        [1, 2].map(|number| {
            let mut path = PathController::new(shared.clone(), 1200);
            path.on_packet_sent(now, 1200, number);
            path
        })
    }

    #[test]
    fn a_path_whose_lock_is_poisoned_or_taken_goes_on_alone() {
        for poison in [true, false] {
            let (shared, now) = (shared(), Instant::now());
            let mut paths = paths(&shared, now);
            assert_eq!(shared.snapshot().alone, 0);
            let held = poison.then(|| {
                let holder = shared.clone();
                let panicked = std::thread::spawn(move || {
                    let _held = holder.paths.lock().unwrap();
                    panic!("with the lock held");
                });
                panicked.join().unwrap_err()
            });
            let taken = held.is_none().then(|| shared.paths.lock().unwrap());
            for path in &mut paths {
                let window = path.window();
                path.on_congestion_event(now, now, true, true, 0, 2);
                assert!(path.window() < window);
            }
            drop(taken);
            assert_eq!(shared.snapshot().alone, 2);
        }
    }

    #[test]
    fn a_path_that_leaves_while_somebody_looks_is_gone() {
        let (shared, now) = (shared(), Instant::now());
        let [mut first, mut second] = paths(&shared, now);
        first.on_end_acks(now, 1200, false, None);
        second.on_end_acks(now, 1200, false, None);
        assert_eq!(shared.snapshot().paths.len(), 2);
        drop(second);
        let looking = shared.seen.lock().unwrap();
        first.on_congestion_event(now, now, false, false, 1200, 1);
        drop(looking);
        first.on_end_acks(now, 1200, false, None);
        assert_eq!(shared.snapshot().paths.len(), 1);
    }

    #[test]
    fn a_path_leaves_with_the_last_of_its_controller_and_clones() {
        let (shared, now) = (shared(), Instant::now());
        let [first, second] = paths(&shared, now);
        let clone = second.clone_box();
        drop(second);
        assert_eq!(shared.gone.load(Ordering::Relaxed), 0);
        drop(clone);
        assert_eq!(shared.gone.load(Ordering::Relaxed), 0b10);
        // The next to come has its slot.
        let mut third = PathController::new(shared.clone(), 1200);
        third.on_packet_sent(now, 1200, 0);
        assert_eq!((first.number(), third.number()), (Some(0), Some(1)));
    }
}
