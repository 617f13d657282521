//! Replays events through a control in the kernel, by a BPF program of type syscall.
//!
//! The BPF side is `src/bpf/replay.bpf.c`. All its data is one variable, so that input and output
//! are one map value.

pub use crate::object::AT_ONCE;
use crate::object::{self, ends_with, verified_insns};
use crate::{Error, libbpf_log};
use libbpf_rs::{MapCore, MapFlags, Object, ObjectBuilder, ProgramInput};
use narrows_laws::raw::{Conn, Detection};
use narrows_laws::replay::trace;
use narrows_laws::{Control, Event, MAX_PATHS, Params, Path, Private};
use std::fmt;
use std::time::Duration;

/// Events of one run of the BPF program (`STEPS`).
pub const STEPS: usize = 1024;

/// Our limit of verified instructions per program of a control; the kernel's is a million.
pub const VERIFIED_INSNS_MAX: u32 = 200_000;

/// All that an event may change, except other paths' debits (`struct outcome`).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The coupling masks: byte i is the mask of path i.
    pub masks: u64,
    /// The path's private state.
    pub private: Private,
    /// The path's published line.
    pub path: Path,
}

impl Outcome {
    /// After an event of `path`.
    pub fn of(conn: &narrows_laws::Conn, path: usize, private: &Private) -> Outcome {
        Outcome { masks: conn.masks(), private: *private, path: *conn.path(path) }
    }
}

/// The first event whose outcome in the kernel differs from native code's.
#[derive(Clone, Debug)]
pub struct Difference {
    control: Control,
    seed: u64,
    paths: usize,
    step: usize,
    event: (u32, Event),
    native: Outcome,
    kernel: Outcome,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { control, seed, paths, step, event, native, kernel } = self;
        write!(
            f,
            "{control}: native {native:?}, in the kernel {kernel:?}, after event {step} of trace \
             {seed} of {paths} paths: {event:?}"
        )
    }
}

/// `struct step`.
#[repr(C)]
struct Step {
    event: Event,
    path: u32,
    reserved: u32,
}

/// `replay`, the one variable of the BPF side: integers only, so any bytes are valid.
#[repr(C)]
struct Memory {
    conn: Conn,
    detection: Detection,
    private: [Private; MAX_PATHS],
    step: [Step; STEPS],
    outcome: [Outcome; STEPS],
}

/// A control loaded in the kernel, and a connection that runs it.
pub struct Replay {
    control: Control,
    object: Object,
    memory: Box<Memory>,
}

impl Replay {
    /// Loads `control` through the verifier; the connection has no paths yet.
    ///
    /// # Errors
    /// A detector that is not for BPF; BPF, or the verifier, refuses.
    pub fn load(control: Control) -> Result<Replay, Error> {
        let name = control.to_string();
        if control.detector.is_native() {
            let detector = control.detector.name();
            let message = format!("detector '{detector}' takes too much work and memory for BPF");
            return Err(Error::input(name, message));
        }
        let mut object = ObjectBuilder::default()
            .name("narrows")
            .and_then(|builder| builder.open_memory(object::replay_of(control.law)))
            .map_err(Error::bpf(&name, "open"))?;
        object
            .maps_mut()
            .find(|map| ends_with(map.name(), ".rodata.control"))
            .expect("the object has its constants")
            .set_initial_value(&object::replay_constants(control, &Params::default()))
            .map_err(Error::bpf(&name, "choose"))?;
        let object = libbpf_log::load(&name, object)?;
        let mut replay = Replay { control, object, memory: zeroed() };
        replay.reset(&Params::default())?;
        Ok(replay)
    }

    /// Runs a trace (`narrows_laws::replay::trace`) through the native control, and then in the
    /// kernel. Returns the first difference, if any.
    ///
    /// # Errors
    /// A call of BPF fails.
    pub fn compare(
        &mut self,
        seed: u64,
        paths: usize,
        steps: usize,
    ) -> Result<Option<Difference>, Error> {
        let control = self.control;
        let mut conn = narrows_laws::Conn::new(control);
        conn.compare_at_once(AT_ONCE);
        let mut private = [Private::default(); MAX_PATHS];
        let mut native = Vec::with_capacity(steps);
        let events = trace(seed, paths, steps, |path, event| {
            let output = conn.event(path, &mut private[path], event);
            native.push(Outcome::of(&conn, path, &private[path]));
            output
        });
        self.reset(&Params::default())?;
        let replayed = self.run(&events)?;
        let parted = native.iter().zip(&replayed).position(|(native, kernel)| native != kernel);
        Ok(parted.map(|step| Difference {
            control,
            seed,
            paths,
            step,
            event: events[step],
            native: native[step],
            kernel: replayed[step],
        }))
    }

    /// Each program of the object with its number of verified instructions.
    pub fn verified_insns(&self) -> Result<Vec<(String, u32)>, Error> {
        verified_insns(&self.object).map_err(Error::bpf(self.control.to_string(), "inspect"))
    }

    /// Starts over with a connection that has no paths; a dynamic detector runs with `params`.
    pub fn reset(&mut self, params: &Params) -> Result<(), Error> {
        self.memory = zeroed();
        self.memory.detection.params = params.of_detectors();
        self.memory.detection.at_once = AT_ONCE;
        self.execute("nr_reset", 0)?;
        Ok(())
    }

    /// Runs the events, each with its path, and returns what each of them changed. Continues from
    /// the state after the last call. Panics at a path of [`MAX_PATHS`] or above.
    pub fn run(&mut self, events: &[(u32, Event)]) -> Result<Vec<Outcome>, Error> {
        let mut outcomes = Vec::with_capacity(events.len());
        for batch in events.chunks(STEPS) {
            self.load_steps(batch);
            self.execute("nr_replay", batch.len())?;
            outcomes.extend_from_slice(&self.memory.outcome[..batch.len()]);
        }
        Ok(outcomes)
    }

    /// The shared state of the connection's paths and of a dynamic detector.
    pub fn shared(&self) -> (&Conn, &Detection) {
        (&self.memory.conn, &self.memory.detection)
    }

    /// Runs at most [`STEPS`] events and returns their total time by the kernel's clock, including
    /// the loop over the events but not the recording of outcomes.
    pub fn time(&mut self, events: &[(u32, Event)]) -> Result<Duration, Error> {
        assert!(events.len() <= STEPS, "{} events of at most {STEPS}", events.len());
        self.load_steps(events);
        self.execute("nr_time", events.len())
    }

    fn load_steps(&mut self, events: &[(u32, Event)]) {
        for (step, &(path, event)) in self.memory.step.iter_mut().zip(events) {
            assert!((path as usize) < MAX_PATHS, "path {path} of at most {MAX_PATHS}");
            step.event = event;
            step.path = path;
        }
    }

    /// Runs a program over the first `steps` steps of `self.memory`.
    fn execute(&mut self, program: &'static str, steps: usize) -> Result<Duration, Error> {
        let failed = |source| Error::bpf(self.control.to_string(), program)(source);
        let map = self.object.maps().find(|map| ends_with(map.name(), ".bss"));
        let map = map.expect("the object has its memory");
        let program = self.object.progs_mut().find(|found| found.name() == program);
        let program = program.expect("the object has the program");

        let zero = 0u32.to_ne_bytes();
        map.update(&zero, bytes(&mut self.memory), MapFlags::ANY).map_err(failed)?;
        // struct run: elapsed_ns, steps.
        let mut run = [0, steps as u64].map(u64::to_ne_bytes).concat();
        let input = ProgramInput { context_in: Some(&mut run), ..ProgramInput::default() };
        program.test_run(input).map_err(failed)?;
        map.lookup_into(&zero, bytes(&mut self.memory), MapFlags::ANY).map_err(failed)?;
        Ok(Duration::from_nanos(u64::from_ne_bytes(run[..8].try_into().unwrap())))
    }
}

fn zeroed() -> Box<Memory> {
    let mut memory = Box::<Memory>::new_uninit();
    // SAFETY: Memory is made of integers, for which zero is a value.
    unsafe {
        memory.as_mut_ptr().write_bytes(0, 1);
        memory.assume_init()
    }
}

fn bytes(memory: &mut Memory) -> &mut [u8] {
    let size = size_of::<Memory>();
    // SAFETY: the bytes are those of the struct, exclusively borrowed with it. They are all
    // initialised, padding too: it was zeroed and only fields are assigned. Any bytes are valid
    // values of its integers.
    unsafe { std::slice::from_raw_parts_mut((memory as *mut Memory).cast(), size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detector_that_is_not_for_bpf_is_refused_in_one_line() {
        let refused = Replay::load("lia+dcw".parse().unwrap()).map(|_| ()).unwrap_err();
        let expected = "lia+dcw: detector 'dcw' takes too much work and memory for BPF";
        assert_eq!(refused.to_string(), expected);
    }
}
