//! What the two end points of a connection do: connect, open paths, send and receive.

use std::net::{IpAddr, SocketAddr};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use narrows_net::Nanos;
use narrows_quic::{Factory, tend};
use narrows_quic_sim::{NAME, Side};
use narrows_traffic::{Generator, Source, Write};
use noq::{
    ClientConfig, Connection, Endpoint, FourTuple, PathId, PathStatus, RecvStream, SendStream,
};
use tokio::sync::watch;
use tokio::task::{JoinSet, yield_now};
use tokio::time::sleep;

use crate::hosts::kernel::Progress;

/// How often the client looks whether a path is to be opened: the peer allows it a little after the
/// handshake.
const OFTEN: Duration = Duration::from_millis(5);

/// Each path is pinged so often, as in virtual time: a receiver's acknowledgements all take the first.
const PING: Duration = Duration::from_secs(1);

/// At most so much is written or read at once, bytes.
const PIECE: usize = 16_384;

/// A path that the client is to have.
pub struct Line {
    pub local: IpAddr,
    pub remote: SocketAddr,
    /// The sender uses it only while no other path works.
    pub backup: bool,
    /// What noq calls it, once it is open.
    pub id: Option<PathId>,
    /// The client has lost its address.
    pub lost: bool,
}

/// What the end points share with the run.
pub struct Shared {
    client: OnceLock<Connection>,
    server: OnceLock<Connection>,
    /// By path.
    pub lines: Mutex<Vec<Line>>,
    pub progress: Progress,
    /// Why the connection ended before the run did.
    pub failed: OnceLock<String>,
}

impl Shared {
    pub fn new(lines: Vec<Line>) -> Shared {
        Shared {
            client: OnceLock::new(),
            server: OnceLock::new(),
            lines: Mutex::new(lines),
            progress: Progress::default(),
            failed: OnceLock::new(),
        }
    }

    /// An end of the connection, once it is connected.
    pub fn end(&self, side: Side) -> Option<&Connection> {
        match side {
            Side::Client => self.client.get(),
            Side::Server => self.server.get(),
        }
    }
}

/// Both end points of a connection.
pub struct Task {
    pub client: Endpoint,
    pub server: Endpoint,
    /// The client's.
    pub config: ClientConfig,
    /// Which side sends the data.
    pub sender: Side,
    /// Of the sender's controllers.
    pub factory: Arc<Factory>,
    /// Stands for the receiver's, which are noq's own.
    pub receivers: Arc<Factory>,
    pub generator: Generator,
    /// Over how many streams the data goes.
    pub streams: usize,
    pub shared: Arc<Shared>,
}

/// What the application has written, and how much of it the streams have taken.
struct Budget {
    /// Bytes written; `u64::MAX`: without end.
    limit: watch::Sender<u64>,
    /// Bytes that a stream is to take, or has taken.
    claimed: AtomicU64,
    /// Bytes that noq has taken.
    taken: AtomicU64,
    /// Size of a file.
    file: Option<u64>,
    /// Streams whose data is not all acknowledged.
    left: AtomicU64,
}

impl Task {
    /// Works until the connection ends; the run began at `began`.
    pub async fn run(self, began: Instant) -> Result<(), String> {
        let shared = self.shared.clone();
        let done = self.work(began).await;
        if let Err(why) = done {
            let closed = [Side::Client, Side::Server].map(|side| shared.end(side)?.close_reason());
            let closed = closed.into_iter().flatten().next();
            let why = closed.map_or(why, |error| error.to_string());
            let _ = shared.failed.set(format!("the connection was closed: {why}"));
        }
        Ok(())
    }

    async fn work(self, began: Instant) -> Result<(), String> {
        let Task { client, server, config, sender, shared, .. } = self;
        let file = match self.generator.source() {
            Source::File { bytes } => Some(bytes),
            _ => None,
        };
        let budget = Arc::new(Budget {
            limit: watch::Sender::new(0),
            claimed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            file,
            left: AtomicU64::new(self.streams as u64),
        });
        let mut tasks = JoinSet::new();
        let start = self.generator.first_start();
        sleep_until(began, start).await;
        tasks.spawn(write(self.generator, start, budget.clone(), began));

        let accepting = tokio::spawn(async move {
            let incoming = server.accept().await.ok_or("the server's socket is closed")?;
            incoming.await.map_err(|error| error.to_string())
        });
        let to = {
            let mut lines = shared.lines.lock().unwrap_or_else(PoisonError::into_inner);
            let first = lines.iter().position(|line| !line.lost).unwrap_or(0);
            lines[first].id = Some(PathId::ZERO);
            lines[first].remote
        };
        let connecting =
            client.connect_with(config, to, NAME).map_err(|error| error.to_string())?;
        let client = connecting.await.map_err(|error| error.to_string())?;
        let server = accepting.await.map_err(|error| error.to_string())??;
        for (connection, side) in [(&client, Side::Client), (&server, Side::Server)] {
            let own = if side == sender { &self.factory } else { &self.receivers };
            tokio::spawn(tend(connection, own.clone(), PING));
        }
        let _ = (shared.client.set(client.clone()), shared.server.set(server.clone()));
        let [from, to] = match sender {
            Side::Client => [client.clone(), server],
            Side::Server => [server, client.clone()],
        };
        tasks.spawn(open_paths(client, from.clone(), shared.clone()));
        for _ in 0..self.streams {
            tasks.spawn(send(from.clone(), budget.clone(), shared.clone(), began));
        }
        tasks.spawn(receive(to, file, shared, began));
        finished(tasks).await
    }
}

/// Waits until all tasks have ended, or one failed. A panic goes on here.
pub async fn finished(mut tasks: JoinSet<Result<(), String>>) -> Result<(), String> {
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok(done) => done?,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// A sleep lasts until the next tick of 1 ms: what is late does not sleep.
async fn sleep_until(began: Instant, time: Nanos) {
    match (began + Duration::from_nanos(time)).saturating_duration_since(Instant::now()) {
        Duration::ZERO => yield_now().await,
        left => sleep(left).await,
    }
}

fn now(began: Instant) -> Nanos {
    began.elapsed().as_nanos() as Nanos
}

/// The application. A message is given up while an earlier one waits for the streams; what they have
/// taken is sent also if the application stops.
async fn write(
    mut generator: Generator,
    start: Nanos,
    budget: Arc<Budget>,
    began: Instant,
) -> Result<(), String> {
    let mut due = start;
    while due != Nanos::MAX {
        sleep_until(began, due).await;
        let (write, next) = generator.wake(due);
        due = next;
        let Budget { limit, claimed, taken, .. } = &*budget;
        match write {
            Write::Start { total } => limit.send_modify(|limit| *limit = total.unwrap_or(*limit)),
            Write::Stop { withdraws: true } => {
                limit.send_modify(|limit| *limit = claimed.load(Ordering::Relaxed));
            }
            Write::Message(bytes) => limit.send_modify(|limit| {
                if taken.load(Ordering::Relaxed) == *limit {
                    *limit += u64::from(bytes);
                }
            }),
            Write::Stop { .. } | Write::Nothing => {}
        }
    }
    Ok(())
}

/// Opens the client's paths as soon as it can, and sets their status at the sender, whose alone counts.
async fn open_paths(
    client: Connection,
    sender: Connection,
    shared: Arc<Shared>,
) -> Result<(), String> {
    loop {
        for line in shared.lines.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            if line.id.is_none() && !line.lost {
                let path = FourTuple::new(line.remote, Some(line.local));
                line.id = client.open_path(path, PathStatus::Available).path_id();
            }
            let path = line.id.filter(|_| line.backup).and_then(|id| sender.path(id));
            if let Some(path) =
                path.filter(|path| matches!(path.status(), Ok(PathStatus::Available)))
            {
                // It may have been abandoned meanwhile.
                let _ = path.set_status(PathStatus::Backup);
            }
        }
        sleep(OFTEN).await;
    }
}

/// Sends on a stream of its own.
async fn send(
    from: Connection,
    budget: Arc<Budget>,
    shared: Arc<Shared>,
    began: Instant,
) -> Result<(), String> {
    let failed = |error: noq::WriteError| error.to_string();
    let mut stream: SendStream = from.open_uni().await.map_err(|error| error.to_string())?;
    let zeros = Bytes::from_static(&[0; PIECE]);
    let mut limit = budget.limit.subscribe();
    loop {
        let all = *limit.borrow_and_update();
        // The only thread that claims runs nothing else between these two.
        let claimed = budget.claimed.load(Ordering::Relaxed);
        let length = all.saturating_sub(claimed).min(PIECE as u64);
        budget.claimed.store(claimed + length, Ordering::Relaxed);
        if length > 0 {
            stream.write_chunk(zeros.slice(..length as usize)).await.map_err(failed)?;
            budget.taken.fetch_add(length, Ordering::Relaxed);
        } else if budget.file == Some(claimed) {
            break;
        } else {
            limit.changed().await.map_err(|error| error.to_string())?;
        }
    }
    // Only a stream that was reset cannot be finished.
    let _ = stream.finish();
    stream.stopped().await.map_err(|error| error.to_string())?;
    if budget.left.fetch_sub(1, Ordering::Relaxed) == 1 {
        let _ = shared.progress.acknowledged.set(now(began));
    }
    Ok(())
}

/// Receives all streams.
async fn receive(
    to: Connection,
    file: Option<u64>,
    shared: Arc<Shared>,
    began: Instant,
) -> Result<(), String> {
    let mut streams = JoinSet::new();
    loop {
        let stream = to.accept_uni().await.map_err(|error| error.to_string())?;
        streams.spawn(read(stream, file, shared.clone(), began));
    }
}

async fn read(
    mut stream: RecvStream,
    file: Option<u64>,
    shared: Arc<Shared>,
    began: Instant,
) -> Result<(), String> {
    let progress = &shared.progress;
    while let Some(chunk) = stream.read_chunk(PIECE).await.map_err(|error| error.to_string())? {
        let length = chunk.len() as u64;
        let received = progress.received.fetch_add(length, Ordering::Relaxed) + length;
        if file == Some(received) {
            let _ = progress.completed.set(now(began));
        }
    }
    Ok(())
}
