//! How fast captures are read: MB of capture per second, in both passes and with the detector.
//!
//! `cargo bench -p narrows-detect`. Each case runs several times; the quickest counts.

use std::sync::Arc;
use std::time::Instant;

use etherparse::{PacketBuilder, TcpOptionElement};
use narrows_detect::{DEFAULT, Detection, Error, Input, Limits, Source, detectors};
use narrows_laws::Params;

/// Bytes of a file.
const SIZE: usize = 256 << 20;
const RUNS: usize = 5;

/// A pcap of eight downloads as tcpdump has it on Ethernet, of each packet `snaplen` bytes at most;
/// and its packets.
fn file(snaplen: usize) -> (Vec<u8>, u64) {
    let mut bytes = Vec::with_capacity(SIZE + 4096);
    for word in [0xa1b2_3c4d, 2 | 4 << 16, 0, 0, snaplen as u32, 1] {
        bytes.extend(u32::to_le_bytes(word));
    }
    let packet = |forward: bool, flow: u8, seq: u32, ack: u32, stamps: (u32, u32)| {
        let (server, client) = (([10, 0, 0, 1], 443), ([10, 0, 1, flow], 50_000));
        let (from, to) = if forward { (server, client) } else { (client, server) };
        let mut bytes = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4(from.0, to.0, 64)
            .tcp(from.1, to.1, seq, 1000)
            .ack(ack)
            .options(&[
                TcpOptionElement::Noop,
                TcpOptionElement::Noop,
                TcpOptionElement::Timestamp(stamps.0, stamps.1),
            ])
            .expect("they fit")
            .write(&mut bytes, &vec![0; if forward { 1448 } else { 0 }])
            .expect("into memory");
        bytes
    };
    let (mut number, mut packets): (u64, u64) = (0, 0);
    while bytes.len() < SIZE {
        let (flow, round) = ((number % 8) as u8, (number / 8) as u32);
        // 100 us between packets, a queue that rises and falls, an acknowledgement for each two.
        let sent = number * 100_000;
        let time = sent + 20_000_000 + (round % 4000).abs_diff(2000) as u64 * 10_000;
        let stamps = ((sent / 1_000_000) as u32, (time / 1_000_000) as u32);
        let mut record = |packet: Vec<u8>| {
            packets += 1;
            let kept = packet.len().min(snaplen);
            let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
            for word in [seconds as u32, rest as u32, kept as u32, packet.len() as u32] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.extend(&packet[..kept]);
        };
        let seq = round.wrapping_mul(1448);
        record(packet(true, flow, seq, 1, stamps));
        if round % 2 == 1 {
            record(packet(false, flow, 1, seq.wrapping_add(1448), (stamps.1, stamps.0)));
        }
        number += 1;
    }
    (bytes, packets)
}

fn main() {
    println!("{:>8} {:>10} {:>12} {:>12}", "snaplen", "MB/s", "M packets/s", "survey MB/s");
    for snaplen in [65_535, 128, 96] {
        let (bytes, packets) = file(snaplen);
        let bytes: Arc<[u8]> = bytes.into();
        let mut best = [f64::INFINITY; 2];
        for _ in 0..RUNS {
            let start = Instant::now();
            let input = Input::bytes("bench", Arc::clone(&bytes));
            let source = Source::open(input, None, Limits::default()).expect("flows");
            let survey = start.elapsed().as_secs_f64();
            let params = Params::default();
            let detector = detectors([DEFAULT]).expect("known")[0];
            let detection = Detection::new(&source, detector, &params).expect("fit");
            detection.run::<Error>(&mut [], |_| Ok(())).expect("read once");
            let all = start.elapsed().as_secs_f64();
            best = [best[0].min(survey), best[1].min(all)];
        }
        let megabytes = bytes.len() as f64 / 1e6;
        println!(
            "{snaplen:>8} {:>10.0} {:>12.2} {:>12.0}",
            megabytes / best[1],
            packets as f64 / 1e6 / best[1],
            megabytes / best[0]
        );
    }
}
