//! What a connection carries: streams of a known pattern, verified where they arrive.

use narrows_net::{Nanos, SECOND};
use noq_proto::{Connection, Dir, ReadError, StreamId, WriteError};

/// What the sender has to send.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// So many bytes, at once; then the streams end.
    Bytes(u64),
    /// Always more.
    Endless,
    /// Bytes per second: the application is the limit where the network is faster.
    Rate(u64),
}

/// Byte n of a stream is byte n modulo this of the pattern: prime, so that no piece fits elsewhere.
const PATTERN: usize = 65_521;
/// At most so much is written at once.
const PIECE: usize = 16_384;
/// A [`Load::Rate`] writes pieces of this.
const TRICKLE: u64 = 4096;

/// The sending and the receiving side of a connection's load.
#[derive(Debug)]
pub(crate) struct Transfer {
    load: Load,
    start: Nanos,
    /// The pattern, and its beginning again: a piece is one slice.
    pattern: Vec<u8>,
    sending: Vec<(StreamId, u64)>,
    receiving: Vec<(StreamId, u64)>,
    written: u64,
    ended: bool,
    /// Bytes that have arrived in order.
    pub received: u64,
    /// When the last of all arrived.
    pub finished: Option<Nanos>,
}

impl Transfer {
    pub fn new(load: Load, start: Nanos) -> Transfer {
        let mut word = 0u32;
        let mut byte = || {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (word >> 24) as u8
        };
        let mut pattern: Vec<u8> = (0..PATTERN).map(|_| byte()).collect();
        pattern.extend_from_within(..PIECE);
        Transfer {
            load,
            start,
            pattern,
            sending: Vec::new(),
            receiving: Vec::new(),
            written: 0,
            ended: false,
            received: 0,
            finished: None,
        }
    }

    /// Opens the streams of the sender.
    pub fn open(&mut self, connection: &mut Connection, streams: usize) {
        while self.sending.len() < streams {
            let Some(id) = connection.streams().open(Dir::Uni) else { return };
            self.sending.push((id, 0));
        }
    }

    /// How much may have been written at `now`.
    fn budget(&self, now: Nanos) -> u64 {
        match self.load {
            Load::Bytes(bytes) => bytes,
            Load::Endless => u64::MAX,
            Load::Rate(rate) => {
                let bytes = u128::from(rate) * u128::from(now.saturating_sub(self.start));
                (bytes / u128::from(SECOND)) as u64 / TRICKLE * TRICKLE
            }
        }
    }

    /// When the application has more to write that it has not now.
    pub fn next_write(&self) -> Option<Nanos> {
        let Load::Rate(rate) = self.load else { return None };
        let next = u128::from(self.written / TRICKLE * TRICKLE + TRICKLE) * u128::from(SECOND);
        Some(self.start + next.div_ceil(rate.into()) as Nanos)
    }

    /// Writes what the streams take, a piece to each in turn.
    pub fn write(&mut self, connection: &mut Connection, now: Nanos) {
        let budget = self.budget(now);
        let mut blocked = 0;
        while blocked < self.sending.len() && self.written < budget {
            blocked = 0;
            for (id, at) in &mut self.sending {
                let length = (budget - self.written).min(PIECE as u64) as usize;
                let from = (*at % PATTERN as u64) as usize;
                match connection.send_stream(*id).write(&self.pattern[from..from + length]) {
                    Ok(0) | Err(WriteError::Blocked) => blocked += 1,
                    Ok(written) => {
                        *at += written as u64;
                        self.written += written as u64;
                    }
                    Err(error) => panic!("stream {id}: {error}"),
                }
            }
        }
        if matches!(self.load, Load::Bytes(all) if self.written == all) && !self.ended {
            self.ended = true;
            for (id, _) in &self.sending {
                connection.send_stream(*id).finish().expect("it is open");
            }
        }
    }

    /// Takes what has arrived; panics if it is not what was sent.
    pub fn read(&mut self, connection: &mut Connection, now: Nanos) {
        while let Some(id) = connection.streams().accept(Dir::Uni) {
            self.receiving.push((id, 0));
        }
        let mut open = Vec::with_capacity(self.receiving.len());
        for (id, mut at) in std::mem::take(&mut self.receiving) {
            let mut stream = connection.recv_stream(id);
            let mut chunks = stream.read(true).expect("it is open");
            let ended = loop {
                match chunks.next(PIECE) {
                    Ok(Some(chunk)) => {
                        let from = (at % PATTERN as u64) as usize;
                        let sent = &self.pattern[from..from + chunk.bytes.len()];
                        assert!(chunk.bytes == sent, "{id}: other bytes arrived at {at}");
                        at += chunk.bytes.len() as u64;
                        self.received += chunk.bytes.len() as u64;
                    }
                    Ok(None) => break true,
                    Err(ReadError::Blocked) => break false,
                    Err(error) => panic!("{id}: {error}"),
                }
            };
            let _ = chunks.finalize();
            if !ended {
                open.push((id, at));
            }
        }
        self.receiving = open;
        if matches!(self.load, Load::Bytes(all) if self.received == all) {
            self.finished.get_or_insert(now);
        }
    }
}
