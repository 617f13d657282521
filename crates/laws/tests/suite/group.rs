//! What the window of a path of a group is after events in any order: its own losses, timeouts and
//! their undo, idleness, a sibling's losses that it follows, changes of the group, a new subflow; and
//! what is coupled while it is not known who shares a bottleneck.

use crate::common;

use common::Host;
use narrows_laws::{Control, Event, EventKind, flag};
use proptest::prelude::*;

const LAWS: [&str; 2] = ["greno", "gcubic"];
const SHARED: u64 = u64::MAX;
const APART: u64 = 0x8040_2010_0804_0201;
const NO_SSTHRESH: u32 = 0x7fff_ffff;
const RESTART_CWND: u32 = 10;

/// What happens to path 0, each long after the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Loss,
    Timeout,
    /// The timer again, of the same segment.
    Again,
    Undo,
    Recovered,
    /// Data after idleness.
    Idle,
    /// A sibling loses a packet.
    Sibling,
    /// The same, and then one of those that were out here turns out to be lost.
    Tail,
    /// The detector finds the paths apart, or, where they are, together again.
    Masks,
    /// The subflow leaves, and another joins in its place.
    Join,
}

const STEPS: [Step; 10] = [
    Step::Loss,
    Step::Timeout,
    Step::Again,
    Step::Undo,
    Step::Recovered,
    Step::Idle,
    Step::Sibling,
    Step::Tail,
    Step::Masks,
    Step::Join,
];

/// The windows as they must be: a reduction remembers what was before it, an event that is followed
/// cuts that as well, and an undo restores the rest. RFC 5681, 4015 and 2861 where nothing is followed.
#[derive(Clone, Debug)]
struct Model {
    /// Greno cuts to a half, gcubic to 7/10.
    kept: f64,
    cwnd: f64,
    /// `None`: the first slow start.
    ssthresh: Option<f64>,
    prior: Option<(f64, Option<f64>)>,
    reduced: bool,
    together: bool,
}

impl Model {
    fn cut(&self, window: f64) -> f64 {
        // What integers cost two members: a quarter less 3/8, and 3/20 less 19/40.
        let offset = if self.kept == 0.5 { -0.125 } else { -0.325 };
        let offset = if self.together { offset } else { 0.0 };
        (self.kept * window + offset).max(2.0).min(window.max(2.0))
    }

    fn reduce(&mut self) {
        if !self.reduced {
            self.prior = Some((self.cwnd, self.ssthresh));
            self.ssthresh = Some(self.cut(self.cwnd));
            self.reduced = true;
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Loss => {
                self.reduce();
                self.cwnd = self.cwnd.min(self.ssthresh.unwrap());
            }
            Step::Timeout => {
                self.reduce();
                self.cwnd = 1.0;
            }
            Step::Again => self.cwnd = 1.0,
            Step::Undo => {
                if let Some((cwnd, ssthresh)) = self.prior.take() {
                    self.cwnd = self.cwnd.max(cwnd);
                    self.ssthresh = ssthresh.and_then(|s| self.ssthresh.map(|now| now.max(s)));
                    self.reduced = false;
                }
            }
            Step::Recovered => self.reduced = false,
            Step::Idle => {
                if self.cwnd > f64::from(RESTART_CWND) {
                    let memory = self.cwnd * 0.75;
                    self.ssthresh = self.ssthresh.map(|s| s.max(memory));
                    self.cwnd = RESTART_CWND.into();
                }
            }
            Step::Sibling if !self.together => {}
            Step::Sibling => {
                let cwnd = self.cut(self.cwnd);
                self.ssthresh = Some(match self.ssthresh {
                    Some(ssthresh) if self.cwnd < ssthresh => self.cut(ssthresh).min(ssthresh),
                    _ => cwnd,
                });
                self.cwnd = self.cwnd.min(cwnd);
                if let Some((cwnd, ssthresh)) = self.prior {
                    // On its way back to a threshold, that as well.
                    let ssthresh = ssthresh.filter(|s| cwnd < *s).unwrap_or(cwnd);
                    let cut = |window: f64| self.cut(window).min(window);
                    self.prior = Some((cut(cwnd), Some(cut(ssthresh))));
                }
            }
            Step::Tail if !self.together => self.take(Step::Loss),
            Step::Tail => {
                self.take(Step::Sibling);
                if !self.reduced {
                    self.prior = Some((self.cwnd, self.ssthresh));
                    self.ssthresh = Some(self.cwnd);
                    self.reduced = true;
                }
                self.cwnd = self.cwnd.min(self.ssthresh.unwrap());
            }
            Step::Masks => self.together = !self.together,
            // Whoever joins is of the group.
            Step::Join => {
                *self = Model::new(self.kept, 10.0);
                self.ssthresh = None;
            }
        }
    }

    fn new(kept: f64, cwnd: f64) -> Model {
        Model { kept, cwnd, ssthresh: Some(2.0), prior: None, reduced: false, together: true }
    }
}

/// Two paths of a group; what is out on path 0 has arrived before each step, and no window grows.
#[derive(Clone)]
struct Story {
    host: Host,
    model: Model,
    recovering: bool,
    /// The host says when what is lost had left.
    knows: bool,
}

impl Story {
    fn new(law: &str, cwnd: u32, knows: bool) -> Story {
        let control: Control = law.parse().unwrap();
        let mut host = Host::new(control);
        for path in 0..2 {
            host.report(path, EventKind::Joined);
            host.avoiding_at(path, cwnd);
        }
        // Nothing is left to undo.
        host.report(0, EventKind::Undo);
        let event = host.event(0, EventKind::Acked);
        host.send(0, &Event { cwnd, ssthresh: 2, ..event });
        let kept = if law == "greno" { 0.5 } else { 0.7 };
        Story { host, model: Model::new(kept, cwnd.into()), recovering: false, knows }
    }

    /// All that is out arrives.
    fn arrive(&mut self, path: usize) {
        self.arrive_but(path, 0);
    }

    /// All but some packets.
    fn arrive_but(&mut self, path: usize, inflight: u32) {
        let recovering = path == 0 && self.recovering;
        let flags = if recovering { flag::IN_RECOVERY } else { 0 };
        let event = self.host.event(path, EventKind::Acked);
        let event = Event { delivered: 500, inflight, flags, ..event };
        self.host.send(path, &event);
    }

    fn take(&mut self, step: Step) {
        self.host.now_us += 3_000_000;
        for _ in 0..2 {
            self.arrive(0);
            self.arrive(1);
        }
        // What arrives after a timeout, or outside recovery, ends the event.
        self.model.reduced &= self.recovering;
        self.host.now_us += 300_000;
        match step {
            Step::Loss => self.lose(self.host.now_us - 20_000),
            Step::Timeout => {
                self.host.report(0, EventKind::Timeout);
                self.recovering = false;
            }
            Step::Again => {
                let event = self.host.event(0, EventKind::Timeout);
                self.host.send(0, &Event { flags: flag::RETRANS, ..event });
                self.recovering = false;
            }
            Step::Undo => {
                self.host.report(0, EventKind::Undo);
                self.recovering &= self.model.prior.is_none();
            }
            Step::Recovered => {
                self.host.report(0, EventKind::Recovered);
                self.recovering = false;
            }
            Step::Idle => {
                let event = self.host.event(0, EventKind::Restart);
                self.host.send(0, &Event { cwnd: RESTART_CWND, ..event });
            }
            Step::Sibling => self.follow(0),
            Step::Tail => {
                let sent_us = self.host.now_us;
                self.follow(100);
                if self.knows {
                    // Those behind it must arrive before it is taken for lost.
                    self.host.now_us += 20_000;
                    self.arrive(0);
                    self.model.reduced &= self.recovering;
                }
                self.lose(sent_us);
            }
            Step::Masks => {
                self.host.conn.set_masks(if self.model.together { APART } else { SHARED });
                self.arrive(0);
                self.arrive(1);
            }
            Step::Join => {
                self.host.report(0, EventKind::Left);
                self.host.report(0, EventKind::Joined);
                self.arrive(0);
                self.recovering = false;
            }
        }
        self.model.take(step);
    }

    /// Path 0 loses a packet that left then.
    fn lose(&mut self, sent_us: u64) {
        let event = self.host.event(0, EventKind::Recovery);
        let sent_us = if self.knows { sent_us } else { 0 };
        self.host.send(0, &Event { sent_us, ..event });
        self.recovering = true;
    }

    /// Path 0 follows a loss of path 1, with so many packets in flight.
    fn follow(&mut self, inflight: u32) {
        self.host.report(1, EventKind::Recovery);
        self.host.now_us += 1_000;
        self.arrive_but(0, inflight);
        self.host.report(1, EventKind::Recovered);
    }

    /// Is a window as it must be? Each cut may have rounded off what it left of a packet, and cut
    /// what those before it rounded off; of a window of 6 to 12, as at most two cuts leave in a row, the
    /// odd packet waits.
    fn check(&self, steps: &[Step]) -> Result<(), String> {
        let line = self.host.conn.path(0);
        let kept = self.model.kept;
        let rounded = (1.0 - kept.powi(steps.len() as i32)) / (1.0 - kept) + 0.125;
        let near = |window: u32, expected: f64| {
            let odd = if expected < 14.0 { 1.0 + kept } else { 0.0 };
            let less = expected - f64::from(window);
            -rounded <= less && less <= rounded + odd
        };
        let ssthresh = match self.model.ssthresh {
            None => line.ssthresh == NO_SSTHRESH,
            Some(ssthresh) => near(line.ssthresh, ssthresh),
        };
        if ssthresh && near(line.cwnd, self.model.cwnd) {
            return Ok(());
        }
        Err(format!(
            "after {steps:?}: window {}, threshold {}; expected {:?}",
            line.cwnd, line.ssthresh, self.model
        ))
    }
}

fn tell(law: &str, cwnd: u32, knows: bool, steps: &[Step]) -> Result<(), String> {
    let mut story = Story::new(law, cwnd, knows);
    for n in 0..steps.len() {
        story.take(steps[n]);
        story.check(&steps[..=n]).map_err(|error| format!("{law} at {cwnd}, {knows}, {error}"))?;
    }
    Ok(())
}

/// Every order of so many events, the last of them one of these: what is right after fewer is checked on the way.
fn in_any_order(events: usize, last: &[Step]) {
    fn go_on(story: &Story, steps: &mut Vec<Step>, left: usize, last: &[Step]) {
        for step in if left == 1 { last } else { &STEPS[..] } {
            let mut story = story.clone();
            story.take(*step);
            steps.push(*step);
            if let Err(error) = story.check(steps) {
                panic!("{}, {}, {error}", story.host.conn.control(), story.knows);
            }
            if left > 1 {
                go_on(&story, steps, left - 1, last);
            }
            steps.pop();
        }
    }
    for law in LAWS {
        for knows in [false, true] {
            go_on(&Story::new(law, 64, knows), &mut Vec::new(), events, last);
        }
    }
}

/// Of up to five events, and of six that end in an undo, which brings back what was before.
#[test]
fn windows_are_as_they_must_be_after_events_in_any_order() {
    in_any_order(6, &[Step::Undo]);
}

#[test]
#[ignore = "long: four million orders"]
fn so_they_are_after_any_six() {
    in_any_order(6, &STEPS);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn also_after_longer_ones(
        law in 0..LAWS.len(),
        cwnd in 2u32..2000,
        knows: bool,
        steps in prop::collection::vec(0..STEPS.len(), 7..24),
    ) {
        let steps: Vec<Step> = steps.into_iter().map(|step| STEPS[step]).collect();
        prop_assert_eq!(tell(LAWS[law], cwnd, knows, &steps), Ok(()));
    }
}

/// LTE falls silent for half a minute, Wi-Fi goes on and loses packets, LTE's come late.
#[test]
fn a_spurious_timeout_gives_the_window_back_less_what_was_followed() {
    for (law, expected) in [("greno", 20), ("gcubic", 28)] {
        let mut story = Story::new(law, 41, false);
        story.take(Step::Timeout);
        for _ in 0..5 {
            // Nothing arrives: the losses of the sibling are not its own.
            story.host.now_us += 3_000_000;
            story.host.report(1, EventKind::Recovery);
            story.host.report(1, EventKind::Recovered);
            let event = story.host.event(0, EventKind::Timeout);
            story.host.send(0, &Event { flags: flag::RETRANS, ..event });
        }
        // What comes late does so within a second of the last.
        story.arrive(0);
        let restored = story.host.report(0, EventKind::Undo).cwnd;
        assert_eq!(restored, expected, "{law}");
    }
}

/// Two paths of 40 packets in congestion avoidance, of which path 1 has followed a loss of path 0 that was
/// 1 ms ago.
fn follows(law: &str) -> Host {
    let mut host = Host::new(law.parse().unwrap());
    for path in 0..2 {
        host.report(path, EventKind::Joined);
        host.avoiding_at(path, 40);
    }
    host.now_us += 2_000_000;
    for path in 0..2 {
        host.send(path, &Event { delivered: 80, ..host.event(path, EventKind::Acked) });
        host.set_cwnd(path, 40);
    }
    host.report(0, EventKind::Recovery);
    host.report(0, EventKind::Recovered);
    host.now_us += 1_000;
    host.report(1, EventKind::Acked);
    host
}

/// The same, 20 ms later: all is acknowledged that was out, and three packets more.
fn followed(law: &str) -> Host {
    let mut host = follows(law);
    host.now_us += 20_000;
    host.send(1, &Event { delivered: 43, ..host.event(1, EventKind::Acked) });
    host
}

/// Path 1 has a loss or a mark of a packet that left then.
fn congested(host: &mut Host, kind: EventKind, sent_us: u64) {
    host.send(1, &Event { sent_us, ..host.event(1, kind) });
}

/// A loss is found by three packets behind it (RFC 6675, RFC 9002), those of the last that were out by
/// what left after the cut: three of ten at a window of ten.
#[test]
fn the_last_that_were_out_are_of_the_event_that_was_followed() {
    for law in LAWS {
        for kind in [EventKind::Recovery, EventKind::Ecn] {
            let mut host = followed(law);
            let (cut, event_us) = (host.conn.path(1).cwnd, host.now_us - 21_000);
            assert!(cut < 30, "{law}");
            congested(&mut host, kind, event_us);
            assert_eq!(host.conn.path(1).cwnd, cut, "{law}, {kind:?}");
            assert_eq!(host.conn.path(1).word[0], 0, "{law}, {kind:?}: siblings follow it");
            // What left after it, also before the path followed, is another event, of all.
            host.report(1, EventKind::Recovered);
            host.now_us += 40_000;
            let before = host.conn.path(0).cwnd;
            congested(&mut host, kind, event_us + 2);
            host.report(0, EventKind::Acked);
            let [sibling, own] = [0, 1].map(|path| host.conn.path(path).cwnd);
            assert!(own < cut && sibling < before, "{law}, {kind:?}: {sibling}, {own}");
        }
    }
}

/// Whoever knows when a packet left needs no count: one that left after the event and is lost before all of
/// what was out has arrived is another event.
#[test]
fn a_packet_that_left_after_the_event_is_lost_before_the_last_that_were_out_arrive() {
    for law in LAWS {
        let mut host = followed(law);
        host.now_us += 100_000;
        host.report(0, EventKind::Recovery);
        // Follows again, with 100 packets out.
        let (before, event) = (host.conn.path(1).cwnd, host.event(1, EventKind::Acked));
        host.send(1, &Event { inflight: 100, ..event });
        let cut = host.conn.path(1).cwnd;
        assert!(cut < before, "{law}: {cut}");
        host.now_us += 30_000;
        let sent_us = host.now_us - 1_000;
        congested(&mut host, EventKind::Recovery, sent_us);
        assert!(host.conn.path(1).cwnd < cut, "{law}");
    }
}

/// What is out at a timeout is sent again: no loss after it is of what was followed.
#[test]
fn a_timeout_ends_what_was_followed() {
    for law in LAWS {
        let mut host = follows(law);
        let event_us = host.now_us - 1_000;
        host.report(1, EventKind::Timeout);
        host.set_cwnd(1, 40);
        host.now_us += 1_000_000;
        host.send(1, &Event { delivered: 40, ..host.event(1, EventKind::Acked) });
        host.set_cwnd(1, 40);
        congested(&mut host, EventKind::Recovery, event_us);
        assert!(host.conn.path(1).cwnd < 40, "{law}");
    }
}

/// Paths in congestion avoidance, `windows` at 20 ms, which may share a bottleneck or not.
fn unsure(law: &str, windows: &[u32]) -> Host {
    let mut host = Host::new(law.parse().unwrap());
    for (path, &cwnd) in windows.iter().enumerate() {
        host.report(path, EventKind::Joined);
        host.avoiding_at(path, cwnd);
    }
    host.conn.set_decided(SHARED, APART);
    host.now_us += 2_000_000;
    for (path, &cwnd) in windows.iter().enumerate() {
        let event = Event { delivered: 2 * cwnd, ..host.event(path, EventKind::Acked) };
        host.send(path, &event);
        host.set_cwnd(path, cwnd);
    }
    host
}

#[test]
fn paths_that_are_not_known_to_share_are_not_cut_for_each_others_losses() {
    for law in LAWS {
        let mut host = unsure(law, &[60, 20]);
        host.report(1, EventKind::Recovery);
        host.now_us += 1_000;
        host.report(0, EventKind::Acked);
        assert_eq!(host.conn.path(0).cwnd, 60, "{law}");
        // Once it is known, the next event is one of both.
        host.conn.set_masks(SHARED);
        host.report(0, EventKind::Acked);
        host.now_us += 3_000_000;
        host.report(0, EventKind::Acked);
        host.report(1, EventKind::Recovered);
        host.report(1, EventKind::Acked);
        host.report(1, EventKind::Recovery);
        host.report(0, EventKind::Acked);
        assert!(host.conn.path(0).cwnd < 60, "{law}");
    }
}

#[test]
fn paths_that_may_share_are_linked_as_those_of_lia() {
    for windows in [[60, 20], [40, 40], [10, 90]] {
        let host = unsure("greno", &windows);
        let mut lia = Host::new("lia".parse().unwrap());
        for (path, &cwnd) in windows.iter().enumerate() {
            lia.report(path, EventKind::Joined);
            lia.avoiding_at(path, cwnd);
        }
        for path in 0..2 {
            let (greno, lia) = (host.credit(path), lia.credit(path));
            assert!((greno - lia).abs() <= 1e-6 * lia, "{windows:?} {path}: {greno}, {lia}");
        }
    }
}

/// A window of CUBIC is in proportion to p^(-3/4): in the long run, with losses of their own, paths that
/// are linked have together what one flow has on the best of them, and never less.
#[test]
fn linked_paths_together_have_what_one_flow_has_on_the_best() {
    // Equilibrium of w = A^(1/4) s^(1/4) p^(-3/4) with s = w w_max^3 / W^4, and of Reno's w^2 = 2 s / p
    // with s = w w_max / W^2, by iteration.
    for losses in [[0.001, 0.001], [0.001, 0.01], [0.001, 0.0001]] {
        for (b, power) in [(0.5, 1.0), (0.75, 3.0)] {
            let alone = losses.map(|p: f64| libm::pow(p, -b));
            let mut w = alone;
            for _ in 0..2000 {
                let (sum, most) = (w[0] + w[1], w[0].max(w[1]));
                for n in 0..2 {
                    let share = w[n] / sum * libm::pow(most / sum, power);
                    let next = alone[n] * libm::pow(share, 1.0 - b);
                    w[n] += (next - w[n]) / 10.0;
                }
            }
            let best = alone[0].max(alone[1]);
            assert!((w[0] + w[1] - best).abs() < 0.01 * best, "{losses:?} {b}: {w:?} of {best}");
        }
    }
}
