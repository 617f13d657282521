//! Connections that carry numbered random bytes, each compared where it arrives: a stream that was
//! cut, doubled or reordered is reported at its first wrong byte.
//!
//! The client sends a job, three numbers of 8 bytes: a seed, bytes up, bytes down. The bytes up
//! follow; the server answers with how many of them were right, and sends the bytes down. Then the
//! next job, or the end.

use crate::Random;
use narrows_netns::Namespace;
use nix::errno::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than any test leaves a connection without a path.
const STALL: Duration = Duration::from_secs(40);

/// MPTCP or plain TCP, as an application asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `IPPROTO_MPTCP`.
    Mptcp,
    /// `IPPROTO_TCP`.
    Tcp,
}

fn socket(address: SocketAddr, kind: Kind) -> io::Result<Socket> {
    let protocol = if kind == Kind::Mptcp { Protocol::MPTCP } else { Protocol::TCP };
    Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
}

/// Listens in this thread's namespace.
pub fn listen(address: SocketAddr, kind: Kind) -> io::Result<TcpListener> {
    let socket = socket(address, kind)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    Ok(socket.into())
}

/// Connects from this thread's namespace.
pub fn connect(address: SocketAddr, kind: Kind) -> io::Result<TcpStream> {
    let socket = socket(address, kind)?;
    socket.connect(&address.into())?;
    patient(socket.into())
}

/// Begins to connect from this thread's namespace, and does not wait. What is sent on it does.
pub fn begin_connect(address: SocketAddr, kind: Kind) -> io::Result<TcpStream> {
    let socket = socket(address, kind)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(Errno::EINPROGRESS as i32) => return Err(error),
        _ => {}
    }
    socket.set_nonblocking(false)?;
    patient(socket.into())
}

fn patient(stream: TcpStream) -> io::Result<TcpStream> {
    stream.set_read_timeout(Some(STALL))?;
    stream.set_write_timeout(Some(STALL))?;
    Ok(stream)
}

/// Sets the congestion control of a connection, as an application does.
pub fn set_control(stream: &TcpStream, name: &str) -> io::Result<()> {
    socket2::SockRef::from(stream).set_tcp_congestion(name.as_bytes())
}

/// What a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct Job {
    /// What the bytes are made of.
    pub seed: u64,
    /// Bytes to the server.
    pub up: u64,
    /// Bytes to the client.
    pub down: u64,
}

const PIECE: usize = 64 * 1024;

/// Bytes of a stream from `at` on, which is a multiple of [`PIECE`]: each piece has a seed of its own.
fn fill(piece: &mut [u8], seed: u64, at: u64) {
    let mut random = Random(seed.wrapping_add(at));
    for word in piece.chunks_mut(8) {
        word.copy_from_slice(&random.next().to_le_bytes()[..word.len()]);
    }
}

fn send(mut to: &TcpStream, seed: u64, length: u64) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    let mut at = 0;
    while at < length {
        let now = PIECE.min((length - at) as usize);
        fill(&mut piece[..now], seed, at);
        to.write_all(&piece[..now])?;
        at += now as u64;
    }
    Ok(())
}

/// Returns when all have come and are right; `progress` counts them.
fn receive(mut from: &TcpStream, seed: u64, length: u64, progress: &AtomicU64) -> io::Result<()> {
    let (mut piece, mut right) = (vec![0; PIECE], vec![0; PIECE]);
    let mut at = 0;
    while at < length {
        let now = PIECE.min((length - at) as usize);
        from.read_exact(&mut piece[..now])?;
        fill(&mut right[..now], seed, at);
        if piece[..now] != right[..now] {
            let wrong = (0..now).find(|&n| piece[n] != right[n]).expect("they differ");
            let place = at + wrong as u64;
            return Err(io::Error::other(format!("byte {place} of {length} is wrong")));
        }
        at += now as u64;
        progress.fetch_add(now as u64, Ordering::Relaxed);
    }
    Ok(())
}

/// The client's side of a job.
pub fn ask(stream: &TcpStream, job: Job, progress: &AtomicU64) -> io::Result<()> {
    let mut both = stream;
    both.write_all(&[job.seed, job.up, job.down].map(u64::to_le_bytes).concat())?;
    send(stream, job.seed, job.up)?;
    progress.fetch_add(job.up, Ordering::Relaxed);
    let mut right = [0; 8];
    both.read_exact(&mut right)?;
    if u64::from_le_bytes(right) != job.up {
        return Err(io::Error::other("the server did not get what was sent"));
    }
    receive(stream, !job.seed, job.down, progress)
}

/// No more jobs: returns when the server has closed, too.
pub fn finish(mut stream: &TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::other("more bytes than were asked for")),
    }
}

/// The server's side of a connection: jobs until the client ends it.
fn serve(mut stream: &TcpStream, progress: &AtomicU64) -> io::Result<()> {
    loop {
        let mut job = [0; 24];
        match stream.read(&mut job[..1])? {
            // The server keeps another descriptor of the socket.
            0 => return stream.shutdown(Shutdown::Write),
            _ => stream.read_exact(&mut job[1..])?,
        }
        let word = |n: usize| u64::from_le_bytes(job[8 * n..8 * n + 8].try_into().unwrap());
        let (seed, up, down) = (word(0), word(1), word(2));
        receive(stream, seed, up, progress)?;
        stream.write_all(&up.to_le_bytes())?;
        send(stream, !seed, down)?;
    }
}

/// A server of this process, a thread for each connection. Dropped: it listens no more.
pub struct Server {
    stop: Arc<AtomicBool>,
    /// The connections it accepted, by age.
    pub accepted: Arc<Mutex<Vec<TcpStream>>>,
    accepting: Option<JoinHandle<Vec<io::Error>>>,
}

impl Server {
    /// Listens in `host`.
    pub fn start(host: &Namespace, address: SocketAddr, kind: Kind) -> Server {
        let listener = host.run(|| listen(address, kind)).unwrap();
        Server::on(listener.unwrap_or_else(|error| panic!("listen on {address}: {error}")))
    }

    /// Serves an open listener.
    pub fn on(listener: TcpListener) -> Server {
        let stop = Arc::new(AtomicBool::new(false));
        let accepted = Arc::new(Mutex::new(Vec::new()));
        listener.set_nonblocking(true).unwrap();
        let (stopped, kept) = (stop.clone(), accepted.clone());
        let accepting = std::thread::spawn(move || accept(&listener, &stopped, &kept));
        Server { stop, accepted, accepting: Some(accepting) }
    }

    /// Waits for its connections to end, and returns those that failed.
    pub fn stop(mut self) -> Vec<io::Error> {
        self.stop.store(true, Ordering::Relaxed);
        self.accepted.lock().unwrap().clear();
        self.accepting.take().expect("not stopped yet").join().expect("the server runs")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if std::thread::panicking() {
            for stream in self.accepted.lock().iter().flat_map(|accepted| accepted.iter()) {
                stream.shutdown(Shutdown::Both).ok();
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    stop: &AtomicBool,
    accepted: &Mutex<Vec<TcpStream>>,
) -> Vec<io::Error> {
    let mut serving: Vec<JoinHandle<io::Result<()>>> = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            Err(error) => {
                serving.push(std::thread::spawn(move || Err(error)));
                continue;
            }
        };
        stream.set_nonblocking(false).unwrap();
        let kept = stream.try_clone().unwrap();
        accepted.lock().unwrap().push(kept);
        let serve = move || serve(&patient(stream)?, &AtomicU64::new(0));
        serving.push(std::thread::spawn(serve));
    }
    serving.into_iter().filter_map(|thread| thread.join().expect("serve").err()).collect()
}

/// A connection that works until it is stopped.
pub struct Traffic {
    /// Bytes that arrived, and were right, in either direction.
    pub progress: Arc<AtomicU64>,
    /// For socket options.
    pub stream: TcpStream,
    stop: Arc<AtomicBool>,
    working: Option<JoinHandle<io::Result<()>>>,
}

impl Traffic {
    /// Connects from `host` and starts with jobs of `up` and `down` bytes, one after the other.
    pub fn start(host: &Namespace, address: SocketAddr, kind: Kind, up: u64, down: u64) -> Traffic {
        let stream = host.run(|| connect(address, kind)).unwrap();
        let stream = stream.unwrap_or_else(|error| panic!("connect to {address}: {error}"));
        let (progress, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let work = {
            let (progress, stop) = (progress.clone(), stop.clone());
            let stream = stream.try_clone().unwrap();
            move || {
                let mut seed = u64::from(stream.local_addr()?.port());
                while !stop.load(Ordering::Relaxed) {
                    ask(&stream, Job { seed, up, down }, &progress)?;
                    seed = seed.wrapping_add(1 << 32);
                }
                finish(&stream)
            }
        };
        Traffic { progress, stream, stop, working: Some(std::thread::spawn(work)) }
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.progress.load(Ordering::Relaxed)
    }

    /// Ends the job at hand and the connection; panics if any of it failed. Bytes in all.
    pub fn stop(mut self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        let working = self.working.take().expect("not stopped yet");
        let end = working.join().expect("traffic");
        let bytes = self.bytes();
        end.unwrap_or_else(|error| panic!("a transfer failed after {bytes} bytes: {error}"));
        bytes
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        // After a panic only: nobody waits for it.
        if self.working.is_some() {
            self.stop.store(true, Ordering::Relaxed);
            self.stream.shutdown(Shutdown::Both).ok();
        }
    }
}
