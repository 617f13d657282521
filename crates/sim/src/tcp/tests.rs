//! A sender against acknowledgements written by hand.

use narrows_laws::{Conn, Control, Event, EventKind, Params, Private, State};
use narrows_net::{LinkConfig, Nanos, Network, RouteId};
use narrows_traffic::{Signal, TcpConfig, Timestamps};

use super::NEVER;
use super::psh::Behind;
use super::recovery::Phase;
use super::sender::Sender;
use crate::controller::{Controller, event};
use crate::packet::{Ack, Packet};
use crate::wire::Wire;

mod fack;
mod group;
mod spurious;

const MS: Nanos = 1_000_000;
const MSS: u32 = 1000;
const RTT: Nanos = 100 * MS;

/// A greedy sender whose packets go nowhere.
struct Bench {
    sender: Sender,
    controller: Controller,
    network: Network<Packet>,
    now: Nanos,
    next: u64,
}

impl Bench {
    /// After the handshake, the first window of 10 packets has left.
    fn established() -> Bench {
        Bench::with(&TcpConfig::default())
    }

    fn with(tcp: &TcpConfig) -> Bench {
        let mut bench = Bench::closed(tcp);
        bench.open();
        bench
    }

    /// The handshake, and the first window.
    fn open(&mut self) {
        self.act(|sender, wire, _| sender.open(false, false, sender.route(), wire));
        self.now = RTT;
        self.act(|sender, wire, controller| assert!(sender.on_syn_ack(0, wire, controller)));
        assert_eq!(self.push(), 10);
    }

    /// Before the handshake.
    fn closed(tcp: &TcpConfig) -> Bench {
        let mut network = Network::new(1);
        let link = network.add_link(LinkConfig::default()).expect("a valid link");
        let route = network.add_route(&[link]).expect("a valid route");
        assert_eq!(route, RouteId(0));
        Bench {
            sender: Sender::new(0, route, MSS, tcp),
            controller: Controller::new(Conn::new(Control::RENO), &[], &Params::default()),
            network,
            now: 0,
            next: 0,
        }
    }

    fn act<R>(&mut self, act: impl FnOnce(&mut Sender, &mut Wire, &mut Controller) -> R) -> R {
        while self.network.advance(self.now).is_some() {}
        let network = &mut self.network;
        let mut wire = Wire {
            now: self.now,
            flow: 0,
            multipath: false,
            generations: 0,
            first: (0, 0),
            network,
            recorder: None,
        };
        act(&mut self.sender, &mut wire, &mut self.controller)
    }

    /// Sends new data as far as the window allows; returns how many packets left, old or new,
    /// since the last call.
    fn push(&mut self) -> u64 {
        while self.sender.has_room() {
            let dsn = self.next;
            self.next += u64::from(MSS);
            self.act(|sender, wire, controller| {
                sender.send_new(dsn, MSS, Behind::ENDLESS, wire, controller)
            });
        }
        self.sender.note_window_use(self.now);
        std::mem::take(&mut self.sender.counters.sent_packets)
    }

    /// An acknowledgement up to packet `ack` with a SACK of packets `from..to`, 1 ms after the
    /// last; returns how many packets leave.
    fn ack(&mut self, ack: u64, from: u64, to: u64) -> u64 {
        self.marked(ack, from, to, false)
    }

    /// The same, which echoes a mark if `ece`.
    fn marked(&mut self, ack: u64, from: u64, to: u64, ece: bool) -> u64 {
        self.now += MS;
        let bytes = |packets: u64| packets * u64::from(MSS);
        let mut feedback = Ack { ack: bytes(ack), echo: self.now - RTT, ece, ..Ack::default() };
        if from < to {
            feedback.sack[0] = (bytes(from - ack) as i32, bytes(to - ack) as i32);
        }
        self.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
        self.push()
    }

    /// Lets the tail loss probe go out, if that comes first: new data.
    fn probe(&mut self) {
        if self.sender.probe_due(self.sender.deadline(self.now)) {
            self.now = self.sender.deadline(self.now);
            let dsn = self.next;
            self.next += u64::from(MSS);
            self.act(|sender, wire, controller| {
                sender.send_probe(Some((dsn, MSS, Behind::ENDLESS)), wire, controller)
            });
            assert_eq!(self.push(), 1);
        }
    }

    /// Lets the retransmission timer expire; returns how many packets leave.
    fn timeout(&mut self) -> u64 {
        self.probe();
        self.now = self.sender.deadline(self.now);
        assert!(self.act(|sender, wire, controller| sender.on_timer(wire, controller)));
        self.push()
    }
}

/// Of ten packets the first is lost. Two SACKs release new packets, the third the retransmission;
/// then PRR lets one leave for every two that arrive, down to ssthresh = 5. The law publishes the
/// window after recovery from its beginning.
#[test]
fn recovery_from_one_loss() {
    let mut bench = Bench::established();
    bench.now += RTT;
    let sent = [2, 3, 4, 5, 6, 7, 8, 9, 10].map(|to| {
        let sent = bench.ack(0, 1, to);
        if to >= 4 {
            assert_eq!((bench.controller.path(0).cwnd, bench.sender.ssthresh()), (5, 5));
            // The timer starts with the retransmission, and anew while older packets arrive.
            assert_eq!(bench.sender.deadline(bench.now), bench.now + bench.sender.rto());
        }
        sent
    });
    // 10 in flight; the limited transmits of RFC 3042 keep it there until the third SACK.
    assert_eq!(sent, [1, 1, 1, 0, 1, 0, 1, 0, 0]);
    assert_eq!(bench.sender.counters.retransmits, 1);
    bench.now += RTT;
    // The retransmission arrived, with all before it and the two that were sent meanwhile.
    let sent = bench.ack(12, 0, 0);
    assert_eq!((bench.sender.cwnd(), bench.controller.path(0).cwnd), (5, 5));
    assert_eq!(sent, 5 - 2, "the two that left in recovery are still out");
    assert_eq!(bench.sender.in_flight(), 5);
}

/// The last but one packet is lost and the application has no more: one SACK is no proof, so the
/// reordering timer, a quarter of the RTT, sends it again long before the retransmission timer.
#[test]
fn the_reordering_timer_repairs_a_tail() {
    let mut bench = Bench::established();
    bench.now += RTT;
    let bytes = |packets: u64| packets * u64::from(MSS);
    let feedback = Ack {
        ack: bytes(8),
        echo: RTT,
        sack: [(MSS as i32, 2 * MSS as i32), (0, 0), (0, 0)],
        ..Ack::default()
    };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, false, wire, controller));
    assert_eq!(
        (bench.sender.in_flight(), bench.sender.deadline(bench.now)),
        (1, bench.now + RTT / 4)
    );
    bench.now = bench.sender.deadline(bench.now);
    assert!(!bench.act(|sender, wire, controller| sender.on_timer(wire, controller)));
    let counters = &bench.sender.counters;
    assert_eq!((counters.retransmits, counters.timeouts), (1, 0));
    assert_eq!(bench.sender.in_flight(), 1);
}

/// A gap is seen: from here on RACK's timer and the retransmission timer watch, and no probe goes out
/// (RFC 8985, section 7.2).
#[test]
fn no_probe_while_there_is_a_gap() {
    let mut bench = Bench::established();
    assert_ne!(bench.sender.tlp.at, NEVER);
    bench.now += RTT;
    let block = (9 * MSS as i32, 10 * MSS as i32);
    let feedback = Ack { echo: RTT, sack: [block, (0, 0), (0, 0)], ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, false, wire, controller));
    bench.sender.note_window_use(bench.now);
    assert_eq!(bench.sender.tlp.at, NEVER);
}

/// Packets 0 to 6 of ten are lost, and 1 again when it is sent again. The acknowledgement that tells
/// so advances, but it is not safe: two arrived, two leave, and not one more (RFC 9937).
#[test]
fn an_ack_that_shows_of_more_loss_does_not_slow_start() {
    let mut bench = Bench::established();
    bench.now += RTT;
    assert_eq!(bench.ack(0, 7, 10), 3);
    bench.now += RTT;
    assert_eq!(bench.ack(1, 2, 3), 2);
    assert_eq!(bench.sender.in_flight(), 2);
}

/// The timer of an old packet expires while newer ones, sent less than a round trip ago, are in
/// the network: they stay there, and the window has room for one more.
#[test]
fn a_timeout_counts_what_was_just_sent_as_in_flight() {
    let mut bench = Bench::established();
    bench.now += RTT;
    let all = Ack { ack: bench.next, echo: bench.now - RTT, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&all, false, wire, controller));
    let send_two = |bench: &mut Bench| {
        for _ in 0..2 {
            bench.act(|sender, wire, controller| {
                sender.send_new(0, MSS, Behind::ENDLESS, wire, controller)
            });
        }
    };
    send_two(&mut bench);
    bench.now = bench.sender.deadline(bench.now) - RTT / 2;
    send_two(&mut bench);
    bench.now = bench.sender.deadline(bench.now);
    assert!(bench.act(|sender, wire, controller| sender.on_timer(wire, controller)));
    assert_eq!((bench.sender.cwnd(), bench.sender.in_flight()), (3, 3));
    assert_eq!(bench.sender.counters.retransmits, 1);
    // The answer to what the timer sent tells that the newer ones are lost too: the same event.
    let ssthresh = bench.sender.ssthresh();
    bench.now += RTT;
    let first = bench.sender.board.una() / u64::from(MSS) + 1;
    bench.ack(first, 0, 0);
    assert_eq!(bench.sender.board.lost_out(), 3);
    assert_eq!((bench.sender.ssthresh(), bench.sender.phase), (ssthresh, Phase::Loss));
}

/// All is lost, the tail loss probe too: the timer sends the first packet alone, with a window of
/// one. When it is lost too, the timer doubles and ssthresh stays.
#[test]
fn two_timeouts_of_one_episode_reduce_once() {
    let mut bench = Bench::established();
    assert_eq!(bench.sender.deadline(bench.now) - bench.now, 2 * RTT + 2 * MS);
    bench.probe();
    assert_eq!(bench.sender.deadline(bench.now) - bench.now, RTT + 200 * MS);
    assert_eq!(bench.timeout(), 1);
    assert_eq!((bench.sender.cwnd(), bench.sender.ssthresh()), (1, 5));
    assert_eq!(bench.sender.deadline(bench.now) - bench.now, 2 * (RTT + 200 * MS));
    assert_eq!(bench.timeout(), 1);
    assert_eq!((bench.sender.cwnd(), bench.sender.ssthresh()), (1, 5));
    assert_eq!(bench.sender.in_flight(), 1);
    // It arrives: slow start, two more packets. The timestamp gives a sample of the RTT although
    // the packet was sent three times, and that ends the backoff.
    bench.now += RTT;
    assert_eq!(bench.ack(1, 0, 0), 2);
    assert_eq!(bench.sender.deadline(bench.now) - bench.now, RTT + 200 * MS);
    assert_eq!((bench.sender.cwnd(), bench.sender.in_flight()), (2, 2));
}

/// In recovery the timer of the first packet fires twice. In between another arrives, one that was
/// only late: ssthresh stays what recovery made of it (RFC 5681, section 3.1).
#[test]
fn a_packet_that_times_out_again_holds_ssthresh() {
    let mut bench = Bench::established();
    bench.now += RTT;
    for to in [2, 3, 4] {
        bench.ack(0, 1, to);
    }
    bench.timeout();
    bench.ack(0, 1, 6);
    // F-RTO would take that for the answer to the timeout, and is not for recovery (RFC 5682,
    // section 2.1).
    assert_eq!(bench.sender.counters.undos, 0);
    bench.timeout();
    assert_eq!((bench.sender.cwnd(), bench.sender.ssthresh()), (1, 5));
    assert_eq!(bench.controller.path(0).ssthresh, 5);
}

/// F-RTO (RFC 5682, section 3.1): the acknowledgement of the retransmission releases new data. It
/// arrives behind a gap, so the timeout was real, and the lost packets follow in slow start.
#[test]
fn new_data_behind_a_gap_shows_that_a_timeout_was_real() {
    let mut bench = Bench::established();
    bench.timeout();
    bench.now += RTT;
    let again = bench.sender.counters.retransmits;
    assert_eq!(bench.ack(1, 0, 0), 2);
    assert_eq!(bench.sender.counters.retransmits, again, "new data first");
    bench.now += RTT;
    assert_eq!(bench.ack(1, 11, 13), 2);
    assert_eq!(bench.sender.counters.retransmits, again + 2);
    assert_eq!((bench.sender.ssthresh(), bench.sender.counters.undos), (5, 0));
}

/// The acknowledgements of a window were lost, and its first packet too. The retransmission fills
/// the gap, and what had been sent once is acknowledged with it: not all was lost, and F-RTO gives
/// the window back, though the timestamp is the retransmission's.
#[test]
fn what_was_sent_once_shows_that_a_timeout_was_spurious() {
    let mut bench = Bench::established();
    bench.timeout();
    assert_eq!((bench.sender.cwnd(), bench.sender.ssthresh()), (1, 5));
    bench.now += RTT;
    bench.ack(11, 0, 0);
    assert_eq!((bench.sender.counters.undos, bench.sender.counters.retransmits), (1, 1));
    assert!(bench.sender.cwnd() >= 10 && bench.sender.ssthresh() > 1000);
}

/// The same after the timer has expired twice (RFC 5682, section 3.2).
#[test]
fn what_was_sent_once_shows_that_two_timeouts_were_spurious() {
    let mut bench = Bench::established();
    bench.timeout();
    bench.timeout();
    bench.now += RTT;
    bench.ack(11, 0, 0);
    assert_eq!(bench.sender.counters.undos, 1);
    assert!(bench.sender.cwnd() >= 10 && bench.sender.ssthresh() > 1000);
}

/// F-RTO wants new data, but there is none: the lost packets go at once.
#[test]
fn without_new_data_f_rto_gives_way() {
    let mut bench = Bench::established();
    bench.timeout();
    bench.now += RTT;
    let feedback = Ack { ack: MSS.into(), echo: bench.now, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
    assert_eq!(bench.sender.in_flight(), 0);
    bench.act(|sender, wire, controller| sender.note_sent(wire, controller));
    assert_eq!((bench.sender.in_flight(), bench.sender.counters.retransmits), (2, 3));
}

/// After a timeout a retransmission is lost again, and what was sent after it arrives: that is
/// congestion of a later round trip, and recovery begins with a new reduction.
#[test]
fn a_retransmission_lost_after_a_timeout_begins_recovery() {
    let mut bench = Bench::established();
    bench.timeout();
    // Packet 10 was the probe. Packets 11 and 12 are new, the others are sent again.
    bench.now += RTT;
    bench.ack(1, 0, 0);
    for acked in [1, 3, 7] {
        bench.now += RTT;
        bench.ack(acked, 11, 13);
    }
    let before = bench.sender.ssthresh();
    assert_eq!((bench.sender.cwnd(), before), (5, 5));
    // Packets 7 to 10 are out for the second time, and a new one. 7 is lost again.
    assert_eq!(bench.sender.in_flight(), 5);
    bench.now += RTT;
    let retransmits = bench.sender.counters.retransmits;
    assert_eq!(bench.ack(7, 8, 14), 2, "packet 7 leaves for the third time, with a new one");
    assert_eq!(bench.sender.counters.retransmits, retransmits + 1);
    assert_eq!((bench.sender.ssthresh(), bench.sender.in_flight()), (2, 2));
}

/// What the law knows of the path: active while it carries data, also after timeouts; failed while
/// the connection says so; idle when there is nothing more to send.
#[test]
fn the_law_is_reported_the_state_of_the_path() {
    let mut bench = Bench::established();
    let state = |bench: &Bench| bench.controller.path(0).state;
    assert_eq!(state(&bench), State::Joining as u32);
    bench.now += RTT;
    bench.ack(1, 0, 0);
    assert_eq!(state(&bench), State::Active as u32);
    bench.timeout();
    assert_eq!(state(&bench), State::Active as u32);
    bench.act(|sender, wire, controller| sender.stand(State::Failed, wire.now, controller));
    assert_eq!(state(&bench), State::Failed as u32);
    bench.timeout();
    assert_eq!(state(&bench), State::Failed as u32);
    bench.act(|sender, wire, controller| sender.stand(State::Active, wire.now, controller));
    bench.now += RTT;
    bench.ack(2, 0, 0);
    assert_eq!(state(&bench), State::Active as u32);
    let all = Ack { ack: bench.next, echo: bench.now, ..Ack::default() };
    bench.now += RTT;
    bench.act(|sender, wire, controller| sender.on_ack(&all, false, wire, controller));
    assert_eq!(state(&bench), State::Idle as u32);
}

/// The connection has more to send, but its scheduler prefers another path: idle as well, and the
/// window stays.
#[test]
fn a_path_that_is_given_nothing_is_idle() {
    let mut bench = Bench::established();
    bench.now += RTT;
    let all = Ack { ack: bench.next, echo: bench.now - RTT, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&all, true, wire, controller));
    assert_eq!(bench.controller.path(0).state, State::Active as u32);
    let cwnd = bench.sender.cwnd();
    bench.act(|sender, wire, controller| sender.note_sent(wire, controller));
    assert_eq!(bench.controller.path(0).state, State::Idle as u32);
    assert_eq!((bench.sender.cwnd(), bench.controller.path(0).cwnd), (cwnd, cwnd));
}

/// After a pause of a second, three timeouts of 300 ms and a bit, a window of 80 is down to the
/// initial one, and the law knows (RFC 2861).
#[test]
fn a_window_that_was_not_used_shrinks() {
    let mut bench = Bench::established();
    for acked in [10, 30] {
        bench.now += RTT;
        bench.ack(acked, 0, 0);
    }
    assert_eq!((bench.sender.cwnd(), bench.sender.in_flight()), (40, 40));
    bench.now += RTT;
    let all = Ack { ack: bench.next, echo: bench.now - RTT, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&all, false, wire, controller));
    bench.sender.note_window_use(bench.now);
    assert_eq!(bench.sender.cwnd(), 80);
    bench.now += 10 * RTT;
    bench.push();
    assert_eq!((bench.sender.cwnd(), bench.controller.path(0).cwnd), (10, 10));
    assert_eq!(bench.sender.in_flight(), 10);
}

/// The first packet is sent again at a full millisecond and acknowledged 100.7 ms later. Only the
/// timestamp says which copy that was: 100 ms, or 100 ms and 700 us.
#[test]
fn after_a_retransmission_the_rtt_is_as_fine_as_the_timestamps() {
    let srtt = |timestamps| {
        let mut bench = Bench::with(&TcpConfig { timestamps, ..TcpConfig::default() });
        bench.timeout();
        let sent = bench.sender.timestamp(bench.now);
        bench.now += RTT + 700_000;
        let feedback = Ack { ack: MSS.into(), echo: sent, ..Ack::default() };
        bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
        bench.sender.srtt()
    };
    assert_eq!(srtt(Timestamps::Ms), RTT);
    assert_eq!(srtt(Timestamps::Us), RTT + 700_000 / 8);
}

/// Ten packets arrive, each marked: one reduction for all of them, spread over the round trip, and
/// one new packet says so. It ends when that has arrived; a mark after it is another reduction.
#[test]
fn marks_reduce_once_per_window() {
    let mut bench = Bench::with(&TcpConfig { ecn: true, ..TcpConfig::default() });
    bench.now += RTT;
    let marked = |bench: &mut Bench, ack: u64, ece| {
        bench.now += MS;
        let feedback =
            Ack { ack: ack * u64::from(MSS), echo: bench.now - RTT, ece, ..Ack::default() };
        bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
        bench.push()
    };
    let sent: Vec<u64> = (1..=10).map(|ack| marked(&mut bench, ack, true)).collect();
    assert_eq!((bench.sender.ssthresh(), bench.controller.path(0).cwnd), (5, 5));
    // Half of what arrives leaves, down to ssthresh, and then as much as arrives.
    assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 0, 1]);
    assert_eq!(bench.sender.in_flight(), 5);
    // What was out when it began has arrived, but not yet the packet that told of it.
    assert_eq!(marked(&mut bench, 11, false), 1);
    assert_eq!((bench.sender.cwnd(), bench.sender.ssthresh()), (5, 5));
    assert_eq!(bench.controller.path(0).cwnd, 5);
    marked(&mut bench, 12, true);
    assert_eq!((bench.sender.ssthresh(), bench.controller.path(0).cwnd), (2, 2));
    assert_eq!(bench.sender.counters.retransmits, 0);
}

/// After a mark, in the same window, a loss: it is repaired, and the window was reduced already.
#[test]
fn a_loss_after_a_mark_reduces_no_further() {
    let mut bench = Bench::with(&TcpConfig { ecn: true, ..TcpConfig::default() });
    bench.now += 2 * RTT;
    let feedback = Ack { ack: MSS.into(), echo: RTT, ece: true, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
    bench.push();
    for to in 3..=6 {
        bench.ack(1, 2, to);
    }
    assert_eq!(bench.sender.counters.retransmits, 1);
    assert_eq!((bench.sender.ssthresh(), bench.controller.path(0).cwnd), (5, 5));
}

/// After a mark, and before anything sent later has arrived, the connection sets the path aside:
/// the law still holds the window after the reduction, and it ends there.
#[test]
fn a_path_set_aside_during_a_reduction_is_reduced_in_full() {
    let mut bench = Bench::with(&TcpConfig { ecn: true, ..TcpConfig::default() });
    bench.now += 2 * RTT;
    let feedback = Ack { ack: MSS.into(), echo: RTT, ece: true, ..Ack::default() };
    bench.act(|sender, wire, controller| sender.on_ack(&feedback, true, wire, controller));
    bench.push();
    assert!(bench.sender.cwnd() > 5, "on its way down");
    bench.act(|sender, wire, controller| sender.stand(State::Backup, wire.now, controller));
    assert_eq!(bench.controller.path(0).cwnd, 5);
    bench.ack(10, 0, 0);
    bench.ack(11, 0, 0);
    assert_eq!((bench.sender.cwnd(), bench.controller.path(0).cwnd), (5, 5));
}

/// Paced at twice the 11 kB that are out per 100 ms, a packet takes 4.5 ms; the first after an idle
/// time half of that. The window lets one leave: the next acknowledgement finds the burst over, though it
/// might have had two packets, and what it lets leave waits for its time.
#[test]
fn a_burst_that_the_window_cut_short_is_over() {
    let mut bench = Bench::with(&TcpConfig { pacing: true, tso: 44, ..TcpConfig::default() });
    bench.now += RTT;
    assert_eq!(bench.ack(0, 1, 2), 1);
    let due = bench.now + (5 * MS * 10 / 11) / 2;
    assert_eq!(bench.ack(0, 1, 3), 0);
    assert!(bench.sender.deadline(bench.now).abs_diff(due) < MS / 100, "a smoothed RTT of 100 ms");
    bench.now = bench.sender.deadline(bench.now);
    assert!(!bench.act(|sender, wire, controller| sender.on_timer(wire, controller)));
    assert_eq!(bench.push(), 1);
}

/// An acknowledgement waited 5 ms for a second segment: its delay is that of the second.
#[test]
fn the_delay_of_timestamps_is_that_of_the_newest_segment() {
    let bench = Bench::with(&TcpConfig::default());
    let ack = Ack { echo: 10 * MS, elapsed_us: 12_345, ..Ack::default() };
    let delays =
        [None, Some((15 * MS, RTT))].map(|newest| bench.sender.one_way_delay(&ack, newest));
    assert_eq!(delays, [None, Some(7_345)]);
}
