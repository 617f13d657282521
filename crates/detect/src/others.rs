//! Flows of a capture that are not analysed, and what is said of them.

use crate::packet::Skip;
use crate::skipped::Skipped;
use crate::tally::Entry;
use crate::wrapped::ip::UDP;
use crate::{At, Limits, Signal, sizes};

/// What helps where packets were cut.
const LONGER: &str = "capture 128 bytes of each packet (tcpdump -s 128)";

/// So many flows, and the bytes that they sent.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    flows: usize,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, bytes: u64) {
        self.flows += 1;
        self.bytes += bytes;
    }

    /// `1 flow`, `2 flows`.
    fn name(self) -> String {
        sizes::flows(self.flows)
    }
}

/// Flows, by what they lack.
#[derive(Clone, Copy, Debug, Default)]
pub struct Others {
    /// Those with data.
    all: Sum,
    /// Those without.
    empty: usize,
    /// Those with data of fewer packets than the limit.
    small: Sum,
    /// Of more packets, but for too short a time.
    brief: Sum,
    /// Of the others, those that have messages only, and those that do not give the signal.
    messages: Sum,
    lacking: Sum,
    /// Those of both whose data has no timestamps, although it was captured with all TCP options.
    unstamped: Sum,
    /// What those of both sent whose packets were captured without all TCP options.
    cut: u64,
}

impl Others {
    /// A flow with the limit of packets `least`, of which delays are taken by `signal`, if there is one.
    pub fn count(&mut self, entry: &Entry, least: u64, brief: bool, signal: Option<Signal>) {
        let bytes = entry.bytes();
        if bytes == 0 {
            return self.empty += 1;
        }
        self.all.add(bytes);
        if entry.traffic().packets < least {
            return self.small.add(bytes);
        }
        if brief {
            return self.brief.add(bytes);
        }
        if signal.is_some_and(|signal| entry.gives(signal).is_some()) {
            return;
        }
        self.cut += if entry.cut { bytes } else { 0 };
        if !entry.cut && entry.ways[entry.data()].clock.is_none() {
            self.unstamped.add(bytes);
        }
        match entry.is_messages() && signal != Some(Signal::OwdReceiver) {
            true => self.messages.add(bytes),
            false => self.lacking.add(bytes),
        }
    }

    /// A flow that is analysed.
    pub fn analysed(&mut self, entry: &Entry) {
        self.all.add(entry.bytes());
    }

    /// Percentage of the data.
    pub fn share(&self, bytes: u64) -> f64 {
        100.0 * bytes as f64 / self.all.bytes.max(1) as f64
    }

    /// What flows with enough packets sent.
    fn kept(&self) -> u64 {
        self.all.bytes - self.small.bytes
    }

    /// Does most of the data give no delay, as packets were cut too short?
    pub fn is_cut(&self) -> bool {
        2 * self.cut > self.kept()
    }

    /// Is there no data of TCP, and mostly UDP?
    pub fn is_udp(&self, skipped: &Skipped, packets: u64) -> bool {
        self.all.flows == 0 && 2 * skipped.of(Skip::NotTcp(UDP)) > packets
    }

    /// The note on small flows, beside others.
    pub fn small(&self, least: u64) -> Option<String> {
        let share = self.share(self.small.bytes);
        (0 < self.small.flows && self.small.flows < self.all.flows)
            .then(|| sizes::hidden(self.small.flows, least, share, "data"))
    }

    /// The notes on those that give no delay by `signal`, or sent for less than so `long`.
    pub fn notes(&self, signal: Signal, at: Option<At>, long: &str) -> Vec<String> {
        let about = match at {
            Some(At::Middle) => signal.about_in_the_middle(),
            _ => signal.about(),
        };
        let brief = self.note(&format!("skipped, as they sent for less than {long}"), self.brief);
        let lacking = self.note(&format!("skipped, without {about}"), self.lacking);
        self.messages().into_iter().chain(brief).chain(lacking).collect()
    }

    /// `what` of so many flows, if there are any.
    fn note(&self, what: &str, of: Sum) -> Option<String> {
        let share = self.share(of.bytes);
        (of.flows > 0).then(|| format!("{what}: {}, with {share:.1} % of the data", of.name()))
    }

    /// The note on flows of messages.
    fn messages(&self) -> Option<String> {
        let have = if self.messages.flows == 1 { "has" } else { "have" };
        (self.messages.flows > 0).then(|| {
            format!(
                "{} {have} messages only, whose acknowledgements wait for an answer or for more: they show no delay",
                self.messages.name()
            )
        })
    }

    /// Why no flow of a capture of so many packets is analysed, which has to send for so `long`.
    pub fn none(&self, skipped: &Skipped, packets: u64, limits: Limits, long: &str) -> String {
        let empty = self.empty;
        if self.all.flows == 0 && skipped.of(Skip::Cut) > 0 {
            return format!("found no TCP flows with data; {LONGER}");
        }
        if self.all.flows == 0 && empty > 0 {
            return format!(
                "expected TCP flows with data, found {empty} without: no packet of their data is there"
            );
        }
        if self.all.flows == 0 {
            let udp = self.is_udp(skipped, packets);
            let log = if udp { "; if it is QUIC, give the log of an end (qlog)" } else { "" };
            return format!("expected TCP flows with data, found none{log}");
        }
        if self.small.flows == self.all.flows {
            return sizes::too_small(limits.packets);
        }
        if self.is_cut() {
            let percent = 100.0 * self.cut as f64 / self.kept() as f64;
            return format!("flows with {percent:.0} % of the data give no delay; {LONGER}");
        }
        let why = self.messages().map_or(String::new(), |why| format!("{why}; "));
        let given = limits.at.map_or(String::new(), |at| format!(" (--at {at})"));
        let found = self.note("; found without timestamps", self.unstamped).unwrap_or_default();
        format!(
            "{why}no flow gives a delay{given}: expected packets of at least {long} with TCP timestamps, or, \
             captured near the sender, with their acknowledgements{found}"
        )
    }
}
