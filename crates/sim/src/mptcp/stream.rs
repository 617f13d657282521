//! The sending end of a connection: the bytes the application wrote, in data sequence.

use crate::tcp::psh::Behind;

/// Written and not yet acknowledged bytes, and the peer's window.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Bytes the application has written; `u64::MAX` if it never runs out.
    written: u64,
    /// First byte that was never handed to a subflow (Linux: snd_nxt).
    sent: u64,
    /// Next byte to hand to a subflow (Linux: first_pending): below `sent` while the data of a
    /// subflow that failed goes out on others.
    next: u64,
    una: u64,
    /// End of the peer's window.
    edge: u64,
    buffer: u64,
    /// Up to here the buffer lets the application write, see [`Stream::refill`].
    room: u64,
    /// Bytes that waited to be sent when the application last wrote, until that has been asked for.
    waited: Option<u64>,
}

impl Stream {
    pub fn new(buffer: u64) -> Self {
        Stream { written: 0, sent: 0, next: 0, una: 0, edge: 0, buffer, room: buffer, waited: None }
    }

    /// The application writes up to byte `total`, or without end. The buffer holds back what does
    /// not fit.
    pub fn write_up_to(&mut self, total: u64) {
        self.note_write();
        self.written = total;
    }

    /// The application writes: notes what waits.
    fn note_write(&mut self) {
        self.waited = Some(self.written_from(self.next));
    }

    /// The bytes that waited to be sent when the application last wrote, if it has since the last call.
    pub fn take_waited(&mut self) -> Option<u64> {
        self.waited.take()
    }

    /// The application stops: what has not been sent is withdrawn.
    pub fn stop(&mut self) {
        self.written = self.sent;
    }

    /// The application writes `bytes` if they fit; a message that does not is given up, as by a
    /// source that cannot wait. Returns the byte behind it; none of one that is given up.
    pub fn write(&mut self, bytes: u64) -> Option<u64> {
        if self.written + bytes - self.una > self.buffer {
            return None;
        }
        self.note_write();
        self.written += bytes;
        self.room = self.room.max(self.written);
        Some(self.written)
    }

    /// Bytes that the buffer holds.
    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    /// The buffer has grown to `bytes`, unless it is larger.
    pub fn grow(&mut self, bytes: u64) {
        if bytes > self.buffer {
            self.buffer = bytes;
            self.refill();
        }
    }

    /// First byte the peer has not acknowledged in data sequence.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// Next byte to hand to a subflow.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// All that was written has been sent.
    pub fn is_drained(&self) -> bool {
        self.sent == self.written
    }

    /// Bytes from `from` on that the application has written, as far as the buffer let it.
    pub fn written_from(&self, from: u64) -> u64 {
        self.written.min(self.room).saturating_sub(from)
    }

    /// What is behind the segment that ends at `from`.
    pub fn behind(&self, from: u64) -> Behind {
        let written = self.written_from(from);
        Behind { ready: written.min(self.edge.saturating_sub(from)), written }
    }

    /// Bytes of the peer's window that were never sent.
    pub fn window_left(&self) -> u64 {
        self.edge.saturating_sub(self.sent)
    }

    /// Not all that was written is acknowledged in data sequence.
    pub fn is_pending(&self) -> bool {
        self.una < self.written
    }

    /// The peer has all below `una`, in order, and takes up to `edge`. True if that is news of
    /// what it has.
    pub fn acknowledge(&mut self, una: u64, edge: u64) -> bool {
        self.edge = self.edge.max(edge);
        if una <= self.una {
            return false;
        }
        self.una = una;
        self.next = self.next.max(una);
        self.refill();
        true
    }

    /// Bytes from `from` on that may go out, full segments of `mss` bytes up to `most` of them, or
    /// the last that was written. Shorter ones are not cut because of the window or the buffer
    /// (RFC 1122, section 4.2.3.4) unless nothing else is underway (`idle`) that would open them.
    pub fn len_from(&self, from: u64, mss: u32, most: u32, idle: bool) -> u32 {
        let limit = self.edge.min(self.room);
        let unsent = self.written - from;
        let len = unsent.min(limit.saturating_sub(from)).min(u64::from(mss) * u64::from(most));
        let len = len as u32;
        if u64::from(len) == unsent || idle { len } else { len - len % mss }
    }

    /// Data waits, and nothing but the peer's window holds it back.
    pub fn is_blocked(&self) -> bool {
        self.sent < self.written && self.sent >= self.edge
    }

    /// Hands the `len` bytes from `from` on to a subflow. True if they were sent before.
    pub fn take(&mut self, from: u64, len: u32) -> bool {
        self.next = from + u64::from(len);
        let again = from < self.sent;
        self.sent = self.sent.max(self.next);
        again
    }

    /// An application that has filled the buffer writes on when a third of it is empty, and not
    /// before: Linux's sk_stream_is_writeable(), for TCP and for mptcp_write_space().
    fn refill(&mut self) {
        let full = self.room.saturating_sub(self.una);
        if self.buffer.saturating_sub(full) >= full / 2 {
            if self.written > self.room {
                self.note_write();
            }
            self.room = self.una.saturating_add(self.buffer);
        }
    }

    /// Sends all again that is not acknowledged (Linux: __mptcp_retransmit_pending_data()).
    pub fn rewind(&mut self) {
        self.next = self.una;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    impl Stream {
        fn next_len(&self, idle: bool) -> u32 {
            self.len_from(self.next, MSS, 1, idle)
        }

        fn send(&mut self, len: u32) -> bool {
            self.take(self.next, len)
        }
    }

    #[test]
    fn segments_are_full_unless_the_data_ends() {
        let mut stream = Stream::new(2500);
        stream.acknowledge(0, 10_000);
        stream.write_up_to(u64::MAX);
        stream.send(MSS);
        assert_eq!(stream.next_len(false), MSS);
        stream.send(MSS);
        // The buffer has 500 bytes left: they wait for more room, unless none would come.
        assert_eq!((stream.next_len(false), stream.next_len(true)), (0, 500));
        stream.acknowledge(1000, 10_000);
        assert_eq!(stream.next_len(false), MSS);
        stream.stop();
        assert_eq!((stream.next_len(true), stream.is_drained()), (0, true));
        stream.write_up_to(2300);
        assert_eq!(stream.next_len(false), 300);
    }

    /// The buffer holds six segments. When one is acknowledged the application still waits; after the
    /// second it writes two.
    #[test]
    fn a_full_buffer_takes_more_when_a_third_of_it_is_empty() {
        let mut stream = Stream::new(6000);
        stream.acknowledge(0, 100_000);
        stream.write_up_to(u64::MAX);
        let all = |stream: &Stream| stream.len_from(stream.next, MSS, 9, false);
        assert!(!stream.send(all(&stream)));
        assert_eq!(stream.next, 6000);
        stream.acknowledge(1000, 100_000);
        assert_eq!((all(&stream), stream.written_from(6000)), (0, 0));
        stream.acknowledge(2000, 100_000);
        assert_eq!((all(&stream), stream.written_from(6000)), (2000, 2000));
    }

    /// A source that cannot wait writes whenever there is room.
    #[test]
    fn a_message_needs_no_third_of_the_buffer() {
        let mut stream = Stream::new(6000);
        stream.acknowledge(0, 100_000);
        (1..=6).for_each(|n| assert_eq!(stream.write(1000), Some(n * 1000)));
        assert_eq!(stream.write(1), None);
        (0..6).for_each(|_| assert!(!stream.send(MSS)));
        stream.acknowledge(1000, 100_000);
        assert_eq!((stream.write(1000), stream.next_len(false)), (Some(7000), MSS));
    }

    #[test]
    fn a_burst_is_of_full_segments_too() {
        let mut stream = Stream::new(5500);
        stream.acknowledge(0, 10_000);
        stream.write_up_to(u64::MAX);
        assert_eq!(stream.len_from(0, MSS, 3, false), 3000);
        assert_eq!(stream.len_from(0, MSS, 9, false), 5000);
        stream.write_up_to(5200);
        assert_eq!(stream.len_from(0, MSS, 9, false), 5200);
    }

    #[test]
    fn the_window_holds_back_and_blocks() {
        let mut stream = Stream::new(1 << 20);
        stream.acknowledge(0, 2000);
        stream.write_up_to(5000);
        stream.send(MSS);
        assert!(!stream.is_blocked());
        stream.send(MSS);
        assert_eq!((stream.next_len(true), stream.is_blocked()), (0, true));
        stream.acknowledge(2000, 4000);
        assert_eq!((stream.next_len(false), stream.is_blocked()), (MSS, false));
    }

    #[test]
    fn a_message_that_does_not_fit_is_given_up() {
        let mut stream = Stream::new(2500);
        stream.acknowledge(0, 10_000);
        for _ in 0..3 {
            stream.write(1000);
        }
        stream.send(MSS);
        stream.send(MSS);
        assert!(stream.is_drained());
    }

    /// What the peer acknowledges while the data goes out again is skipped, and behind it new data
    /// follows.
    #[test]
    fn all_that_is_not_acknowledged_goes_out_again() {
        let mut stream = Stream::new(1 << 20);
        stream.acknowledge(0, 10_000);
        stream.write_up_to(10_000);
        for _ in 0..4 {
            assert!(!stream.send(MSS));
        }
        stream.acknowledge(1000, 10_000);
        stream.rewind();
        assert_eq!(stream.next(), 1000);
        assert!(stream.send(MSS));
        stream.acknowledge(3000, 12_000);
        assert_eq!(stream.next(), 3000);
        assert!(stream.send(MSS));
        assert!(!stream.send(MSS));
        assert!(!stream.is_drained());
    }
}
