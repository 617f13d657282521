//! Captures of MPTCP: which subflows are of one connection, and what is said where that is not known.

mod wire;

use narrows_detect::Recording;
use sha1::{Digest as _, Sha1};
use sha2::Sha256;
use wire::{MSS, Tcp, open, pcap};

const MS: i64 = 1_000_000;

/// The token of a key (RFC 6824 and RFC 8684, 3.2).
fn token(version: u8, key: u8) -> [u8; 4] {
    let key = [key; 8];
    let hash = if version == 0 { Sha1::digest(key).to_vec() } else { Sha256::digest(key).to_vec() };
    [hash[0], hash[1], hash[2], hash[3]]
}

fn hex(token: [u8; 4]) -> String {
    format!("{:08x}", u32::from_be_bytes(token))
}

/// The handshake of a connection's first subflow, with the keys `key` of the client and `key + 1` of the
/// server.
fn capable(client: u8, version: u8, key: u8, answered: bool) -> Vec<Tcp> {
    let (of_client, of_server) = ([key; 8], [key + 1; 8]);
    let begin = [version, 0x81];
    let asks = if version == 0 { [&begin[..], &of_client].concat() } else { begin.to_vec() };
    let answer = if answered { [&begin[..], &of_server].concat() } else { Vec::new() };
    let both = [&begin[..], &of_client, &of_server].concat();
    handshake(client, asks, answer, if answered { both } else { Vec::new() })
}

/// The handshake of a further subflow of a connection whose server has this token.
fn join(client: u8, token: [u8; 4]) -> Vec<Tcp> {
    let asks = [&[0x10, 2][..], &token, &[7; 4]].concat();
    handshake(
        client,
        asks,
        [&[0x10, 2][..], &[9; 12]].concat(),
        [&[0x10, 0][..], &[9; 20]].concat(),
    )
}

fn handshake(client: u8, asks: Vec<u8>, answer: Vec<u8>, third: Vec<u8>) -> Vec<Tcp> {
    let at = |ms: i64| (900 + i64::from(client) + ms) * MS;
    let stamps = |ms| Some(((at(ms) / MS) as u32, 1));
    let empty = |ms| Tcp { len: 0, ..Tcp::data(at(ms), client, 0, stamps(ms)) };
    let syn = Tcp { asks: true, mss: Some(1000), mptcp: asks, ..empty(0) };
    let back =
        Tcp { mss: Some(1000), seq: 0, mptcp: answer, ..Tcp::ack(at(20), client, 1, stamps(20)) };
    vec![syn, back, Tcp { seq: 1, mptcp: third, ..empty(40) }]
}

/// Data of 10 s with a delay that changes; the option of each segment.
fn data(client: u8, option: impl Fn(u32) -> Vec<u8>) -> Vec<Tcp> {
    let segment = |packet: u32| {
        let sent = (1_000 + i64::from(packet) * 10) * MS;
        let arrived = sent + (200 - i64::from(packet % 400)).abs() * MS / 5;
        let stamps = Some(((sent / MS) as u32, 1));
        Tcp { mptcp: option(packet), ..Tcp::data(arrived, client, 1 + packet * MSS, stamps) }
    };
    (0..1000).map(segment).collect()
}

/// A mapping of a length, with sequence numbers of 4 bytes.
fn dss(length: u16) -> Vec<u8> {
    [&[0x20, 4][..], &[3; 8], &length.to_be_bytes(), &[0, 0]].concat()
}

fn mapped(client: u8) -> Vec<Tcp> {
    data(client, |_| dss(1000))
}

fn recorded(parts: &[Vec<Tcp>]) -> Recording {
    let mut recording = open(pcap(&parts.concat())).recording().clone();
    recording.flows.sort();
    recording
}

fn name(client: u8, mptcp: &str) -> String {
    format!("10.0.0.{client}:100{client} > 10.0.1.1:443{mptcp}")
}

#[test]
fn connections_of_both_versions_beside_each_other_have_their_own_tokens() {
    let [zero, one] = [0, 1].map(|version| token(version, 12));
    let recording = recorded(&[
        capable(1, 0, 11, true),
        mapped(1),
        capable(2, 1, 11, true),
        mapped(2),
        join(3, zero),
        mapped(3),
        join(4, one),
        mapped(4),
    ]);
    let named = |client, token| name(client, &format!(" mptcp {}", hex(token)));
    assert_eq!(recording.flows, [named(1, zero), named(2, one), named(3, zero), named(4, one)]);
    assert!(
        !recording.notes.iter().any(|note| note.contains("MPTCP") || note.contains("connection"))
    );
}

#[test]
fn a_subflow_that_joined_before_the_first_was_captured_leaves_that_unknown() {
    let token = token(1, 12);
    let recording = recorded(&[mapped(1), join(2, token), mapped(2), join(3, token), mapped(3)]);
    let joined = format!(" mptcp {}", hex(token));
    assert_eq!(recording.flows, [name(1, " mptcp"), name(2, &joined), name(3, &joined)]);
    let note = format!(
        "of which connection is not known, as its handshake is not in the capture: {}",
        name(1, " mptcp")
    );
    assert!(recording.notes.contains(&note), "{:?}", recording.notes);
}

#[test]
fn a_connection_that_went_on_as_tcp_is_said_and_one_that_was_refused_is_plain() {
    let fallen = format!(" mptcp {}", hex(token(1, 12)));
    let note = format!("went on as plain TCP (fallback of MPTCP): {}", name(1, &fallen));
    let fail =
        |packet: u32| if packet == 400 { vec![0x60, 0, 1, 2, 3, 4, 5, 6, 7, 8] } else { dss(1000) };
    let endless = |packet: u32| dss(if packet == 400 { 0 } else { 1000 });
    let stripped = |packet: u32| if packet < 400 { dss(1000) } else { Vec::new() };
    for option in [&fail as &dyn Fn(u32) -> Vec<u8>, &endless, &stripped] {
        let recording = recorded(&[capable(1, 1, 11, true), data(1, option)]);
        assert_eq!(recording.flows, [name(1, &fallen)]);
        assert!(recording.notes.contains(&note), "{:?}", recording.notes);
    }
    // A mapping is for several segments.
    let some = data(1, |packet| if packet % 60 == 0 { dss(60_000) } else { Vec::new() });
    let recording = recorded(&[capable(1, 1, 11, true), some]);
    assert!(!recording.notes.iter().any(|note| note.contains("fallback")), "{recording:?}");

    let refused = recorded(&[capable(1, 1, 11, false), data(1, |_| Vec::new())]);
    assert_eq!(refused.flows, [name(1, "")]);
    assert!(!refused.notes.iter().any(|note| note.contains("MPTCP")), "{refused:?}");
    // The same ends again, now without MPTCP.
    let mut again = [capable(1, 1, 11, false), data(1, |_| Vec::new())].concat();
    again.iter_mut().for_each(|packet| packet.time += 20_000 * MS);
    let recording = recorded(&[capable(1, 1, 11, true), mapped(1), again]);
    assert_eq!(recording.flows, [name(1, "")]);
}
