//! The sending end of a connection: the bytes the application wrote, in data sequence.

use std::collections::VecDeque;

use narrows_laws::MAX_PATHS;

/// Written and not yet acknowledged bytes, and the peer's window.
#[derive(Debug)]
pub(crate) struct Stream {
    /// Bytes the application has written; `u64::MAX` if it never runs out.
    written: u64,
    next: u64,
    una: u64,
    /// End of the peer's window.
    edge: u64,
    buffer: u64,
    /// For each subflow whose timer expired its data, to go out on others (RFC 8684, section
    /// 3.3.6). Apart, so that what only a dead path could take does not hold up the rest.
    reinject: [VecDeque<Chunk>; MAX_PATHS],
}

/// Some bytes in data sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunk {
    pub dsn: u64,
    pub len: u32,
}

impl Stream {
    pub fn new(buffer: u64) -> Self {
        Stream { written: 0, next: 0, una: 0, edge: 0, buffer, reinject: Default::default() }
    }

    /// The application writes up to byte `total`, or without end. The buffer holds back what does
    /// not fit.
    pub fn write_up_to(&mut self, total: u64) {
        self.written = total;
    }

    /// The application stops: what has not been sent is withdrawn.
    pub fn stop(&mut self) {
        self.written = self.next;
    }

    /// The application writes `bytes` if they fit; a message that does not is given up, as by a
    /// source that cannot wait.
    pub fn write(&mut self, bytes: u64) {
        if self.written + bytes - self.una <= self.buffer {
            self.written += bytes;
        }
    }

    /// All that was written has been sent.
    pub fn is_drained(&self) -> bool {
        self.next == self.written
    }

    /// Bytes that the application has written, as far as the buffer let it, and that wait.
    pub fn unsent(&self) -> u64 {
        self.written.min(self.una.saturating_add(self.buffer)).saturating_sub(self.next)
    }

    /// The peer has all below `una`, in order, and takes up to `edge`.
    pub fn acknowledge(&mut self, una: u64, edge: u64) {
        self.una = self.una.max(una);
        self.edge = self.edge.max(edge);
    }

    /// Bytes of the next new segment: a full one of `mss` bytes, or the last that was written.
    /// Shorter ones are not cut because of the window or the buffer (RFC 1122, section 4.2.3.4)
    /// unless nothing else is underway (`idle`) that would open them.
    pub fn next_len(&self, mss: u32, idle: bool) -> u32 {
        let limit = self.edge.min(self.una.saturating_add(self.buffer));
        let unsent = self.written - self.next;
        let len = unsent.min(limit.saturating_sub(self.next)).min(mss.into()) as u32;
        if len == mss || u64::from(len) == unsent || idle { len } else { 0 }
    }

    /// Data waits, and nothing but the peer's window holds it back.
    pub fn is_blocked(&self) -> bool {
        self.next < self.written && self.next >= self.edge
    }

    /// Takes the next `len` new bytes; returns their data sequence number.
    pub fn take(&mut self, len: u32) -> u64 {
        let dsn = self.next;
        self.next += u64::from(len);
        dsn
    }

    /// Hands data of a path to the other subflows.
    pub fn reinject(&mut self, path: usize, chunk: Chunk) {
        self.reinject[path].push_back(chunk);
    }

    /// The next data of a path to send on another. Drops what has arrived meanwhile.
    pub fn next_reinjection(&mut self, path: usize) -> Option<Chunk> {
        let queue = &mut self.reinject[path];
        while let Some(&chunk) = queue.front() {
            if chunk.dsn + u64::from(chunk.len) > self.una {
                return Some(chunk);
            }
            queue.pop_front();
        }
        None
    }

    /// Takes the first `len` bytes of a path's next reinjection, as its new subflow's MSS allows.
    pub fn take_reinjection(&mut self, path: usize, len: u32) {
        let chunk = self.reinject[path].front_mut().expect("a reinjection waits");
        chunk.dsn += u64::from(len);
        chunk.len -= len;
        if chunk.len == 0 {
            self.reinject[path].pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 1000;

    #[test]
    fn segments_are_full_unless_the_data_ends() {
        let mut stream = Stream::new(2500);
        stream.acknowledge(0, 10_000);
        stream.write_up_to(u64::MAX);
        stream.take(MSS);
        assert_eq!(stream.next_len(MSS, false), MSS);
        stream.take(MSS);
        // The buffer has 500 bytes left: they wait for more room, unless none would come.
        assert_eq!((stream.next_len(MSS, false), stream.next_len(MSS, true)), (0, 500));
        stream.acknowledge(1000, 10_000);
        assert_eq!(stream.next_len(MSS, false), MSS);
        stream.stop();
        assert_eq!((stream.next_len(MSS, true), stream.is_drained()), (0, true));
        stream.write_up_to(2300);
        assert_eq!(stream.next_len(MSS, false), 300);
    }

    #[test]
    fn the_window_holds_back_and_blocks() {
        let mut stream = Stream::new(1 << 20);
        stream.acknowledge(0, 2000);
        stream.write_up_to(5000);
        stream.take(MSS);
        assert!(!stream.is_blocked());
        stream.take(MSS);
        assert_eq!((stream.next_len(MSS, true), stream.is_blocked()), (0, true));
        stream.acknowledge(2000, 4000);
        assert_eq!((stream.next_len(MSS, false), stream.is_blocked()), (MSS, false));
    }

    #[test]
    fn a_message_that_does_not_fit_is_given_up() {
        let mut stream = Stream::new(2500);
        stream.acknowledge(0, 10_000);
        for _ in 0..3 {
            stream.write(1000);
        }
        stream.take(MSS);
        stream.take(MSS);
        assert!(stream.is_drained());
    }

    #[test]
    fn what_arrived_meanwhile_is_not_reinjected() {
        let mut stream = Stream::new(1 << 20);
        stream.acknowledge(0, 10_000);
        stream.write_up_to(10_000);
        stream.take(MSS);
        stream.take(MSS);
        for dsn in [0, 1000] {
            stream.reinject(1, Chunk { dsn, len: MSS });
        }
        stream.acknowledge(1000, 10_000);
        assert_eq!(stream.next_reinjection(1).map(|chunk| chunk.dsn), Some(1000));
        // A path with a smaller MSS takes it in two.
        stream.take_reinjection(1, 600);
        assert_eq!(stream.next_reinjection(1).map(|c| (c.dsn, c.len)), Some((1600, 400)));
        stream.take_reinjection(1, 400);
        assert!(stream.next_reinjection(1).is_none());
    }
}
