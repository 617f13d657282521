//! Was a reduction of the window for nothing? Either the receiver says that everything sent again
//! came twice (DSACK, RFC 2883; RFC 3708 has the response), or an acknowledgement that advances
//! echoes a timestamp from before the first retransmission (Eifel, RFC 3522 and 4015). As Linux's
//! tcp_try_undo_recovery() and its siblings.

use narrows_laws::EventKind;
use narrows_net::Nanos;

use super::NEVER;
use super::scoreboard::Duplicate;
use super::sender::Sender;
use crate::controller::{Controller, event};

/// No reduction to undo.
const NONE: u64 = u64::MAX;

/// What may show that the last reduction was spurious.
#[derive(Debug)]
pub(crate) struct Undo {
    /// First unacknowledged byte at the reduction (Linux: undo_marker).
    marker: u64,
    /// Retransmissions not known to be needless (undo_retrans); negative: nothing was sent again.
    doubtful: i32,
    /// Timestamp of the first retransmission (retrans_stamp).
    first: Nanos,
    /// DSACKs so far (dsack_dups).
    duplicates: u64,
}

impl Default for Undo {
    fn default() -> Self {
        Undo { marker: NONE, doubtful: -1, first: NEVER, duplicates: 0 }
    }
}

impl Undo {
    /// The window is reduced at byte `una` while `retransmitted` retransmissions are in the network, and
    /// `clean` if none of those is unacknowledged. Linux's tcp_init_undo().
    pub fn begin(&mut self, una: u64, retransmitted: u32, clean: bool) {
        self.marker = una;
        self.doubtful = if retransmitted > 0 { retransmitted as i32 } else { -1 };
        if clean {
            self.first = NEVER;
        }
    }

    /// May what was reduced be given back?
    pub fn is_possible(&self) -> bool {
        self.marker != NONE
    }

    /// There is nothing to undo, or there must not be.
    pub fn forget(&mut self) {
        self.marker = NONE;
    }

    /// A segment with timestamp `stamp` leaves again.
    pub fn retransmitted(&mut self, stamp: Nanos) {
        self.doubtful = self.doubtful.max(0) + 1;
        self.first = self.first.min(stamp);
    }

    /// A segment came twice; `sent` of them were sent again. False if this one must have been
    /// doubled by the network.
    pub fn on_duplicate(&mut self, duplicate: &Duplicate, sent: u64) -> bool {
        self.duplicates += 1;
        if self.duplicates > sent {
            return false;
        }
        if duplicate.retransmitted && self.marker != NONE && duplicate.end > self.marker {
            self.doubtful -= i32::from(self.doubtful > 0);
        }
        true
    }

    /// Everything that was sent again came twice.
    pub fn all_needless(&self) -> bool {
        self.marker != NONE && self.doubtful == 0
    }

    /// An acknowledgement that advances and echoes `echo` is of something sent before the first
    /// retransmission. Linux's tcp_packet_delayed().
    pub fn was_late(&self, echo: Nanos) -> bool {
        self.marker != NONE && echo < self.first
    }
}

impl Sender {
    /// A DSACK came.
    pub(super) fn on_duplicate(&mut self, duplicate: &Duplicate) {
        if !self.undo.on_duplicate(duplicate, self.counters.retransmits) {
            return;
        }
        if duplicate.late {
            self.rack.reordered();
        }
        // A probe that was not needed says nothing about reordering.
        if self.rack.reordering_seen() && !self.tlp.is_of(duplicate.end) {
            self.rack.on_duplicate(self.board.una(), self.board.nxt());
        }
    }

    /// From here on what a reduction was made for may turn out not to have been lost.
    pub(super) fn begin_undo(&mut self) {
        let retransmitted = self.board.retrans_out() + u32::from(self.tlp.is_retransmitted());
        self.undo.begin(self.board.una(), retransmitted, !self.board.any_retransmitted());
    }

    pub(super) fn may_undo(&self, echo: Nanos) -> bool {
        self.undo.all_needless() || self.undo.was_late(echo)
    }

    /// The reduction was for nothing: the window is as before, unless a mark asked for a reduction
    /// as well. What counts as lost is in the network after all if it was `late`. Linux's
    /// tcp_undo_cwnd_reduction().
    pub(super) fn undo_reduction(&mut self, late: bool, now: Nanos, controller: &mut Controller) {
        if late {
            self.board.unmark_lost();
        }
        self.rack.look_again();
        if !self.undo.is_possible() {
            return;
        }
        self.undo.forget();
        self.ecn.withdraw();
        self.counters.undos += 1;
        self.report(controller, now, event(EventKind::Undo));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two segments are sent again and both come twice, one after the reduction was over.
    #[test]
    fn all_that_was_sent_again_must_have_come_twice() {
        let mut undo = Undo::default();
        let twice = |end| Duplicate { end, retransmitted: true, late: false };
        undo.begin(1000, 0, true);
        assert!(!undo.all_needless(), "nothing was sent again yet");
        undo.retransmitted(5);
        undo.retransmitted(6);
        assert!(undo.on_duplicate(&twice(2000), 2));
        assert!(!undo.all_needless());
        assert!(undo.on_duplicate(&twice(3000), 2));
        assert!(undo.all_needless());
        undo.forget();
        assert!(!undo.all_needless());
    }

    /// The network doubles packets: more duplicates than retransmissions prove nothing, nor does
    /// one of data from before the reduction, or of a segment that was sent once.
    #[test]
    fn duplicates_of_something_else_prove_nothing() {
        let mut undo = Undo::default();
        undo.begin(1000, 0, true);
        undo.retransmitted(5);
        assert!(undo.on_duplicate(&Duplicate { end: 1000, retransmitted: true, late: false }, 2));
        assert!(undo.on_duplicate(&Duplicate { end: 3000, retransmitted: false, late: false }, 2));
        assert!(!undo.on_duplicate(&Duplicate { end: 2000, retransmitted: true, late: false }, 2));
        assert!(!undo.all_needless());
    }

    #[test]
    fn an_echo_from_before_the_first_retransmission_was_of_the_original() {
        let mut undo = Undo::default();
        undo.begin(1000, 0, true);
        undo.retransmitted(500);
        undo.retransmitted(600);
        assert!(undo.was_late(499));
        assert!(!undo.was_late(500), "the echo of the retransmission itself");
        // A new reduction, while those are still out, keeps the time of the first.
        undo.begin(2000, 2, false);
        undo.retransmitted(700);
        assert!(!undo.was_late(600));
    }
}
