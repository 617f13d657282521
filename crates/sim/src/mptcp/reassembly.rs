//! The receiving end of a connection: order over all subflows, and the shared receive window.

use narrows_net::Nanos;

use super::head_of_line::Waiting;
use crate::ranges::Ranges;
use crate::stats::HeadOfLine;

/// What the receiving application has and what waits for it.
#[derive(Debug)]
pub(crate) struct Reassembly {
    /// Next byte expected: the data ACK (RFC 8684, section 3.3.2).
    next: u64,
    out_of_order: Ranges,
    /// Bytes the application has read.
    read: u64,
    reading: bool,
    /// Bytes held at most, in order and not, over all subflows.
    buffer: u64,
    /// Highest end of the window that has been advertised to the sender.
    advertised: u64,
    waiting: Waiting,
}

impl Reassembly {
    pub fn new(buffer: u64) -> Self {
        Reassembly {
            next: 0,
            out_of_order: Ranges::default(),
            read: 0,
            reading: true,
            buffer,
            advertised: buffer,
            waiting: Waiting::default(),
        }
    }

    /// Data will arrive: begins to load what is out of order, if anything is.
    pub fn prefetch(&self) {
        self.out_of_order.prefetch();
        self.waiting.prefetch();
    }

    /// Takes a segment of plain TCP that is in order.
    pub fn insert(&mut self, dsn: u64, len: u32) {
        self.insert_range(dsn, dsn + u64::from(len));
    }

    /// Takes a segment that is in order on its subflow now, and came at `arrived`; bytes that
    /// arrived before (on another subflow) count once.
    pub fn insert_mapped(&mut self, dsn: u64, len: u32, arrived: Nanos, now: Nanos) {
        let end = dsn + u64::from(len);
        if dsn > self.next {
            debug_assert!(end <= self.advertised, "beyond the receive window");
            let (_, new) = self.out_of_order.insert(dsn, end);
            if new > 0 {
                self.waiting.hold(dsn, arrived);
            }
        } else if end > self.next {
            self.waiting.pass(arrived, now);
            self.insert_range(dsn, end);
            self.waiting.release(self.next, now);
        }
    }

    /// Takes the bytes of plain TCP that follow.
    pub fn insert_range(&mut self, start: u64, end: u64) {
        debug_assert!(end <= self.advertised, "beyond the receive window");
        debug_assert!(start <= self.next, "plain TCP is in order here");
        if end > self.next {
            self.next = self.out_of_order.advance(end);
            if self.reading {
                self.read = self.next;
            }
        }
    }

    /// How long segments of MPTCP have waited for earlier ones.
    pub fn head_of_line(&self) -> HeadOfLine {
        self.waiting.stats()
    }

    /// Next byte expected.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Bytes the application has read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Nothing waits: the application has read all that came, and no gap holds anything back.
    pub fn is_empty(&self) -> bool {
        self.read == self.next && self.out_of_order.is_empty()
    }

    /// The application reads at once what is in order, or nothing.
    pub fn set_reading(&mut self, reading: bool) {
        self.reading = reading;
        if reading {
            self.read = self.next;
        }
    }

    /// End of the window, relative to the data ACK and what the application has left unread: the
    /// buffer holds what is beyond, in order or not (RFC 8684, section 3.3.1).
    fn edge(&self) -> u64 {
        self.read + self.buffer
    }

    /// The end of the window to put into an acknowledgement.
    pub fn advertise(&mut self) -> u64 {
        self.advertised = self.edge();
        self.advertised
    }

    /// Has the window opened so far that the sender should know at once? Linux's
    /// tcp_cleanup_rbuf(): to twice of what the sender has left.
    pub fn window_opened(&self) -> bool {
        let left = self.advertised.saturating_sub(self.next);
        let open = self.edge() - self.next;
        open > 0 && 2 * left <= self.buffer && open >= 2 * left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gap_holds_back_all_that_arrived_on_other_paths() {
        let mut data = Reassembly::new(10_000);
        data.insert_mapped(1000, 1000, 0, 0);
        for _ in 0..2 {
            data.insert_mapped(2000, 1000, 0, 0);
        }
        assert_eq!((data.next(), data.advertise()), (0, 10_000));
        data.insert_mapped(0, 1000, 0, 0);
        assert_eq!((data.next(), data.advertise()), (3000, 13_000));
        // Sent again on another path: counted once.
        data.insert_mapped(1000, 1000, 0, 0);
        assert_eq!(data.next(), 3000);
        assert_eq!(data.head_of_line().packets, 3);
    }

    #[test]
    fn the_window_closes_when_the_application_stops_reading() {
        let mut data = Reassembly::new(4000);
        data.set_reading(false);
        for dsn in (0..4000).step_by(1000) {
            data.insert(dsn, 1000);
        }
        assert_eq!((data.next(), data.read(), data.advertise()), (4000, 0, 4000));
        assert!(!data.window_opened());
        data.set_reading(true);
        assert!(data.window_opened());
        assert_eq!(data.advertise(), 8000);
    }
}
