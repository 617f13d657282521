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
        let (mut slot, mut reason) = (0, 0);
        let entry = nr_take_slot(token, token << 32, &mut slot, &mut reason);
        (!entry.is_null()).then(|| {
            assert!(ptr::eq(entry, &*self.entry));
            (&*self.entry, slot)
        })
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
