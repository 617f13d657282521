//! A box between clients and a server, as a NAT is one: a port of its own for each address of a client,
//! to which it forwards 20 Mbit/s.

use narrows_testkit::Random;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Bytes per second that come from the server to an address.
const RATE: f64 = 2_500_000.0;

/// What happens to the path of one address of the client.
#[derive(Clone, Copy, Default)]
struct Fate {
    /// Probability that a datagram of the server is lost.
    loss: f64,
    /// Once so many bytes have come from the server, on all paths: nothing passes any more, either way,
    silence: Option<u64>,
    /// the box gives the path another port.
    rebind: Option<u64>,
}

#[derive(Default)]
struct State {
    fates: Mutex<HashMap<IpAddr, Fate>>,
    bytes: AtomicU64,
    lost: AtomicU64,
    rebound: AtomicU64,
    stop: AtomicBool,
}

impl State {
    fn fate(&self, client: IpAddr) -> Fate {
        self.fates.lock().unwrap().get(&client).copied().unwrap_or_default()
    }

    /// Does a datagram of this client's path get lost?
    fn loses(&self, client: IpAddr, throw: Option<f64>) -> bool {
        let fate = self.fate(client);
        let silent = fate.silence.is_some_and(|after| self.bytes.load(Ordering::Relaxed) >= after);
        let lost = silent || throw.is_some_and(|throw| throw <= fate.loss);
        self.lost.fetch_add(u64::from(lost), Ordering::Relaxed);
        lost
    }
}

/// The box. What is forwarded stops when it is dropped.
pub struct Middlebox {
    /// Where clients find the server.
    pub address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// A socket whose reads end soon.
fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    socket
}

/// A datagram, if one has come.
fn receive<'a>(socket: &UdpSocket, buffer: &'a mut [u8]) -> Option<(&'a [u8], SocketAddr)> {
    match socket.recv_from(buffer) {
        Ok((length, from)) => Some((&buffer[..length], from)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Err(error) => panic!("middlebox: {error}"),
    }
}

impl Middlebox {
    pub fn new(server: &str) -> Middlebox {
        let server: SocketAddr = server.parse().unwrap();
        let (front, state) = (socket(), Arc::new(State::default()));
        let address = front.local_addr().unwrap();
        let thread = {
            let state = state.clone();
            std::thread::spawn(move || forward(&front, server, &state))
        };
        Middlebox { address, state, thread: Some(thread) }
    }

    fn set(&self, client: &str, set: impl FnOnce(&mut Fate)) {
        let client = client.parse().unwrap();
        set(self.state.fates.lock().unwrap().entry(client).or_default());
    }

    pub fn lose(&self, client: &str, loss: f64) {
        self.set(client, |fate| fate.loss = loss);
    }

    pub fn silence(&self, client: &str, after: u64) {
        self.set(client, |fate| fate.silence = Some(after));
    }

    pub fn rebind(&self, client: &str, after: u64) {
        self.set(client, |fate| fate.rebind = Some(after));
    }

    pub fn lost(&self) -> u64 {
        self.state.lost.load(Ordering::Relaxed)
    }

    pub fn rebound(&self) -> u64 {
        self.state.rebound.load(Ordering::Relaxed)
    }
}

impl Drop for Middlebox {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        if !std::thread::panicking() {
            self.thread.take().unwrap().join().unwrap();
        }
    }
}

/// From clients to the server; a thread for each port forwards what comes back.
fn forward(front: &UdpSocket, server: SocketAddr, state: &Arc<State>) {
    let mut ports: HashMap<SocketAddr, Arc<UdpSocket>> = HashMap::new();
    let mut threads = Vec::new();
    let mut buffer = [0; 65536];
    while !state.stop.load(Ordering::Relaxed) {
        let Some((datagram, client)) = receive(front, &mut buffer) else { continue };
        let due = state.fate(client.ip()).rebind;
        if due.is_some_and(|after| state.bytes.load(Ordering::Relaxed) >= after) {
            state.fates.lock().unwrap().get_mut(&client.ip()).unwrap().rebind = None;
            // Its thread notices that the port is no longer in use.
            ports.remove(&client);
            state.rebound.fetch_add(1, Ordering::Relaxed);
        }
        let port = ports.entry(client).or_insert_with(|| {
            let port = Arc::new(socket());
            let back = (front.try_clone().unwrap(), Arc::downgrade(&port), state.clone());
            threads.push(std::thread::spawn(move || {
                let (front, port, state) = back;
                let mut random = Random(u64::from(client.port()));
                let (mut buffer, mut free) = ([0; 65536], Instant::now());
                while !state.stop.load(Ordering::Relaxed) {
                    let Some(port) = port.upgrade() else { return };
                    let Some((datagram, _)) = receive(&port, &mut buffer) else { continue };
                    state.bytes.fetch_add(datagram.len() as u64, Ordering::Relaxed);
                    free = free.max(Instant::now());
                    free += Duration::from_secs_f64(datagram.len() as f64 / RATE);
                    std::thread::sleep(free - Instant::now().min(free));
                    if !state.loses(client.ip(), Some(random.unit())) {
                        // A client that has closed its socket.
                        let _ = front.send_to(datagram, client);
                    }
                }
            }));
            port
        });
        if !state.loses(client.ip(), None) {
            port.send_to(datagram, server).unwrap();
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
