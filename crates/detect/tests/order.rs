//! Captures whose packets are not in the order of time, and the blocks of pcapng.

mod wire;

use narrows_detect::{Input, Limits, Source};
use wire::{MSS, Record, Tcp, file, observations, open, records};

const MS: i64 = 1_000_000;
const PACKETS: u32 = 2000;

/// Downloads for 10 s, near the receiver: each of a client.
fn flow(client: u8) -> Vec<Tcp> {
    let each = |packet: u32| {
        let sent = 1_000 * MS + i64::from(packet) * 5 * MS;
        let queue = (200 - i64::from((packet + 90 * u32::from(client)) % 400)).abs() * MS / 5;
        let stamp = (sent / MS) as u32;
        let seq = (1 + packet * MSS).wrapping_add(u32::from(client).wrapping_mul(1_000_000_000));
        let time = sent + 20 * MS + queue;
        [
            Tcp::data(time, client, seq, Some((stamp, 1))),
            Tcp::ack(time, client, seq.wrapping_add(MSS), Some((stamp, stamp))),
        ]
    };
    (0..PACKETS).flat_map(each).collect()
}

/// In the order of these parts, each in the order of time.
fn appended(parts: &[Vec<Tcp>]) -> Vec<u8> {
    file(101, &parts.iter().flat_map(|part| records(part)).collect::<Vec<Record>>())
}

#[test]
fn interfaces_that_stand_one_after_the_other_are_read_together() {
    let right = open(file(101, &records(&[flow(1), flow(2)].concat())));
    let source = open(appended(&[flow(1), flow(2)]));
    assert_eq!(observations(&source), observations(&right));
    let place = "times go back by 10.013 s at packet 4001: what follows was captured at the same time, and \
                 is read in its place";
    assert_eq!(source.recording().notes, [place]);
    // Of data in one and its acknowledgements in the other, too.
    let (data, acks): (Vec<_>, Vec<_>) = flow(1).into_iter().partition(|packet| packet.forward);
    let source = open(appended(&[data, acks]));
    assert_eq!(observations(&source), observations(&open(appended(&[flow(1)]))));
    // And of a recording in two files, the second before the first.
    let whole = flow(1);
    let (early, late) = whole.split_at(2000);
    let source = open(appended(&[late.to_vec(), early.to_vec()]));
    assert_eq!(observations(&source), observations(&open(appended(&[flow(1)]))));
}

/// Parts of 2.5 s of each of two interfaces in turn, written when they were full.
#[test]
fn interfaces_that_were_written_in_turn_are_read_together() {
    let right = open(file(101, &records(&[flow(1), flow(2)].concat())));
    let (one, other) = (records(&flow(1)), records(&flow(2)));
    let turns = one.chunks(1000).zip(other.chunks(1000));
    let source =
        open(file(101, &turns.flat_map(|(one, other)| [one, other].concat()).collect::<Vec<_>>()));
    assert_eq!(observations(&source), observations(&right));
    let [note] = &source.recording().notes[..] else { panic!("{:?}", source.recording().notes) };
    assert!(note.starts_with("times go back 4 times, first at packet 1001, by 2."), "{note}");
    let place = "what follows was captured at the same time, and is read in its place";
    assert!(note.ends_with(place), "{note}");
}

/// Packets in batches, of one interface and of the other; or data and what acknowledges it in two.
#[test]
fn packets_less_than_a_second_late_are_sorted() {
    let mut both = [flow(1), flow(2)].concat();
    // Acknowledged a little later, as which of two at one time was the first is lost.
    both.iter_mut().filter(|packet| !packet.forward).for_each(|packet| packet.time += MS / 100);
    let right = open(file(101, &records(&both)));
    for late in [30, 250, 900] {
        for of in [|packet: &Tcp| packet.client == 2, |packet: &Tcp| packet.forward] {
            let mut packets = both.clone();
            packets.sort_by_key(|packet| packet.time + if of(packet) { late * MS } else { 0 });
            let written: Vec<Record> =
                packets.iter().flat_map(|packet| records(std::slice::from_ref(packet))).collect();
            let source = open(file(101, &written));
            assert_eq!(source.recording().signal, right.recording().signal);
            assert_eq!(source.recording().traffic, right.recording().traffic);
            // Of two at one time either may be the first.
            let seen = |source| {
                let mut all = observations(source);
                all.sort_by_key(|one| (one.now_us, one.flow));
                all
            };
            assert_eq!(seen(&source), seen(&right));
            let [note] = &source.recording().notes[..] else {
                panic!("{:?}", source.recording().notes)
            };
            let lag: f64 = note.split(' ').nth(4).unwrap().parse().unwrap();
            assert!((late as f64 / 1e3 - lag).abs() < 0.011, "{note}");
            assert!(
                note.starts_with("packets are up to ")
                    && note.ends_with(": read in the order of time")
            );
        }
    }
}

/// Two of one time come 0.9 s late, behind more packets than can wait.
#[test]
fn where_more_come_than_can_wait_a_note_says_so() {
    let mut packets = records(&[flow(1), flow(2)].concat());
    let late = packets[2000].0;
    packets.extend((0..50_000).map(|n| (late + 100 * MS + n * 1000, vec![0; 20], 20)));
    packets.sort_by_key(|(time, ..)| time + if *time == late { 900 * MS } else { 0 });
    let source = open(file(101, &packets));
    let notes = &source.recording().notes;
    let note = "2 of 58000 packets are read out of order: later ones were read before they came, as none was \
                so late in the last 10 s or 47127 is the most that wait";
    assert!(notes.iter().any(|of| of == note), "{notes:?}");
}

#[test]
fn a_clock_that_was_set_back_goes_on() {
    let mut records = records(&[flow(1), flow(2)].concat());
    let right = observations(&open(file(101, &records)));
    let step = records[3999].0 - records[4000].0 + 3_000 * MS;
    records[4000..].iter_mut().for_each(|record| record.0 -= 3_000 * MS);
    let source = open(file(101, &records));
    let what = "the clock was set back, and is taken to have gone on";
    let back = step as f64 / 1e9;
    assert_eq!(
        source.recording().notes,
        [format!("times go back by {back:.3} s at packet 4001: {what}")]
    );
    let seen = observations(&source);
    assert_eq!(seen.len(), right.len());
    let off = |(a, b): (&narrows_detect::Observation, &narrows_detect::Observation)| {
        a.now_us.abs_diff(b.now_us)
    };
    assert!(seen.iter().zip(&right).map(off).max() < Some(6_000));
    // Copies, which end where the packet before them did, do not deny it.
    let twice: Vec<Record> =
        records.iter().flat_map(|record| [record.clone(), record.clone()]).collect();
    assert_eq!(observations(&open(file(101, &twice))), seen);
}

/// By less than a second: packets stay in the order in which they passed, and none counts as lost.
#[test]
fn a_clock_that_was_set_back_by_little_is_no_disorder() {
    let mut records = records(&[flow(1), flow(2)].concat());
    let right = open(file(101, &records));
    records[4000..].iter_mut().for_each(|record| record.0 -= 500 * MS);
    let source = open(file(101, &records));
    assert_eq!(source.recording().notes, [""; 0]);
    assert_eq!(observations(&source).len(), observations(&right).len());
}

#[test]
fn a_clock_that_was_set_ahead_goes_on() {
    let mut together = [flow(1), flow(2)].concat();
    together.sort_by_key(|packet| packet.time);
    let right = records(&together);
    let unset = observations(&open(file(101, &right)));
    for step in [3_000, 7_200_000] {
        let mut records = right.clone();
        records[4000..].iter_mut().for_each(|record| record.0 += step * MS);
        let source = open(file(101, &records));
        let by = (records[4000].0 - records[3999].0) as f64 / 1e9;
        let note = format!(
            "times go ahead by {by:.3} s at packet 4001, and no sender's timestamps do: the clock was set, and \
             is taken to have gone on"
        );
        assert_eq!(source.recording().notes, [note]);
        let seen = observations(&source);
        assert_eq!(seen.len(), unset.len());
        let off = |(a, b): (&narrows_detect::Observation, &narrows_detect::Observation)| {
            a.now_us.abs_diff(b.now_us)
        };
        assert!(seen.iter().zip(&unset).map(off).max() < Some(6_000));
        // Once more, later.
        records[6000..].iter_mut().for_each(|record| record.0 += step * MS);
        let source = open(file(101, &records));
        let note = &source.recording().notes[0];
        assert!(note.starts_with("times go ahead 2 times, first at packet 4001, by "), "{note}");
        assert_eq!(observations(&source).len(), unset.len());
        // And set right again.
        records[6000..].iter_mut().for_each(|record| record.0 -= 2 * step * MS);
        let source = open(file(101, &records));
        assert_eq!(source.recording().notes.len(), 2, "{:?}", source.recording().notes);
        let seen = observations(&source);
        assert!(seen.iter().zip(&unset).map(off).max() < Some(12_000));
    }
}

/// Stamps of 1 us turn over after 71 minutes, and of half of that nothing is known.
#[test]
fn a_pause_in_which_stamps_turn_over_is_no_step_and_nor_is_one_of_clocks_that_differ() {
    let paused = |pause: i64, per_second: i64| {
        let mut packets = flow(1);
        for packet in &mut packets {
            let late = if packet.time > 6_000 * MS { pause } else { 0 };
            packet.time += late;
            if let Some((stamp, _)) = &mut packet.stamps {
                let sent = i64::from(*stamp) * MS + late - late / 1_000_000 * 30;
                *stamp = (i128::from(sent) * i128::from(per_second) / 1_000_000_000) as u32;
            }
        }
        match Source::open(
            Input::bytes("test", file(101, &records(&packets))),
            None,
            Limits::default(),
        ) {
            Ok(source) => source.recording().notes.clone(),
            Err(error) => vec![error.to_string()],
        }
    };
    assert_eq!(paused(30 * 60_000 * MS, 1_000_000), [""; 0]);
    for minutes in [40, 80] {
        let notes = paused(minutes * 60_000 * MS, 1_000_000);
        // A flow whose clock is not known gives no delays.
        assert!(
            notes[0].starts_with("test: no flow gives a delay: "),
            "{minutes} minutes: {notes:?}"
        );
    }
    // 30 ppm of ten hours are more than a second.
    assert_eq!(paused(36_000_000 * MS, 1_000), [""; 0]);
}

#[test]
fn sequence_numbers_turn_over() {
    let moved = |by: u32| {
        let mut packets = flow(1);
        for packet in &mut packets {
            let number = if packet.forward { &mut packet.seq } else { &mut packet.ack };
            *number = number.wrapping_add(by);
        }
        assert_eq!(packets[0].seq < packets[packets.len() - 2].seq, by == 0);
        observations(&open(file(101, &records(&packets))))
    };
    // Zero is in the middle.
    let by = 0_u32.wrapping_sub(1_000_000_000 + PACKETS / 2 * MSS);
    assert_eq!(moved(by), moved(0));
}

#[test]
fn a_time_without_packets_and_one_in_which_a_link_holds_them_are_no_steps_of_the_clock() {
    let late = |by: fn(i64) -> i64, stamped: bool| {
        let mut packets = flow(1);
        for packet in &mut packets {
            let passed = packet.time;
            packet.time += by(passed);
            if let (true, Some((stamp, _))) = (stamped, &mut packet.stamps) {
                *stamp += (by(passed) / MS) as u32;
            }
        }
        open(file(101, &records(&packets))).recording().notes.clone()
    };
    // Nobody sends for 5 s.
    assert!(late(|time| if time > 6_000 * MS { 5_000 * MS } else { 0 }, true).is_empty());
    // What was sent in 3 s comes at once.
    let held = |time: i64| {
        if (5_000 * MS..8_000 * MS).contains(&time) { 8_000 * MS - time } else { 0 }
    };
    assert!(late(held, false).is_empty());
}

#[test]
fn times_to_and_fro_are_refused_with_the_amount() {
    let parts: Vec<Vec<Tcp>> = (1..=20).map(|client| flow(client)[..600].to_vec()).collect();
    let bytes = appended(&parts);
    let error = Source::open(Input::bytes("test", bytes), None, Limits::default()).unwrap_err();
    let line = error.to_string();
    assert!(line.starts_with("test: times go back 19 times or more, by 1.5"), "{line}");
    assert!(line.ends_with("in the order of time (Wireshark's reordercap sorts them)"), "{line}");
}

/// Words of a byte order.
struct Order(bool);

impl Order {
    fn words(&self, words: &[u32]) -> Vec<u8> {
        let each =
            words.iter().map(|word| if self.0 { word.to_be_bytes() } else { word.to_le_bytes() });
        each.flatten().collect()
    }

    fn halves(&self, a: u16, b: u16) -> Vec<u8> {
        let each = [a, b].map(|half| if self.0 { half.to_be_bytes() } else { half.to_le_bytes() });
        each.concat()
    }

    fn block(&self, kind: u32, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(4), 0);
        let length = body.len() as u32 + 12;
        [self.words(&[kind, length]), body, self.words(&[length])].concat()
    }

    /// A section, and its interface: raw IP, with a resolution (`if_tsresol`) and an offset in seconds.
    fn section(&self, resolution: u8, offset: i64) -> Vec<u8> {
        let header =
            [self.words(&[0x1a2b_3c4d]), self.halves(1, 0), self.words(&[u32::MAX, u32::MAX])];
        let offset = if self.0 { offset.to_be_bytes() } else { offset.to_le_bytes() };
        let options = [
            self.halves(9, 1),
            vec![resolution, 0, 0, 0],
            self.halves(14, 8),
            offset.to_vec(),
            self.halves(0, 0),
        ];
        let interface = [self.halves(101, 0), self.words(&[0]), options.concat()];
        [self.block(0x0a0d_0d0a, &header.concat()), self.block(1, &interface.concat())].concat()
    }

    fn packet(&self, kind: u32, stamp: u64, (_, data, wire): &Record) -> Vec<u8> {
        let interface = if kind == 2 { self.halves(0, 7) } else { self.words(&[0]) };
        let length = data.len() as u32;
        let rest = self.words(&[(stamp >> 32) as u32, stamp as u32, length, *wire]);
        self.block(kind, &[interface, rest, data.clone()].concat())
    }
}

/// Two sections of other byte orders, resolutions and offsets; the second, in the old form of packets,
/// was captured at the same time as the first.
#[test]
fn sections_have_their_own_clocks() {
    let mut bytes = Order(false).section(9, 0);
    for record in &records(&flow(1)) {
        bytes.extend(Order(false).packet(6, record.0 as u64, record));
    }
    bytes.extend(Order(true).section(6, -500));
    for record in &records(&flow(2)) {
        bytes.extend(Order(true).packet(2, (record.0 / 1000 + 500_000_000) as u64, record));
    }
    let source = open(bytes.clone());
    let right = open(file(101, &records(&[flow(1), flow(2)].concat())));
    assert_eq!(source.recording().flows, right.recording().flows, "{:?}", source.recording().notes);
    assert_eq!(observations(&source), observations(&right));
    assert_eq!(source.recording().notes.len(), 1, "{:?}", source.recording().notes);
    // What has no time is counted.
    let simple = records(&flow(3)[..3]);
    for (_, data, wire) in &simple {
        bytes.extend(Order(true).block(3, &[Order(true).words(&[*wire]), data.clone()].concat()));
    }
    let source = open(bytes);
    assert_eq!(
        source.recording().notes[0],
        "skipped of 8003 packets: 3 without a time (simple packet blocks)"
    );
    assert_eq!(observations(&source), observations(&right));
}

/// Units of 2^-40 s, in which a time is rounded up so that it is read as it was.
#[test]
fn an_interface_may_count_in_powers_of_two() {
    let all = records(&[flow(1), flow(2)].concat());
    for order in [Order(false), Order(true)] {
        let mut bytes = order.section(0x80 | 40, 0);
        for record in &all {
            let stamp = ((record.0 as u128) << 40).div_ceil(1_000_000_000);
            bytes.extend(order.packet(6, stamp as u64, record));
        }
        assert_eq!(observations(&open(bytes)), observations(&open(file(101, &all))));
    }
    // What no 64 bits count is refused with its place, where a packet has it.
    let of = |number: u32| {
        let mut bytes = Order(false).section(9, 0);
        // The second interface of the section.
        bytes.extend(&Order(false).section(0xff, 0)[28..]);
        for record in &all {
            let packet = Order(false).packet(6, record.0 as u64, record);
            bytes.extend([&packet[..8], &number.to_le_bytes(), &packet[12..]].concat());
        }
        Source::open(Input::bytes("test", bytes), None, Limits::default())
    };
    assert_eq!(observations(&of(0).unwrap()), observations(&open(file(101, &all))));
    let message = of(1).map(drop).unwrap_err().to_string();
    let reason = "test: a packet of an interface with a resolution of times that cannot be (if_tsresol) at byte ";
    assert!(message.starts_with(reason), "{message}");
}
