//! Who owns a slot (`src/bpf/state.h`) in every interleaving: entries are made and deleted while
//! other CPUs hold pointers to them, and a deleted entry's memory is another connection's at once.
//! The C of `src/bpf/slots.h` itself runs here, over a hash map like the kernel's.

#![cfg(loom_models)]

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
/// `NR_FALLBACK_LAW`
const ANOTHER_LAW: u32 = 2;
/// `NR_FALLBACK_USER`
const HAS_HIS_PART: u32 = 6;
/// In most models the map's size does not matter.
const LARGE: u32 = 1000;
/// Users 0, 1 and 2.
const USERS: usize = 3;

unsafe extern "C-unwind" {
    safe fn nr_take_slot(
        mine: u64,
        user: u32,
        slot: &mut u32,
        reason: &mut u32,
    ) -> *const Shared<Entry>;
    safe fn nr_leave_slot(entry: &Shared<Entry>, token: u32, slot: u32);
    safe fn nr_free_slot(word: u64) -> u32;
    safe fn nr_may_have(used: u32, free: u32) -> i32;
}

/// `struct nr_entry`.
#[repr(C, align(64))]
struct Entry {
    word: u64,
    /// Stands for all the rest: whose connection it was initialised for.
    user: u32,
    rest: [u32; 1021],
}

/// The hash map: lookups take no lock, insertion and deletion take the bucket's.
struct Map {
    /// The only entry's memory there is, so that each new one takes over the last one's.
    entry: Arc<Shared<Entry>>,
    /// The token under which the entry is found; 0: none.
    linked: AtomicU64,
    bucket: Mutex<Done>,
    /// Who works in a slot. No part of the model, so that it orders nothing.
    busy: [Cell<bool>; SLOTS],
    /// The map of users: entries in use by each. No part of the model, either.
    used: [Cell<u32>; USERS],
    /// How many entries there may be.
    max: u32,
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
    fn new(refusals: u32, max: u32) -> Map {
        let entry = Box::new(Entry { word: CLOSED, user: 0, rest: [0; 1021] });
        Map {
            entry: Shared::new(entry, |entry| vec![&entry.word, &entry.user]),
            linked: AtomicU64::new(0),
            bucket: Mutex::new(Done { refusals, ..Done::default() }),
            busy: Default::default(),
            used: Default::default(),
            max,
        }
    }

    /// A slot of the connection's entry. Each connection is of the user with the number of its token.
    fn join(&self, token: u32) -> Option<(&Shared<Entry>, u32)> {
        self.join_as(token, token).ok()
    }

    /// The same for any user, or why there is none.
    fn join_as(&self, token: u32, user: u32) -> Result<(&Shared<Entry>, u32), u32> {
        let (mut slot, mut reason) = (0, 0);
        let entry = nr_take_slot(u64::from(token) << 32, user, &mut slot, &mut reason);
        if entry.is_null() {
            return Err(reason);
        }
        assert!(ptr::eq(entry, &*self.entry));
        Ok((&*self.entry, slot))
    }

    /// A subflow's life: joins, works in its slot, leaves. Without a slot it runs the fallback law.
    fn live(&self, token: u32) {
        let Some((entry, slot)) = self.join(token) else { return };
        let busy = &self.busy[slot as usize];
        assert_eq!(self.linked.load(Acquire), token.into(), "an entry with a path stays");
        assert!(!busy.replace(true), "two paths in a slot");
        assert_eq!(entry.load(|entry| &entry.user), token.into(), "in a stranger's connection");
        assert!(self.used[token as usize].get() > 0, "an entry that nobody is counted for");
        busy.set(false);
        nr_leave_slot(entry, token, slot);
    }

    /// Nothing is left of what came and went.
    fn assert_empty(&self) {
        assert_eq!(self.linked.load(Relaxed), 0, "an entry is left");
        assert_eq!(self.used.each_ref().map(Cell::get), [0; USERS], "counted, and not given back");
    }
}

#[unsafe(no_mangle)]
extern "C" fn nr_users_max() -> u32 {
    map().max
}

#[unsafe(no_mangle)]
extern "C" fn nr_users_of(user: u32) -> u32 {
    map().used[user as usize].get()
}

#[unsafe(no_mangle)]
extern "C" fn nr_users_all() -> u32 {
    map().used.iter().map(Cell::get).sum()
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_users_add(user: u32, entries: i32) {
    let map = map();
    let used = &map.used[user as usize];
    used.set(used.get().checked_add_signed(entries).expect("given back more often than taken"));
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_map_lookup(token: u32) -> *const Shared<Entry> {
    let map = map();
    if map.linked.load(Acquire) == token.into() { &raw const *map.entry } else { ptr::null() }
}

/// Copies a fresh value over what the memory held, then links it.
#[unsafe(no_mangle)]
extern "C-unwind" fn nr_map_insert(token: u32) -> i32 {
    let map = map();
    let mut done = map.bucket.lock().unwrap();
    if map.linked.load(Relaxed) != 0 {
        return 0;
    }
    map.entry.store(|entry| &entry.user, 0);
    map.entry.store(|entry| &entry.word, CLOSED);
    map.linked.store(token.into(), Release);
    done.inserted += 1;
    1
}

#[unsafe(no_mangle)]
extern "C-unwind" fn nr_map_delete(token: u32) -> i32 {
    let map = map();
    let mut done = map.bucket.lock().unwrap();
    assert_eq!(map.linked.load(Relaxed), token.into(), "deleted twice, or another's");
    if done.refusals > 0 {
        done.refusals -= 1;
        return 0;
    }
    map.linked.store(0, Relaxed);
    done.deleted += 1;
    1
}

/// Subflows of two connections, in every order that `bound` preemptions allow.
fn every_interleaving(bound: usize, tokens: [u32; 2], own: u32, refusals: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(move || {
        let map = Arc::new(Map::new(refusals, LARGE));
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
        }
        map.assert_empty();
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

/// One thread, over a map of `max` entries.
fn in_turn(max: u32, work: impl Fn(&Map) + Sync + Send + 'static) {
    loom::model(move || {
        let map = Arc::new(Map::new(0, max));
        MAP.set(Some(Arc::clone(&map)));
        work(&map);
        map.assert_empty();
        MAP.set(None);
    });
}

#[test]
fn who_has_his_part_of_the_map_gets_another_entry_when_he_gave_one_back() {
    // One of five: a quarter of the four that are free.
    in_turn(5, |map| {
        let (entry, slot) = map.join_as(1, 1).expect("his first");
        assert_eq!(map.join_as(2, 1).err(), Some(HAS_HIS_PART));
        let (_, second) = map.join_as(1, 1).expect("a path of a connection that has an entry");
        nr_leave_slot(entry, 1, second);
        nr_leave_slot(entry, 1, slot);
        let (entry, slot) = map.join_as(2, 1).expect("there are five again");
        nr_leave_slot(entry, 2, slot);
    });
}

#[test]
fn whoever_takes_what_he_can_get_leaves_four_fifths() {
    let mut free = 262_144;
    for _ in 0..20 {
        let before = free;
        let mut used = 0;
        while nr_may_have(used, free) != 0 {
            (used, free) = (used + 1, free - 1);
        }
        let part = f64::from(used) / f64::from(before);
        assert!((0.2..0.201).contains(&part), "{used} of {before}");
    }
    assert_eq!((nr_may_have(0, 0), nr_may_have(0, 1), nr_may_have(1, 4)), (0, 1, 0));
    assert_eq!(nr_may_have(u32::MAX, u32::MAX), 0, "no overflow");
}

#[test]
fn the_lowest_free_slot_is_taken() {
    for slots in 0..=0xffu8 {
        assert_eq!(nr_free_slot(u64::from(slots)), slots.trailing_ones(), "{slots:#b}");
        assert_eq!(nr_free_slot(!0 << SLOTS | u64::from(slots)), slots.trailing_ones());
    }
}

#[test]
fn another_law_of_a_user_gets_no_slot_until_the_first_one_has_left() {
    in_turn(LARGE, |map| {
        BUILD.set(1);
        let (entry, slot) = map.join(1).expect("the first");
        BUILD.set(2);
        assert_eq!(map.join_as(1, 1).err(), Some(ANOTHER_LAW));
        nr_leave_slot(entry, 1, slot);
        let (entry, slot) = map.join(1).expect("a new entry");
        BUILD.set(1);
        assert_eq!(map.join_as(1, 1).err(), Some(ANOTHER_LAW));
        nr_leave_slot(entry, 1, slot);
        BUILD.set(0);
    });
}
