//! A capture that is read as it comes is answered as its file is.

mod wire;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;
use std::sync::atomic::AtomicBool;

use flate2::read::MultiGzDecoder;
use narrows_detect::{
    Answer, At, Detection, Error, Event, Input, Limits, Part, Source, Stream, begin, detectors,
};
use narrows_laws::Params;
use wire::{MSS, Tcp, file, pcap, records};

/// Captures of two flows and more, with what is right.
const CAPTURES: [&str; 11] = [
    "bbr-shared",
    "bbr-separate",
    "cubic-shared",
    "cubic-separate",
    "four-in-pairs",
    "ipv6-separate",
    "ipv6-shared",
    "mptcp-bbr-shared",
    "mptcp-shared",
    "reno-separate",
    "reno-shared",
];

fn capture(name: &str) -> Vec<u8> {
    let path = format!("{}/../cli/tests/captures/{name}.pcap.gz", env!("CARGO_MANIFEST_DIR"));
    let mut plain = Vec::new();
    MultiGzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_end(&mut plain).unwrap();
    plain
}

/// Gives so many bytes at a time, as a pipe does.
struct Drops(std::io::Cursor<Vec<u8>>, usize);

impl Read for Drops {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let room = buffer.len().min(self.1);
        self.0.read(&mut buffer[..room])
    }
}

fn stream(
    bytes: Vec<u8>,
    drop: usize,
    limits: Limits,
    tell: impl FnMut(Event) -> Result<(), Error>,
) -> Result<Part, Error> {
    let xcorr = detectors(["xcorr"]).unwrap()[0];
    let (is_capture, from) = begin(Drops(std::io::Cursor::new(bytes), drop)).unwrap();
    assert!(is_capture);
    Stream::new(xcorr, &Params::default(), limits)?.read(
        "stream",
        from,
        &AtomicBool::new(false),
        tell,
    )
}

/// Each two flows by their names, and the answer on them.
fn answers<'a>(
    flows: &'a [String],
    verdicts: &[narrows_detect::Verdict],
) -> Vec<([&'a str; 2], Answer)> {
    let of = |verdict: &narrows_detect::Verdict| {
        let mut names = [flows[verdict.flows.0].as_str(), flows[verdict.flows.1].as_str()];
        names.sort_unstable();
        (names, verdict.answer)
    };
    let mut answers: Vec<_> = verdicts.iter().map(of).collect();
    answers.sort_by_key(|(names, _)| *names);
    answers
}

#[test]
fn it_is_answered_as_its_file_is() {
    let xcorr = detectors(["xcorr"]).unwrap()[0];
    for name in CAPTURES {
        let bytes = capture(name);
        let source =
            Source::open(Input::bytes(name, bytes.clone()), None, Limits::default()).unwrap();
        let detection = Detection::new(&source, xcorr, &Params::default()).unwrap();
        let of_file = detection.run::<Error>(&mut [], |_| Ok(())).unwrap();
        // Drops of 7 bytes fill no header.
        for drop in if name == "bbr-shared" { &[7, 1 << 16][..] } else { &[1 << 16] } {
            let mut decisions = 0;
            let part = stream(bytes.clone(), *drop, Limits::default(), |event| {
                decisions += u32::from(matches!(event, Event::Decided { .. }));
                Ok(())
            });
            let part = part.unwrap();
            assert_eq!(part.recording.signal, source.recording().signal, "{name}");
            assert_eq!(
                answers(&part.recording.flows, &part.found.verdicts),
                answers(&source.recording().flows, &of_file.verdicts),
                "{name}"
            );
            assert!(decisions > 20, "{name}: {decisions}");
        }
    }
}

const MS: i64 = 1_000_000;

/// A flow near its receiver: a packet a millisecond with a delay of its own, from a time on.
fn flow(client: u8, from_s: i64, to_s: i64) -> impl Iterator<Item = Tcp> {
    (from_s * 1000..to_s * 1000).map(move |ms| {
        let stamp = ms as u32 + 7;
        let delay = (ms / 200 % 20 + i64::from(client) % 3) * MS;
        Tcp::data(ms * MS + delay, client, (ms - from_s * 1000) as u32 * MSS, Some((stamp, 1)))
    })
}

/// All parts of a stream, and the numbers under which flows joined.
fn parts(packets: &[Tcp], limits: Limits) -> (Vec<Part>, Vec<usize>) {
    let (mut joined, mut parts, mut numbered) = (Vec::new(), Vec::new(), 0);
    let last = stream(pcap(packets), 1 << 16, limits, |event| {
        match event {
            Event::Joined { flows, .. } => {
                numbered += 1;
                assert_eq!(flows.len(), numbered, "each number is told");
                joined.push(numbered);
            }
            Event::Renewed(part) => {
                numbered = 0;
                parts.push(part.clone());
            }
            Event::Decided { decision, flows } => {
                assert_eq!(decision.on.places.len(), flows.len());
            }
            Event::Second { flows, mbit_per_s, .. } => assert_eq!(flows.len(), mbit_per_s.len()),
        }
        Ok(())
    });
    parts.push(last.unwrap());
    (parts, joined)
}

const TWO: Limits = Limits { flows: 2, packets: 100, at: Some(At::Receiver) };

#[test]
fn where_nobody_is_left_it_begins_anew() {
    let pairs = (0..3_u8).flat_map(|pair| {
        let from_s = 40 * i64::from(pair) + 1;
        [2 * pair + 1, 2 * pair + 2].map(|client| flow(client, from_s, from_s + 20))
    });
    let (parts, joined) = parts(&pairs.flatten().collect::<Vec<_>>(), TWO);
    assert_eq!(joined, [1, 2, 1, 2, 1, 2]);
    let shared = |part: &Part| {
        let answers = answers(&part.recording.flows, &part.found.verdicts);
        answers.into_iter().map(|(_, answer)| answer).collect::<Vec<_>>()
    };
    assert_eq!(parts.iter().map(shared).collect::<Vec<_>>(), [[Answer::Shared]; 3]);
    let spans: Vec<i64> = parts.iter().map(|part| part.recording.span.0 as i64).collect();
    assert_eq!(spans, [0, 42, 82]);
}

#[test]
fn flows_that_end_make_room_while_others_send() {
    // One after the other, two at most at a time: room for four of the eight.
    let all =
        (0..8_u8).map(|client| flow(client, 25 * i64::from(client), 25 * i64::from(client) + 45));
    let (parts, joined) = parts(&all.flatten().collect::<Vec<_>>(), TWO);
    assert!(joined.iter().all(|number| *number <= 4) && parts.len() > 1, "{joined:?}");
    for client in 0..7 {
        let pair = [client, client + 1].map(|client| format!("10.0.0.{client}:"));
        let compared = parts.iter().any(|part| {
            answers(&part.recording.flows, &part.found.verdicts).iter().any(|(names, answer)| {
                names.iter().zip(&pair).all(|(name, of)| name.starts_with(of.as_str()))
                    && *answer == Answer::Shared
            })
        });
        assert!(compared, "{pair:?}");
    }
}

#[test]
fn the_largest_now_take_the_place_of_small_ones_and_others_are_named() {
    let thin = |client| flow(client, 1, 60).step_by(20);
    let packets: Vec<Tcp> =
        thin(1).chain(thin(2)).chain(flow(3, 20, 60)).chain(flow(4, 20, 60)).collect();
    let limits = Limits { flows: 2, packets: 50, at: Some(At::Receiver) };
    let part = stream(pcap(&packets), 1 << 16, limits, |_| Ok(())).unwrap();
    let [.., third, fourth] = &part.recording.flows[..] else { panic!("{part:?}") };
    assert!(third.contains("10.0.0.3:") && fourth.contains("10.0.0.4:"), "{part:?}");
    let crowded = "more than 2 flows sent at a time: the others are left out (--flows)";
    assert!(part.recording.notes.iter().any(|note| note == crowded), "{:?}", part.recording.notes);
}

#[test]
fn a_stream_without_flows_says_what_was_skipped() {
    let thin: Vec<Tcp> = flow(1, 1, 2).take(50).collect();
    let error = stream(pcap(&thin), 1 << 16, Limits::default(), |_| Ok(())).unwrap_err();
    assert_eq!(error.to_string(), "stream: no flow has 100 packets or more (--min-packets)");
    let mut cut = pcap(&thin);
    cut.truncate(cut.len() - 3);
    let error = stream(cut, 1 << 16, Limits::default(), |_| Ok(())).unwrap_err().to_string();
    assert!(error.starts_with("stream: it ends within the packet at byte"), "{error}");
    // Nothing but a header, and less than that.
    let of = |bytes| stream(bytes, 1 << 16, Limits::default(), |_| Ok(())).unwrap_err().to_string();
    assert_eq!(of(file(101, &[])), "stream: no packet came");
    let damaged = of(file(101, &[])[..10].to_vec());
    assert_eq!(damaged, "stream: its header is damaged, nothing can be read");
}

/// What is said of a capture that is read as it comes, and of the same as a file.
fn said(bytes: Vec<u8>) -> [Result<Vec<String>, String>; 2] {
    let part = stream(bytes.clone(), 1 << 16, Limits::default(), |_| Ok(()));
    let file = Source::open(Input::bytes("stream", bytes), None, Limits::default());
    [
        part.map(|part| part.recording.notes).map_err(|error| error.to_string()),
        file.map(|file| file.recording().notes.clone()).map_err(|error| error.to_string()),
    ]
}

#[test]
fn a_stream_that_gives_nothing_says_why_as_its_file_does() {
    let answered = |packet: Tcp| {
        let Tcp { time, client, seq, .. } = packet;
        [packet, Tcp::ack(time, client, seq + MSS, None)]
    };
    let unstamped = || flow(1, 1, 10).map(|packet| Tcp { stamps: None, ..packet });
    let acks: Vec<Tcp> = unstamped().flat_map(answered).filter(|packet| !packet.forward).collect();
    let cut = |length: usize| {
        let mut all = two();
        all.iter_mut().for_each(|(_, data, _)| data.truncate(length));
        file(101, &all)
    };
    // Near the sender: requests that are answered at once, and each again 30 ms later.
    let messages = (0..1000).flat_map(|number: u32| {
        let sent = 1_000 * MS + i64::from(number) * 10 * MS;
        let request = Tcp { len: 100, ..Tcp::data(sent, 1, 1 + 100 * number, None) };
        let answer = Tcp::ack(sent + 30 * MS, 1, 101 + 100 * number, None);
        [request, Tcp { seq: 1 + 10 * number, len: 10, ..answer }]
    });
    for (bytes, why) in [
        (
            pcap(&unstamped().collect::<Vec<_>>()),
            "no flow gives a delay: expected packets of at least ",
        ),
        (
            pcap(&acks),
            "expected TCP flows with data, found 1 without: no packet of their data is there",
        ),
        (cut(45), "flows with 100 % of the data give no delay; capture 128 bytes of each packet"),
        (cut(30), "found no TCP flows with data; capture 128 bytes of each packet"),
        (
            pcap(&messages.collect::<Vec<_>>()),
            "1 flow has messages only, whose acknowledgements wait ",
        ),
    ] {
        let [stream, file] = said(bytes).map(Result::unwrap_err);
        assert!(stream.contains(why), "{stream}");
        assert_eq!(stream.replace("2 seconds with", "a second with"), file);
    }
}

#[test]
fn a_stream_says_of_flows_that_are_not_compared_what_its_file_does() {
    let of = |client, from_s, to_s| flow(client, from_s, to_s).collect::<Vec<_>>();
    let unstamped = of(3, 1, 20).into_iter().map(|packet| Tcp { stamps: None, ..packet });
    let all = [of(1, 1, 50), of(2, 1, 50), unstamped.collect(), of(4, 3, 10)[..90].to_vec()];
    let [stream, file] = said(pcap(&all.concat())).map(Result::unwrap);
    assert_eq!(stream, file);
    assert!(
        stream[0].starts_with("hidden: 1 flow of fewer than 100 packets, with 0.1 %"),
        "{stream:?}"
    );
    assert!(
        stream.last().unwrap().starts_with("skipped, without one-way delay, by timestamps, "),
        "{stream:?}"
    );
    assert!(stream.last().unwrap().contains(": 1 flow, with 16.2 % of the data"), "{stream:?}");
    // One of enough packets whose place and clock nobody can tell in so short a time.
    let [stream, _] =
        said(pcap(&[of(1, 1, 50), of(2, 1, 50), of(3, 2, 3)].concat())).map(Result::unwrap);
    let brief = "skipped, as they sent for less than 2 seconds: 1 flow, with 1.0 % of the data";
    assert_eq!(stream.last().unwrap(), brief);
}

/// Two flows through one queue for 30 s.
fn two() -> Vec<wire::Record> {
    records(&flow(1, 1, 31).chain(flow(2, 1, 31)).collect::<Vec<_>>())
}

#[test]
fn a_damaged_time_of_the_first_packet_does_not_matter() {
    let right = two();
    let mut late = right.clone();
    late[0].0 = 4_000_000_000 * 1000 * MS;
    // In 1970, and the others 50 years later.
    let mut early = right.clone();
    early.iter_mut().skip(1).for_each(|(time, ..)| *time += 1_600_000_000 * 1000 * MS);
    for packets in [late, early] {
        let part = stream(file(101, &packets), 1 << 16, TWO, |_| Ok(())).unwrap();
        let answers = answers(&part.recording.flows, &part.found.verdicts);
        assert_eq!(answers[0].1, Answer::Shared);
        let (from, to) = part.recording.span;
        assert!(from < 1.0 && (29.0..31.0).contains(&to), "{from} {to}");
    }
}

/// A section of pcapng with an interface of raw IP in nanoseconds, and packets with stamps of their own.
fn pcapng(packets: &[(u64, &[u8])]) -> Vec<u8> {
    let block = |kind: u32, body: Vec<u8>| {
        let length = 12 + body.len().next_multiple_of(4) as u32;
        let padding = vec![0; body.len().next_multiple_of(4) - body.len()];
        let [kind, length] = [kind, length].map(|word| word.to_le_bytes().to_vec());
        [kind, length.clone(), body, padding, length].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let interface = [101, 0, 0, 0, 0xff, 0xff, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0];
    let packet = |(stamp, data): &(u64, &[u8])| {
        let words = [0, (stamp >> 32) as u32, *stamp as u32, data.len() as u32, data.len() as u32];
        let words = words.map(u32::to_le_bytes).concat();
        block(6, [&words[..], data].concat())
    };
    let packets: Vec<Vec<u8>> = packets.iter().map(packet).collect();
    [block(0x0a0d_0d0a, section), block(1, interface.to_vec()), packets.concat()].concat()
}

#[test]
fn times_of_any_size_are_read_to_the_end() {
    let (data, _) = Tcp::data(0, 1, 1, Some((7, 1))).packet();
    let far = [u64::MAX, 5, u64::MAX, 6, 7, u64::MAX - 1, u64::MAX, u64::MAX];
    let packets = far.map(|stamp| (stamp, &data[..]));
    let error = stream(pcapng(&packets), 1 << 16, TWO, |_| Ok(())).unwrap_err().to_string();
    assert!(error.contains("no flow has 100 packets or more"), "{error}");
}

#[test]
fn packets_that_come_late_are_sorted() {
    let found =
        |packets: &[wire::Record]| stream(file(101, packets), 1 << 16, TWO, |_| Ok(())).unwrap();
    let right = found(&two());
    assert_eq!(right.found.verdicts[0].answer, Answer::Shared);
    // Those of the second flow 0.4 s after those of the first.
    let mut packets = two();
    packets.sort_by_key(|(time, data, _)| time + if data[15] == 2 { 400 * MS } else { 0 });
    let part = found(&packets);
    let [verdict, wanted] = [&part, &right].map(|part| part.found.verdicts[0].clone());
    assert_eq!((verdict.answer, verdict.since_s), (wanted.answer, wanted.since_s));
    let note = "packets are up to 0.399 s behind others before them, as of several interfaces: read in the order \
                of time";
    let notes = &part.recording.notes;
    assert!(notes.iter().any(|of| of == note), "{notes:?}");
}

/// One comes 0.9 s late, behind more packets than can wait, as nobody could know before; a second one soon after it,
/// when others wait.
#[test]
fn where_more_come_than_can_wait_a_note_says_so() {
    let mut packets = two();
    let [late, again] = [20_000, 24_000].map(|at: usize| packets[at].0);
    packets.extend((0..50_000).map(|n| (late + 100 * MS + n * 1000, vec![0; 20], 20)));
    packets
        .sort_by_key(|(time, ..)| time + if [late, again].contains(time) { 900 * MS } else { 0 });
    let part = stream(file(101, &packets), 1 << 16, TWO, |_| Ok(())).unwrap();
    let notes = &part.recording.notes;
    let note = "1 of 110000 packets are read out of order: later ones were read before they came, as none was \
                so late in the last 10 s or 47127 is the most that wait";
    assert!(notes.iter().any(|of| of == note), "{notes:?}");
}

#[test]
fn a_clock_that_is_set_back_goes_on() {
    let mut packets = two();
    let half = packets.len() / 2;
    packets.iter_mut().for_each(|(time, ..)| *time += 7200 * 1000 * MS);
    packets.iter_mut().skip(half).for_each(|(time, ..)| *time -= 3600 * 1000 * MS);
    let mut last_s = 0.0;
    let part = stream(file(101, &packets), 1 << 16, TWO, |event| {
        if let Event::Decided { decision, .. } = event {
            last_s = decision.t_s;
        }
        Ok(())
    });
    let part = part.unwrap();
    assert!((25.0..31.0).contains(&last_s), "{last_s}");
    let note = "times go back by 3599.999 s at most: the clock is taken to have gone on";
    assert!(part.recording.notes.iter().any(|of| of == note), "{:?}", part.recording.notes);
}

/// A day in which three flows send all the time and 100,000 for two seconds and a half each, packet by packet.
struct Day {
    packet: Vec<u8>,
    wire: u32,
    /// When the next packet of a flow comes, the flow, and which of its packets it is.
    next: BinaryHeap<Reverse<(i64, u32, u32)>>,
    bytes: std::io::Cursor<Vec<u8>>,
}

impl Day {
    const LONG: u32 = 3;
    const SHORT: u32 = 100_000;
    const NS: i64 = 86_400_000 * MS;

    fn new() -> Day {
        let (packet, wire) = Tcp::data(0, 1, 1, Some((1, 1))).packet();
        let short = (0..Day::SHORT)
            .map(|n| (i64::from(n) * (Day::NS / i64::from(Day::SHORT)), n + Day::LONG));
        let all = (0..Day::LONG).map(|n| (i64::from(n) * MS, n)).chain(short);
        let next = all.map(|(time, flow)| Reverse((time, flow, 0))).collect();
        Day { packet, wire, next, bytes: std::io::Cursor::new(file(101, &[])) }
    }

    /// The bytes of the next packet; none at the end.
    fn record(&mut self) -> Option<Vec<u8>> {
        let Reverse((sent, flow, number)) = self.next.pop()?;
        let (long, later) = (flow < Day::LONG, if flow < Day::LONG { 200 * MS } else { 100 * MS });
        if if long { sent + later < Day::NS } else { number < 24 } {
            self.next.push(Reverse((sent + later, flow, number + 1)));
        }
        // Two of the three are in one queue.
        let queue = (sent as f64 / 1e9 * if flow == 1 { 1.3 } else { 1.7 }).sin();
        let time = sent + 20 * MS + (30.0 * MS as f64 * (1.0 + queue)) as i64;
        let mut data = self.packet.clone();
        data[12..16].copy_from_slice(&(0x0b00_0000 + flow).to_be_bytes());
        data[24..28].copy_from_slice(&(1 + number * MSS).to_be_bytes());
        data[42..46].copy_from_slice(&((sent / MS) as u32).to_be_bytes());
        Some(file(101, &[(time, data, self.wire)])[24..].to_vec())
    }
}

impl Read for Day {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        if read > 0 {
            return Ok(read);
        }
        let Some(record) = self.record() else { return Ok(0) };
        self.bytes = std::io::Cursor::new(record);
        self.bytes.read(buffer)
    }
}

#[test]
#[ignore = "half a minute"]
fn memory_does_not_grow_in_a_day_of_a_hundred_thousand_flows() {
    let most = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let before = most();
    let xcorr = detectors(["xcorr"]).unwrap()[0];
    let (_, from) = begin(Day::new()).unwrap();
    let mut decisions = 0;
    let end = AtomicBool::new(false);
    let stream = Stream::new(xcorr, &Params::default(), Limits::default()).unwrap();
    let part = stream.read("day", from, &end, |event| -> Result<(), Error> {
        decisions += u32::from(matches!(event, Event::Decided { .. }));
        Ok(())
    });
    let traffic = part.unwrap().recording.traffic;
    println!("{} MB more, {decisions} decisions", (most() - before) / 1024);
    assert!(decisions > 100_000, "{decisions}");
    assert!(
        traffic.iter().any(|flow| flow.duration_s > 86_000.0),
        "the long flows are there to the end"
    );
    assert!(most() - before < 60 * 1024, "{} kB more", most() - before);
}
