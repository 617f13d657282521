//! Captures: how a delay is taken, at the sender and at the receiver, and what is no delay.

mod wire;

use std::io::Write;

use narrows_detect::{
    Answer, Detection, Error, Input, Limits, Observation, Signal, Source, Verdict, detectors,
};
use narrows_laws::Params;
use narrows_laws::detect::Why;
use wire::{MSS, Record, Tcp, file, observations, open, pcap, records};

const MS: i64 = 1_000_000;
/// Both ways without queues.
const FORTH: i64 = 20 * MS;
const BACK: i64 = 30 * MS;
/// A packet each.
const EVERY: i64 = 5 * MS;
const PACKETS: u32 = 2000;

/// Queueing delay of the way there, nanoseconds: it rises to 40 ms and falls, and nothing is overtaken.
fn queue(packet: u32) -> i64 {
    (200 - i64::from(packet % 400)).abs() * MS / 5
}

/// And of the way back.
fn queue_back(packet: u32) -> i64 {
    i64::from(packet % 7) * MS / 2
}

/// Stamps of the clocks of sender and receiver, which know nothing of each other.
fn sender_clock(time: i64, tick: i64) -> u32 {
    0xffff_f000_u32.wrapping_add((time / tick) as u32)
}

fn receiver_clock(time: i64, tick: i64) -> u32 {
    77_u32.wrapping_add((time / tick) as u32)
}

/// Where a capture is made.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Sender,
    Receiver,
}

/// A flow, each packet of it acknowledged; the way back has a queue of another course.
fn flow(at: At, client: u8, tick: Option<i64>) -> Vec<Tcp> {
    let mut packets = Vec::new();
    let mut echo = 0;
    for packet in 0..PACKETS {
        let sent = 1_000 * MS + i64::from(packet) * EVERY;
        let arrived = sent + FORTH + queue(packet);
        let back = arrived + BACK + queue_back(packet);
        let (data, ack) = if at == At::Sender { (sent, back) } else { (arrived, arrived) };
        let stamp = |tick| sender_clock(sent, tick);
        let answer = |tick| receiver_clock(arrived, tick);
        let seq = 1 + packet * MSS;
        packets.push(Tcp::data(data, client, seq, tick.map(|tick| (stamp(tick), echo))));
        let stamps = tick.map(|tick| (answer(tick), stamp(tick)));
        packets.push(Tcp::ack(ack, client, seq + MSS, stamps));
        // The sender has an acknowledgement of what it sent ten packets ago.
        if let (Some(tick), Some(sampled)) = (tick, packet.checked_sub(20)) {
            let sent = 1_000 * MS + i64::from(sampled) * EVERY;
            echo = receiver_clock(sent + FORTH + queue(sampled), tick);
        }
    }
    packets
}

/// The delays of the flow, each against the first, ms.
fn delays(all: &[Observation]) -> Vec<f64> {
    let measured: Vec<f64> =
        all.iter().filter_map(|one| one.delay_us).map(|us| f64::from(us) / 1e3).collect();
    measured.iter().map(|delay| delay - measured[0]).collect()
}

fn largest_error(all: &[Observation], right: impl Fn(u32) -> i64) -> f64 {
    let measured = delays(all);
    assert_eq!(measured.len(), PACKETS as usize);
    let right = (0..PACKETS).map(|packet| (right(packet) - right(0)) as f64 / 1e6);
    measured.iter().zip(right).map(|(measured, right)| (measured - right).abs()).fold(0.0, f64::max)
}

#[test]
fn near_the_receiver_delay_is_arrival_less_the_stamp() {
    for (tick, error) in [(1_000, 0.002), (MS, 1.001), (4 * MS, 4.001)] {
        let source = open(pcap(&flow(At::Receiver, 1, Some(tick))));
        assert_eq!(source.recording().signal, Signal::OwdReceiver);
        assert_eq!(source.recording().flows, ["10.0.0.1:1001 > 10.0.1.1:443"]);
        let measured = largest_error(&observations(&source), queue);
        assert!(measured < error, "tick {tick} ns: {measured} ms");
    }
}

#[test]
fn near_the_sender_the_way_back_is_not_in_it() {
    // Two delays are each known to a tick.
    for (tick, error) in [(1_000, 0.003), (MS, 2.001)] {
        let source = open(pcap(&flow(At::Sender, 1, Some(tick))));
        assert_eq!(source.recording().signal, Signal::OwdSender);
        let measured = largest_error(&observations(&source), queue);
        assert!(measured < error, "tick {tick} ns: {measured} ms");
    }
}

#[test]
fn without_a_fine_clock_it_is_the_round_trip_time() {
    for tick in [None, Some(10 * MS)] {
        let source = open(pcap(&flow(At::Sender, 1, tick)));
        assert_eq!(source.recording().signal, Signal::Rtt, "{tick:?}");
        let there_and_back = |packet| queue(packet) + queue_back(packet);
        let measured = largest_error(&observations(&source), there_and_back);
        assert!(measured < 0.002, "{measured} ms");
    }
}

/// What is said of the first two flows.
fn verdict(source: &Source) -> Verdict {
    let xcorr = detectors(["xcorr"]).unwrap()[0];
    let detection = Detection::new(source, xcorr, &Params::default()).unwrap();
    detection.run::<Error>(&mut [], |_| Ok(())).unwrap().verdicts.remove(0)
}

/// Nothing but when in a tick each was sent changes what the stamps of such flows show.
#[test]
fn flows_that_send_in_step_with_the_ticks_show_no_queue() {
    for (tick, every) in [(MS, 100_030_000), (MS, 20_010_000), (10 * MS, 50_130_000)] {
        let messages = |client: u8| {
            let each = move |packet: i64| {
                let sent = 1_000 * MS + packet * every + i64::from(client) * MS / 10;
                let seq = 1 + packet as u32 * 300;
                let time = sent + MS / 5 + packet * 7_919 % 20 * 1_000;
                Tcp {
                    len: 300,
                    ..Tcp::data(time, client, seq, Some((sender_clock(sent, tick), 1)))
                }
            };
            (0..60_000 * MS / every).map(each)
        };
        let source = open(pcap(&messages(1).chain(messages(2)).collect::<Vec<_>>()));
        assert_eq!(source.recording().signal, Signal::OwdReceiver);
        let found = verdict(&source);
        assert_eq!((found.answer, found.why), (Answer::Unsure, Some(Why::Flat)), "{tick} {every}");
    }
}

#[test]
fn near_the_receiver_what_comes_late_is_lost_if_it_was_stamped_again() {
    let mut packets = flow(At::Receiver, 1, Some(MS));
    // Packet 300 is overtaken by the next; packet 600 comes again 120 ms later, its first is lost.
    let place = |packets: &[Tcp], number: u32| {
        let seq = 1 + number * MSS;
        packets.iter().position(|packet| packet.forward && packet.seq == seq).unwrap()
    };
    let overtaken = place(&packets, 300);
    packets[overtaken].time += EVERY + MS;
    let lost = place(&packets, 600);
    packets[lost].time += 120 * MS;
    let (stamp, echo) = packets[lost].stamps.unwrap();
    packets[lost].stamps = Some((stamp.wrapping_add(120), echo));
    let all = observations(&open(pcap(&packets)));
    let losses: Vec<_> = all.iter().filter(|one| one.lost > 0).collect();
    assert_eq!(losses.len(), 1, "{losses:?}");
    assert_eq!((losses[0].lost, losses[0].delay_us), (1, None));
    // It is the one that came again: 600 packets and 120 ms after the first.
    let first = all[0].now_us as i64;
    let late = (600 * EVERY + queue(600) - queue(0) + 120 * MS) / 1000;
    assert_eq!(losses[0].now_us as i64 - first, late);
    let delivered: u32 = all.iter().map(|one| one.delivered).sum();
    assert_eq!(delivered, PACKETS - 1);
    assert_eq!(delays(&all).len(), PACKETS as usize - 1);
}

/// Two packets in one tick of the clock that stamps, and packets without stamps.
#[test]
fn near_the_receiver_what_was_overtaken_is_not_lost() {
    let late = |tick: i64, stamped: bool, by: i64| {
        let mut packets = flow(At::Receiver, 1, Some(tick));
        let place = packets.iter().position(|packet| packet.forward && packet.seq == 1 + 300 * MSS);
        let packet = &mut packets[place.unwrap()];
        packet.time += EVERY + by;
        packet.stamps = packet.stamps.filter(|_| stamped);
        let all = observations(&open(pcap(&packets)));
        (all.iter().map(|one| one.lost).sum::<u32>(), delays(&all).len() as u32)
    };
    assert_eq!(late(10 * MS, true, MS), (0, PACKETS));
    assert_eq!(late(MS, false, 2 * MS), (0, PACKETS - 1));
    assert_eq!(late(MS, false, 4 * MS), (1, PACKETS - 1));
}

#[test]
fn near_the_sender_what_was_sent_again_shows_no_delay() {
    // The newest too: nothing is behind it.
    for number in [500, PACKETS - 1] {
        let mut packets = flow(At::Sender, 1, Some(MS));
        let first = packets.iter().find(|packet| packet.forward && packet.seq == 1 + number * MSS);
        let first = first.unwrap().clone();
        // Sent again before its acknowledgement comes, as that of the first: nobody knows of which.
        let time = first.time + if number == 500 { 30 * MS } else { 4 * MS };
        packets.push(Tcp { time, ..first });
        let all = observations(&open(pcap(&packets)));
        assert_eq!(all.iter().map(|one| one.lost).sum::<u32>(), 1, "{number}");
        assert_eq!(delays(&all).len(), PACKETS as usize - 1, "{number}");
        assert_eq!(all.iter().map(|one| one.delivered).sum::<u32>(), PACKETS - 1);
    }
}

#[test]
fn near_the_sender_all_segments_that_were_sent_again_together_show_no_delay() {
    let mut packets = flow(At::Sender, 1, Some(MS));
    let first = packets.iter().find(|packet| packet.forward && packet.seq == 1 + 500 * MSS);
    let first = first.unwrap().clone();
    packets.push(Tcp { time: first.time + 30 * MS, len: 2 * MSS, ..first });
    let all = observations(&open(pcap(&packets)));
    assert_eq!(all.iter().map(|one| one.lost).sum::<u32>(), 2);
    assert_eq!(delays(&all).len(), PACKETS as usize - 2);
}

#[test]
fn a_block_that_shows_of_a_duplicate_hides_no_delay() {
    let mut packets = flow(At::Sender, 1, Some(MS));
    for packet in packets.iter_mut().filter(|packet| !packet.forward && packet.ack > 500 * MSS) {
        packet.sack = Some((packet.ack - 2 * MSS, packet.ack - MSS));
    }
    assert_eq!(delays(&observations(&open(pcap(&packets)))).len(), PACKETS as usize);
}

#[test]
fn a_new_connection_of_the_same_ends_begins_anew() {
    let mut packets = flow(At::Receiver, 1, Some(MS));
    let start = 500_000 * MS;
    let mss = Some(MSS as u16);
    let syn = Tcp { mss, len: 0, ..Tcp::data(start, 1, 0, Some((7_000, 0))) };
    let again: Vec<Tcp> = packets
        .iter()
        .map(|packet| Tcp {
            time: packet.time + start,
            stamps: packet.stamps.map(|(stamp, echo)| {
                if packet.forward { (stamp.wrapping_add(11_096), echo) } else { (stamp, echo) }
            }),
            ..packet.clone()
        })
        .collect();
    packets.push(syn);
    packets.extend(again);
    let all = observations(&open(pcap(&packets)));
    assert_eq!(delays(&all).len(), 2 * PACKETS as usize);
    assert_eq!(all.iter().map(|one| one.lost).sum::<u32>(), 0);
}

#[test]
fn time_never_goes_back() {
    let packets = flow(At::Receiver, 1, Some(MS));
    // The second quarter stands behind the third in the file.
    let quarter = |number: usize| pcap(&packets[number * 1000..][..1000]);
    let after = |number: usize| quarter(number)[24..].to_vec();
    let all = observations(&open([quarter(0), after(2), after(1), after(3)].concat()));
    assert!(all.is_sorted_by_key(|one| one.now_us) && all.len() > 500, "{}", all.len());
}

#[test]
fn what_fills_a_hole_shows_no_delay_of_what_waited_behind_it() {
    for selective in [true, false] {
        let mut packets = flow(At::Sender, 1, Some(MS));
        // Packet 700 is lost and comes 300 ms later; 20 packets behind it arrive in the meantime.
        let (first, last) = (1 + 700 * MSS, 1 + 720 * MSS);
        let mut late = 0;
        for packet in packets.iter_mut().filter(|packet| !packet.forward) {
            let arrived = packet.ack;
            if arrived > first && arrived <= last {
                packet.ack = first;
                // Packet 700 itself is not there: its acknowledgement is that of a later one.
                let selected = (arrived > first + MSS).then_some((first + MSS, arrived));
                packet.sack = selected.filter(|_| selective);
                late = late.max(packet.time);
            }
        }
        let stamp = receiver_clock(late + 300 * MS - BACK, MS);
        packets.push(Tcp::data(late + 100 * MS, 1, first, Some((sender_clock(late, MS), 1))));
        packets.retain(|packet| packet.forward || packet.ack <= last);
        packets.retain(|packet| !packet.forward || packet.seq < last);
        packets.push(Tcp::ack(late + 300 * MS, 1, last, Some((stamp, 5))));
        let measured = delays(&observations(&open(pcap(&packets))));
        assert!(
            measured.iter().all(|delay| (-41.0..=1.0).contains(delay)),
            "{selective}: {measured:?}"
        );
        let of_selected = if selective { 19 } else { 0 };
        assert_eq!(measured.len(), 700 + of_selected, "{selective}");
    }
}

#[test]
fn what_may_have_waited_in_a_delayed_acknowledgement_is_left_out() {
    let mut packets = flow(At::Sender, 1, None);
    // Acknowledgements tell of two packets each; but after each hundred there is a pause, and the
    // last one before it waits for a second that does not come.
    packets.retain(|packet| {
        packet.forward || (packet.ack - 1) / MSS % 2 == 0 || (packet.ack - 1) / MSS % 100 == 1
    });
    let mut waited = 0;
    for packet in &mut packets {
        let number = if packet.forward { packet.seq / MSS } else { (packet.ack - 1) / MSS - 1 };
        packet.time += i64::from(number.div_ceil(100)) * 300 * MS;
        if !packet.forward && number % 100 == 0 && number > 0 {
            packet.time += 150 * MS;
            waited += 1;
        }
    }
    let source = open(pcap(&packets));
    assert_eq!((source.recording().signal, waited), (Signal::Rtt, 19));
    let measured = delays(&observations(&source));
    // The queue is longest at first.
    assert!(measured.iter().all(|delay| *delay < 4.0), "{measured:?}");
    // Nor is the first after each of the 20 pauses taken: it tells of one packet after a long time, too.
    assert_eq!(measured.len() as u32, PACKETS / 2 + 20 - waited - 20);
}

#[test]
fn only_what_shows_of_one_segment_may_have_waited() {
    // An acknowledgement of every ten packets, 45 ms or more after the one before.
    let taken = |mss: u32, selective: bool| {
        let mut packets = flow(At::Sender, 1, None);
        packets.retain(|packet| packet.forward || (packet.ack - 1) / MSS % 10 == 0);
        for packet in packets.iter_mut().filter(|packet| !packet.forward && selective) {
            packet.sack = Some((packet.ack + MSS, packet.ack + 2 * MSS));
        }
        let mss = Some(mss as u16);
        let syn = Tcp { mss, len: 0, ..Tcp::data(500 * MS, 1, 0, None) };
        let answer = Tcp { mss, ..Tcp::ack(600 * MS, 1, 1, None) };
        delays(&observations(&open(pcap(&[vec![syn, answer], packets].concat())))).len() as u32
    };
    assert_eq!(taken(MSS, false), PACKETS / 10);
    // Before the first there is none.
    assert_eq!(taken(10 * MSS, false), 1);
    // What tells of a hole is never delayed; the last tells of what was not sent.
    assert_eq!(taken(10 * MSS, true), PACKETS / 10 - 1);
}

#[test]
fn data_of_the_receiver_that_repeats_an_acknowledgement_is_no_hole() {
    let mut packets = flow(At::Sender, 1, Some(MS));
    let acks = packets.iter().filter(|packet| !packet.forward);
    let answers = acks.map(|ack| Tcp { time: ack.time + MS, len: 10, ..ack.clone() });
    let answers: Vec<Tcp> = answers.collect();
    packets.extend(answers);
    assert_eq!(delays(&observations(&open(pcap(&packets)))).len(), PACKETS as usize);
}

#[test]
fn what_the_card_put_together_counts_as_its_segments() {
    let mut packets = flow(At::Receiver, 1, Some(MS));
    for packet in packets.iter_mut().filter(|packet| packet.forward) {
        (packet.seq, packet.len) = ((packet.seq - 1) * 10 + 1, 10 * MSS);
    }
    let each = |packets: &[Tcp]| {
        let all = observations(&open(pcap(packets)));
        assert_eq!(all.len(), PACKETS as usize);
        all[100].delivered
    };
    assert_eq!(each(&packets), 7, "of 1448 bytes");
    // The smaller of what both announced holds, also for a connection that comes after another.
    for (one, other, count) in [(MSS as u16, 8960, 10), (8960, MSS as u16, 10), (8960, 8960, 2)] {
        let syn = Tcp { mss: Some(one), len: 0, ..Tcp::data(500 * MS, 1, 0, None) };
        let answer = Tcp { mss: Some(other), ..Tcp::ack(600 * MS, 1, 1, None) };
        let all = [vec![syn, answer], packets.clone()].concat();
        assert_eq!(each(&all), count, "{one} {other}");
    }
}

#[test]
fn stamps_that_jump_are_no_end_of_it() {
    let mut packets = flow(At::Receiver, 1, Some(10 * MS));
    // Up by the largest steps for half of the time, and down again.
    let data = packets.iter_mut().filter(|packet| packet.forward);
    for (number, (stamp, _)) in (0..).zip(data.filter_map(|packet| packet.stamps.as_mut())) {
        let steps = u32::min(number, PACKETS - 1 - number);
        *stamp = stamp.wrapping_add(steps.wrapping_mul(i32::MAX as u32 / 2));
    }
    let measured = delays(&observations(&open(pcap(&packets))));
    assert_eq!(measured.len(), PACKETS as usize);
    assert!(measured[PACKETS as usize - 1].abs() < 60.0);
}

#[test]
fn the_largest_are_reported_and_the_others_counted() {
    let mut packets = Vec::new();
    for client in 1..=20 {
        let flow = flow(At::Receiver, client, Some(MS));
        packets.extend(flow.into_iter().take(400 + 20 * usize::from(client)));
    }
    let source = Source::open(
        Input::bytes("test", pcap(&packets)),
        None,
        Limits { flows: 2, packets: 1, at: None },
    )
    .unwrap();
    assert_eq!(
        source.recording().flows,
        ["10.0.0.20:1020 > 10.0.1.1:443", "10.0.0.19:1019 > 10.0.1.1:443"]
    );
    assert_eq!(source.recording().notes.len(), 1, "{:?}", source.recording().notes);
    let note = &source.recording().notes[0];
    assert!(
        note.contains("the 2 largest flows are analysed; 18 others are left out, with 8"),
        "{note}"
    );
}

#[test]
fn it_is_reported_how_much_of_the_data_gives_no_delay() {
    let mut packets = flow(At::Receiver, 1, None);
    packets.extend(flow(At::Receiver, 2, Some(MS)).into_iter().take(500));
    let source = open(pcap(&packets));
    assert_eq!(source.recording().flows, ["10.0.0.2:1002 > 10.0.1.1:443"]);
    let note = &source.recording().notes[0];
    assert!(note.starts_with("skipped, without one-way delay, "), "{note}");
    assert!(note.ends_with(": 1 flow, with 88.9 % of the data"), "{note}");
}

/// Near the sender round-trip times are there, too, where one of two has no timestamps, whichever is larger.
#[test]
fn what_two_flows_have_is_compared_and_what_one_lacks_is_said() {
    for short in [1, 2] {
        let two = |at| {
            let of = |client| {
                let kept = if client == short { 2400 } else { 4000 };
                let stamps = (client == 1).then_some(MS);
                flow(at, client, stamps).into_iter().take(kept).collect::<Vec<_>>()
            };
            open(pcap(&[of(1), of(2)].concat()))
        };
        let source = two(At::Sender);
        assert_eq!(source.recording().signal, Signal::Rtt);
        assert_eq!((source.recording().flows.len(), &source.recording().notes[..]), (2, &[][..]));
        let source = two(At::Receiver);
        assert_eq!(source.recording().flows, ["10.0.0.1:1001 > 10.0.1.1:443"]);
        let [note] = &source.recording().notes[..] else {
            panic!("{:?}", source.recording().notes)
        };
        assert!(note.starts_with("skipped, without one-way delay, by timestamps, "), "{note}");
        assert!(note.contains(": 1 flow, with "), "{note}");
    }
}

#[test]
fn what_a_capture_says_of_check_sequences_is_no_part_of_its_link_type() {
    let mut bytes = pcap(&flow(At::Receiver, 1, Some(MS)));
    // Four bytes of them, which are there.
    bytes[23] = 0x44;
    let source = open(bytes);
    assert_eq!(source.recording().notes, [""; 0]);
    assert_eq!(observations(&source).len(), PACKETS as usize);
}

#[test]
fn near_the_receiver_there_is_nothing_to_measure_without_timestamps() {
    let bytes = pcap(&flow(At::Receiver, 1, None));
    let error = Source::open(Input::bytes("test", bytes), None, Limits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "test: no flow gives a delay: expected packets of at least a second with TCP timestamps, or, \
         captured near the sender, with their acknowledgements; found without timestamps: 1 flow, with \
         100.0 % of the data"
    );
}

/// 20 small flows with acknowledgements hide one of 300 packets that nobody acknowledges.
#[test]
fn a_signal_of_flows_that_are_hidden_is_none() {
    let small = |client| flow(At::Sender, client, None).into_iter().take(120);
    let alone = flow(At::Sender, 21, None).into_iter().filter(|packet| packet.forward).take(300);
    let bytes = pcap(&(1..=20).flat_map(small).chain(alone).collect::<Vec<_>>());
    let of = |packets| {
        let limits = Limits { packets, ..Limits::default() };
        Source::open(Input::bytes("test", bytes.clone()), None, limits)
    };
    let error = of(100).map(drop).unwrap_err().to_string();
    let hidden = "test: hidden: 20 flows of fewer than 100 packets, with 80.0 % of the data \
                  (--min-packets 1 shows all); no flow gives a delay: expected ";
    assert!(error.starts_with(hidden), "{error}");
    let found = "; found without timestamps: 1 flow, with 20.0 % of the data";
    assert!(error.ends_with(found), "{error}");
    // Of all flows there is one.
    let source = of(1).unwrap();
    assert_eq!((source.recording().signal, source.recording().flows.len()), (Signal::Rtt, 16));
}

#[test]
fn a_packet_that_is_no_segment_is_counted() {
    let mut bytes = pcap(&flow(At::Receiver, 1, Some(MS)));
    let mut record = |data: &[u8], wire: u32| {
        for word in [20_u32, 0, data.len() as u32, wire] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(data);
    };
    let mut udp = Vec::new();
    let builder = etherparse::PacketBuilder::ipv4([1; 4], [2; 4], 64).udp(5, 6);
    builder.write(&mut udp, &[0; 8]).unwrap();
    record(&udp, 36);
    let (tcp, wire) = Tcp::data(0, 1, 1, Some((1, 2))).packet();
    record(&tcp[..30], wire);
    record(&tcp[..45], wire);
    let mut fragment = tcp.clone();
    fragment[6] = 0x20;
    record(&fragment, wire);
    record(&[0x00; 40], 40);
    let source = open(bytes);
    assert_eq!(
        source.recording().notes,
        [
            "skipped of 4005 packets: 1 not IP (1 of version 0), 1 not TCP (1 of IP protocol 17 UDP), 1 fragmented, 1 cut within their headers",
            "1 of 4005 packets were captured without all TCP options"
        ]
    );
}

#[test]
fn a_damaged_capture_gives_what_could_be_read_and_one_note() {
    let whole = pcap(&flow(At::Receiver, 1, Some(MS)));
    let count = |bytes: Vec<u8>| {
        let source = open(bytes);
        (observations(&source).len(), source.recording().notes.to_vec())
    };
    assert_eq!(count(whole.clone()), (PACKETS as usize, vec![]));
    let (measured, notes) = count(whole[..whole.len() * 3 / 4 + 5].to_vec());
    assert!(measured.abs_diff(PACKETS as usize * 3 / 4) < 3, "{measured}");
    assert_eq!(notes.len(), 1);
    assert!(notes[0].starts_with("test: it ends within the packet at byte "), "{notes:?}");
    // A length that cannot be.
    let mut broken = whole.clone();
    let record = whole.len() / 2;
    let start =
        (24..).step_by(1).find(|at| *at >= record && whole[*at..].starts_with(&[52, 0, 0, 0]));
    broken[start.unwrap() + 3] = 0xff;
    let (measured, notes) = count(broken);
    assert!(measured > PACKETS as usize / 3 && measured < PACKETS as usize * 2 / 3, "{measured}");
    assert_eq!(notes.len(), 1, "{notes:?}");
    // A time that no other is near costs its packet, one of the first two both; two are a gap.
    let stamp = |packet: usize| {
        let length = |at: usize| u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap());
        (0..packet).fold(24, |at, _| at + 16 + length(at) as usize)
    };
    let flipped = |packets: &[usize]| {
        let mut bytes = whole.clone();
        packets.iter().for_each(|&packet| bytes[stamp(packet) + 3] ^= 0x40);
        open(bytes).recording().notes.to_vec()
    };
    for (packet, skipped) in [(0, 2), (1, 2), (2000, 1)] {
        let damage = "with a time that is days from that of all around (damage)";
        assert_eq!(flipped(&[packet]), [format!("skipped of 4000 packets: {skipped} {damage}")]);
    }
    let notes = flipped(&[2000, 2001]);
    let far =
        "test: the first packet and the last are 12427 days apart; their times may be damaged";
    assert!(notes.iter().any(|note| note == far), "{notes:?}");
    // Another file behind it (cat).
    let joined = format!(
        "test: another capture, behind the first (mergecap joins them), at byte {}, read up to there",
        whole.len()
    );
    let twice = count([whole.clone(), whole.clone()].concat());
    assert_eq!(twice, (PACKETS as usize, vec![joined]));
    // Packed, and cut.
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(&whole).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(count(packed.clone()), (PACKETS as usize, vec![]));
    let (measured, notes) = count(packed[..packed.len() / 2].to_vec());
    assert!(measured > PACKETS as usize / 4, "{measured}");
    assert_eq!(notes.len(), 1, "{notes:?}");
    // Nothing is left of it: an error, in one line.
    let nothing = Source::open(Input::bytes("test", whole[..30].to_vec()), None, Limits::default())
        .unwrap_err();
    assert_eq!(nothing.to_string().lines().count(), 1, "{nothing}");
}

#[test]
fn memory_does_not_grow_with_the_number_of_flows() {
    // A scan: more flows than are counted, each of one packet, around one that matters.
    let mut packets = flow(At::Receiver, 1, Some(MS));
    let mut scan = Vec::new();
    for number in 0..10_000_u32 {
        let time = 1_000 * MS + i64::from(number) * MS;
        let mut packet = Tcp::data(time, 2, 1, None);
        packet.len = 10;
        scan.push((packet, number));
    }
    packets.truncate(3000);
    let mut bytes = pcap(&packets);
    for (packet, number) in scan {
        let (mut data, wire) = packet.packet();
        data[12..16].copy_from_slice(&(0x0b00_0000 + number).to_be_bytes());
        for word in [20, 0, data.len() as u32, wire] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(data);
    }
    let source =
        Source::open(Input::bytes("test", bytes), None, Limits { flows: 1, packets: 1, at: None })
            .unwrap();
    assert_eq!(source.recording().flows, ["10.0.0.1:1001 > 10.0.1.1:443"]);
    // Of those that were forgotten nobody knows what they lack.
    let [lacking, forgotten] = &source.recording().notes[..] else {
        panic!("{:?}", source.recording().notes)
    };
    assert!(lacking.contains(": 3853 flows, with 2.5 % of the data"), "{lacking}");
    assert!(forgotten.contains("; at most 6147 others are left out"), "{forgotten}");
}

#[test]
fn files_of_other_kinds_are_named_with_what_reads_them() {
    let of = |bytes: &[u8]| {
        let opened = Source::open(Input::bytes("test", bytes), None, Limits::default());
        opened.map(drop).unwrap_err().to_string()
    };
    let expected = "test: expected a capture, a qlog or a table, found";
    assert_eq!(of(b"\xfd7zXZ\0\0"), format!("{expected} xz (xz -dc FILE | narrows detect -)"));
    assert_eq!(
        of(b"snoop\0\0\0\0\0\0\x02"),
        format!("{expected} a capture of snoop (editcap -F pcapng FILE NEW)")
    );
}

/// Each packet with what else the capture has of it.
fn with(packets: &[Tcp], other: impl Fn(&Record) -> Vec<Record>) -> Source {
    let mut all: Vec<Record> = records(packets);
    all.extend(all.iter().flat_map(other).collect::<Vec<_>>());
    all.sort_by_key(|(time, ..)| *time);
    open(file(101, &all))
}

/// Two of each, with identification as Linux counts it and without; and a flow that sends again.
#[test]
fn a_packet_that_is_there_twice_counts_once() {
    for at in [At::Sender, At::Receiver] {
        let mut packets = flow(at, 1, Some(MS));
        let first = packets.iter().find(|packet| packet.forward && packet.seq == 1 + 500 * MSS);
        let first = first.unwrap().clone();
        let (stamp, echo) = first.stamps.unwrap();
        let stamps = Some((stamp.wrapping_add(50), echo));
        packets.push(Tcp { time: first.time + 30 * MS, stamps, ..first });
        let once = open(pcap(&packets));
        let twice = with(&packets, |(time, data, wire)| vec![(time + 20_000, data.clone(), *wire)]);
        assert_eq!(observations(&twice), observations(&once));
        assert_eq!(observations(&twice).iter().map(|one| one.lost).sum::<u32>(), 1);
        assert_eq!(twice.recording().traffic[0], once.recording().traffic[0]);
        let note = "left out: 4001 of 8002 packets are copies of others (a capture of several \
                    interfaces or ports has each packet more than once)";
        assert_eq!(twice.recording().notes, [note]);
        assert_eq!(once.recording().notes, [""; 0]);
    }
}

/// On a trunk and at a port of the same switch: other addresses of Ethernet, and a tag.
#[test]
fn a_packet_that_is_there_with_another_address_and_tag_counts_once() {
    let plain = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    let tagged = [2, 0, 0, 0, 1, 3, 2, 0, 0, 0, 1, 4, 0x81, 0, 0, 5, 8, 0];
    let behind = |(time, data, wire): &Record, header: &[u8], late: i64| -> Record {
        (time + late, [header, &data[..]].concat(), wire + header.len() as u32)
    };
    for at in [At::Sender, At::Receiver] {
        let all = records(&flow(at, 1, Some(MS)));
        let first: Vec<Record> = all.iter().map(|of| behind(of, &plain, 0)).collect();
        let once = open(file(1, &first));
        let mut both = first;
        both.extend(all.iter().map(|of| behind(of, &tagged, 20_000)));
        both.sort_by_key(|(time, ..)| *time);
        let twice = open(file(1, &both));
        assert_eq!(observations(&twice).len(), PACKETS as usize);
        assert_eq!(observations(&twice), observations(&once));
        assert_eq!(twice.recording().traffic, once.recording().traffic);
        let notes = &twice.recording().notes;
        let copies = "left out: 4000 of 8000 packets are copies of others ";
        assert!(notes.len() == 1 && notes[0].starts_with(copies), "{notes:?}");
    }
}

/// A router's card puts three segments together, which it cuts again to send them; and it has a queue of its own.
#[test]
fn what_a_router_puts_together_and_cuts_counts_once() {
    for (at, late) in [(At::Sender, 20_000), (At::Receiver, 20_000), (At::Sender, 400 * MS)] {
        let mut packets = flow(at, 1, Some(MS));
        packets.iter_mut().for_each(|packet| {
            if packet.forward {
                (packet.seq, packet.len) = (1 + (packet.seq - 1) * 3, 3 * MSS);
            } else {
                packet.ack = 1 + (packet.ack - 1) * 3;
            }
        });
        let once = open(pcap(&packets));
        let mut all = Vec::new();
        for packet in &packets {
            let parts = if packet.forward { 3 } else { 1 };
            all.push((packet.time, packet.packet(), 0, packet.forward));
            for part in 0..parts {
                let (seq, len) = (packet.seq + part * MSS, packet.len / parts);
                let cut = Tcp { seq, len, ..packet.clone() };
                all.push((packet.time + late + i64::from(part), cut.packet(), 1, packet.forward));
            }
        }
        // Identifications as the sender counts them, of a segment that is put together the first's.
        let mut number = 0_u16;
        let numbered = all.into_iter().map(|(time, (mut data, wire), hops, forward)| {
            number += u16::from(hops == 0);
            let sent = if forward { number } else { number + 1 };
            data[4..6].copy_from_slice(&sent.to_be_bytes());
            data[8] -= hops;
            (time, data, wire)
        });
        let mut numbered: Vec<Record> = numbered.collect();
        numbered.sort_by_key(|(time, ..)| *time);
        let both = open(file(101, &numbered));
        assert!(observations(&both) == observations(&once), "late by {late} ns");
        assert_eq!(both.recording().traffic, once.recording().traffic);
        let copies = "left out: 8000 of 12000 packets are copies of others ";
        let notes = &both.recording().notes;
        assert!(notes.iter().any(|note| note.starts_with(copies)), "{notes:?}");
    }
}

/// Nothing but the time tells some of these from copies, and they are few.
#[test]
fn what_was_sent_again_at_once_is_lost() {
    let mut packets = flow(At::Sender, 1, None);
    let again: Vec<Tcp> =
        packets.iter().filter(|packet| packet.forward).step_by(20).cloned().collect();
    packets.extend(again.into_iter().map(|packet| Tcp { time: packet.time + 2 * MS, ..packet }));
    let source = open(pcap(&packets));
    assert_eq!(observations(&source).iter().map(|one| one.lost).sum::<u32>(), PACKETS / 20);
    assert_eq!(source.recording().traffic[0].packets, u64::from(PACKETS + PACKETS / 20));
    assert_eq!(source.recording().notes, [""; 0]);
}

/// A fifth of what a sender sends whose timestamps stand still; identifications tell that from copies.
#[test]
fn what_was_sent_again_with_the_same_timestamp_is_lost() {
    let mut packets = flow(At::Sender, 1, Some(i64::MAX));
    let again: Vec<Tcp> =
        packets.iter().filter(|packet| packet.forward).step_by(5).cloned().collect();
    packets.extend(again.into_iter().map(|packet| Tcp { time: packet.time + 12 * MS, ..packet }));
    let mut all = records(&packets);
    for (number, (_, data, _)) in all.iter_mut().enumerate() {
        data[4..6].copy_from_slice(&(number as u16 + 1).to_be_bytes());
    }
    let limits = Limits { at: Some(narrows_detect::At::Sender), ..Limits::default() };
    let source = Source::open(Input::bytes("test", file(101, &all)), None, limits).unwrap();
    assert_eq!(observations(&source).iter().map(|one| one.lost).sum::<u32>(), PACKETS / 5);
    assert_eq!(source.recording().traffic[0].packets, u64::from(PACKETS + PACKETS / 5));
    let notes = &source.recording().notes;
    assert!(notes.iter().all(|note| !note.starts_with("left out: ")), "{notes:?}");
}

/// Both sides of a router: the client's address is 10.9.9.9 on the other, with a port for each flow.
#[test]
fn a_flow_with_translated_addresses_is_one_flow() {
    let mut packets = Vec::new();
    for client in 1..=3 {
        packets.extend(flow(At::Receiver, client, Some(MS)).into_iter().map(|packet| Tcp {
            // They differ in what they send.
            seq: packet.seq + u32::from(client) * 7,
            ..packet
        }));
    }
    let once = open(pcap(&packets));
    let translated = |(time, data, wire): &Record, hops: u8| {
        let mut data = data.clone();
        data[8] -= hops;
        let (address, port) = if data[12..15] == [10, 0, 0] { (12, 20) } else { (16, 22) };
        data[port + 1] = data[address + 3];
        data[address..address + 4].fill(9);
        (time + 50_000, data, *wire)
    };
    // On a host itself no router lowers the hops that are left; identifications tell packets apart.
    let mut local = records(&packets);
    for (number, (_, data, _)) in local.iter_mut().enumerate() {
        data[4..6].copy_from_slice(&(number as u16 + 1).to_be_bytes());
    }
    let others: Vec<Record> = local.iter().map(|record| translated(record, 0)).collect();
    local.extend(others);
    local.sort_by_key(|(time, ..)| *time);
    let passed = with(&packets, |record| vec![translated(record, 1)]);
    for both in [passed, open(file(101, &local))] {
        assert_eq!(both.recording().flows, once.recording().flows);
        assert_eq!(observations(&both), observations(&once));
        let [note] = &both.recording().notes[..] else { panic!("{:?}", both.recording().notes) };
        assert!(note.starts_with("left out: 9.9.9.9:"), "{note}");
        assert!(
            note.ends_with(" > 10.0.1.1:443 with translated addresses (NAT), and 2 more"),
            "{note}"
        );
    }
}

/// A flow captured in between: data 10 ms after it was sent, acknowledgements `back` after they were.
fn middle(client: u8, back: i64) -> Vec<Tcp> {
    let shift = |packet: Tcp| match packet.forward {
        true => Tcp { time: packet.time + 10 * MS, ..packet },
        false => Tcp { time: packet.time - BACK + back, ..packet },
    };
    let mut packets: Vec<Tcp> = flow(At::Sender, client, Some(MS)).into_iter().map(shift).collect();
    for packet in packets.iter_mut().filter(|packet| !packet.forward) {
        // Less the queue of the way back, which is behind.
        packet.time -= queue_back((packet.ack - 1) / MSS - 1);
    }
    packets
}

fn placed(bytes: Vec<u8>, at: Option<narrows_detect::At>) -> Result<Source, Error> {
    Source::open(Input::bytes("test", bytes), None, Limits { at, ..Limits::default() })
}

/// The receiver of one answers a little sooner than the sender, that of the other a little later.
#[test]
fn in_the_middle_no_flow_is_skipped_for_its_place() {
    let bytes = pcap(&[middle(1, 18 * MS), middle(2, 26 * MS)].concat());
    let source = placed(bytes.clone(), None).unwrap();
    assert_eq!(
        (source.recording().signal, source.recording().flows.len()),
        (Signal::OwdReceiver, 2)
    );
    let [note] = &source.recording().notes[..] else { panic!("{:?}", source.recording().notes) };
    assert!(
        note.starts_with("taken for captured near the receiver, of which there is no clear sign")
    );
    assert!(
        note.contains("receiver answers after 28.0 ms at best, its sender after 37.0 ms"),
        "{note}"
    );
    use narrows_detect::At::{Middle, Receiver, Sender};
    for (at, signal) in [
        (Sender, Signal::OwdSender),
        (Receiver, Signal::OwdReceiver),
        (Middle, Signal::OwdReceiver),
    ] {
        let source = placed(bytes.clone(), Some(at)).unwrap();
        assert_eq!((source.recording().signal, source.recording().flows.len()), (signal, 2));
        assert_eq!(source.recording().notes, [""; 0]);
        assert_eq!(
            source.recording().captured.as_deref(),
            Some(&*format!("{}, as --at says", at.name()))
        );
        let about = format!("one-way delay, by timestamps, captured {}", at.name());
        assert_eq!(source.recording().about(), about);
    }
}

#[test]
fn where_only_data_was_captured_the_place_is_not_known() {
    let mut packets = flow(At::Sender, 1, Some(MS));
    packets.retain(|packet| packet.forward);
    let bytes = pcap(&packets);
    let source = placed(bytes.clone(), None).unwrap();
    let [note] = &source.recording().notes[..] else { panic!("{:?}", source.recording().notes) };
    assert!(
        note.contains("near the receiver, of which there is no sign: nobody answers."),
        "{note}"
    );
    let error = placed(bytes, Some(narrows_detect::At::Sender)).unwrap_err().to_string();
    // Near the receiver its delay changes.
    let mut packets = flow(At::Receiver, 1, Some(MS));
    packets.retain(|packet| packet.forward);
    let source = placed(pcap(&packets), None).unwrap();
    assert_eq!(source.recording().notes, [""; 0]);
    let reason = "near the receiver: the delay of data changes by 40.0 ms, which it does not near the sender";
    assert_eq!(source.recording().captured.as_deref(), Some(reason));
    assert!(error.starts_with("test: no flow gives a delay (--at sender): expected "), "{error}");
    assert!(error.ends_with(" with their acknowledgements"), "all has timestamps: {error}");
}

#[test]
fn flows_without_data_are_counted_where_no_other_is_left() {
    let mut packets = flow(At::Sender, 1, Some(MS));
    packets.retain(|packet| !packet.forward);
    let error = placed(pcap(&packets), None).unwrap_err().to_string();
    let none =
        "test: expected TCP flows with data, found 1 without: no packet of their data is there";
    assert_eq!(error, none);
}

/// Messages of two programs: an answer, or a receiver that waits for more, is no delay.
#[test]
fn messages_show_no_delay() {
    const REASON: &str =
        "messages only, whose acknowledgements wait for an answer or for more: they show no delay";
    let conversation = |client, length: u32, answer: u32| {
        let mut packets = Vec::new();
        for number in 0..PACKETS {
            let sent = 1_000 * MS + i64::from(number) * 10 * MS;
            let mut message = Tcp::data(sent, client, 1 + number * length, None);
            message.len = length;
            packets.push(message);
            let seen = sent + FORTH + queue(number);
            let mut back = Tcp::ack(seen, client, 1 + (number + 1) * length, None);
            (back.seq, back.len) = (1 + number * answer, answer);
            packets.push(back);
        }
        packets
    };
    // Requests of a segment each with an answer, and messages that are acknowledged alone.
    for (length, answer) in [(MSS, 100), (90, 0)] {
        let alone = [conversation(1, length, answer), conversation(2, length, answer)].concat();
        let refused = Source::open(Input::bytes("test", pcap(&alone)), None, Limits::default());
        let message = refused.map(drop).unwrap_err().to_string();
        let reason = format!("2 flows have {REASON}");
        assert!(
            message.contains(&reason) && message.contains("no flow gives a delay"),
            "{message}"
        );
        // Beside a download they are left out, with the reason.
        let source = open(pcap(&[alone, flow(At::Sender, 3, None)].concat()));
        let recording = source.recording();
        assert_eq!(recording.flows, ["10.0.0.3:1003 > 10.0.1.1:443"]);
        assert!(recording.notes.contains(&reason), "{:?}", recording.notes);
    }
    // The same ends again: the connection that shows delays decides, also where its sequence numbers are
    // behind those of the other, and a third has messages again.
    let later = |mut packets: Vec<Tcp>, seconds: i64, back: u32| {
        let syn =
            Tcp { len: 0, asks: true, mss: Some(1000), ..Tcp::data(1_000 * MS - 1, 1, 0, None) };
        packets.insert(0, syn);
        for packet in &mut packets {
            packet.time += seconds * 1_000 * MS;
            let number = if packet.forward { &mut packet.seq } else { &mut packet.ack };
            *number = number.wrapping_sub(back);
        }
        packets
    };
    let messages = conversation(1, 90, 0);
    let parts = [
        messages.clone(),
        later(flow(At::Sender, 1, None)[..600].to_vec(), 100, 1 << 30),
        later(messages, 200, 1 << 31),
    ];
    let source = open(pcap(&parts.concat()));
    assert_eq!(source.recording().flows, ["10.0.0.1:1001 > 10.0.1.1:443"]);
    let measured = observations(&source).iter().filter(|one| one.delay_us.is_some()).count();
    // Of each connection of messages the first acknowledgement is of an unknown number of bytes.
    assert!((290..=302).contains(&measured), "{measured}");
    // A flow that is answered now and then keeps the delays that acknowledgements without data show.
    let mut packets = flow(At::Sender, 1, None);
    let acks = packets.iter_mut().filter(|packet| !packet.forward);
    let mut answers = 0;
    for (number, ack) in acks.enumerate() {
        ack.seq = 1 + answers * 100;
        ack.len = if number % 3 == 0 { 100 } else { 0 };
        answers += u32::from(ack.len > 0);
    }
    let all = observations(&open(pcap(&packets)));
    let measured = all.iter().filter(|one| one.delay_us.is_some()).count();
    assert_eq!(measured, (PACKETS - answers) as usize);
}

#[test]
fn a_limit_that_no_flow_reaches_is_an_error_unless_nobody_gave_it() {
    let of = |bytes: &[u8], packets| {
        let limits = Limits { packets, ..Limits::default() };
        Source::open(Input::bytes("test", bytes), None, limits)
    };
    let capture = pcap(&flow(At::Receiver, 1, Some(MS)));
    let none = of(&capture, 2001).map(drop).unwrap_err().to_string();
    assert_eq!(none, "test: no flow has 2001 packets or more (--min-packets)");
    assert_eq!(of(&capture, 2000).unwrap().recording().notes, [""; 0]);
    // A table of fewer rows than the limit that is there if none is given.
    let table = b"flow,t_s,owd_ms\na,1,2\nb,2,3\na,3,4\n";
    let source = of(table, Limits::default().packets).unwrap();
    let note = "no flow has 100 packets or more (--min-packets): all are analysed";
    assert_eq!(source.recording().notes, [note]);
    assert!(of(table, 3).is_err());
}
