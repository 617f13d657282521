//! How long messages take.

use std::collections::VecDeque;

use narrows_net::Nanos;

/// A message that an application has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// When the application wrote it.
    pub written: Nanos,
    /// When the receiving application had all of it and all before it; none: it has not, or the sender
    /// had no room for it and gave it up.
    pub delivered: Option<Nanos>,
}

/// The messages of a connection, of [`Source::Messages`](crate::Source::Messages).
#[derive(Clone, Debug, Default)]
pub struct Messages {
    log: Vec<Message>,
    /// Those under way: where each ends in the data sequence, and its place in the log.
    under_way: VecDeque<(u64, usize)>,
}

impl Messages {
    /// The application writes one now, which ends before byte `end` of the data sequence; none: it is
    /// given up.
    pub fn write(&mut self, now: Nanos, end: Option<u64>) {
        self.under_way.extend(end.map(|end| (end, self.log.len())));
        self.log.push(Message { written: now, delivered: None });
    }

    /// The receiving application has all before byte `end`.
    pub fn deliver(&mut self, end: u64, now: Nanos) {
        while let Some(&(last, number)) = self.under_way.front() {
            if last > end {
                return;
            }
            self.log[number].delivered = Some(now);
            self.under_way.pop_front();
        }
    }

    /// All that were written, in order.
    pub fn log(&self) -> &[Message] {
        &self.log
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_there_when_its_last_byte_is() {
        let mut messages = Messages::default();
        messages.write(10, Some(1000));
        messages.write(20, None);
        messages.write(30, Some(2000));
        messages.write(40, Some(3000));
        messages.deliver(999, 50);
        messages.deliver(2999, 60);
        let times: Vec<_> = messages.log().iter().map(|one| (one.written, one.delivered)).collect();
        assert_eq!(times, [(10, Some(60)), (20, None), (30, Some(60)), (40, None)]);
    }
}
