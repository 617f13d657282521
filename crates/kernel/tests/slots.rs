//! Who owns a slot (`src/bpf/state.h`) in every interleaving: entries are made and deleted while
//! other CPUs hold pointers to them, and a deleted entry's memory is another connection's at once.
//! The C of `src/bpf/slots.h` itself runs here, over a hash map like the kernel's.

#[path = "../../laws/tests/loom/port.rs"]
mod port;

use loom::sync::Mutex;
use loom::sync::atomic::AtomicU64;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::thread;
use port::Shared;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

const SLOTS: usize = 8;
const CLOSED: u64 = 1 << 8;
const ALONE: u64 = 1 << 9;
/// `NR_FALLBACK_LAW`
const ANOTHER_LAW: u32 = 2;

unsafe extern "C-unwind" {
    safe fn nr_take_slot(
        key: u64,
        mine: u64,
        slot: &mut u32,
        reason: &mut u32,
    ) -> *const Shared<Entry>;
    safe fn nr_leave_slot(entry: &Shared<Entry>, key: u64, slot: u32);
}

/// `struct nr_entry`.
#[repr(C, align(64))]
struct Entry {
    word: u64,
    /// Stands for all the rest: the connection that it was initialised for.
    key: u64,
    rest: [u64; 510],
}

/// The hash map: lookups take no lock, insertion and deletion take the bucket's.
struct Map {
    /// The only entry's memory there is, so that each new one takes over the last one's.
    entry: Arc<Shared<Entry>>,
    /// The key under which the entry is found; 0: none.
    linked: AtomicU64,
    bucket: Mutex<Done>,
    /// Who works in a slot. No part of the model, so that it orders nothing.
    busy: [Cell<bool>; SLOTS],
}

// SAFETY: the threads of a model run one at a time, on one OS thread (port.rs).
unsafe impl Send for Map {}
// SAFETY: likewise.
unsafe impl Sync for Map {}

/// Insertions and deletions that were made.
#[derive(Default)]
struct Done {
    inserted: u32,
    deleted: u32,
    /// Deletions that will be refused, as the bucket's lock is held on that CPU.
    refusals: u32,
}

thread_local! {
    /// The model's map, which C asks for without a pointer, as in the kernel.
    static MAP: RefCell<Option<Arc<Map>>> = const { RefCell::new(None) };
    /// `NR_BUILD` of the law that runs.
    static BUILD: Cell<u32> = const { Cell::new(0) };
}

#[unsafe(no_mangle)]
extern "C" fn nr_build() -> u32 {
    BUILD.get()
}

fn map() -> Arc<Map> {
    MAP.with_borrow(|map| map.clone().expect("a model runs"))
}

impl Map {
    fn new(refusals: u32) -> Map {
        let entry = Box::new(Entry { word: CLOSED, key: 0, rest: [0; 510] });
        Map {
            entry: Shared::new(entry, |entry| vec![&entry.word, &entry.key]),
            linked: AtomicU64::new(0),
            bucket: Mutex::new(Done { refusals, ..Done::default() }),
            busy: Default::default(),
        }
    }

    fn join(&self, token: u64) -> Option<(&Shared<Entry>, u32)> {
        self.join_as(token, token << 32).ok()
    }

    /// A slot of the entry of `key` for a path whose word is `mine`, or why there is none.
    fn join_as(&self, key: u64, mine: u64) -> Result<(&Shared<Entry>, u32), u32> {
        let (mut slot, mut reason) = (0, 0);
        let entry = nr_take_slot(key, mine, &mut slot, &mut reason);
        if entry.is_null() {
            return Err(reason);
        }
        assert!(ptr::eq(entry, &*self.entry));
        Ok((&*self.entry, slot))
    }

    /// A subflow's life: joins, works in its slot, leaves. Without a slot it runs the fallback law.
    fn live(&self, token: u64) {
        let Some((entry, slot)) = self.join(token) else { return };
        let busy = &self.busy[slot as usize];
        assert_eq!(self.linked.load(Acquire), token, "an entry with a path stays");
        assert!(!busy.replace(true), "two paths in a slot");
        assert_eq!(entry.load(|entry| &entry.key), token, "in a stranger's connection");
        busy.set(false);
        nr_leave_slot(entry, token, slot);
    }
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_map_lookup(key: u64) -> *const Shared<Entry> {
    let map = map();
    if map.linked.load(Acquire) == key { &raw const *map.entry } else { ptr::null() }
}

/// Copies a fresh value over what the memory held, then links it.
#[unsafe(no_mangle)]
extern "C-unwind" fn nr_map_insert(key: u64) -> i32 {
    let map = map();
    let mut done = map.bucket.lock().unwrap();
    if map.linked.load(Relaxed) != 0 {
        return 0;
    }
    map.entry.store(|entry| &entry.key, 0);
    map.entry.store(|entry| &entry.word, CLOSED);
    map.linked.store(key, Release);
    done.inserted += 1;
    1
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_map_delete(key: u64) -> i32 {
    let map = map();
    let mut done = map.bucket.lock().unwrap();
    assert_eq!(map.linked.load(Relaxed), key, "deleted twice, or another's");
    if done.refusals > 0 {
        done.refusals -= 1;
        return 0;
    }
    map.linked.store(0, Relaxed);
    done.deleted += 1;
    1
}

/// Subflows of two connections, in every order that `bound` preemptions allow.
fn every_interleaving(bound: usize, tokens: [u64; 2], own: u64, refusals: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(move || {
        let map = Arc::new(Map::new(refusals));
        MAP.set(Some(Arc::clone(&map)));
        let others = tokens.map(|token| {
            let map = Arc::clone(&map);
            thread::spawn(move || map.live(token))
        });
        map.live(own);
        for other in others {
            other.join().unwrap();
        }
        if refusals > 0 {
            // Whatever was refused, a new path gets a slot, and takes the entry with it.
            let (entry, slot) = map.join(own).expect("an entry that stayed is open");
            nr_leave_slot(entry, own, slot);
        }
        {
            let done = map.bucket.lock().unwrap();
            assert!(done.inserted > 0);
            assert_eq!(done.inserted, done.deleted, "an entry is left, or was deleted twice");
            assert_eq!(map.linked.load(Relaxed), 0);
        }
        MAP.set(None);
    });
}

#[test]
fn subflows_of_one_connection_share_an_entry_and_the_last_one_deletes_it() {
    every_interleaving(2, [1, 1], 1, 0);
}

#[test]
fn a_stranger_that_gets_the_memory_is_left_alone() {
    every_interleaving(2, [1, 2], 1, 0);
}

#[test]
fn an_entry_that_could_not_be_deleted_is_the_connections_again() {
    every_interleaving(2, [1, 1], 1, 1);
}

/// One thread, over a map that refuses a number of deletions.
fn in_turn(refusals: u32, work: impl Fn(&Map) + Sync + Send + 'static) {
    loom::model(move || {
        let map = Arc::new(Map::new(refusals));
        MAP.set(Some(Arc::clone(&map)));
        work(&map);
        assert_eq!(map.linked.load(Relaxed), 0, "an entry is left");
        MAP.set(None);
    });
}

#[test]
fn one_path_alone_whose_entry_could_not_be_deleted_takes_it_again() {
    in_turn(1, |map| {
        let mine = 1 << 32 | ALONE;
        for _ in 0..2 {
            let (entry, slot) = map.join_as(1, mine).expect("an entry of its own");
            assert!(map.join_as(1, mine).is_err(), "nobody else joins it");
            nr_leave_slot(entry, 1, slot);
        }
    });
}

#[test]
fn another_law_of_a_user_gets_no_slot_until_the_first_one_has_left() {
    in_turn(0, |map| {
        BUILD.set(1);
        let (entry, slot) = map.join(1).expect("the first");
        BUILD.set(2);
        assert_eq!(map.join_as(1, 1 << 32).err(), Some(ANOTHER_LAW));
        nr_leave_slot(entry, 1, slot);
        let (entry, slot) = map.join(1).expect("a new entry");
        BUILD.set(1);
        assert_eq!(map.join_as(1, 1 << 32).err(), Some(ANOTHER_LAW));
        nr_leave_slot(entry, 1, slot);
        BUILD.set(0);
    });
}
