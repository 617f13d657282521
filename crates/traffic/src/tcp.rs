//! What a TCP end point does, and what of it a detector sees.

use std::str::FromStr;

use narrows_net::{MILLISECOND, Nanos};

/// What a TCP end point does beyond what all do. The default is Linux's (without sch_fq), but that
/// segments leave and are taken one by one, as the papers on congestion control assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// Data is ECN-capable (RFC 3168), so that links may mark it instead of dropping it.
    pub ecn: bool,
    /// With ECN, the sender is a scalable one (RFC 9331): all data is ECT(1), and each acknowledgement says whether
    /// the newest that it covers was marked (near to RFC 8257, section 3.2, which acknowledges at once where that
    /// changes), not whether anything was since the last reduction.
    pub scalable: bool,
    /// Window laws are paced, at 200 % of a window per round trip in slow start and 120 % after
    /// (Linux's internal pacing, as with `SO_MAX_PACING_RATE` or sch_fq). Laws that give a rate
    /// always are.
    pub pacing: bool,
    /// Segments that leave back to back at most, as one burst: TCP segmentation offload. 1: none.
    /// 44 of 1448 bytes fill Linux's 64 kB.
    ///
    /// With pacing the burst is what Linux's tcp_tso_autosize() makes of the rate, a millisecond's
    /// worth and two at least. Without, the sender waits until a burst's worth of window, or a
    /// third of the window, has opened, as tcp_tso_should_defer(); but it looks again only when
    /// an acknowledgement or a timer comes, not when the application writes, and does not know
    /// how much that wrote.
    pub tso: u32,
    /// For how long the receiver gathers segments that arrive in order, before it acknowledges them
    /// together: an interrupt of the network card that waits for more (ethtool's rx-usecs, often
    /// 20 to 100 us), and generic receive offload, which then merges up to 64 kB. 0: not at all.
    ///
    /// The time counts from the segment with which an acknowledgement became due; the data is
    /// handed on at once. A segment out of order ends it.
    pub gro: Nanos,
    /// How the sender finds what is lost before its retransmission timer expires.
    pub loss_detection: LossDetection,
    /// When the receiver acknowledges what its application has read.
    pub receiver_acks: ReceiverAcks,
    /// What the receiver does not tell the sender.
    pub receiver_hides: Option<Hides>,
    /// Resolution of timestamps, and so of the RTT that is measured by them.
    pub timestamps: Timestamps,
    /// So many millionths the receiver's clock is faster than the sender's.
    pub skew_ppm: i32,
    /// What a delay-based detector samples.
    pub signal: Signal,
    /// Who opens the connection and its subflows.
    pub opener: Opener,
}

/// The end that opens a connection and its subflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Opener {
    /// The sender of the data: an upload.
    #[default]
    Sender,
    /// The receiver: a download. The sender may send with the third packet of a handshake, also with
    /// that of a join.
    Receiver,
}

impl Default for TcpConfig {
    fn default() -> Self {
        TcpConfig {
            ecn: false,
            scalable: false,
            pacing: false,
            tso: 1,
            gro: 0,
            loss_detection: LossDetection::default(),
            receiver_acks: ReceiverAcks::default(),
            receiver_hides: None,
            timestamps: Timestamps::Ms,
            skew_ppm: 0,
            signal: Signal::default(),
            opener: Opener::default(),
        }
    }
}

impl TcpConfig {
    /// What the receiver's clock shows when the sender's shows `time`.
    pub fn receiver_clock(&self, time: Nanos) -> Nanos {
        if self.skew_ppm == 0 {
            return time;
        }
        let ahead = i128::from(time) * i128::from(self.skew_ppm) / 1_000_000;
        time.saturating_add_signed(ahead as i64)
    }

    /// From a timestamp of the sender's to the one that the receiver sends `now`, us.
    pub fn elapsed_us(&self, now: Nanos, echo: Nanos) -> i32 {
        let elapsed = self.receiver_clock(now) as i64 - echo as i64;
        let us = match self.timestamps {
            Timestamps::Us => elapsed.div_euclid(1_000),
            Timestamps::Ms => elapsed.div_euclid(1_000_000) * 1_000,
        };
        us as i32
    }
}

/// How a sender finds lost segments from acknowledgements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossDetection {
    /// By time: RFC 8985. In Linux since 4.4 ("tcp: use RACK to detect losses").
    #[default]
    Rack,
    /// By sequence: forward acknowledgement (Mathis and Mahdavi, SIGCOMM 1996), Linux's default until
    /// it was removed in 4.15 ("tcp: retire FACK loss detection"). A segment is lost when one at least
    /// three above it was SACKed, a retransmission when data first sent after it was.
    Fack,
}

/// Which segments a receiver acknowledges as soon as its application has read them and left nothing
/// unread, without waiting for a second one: `ICSK_ACK_PUSHED`, set in Linux's
/// tcp_measure_rcv_mss() and answered in tcp_cleanup_rbuf() and mptcp_cleanup_rbuf().
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReceiverAcks {
    /// Before October 2023: short segments only.
    Linux65,
    /// Since then also full-sized ones with PSH: commit 4720852ed9af, "tcp: fix delayed ACKs for
    /// MSS boundary condition", in Linux 6.6 and the stable series from 4.14.327 to 6.5.7.
    #[default]
    Linux66,
    /// Every segment at once, as with Linux's route option `quickack 1`.
    EveryPacket,
}

/// What a receiver that misbehaves hides, so that its sender slows down less (Savage et al., "TCP Congestion Control with a Misbehaving
/// Receiver", CCR 1999).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hides {
    /// It acknowledges what was lost as soon as later data comes.
    Losses,
    /// It echoes no ECN marks.
    Marks,
}

/// Clock of the timestamps in segments (RFC 7323, section 5.4).
///
/// Linux takes the RTT from its own note of when a segment left, to the microsecond; only where
/// all that an acknowledgement covers was retransmitted it needs the timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timestamps {
    /// 1 ms: Linux's default.
    #[default]
    Ms,
    /// 1 us: Linux's `features tcp_usec_ts` of a route.
    Us,
}

impl Timestamps {
    /// Length of a tick.
    pub fn tick(self) -> Nanos {
        match self {
            Timestamps::Ms => MILLISECOND,
            Timestamps::Us => MILLISECOND / 1000,
        }
    }
}

/// What a delay-based detector samples of a path, and at which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// The detector is at the receiver, as MPTCP-SBD (INFOCOM 2016, section III-B) has it: it samples
    /// the one-way delay of each segment to the microsecond, and losses as holes in the sequence.
    /// Its decision rides on the acknowledgements of all paths. The eight bytes that its timestamp
    /// takes of a segment are not modelled: what TCP's timestamp, of 1 us then, says is enough.
    ReceiverUs,
    /// At the sender, the one-way delay from TCP's timestamps of 1 us: when the receiver sent the
    /// acknowledgement (TSval), less when the newest segment that it covers left, by the sender's own
    /// note. What it echoes (TSecr, RFC 7323, section 4) left earlier if the acknowledgement was delayed,
    /// and TSval - TSecr would contain the wait.
    #[default]
    SenderUs,
    /// The same from timestamps of 1 ms, Linux's default.
    SenderMs,
    /// At the sender, the round-trip time as it takes it, without timestamps.
    Rtt,
    /// At the sender, the smoothed round-trip time (RFC 6298) at every acknowledgement, as TR has it
    /// (arXiv:1812.05816, section 5.2).
    Srtt,
}

impl Signal {
    /// All of them.
    pub const ALL: [Signal; 5] =
        [Signal::ReceiverUs, Signal::SenderUs, Signal::SenderMs, Signal::Rtt, Signal::Srtt];

    /// As options and results show it.
    pub fn name(self) -> &'static str {
        match self {
            Signal::ReceiverUs => "receiver-us",
            Signal::SenderUs => "sender-us",
            Signal::SenderMs => "sender-ms",
            Signal::Rtt => "rtt",
            Signal::Srtt => "srtt",
        }
    }

    /// The resolution of timestamps that it needs, if it needs any.
    pub fn timestamps(self) -> Option<Timestamps> {
        match self {
            Signal::ReceiverUs | Signal::SenderUs => Some(Timestamps::Us),
            Signal::SenderMs => Some(Timestamps::Ms),
            Signal::Rtt | Signal::Srtt => None,
        }
    }

    /// Can one connection have both? Its timestamps have one resolution.
    pub fn goes_with(self, other: Signal) -> bool {
        let both = self.timestamps().zip(other.timestamps());
        both.is_none_or(|(one, other)| one == other)
    }
}

impl FromStr for Signal {
    type Err = String;

    fn from_str(name: &str) -> Result<Signal, String> {
        let known = || Signal::ALL.map(Signal::name).join(", ");
        let signal = Signal::ALL.into_iter().find(|signal| signal.name() == name);
        signal.ok_or_else(|| format!("unknown signal \"{name}\"; expected one of: {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Nanos = 1_000;

    /// A segment of 10.0 ms is acknowledged at 41.7 ms.
    #[test]
    fn timestamps_have_the_resolution_of_their_ticks() {
        let tcp = |timestamps| TcpConfig { timestamps, ..TcpConfig::default() };
        let elapsed = |timestamps| tcp(timestamps).elapsed_us(41_700 * US, 10_000 * US);
        assert_eq!([Timestamps::Us, Timestamps::Ms].map(elapsed), [31_700, 31_000]);
    }

    /// A receiver whose clock is fast sees delays grow, and one whose clock is slow sees them fall,
    /// at last below zero.
    #[test]
    fn clocks_that_run_apart_change_the_delay_between_them() {
        let elapsed = |skew_ppm, now| {
            let timestamps = Timestamps::Us;
            let tcp = TcpConfig { skew_ppm, timestamps, ..TcpConfig::default() };
            tcp.elapsed_us(now, now - 10 * MILLISECOND)
        };
        let after = |seconds: Nanos| seconds * 1000 * MILLISECOND;
        assert_eq!([10, 100].map(|s| elapsed(50, after(s))), [10_500, 15_000]);
        assert_eq!(elapsed(-50, after(1000)), -40_000);
    }
}
