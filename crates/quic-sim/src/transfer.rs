//! What a connection carries: streams of a known pattern, verified where they arrive.

use narrows_net::Nanos;
use narrows_traffic::{Generator, Message, Messages, Source, Write};
use noq_proto::{Connection, Dir, ReadError, StreamId, WriteError};

/// Byte n of a stream is byte n modulo this of the pattern: prime, so that no piece fits elsewhere.
const PATTERN: usize = 65_521;
/// At most so much is written at once.
const PIECE: usize = 16_384;

/// The sending and the receiving side of a connection's application.
#[derive(Debug)]
pub(crate) struct Transfer {
    application: Generator,
    /// When the application acts next.
    next: Nanos,
    /// How much it has written so far, for the streams to take.
    budget: u64,
    /// The pattern, and its beginning again: a piece is one slice.
    pattern: Vec<u8>,
    sending: Vec<(StreamId, u64)>,
    receiving: Vec<(StreamId, u64)>,
    written: u64,
    ended: bool,
    /// Bytes that have arrived in order.
    pub received: u64,
    /// When the last of a file arrived.
    pub finished: Option<Nanos>,
    /// When the sender had the acknowledgement of all of a file.
    pub acknowledged: Option<Nanos>,
    messages: Messages,
}

impl Transfer {
    pub fn new(application: Generator) -> Transfer {
        let mut word = 0u32;
        let mut byte = || {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (word >> 24) as u8
        };
        let mut pattern: Vec<u8> = (0..PATTERN).map(|_| byte()).collect();
        pattern.extend_from_within(..PIECE);
        Transfer {
            next: application.first_start(),
            application,
            budget: 0,
            pattern,
            sending: Vec::new(),
            receiving: Vec::new(),
            written: 0,
            ended: false,
            received: 0,
            finished: None,
            acknowledged: None,
            messages: Messages::default(),
        }
    }

    /// Opens the streams of the sender; one alone for messages, which arrive in order as over TCP.
    pub fn open(&mut self, connection: &mut Connection, streams: usize) {
        let streams = if self.has_messages() { 1 } else { streams };
        while self.sending.len() < streams {
            let Some(id) = connection.streams().open(Dir::Uni) else { return };
            self.sending.push((id, 0));
        }
    }

    /// When the application acts next; `u64::MAX`: never.
    pub fn next_write(&self) -> Nanos {
        self.next
    }

    /// Its time has come. A message is given up while an earlier one waits for the streams; what they
    /// have taken is sent also if the application stops.
    pub fn wake(&mut self, now: Nanos) {
        let write;
        (write, self.next) = self.application.wake(now);
        match write {
            Write::Start { total } => self.budget = total.unwrap_or(self.budget),
            Write::Stop { withdraws: true } => self.budget = self.written,
            Write::Message(bytes) => {
                let fits = self.written == self.budget;
                if fits {
                    self.budget += u64::from(bytes);
                }
                if self.has_messages() {
                    self.messages.write(now, fits.then_some(self.budget));
                }
            }
            Write::Stop { .. } | Write::Nothing => {}
        }
    }

    /// Does it note the latency of messages?
    fn has_messages(&self) -> bool {
        matches!(self.application.source(), Source::Messages { .. })
    }

    /// The messages that the application has written.
    pub fn messages(&self) -> &[Message] {
        self.messages.log()
    }

    /// Bytes of a file.
    fn file(&self) -> Option<u64> {
        match self.application.source() {
            Source::File { bytes } => Some(bytes),
            _ => None,
        }
    }

    /// Writes what the streams take, a piece to each in turn.
    pub fn write(&mut self, connection: &mut Connection) {
        let budget = self.budget;
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
        if self.file() == Some(self.written) && !self.ended {
            self.ended = true;
            for (id, _) in &self.sending {
                connection.send_stream(*id).finish().expect("it is open");
            }
        }
    }

    /// So many streams are acknowledged to their ends.
    pub fn acknowledge(&mut self, streams: usize, now: Nanos) {
        if self.ended && streams == self.sending.len() {
            self.acknowledged.get_or_insert(now);
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
        self.messages.deliver(self.received, now);
        if self.file() == Some(self.received) {
            self.finished.get_or_insert(now);
        }
    }
}
