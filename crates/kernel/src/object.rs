//! The BPF objects of laws.

use crate::{Error, Settings, Signal, clang};
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Object, Program};
use lzma_rust2::LzmaReader;
use narrows_laws::raw::Detection;
use narrows_laws::{Control, Law, Params, user};
use std::ffi::OsStr;
use std::io::Read;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::OnceLock;

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

/// The sources that compile a user's law: the control, its replay, and libbpf's headers.
static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// The objects of a user's law, once [`compile_user`] has compiled them.
static USER: OnceLock<[Vec<u8>; 3]> = OnceLock::new();

/// The BPF object of a law, as installed for bpftool. Panics for a user's law that [`compile_user`]
/// has not compiled.
pub fn of(law: Law) -> &'static [u8] {
    if law == Law::USER { &user()[0] } else { find(&CONTROL, law) }
}

/// The BPF object that runs a control: with a detector that decides, not the one for bpftool.
pub fn of_control(control: Control) -> &'static [u8] {
    match control.detector.decides() {
        false => of(control.law),
        true if control.law == Law::USER => &user()[1],
        true => find(&DETECT, control.law),
    }
}

/// The BPF object that replays events through a law.
pub(crate) fn replay_of(law: Law) -> &'static [u8] {
    if law == Law::USER { &user()[2] } else { find(&REPLAY, law) }
}

fn user() -> &'static [Vec<u8>; 3] {
    USER.get().expect("the user's law has been compiled for the kernel")
}

/// Compiles the user's law of this process, and its replay, to BPF objects.
///
/// # Errors
/// No such law, no clang, it does not compile, or its header has changed meanwhile.
pub fn compile_user() -> Result<(), Error> {
    if USER.get().is_some() {
        return Ok(());
    }
    let law = user::loaded().ok_or_else(|| Error::input("law", "no user's law is loaded"))?;
    let place = law.header().display().to_string();
    let error = |message: String| Error::input(&place, message);
    let clang = clang::find().ok_or_else(|| error(clang::MISSING.into()))?;
    let folder = user::Folder::new().map_err(|e| error(format!("no temporary folder: {e}")))?;
    let folder = folder.path();
    user::write_sources(user::SOURCES, folder)
        .and_then(|()| user::write_sources(SOURCES, folder))
        .map_err(|e| error(format!("cannot write the sources: {e}")))?;
    let mut defines = user::defines(law.header(), law.name()).to_vec();
    defines.extend(clang::defines(Control::of(Law::USER)));
    defines.push(format!("-DNR_BUILD=0x{}u", &law.sha256()[..8]));
    let compile = &|(kind, source, define): (&str, &str, Option<&str>)| {
        let source = folder.join(format!("{source}.bpf.c"));
        let object = folder.join(format!("{kind}.bpf.o"));
        let arch = std::env::consts::ARCH;
        let mut command =
            clang::command(&clang, arch, [folder, folder], &source, &object, &defines);
        command.args(define);
        // The same object from any folder: builds are distinguished by their bytes.
        command.arg(format!("-ffile-prefix-map={}=narrows", folder.display()));
        command.arg("-ffile-compilation-dir=narrows");
        let output = command.output().map_err(|e| error(format!("{clang}: {e}")))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(error(format!("does not compile for the kernel\n{}", stderr.trim_end())));
        }
        std::fs::read(&object).map_err(|e| error(format!("cannot read its object: {e}")))
    };
    let objects = std::thread::scope(|scope| {
        let all = clang::KINDS.map(|kind| scope.spawn(move || compile(kind)));
        all.map(|one| one.join().expect("no panic"))
    });
    let [control, detect, replay] = objects;
    let objects = [control?, detect?, replay?];
    if !law.is_unchanged() {
        return Err(error("changed since this command compiled it; run it again".into()));
    }
    // Another thread may have compiled it at the same time.
    let _ = USER.set(objects);
    Ok(())
}

/// The objects of one kind, by the numbers of their laws.
struct Packed {
    packed: &'static [u8],
    laws: &'static [(u32, Range<usize>)],
    objects: OnceLock<Vec<u8>>,
}

impl Packed {
    const fn new(packed: &'static [u8], laws: &'static [(u32, Range<usize>)]) -> Packed {
        Packed { packed, laws, objects: OnceLock::new() }
    }
}

fn find(all: &'static Packed, law: Law) -> &'static [u8] {
    let objects = all.objects.get_or_init(|| {
        let mut objects = Vec::new();
        LzmaReader::new_mem_limit(all.packed, u32::MAX, None)
            .and_then(|mut reader| reader.read_to_end(&mut objects))
            .expect("what build.rs packed can be unpacked");
        objects
    });
    let of = all.laws.iter().find(|(number, _)| *number == law.number());
    let (_, place) = of.expect("each law has been compiled");
    &objects[place.clone()]
}

/// Pairs of paths that a detector compares in an event, whose softirq must be short
/// ([`Detection::at_once`]).
pub const AT_ONCE: u32 = 4;

/// What a detector keeps of a connection at first (`nr_first_detection` in the C): its parameters, and
/// how many pairs it compares at once.
pub(crate) fn detection(params: &Params) -> Vec<u8> {
    let mut bytes: Vec<u8> = params.of_detectors().into_iter().flat_map(u32::to_ne_bytes).collect();
    bytes.resize(size_of::<Detection>(), 0);
    bytes[offset_of!(Detection, at_once)..][..4].copy_from_slice(&AT_ONCE.to_ne_bytes());
    bytes
}

/// The constants of a control's object (`control` in the C).
pub(crate) fn constants(control: Control, settings: &Settings) -> Vec<u8> {
    let signal = if control.detector.decides() { settings.signal } else { Signal::default() };
    let mut bytes = replay_constants(control, &settings.params);
    bytes.extend(signal.number().to_ne_bytes());
    bytes
}

/// What a detector samples by the constants of a control's object; none: another build's.
pub fn signal_of(constants: &[u8]) -> Option<Signal> {
    let known = constants.len() == constants_len();
    let number = constants.last_chunk::<4>().filter(|_| known)?;
    Signal::from_number(u32::from_ne_bytes(*number))
}

fn constants_len() -> usize {
    constants(Control::OLIA, &Settings::default()).len()
}

/// Those of its replay, which is given what a detector samples.
pub(crate) fn replay_constants(control: Control, params: &Params) -> Vec<u8> {
    let of = [control.detector.number(), control.start()];
    let words = of.into_iter().chain(params.of_window()).chain(params.of_law(control.law));
    let words = words.chain(params.of_join(control.join));
    words.flat_map(u32::to_ne_bytes).collect()
}

/// Does `control` run the same with `a` and `b`?
pub fn runs_the_same(control: Control, a: &Settings, b: &Settings) -> bool {
    constants(control, a) == constants(control, b)
        && (!control.detector.decides() || detection(&a.params) == detection(&b.params))
}

/// ELF needs more alignment than a byte array has.
#[repr(C, align(8))]
pub(crate) struct Aligned<T: ?Sized>(pub(crate) T);

/// Internal maps are called by their section, some with the object's name before it.
pub(crate) fn ends_with(name: &OsStr, section: &str) -> bool {
    name.as_encoded_bytes().ends_with(section.as_bytes())
}

/// Each program of the object with its number of verified instructions.
pub(crate) fn verified_insns(object: &Object) -> Result<Vec<(String, u32)>, libbpf_rs::Error> {
    let mut all = Vec::new();
    for program in object.progs() {
        let id = Program::id_from_fd(program.as_fd())?;
        let info = ProgInfoIter::default().find(|info| info.id == id).expect("it is loaded");
        all.push((program.name().to_string_lossy().into_owned(), info.verified_insns));
    }
    Ok(all)
}
