//! The simulator's sources over real sockets. One thread writes what the applications of all flows
//! write, at the times they write it, and reads what arrives.
//!
//! What a source stops to write ([`Write::Stop`]) it withdraws as far as the kernel does not have it:
//! at most [`UNSENT`] bytes, where the simulator withdraws all that was never sent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use narrows_emu::Host;
use narrows_net::{MILLISECOND, Nanos};
use narrows_traffic::{Generator, Message, Messages, Source, Write};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::unistd::gettid;
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use crate::Error;
use crate::panics::catch;
use crate::scenario::FlowKind;

/// Where receivers listen; each has an address of its own.
pub const PORT: u16 = 5001;

/// Bytes that the kernel takes beyond what it has sent. They leave within 5 ms at 100 Mbit/s, a few
/// times as long as this thread may take to write more.
const UNSENT: u32 = 64 << 10;

/// Bytes written or read at once.
const PIECE: usize = 128 << 10;

/// Pieces read from one socket before others have their turn.
const PIECES: usize = 8;

/// How often the thread looks whether it is to stop.
const PATIENCE: Nanos = 50 * MILLISECOND;

/// The same for the poll, ms, should the timer fail.
const PATIENCE_MS: u8 = 50;

/// How often it looks whether a file that is there is acknowledged too, which no event reports.
const OFTEN: Nanos = MILLISECOND / 5;

/// Receive buffer of UDP, bytes: what arrives while this thread does something else.
pub const UDP_BUFFER: u64 = 4 << 20;

/// IPv4 and UDP: sizes of UDP packets are those on the wire.
const UDP_HEADERS: u32 = 28;

/// How far a flow is. Times are since the start of the run.
#[derive(Debug, Default)]
pub struct Progress {
    /// Payload that the receiver got in order; UDP: with headers.
    pub received: AtomicU64,
    /// When the receiver had the whole file.
    pub completed: OnceLock<Nanos>,
    /// When the sender had the acknowledgement of the whole file, at most 0.2 ms later.
    pub acknowledged: OnceLock<Nanos>,
    /// Only the thread of the sources has it before the end.
    messages: Mutex<Messages>,
}

impl Progress {
    /// The messages so far.
    pub fn messages(&self) -> Vec<Message> {
        self.lock().log().to_vec()
    }

    fn lock(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a flow is to do.
pub struct Application<'a> {
    /// Name of the flow.
    pub name: &'a str,
    /// What carries it.
    pub kind: FlowKind,
    /// What it writes, and when.
    pub generator: Generator,
    /// Its congestion control, as the kernel calls it; none of UDP.
    pub control: Option<String>,
    /// Host and address of the sender.
    pub from: (&'a Host, SocketAddr),
    /// Host and address of the receiver.
    pub to: (&'a Host, SocketAddr),
    /// Bytes written but not acknowledged that messages may come to.
    pub buffer: u64,
    /// Sizes of the socket buffers, if the scenario sets them.
    pub send_buffer: Option<u64>,
    /// Likewise.
    pub recv_buffer: Option<u64>,
    /// Largest UDP packet that arrives.
    pub mtu: u32,
}

/// The applications of all flows, whose sockets are open. Nothing is sent yet.
pub struct Sources {
    flows: Vec<Flow>,
    poll: Epoll,
    progress: Vec<Arc<Progress>>,
}

/// Sources at work. Dropped: they stop.
pub struct Working {
    thread: Option<JoinHandle<Result<Result<(), Error>, String>>>,
    stop: Arc<AtomicBool>,
    /// Number of the thread, 0 until it runs.
    id: Arc<AtomicI32>,
    progress: Vec<Arc<Progress>>,
}

/// Both ends of a flow.
struct Flow {
    place: String,
    kind: FlowKind,
    generator: Generator,
    to: SockAddr,
    mtu: u32,
    buffer: u64,
    sender: Socket,
    state: State,
    /// Bytes that the kernel took.
    written: u64,
    /// Bytes that the application has written; `u64::MAX` if it never runs out.
    limit: u64,
    /// Listens for as long as subflows may join.
    listener: Option<Socket>,
    receiver: Option<Socket>,
    progress: Arc<Progress>,
}

/// How far a sender is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It has not started.
    Closed,
    /// It waits for the other end.
    Connecting,
    /// It writes when there is something to write.
    Idle,
    /// It has more to write than the kernel took.
    Full,
}

/// What is waited for on a socket of a flow.
fn interest(flags: EpollFlags, flow: u64, which: u64) -> EpollEvent {
    EpollEvent::new(flags, flow * SOCKETS + which)
}

/// Keys of a flow's sockets in the poll.
const SENDER: u64 = 0;
const LISTENER: u64 = 1;
const RECEIVER: u64 = 2;
const SOCKETS: u64 = 3;
/// The clock.
const TIMER: u64 = u64::MAX;

impl Sources {
    /// Opens the sockets of all flows in the namespaces of their hosts; receivers listen. A flow
    /// without application has none.
    ///
    /// # Errors
    /// A congestion control that may not be used, or a socket that cannot be had.
    pub fn open<'a>(
        applications: impl Iterator<Item = Option<Application<'a>>>,
    ) -> Result<Sources, Error> {
        let poll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
            .map_err(|errno| Error::input("epoll", errno.desc()))?;
        let (mut flows, mut progress) = (Vec::new(), Vec::<Arc<Progress>>::new());
        for application in applications {
            progress.push(Arc::default());
            let Some(application) = application else { continue };
            let place = format!("flows.{}", application.name);
            let open = application.open(progress[progress.len() - 1].clone());
            flows.push(open.map_err(|error| Error::input(place, error))?);
        }
        for (index, flow) in (0..).zip(&flows) {
            let watch = |socket: &Option<Socket>, which| match socket {
                Some(socket) => poll.add(socket, interest(EpollFlags::EPOLLIN, index, which)),
                None => Ok(()),
            };
            watch(&flow.listener, LISTENER)
                .and_then(|()| watch(&flow.receiver, RECEIVER))
                .map_err(|errno| Error::input(&flow.place, errno.desc()))?;
        }
        Ok(Sources { flows, poll, progress })
    }

    /// Lets them work; the run began at `began`.
    pub fn start(self, began: Instant) -> Working {
        let Sources { flows, poll, progress } = self;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let id = Arc::new(AtomicI32::new(0));
        let own = id.clone();
        let work = move || {
            own.store(gettid().as_raw(), Ordering::Relaxed);
            catch(|| Loop { flows, poll, began }.run(&stopped))
        };
        let thread = std::thread::Builder::new().name("sources".into()).spawn(work);
        Working { thread: Some(thread.expect("a thread")), stop, id, progress }
    }
}

impl Working {
    /// How far a flow is.
    pub fn progress(&self, flow: usize) -> &Progress {
        &self.progress[flow]
    }

    /// What its thread has had of a CPU, see [`cpu`].
    pub fn cpu(&self) -> Option<Cpu> {
        cpu(self.id.load(Ordering::Relaxed))
    }

    /// It failed, and [`Working::stop`] returns the error.
    pub fn failed(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.is_finished())
    }

    /// Stops all sources, and resets their connections.
    ///
    /// # Errors
    /// What made it fail before; a panic as its words.
    pub fn stop(&mut self) -> Result<(), Error> {
        self.stop.store(true, Ordering::Relaxed);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let done = thread.join().unwrap_or_else(|_| Err("a panic without a message".into()));
        done.unwrap_or_else(|panic| Err(Error::input("sources", panic)))
    }
}

/// What a thread has had of a CPU since it began.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu {
    /// So long it ran.
    pub ran: Nanos,
    /// So long it had something to do and waited.
    pub waited: Nanos,
}

/// That of a thread of this process; none where the kernel does not account for it
/// (`CONFIG_SCHED_INFO`), or before it begins.
pub fn cpu(thread: i32) -> Option<Cpu> {
    let schedstat = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut times = schedstat.split_whitespace().map_while(|time| time.parse().ok());
    Some(Cpu { ran: times.next()?, waited: times.next()? })
}

impl Drop for Working {
    fn drop(&mut self) {
        // After another error, which is reported.
        self.stop().ok();
    }
}

impl Application<'_> {
    /// The sender's socket, from its own address.
    fn sender(&self) -> io::Result<Socket> {
        let socket = self.socket()?;
        if self.kind != FlowKind::Udp {
            socket.set_tcp_nodelay(true)?;
            // MPTCP has it from Linux 6.9.
            socket.set_tcp_notsent_lowat(UNSENT).ok();
        }
        if let Some(control) = &self.control {
            let set = socket.set_tcp_congestion(control.as_bytes());
            set.map_err(|error| context(error, &format!("congestion control {control}")))?;
        }
        if let Some(bytes) = self.send_buffer {
            setsockopt(&socket, sockopt::SndBufForce, &(bytes as usize))?;
        }
        socket.bind(&SocketAddr::new(self.from.1.ip(), 0).into())?;
        Ok(socket)
    }

    /// The socket that listens, or for UDP gets all.
    fn receiver(&self) -> io::Result<Socket> {
        let socket = self.socket()?;
        let buffer = match self.kind {
            FlowKind::Udp => Some(UDP_BUFFER),
            FlowKind::Tcp | FlowKind::Mptcp => self.recv_buffer,
        };
        if let Some(bytes) = buffer {
            // Connections have it from their listener.
            setsockopt(&socket, sockopt::RcvBufForce, &(bytes as usize))?;
        }
        socket.bind(&self.to.1.into())?;
        if self.kind != FlowKind::Udp {
            socket.listen(1)?;
        }
        Ok(socket)
    }

    fn socket(&self) -> io::Result<Socket> {
        let (kind, protocol) = match self.kind {
            FlowKind::Tcp => (Type::STREAM, Protocol::TCP),
            FlowKind::Mptcp => (Type::STREAM, Protocol::MPTCP),
            FlowKind::Udp => (Type::DGRAM, Protocol::UDP),
        };
        let socket = Socket::new(Domain::for_address(self.to.1), kind, Some(protocol))?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    /// Opens the sockets in the hosts.
    fn open(self, progress: Arc<Progress>) -> io::Result<Flow> {
        let sender = self.from.0.run(|| self.sender())??;
        let receiver = self.to.0.run(|| self.receiver())??;
        let (listener, receiver) = match self.kind {
            FlowKind::Udp => (None, Some(receiver)),
            FlowKind::Tcp | FlowKind::Mptcp => (Some(receiver), None),
        };
        Ok(Flow {
            place: format!("flows.{}", self.name),
            kind: self.kind,
            generator: self.generator,
            to: self.to.1.into(),
            mtu: self.mtu,
            buffer: self.buffer,
            sender,
            state: State::Closed,
            written: 0,
            limit: 0,
            listener,
            receiver,
            progress,
        })
    }
}

/// The thread of the sources.
struct Loop {
    flows: Vec<Flow>,
    poll: Epoll,
    began: Instant,
}

impl Loop {
    /// Works until stopped.
    fn run(mut self, stop: &AtomicBool) -> Result<(), Error> {
        let done = self.work(stop);
        // A closed connection would go on for a while and hold its namespace.
        for flow in &self.flows {
            reset(&flow.sender);
            flow.receiver.iter().for_each(reset);
        }
        done
    }

    fn work(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let poll = |errno: Errno| Error::input("sources", errno.desc());
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC).map_err(poll)?;
        self.poll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).map_err(poll)?;
        let mut wakes: BinaryHeap<Reverse<(Nanos, usize)>> = (0..)
            .zip(&self.flows)
            .map(|(index, flow)| Reverse((flow.generator.first_start(), index)))
            .collect();
        let mut piece = vec![0; PIECE];
        let mut events = [EpollEvent::empty(); 64];
        while !stop.load(Ordering::Relaxed) {
            let mut now = self.now();
            while let Some(&Reverse((due, index))) = wakes.peek().filter(|wake| wake.0.0 <= now) {
                wakes.pop();
                let next = self.wake(index, due, &piece)?;
                wakes.push(Reverse((next, index)));
                now = self.now();
            }
            let next = wakes.peek().map_or(u64::MAX, |wake| wake.0.0);
            let patience = if self.awaiting(now)? { OFTEN } else { PATIENCE };
            let rest = (next.saturating_sub(now)).clamp(1, patience);
            let rest = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(rest)));
            timer.set(rest, TimerSetTimeFlags::empty()).map_err(poll)?;
            let count = match self.poll.wait(&mut events, PATIENCE_MS) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(errno) => return Err(poll(errno)),
            };
            for event in events[..count].iter().filter(|event| event.data() != TIMER) {
                self.happen(event, &mut piece)?;
            }
        }
        Ok(())
    }

    fn now(&self) -> Nanos {
        self.began.elapsed().as_nanos() as Nanos
    }

    /// Notes which files are acknowledged by now. Is one not, that its receiver has?
    fn awaiting(&self, now: Nanos) -> Result<bool, Error> {
        let mut any = false;
        for flow in &self.flows {
            let Progress { completed, acknowledged, .. } = &*flow.progress;
            if completed.get().is_none() || acknowledged.get().is_some() {
                continue;
            }
            match unacknowledged(&flow.sender) {
                Ok(0) => drop(acknowledged.set(now)),
                Ok(_) => any = true,
                Err(error) => return Err(Error::input(&flow.place, error)),
            }
        }
        Ok(any)
    }

    /// An application's time has come. Returns when it comes again.
    fn wake(&mut self, index: usize, due: Nanos, piece: &[u8]) -> Result<Nanos, Error> {
        let flow = &mut self.flows[index];
        // Times are those of the simulator, also where this thread is late.
        let (write, next) = flow.generator.wake(due);
        let done = match write {
            Write::Start { total } => {
                flow.limit = total.unwrap_or(flow.limit);
                flow.start(index as u64, &self.poll)
            }
            Write::Stop { withdraws: true } => {
                flow.limit = flow.written;
                Ok(())
            }
            Write::Message(bytes) => flow.message(due, bytes, piece),
            Write::Stop { withdraws: false } | Write::Nothing => Ok(()),
        };
        done.and_then(|()| flow.flush(index as u64, &self.poll, piece))
            .map_err(|error| Error::input(&flow.place, error))?;
        Ok(next)
    }

    /// Something can be done with a socket.
    fn happen(&mut self, event: &EpollEvent, piece: &mut [u8]) -> Result<(), Error> {
        let (index, which) = (event.data() / SOCKETS, event.data() % SOCKETS);
        let now = self.now();
        let flow = &mut self.flows[index as usize];
        let done = match which {
            SENDER => {
                let closed = event.events().contains(EpollFlags::EPOLLHUP);
                flow.ready(index, closed, &self.poll, piece)
            }
            LISTENER => flow.accept(index, &self.poll),
            _ => flow.read(now, piece),
        };
        done.map_err(|error| Error::input(&flow.place, error))
    }
}

impl Flow {
    /// An interval of activity begins; the first opens the connection.
    fn start(&mut self, index: u64, poll: &Epoll) -> io::Result<()> {
        if self.kind == FlowKind::Udp || self.state != State::Closed {
            return Ok(());
        }
        match self.sender.connect(&self.to) {
            Err(error) if error.raw_os_error() == Some(Errno::EINPROGRESS as i32) => {}
            connected => connected.map_err(|error| context(error, "connect"))?,
        }
        self.state = State::Connecting;
        poll.add(&self.sender, interest(EpollFlags::EPOLLOUT, index, SENDER))?;
        Ok(())
    }

    /// The sender has connected, or has room, or failed.
    fn ready(&mut self, index: u64, closed: bool, poll: &Epoll, piece: &[u8]) -> io::Result<()> {
        let doing = if self.state == State::Connecting { "connect" } else { "send" };
        if let Some(error) = self.sender.take_error()? {
            return Err(context(error, doing));
        }
        if closed {
            return Err(io::Error::other("the connection was closed"));
        }
        if self.state == State::Connecting {
            self.state = State::Full;
        }
        self.flush(index, poll, piece)
    }

    /// The application writes a message: UDP sends it, and a connection takes it if it fits.
    fn message(&mut self, due: Nanos, bytes: u32, piece: &[u8]) -> io::Result<()> {
        if self.kind == FlowKind::Udp {
            if bytes <= self.mtu {
                let payload = &piece[..(bytes - UDP_HEADERS) as usize];
                match self.sender.send_to(payload, &self.to) {
                    // Not to be sent is to be lost.
                    Err(error) if is_full(&error) => {}
                    sent => drop(sent.map_err(|error| context(error, "send"))?),
                }
            }
            return Ok(());
        }
        let acknowledged = match self.state {
            State::Closed | State::Connecting => 0,
            State::Idle | State::Full => self.written - unacknowledged(&self.sender)?,
        };
        let fits = self.limit + u64::from(bytes) - acknowledged <= self.buffer;
        if fits {
            self.limit += u64::from(bytes);
        }
        if let Source::Messages { .. } = self.generator.source() {
            self.progress.lock().write(due, fits.then_some(self.limit));
        }
        Ok(())
    }

    /// Gives the kernel what waits, as much as it takes.
    fn flush(&mut self, index: u64, poll: &Epoll, piece: &[u8]) -> io::Result<()> {
        if !matches!(self.state, State::Idle | State::Full) {
            return Ok(());
        }
        let mut state = State::Idle;
        while self.written < self.limit {
            let length = (self.limit - self.written).min(piece.len() as u64);
            match self.sender.write(&piece[..length as usize]) {
                Ok(length) => self.written += length as u64,
                Err(error) if is_full(&error) => {
                    state = State::Full;
                    break;
                }
                Err(error) => return Err(context(error, "send")),
            }
        }
        if state != self.state {
            self.state = state;
            let wanted =
                if state == State::Full { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
            poll.modify(&self.sender, &mut interest(wanted, index, SENDER))?;
        }
        Ok(())
    }

    /// The connection is there.
    fn accept(&mut self, index: u64, poll: &Epoll) -> io::Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        let (receiver, _) = match listener.accept() {
            Err(error) if is_full(&error) => return Ok(()),
            accepted => accepted.map_err(|error| context(error, "accept"))?,
        };
        if self.receiver.is_some() {
            // A subflow that lost its options on the way looks like another connection; left there,
            // it would wake this thread for ever.
            return Ok(());
        }
        receiver.set_nonblocking(true)?;
        poll.add(&receiver, interest(EpollFlags::EPOLLIN, index, RECEIVER))?;
        self.receiver = Some(receiver);
        Ok(())
    }

    /// Something arrived.
    fn read(&mut self, now: Nanos, piece: &mut [u8]) -> io::Result<()> {
        let Some(receiver) = &mut self.receiver else { return Ok(()) };
        for _ in 0..PIECES {
            let length = match receiver.read(piece) {
                Ok(length) => length as u64,
                Err(error) if is_full(&error) => break,
                Err(error) => return Err(context(error, "receive")),
            };
            let headers = match self.kind {
                FlowKind::Udp => u64::from(UDP_HEADERS),
                FlowKind::Tcp | FlowKind::Mptcp if length == 0 => {
                    return Err(io::Error::other("the connection was closed"));
                }
                FlowKind::Tcp | FlowKind::Mptcp => 0,
            };
            let bytes = self.progress.received.fetch_add(length + headers, Ordering::Relaxed);
            match self.generator.source() {
                Source::File { bytes: all } if bytes + length >= all => {
                    self.progress.completed.get_or_init(|| now);
                }
                Source::Messages { .. } => self.progress.lock().deliver(bytes + length, now),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The same error, and what failed.
fn context(error: io::Error, doing: &str) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {doing}: {error}"))
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        || error.raw_os_error() == Some(Errno::ENOBUFS as i32)
}

nix::ioctl_read_bad!(
    /// `SIOCOUTQ`: bytes that the peer has not acknowledged, sent or not.
    siocoutq,
    nix::libc::TIOCOUTQ,
    nix::libc::c_int
);

fn unacknowledged(socket: &Socket) -> io::Result<u64> {
    let mut bytes = 0;
    // SAFETY: the descriptor is open, and the kernel writes one int.
    unsafe { siocoutq(socket.as_raw_fd(), &mut bytes) }?;
    Ok(bytes.try_into().unwrap_or(0))
}

/// Ends a connection at once, and notifies the peer, if there is one.
fn reset(socket: &Socket) {
    let nobody = SockAddrStorage::zeroed();
    let length = nobody.size_of();
    // SAFETY: zeros are an address of the family AF_UNSPEC, of this length.
    let nobody = unsafe { SockAddr::new(nobody, length) };
    socket.connect(&nobody).ok();
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpListener};

    use narrows_net::SECOND;
    use narrows_traffic::ConnId;
    use narrows_traffic::FlowId;
    use nix::time::{ClockId, clock_gettime};

    use super::*;

    /// Sources of one TCP flow to `to`, which the test has in its own hands.
    fn sources(to: SocketAddr, source: Source) -> Sources {
        let sender = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        sender.set_nonblocking(true).unwrap();
        let active = vec![(0, 60 * SECOND)];
        let flow = Flow {
            place: "flows.a".into(),
            kind: FlowKind::Tcp,
            generator: Generator::new(1, FlowId::Connection(ConnId(0)), source, active),
            to: to.into(),
            mtu: 1500,
            buffer: 1 << 20,
            sender,
            state: State::Closed,
            written: 0,
            limit: 0,
            listener: None,
            receiver: None,
            progress: Arc::default(),
        };
        let progress = vec![flow.progress.clone()];
        let poll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).unwrap();
        Sources { flows: vec![flow], poll, progress }
    }

    #[test]
    fn nothing_to_do_costs_no_time() {
        let listener = Socket::from(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        listener.set_nonblocking(true).unwrap();
        let to = listener.local_addr().unwrap().as_socket().unwrap();
        let mut sources = sources(to, Source::File { bytes: 1000 });
        sources.poll.add(&listener, interest(EpollFlags::EPOLLIN, 0, LISTENER)).unwrap();
        sources.flows[0].listener = Some(listener);
        let Sources { flows, poll, progress } = sources;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let cpu = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
        let work = move || {
            let before = cpu();
            Loop { flows, poll, began: Instant::now() }.run(&stopped).unwrap();
            cpu() - before
        };
        let thread = std::thread::spawn(work);
        // Beside the flow's own connection there is another.
        std::thread::sleep(Duration::from_millis(200));
        let _other = std::net::TcpStream::connect(to).unwrap();
        std::thread::sleep(Duration::from_millis(500));
        stop.store(true, Ordering::Relaxed);
        let spent = thread.join().unwrap();
        assert_eq!(progress[0].received.load(Ordering::Relaxed), 1000);
        assert!(progress[0].completed.get().is_some());
        assert!(progress[0].acknowledged.get() >= progress[0].completed.get());
        assert!(spent < Duration::from_millis(100), "{spent:?}");
    }

    /// Why sources that go on for a minute have ended.
    fn end(mut working: Working) -> String {
        let end = Instant::now() + Duration::from_secs(10);
        while !working.failed() {
            assert!(Instant::now() < end, "they go on");
            std::thread::sleep(Duration::from_millis(5));
        }
        working.stop().unwrap_err().to_string()
    }

    #[test]
    fn a_connection_that_fails_is_reported_whether_it_has_something_to_send_or_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let to = listener.local_addr().unwrap();
        for (source, bytes) in [(Source::Greedy, 1 << 20), (Source::File { bytes: 1000 }, 1000)] {
            let working = sources(to, source).start(Instant::now());
            let mut peer = Socket::from(listener.accept().unwrap().0);
            peer.read_exact(&mut vec![0; bytes]).unwrap();
            assert!(!working.failed());
            peer.set_linger(Some(Duration::ZERO)).unwrap();
            drop(peer);
            let message = end(working);
            assert!(message.starts_with("flows.a: cannot send: Connection reset"), "{message}");
        }
        drop(listener);
        let message = end(sources(to, Source::Greedy).start(Instant::now()));
        assert!(message.starts_with("flows.a: cannot connect: Connection refused"), "{message}");
    }
}
