//! Slow starts that look ahead: HyStart++ against RFC 9406's pseudo code, and CUBIC's HyStart.

use crate::common;
use crate::reference;

use common::{Host, every_window_law};
use narrows_laws::raw::{ONE_PACKET, SSTHRESH_MAX};
use narrows_laws::{Control, Event, EventKind, SlowStart, flag};
use narrows_testkit::Random;
use reference::{HystartPlusPlus, Rtt};

fn hystartpp() -> impl Iterator<Item = Control> {
    every_window_law().map(|control| Control { exit: SlowStart::HYSTARTPP, ..control })
}

/// A path that has just joined.
fn joined(control: Control) -> Host {
    let mut host = Host::new(control);
    host.report(0, EventKind::Joined);
    host
}

/// `packets` acknowledged with a sample of the RTT; with the first of a round a new one starts.
fn ack(host: &mut Host, packets: u32, rtt_us: u32, first: bool, more: u32) -> u32 {
    let round = if first { flag::ROUND_START } else { 0 };
    let event = Event {
        delivered: packets,
        rtt_us,
        flags: flag::CWND_LIMITED | round | more,
        ..host.event(0, EventKind::Acked)
    };
    host.send(0, &event).cwnd
}

fn ssthresh(host: &Host) -> u32 {
    host.conn.path(0).ssthresh
}

/// Rounds of `acks` acknowledgements of a packet each, of the RTTs given, in ms.
fn rounds(host: &mut Host, acks: u32, rtts_ms: &[u32]) {
    for rtt_ms in rtts_ms {
        for n in 0..acks {
            ack(host, 1, rtt_ms * 1_000, n == 0, 0);
        }
    }
}

/// Random rounds, RTTs and stretches, paced or not: at every acknowledgement window and threshold
/// are those of the RFC's pseudo code.
#[test]
fn hystartpp_is_the_rfc_s() {
    let (mut in_css, mut resumed, mut done) = (0, 0, 0);
    for seed in 0..400 {
        let mut random = Random(seed);
        let paced = if random.below(2) == 0 { flag::PACED } else { 0 };
        let mut host = joined(Control { exit: SlowStart::HYSTARTPP, ..Control::RENO });
        let mut reference = HystartPlusPlus::new(paced != 0);
        let base = 1_000 + random.below(300_000) as u32;
        let mut queue = 0;
        for _ in 0..30 {
            // A queue that mostly grows, as it does in slow start.
            queue = (queue + random.below(u64::from(base) / 4) as u32)
                .saturating_sub(random.below(u64::from(base) / 5) as u32);
            for n in 0..4 + random.below(12) {
                let rtt = match random.below(20) {
                    0 => Rtt::INFINITE,
                    _ => Rtt::us(base + queue + random.below(3_000) as u32),
                };
                let packets = 1 + random.below(12) as u32;
                if n == 0 {
                    reference.new_round();
                }
                let css = reference.css.is_some();
                reference.acked(packets, rtt);
                in_css += u32::from(reference.css.is_some());
                resumed += u32::from(css && reference.css.is_none() && !reference.done);
                ack(&mut host, packets, rtt.sample(), n == 0, paced);
                let w = host.window(0) as f64 / ONE_PACKET as f64;
                let expected = reference.ssthresh.unwrap_or(SSTHRESH_MAX);
                assert_eq!(ssthresh(&host), expected, "seed {seed}");
                if reference.done {
                    break;
                }
                assert!((w - reference.cwnd).abs() < 1e-9, "seed {seed}: {w}, {}", reference.cwnd);
            }
            if reference.done {
                done += 1;
                break;
            }
        }
    }
    assert!(in_css > 1_000 && resumed > 50 && done > 100, "{in_css}, {resumed}, {done}");
}

/// 100 ms, then a round at 112.5 ms: conservative slow start begins with its eighth sample, and
/// five rounds later slow start ends. (wVegas does not wait for that: wvegas.rs.)
#[test]
fn a_risen_rtt_slows_every_window_law_down_and_ends_slow_start_five_rounds_later() {
    for control in hystartpp().filter(|control| control.law.name() != "wvegas") {
        let mut host = joined(control);
        rounds(&mut host, 10, &[100]);
        assert_eq!(host.conn.path(0).cwnd, 20, "{control}");
        for n in 0..10 {
            ack(&mut host, 1, 112_500, n == 0, 0);
        }
        // Seven acknowledgements at full speed, three at a quarter of it.
        let growth = host.window(0) - 20 * ONE_PACKET;
        assert_eq!(growth, 7 * ONE_PACKET + 3 * ONE_PACKET / 4, "{control}");
        rounds(&mut host, 8, &[113; 4]);
        assert_eq!(ssthresh(&host), SSTHRESH_MAX, "{control}");
        let before = host.conn.path(0).cwnd;
        ack(&mut host, 1, 113_000, true, 0);
        assert_eq!(ssthresh(&host), before, "{control}");
        assert!(host.credit(0) < 0.1, "{control}: congestion avoidance");
    }
}

/// RTTs that rise by less than an eighth, but at least 4 ms and at most 16 ms, mean nothing.
#[test]
fn the_threshold_is_an_eighth_between_4_and_16_ms() {
    for (before, still, risen) in [(8, 11, 12), (80, 89, 90), (400, 415, 416)] {
        for (rtt, slow) in [(still, false), (risen, true)] {
            let mut host = joined(Control { exit: SlowStart::HYSTARTPP, ..Control::RENO });
            rounds(&mut host, 8, &[before, rtt]);
            let credit = host.credit(0);
            assert_eq!(credit, if slow { 0.25 } else { 1.0 }, "{before} ms, then {rtt}");
        }
    }
}

/// The RTT falls again below that which slowed it down: it was jitter, slow start goes on, and may
/// go on for long.
#[test]
fn a_fallen_rtt_takes_slow_start_up_again() {
    let mut host = joined(Control { exit: SlowStart::HYSTARTPP, ..Control::RENO });
    rounds(&mut host, 8, &[100, 130]);
    assert_eq!(host.credit(0), 0.25);
    rounds(&mut host, 8, &[105]);
    assert_eq!(host.credit(0), 1.0);
    rounds(&mut host, 8, &[105; 10]);
    assert_eq!(ssthresh(&host), SSTHRESH_MAX);
}

/// A stretch acknowledgement is worth 8 packets (L), all of them where the host paces.
#[test]
fn a_stretch_is_worth_eight_packets_unless_paced() {
    for (more, cwnd) in [(0, 18), (flag::PACED, 40)] {
        let mut host = joined(Control { exit: SlowStart::HYSTARTPP, ..Control::RENO });
        assert_eq!(ack(&mut host, 30, 50_000, true, more), cwnd);
    }
}

/// After a loss, and after a timeout, slow start is the standard one.
#[test]
fn only_the_first_slow_start_looks_ahead() {
    let mut host = joined(Control { exit: SlowStart::HYSTARTPP, ..Control::RENO });
    host.set_cwnd(0, 400);
    host.report(0, EventKind::Timeout);
    assert_eq!((host.conn.path(0).cwnd, ssthresh(&host)), (1, 200));
    rounds(&mut host, 12, &[100, 100, 200, 200, 200]);
    assert_eq!(host.conn.path(0).cwnd, 61);
    assert_eq!(ack(&mut host, 30, 200_000, true, 0), 91, "no limit of 8 either");
}

/// CUBIC has HyStart, for one path and a group, the others have none: the same acknowledgements, and only CUBIC stops.
#[test]
fn cubic_has_hystart_and_no_other_law() {
    for control in every_window_law() {
        let mut host = joined(control);
        host.set_cwnd(0, 16);
        host.now_us += 100_000;
        for round in 0..2 {
            for n in 0..9 {
                host.now_us += 10_000; // no train
                ack(&mut host, 1, 100_000 + 12_501 * round, n == 0, 0);
            }
        }
        let stopped = ssthresh(&host) != SSTHRESH_MAX;
        let cubic = ["cubic", "gcubic"].contains(&control.law.name());
        assert_eq!(stopped, cubic, "{control}");
    }
}

/// A round's smallest RTT of nine samples, one eighth and more above the smallest ever.
#[test]
fn hystart_stops_where_the_delay_has_risen() {
    for (before, still, risen) in
        [(8_000, 12_000, 12_001), (80_000, 90_000, 90_001), (400_000, 416_000, 416_001)]
    {
        for (rtt_us, stops) in [(still, false), (risen, true)] {
            let mut host = joined(Control::CUBIC);
            host.set_cwnd(0, 16);
            for (rtt_us, acks) in [(before, 1), (rtt_us, 8)] {
                for n in 0..acks {
                    host.now_us += 2_001;
                    ack(&mut host, 1, rtt_us, n == 0, 0);
                }
            }
            assert_eq!(ssthresh(&host), SSTHRESH_MAX, "eight samples are not enough");
            host.now_us += 2_001;
            ack(&mut host, 1, rtt_us, false, 0);
            assert_eq!(ssthresh(&host) != SSTHRESH_MAX, stops, "{before} us, then {rtt_us}");
        }
    }
}

/// Acknowledgements 1 ms apart, RTT 100 ms. After 50 ms of them the window fills half of the path,
/// and with what is underway the other way all of it; where the host paces that takes 100 ms. A gap
/// of more than 2 ms breaks the train.
#[test]
fn hystart_stops_after_a_train_of_half_the_rtt() {
    let train = |more, gap_at: Option<u32>| {
        let mut host = joined(Control::CUBIC);
        host.srtt8_us[0] = 800_000;
        host.set_cwnd(0, 1_000);
        host.now_us += 1_000_000;
        (0..200).find(|&n| {
            host.now_us += if gap_at == Some(n) { 2_001 } else { 1_000 };
            ack(&mut host, 1, 100_000, n == 0, more);
            ssthresh(&host) != SSTHRESH_MAX
        })
    };
    // Half of 100 ms, and half of the millisecond that the bursts may take.
    assert_eq!(train(0, None), Some(51));
    assert_eq!(train(flag::PACED, None), Some(102));
    assert_eq!(train(0, Some(20)), None);
}

/// What the bursts may take: four of 65536 bytes at two windows of 13 MB in an RTT of 10 ms, 0.1 ms.
#[test]
fn hystart_allows_for_four_bursts() {
    let stops = |more_us| {
        let mut host = joined(Control::CUBIC);
        host.srtt8_us[0] = 80_000;
        host.set_cwnd(0, 13_107_200 / host.event(0, EventKind::Acked).mss);
        ack(&mut host, 0, 10_000, true, flag::PACED);
        for wait in [2_000, 2_000, 2_000, 2_000, 2_000, more_us] {
            host.now_us += wait;
            ack(&mut host, 0, 10_000, false, flag::PACED);
        }
        ssthresh(&host) != SSTHRESH_MAX
    };
    assert_eq!([99, 102].map(stops), [false, true]);
}

/// Below 16 packets a window is too small to tell; and after a timeout it begins anew.
#[test]
fn hystart_waits_for_16_packets_and_forgets_at_a_timeout() {
    let rise = |host: &mut Host, base: u32| {
        for (rtt_us, acks) in [(base, 1), (2 * base, 9)] {
            for n in 0..acks {
                host.now_us += 5_000;
                ack(host, 0, rtt_us, n == 0, 0);
            }
        }
    };
    let mut host = joined(Control::CUBIC);
    host.set_cwnd(0, 15);
    rise(&mut host, 50_000);
    assert_eq!(ssthresh(&host), SSTHRESH_MAX);
    host.set_cwnd(0, 100);
    rise(&mut host, 50_000);
    assert_eq!(ssthresh(&host), 100);
    // Found once is enough, until a timeout; a longer path may be there after it.
    host.report(0, EventKind::Timeout);
    assert_eq!(ssthresh(&host), 70);
    ack(&mut host, 29, 200_000, true, 0);
    rise(&mut host, 190_000);
    assert_eq!(ssthresh(&host), 30);
}
