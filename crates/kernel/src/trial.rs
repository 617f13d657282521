//! A trial in the kernel: of the new connections that would run one control a share is drawn to run
//! another, and outcomes of both arms are counted (`src/bpf/trial.bpf.c`).
//!
//! No process is needed while it runs: programs and maps are pinned in `/sys/fs/bpf/narrows/trial`, the
//! link that draws last. So a folder without a link is what a killed command left.

use crate::cgroup::Cgroup;
use crate::object::Aligned;
use crate::pins::{FOLDER, make_folder, remove_folder};
use crate::register::{NAME_MAX, padded};
use crate::state;
use crate::{Error, Undo, available, libbpf_log};
use libbpf_rs::{
    Link, Map, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, ProgramInput, ProgramMut,
};
use nix::time::{ClockId, clock_getres, clock_gettime};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

static TRIAL: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/trial.bpf.o")));

const NAME: &str = "nr_trial";
/// Raised when a struct changes that programs and this share.
const LAYOUT: u64 = 3;
const LINK: &str = "link";
const PUT_BACK: &str = "put_back";
/// What is pinned of the maps, by the map's name.
const MAPS: [(&str, &str); 4] = [
    ("nr_trial", "state"),
    ("nr_trial_results", "results"),
    ("nr_trial_minutes", "minutes"),
    // A timer stops when its map is nobody's.
    ("nr_trial_timers", "timers"),
];

/// The arms: who keeps the control, and who gets the other one.
pub const ARMS: usize = 2;
/// Ports that a trial may be bound to (`NR_TRIAL_PORTS`).
pub const PORTS_MAX: usize = 8;
/// Connections in a trial at the same time (`NR_TRIAL_CONNS`).
pub const CONNECTIONS_MAX: u64 = 16_384;
/// Steps of size (`NR_TRIAL_SIZES`): up to 100 kB, 1 MB, 10 MB, more.
pub const SIZES: usize = 4;
/// One, two and more paths, each by size (`NR_TRIAL_STRATA`).
pub const STRATA: usize = 3 * SIZES;
/// Bins of srtt (`NR_SRTT_BINS`), an eighth of an octave each, the first from 1 µs.
pub const SRTT_BINS: usize = 256;
/// Connections of each arm before anything is judged (`NR_TRIAL_LEAST`).
pub const LEAST: u64 = 30;
/// The longest trial (`NR_TRIAL_MINUTES`).
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Limits to the trial's arm over the other one; none: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Guards {
    /// The least ratio of goodputs, 1/16 to 1.
    pub goodput: Option<f64>,
    /// The largest ratio of retransmitted shares, 1 to 16.
    pub retransmits: Option<f64>,
    /// The largest ratio of the 95th percentiles of smoothed round-trip times, 1 to 16; rounded up to
    /// an eighth of an octave.
    pub p95_srtt: Option<f64>,
}

/// How a trial is to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Names in the kernel: the control that connections must have to be drawn, and keep in one arm; and the
    /// one that they get in the other.
    pub controls: [String; ARMS],
    /// The share of connections in the trial's arm, above 0 and below 1.
    pub share: f64,
    /// Of the namespace with this cookie only; none: any.
    pub netns: Option<u64>,
    /// With one of these ports on either side; none: any.
    pub ports: Vec<u16>,
    /// No plain TCP.
    pub mptcp_only: bool,
    /// How long connections are drawn.
    pub lasts: Duration,
    /// What ends it before.
    pub guards: Guards,
    /// Connections of both arms that it is planned for, where intervals are narrowest.
    pub planned: u32,
}

/// Why a trial has ended (`enum nr_trial_end`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By the command.
    Stopped,
    /// Its time was over.
    Time,
    /// The control that is tried could not be given, as it is unloaded.
    Gone,
    /// A guard: goodput fell.
    Goodput,
    /// A guard: more was retransmitted.
    Retransmits,
    /// A guard: round-trip times rose.
    Srtt,
}

/// `struct nr_trial`.
#[repr(C)]
#[derive(Clone, Copy)]
struct State {
    layout: u64,
    controls: [[u8; NAME_MAX]; ARMS],
    key: [u64; 2],
    netns: u64,
    began_ns: u64,
    ends_ns: u64,
    share: u32,
    mptcp_only: u32,
    jiffy_us: u32,
    ports: u32,
    port: [u32; PORTS_MAX],
    guards: [u32; 4],
    /// Bits of the ratios; 0: none.
    limits: [u64; 3],
    ended_ns: u64,
    look_ns: u64,
    drawn: [u64; ARMS],
    living: [u64; ARMS],
    others: u64,
    full: u64,
    refused: u64,
    given: u64,
    put_back: u64,
    ended: u32,
    published: u32,
}

/// Sums over connections (`struct nr_trial_sums`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sums {
    /// Connections that had something to send.
    pub n: u64,
    /// log2 of bytes acknowledged per busy second, in 1/1024.
    pub goodput: u64,
    /// Of its squares.
    pub goodput2: u64,
    /// Share of the segments that were retransmissions, in 1/65536.
    pub retrans: u64,
    /// Of its squares.
    pub retrans2: u64,
    /// Acknowledged.
    pub bytes: u64,
    /// Time in which there was something to send, of the subflow with most of it.
    pub busy_ms: u64,
    /// Segments of data that were sent.
    pub segs: u64,
    /// Of those retransmissions.
    pub retrans_segs: u64,
    /// Subflows that carried data.
    pub paths: u64,
    /// Connections whose control has groups of paths.
    pub grouped: u64,
    /// Groups of those.
    pub groups: u64,
    /// Time without an acknowledgement while something was to be sent, in whole seconds.
    pub silent_ms: u64,
}

/// What became of the connections of an arm (`struct nr_trial_arm`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arm {
    /// By number of paths and size.
    pub strata: [Sums; STRATA],
    /// Connections by their smoothed round-trip time.
    pub srtt: [u64; SRTT_BINS],
}

/// A trial, as it stands.
#[derive(Clone, Debug)]
pub struct Trial {
    /// How it was begun; the key of the hash is left out.
    pub plan: Plan,
    /// When, by CLOCK_MONOTONIC.
    pub began: Duration,
    /// For how long it drew connections.
    pub ran: Duration,
    /// Why it has ended; none: it runs.
    pub ended: Option<End>,
    /// Connections that were drawn, by arm.
    pub drawn: [u64; ARMS],
    /// Connections that are open, by arm.
    pub living: [u64; ARMS],
    /// Connections with another control than that of the trial's other arm, or whose route has one that no
    /// socket may change. They were left alone.
    pub others: u64,
    /// Connections for which there was no room.
    pub full: u64,
    /// Subflows of the trial's arm to which the kernel would not give the control.
    pub refused: u64,
    /// Subflows that MPTCP had given the former control, and that got the tried one again.
    pub given: u64,
    /// Subflows that were given the former control when the trial had ended.
    pub put_back: u64,
    /// How long the longest look took, of one CPU.
    pub longest_look: Duration,
    /// What became of them, by arm, as of the last look.
    pub arms: Box<[Arm; ARMS]>,
    /// The same as of the end of each minute, summed over all strata; without what is judged by.
    pub minutes: Vec<[Sums; ARMS]>,
}

impl Sums {
    /// With those of other connections.
    pub fn join(&mut self, other: &Sums) {
        let Sums {
            n,
            goodput,
            goodput2,
            retrans,
            retrans2,
            bytes,
            busy_ms,
            segs,
            retrans_segs,
            paths,
            grouped,
            groups,
            silent_ms,
        } = other;
        for (all, more) in [
            (&mut self.n, n),
            (&mut self.goodput, goodput),
            (&mut self.goodput2, goodput2),
            (&mut self.retrans, retrans),
            (&mut self.retrans2, retrans2),
            (&mut self.bytes, bytes),
            (&mut self.busy_ms, busy_ms),
            (&mut self.segs, segs),
            (&mut self.retrans_segs, retrans_segs),
            (&mut self.paths, paths),
            (&mut self.grouped, grouped),
            (&mut self.groups, groups),
            (&mut self.silent_ms, silent_ms),
        ] {
            *all = all.saturating_add(*more);
        }
    }
}

impl Default for Arm {
    fn default() -> Arm {
        Arm { strata: [Sums::default(); STRATA], srtt: [0; SRTT_BINS] }
    }
}

impl Arm {
    /// With what became of other connections.
    pub fn join(&mut self, other: &Arm) {
        self.strata.iter_mut().zip(&other.strata).for_each(|(all, more)| all.join(more));
        let bins = self.srtt.iter_mut().zip(&other.srtt);
        bins.for_each(|(all, more)| *all = all.saturating_add(*more));
    }
}

fn folder() -> PathBuf {
    Path::new(FOLDER).join("trial")
}

/// What can be read of a trial that another build may have begun.
#[derive(Clone, Debug)]
pub struct Head {
    /// As in [`Plan`].
    pub controls: [String; ARMS],
    /// May [`read`] read the rest?
    pub readable: bool,
}

/// Is there a trial, running or ended?
fn is_there() -> bool {
    folder().join(LINK).exists()
}

/// Removes what a killed command left of one that had not begun.
///
/// # Errors
/// A pin cannot be removed.
pub fn sweep() -> Result<(), Error> {
    match is_there() {
        true => Ok(()),
        false => remove_folder(&folder()),
    }
}

/// Begins a trial among the connections of `cgroup`.
///
/// # Errors
/// There is one already, or the kernel refuses; nothing is changed then.
pub fn start(cgroup: &Cgroup, plan: &Plan) -> Result<(), Error> {
    available()?;
    if is_there() {
        return Err(Error::input("trial", "there is one; first: narrows kernel trial stop"));
    }
    let mut open = ObjectBuilder::default()
        .name("narrows")
        .and_then(|builder| builder.open_memory(&TRIAL.0))
        .map_err(Error::bpf(NAME, "open"))?;
    for mut map in open.maps_mut() {
        if state::SHARED.iter().any(|shared| map.name() == *shared) {
            state::not_pinned(&mut map);
            if let Some(living) = state::living(NAME, &map)? {
                map.reuse_fd(living.as_fd()).map_err(Error::bpf(NAME, "share the maps of"))?;
            }
        }
    }
    let mut object = libbpf_log::load(NAME, open)?;
    let begun = State::of(plan)?;
    map_of(&object, "nr_trial")
        .update(&0u32.to_ne_bytes(), &begun.bytes(), MapFlags::ANY)
        .map_err(Error::bpf(NAME, "write the plan of"))?;

    let (folder, mut undo) = (folder(), Undo::default());
    make_folder(Path::new(FOLDER), &mut undo)?;
    make_folder(&folder, &mut undo)?;
    let failed = |doing| Error::bpf(NAME, doing);
    for (map, pin) in MAPS {
        let mut map = MapHandle::try_from(&map_of(&object, map)).map_err(failed("pin a map of"))?;
        map.pin(folder.join(pin)).map_err(failed("pin a map of"))?;
    }
    let mut put_back = attach(&object, "nr_trial_put_back", |program| program.attach())?;
    put_back.pin(folder.join(PUT_BACK)).map_err(failed("pin a program of"))?;
    run(&mut object, "nr_trial_start")?;
    let mut link = attach(&object, "nr_trial_sockets", |program| {
        program.attach_cgroup(cgroup.folder().as_raw_fd())
    })?;
    link.pin(folder.join(LINK)).map_err(failed("pin the program of"))?;
    undo.forget();
    Ok(())
}

fn pinned(pin: &str) -> Result<MapHandle, Error> {
    MapHandle::from_pinned_path(folder().join(pin)).map_err(Error::bpf(NAME, "open a map of"))
}

fn value(map: &MapHandle, key: u32) -> Result<Vec<u8>, Error> {
    let value = map.lookup(&key.to_ne_bytes(), MapFlags::ANY);
    value.map(Option::unwrap_or_default).map_err(Error::bpf(NAME, "read a map of"))
}

/// What any build can read of the trial; none: there is none.
///
/// # Errors
/// The BPF file system cannot be read, which only root may.
pub fn head() -> Result<Option<Head>, Error> {
    if !is_there() {
        return Ok(None);
    }
    let state = value(&pinned("state")?, 0)?;
    let layout = state.first_chunk().map(|word| u64::from_ne_bytes(*word));
    let name = |arm: usize| state.get(8 + arm * NAME_MAX..).and_then(|rest| rest.get(..NAME_MAX));
    Ok(Some(Head {
        controls: [0, 1].map(|arm| name(arm).map(unpadded).unwrap_or_default()),
        readable: layout == Some(LAYOUT) && state.len() == size_of::<State>(),
    }))
}

/// The trial; none: there is none.
///
/// # Errors
/// The BPF file system cannot be read, which only root may, or the trial is another build's.
pub fn read() -> Result<Option<Trial>, Error> {
    let other = || {
        let hint = "begun by another build of narrows, which alone can read it; narrows kernel trial stop ends it";
        Error::input("trial", hint)
    };
    match head()? {
        None => return Ok(None),
        Some(head) if !head.readable => return Err(other()),
        Some(_) => {}
    }
    let (state, results, minutes) = (pinned("state")?, pinned("results")?, pinned("minutes")?);
    let now: State = from_bytes(&value(&state, 0)?).ok_or_else(other)?;
    let arms: [Arm; ARMS] = from_bytes(&value(&results, now.published & 1)?).ok_or_else(other)?;
    let until_ns = if now.ended == 0 { monotonic_ns()? } else { now.ended_ns };
    let ran = Duration::from_nanos(until_ns.saturating_sub(now.began_ns));
    let whole = (ran.as_secs() / 60).min(u64::from(minutes.max_entries()));
    let minutes =
        (0..whole as u32).map(|minute| from_bytes(&value(&minutes, minute)?).ok_or_else(other));
    Ok(Some(Trial {
        plan: now.plan(),
        began: Duration::from_nanos(now.began_ns),
        ran,
        ended: now.end(),
        drawn: now.drawn,
        living: now.living,
        others: now.others,
        full: now.full,
        refused: now.refused,
        given: now.given,
        put_back: now.put_back,
        longest_look: Duration::from_nanos(now.look_ns),
        arms: Box::new(arms),
        minutes: minutes.collect::<Result<_, _>>()?,
    }))
}

/// Ends the trial, if it has not ended, and puts its open sockets back that are in this thread's network
/// namespace.
///
/// # Errors
/// The kernel refuses.
pub fn put_back() -> Result<(), Error> {
    let path = folder().join(PUT_BACK);
    // Reading runs the program on each socket.
    let read = File::open(&path).and_then(|mut file| file.read_to_end(&mut Vec::new()));
    read.map(drop).map_err(Error::io(&path, "read"))
}

/// Removes the trial with all that it counted: [`put_back`] comes first.
///
/// # Errors
/// A pin cannot be removed.
pub fn remove() -> Result<(), Error> {
    let link = folder().join(LINK);
    if link.exists() {
        // Fails if the cgroup itself has gone.
        let _ = libbpf_log::capture(|| Link::open(&link).and_then(|link| link.detach()));
        fs::remove_file(&link).map_err(Error::io(&link, "remove"))?;
    }
    remove_folder(&folder())
}

/// Attaches a program of the object.
fn attach(
    object: &Object,
    name: &str,
    attach: impl FnOnce(&ProgramMut<'_>) -> Result<Link, libbpf_rs::Error>,
) -> Result<Link, Error> {
    let program = object.progs_mut().find(|program| program.name() == name);
    let program = program.expect("the object has the program");
    let (link, _) = libbpf_log::capture(|| attach(&program));
    link.map_err(Error::bpf(NAME, "attach a program of"))
}

fn map_of<'a>(object: &'a Object, name: &str) -> Map<'a> {
    object.maps().find(|map| map.name() == name).expect("the object has it")
}

fn run(object: &mut Object, name: &'static str) -> Result<(), Error> {
    let program = object.progs_mut().find(|program| program.name() == name);
    let program = program.expect("the object has the program");
    // A program of its type is run on a packet.
    let packet = ProgramInput { data_in: Some(&[0; 64]), ..ProgramInput::default() };
    let output = program.test_run(packet).map_err(Error::bpf(NAME, "start"))?;
    match output.return_value {
        0 => Ok(()),
        _ => Err(Error::input(NAME, "the kernel gives it no timer")),
    }
}

impl State {
    fn of(plan: &Plan) -> Result<State, Error> {
        let mut key = [0; 16];
        let random = Path::new("/dev/urandom");
        File::open(random)
            .and_then(|mut file| file.read_exact(&mut key))
            .map_err(Error::io(random, "read"))?;
        let word = |at: usize| u64::from_ne_bytes(*key[at..].first_chunk().expect("16 bytes"));
        let began_ns = monotonic_ns()?;
        let mut port = [0; PORTS_MAX];
        for (to, from) in port.iter_mut().zip(&plan.ports) {
            *to = u32::from(*from);
        }
        let tick = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE)
            .map_err(|errno| Error::input("clock", errno.to_string()))?;
        Ok(State {
            layout: LAYOUT,
            controls: [0, 1].map(|arm| padded(&plan.controls[arm])),
            key: [word(0), word(8)],
            netns: plan.netns.unwrap_or(0),
            began_ns,
            ends_ns: began_ns + plan.lasts.as_nanos() as u64,
            share: (plan.share * 4_294_967_296.0) as u32,
            mptcp_only: plan.mptcp_only.into(),
            jiffy_us: (tick.tv_nsec() / 1000) as u32,
            ports: plan.ports.len() as u32,
            port,
            guards: plan.guards.words(plan.planned),
            limits: plan.guards.bits(),
            ended_ns: 0,
            look_ns: 0,
            drawn: [0; ARMS],
            living: [0; ARMS],
            others: 0,
            full: 0,
            refused: 0,
            given: 0,
            put_back: 0,
            ended: 0,
            published: 0,
        })
    }

    fn plan(&self) -> Plan {
        let ports = self.port.iter().take(self.ports as usize);
        Plan {
            controls: self.controls.each_ref().map(|name| unpadded(name)),
            share: f64::from(self.share) / 4_294_967_296.0,
            netns: (self.netns != 0).then_some(self.netns),
            ports: ports.map(|port| *port as u16).collect(),
            mptcp_only: self.mptcp_only != 0,
            lasts: Duration::from_nanos(self.ends_ns.saturating_sub(self.began_ns)),
            guards: Guards::from_bits(&self.limits),
            planned: self.guards[3],
        }
    }

    fn end(&self) -> Option<End> {
        match self.ended {
            0 => None,
            1 => Some(End::Stopped),
            2 => Some(End::Time),
            3 => Some(End::Gone),
            4 => Some(End::Goodput),
            5 => Some(End::Retransmits),
            _ => Some(End::Srtt),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        // SAFETY: integers only, without gaps: the members are as large as they are aligned.
        unsafe {
            std::slice::from_raw_parts(std::ptr::from_ref(self).cast::<u8>(), size_of::<State>())
                .to_vec()
        }
    }
}

impl Guards {
    /// As `struct nr_trial_guards`.
    pub fn words(&self, planned: u32) -> [u32; 4] {
        [
            self.goodput.map_or(0, |ratio| (-ratio.log2() * 1024.0).round() as u32 + 1),
            self.retransmits.map_or(0, |ratio| (ratio * 256.0).round() as u32),
            self.p95_srtt.map_or(0, |ratio| (ratio.log2() * 8.0).ceil() as u32 + 1),
            planned,
        ]
    }

    /// As they were given, which the words are not.
    fn bits(&self) -> [u64; 3] {
        [self.goodput, self.retransmits, self.p95_srtt].map(|limit| limit.map_or(0, f64::to_bits))
    }

    fn from_bits(bits: &[u64; 3]) -> Guards {
        let [goodput, retransmits, p95_srtt] =
            bits.map(|bits| (bits != 0).then(|| f64::from_bits(bits)));
        Guards { goodput, retransmits, p95_srtt }
    }
}

fn unpadded(name: &[u8]) -> String {
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).into_owned()
}

fn from_bytes<T: Copy>(bytes: &[u8]) -> Option<T> {
    // SAFETY: used for structs of integers, of this size, and read without regard to alignment.
    (bytes.len() == size_of::<T>()).then(|| unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

fn monotonic_ns() -> Result<u64, Error> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    let now = now.map_err(|errno| Error::input("clock", errno.to_string()))?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guards_are_read_back_as_they_were_given() {
        let all = Guards { goodput: Some(0.9), retransmits: Some(1.5), p95_srtt: Some(1.3) };
        for guards in [all, Guards { p95_srtt: Some(1.3), ..Guards::default() }] {
            let plan = Plan {
                controls: ["cubic".into(), "nr_gcub_xc".into()],
                share: 0.05,
                netns: None,
                ports: vec![443],
                mptcp_only: false,
                lasts: Duration::from_secs(60),
                guards,
                planned: 8000,
            };
            let state = State::of(&plan).unwrap();
            assert_eq!(state.guards, guards.words(8000));
            let kept: State = from_bytes(&state.bytes()).unwrap();
            assert_eq!(kept.plan().guards, guards);
        }
    }
}
