//! Loading that is interrupted, refused, or done without struct_ops links. Needs root and BTF; each
//! test has a BPF file system of its own.

use super::*;
use crate::object;
use narrows_laws::Law;
use narrows_testkit::machine::{turn, with_own_pins};
use std::cell::Cell;
use std::path::PathBuf;

/// Does `work` where the BPF file system is empty, if this process can load BPF programs.
fn alone(test: &str, work: impl FnOnce() + Send) {
    // The names of controls are the kernel's: one test at a time.
    let here = crate::available().map_err(|reason| reason.to_string());
    let Some(_turn) = turn(test, here) else { return };
    with_own_pins(work);
}

fn open() -> Pins {
    Pins::open(|_| Ok(())).unwrap()
}

/// What is pinned, and which struct_ops map is registered under each name.
fn state() -> Vec<String> {
    let mut all = Vec::new();
    let mut folders = vec![PathBuf::from(BPFFS)];
    while let Some(folder) = folders.pop() {
        for name in names(&folder).unwrap() {
            let path = folder.join(name);
            all.push(path.display().to_string());
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    for held in loaded().unwrap() {
        let kernel = Kernel::probe().unwrap();
        let folder = Path::new(FOLDER).join(&held.name);
        let pin = folder.join(kernel.pin_name());
        let counters = MapHandle::from_pinned_path(folder.join("counters")).unwrap();
        let counters = counters.info().unwrap().info.id;
        let map = kernel.pinned(&pin).unwrap().unwrap().map_id();
        all.push(format!("{} is map {map:?}, counts in {counters}", held.name));
    }
    all.extend(available_controls().unwrap().into_iter().filter(|name| name.starts_with("nr_")));
    all.sort();
    all
}

/// As if another build had loaded it.
fn age(name: &str) {
    let pin = Path::new(FOLDER).join(name).join("build");
    let map = MapHandle::from_pinned_path(pin).unwrap();
    map.update(&[0; 4], &[7; 8], MapFlags::ANY).unwrap();
}

/// Loads, interrupted at the first moment that is looked at, the second and so on, until it comes to
/// its end; returns how many moments there were.
fn interrupt_everywhere(controls: &[Control]) -> usize {
    let before = state();
    for moment in 0.. {
        let looked = Cell::new(0);
        let interrupted = || looked.replace(looked.get() + 1) == moment;
        match open().load(controls, &Settings::default(), interrupted) {
            Ok(_) => return moment,
            Err(Error::Interrupted) => assert_eq!(state(), before, "at moment {moment}"),
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!()
}

#[test]
fn loading_can_be_interrupted_at_any_moment() {
    alone("interrupted", || {
        let before = state();
        // Before each is verified, before any is registered, and when all are.
        assert_eq!(interrupt_everywhere(&[Control::RENO, Control::LIA]), 4);
        age("nr_reno");
        let aged = state();
        // One in the place of another build, and a new one: both, or as it was.
        assert_eq!(interrupt_everywhere(&[Control::RENO, Control::OLIA]), 4);
        assert!(aged.iter().any(|line| !state().contains(line)));
        assert!(loaded().unwrap().iter().all(|held| held.same_build));
        for name in ["nr_reno", "nr_lia", "nr_olia"] {
            assert!(open().unload(name).unwrap());
        }
        assert_eq!(state(), before);
    });
}

#[test]
fn without_links_it_is_the_same() {
    alone("without links", || {
        Kernel::without_links(|| {
            let before = state();
            assert_eq!(interrupt_everywhere(&[Control::RENO, Control::LIA]), 4);
            assert!(Path::new(FOLDER).join("nr_lia/ops").exists());
            let twice = open().load(&[Control::LIA], &Settings::default(), || false).unwrap();
            assert_eq!(twice, [("nr_lia".to_owned(), Change::None)]);
            age("nr_lia");
            let aged = state();
            let again = open().load(&[Control::LIA], &Settings::default(), || false).unwrap();
            assert_eq!(again, [("nr_lia".to_owned(), Change::Replaced)]);
            assert_eq!(state().len(), aged.len());
            assert_ne!(state(), aged);
            // An older build cannot be put back: once it is replaced, all is done to the end.
            age("nr_lia");
            assert_eq!(interrupt_everywhere(&[Control::LIA, Control::OLIA]), 3);
            for name in ["nr_reno", "nr_lia", "nr_olia"] {
                assert!(open().unload(name).unwrap());
            }
            assert_eq!(state(), before);

            // Killed before it is registered, and as soon as it is: the kernel keeps it.
            let parts = || {
                let mut loaded = Loaded::load(Control::LIA, &Settings::default()).unwrap();
                let mut undo = Undo::default();
                let pins = open();
                pins.pin_parts(&mut loaded, &Settings::default(), Change::Loaded, &mut undo)
                    .unwrap();
                undo.forget();
                loaded
            };
            drop(parts());
            drop(open());
            assert_eq!(state(), before);
            parts().register().unwrap().link_mut().disconnect();
            assert!(open().unload("nr_lia").unwrap());
            assert_eq!(state(), before);
        });
    });
}

#[test]
fn what_a_kill_leaves_the_next_command_sweeps_up() {
    alone("killed", || {
        let before = state();
        open().load(&[Control::LIA], &Settings::default(), || false).unwrap();
        let loaded_state = state();
        let at = |name: &str| Path::new(FOLDER).join(name);
        let leave = |name: &str| {
            fs::create_dir(at(name)).unwrap();
            pin_build(&at(name), Build { object: 7, law: 7 }).unwrap();
        };
        // Parts of a control that was never registered, and of a newer build.
        leave("nr_reno");
        leave("new-nr_lia");
        drop(open());
        assert_eq!(state(), loaded_state);
        // The older build moved away, the newer one not yet in its place.
        fs::rename(at("nr_lia"), at("old-nr_lia")).unwrap();
        leave("new-nr_lia");
        drop(open());
        assert_eq!(state(), loaded_state);
        // The registration moved already.
        fs::rename(at("nr_lia"), at("new-nr_lia")).unwrap();
        leave("old-nr_lia");
        drop(open());
        assert_eq!(state(), loaded_state);
        assert!(open().unload("nr_lia").unwrap());
        assert_eq!(state(), before);
    });
}

#[test]
fn after_a_kill_between_the_links_update_and_its_pins_move_the_newer_build_is_the_one_named() {
    alone("killed in a replacement", || {
        let before = state();
        let kernel = Kernel::probe().unwrap();
        if !kernel.links {
            return;
        }
        open().load(&[Control::LIA], &Settings::default(), || false).unwrap();
        age("nr_lia");
        let mut newer = Loaded::load(Control::LIA, &Settings::default()).unwrap();
        let mut undo = Undo::default();
        open().pin_parts(&mut newer, &Settings::default(), Change::Replaced, &mut undo).unwrap();
        undo.forget();
        let at = |name: &str| Path::new(FOLDER).join(name);
        fs::rename(at("nr_lia"), at("old-nr_lia")).unwrap();
        let older = kernel.pinned(&at("old-nr_lia/link")).unwrap().unwrap();
        let mut ops = newer.object_mut().maps_mut().find(|map| map.name() == "nr_ops").unwrap();
        assert!(kernel.replace(&older, &mut ops).unwrap().is_none());
        let running = older.map_id();
        drop((older, newer));

        drop(open());
        let held = loaded().unwrap();
        assert!(held.len() == 1 && held[0].same_build, "the older build is named: {held:?}");
        assert_eq!(kernel.pinned(&at("nr_lia/link")).unwrap().unwrap().map_id(), running);
        assert!(open().unload("nr_lia").unwrap());
        assert_eq!(state(), before);
    });
}

#[test]
fn a_registration_that_cannot_be_read_is_not_taken_for_gone() {
    alone("unreadable", || {
        let before = state();
        open().load(&[Control::LIA], &Settings::default(), || false).unwrap();
        // A map stands where the link was: what it registers cannot be read.
        let link = Path::new(FOLDER).join("nr_lia/link");
        let aside = Path::new(BPFFS).join("aside");
        fs::rename(&link, &aside).unwrap();
        pin_values(&link, "nr_none", &[[0; 4]]).unwrap();
        let refused = Pins::open(|_| Ok(())).map(drop).unwrap_err().to_string();
        assert!(refused.starts_with("/sys/fs/bpf/narrows/nr_lia/link: cannot read"), "{refused}");
        assert!(loaded().is_err());
        fs::rename(&aside, &link).unwrap();
        assert!(open().unload("nr_lia").unwrap());
        assert_eq!(state(), before);
    });
}

#[test]
fn a_refusal_by_the_verifier_is_one_line_and_a_file_with_all() {
    alone("refused", || {
        let before = state();
        let refusal = Loaded::load_object(
            Control::OLIA,
            &Settings::default(),
            &broken(object::of(Law::OLIA)),
            None,
        );
        let Err(Error::Refused { name, last, log: Some(log) }) = refusal else {
            panic!("{:?}", refusal.map(|_| "loaded").unwrap_err());
        };
        assert_eq!(name, "nr_olia");
        assert!(last.ends_with("BPF_EXIT uses reserved fields"), "{last}");
        let full = fs::read_to_string(&log).unwrap();
        assert!(full.contains("reserved fields") && full.lines().count() > 3, "{full}");
        fs::remove_file(log).unwrap();
        assert_eq!(state(), before);
    });
}

/// The object with a first exit that has an operand, which it may not; nothing is relocated into an
/// exit.
fn broken(object: &[u8]) -> Vec<u8> {
    let word = |at: usize, size: usize| {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&object[at..at + size]);
        u64::from_le_bytes(bytes) as usize
    };
    // ELF, 64 bits: the table of sections; of each its name's place, its place and its size.
    let (table, size, count, names) = (word(0x28, 8), word(0x3a, 2), word(0x3c, 2), word(0x3e, 2));
    let section = |n: usize| table + n * size;
    let names = word(section(names) + 0x18, 8);
    let programs = (0..count).map(section).find(|section| {
        let name = names + word(*section, 4);
        object[name..].starts_with(b"struct_ops\0")
    });
    let program = programs.unwrap();
    let (start, size) = (word(program + 0x18, 8), word(program + 0x20, 8));
    let mut broken = object.to_vec();
    let mut instructions = broken[start..start + size].chunks_exact_mut(8);
    let exit = instructions.find(|code| **code == [0x95, 0, 0, 0, 0, 0, 0, 0]);
    exit.unwrap().copy_from_slice(&[0x95, 0, 0, 0, 7, 0, 0, 0]);
    broken
}
