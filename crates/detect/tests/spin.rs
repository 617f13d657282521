//! Captures of QUIC alone: what its spin bit shows, and which show nothing.

mod wire;

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use etherparse::PacketBuilder;
use narrows_detect::{
    Answer, At, Detection, Error, Input, Limits, Observation, Signal, Source, Verdict, detectors,
};
use narrows_laws::Params;
use narrows_laws::detect::Why;
use wire::{Record, file, observations, open};

const MS: i64 = 1_000_000;
/// From the server to the client without a queue, and back.
const FORTH: i64 = 20 * MS;
const BACK: i64 = 30 * MS;
/// A packet each.
const EVERY: i64 = 2 * MS;
const PACKETS: i64 = 20_000;

/// Rises by 15 ms and falls again in each period.
fn wave(time: i64, period_ms: i64) -> i64 {
    let half = period_ms * MS / 2;
    (time % (2 * half) - half).abs() * 15 / (period_ms / 2)
}

fn queue(time: i64) -> i64 {
    wave(time, 1_700) + wave(time, 900) + wave(time, 2_900)
}

fn other_queue(time: i64) -> i64 {
    wave(time, 1_300) + wave(time, 700) + wave(time, 2_300)
}

/// A datagram of a client with the server at 10.0.1.1, of which 40 bytes are kept: its first byte, and a number that
/// no other of the client has. What ends of QUIC encrypt is never the same.
fn datagram(client: u8, down: bool, first: u8, number: u32, len: usize) -> (Vec<u8>, u32) {
    let of_client = (Ipv4Addr::new(10, 0, 0, client), 1000 + u16::from(client));
    let ends = [of_client, (Ipv4Addr::new(10, 0, 1, 1), 443)];
    let [from, to] = if down { [ends[1], ends[0]] } else { ends };
    let mut data = vec![0; len];
    // Behind a long header's first byte is the version.
    data[..5].copy_from_slice(&[first, 0, 0, 0, 1]);
    data[8] = client;
    data[9..13].copy_from_slice(&number.to_be_bytes());
    let udp = PacketBuilder::ipv4(from.0.octets(), to.0.octets(), 64).udp(from.1, to.1);
    let mut bytes = Vec::new();
    udp.write(&mut bytes, &data).unwrap();
    let wire = bytes.len() as u32;
    bytes.truncate(28 + 40);
    (bytes, wire)
}

/// What an end sends in place of what the spin bit is, of its packet of a number.
type Sets = fn(bool, i64) -> bool;

const SPINS: Sets = |spin, _| spin;
const STAYS: Sets = |_, _| false;
const RANDOM: Sets = |_, number| {
    let mixed = (number + 1).wrapping_mul(0x2545_f491_4f6c_dd1d);
    (mixed ^ mixed >> 29).wrapping_mul(0x2545_f491_4f6c_dd1d) >> 50 & 1 == 1
};

/// A download, captured at its client, which acknowledges every second packet.
fn download(
    client: u8,
    back: i64,
    queue: impl Fn(i64) -> i64,
    [server, of_client]: [Sets; 2],
) -> Vec<Record> {
    let begin = 1_000 * MS + i64::from(client) * 300 * MS;
    let mut records = Vec::new();
    let mut add = |time: i64, down: bool, first: u8, len: usize| {
        let (data, wire) = datagram(client, down, first, records.len() as u32, len);
        records.push((time, data, wire));
    };
    // Initial and Handshake.
    add(begin - 50 * MS, false, 0xc3, 1200);
    add(begin - 10 * MS, true, 0xe3, 1200);
    let short = |spin: bool| if spin { 0x60 } else { 0x40 };
    let (mut spin, mut coming) = (false, VecDeque::<(i64, bool)>::new());
    for number in 0..PACKETS {
        let sent = begin + number * EVERY;
        while coming.front().is_some_and(|(time, _)| *time <= sent) {
            spin = coming.pop_front().is_some_and(|(_, seen)| seen);
        }
        let (arrives, bit) = (sent + FORTH + queue(sent), server(spin, number));
        add(arrives, true, short(bit), 1200);
        if number % 2 == 0 {
            let inverse = of_client(!bit, number);
            add(arrives, false, short(inverse), 45);
            coming.push_back((arrives + back, inverse));
        }
    }
    records
}

fn capture(flows: &[Vec<Record>]) -> Vec<u8> {
    let mut records = flows.concat();
    records.sort_by_key(|(time, ..)| *time);
    file(101, &records)
}

fn verdict(source: &Source) -> Verdict {
    let xcorr = detectors(["xcorr"]).unwrap()[0];
    let detection = Detection::new(source, xcorr, &Params::default()).unwrap();
    detection.run::<Error>(&mut [], |_| Ok(())).unwrap().verdicts.remove(0)
}

fn refused(flows: &[Vec<Record>]) -> String {
    let input = Input::bytes("test", capture(flows));
    Source::open(input, None, Limits::default()).map(drop).unwrap_err().to_string()
}

fn delays(all: &[Observation]) -> Vec<(i64, i64)> {
    let delay = |one: &Observation| Some((one.now_us as i64, one.delay_us?.into()));
    all.iter().filter_map(delay).collect()
}

#[test]
fn downloads_through_one_queue_and_through_two_are_told_apart() {
    let first = download(1, BACK, queue, [SPINS; 2]);
    for (second, answer) in [
        (download(2, 60 * MS, queue, [SPINS; 2]), Answer::Shared),
        (download(2, 60 * MS, other_queue, [SPINS; 2]), Answer::Separate),
    ] {
        let source = open(capture(&[first.clone(), second]));
        let recording = source.recording();
        assert_eq!(recording.signal, Signal::Spin);
        let names = [1, 2].map(|n| format!("10.0.1.1:443 > 10.0.0.{n}:100{n} quic"));
        assert_eq!(recording.flows, names);
        let limits = "QUIC's spin bit gives one delay a round trip, with the waits of both ends, and shows no losses";
        assert_eq!(recording.notes, [limits]);
        assert_eq!(verdict(&source).answer, answer);
    }
}

/// One delay a round trip is none for most of the moments that are compared.
#[test]
fn long_round_trips_are_too_few_delays() {
    let flow = |client| download(client, 380 * MS, queue, [SPINS; 2]);
    let found = verdict(&open(capture(&[flow(1), flow(2)])));
    assert_eq!((found.answer, found.why), (Answer::Unsure, Some(Why::Few)));
}

#[test]
fn a_delay_is_that_of_a_round_trip() {
    let packets = download(1, BACK, queue, [SPINS; 2]);
    let all = observations(&open(capture(std::slice::from_ref(&packets))));
    let measured = delays(&all);
    assert!((450..=650).contains(&measured.len()), "{}", measured.len());
    // The packets of an edge waited in the queue that there was when they were sent, three packets before.
    let start = packets[0].0;
    for (now_us, delay_us) in &measured {
        let now = start + now_us * 1000;
        let right = FORTH + BACK + queue(now - FORTH - queue(now) - 2 * EVERY);
        assert!((delay_us * 1000 - right).abs() < 6 * MS, "{now_us}: {delay_us}, {right}");
    }
    // Each packet twice.
    let copy = |(time, data, wire): &Record| (time + MS, data.clone(), *wire);
    let source = open(capture(&[packets.clone(), packets.iter().map(copy).collect()]));
    assert_eq!(observations(&source), all);
    let half = 2 * packets.len();
    let note = format!("left out: {} of {half} packets are copies of others", packets.len());
    assert!(source.recording().notes[0].starts_with(&note));
    // Both sides of a router that translates the client's address: what the server sends is outside first.
    let outside = packets.iter().map(|(time, data, wire)| {
        let (mut data, up) = (data.clone(), *wire < 1000 || data[28] == 0xc3);
        data[if up { 15 } else { 19 }] = 7;
        (if up { time + MS } else { time - MS }, data, *wire)
    });
    let source = open(capture(&[packets.clone(), outside.collect()]));
    let of_trips = |all: &[(i64, i64)]| all.iter().map(|(_, delay)| *delay).collect::<Vec<_>>();
    assert_eq!(of_trips(&delays(&observations(&source))), of_trips(&measured));
    let [inside, outside] = ["1", "7"].map(|host| format!("10.0.1.1:443 > 10.0.0.{host}:1001"));
    assert_eq!(source.recording().flows, [format!("{outside} quic")]);
    let note = format!("left out: {inside} is {outside} with translated addresses (NAT)");
    assert_eq!(source.recording().notes[0], note);
    // Every seventh packet is overtaken by the next two: those behind an edge have the old bit.
    let late = packets.iter().enumerate().map(|(number, (time, data, wire))| {
        let late = data.len() as u32 + 600 < *wire && number % 7 == 0;
        (if late { time + 5 * MS } else { *time }, data.clone(), *wire)
    });
    let overtaken = delays(&observations(&open(capture(&[late.collect()]))));
    assert!(overtaken.len().abs_diff(measured.len()) <= 2, "{}", overtaken.len());
    let least = |of: &[(i64, i64)]| of.iter().map(|(_, delay_us)| *delay_us).min().unwrap();
    assert!(least(&overtaken) + 10_000 > least(&measured), "{}", least(&overtaken));
}

#[test]
fn a_bit_that_does_not_spin_is_refused_by_its_name() {
    let named = "10.0.1.1:443 > 10.0.0.1:1001 quic";
    let log =
        "expected TCP flows with data, found none; if it is QUIC, give the log of an end (qlog)";
    let udp = |count: usize| {
        format!("test: skipped of {count} packets: {count} not TCP ({count} of IP protocol 17 UDP)")
    };
    let [one, two] = [1, 2].map(|client| download(client, BACK, queue, [STAYS, SPINS]));
    let same = "its spin bit stays the same";
    let count = one.len();
    assert_eq!(
        refused(&[one.clone(), two]),
        format!("{}; {named}, as 1 more: {same}; {log}", udp(2 * count))
    );
    // Of both ends, of the server, of the client: that is what the server repeats.
    let often =
        "its spin bit changes too often: it is random, or a round trip has fewer than 3 packets";
    for sets in [[RANDOM, RANDOM], [RANDOM, SPINS], [SPINS, RANDOM]] {
        let error = refused(&[download(1, BACK, queue, sets)]);
        assert_eq!(error, format!("{}; {named}: {often}; {log}", udp(count)));
    }
    let error = refused(&[download(1, BACK, |_| 10 * MS, [SPINS; 2])]);
    assert!(
        error.contains("quic: its round trips vary by less than its packets are apart"),
        "{error}"
    );
    let only_data = download(1, BACK, queue, [SPINS; 2]).into_iter().filter(|of| of.2 > 1000);
    let error = refused(&[only_data.collect()]);
    assert!(error.contains("quic: only one direction of it was captured"), "{error}");
    let none = "10.0.0.1:1001 > 10.0.1.1:443 quic: no packet of it has a spin bit";
    let begins = format!("{}; {none}; {log}", udp(2));
    assert_eq!(refused(&[one[..2].to_vec()]), begins);
    // Of connections that began before the capture nobody knows that they are QUIC.
    let headless = download(1, BACK, queue, [SPINS; 2])[2..].to_vec();
    let (count, udp) = (headless.len(), udp(headless.len()));
    let begun =
        format!("{count} of {count} packets are UDP of which no handshake of QUIC 1 or 2 is there");
    assert_eq!(refused(&[headless]), format!("{udp}; {begun}; {log}"));
    // Beside one that spins it is left out.
    let both = capture(&[one, download(2, BACK, queue, [SPINS; 2])]);
    let at = Limits { at: Some(At::Sender), ..Limits::default() };
    let error = Source::open(Input::bytes("test", both.clone()), None, at).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "--at: expected a capture of TCP, found QUIC alone");
    let source = open(both);
    assert_eq!(source.recording().flows, ["10.0.1.1:443 > 10.0.0.2:1002 quic"]);
    assert_eq!(source.recording().notes[0], format!("skipped: {named}: {same}"));
}

/// Round trips of 40 to 100 ms, of so many packets each way, whose bits are the same; and when each begins.
fn rounds(packets: impl Iterator<Item = i64>) -> (Vec<Record>, Vec<i64>) {
    let mut records = Vec::new();
    let mut add = |time: i64, down: bool, first: u8, len: usize| {
        let (data, wire) = datagram(1, down, first, records.len() as u32, len);
        records.push((time, data, wire));
    };
    add(0, false, 0xc3, 1200);
    let mut begins = vec![0];
    for (round, count) in (0..).zip(packets) {
        let (begin, long) =
            (begins[round as usize], 40 * MS + (round % 16 - 8_i64).abs() * 15 * MS / 2);
        for number in 0..count {
            let (time, first) = (begin + long * number / count, [0x40, 0x60][round as usize % 2]);
            add(time, true, first, 1200);
            add(time, false, first, 45);
        }
        begins.push(begin + long);
    }
    (records, begins)
}

#[test]
fn a_round_trip_of_too_few_packets_is_not_counted_with_the_next() {
    for rare in [0, 1, 2, 3] {
        let packets = (0..200).map(|round| if round % 20 < rare { 2 } else { 30 });
        let (records, begins) = rounds(packets);
        let found = delays(&observations(&open(capture(&[records]))));
        assert!(found.len() >= 150, "{rare}: {}", found.len());
        for (now_us, delay_us) in found {
            let round = begins.iter().rposition(|begin| *begin <= now_us * 1000).unwrap();
            assert_eq!(delay_us * 1000, begins[round] - begins[round - 1], "{rare}: {round}");
        }
    }
}

#[test]
fn a_connection_is_known_by_its_first_packets() {
    // Headers and versions: Initial and Handshake, whose numbers are others in version 2; then 0-RTT, Retry, version
    // negotiation, versions that are not known, and one without the fixed bit.
    let (one, two) = (1_u32, 0x6b33_43cf);
    for (first, version, known) in [
        (0xc0, one, true),
        (0xe0, one, true),
        (0xd0, two, true),
        (0xf0, two, true),
        (0xd0, one, false),
        (0xf0, one, false),
        (0xe0, two, false),
        (0xc0, two, false),
        (0xc0, 0, false),
        (0xc0, 7, false),
        (0x80, one, false),
    ] {
        let (mut packets, _) = rounds((0..100).map(|_| 30));
        let header = &mut packets[0].1[28..33];
        header[0] = first;
        header[1..].copy_from_slice(&version.to_be_bytes());
        // What is sent before the handshake ends is no other connection.
        let mut early = packets[71].clone();
        early.1[28..33].copy_from_slice(&[0xd0, 0, 0, 0, 1]);
        packets.insert(72, early);
        let input = Input::bytes("test", capture(&[packets]));
        let source = Source::open(input, None, Limits::default());
        assert_eq!(source.is_ok(), known, "{first:x} {version:x}");
        if let Ok(source) = source {
            assert_eq!(delays(&observations(&source)).len(), 98);
        }
    }
}
