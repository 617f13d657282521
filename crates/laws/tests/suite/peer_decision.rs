//! Decisions of the peer: obeyed when they are complete, for as long as they come.

use narrows_laws::raw::{self, Conn, Detection, PEER_MS, PeerDecision, Private};
use narrows_laws::{Control, Event, EventKind, Params, State};

const CLEAR: u32 = 0xfe;
const UNDECIDED: u32 = 0xff;

/// A sender with three paths, whose own detector is `ssc` with a decision each interval, and couples all
/// it knows nothing of.
struct Sender {
    control: Control,
    conn: Conn,
    detection: Box<Detection>,
    peer: PeerDecision,
    private: [Private; 3],
    now_us: u64,
}

impl Sender {
    fn new() -> Sender {
        Sender::of("lia+ssc")
    }

    fn of(control: &str) -> Sender {
        let control: Control = control.parse().unwrap();
        let params = Params::default().with(&[("decision.every", "1")]);
        let (conn, detection) = (Conn::new(control, &params), Detection::new(&params));
        let (peer, private) = (PeerDecision::default(), Default::default());
        let mut sender = Sender { control, conn, detection, peer, private, now_us: 1_000_000 };
        for path in 0..3 {
            sender.event(path, EventKind::Joined, State::Joining);
        }
        sender.acks(State::Active);
        sender
    }

    fn event(&mut self, path: u32, kind: EventKind, state: State) {
        self.event_with(path, kind, state, Event { delivered: 1, ..Event::default() });
    }

    fn event_with(&mut self, path: u32, kind: EventKind, state: State, with: Event) {
        let event = Event {
            now_us: self.now_us,
            kind: kind as u32,
            state: state as u32,
            srtt8_us: 160_000,
            rtt_us: 20_000 + with.rtt_us,
            cwnd: 10,
            ..with
        };
        let private = &mut self.private[path as usize];
        let (conn, detection) = (&mut self.conn, &mut *self.detection);
        // SAFETY: exclusive pointers, a path below 3.
        unsafe { narrows_laws::event_shared(self.control, conn, detection, path, private, &event) };
    }

    /// An acknowledgement on each path; the third is in `state`.
    fn acks(&mut self, state: State) {
        for path in 0..3 {
            self.event(path, EventKind::Acked, if path == 2 { state } else { State::Active });
        }
    }

    fn receives(&mut self, path: u32, epoch: u32, place: u32) -> bool {
        let (conn, detection, peer) = (&mut self.conn, &mut *self.detection, &mut self.peer);
        // SAFETY: exclusive pointers, a path below 3.
        unsafe {
            raw::narrows_peer_decide(conn, detection, peer, path, epoch, place, self.now_us) != 0
        }
    }

    /// The masks of the three paths among themselves.
    fn masks(&self) -> [u64; 3] {
        [0, 1, 2].map(|path| self.conn.masks >> (8 * path) & 7)
    }

    /// All paths receive their parts of a decision.
    fn all_receive(&mut self, epoch: u32, places: [u32; 3]) -> bool {
        [0, 1, 2].map(|path| self.receives(path, epoch, places[path as usize])).contains(&true)
    }

    fn waits(&mut self, ms: u64) {
        for _ in 0..ms / 50 {
            self.now_us += 50_000;
            self.acks(State::Active);
        }
    }
}

#[test]
fn a_decision_is_obeyed_when_all_paths_that_carry_data_have_received_it() {
    let mut sender = Sender::new();
    assert_eq!(sender.masks(), [7, 7, 7]);
    assert!(!sender.receives(0, 7, 1) && !sender.receives(1, 7, 1));
    assert_eq!(sender.masks(), [7, 7, 7], "the third has not received it");
    assert!(sender.receives(2, 7, 2));
    assert_eq!(sender.masks(), [3, 3, 4]);
    assert_eq!(sender.conn.cuts & 0x07_0707, 0x04_0201, "it may share, so it is not cut");
    assert!(sender.detection.receiver_decides(sender.now_us));
    assert!(!sender.receives(1, 7, 1), "obeyed before");
    // Nor an older one.
    let older = [0, 1, 2].map(|path| sender.receives(path, 6, 0));
    assert_eq!((older, sender.masks()), ([false; 3], [3, 3, 4]));
    sender.waits(1000);
    // Parts of two decisions are none.
    assert!(!sender.receives(0, 8, 5) && !sender.receives(1, 9, 5) && !sender.receives(2, 8, 5));
    assert_eq!(sender.masks(), [3, 3, 4]);
    assert!(!sender.receives(0, 9, CLEAR) && sender.receives(2, 9, 5));
    assert_eq!(sender.masks(), [1, 6, 6]);
}

#[test]
fn a_path_without_data_need_not_receive_it_and_is_coupled_with_all() {
    let mut sender = Sender::new();
    sender.acks(State::Idle);
    assert!(!sender.receives(0, 7, 1) && sender.receives(1, 7, 2));
    assert_eq!(sender.masks(), [5, 6, 7]);
}

/// Its sender alone knows that no queue drops what a path loses.
#[test]
fn a_path_with_random_losses_is_coupled_with_none() {
    let mut sender = Sender::of("lia+xcorr");
    for _ in 0..100 {
        sender.now_us += 50_000;
        for path in 0..3 {
            let with = Event { delivered: 2, lost: u32::from(path == 1), ..Event::default() };
            sender.event_with(path, EventKind::Acked, State::Active, with);
        }
    }
    assert!(sender.all_receive(7, [1, 1, 1]));
    assert_eq!(sender.masks(), [5, 2, 5]);
}

/// Three acknowledgements in a round trip, and up to 4 ms of jitter with it: the least delay of the last
/// ones is within 1/32 of the round trip at six losses of ten. Beside it `queue_us` that come and go in
/// 2 s, and losses when they are the most. In how many of 100 seconds was it known that losses are random?
fn seconds_of_random_losses(queue_us: u32) -> usize {
    let mut sender = Sender::of("lia+xcorr");
    let mut state = 1u64;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 40) as u32 % below
    };
    let second = |epoch: u32| {
        for n in 0..143 {
            sender.now_us += 7_000;
            let rise = n + 143 * (epoch % 2);
            for path in 0..3 {
                let rtt_us = draw(4_000) + queue_us * rise / 286;
                let lost = u32::from(if queue_us == 0 { draw(20) == 0 } else { rise > 270 });
                let with = Event { delivered: 2, lost, rtt_us, ..Event::default() };
                sender.event_with(path, EventKind::Acked, State::Active, with);
            }
        }
        sender.all_receive(epoch, [1, 1, 1]);
        sender.masks() == [1, 2, 4]
    };
    (1..=100).map(second).filter(|&random| random).count()
}

#[test]
fn jitter_hides_neither_that_losses_are_random_nor_that_they_are_not() {
    let found = seconds_of_random_losses(0);
    assert!(found > 30, "all three in {found} of 100 s");
    // A tenth of the round trip: jitter widens the bound to a sixteenth at most.
    assert_eq!(seconds_of_random_losses(2_000), 0, "of 100 s");
}

#[test]
fn a_receiver_that_knows_nothing_is_not_obeyed() {
    let mut sender = Sender::new();
    let obeyed = [0, 1, 2].map(|path| sender.receives(path, 7, UNDECIDED));
    assert_eq!(obeyed, [false; 3]);
    assert!(!sender.detection.receiver_decides(sender.now_us));
}

#[test]
fn when_the_receiver_falls_silent_the_own_detector_decides_again() {
    let mut sender = Sender::new();
    for path in 0..3 {
        sender.receives(path, 7, path);
    }
    assert_eq!(sender.masks(), [1, 2, 4]);
    let before = sender.detection.observed_us;
    sender.waits(u64::from(PEER_MS) - 500);
    assert_eq!(sender.masks(), [1, 2, 4]);
    assert!(sender.detection.observed_us > before, "it observes meanwhile");
    sender.waits(1500);
    assert_eq!((sender.masks(), sender.detection.peer_ms), ([7, 7, 7], 0), "it knows nothing yet");
}

#[test]
fn an_overtaken_part_brings_no_older_decision_back() {
    let mut sender = Sender::new();
    assert!(sender.all_receive(7, [0, 0, 1]));
    sender.waits(3500);
    assert!(sender.all_receive(8, [0, 1, 1]));
    // Also when that was long ago, and only repeated since.
    for ms in (1..=5).map(|n| 3500 * n) {
        sender.waits(3500);
        let masks = sender.masks();
        assert!(!sender.all_receive(7, [0, 0, 1]) && !sender.all_receive(8, [0, 1, 1]));
        assert_eq!(sender.masks(), masks, "after {ms} ms");
    }
    assert!(!sender.detection.receiver_decides(sender.now_us));
    assert!(sender.all_receive(9, [0, 0, 0]));
}

#[test]
fn a_path_that_has_received_the_next_decision_still_knows_the_last() {
    let mut sender = Sender::new();
    let mut obeyed = 0;
    // The second path receives each decision when the others have received the next.
    assert!(!sender.receives(0, 7, 1) && !sender.receives(2, 7, 1));
    for epoch in 8..18 {
        let place = epoch % 2;
        assert!(!sender.receives(0, epoch, place) && !sender.receives(2, epoch, place));
        obeyed += u32::from(sender.receives(1, epoch - 1, 0));
        assert_eq!(sender.masks(), if place == 1 { [7, 7, 7] } else { [5, 2, 5] }, "{epoch}");
        sender.waits(1000);
    }
    assert_eq!(obeyed, 10);
}

#[test]
fn a_decision_that_comes_too_early_is_obeyed_later() {
    let mut sender = Sender::new();
    assert!(sender.all_receive(7, [0, 0, 1]));
    sender.waits(500);
    assert!(!sender.all_receive(8, [0, 1, 1]));
    assert_eq!(sender.masks(), [3, 3, 4]);
    sender.waits(500);
    assert!(sender.receives(2, 8, 1), "it comes again");
    assert_eq!(sender.masks(), [1, 6, 6]);
}

#[test]
fn epochs_wrap_and_are_not_compared_after_a_silence() {
    let mut sender = Sender::new();
    assert!(sender.all_receive(0xfffe, [0, 0, 1]));
    sender.waits(3500);
    assert!(sender.all_receive(4, [0, 1, 1]));
    sender.waits(3500);
    assert!(!sender.all_receive(0xfffe, [0, 0, 1]));
    // Of a receiver that was silent for hours nobody knows how often they wrapped.
    sender.waits(u64::from(PEER_MS) + 50);
    assert!(sender.all_receive(0xf000, [0, 0, 1]));
    assert_eq!(sender.masks(), [3, 3, 4]);
}

/// Its number may come again after hours.
#[test]
fn an_old_part_is_not_of_a_new_decision() {
    let mut sender = Sender::new();
    assert!(!sender.receives(2, 9, 0));
    sender.waits(u64::from(PEER_MS) + 50);
    assert!(
        !sender.receives(0, 9, 0) && !sender.receives(1, 9, 0),
        "the third has not received this one"
    );
    assert!(sender.receives(2, 9, 1));
    assert_eq!(sender.masks(), [3, 3, 4]);
}
