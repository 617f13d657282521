//! Who owns a slot (`src/bpf/state.h`) in every interleaving: entries are made and deleted while
//! other CPUs hold pointers to them, and a deleted entry's memory is another connection's at once.
//! The functions take the same steps as those of the same name in `src/bpf/control.bpf.c`; change
//! both.

use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use loom::sync::atomic::{AtomicBool, AtomicU64};
use loom::sync::{Arc, Mutex};
use loom::thread;

const SLOTS: u64 = 0xff;
const CLOSED: u64 = 1 << 8;
const JOIN_TRIES: usize = 2;
const CLAIM_TRIES: usize = 2;

/// An entry's memory, the only one there is, so that each new entry takes over the last one's.
struct Entry {
    word: AtomicU64,
    /// Stands for all the rest: the token of the connection that it was initialised for.
    conn: AtomicU64,
    /// Who works in the slot.
    busy: [AtomicBool; 2],
}

/// The hash map: lookups take no lock, insertion and deletion take the bucket's.
struct Map {
    entry: Entry,
    /// The key under which the entry is found; 0: none.
    linked: AtomicU64,
    bucket: Mutex<Done>,
}

/// Insertions and deletions that were made.
#[derive(Default)]
struct Done {
    inserted: u32,
    deleted: u32,
    /// Deletions that will be refused, as the bucket's lock is held on that CPU.
    refusals: u32,
}

impl Map {
    fn new(refusals: u32) -> Map {
        let entry = Entry {
            word: AtomicU64::new(CLOSED),
            conn: AtomicU64::new(0),
            busy: [AtomicBool::new(false), AtomicBool::new(false)],
        };
        Map {
            entry,
            linked: AtomicU64::new(0),
            bucket: Mutex::new(Done { refusals, ..Done::default() }),
        }
    }

    fn lookup(&self, key: u64) -> Option<&Entry> {
        (self.linked.load(Acquire) == key).then_some(&self.entry)
    }

    /// Copies a fresh value over what the memory held, then links it.
    fn insert(&self, key: u64) -> bool {
        let mut done = self.bucket.lock().unwrap();
        if self.linked.load(Relaxed) != 0 {
            return false;
        }
        self.entry.conn.store(0, Relaxed);
        self.entry.word.store(CLOSED, Relaxed);
        self.linked.store(key, Release);
        done.inserted += 1;
        true
    }

    fn delete(&self, key: u64) -> bool {
        let mut done = self.bucket.lock().unwrap();
        assert_eq!(self.linked.load(Relaxed), key, "deleted twice, or another's");
        if done.refusals > 0 {
            done.refusals -= 1;
            return false;
        }
        self.linked.store(0, Relaxed);
        done.deleted += 1;
        true
    }

    /// `take_slot`
    fn join(&self, token: u64) -> Option<usize> {
        let mine = token << 32;
        for _ in 0..JOIN_TRIES {
            if let Some(entry) = self.lookup(token) {
                if let Some(slot) = entry.claim(mine) {
                    return Some(slot);
                }
                continue;
            }
            if !self.insert(token) {
                continue;
            }
            let entry = self.lookup(token).unwrap();
            entry.conn.store(token, Relaxed);
            if entry.word.compare_exchange(CLOSED, mine | 1, SeqCst, SeqCst).is_ok() {
                return Some(0);
            }
        }
        None
    }

    /// The end of `nr_release`
    fn leave(&self, token: u64, slot: usize) {
        let entry = self.lookup(token).expect("an entry with a path stays");
        let bit = 1 << slot;
        let left = entry.word.fetch_and(!bit, SeqCst) & !bit;
        if left & SLOTS == 0
            && entry.word.compare_exchange(left, left | CLOSED, SeqCst, SeqCst).is_ok()
            && !self.delete(token)
        {
            let _ = entry.word.compare_exchange(left | CLOSED, left, SeqCst, SeqCst);
        }
    }

    /// A subflow's life: joins, works in its slot, leaves. Without a slot it runs careful.
    fn live(&self, token: u64) {
        let Some(slot) = self.join(token) else { return };
        let entry = self.lookup(token).expect("an entry with a path stays");
        assert!(!entry.busy[slot].swap(true, SeqCst), "two paths in a slot");
        assert_eq!(entry.conn.load(Relaxed), token, "in a stranger's connection");
        entry.busy[slot].store(false, SeqCst);
        self.leave(token, slot);
    }
}

impl Entry {
    /// `claim`
    fn claim(&self, mine: u64) -> Option<usize> {
        for _ in 0..CLAIM_TRIES {
            let word = self.word.load(Relaxed);
            if word & CLOSED != 0 || (word ^ mine) & !SLOTS != 0 {
                return None;
            }
            let slot = (0..self.busy.len()).find(|slot| word >> slot & 1 == 0)?;
            if self.word.compare_exchange(word, word | 1 << slot, SeqCst, SeqCst).is_ok() {
                return Some(slot);
            }
        }
        None
    }
}

/// Subflows of two connections, in every order that `bound` preemptions allow.
fn every_interleaving(bound: usize, tokens: [u64; 2], own: u64, refusals: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(bound);
    model.check(move || {
        let map = Arc::new(Map::new(refusals));
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
            let slot = map.join(own).expect("an entry that stayed is open");
            map.leave(own, slot);
        }
        let done = map.bucket.lock().unwrap();
        assert!(done.inserted > 0);
        assert_eq!(done.inserted, done.deleted, "an entry is left, or was deleted twice");
        assert_eq!(map.linked.load(Relaxed), 0);
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
