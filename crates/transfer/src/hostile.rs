//! What a server makes of clients that mean no good, and a client of such servers.

use crate::plain;
use crate::wire::{Reply, Request};
use crate::{Error, Get, MAX_CONNECTIONS, MAX_FROM_ONE, Server, Trust, Url, get, tls, transport};
use narrows_testkit::Random;
use noq::rustls::Side;
use noq::rustls::crypto::ring;
use noq::rustls::quic::Version;
use noq::{Connection, Endpoint, VarInt};
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const CONTENT: &str = "content";

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A server of one small file.
struct Served {
    home: TempDir,
    url: Url,
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    running: JoinHandle<()>,
}

impl Served {
    fn new() -> Served {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("served")).unwrap();
        fs::write(home.path().join("served/file"), CONTENT).unwrap();
        let server = Server::new(&home.path().join("served"), anywhere(), "lia").unwrap();
        let (url, address) = (server.urls("file").unwrap().remove(0), server.address().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let running = {
            let stop = stop.clone();
            tokio::spawn(async move { server.run(&stop, |_| ()).await.unwrap() })
        };
        Served { home, url, address, stop, running }
    }

    /// A connection that asks for the control `control`.
    async fn connect(&self, control: Option<&str>) -> (Endpoint, Result<Connection, String>) {
        self.connect_by(tls::protocols(control)).await
    }

    async fn connect_by(&self, protocols: Vec<Vec<u8>>) -> (Endpoint, Result<Connection, String>) {
        self.connect_from([127, 0, 0, 1], protocols).await
    }

    async fn connect_from(
        &self,
        address: [u8; 4],
        protocols: Vec<Vec<u8>>,
    ) -> (Endpoint, Result<Connection, String>) {
        let endpoint = Endpoint::client(SocketAddr::from((address, 0))).unwrap();
        let (mut config, _) = tls::client(self.url.fingerprint.unwrap(), protocols);
        config.transport_config(Arc::new(transport()));
        let connecting = endpoint.connect_with(config, self.address, tls::NAME).unwrap();
        (endpoint, connecting.await.map_err(|error| error.to_string()))
    }

    /// It still serves.
    async fn serves(&self) {
        let output = self.home.path().join("got");
        let request = request(&self.url, &output);
        get(&request, &AtomicBool::new(false), |_| ()).await.unwrap();
        assert_eq!(fs::read_to_string(&output).unwrap(), CONTENT);
        fs::remove_file(&output).unwrap();
    }

    async fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.running.await.unwrap();
    }
}

fn request(url: &Url, output: &std::path::Path) -> Get {
    Get {
        url: url.clone(),
        paths: vec![],
        control: None,
        trust: Trust::System,
        output: output.into(),
    }
}

/// What a stream on which `bytes` were sent answers; none if it was reset or the connection ended.
async fn answer(connection: &Connection, bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut send, mut recv) = connection.open_bi().await.ok()?;
    send.write_all(bytes).await.ok()?;
    let _ = send.finish();
    recv.read_to_end(1 << 20).await.ok()
}

#[test]
fn clients_of_other_stacks_get_whole_files() {
    runtime().block_on(async {
        let served = Served::new();
        fs::write(served.home.path().join("secret"), "secret").unwrap();
        let large: Vec<u8> = (0..700_000_u32).map(|at| (at / 7) as u8).collect();
        fs::write(served.home.path().join("served/large"), &large).unwrap();
        let (endpoint, connection) = served.connect_by(vec![plain::PROTOCOL.into()]).await;
        let connection = connection.unwrap();
        let content = answer(&connection, b"GET /file\r\n").await;
        assert_eq!(content.as_deref(), Some(CONTENT.as_bytes()));
        assert_eq!(answer(&connection, b"GET /large").await, Some(large));
        for refused in ["GET /../secret\r\n", "GET /none", "GET /", "PUT /file", "{}", ""] {
            assert_eq!(answer(&connection, refused.as_bytes()).await, None, "{refused}");
        }
        // Refused requests end no connection, until there are too many.
        assert!(answer(&connection, b"GET /file\n").await.is_some());
        for _ in 0..20 {
            answer(&connection, b"GET /none").await;
        }
        timeout(Duration::from_secs(30), connection.closed()).await.expect("sent away");
        connection.close(VarInt::from_u32(0), b"");
        endpoint.wait_idle().await;
        served.end().await;
    });
}

/// A client's first packet with these bytes for TLS. Its protection keeps nobody out, as its keys come
/// from the packet itself (RFC 9001, section 5.2).
fn initial(random: &mut Random, hello: &[u8]) -> Vec<u8> {
    let suite = ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().unwrap();
    let id = random.next().to_le_bytes();
    let keys = suite.quic_suite().unwrap().keys(&id, Side::Client, Version::V1).local;
    let varint = |value: usize| (0x4000 | value as u16).to_be_bytes();
    // A CRYPTO frame, and PADDING to 1200 bytes.
    let mut payload = [&[6, 0], &varint(hello.len())[..], hello].concat();
    payload.resize(1154, 0);
    // Type, version, connection ids, no token, length, packet number.
    let mut header = [&[0xc3, 0, 0, 0, 1, 8][..], &id, &[8], &id, &[0]].concat();
    header.extend(varint(4 + payload.len() + 16));
    header.extend([0; 4]);
    let tag = keys.packet.encrypt_in_place(0, &header, &mut payload).unwrap();
    payload.extend(tag.as_ref());
    let (first, rest) = header.split_first_mut().unwrap();
    let number = rest.len() - 4;
    keys.header.encrypt_in_place(&payload[..16], first, &mut rest[number..]).unwrap();
    header.extend(payload);
    header
}

/// A ClientHello with random names of protocols (RFC 8446, section 4.1.2; RFC 7301), now and then cut.
fn hello(random: &mut Random) -> Vec<u8> {
    let bytes = |random: &mut Random, length: u64| -> Vec<u8> {
        (0..length).map(|_| random.next() as u8).collect()
    };
    let mut names = Vec::new();
    for _ in 0..random.below(4) {
        let length = random.below(40);
        // Some lengths are wrong.
        names.push((length + u64::from(random.below(8) == 0)) as u8);
        names.extend(b"cc=".iter().take(length as usize));
        names.extend(bytes(random, length.saturating_sub(3)));
    }
    let long = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let alpn = [&[0, 16][..], &long(&long(&names))].concat();
    let mut body = [&[3, 3][..], &bytes(random, 32), &[0, 0, 2, 0x13, 1, 1, 0]].concat();
    body.extend(long(&alpn));
    let mut hello = [&[1, 0][..], &long(&body)].concat();
    if random.below(4) == 0 {
        hello.truncate(random.below(hello.len() as u64) as usize);
    }
    hello
}

#[test]
fn garbage_in_first_packets_does_not_stop_a_server() {
    runtime().block_on(async {
        let served = Served::new();
        // Handshakes that are never finished take the part of their address.
        let socket = UdpSocket::bind(("127.0.0.2", 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let (mut random, mut answers) = (Random(3), 0);
        for round in 0..1000 {
            let hello = match round % 2 {
                0 => hello(&mut random),
                _ => (0..random.below(500)).map(|_| random.next() as u8).collect(),
            };
            socket.send_to(&initial(&mut random, &hello), served.address).unwrap();
            // As fast as the server reads: what it does not read tests nothing.
            tokio::time::sleep(Duration::from_millis(1)).await;
            while socket.recv(&mut [0; 1500]).is_ok() {
                answers += 1;
            }
        }
        assert!(answers > 500, "{answers} answers");
        served.serves().await;
        served.end().await;
    });
}

#[test]
fn garbage_in_datagrams_does_not_stop_a_server() {
    runtime().block_on(async {
        let served = Served::new();
        let socket = UdpSocket::bind(anywhere()).unwrap();
        let mut random = Random(1);
        for round in 0..20_000 {
            if round % 100 == 0 {
                // A burst that fills the receive buffer would not be read.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let length = 1 + random.below(1500) as usize;
            let mut datagram: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            // Every other one as a packet of a handshake of version 1: RFC 9000, section 17.2.
            if round % 2 == 0 && length > 32 {
                datagram[0] = 0xc0 | datagram[0] & 0x3f;
                datagram[1..5].copy_from_slice(&[0, 0, 0, 1]);
                (datagram[5], datagram[14]) = (8, 8);
            }
            // The kernel may say that its queue is full.
            let _ = socket.send_to(&datagram, served.address);
        }
        served.serves().await;
        served.end().await;
    });
}

#[test]
fn garbage_in_requests_ends_only_its_connection() {
    runtime().block_on(async {
        let served = Served::new();
        let range = Request::Range { offset: 0, length: 1 }.bytes();
        let long = vec![b'['; 100_000];
        let mut all: Vec<Vec<u8>> = vec![vec![], b"{".into(), range, long];
        let mut random = Random(2);
        for _ in 0..50 {
            let length = random.below(200) as usize;
            all.push((0..length).map(|_| random.next() as u8).collect());
        }
        for bytes in all {
            let (_endpoint, connection) = served.connect(None).await;
            let connection = connection.unwrap();
            // Reset, ended with the connection, or empty.
            assert_eq!(answer(&connection, &bytes).await.unwrap_or_default(), [0; 0], "{bytes:?}");
            timeout(Duration::from_secs(30), connection.closed()).await.expect("sent away");
        }
        served.serves().await;
        served.end().await;
    });
}

#[test]
fn only_what_the_file_has_is_sent() {
    runtime().block_on(async {
        let served = Served::new();
        let (_endpoint, connection) = served.connect(None).await;
        let connection = connection.unwrap();
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(&Request::File("file".into()).bytes()).await.unwrap();
        send.finish().unwrap();
        recv.read_chunk(1).await.unwrap();
        for (offset, length, expected) in [
            (0, 7, Some("content")),
            (3, 2, Some("te")),
            (7, 0, Some("")),
            (0, 8, None),
            (8, 0, None),
        ] {
            let bytes = Request::Range { offset, length }.bytes();
            let got = answer(&connection, &bytes).await;
            assert_eq!(got.as_deref(), expected.map(str::as_bytes), "{offset}, {length}");
        }
        // Another file is no range.
        assert_eq!(answer(&connection, &Request::File("file".into()).bytes()).await, None);
        served.end().await;
    });
}

#[test]
fn a_control_that_the_server_does_not_know_is_refused_by_its_name() {
    runtime().block_on(async {
        let served = Served::new();
        for (control, why) in [
            ("later+better", "unknown law 'later'"),
            ("mptcp-sbd", "signal receiver-us: a one-way"),
        ] {
            let (_endpoint, connection) = served.connect(Some(control)).await;
            let closed = timeout(Duration::from_secs(30), connection.unwrap().closed()).await;
            let closed = closed.unwrap().to_string();
            assert!(closed.contains(why), "{closed}");
        }
        served.end().await;
    });
}

#[test]
fn connections_and_streams_are_bounded() {
    runtime().block_on(async {
        let served = Served::new();
        let mut held = Vec::new();
        let connect = |at: usize| {
            let address = [127, 0, 0, 1 + (at / MAX_FROM_ONE) as u8];
            served.connect_from(address, tls::protocols(None))
        };
        for at in 0..MAX_CONNECTIONS {
            let (endpoint, connection) = connect(at).await;
            let connection = connection.unwrap();
            // A client that has asked for a file keeps its place for a minute.
            let (mut send, recv) = connection.open_bi().await.unwrap();
            send.write_all(&Request::File("file".into()).bytes()).await.unwrap();
            send.finish().unwrap();
            held.push((endpoint, connection, recv));
            // One address has its part, though there are places.
            if at + 1 == MAX_FROM_ONE {
                assert!(served.connect(None).await.1.unwrap_err().contains("refused"));
            }
        }
        let (_endpoint, refused) = connect(MAX_CONNECTIONS).await;
        assert!(refused.unwrap_err().contains("refused"));
        // Streams beyond the limit wait for others to end.
        let connection = &held[0].1;
        let mut streams = Vec::new();
        while let Ok(stream) = timeout(Duration::from_millis(500), connection.open_bi()).await {
            streams.push(stream.unwrap());
        }
        // The first has the reports.
        assert_eq!(streams.len(), usize::from(crate::STREAMS));
        // One leaves, and there is a place.
        held[0].1.close(VarInt::from_u32(0), b"");
        let begin = std::time::Instant::now();
        while served.connect(None).await.1.is_err() {
            assert!(begin.elapsed() < Duration::from_secs(30), "no place became free");
        }
        served.end().await;
    });
}

/// A server that answers each request with what `reply` gives for it; the first stream stays open.
async fn lying(reply: impl Fn(Request) -> Vec<u8>) -> (Url, impl Future<Output = ()>) {
    let (mut config, fingerprint) = tls::server();
    config.transport_config(Arc::new(transport()));
    let endpoint = Endpoint::server(config, anywhere()).unwrap();
    let server = endpoint.local_addr().unwrap().to_string();
    let url = Url { server, name: "file".into(), fingerprint: Some(fingerprint) };
    let serve = async move {
        let connection = endpoint.accept().await.unwrap().await.unwrap();
        let mut open = Vec::new();
        while let Ok((mut send, mut recv)) = connection.accept_bi().await {
            // The client leaves as soon as it knows enough.
            let Ok(request) = recv.read_to_end(9000).await else { break };
            let request = Request::parse(&request).unwrap();
            let first = matches!(request, Request::File(_));
            if send.write_all(&reply(request)).await.is_err() {
                break;
            }
            if first {
                open.push(send);
            } else {
                send.finish().unwrap();
            }
        }
    };
    (url, serve)
}

/// Why a client refuses these answers to its first request and to the one of a range; nothing may be left.
fn refuses(first: &[Reply], range: &str) -> String {
    let first: Vec<u8> = first.iter().flat_map(Reply::line).collect();
    let range = range.as_bytes().to_vec();
    runtime().block_on(async {
        let (url, serve) = lying(move |request| match request {
            Request::File(_) => first.clone(),
            Request::Range { .. } => range.clone(),
        })
        .await;
        let home = tempfile::tempdir().unwrap();
        let output = home.path().join("got");
        let (request, stop) = (request(&url, &output), AtomicBool::new(false));
        let serving = async {
            serve.await;
            std::future::pending::<()>().await;
        };
        let getting = get(&request, &stop, |_| ());
        let error = both(getting, serving).await.unwrap_err();
        assert!(matches!(error, Error::Failed(..)));
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "something was left");
        error.to_string()
    })
}

/// What the first leads to, while the second runs beside it.
async fn both<T>(first: impl Future<Output = T>, second: impl Future<Output = ()>) -> T {
    let (mut first, mut second) = (std::pin::pin!(first), std::pin::pin!(second));
    std::future::poll_fn(|context| {
        let _ = second.as_mut().poll(context);
        first.as_mut().poll(context)
    })
    .await
}

#[test]
fn a_client_keeps_nothing_of_a_server_that_lies() {
    let file = Reply::File { size: 4, control: "reno".into() };
    let hash = Reply::Sha256("00".repeat(32));
    let line = refuses(&[file.clone(), hash.clone()], "abcd");
    assert!(line.contains("not the server's"), "{line}");
    // Of abcd, in the wrong case: it is not what sha256sum prints.
    let right = "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589";
    let line = refuses(&[file.clone(), Reply::Sha256(right.to_uppercase())], "abcd");
    assert!(line.contains("not the server's"), "{line}");
    let line = refuses(&[file.clone(), hash.clone()], "abc");
    assert!(line.contains("less than was asked for"), "{line}");
    let line = refuses(&[file.clone(), hash.clone()], "abcde");
    assert!(line.contains("more than was asked for"), "{line}");
    assert!(refuses(&[hash], "").contains("not the answer that was expected"));
    assert!(refuses(&[file.clone(), file.clone()], "abcd").contains("not expected here"));
    let why = "no\u{1b}[2J\u{202e}\nfile".to_owned();
    let line = refuses(&[Reply::Refused(why.clone())], "");
    assert!(line.ends_with("no\\u001b[2J\\u202e\\nfile"), "{line}");
    // Later, too.
    let line = refuses(&[file.clone(), Reply::Refused(why)], "abcd");
    assert!(line.ends_with("no\\u001b[2J\\u202e\\nfile"), "{line}");
    let why = "x".repeat(3 * crate::wire::MAX_REPLY);
    assert!(refuses(&[Reply::Refused(why)], "").contains("a line of more than"));
}

#[test]
fn a_client_does_not_wait_for_ever_for_a_hash() {
    let file = Reply::File { size: 4, control: "reno".into() };
    let line = refuses(&[file], "abcd");
    assert!(line.ends_with("it has sent no SHA-256 within 10 s"), "{line}");
}

#[test]
fn a_client_that_asks_for_a_control_takes_no_other() {
    runtime().block_on(async {
        let file = Reply::File { size: 4, control: "reno".into() };
        let (url, serve) = lying(move |_| file.line()).await;
        let home = tempfile::tempdir().unwrap();
        let output = home.path().join("got");
        let request = Get { control: Some("lia".into()), ..request(&url, &output) };
        let stop = AtomicBool::new(false);
        let serving = async {
            serve.await;
            std::future::pending::<()>().await;
        };
        let error = both(get(&request, &stop, |_| ()), serving).await.unwrap_err();
        assert!(error.to_string().contains("it uses reno, not lia"), "{error}");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "something was left");
    });
}
