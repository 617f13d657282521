//! The server.

use crate::folder::Folder;
use crate::hash::Hasher;
use crate::idle::Idle;
use crate::local;
use crate::plain;
use crate::tls::{self, Fingerprint};
use crate::wire::{CONTROL, MAX_REQUEST, PathReport, Reply, Request};
use crate::{Error, PING, STREAMS, Url, number, transport};
use narrows_quic::{Coupling, Factory, PathState};
use noq::{
    Connection, Endpoint, Incoming, PathEvent, PathEvents, PathId, RecvStream, SendStream,
    ServerConfig, VarInt, WriteError,
};
use std::collections::BTreeSet;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;

/// Connections at a time; more are refused. From half of them on, clients must show that they receive at
/// their address before anything is kept for them.
pub const MAX_CONNECTIONS: usize = 32;

/// A client asks for a file within so long,
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// and takes something, or asks for more, every so often.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between reports of the paths.
const REPORT: Duration = Duration::from_millis(200);
/// Bytes that are read from the file at once.
const PIECE: u64 = 256 << 10;

/// Why a connection or a stream is closed, for the peer.
const REFUSED: VarInt = VarInt::from_u32(1);

/// A folder whose files clients can get.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    config: ServerConfig,
    fingerprint: Fingerprint,
    folder: Arc<Folder>,
    coupling: Coupling,
}

impl Server {
    /// Serves the files below `folder` at `listen`, under the congestion control `control` where clients
    /// ask for no other. With a new certificate. Needs a runtime of tokio with several threads.
    ///
    /// # Errors
    /// No such folder, control, or address.
    pub fn new(folder: &Path, listen: SocketAddr, control: &str) -> Result<Server, Error> {
        let coupling = Coupling::new(control).map_err(|error| Error::input("--cc", error))?;
        let place = folder.display();
        let folder = Folder::open(folder).map_err(|error| Error::input(place, error))?;
        let (mut config, fingerprint) = tls::server();
        config.max_incoming(MAX_CONNECTIONS);
        let endpoint = Endpoint::server(config.clone(), listen)
            .map_err(|error| Error::input(format!("--listen {listen}"), error))?;
        Ok(Server { endpoint, config, fingerprint, folder: Arc::new(folder), coupling })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// The URL of a file by its name below the folder, for each address of this host.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn urls(&self, name: &str) -> std::io::Result<Vec<Url>> {
        let listen = self.address()?;
        let addresses: Vec<IpAddr> = match listen.ip() {
            IpAddr::V4(any) if any.is_unspecified() => local::reachable(false),
            IpAddr::V6(any) if any.is_unspecified() => {
                [local::reachable(false), local::reachable(true)].concat()
            }
            one => vec![one],
        };
        let url = |address| Url {
            server: SocketAddr::new(address, listen.port()).to_string(),
            name: name.into(),
            fingerprint: self.fingerprint,
        };
        Ok(addresses.into_iter().map(url).collect())
    }

    /// Serves until `stop` is set; `log` is given a line for each file that is asked for, and for each that
    /// has been sent.
    pub async fn run(self, stop: &AtomicBool, log: impl Fn(String) + Send + Sync + 'static) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let log: Arc<Log> = Arc::new(log);
        while !stop.load(Ordering::Relaxed) {
            let Ok(incoming) = timeout(Duration::from_millis(100), self.endpoint.accept()).await
            else {
                continue;
            };
            let Some(incoming) = incoming else { return };
            let Ok(place) = places.clone().try_acquire_owned() else {
                incoming.refuse();
                continue;
            };
            let crowded = places.available_permits() < MAX_CONNECTIONS / 2;
            if crowded && !incoming.remote_address_validated() && incoming.may_retry() {
                // It may retry, as was just asked.
                let _ = incoming.retry();
                continue;
            }
            let asked = control(&incoming).map(|name| Coupling::new(&name));
            let coupling = asked.unwrap_or_else(|| Ok(self.coupling.clone()));
            let (folder, log) = (self.folder.clone(), log.clone());
            let client = Client { address: incoming.remote_address(), folder, log };
            let config = self.config.clone();
            tokio::spawn(async move {
                client.serve(incoming, config, coupling.map_err(|error| error.to_string())).await;
                drop(place);
            });
        }
        self.endpoint.close(VarInt::from_u32(0), b"the server stops");
        // So that the clients hear of it.
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
    }
}

type Log = dyn Fn(String) + Send + Sync;

/// The congestion control that a client asks for.
fn control(incoming: &Incoming) -> Option<String> {
    let hello = incoming.decrypt()?;
    let mut names = hello.alpns()?.filter_map(Result::ok);
    let asked = names.find_map(|name| Some(name.strip_prefix(CONTROL.as_bytes())?.to_vec()))?;
    Some(String::from_utf8_lossy(&asked).into_owned())
}

/// What a client's connection is served with.
struct Client {
    address: SocketAddr,
    folder: Arc<Folder>,
    log: Arc<Log>,
}

impl Client {
    async fn serve(
        self,
        incoming: Incoming,
        mut config: ServerConfig,
        coupling: Result<Coupling, String>,
    ) {
        let mut transport = transport();
        transport.max_concurrent_bidi_streams(VarInt::from_u32(u32::from(STREAMS) + 1));
        let factory = coupling.as_ref().ok().map(Coupling::factory);
        if let Some(factory) = &factory {
            transport.congestion_controller_factory(factory.clone());
        }
        config.transport_config(Arc::new(transport));
        let Ok(connecting) = incoming.accept_with(Arc::new(config)) else { return };
        let Ok(connection) = connecting.await else { return };
        let open = Open::new(&connection);
        let reason = match (factory, coupling) {
            (Some(factory), _) => {
                tokio::spawn(narrows_quic::tend(&connection, factory.clone(), PING));
                match plain::agreed(&connection) {
                    true => self.plain(&connection).await.err(),
                    false => self.transfer(&connection, open, factory).await.err(),
                }
            }
            (None, refused) => refused.err(),
        };
        connection.close(REFUSED, reason.unwrap_or_default().as_bytes());
    }

    /// The same for a client of another stack.
    async fn plain(&self, connection: &Connection) -> Result<(), String> {
        let mut files = JoinSet::new();
        let wait = format!("nothing was asked for in {} s", PATIENCE.as_secs());
        loop {
            match timeout(PATIENCE, connection.accept_bi()).await {
                Ok(Ok((send, recv))) => {
                    files.spawn(whole(
                        send,
                        recv,
                        self.folder.clone(),
                        self.log.clone(),
                        self.address,
                    ));
                }
                Ok(Err(_)) => return Ok(()),
                Err(_) if files.is_empty() => return Err(wait),
                Err(_) => {}
            }
            while files.try_join_next().is_some() {}
        }
    }

    /// Until the client is done, or the reason why it is sent away.
    async fn transfer(
        &self,
        connection: &Connection,
        open: Open,
        factory: Arc<Factory>,
    ) -> Result<(), String> {
        let client = self.address;
        let first = timeout(FIRST_REQUEST, first(connection)).await;
        let (mut send, request) = first.map_err(|_| "no request in time")??;
        let Request::File(name) = request else {
            return Err("expected the request of a file first".into());
        };
        let (file, size) = match self.folder.file(&name) {
            Ok((file, size)) => (Arc::new(file), size),
            Err(why) => {
                (self.log)(format!("{client}: {name:?}: refused, {why}"));
                return refuse(send, why).await;
            }
        };
        let control = factory.snapshot().control;
        (self.log)(format!("{client}: {name:?}: {size} bytes, {control}"));
        let found = Reply::File { size, control };
        send.write_all(&found.line()).await.map_err(|error| error.to_string())?;
        let mut reports = JoinSet::new();
        reports.spawn(report(connection.clone(), open, factory, send, file.clone(), size));

        let sent = Arc::new(AtomicU64::new(0));
        let mut ranges = JoinSet::new();
        let end = loop {
            match timeout(PATIENCE, connection.accept_bi()).await {
                Ok(Ok((send, recv))) => {
                    while ranges.try_join_next().is_some() {}
                    ranges.spawn(range(send, recv, file.clone(), size, sent.clone()));
                }
                Ok(Err(_)) => break Ok(()),
                Err(_) => {
                    while ranges.try_join_next().is_some() {}
                    if ranges.is_empty() {
                        break Err(format!("nothing was asked for in {} s", PATIENCE.as_secs()));
                    }
                }
            }
        };
        (self.log)(format!("{client}: {name:?}: {} bytes sent", sent.load(Ordering::Relaxed)));
        end
    }
}

/// The first request of a connection.
async fn first(connection: &Connection) -> Result<(SendStream, Request), String> {
    let (send, mut recv) = connection.accept_bi().await.map_err(|error| error.to_string())?;
    Ok((send, read(&mut recv).await?))
}

async fn read(recv: &mut RecvStream) -> Result<Request, String> {
    let bytes = recv.read_to_end(MAX_REQUEST).await.map_err(|error| error.to_string())?;
    Request::parse(&bytes)
}

async fn refuse(mut send: SendStream, why: String) -> Result<(), String> {
    let said = send.write_all(&Reply::Refused(why).line()).await;
    if said.is_ok() && send.finish().is_ok() {
        // The connection ends with this answer: it must have arrived.
        let _ = timeout(FIRST_REQUEST, send.stopped()).await;
    }
    Ok(())
}

/// Answers one request of bytes.
async fn range(
    mut send: SendStream,
    mut recv: RecvStream,
    file: Arc<File>,
    size: u64,
    count: Arc<AtomicU64>,
) {
    let request = timeout(FIRST_REQUEST, read(&mut recv)).await;
    let (at, end) = match request {
        Ok(Ok(Request::Range { offset, length })) if offset + length <= size => {
            (offset, offset + length)
        }
        _ => {
            let _ = send.reset(REFUSED);
            return;
        }
    };
    if let Ok(()) = send_bytes(&mut send, &file, at..end, &count).await {
        // Refused only if it was reset already.
        let _ = send.finish();
    }
}

/// Answers a request of a whole file.
async fn whole(
    mut send: SendStream,
    mut recv: RecvStream,
    folder: Arc<Folder>,
    log: Arc<Log>,
    client: SocketAddr,
) {
    let request = timeout(FIRST_REQUEST, recv.read_to_end(MAX_REQUEST)).await;
    let name = match request {
        Ok(Ok(request)) => plain::name(&request),
        _ => Err("no request".into()),
    };
    let found = name.and_then(|name| match folder.file(&name) {
        Ok(found) => Ok((name, found)),
        Err(why) => Err(format!("{name:?}: refused, {why}")),
    });
    let (name, (file, size)) = match found {
        Ok(found) => found,
        Err(why) => {
            log(format!("{client}: {why}"));
            let _ = send.reset(REFUSED);
            return;
        }
    };
    log(format!("{client}: {name:?}: {size} bytes"));
    let sent = AtomicU64::new(0);
    if let Ok(()) = send_bytes(&mut send, &Arc::new(file), 0..size, &sent).await {
        let _ = send.finish();
        // The connection's end would take with it what is on its way.
        let _ = timeout(PATIENCE, send.stopped()).await;
    }
    log(format!("{client}: {name:?}: {} bytes sent", sent.into_inner()));
}

/// Sends these bytes of a file, or resets the stream.
async fn send_bytes(
    send: &mut SendStream,
    file: &Arc<File>,
    bytes: Range<u64>,
    count: &AtomicU64,
) -> Result<(), ()> {
    let Range { start: mut at, end } = bytes;
    while at < end {
        let length = PIECE.min(end - at);
        let read = {
            let file = file.clone();
            let mut piece = vec![0; length as usize];
            spawn_blocking(move || file.read_exact_at(&mut piece, at).map(|()| piece))
        };
        // The file may have become shorter, and the client may take nothing.
        let sent = match read.await {
            Ok(Ok(piece)) => timeout(PATIENCE, send.write_chunk(piece.into())).await,
            _ => Ok(Err(WriteError::ClosedStream)),
        };
        if !matches!(sent, Ok(Ok(()))) {
            let _ = send.reset(REFUSED);
            return Err(());
        }
        count.fetch_add(length, Ordering::Relaxed);
        at += length;
    }
    Ok(())
}

/// A flag that is set when its value is dropped, wherever that is.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Reports the paths, and the file's hash once it is known, until the connection ends.
async fn report(
    connection: Connection,
    mut open: Open,
    factory: Arc<Factory>,
    mut send: SendStream,
    file: Arc<File>,
    size: u64,
) {
    let stop = Dropped(Arc::new(AtomicBool::new(false)));
    let stopped = stop.0.clone();
    let mut hash = Some(spawn_blocking(move || {
        let mut hasher = Hasher::new();
        hasher.read(&file, size, || !stopped.load(Ordering::Relaxed))?;
        Ok::<_, std::io::Error>(hasher.finish())
    }));
    loop {
        let mut lines = Reply::Paths(reports(&connection, &factory, open.ids(&connection))).line();
        if let Some(hash) = hash.take_if(|hash| hash.is_finished()) {
            match hash.await {
                Ok(Ok(hash)) => lines.extend(Reply::Sha256(hash).line()),
                _ => {
                    connection.close(REFUSED, b"the file cannot be read");
                    return;
                }
            }
        }
        if !matches!(timeout(PATIENCE, send.write_all(&lines)).await, Ok(Ok(()))) {
            return;
        }
        sleep(REPORT).await;
    }
}

/// The paths of a connection, from its events.
struct Open {
    events: PathEvents,
    ids: BTreeSet<PathId>,
    idle: Idle,
}

impl Open {
    /// From the beginning of a connection on.
    fn new(connection: &Connection) -> Open {
        let ids = BTreeSet::from([PathId::ZERO]);
        Open { events: connection.path_events(), ids, idle: Idle::default() }
    }

    fn ids(&mut self, connection: &Connection) -> &BTreeSet<PathId> {
        // Nobody waits for an event: they are looked at when a report is due.
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(event)) = Pin::new(&mut self.events).poll_next(&mut context) {
            match event {
                Ok(PathEvent::Established { id, .. }) => self.ids.insert(id),
                Ok(PathEvent::Abandoned { id, .. }) => self.ids.remove(&id),
                _ => false,
            };
        }
        self.idle.set(connection, self.ids.iter().copied());
        &self.ids
    }
}

/// What the server knows of each open path.
fn reports(connection: &Connection, factory: &Factory, open: &BTreeSet<PathId>) -> Vec<PathReport> {
    let state = |id: &PathId| Some((number(*id), factory.path(connection.congestion_state(*id)?)?));
    let states: Vec<(u32, PathState)> = open.iter().filter_map(state).collect();
    let coupled = |mask: u8| {
        let coupled = states.iter().filter(|(_, state)| mask >> state.slot & 1 != 0);
        coupled.map(|(id, _)| *id).collect()
    };
    let report = |(id, state): &(u32, PathState)| PathReport {
        id: *id,
        cwnd: state.cwnd,
        srtt_us: state.srtt.map(|srtt| srtt.as_micros() as u64),
        place: state.place.map(Into::into),
        coupled: coupled(state.coupled),
    };
    states.iter().map(report).collect()
}
