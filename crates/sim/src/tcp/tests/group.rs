//! A sender in a group: it has followed a loss of a sibling, and says when what it loses had left.

use narrows_traffic::LossDetection;

use super::*;

/// Twenty packets are out, 10 to 29, when the path follows a loss of its sibling; the acknowledgement of
/// packet 10 has come.
fn followed(tcp: &TcpConfig) -> Bench {
    let mut bench = Bench::closed(tcp);
    let greno: Control = "greno".parse().expect("a law");
    bench.controller = Controller::new(Conn::new(greno), &[], &Params::default());
    bench.open();
    let mut sibling = Private::default();
    let mut tell = |bench: &mut Bench, kind, delivered| {
        let now_us = bench.now / 1000;
        let (srtt8_us, inflight) = (8 * (RTT / 1000) as u32, 20);
        let mut event = Event { now_us, delivered, inflight, srtt8_us, mss: MSS, ..event(kind) };
        bench.controller.event(1, &mut sibling, &mut event, Signal::SenderUs);
    };
    tell(&mut bench, EventKind::Joined, 0);
    bench.now += RTT;
    assert_eq!(bench.ack(10, 0, 0), 20);
    tell(&mut bench, EventKind::Acked, 2);
    bench.now += RTT;
    tell(&mut bench, EventKind::Recovery, 0);
    assert_eq!(bench.ack(11, 0, 0), 0);
    // 20 packets to 9 and 7/8, of which the window has an even number.
    assert_eq!((bench.sender.cwnd(), published(&bench)), (10, (10, 0)));
    bench
}

/// The law's window, and when it published an event of its own.
fn published(bench: &Bench) -> (u32, u32) {
    let path = bench.controller.path(0);
    (path.cwnd, path.word[0])
}

/// Packets 11 to 28 arrive one by one: the window is full of what has left since, packets 30 to 38.
fn all_but_the_last(bench: &mut Bench) {
    for ack in 12..=29 {
        bench.ack(ack, 0, 0);
    }
    assert_eq!((bench.next / u64::from(MSS), bench.sender.in_flight()), (39, 10));
}

/// By RACK the first packet that left since tells of it, before it counts as delivered; by FACK the third.
#[test]
fn the_last_packet_of_what_was_out_is_lost() {
    for loss_detection in [LossDetection::Rack, LossDetection::Fack] {
        let mut bench = followed(&TcpConfig { loss_detection, ..TcpConfig::default() });
        all_but_the_last(&mut bench);
        // Packets 30, 31 and 32 tell of packet 29.
        bench.now += RTT;
        for to in 31..=33 {
            bench.ack(29, 30, to);
        }
        assert_eq!((bench.sender.phase, published(&bench)), (Phase::Recovery, (10, 0)));
        bench.now += RTT;
        let all = bench.next / u64::from(MSS);
        bench.ack(all, 0, 0);
        assert_eq!(bench.sender.phase, Phase::Open);
        // The next window's first packet is lost as well: that had left since.
        bench.now += RTT;
        for to in all + 2..=all + 4 {
            bench.ack(all, all + 1, to);
        }
        let (cwnd, own) = published(&bench);
        assert!(cwnd < 10 && own != 0, "{loss_detection:?}: {cwnd}");
    }
}

#[test]
fn a_packet_that_had_left_since_is_lost_with_the_last_of_what_was_out() {
    let mut bench = followed(&TcpConfig::default());
    all_but_the_last(&mut bench);
    // Packets 29 and 30, found by one acknowledgement.
    bench.now += RTT;
    bench.ack(29, 31, 34);
    let (cwnd, own) = published(&bench);
    assert!(cwnd < 10 && own != 0, "{cwnd}");
}

/// RFC 8985, section 7: the application has no more, and the last packet is repaired by the probe.
#[test]
fn the_last_packet_of_what_was_out_is_repaired_by_a_probe() {
    let mut bench = followed(&TcpConfig::default());
    let bytes = |packets: u64| packets * u64::from(MSS);
    let ack = |bench: &mut Bench, ack| {
        bench.now += MS;
        let feedback = Ack { ack: bytes(ack), echo: bench.now - RTT, ..Ack::default() };
        bench.act(|sender, wire, controller| sender.on_ack(&feedback, false, wire, controller));
        bench.sender.note_window_use(bench.now);
    };
    (12..=29).for_each(|number| ack(&mut bench, number));
    bench.now = bench.sender.deadline(bench.now);
    assert!(bench.sender.probe_due(bench.now));
    bench.act(|sender, wire, controller| sender.send_probe(None, wire, controller));
    bench.now += RTT;
    ack(&mut bench, 30);
    // One more shows that the probe was needed.
    bench.act(|sender, wire, controller| {
        sender.send_new(bytes(30), MSS, Behind::ENDLESS, wire, controller)
    });
    bench.now += RTT;
    ack(&mut bench, 31);
    assert_eq!(published(&bench), (10, 0));
}

#[test]
fn what_a_mark_is_of_is_the_newest_packet_that_is_acknowledged_with_it() {
    let tcp = TcpConfig { ecn: true, ..TcpConfig::default() };
    // The last of what was out, and the same with the first that had left since.
    for (ack, followed_too) in [(30, true), (31, false)] {
        let mut bench = followed(&tcp);
        all_but_the_last(&mut bench);
        bench.now += RTT;
        bench.marked(ack, 0, 0, true);
        assert_eq!(bench.sender.phase, Phase::Cwr);
        assert_eq!(published(&bench).1 == 0, followed_too, "{ack}");
    }
}
