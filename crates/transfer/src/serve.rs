//! The server.

use crate::folder::Folder;
use crate::hash::{Dropped, Hasher};
use crate::idle::Idle;
use crate::local;
use crate::log::Log;
use crate::plain;
use crate::tls::{self, Fingerprint};
use crate::wire::{CONTROL, MAX_REQUEST, PathReport, Reply, Request};
use crate::{Error, PING, STREAMS, Url, number, transport};
use narrows_quic::{Coupling, Factory, PathState};
use noq::{
    Connection, Endpoint, Incoming, PathEvent, PathEvents, PathId, RecvStream, SendStream,
    ServerConfig, VarInt,
};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{sleep, timeout};
use tokio_stream::Stream;

/// Connections at a time; more are refused. From half of them on, clients must show that they receive at
/// their address before anything is kept for them (Retry: RFC 9000, section 8.1.2).
pub const MAX_CONNECTIONS: usize = 32;
/// Of these from one IPv4 address, or one IPv6 network of /64.
pub const MAX_FROM_ONE: usize = 8;
/// Files that are hashed at a time.
const HASHED: usize = 2;
/// Bytes that a connection keeps until they are acknowledged.
const SEND_WINDOW: u64 = 8 << 20;
/// Requests of a client of another stack that are refused; with one more it is sent away.
const REFUSALS: usize = 16;

/// A client has shaken hands, and asks for a file, within so long each,
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// and takes something, or asks for more, every so often.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between reports of the paths.
const REPORT: Duration = Duration::from_millis(200);
/// The last lines of the log are waited for so long.
const LOGGED: Duration = Duration::from_secs(1);
/// Bytes that are read from the file at once.
const PIECE: u64 = 256 << 10;

/// Why a connection or a stream is closed, for the peer.
const REFUSED: VarInt = VarInt::from_u32(1);
/// The same of a stream of which nothing was taken in time.
pub(crate) const TOO_SLOW: VarInt = VarInt::from_u32(2);

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
            fingerprint: Some(self.fingerprint),
        };
        Ok(addresses.into_iter().map(url).collect())
    }

    /// Serves until `stop` is set; `log` is given a line for each file that is asked for, and for each that
    /// has been sent. A thread of its own calls it; what it is too slow for is left out.
    ///
    /// # Errors
    /// The socket has failed.
    pub async fn run(
        self,
        stop: &AtomicBool,
        log: impl Fn(String) + Send + 'static,
    ) -> Result<(), Error> {
        let places = Arc::new(Places::default());
        let hashing = Arc::new(Semaphore::new(HASHED));
        let log = Log::new(log);
        while !stop.load(Ordering::Relaxed) {
            let Ok(incoming) = timeout(Duration::from_millis(100), self.endpoint.accept()).await
            else {
                continue;
            };
            let Some(incoming) = incoming else {
                log.flush(LOGGED);
                return Err(Error::failed(
                    "UDP socket",
                    "it has failed, nothing is served any more",
                ));
            };
            // Closed connections go on for a while, with what they had not yet delivered.
            let draining = self.endpoint.open_connections() >= 2 * MAX_CONNECTIONS;
            let place = places.take(incoming.remote_address().ip()).filter(|_| !draining);
            let Some(place) = place else {
                incoming.refuse();
                continue;
            };
            let crowded = places.taken() > MAX_CONNECTIONS / 2;
            if crowded && !incoming.remote_address_validated() && incoming.may_retry() {
                // It may retry, as was just asked.
                let _ = incoming.retry();
                continue;
            }
            let asked = control(&incoming).map(|name| Coupling::new(&name));
            let coupling = asked.unwrap_or_else(|| Ok(self.coupling.clone()));
            let (folder, log) = (self.folder.clone(), log.clone());
            let (address, hashing) = (incoming.remote_address(), hashing.clone());
            let client = Client { address, folder, hashing, log };
            let config = self.config.clone();
            tokio::spawn(async move {
                client.serve(incoming, config, coupling.map_err(|error| error.to_string())).await;
                drop(place);
            });
        }
        self.endpoint.close(VarInt::from_u32(0), b"the server stops");
        // So that the clients learn of it.
        let _ = timeout(Duration::from_secs(1), self.endpoint.wait_idle()).await;
        log.flush(LOGGED);
        Ok(())
    }
}

/// The connections that there are, by address.
#[derive(Default)]
struct Places(Mutex<HashMap<IpAddr, usize>>);

impl Places {
    fn all(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self) -> usize {
        self.all().values().sum()
    }

    /// One more from `address`, unless there are too many. It is counted until it is dropped.
    fn take(self: &Arc<Places>, address: IpAddr) -> Option<Place> {
        let address = match address.to_canonical() {
            IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) >> 64 << 64).into(),
            v4 => v4,
        };
        let mut all = self.all();
        let total: usize = all.values().sum();
        let from_one = all.get(&address).copied().unwrap_or(0);
        if total >= MAX_CONNECTIONS || from_one >= MAX_FROM_ONE {
            return None;
        }
        all.insert(address, from_one + 1);
        Some(Place { places: self.clone(), address })
    }
}

struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.places.all();
        let left = all.remove(&self.address).unwrap_or(1) - 1;
        if left > 0 {
            all.insert(self.address, left);
        }
    }
}

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
    hashing: Arc<Semaphore>,
    log: Log,
}

impl Client {
    async fn serve(
        self,
        incoming: Incoming,
        mut config: ServerConfig,
        coupling: Result<Coupling, String>,
    ) {
        let mut transport = transport();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(u32::from(STREAMS) + 1))
            .send_window(SEND_WINDOW);
        let factory = coupling.as_ref().ok().map(Coupling::factory);
        if let Some(factory) = &factory {
            transport.congestion_controller_factory(factory.clone());
        }
        config.transport_config(Arc::new(transport));
        let Ok(connecting) = incoming.accept_with(Arc::new(config)) else { return };
        let Ok(Ok(connection)) = timeout(FIRST_REQUEST, connecting).await else { return };
        let open = Open::new(&connection);
        let reason = match (factory, coupling) {
            (Some(factory), _) => {
                tokio::spawn(narrows_quic::tend(&connection, factory.clone(), PING));
                match plain::agreed(&connection) {
                    true => self.plain(&connection, open).await.err(),
                    false => self.transfer(&connection, open, factory).await.err(),
                }
            }
            (None, refused) => refused.err(),
        };
        connection.close(REFUSED, reason.unwrap_or_default().as_bytes());
    }

    /// The same for a client of another stack.
    async fn plain(&self, connection: &Connection, mut open: Open) -> Result<(), String> {
        let (mut files, mut refused, mut waited) = (JoinSet::new(), 0, Duration::ZERO);
        let mut patience = FIRST_REQUEST;
        loop {
            open.look(connection);
            while let Some(sent) = files.try_join_next() {
                refused += usize::from(matches!(sent, Ok(false)));
            }
            if refused > REFUSALS {
                return Err("too many requests that were refused".into());
            }
            if !files.is_empty() {
                waited = Duration::ZERO;
            } else if waited >= patience {
                return Err(format!("nothing was asked for in {} s", patience.as_secs()));
            }
            match timeout(REPORT, connection.accept_bi()).await {
                Ok(Ok((send, recv))) => {
                    let (folder, log) = (self.folder.clone(), self.log.clone());
                    files.spawn(whole(send, recv, folder, log, self.address));
                    patience = PATIENCE;
                }
                Ok(Err(_)) => return Ok(()),
                Err(_) => waited += REPORT,
            }
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
                self.log.line(format!("{client}: {name:?}: refused, {why}"));
                return refuse(send, why).await;
            }
        };
        let control = factory.snapshot().control;
        self.log.line(format!("{client}: {name:?}: {size} bytes, {control}"));
        let found = Reply::File { size, control };
        send.write_all(&found.line()).await.map_err(|error| error.to_string())?;
        let mut reports = JoinSet::new();
        let hash = hash(file.clone(), size, self.hashing.clone());
        reports.spawn(report(connection.clone(), open, factory, send, hash));

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
        self.log.line(format!("{client}: {name:?}: {} bytes sent", sent.load(Ordering::Relaxed)));
        end
    }
}

/// The first request of a connection.
async fn first(connection: &Connection) -> Result<(SendStream, Request), String> {
    let (send, mut recv) = connection.accept_bi().await.map_err(|error| error.to_string())?;
    Ok((send, Request::parse(&request(&mut recv).await?)?))
}

/// The bytes of a request. They are read in order: what comes out of order, byte by byte, in many
/// datagrams, noq keeps together only for those who read so.
async fn request(recv: &mut RecvStream) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; MAX_REQUEST + 1];
    let mut length = 0;
    while let Some(read) =
        recv.read(&mut bytes[length..]).await.map_err(|error| error.to_string())?
    {
        length += read;
        if length > MAX_REQUEST {
            return Err(format!("a request of more than {MAX_REQUEST} bytes"));
        }
    }
    bytes.truncate(length);
    Ok(bytes)
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
    let request = timeout(FIRST_REQUEST, request(&mut recv)).await;
    let (at, end) = match request.map(|bytes| Request::parse(&bytes?)) {
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

/// Answers a request of a whole file; false if it is refused.
async fn whole(
    mut send: SendStream,
    mut recv: RecvStream,
    folder: Arc<Folder>,
    log: Log,
    client: SocketAddr,
) -> bool {
    let request = timeout(FIRST_REQUEST, request(&mut recv)).await;
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
            log.line(format!("{client}: {why}"));
            let _ = send.reset(REFUSED);
            return false;
        }
    };
    log.line(format!("{client}: {name:?}: {size} bytes"));
    let sent = AtomicU64::new(0);
    if let Ok(()) = send_bytes(&mut send, &Arc::new(file), 0..size, &sent).await {
        let _ = send.finish();
        // The connection's end would take with it what is on its way.
        let _ = timeout(PATIENCE, send.stopped()).await;
    }
    log.line(format!("{client}: {name:?}: {} bytes sent", sent.into_inner()));
    true
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
        let Ok(Ok(piece)) = read.await else {
            // The file may have become shorter.
            let _ = send.reset(REFUSED);
            return Err(());
        };
        let mut rest = &piece[..];
        while !rest.is_empty() {
            match timeout(PATIENCE, send.write(rest)).await {
                Ok(Ok(taken)) => rest = &rest[taken..],
                Ok(Err(_)) => return Err(()),
                Err(_) => {
                    let _ = send.reset(TOO_SLOW);
                    return Err(());
                }
            }
        }
        count.fetch_add(length, Ordering::Relaxed);
        at += length;
    }
    Ok(())
}

/// The SHA-256 of a file, one of [`HASHED`] at a time; not to its end if it is dropped before.
async fn hash(file: Arc<File>, size: u64, hashing: Arc<Semaphore>) -> Option<String> {
    let _turn = hashing.acquire().await.ok()?;
    let dropped = Dropped::default();
    let stop = dropped.flag();
    let hashed = spawn_blocking(move || {
        let mut hasher = Hasher::new();
        hasher.read(&file, size, || !stop.load(Ordering::Relaxed))?;
        Ok::<_, std::io::Error>(hasher.finish())
    });
    hashed.await.ok()?.ok()
}

/// Reports the paths, and the file's hash once it is known, until the connection ends.
async fn report(
    connection: Connection,
    mut open: Open,
    factory: Arc<Factory>,
    mut send: SendStream,
    hash: impl Future<Output = Option<String>>,
) {
    let mut hash = pin!(hash);
    let mut said = false;
    loop {
        let lines = Reply::Paths(reports(&connection, &factory, open.look(&connection))).line();
        if !matches!(timeout(PATIENCE, send.write_all(&lines)).await, Ok(Ok(()))) {
            return;
        }
        if said {
            sleep(REPORT).await;
        } else if let Ok(hash) = timeout(REPORT, hash.as_mut()).await {
            let Some(hash) = hash else {
                connection.close(REFUSED, b"the file cannot be read");
                return;
            };
            let line = Reply::Sha256(hash).line();
            if !matches!(timeout(PATIENCE, send.write_all(&line)).await, Ok(Ok(()))) {
                return;
            }
            said = true;
        }
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

    /// The open paths.
    fn look(&mut self, connection: &Connection) -> &BTreeSet<PathId> {
        // Nobody waits for an event: they are looked at when a report is due.
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(Some(event)) = Pin::new(&mut self.events).poll_next(&mut context) {
            match event {
                Ok(PathEvent::Established { id, .. }) => drop(self.ids.insert(id)),
                Ok(PathEvent::Abandoned { id, .. }) => drop(self.ids.remove(&id)),
                Ok(_) => {}
                // Of many events at once the first are lost: any of these paths may be open.
                Err(_) => {
                    let first = self.ids.first().copied().unwrap_or(PathId::ZERO);
                    self.ids.extend((0..256u32).map(|n| first.saturating_add(n)));
                }
            }
        }
        self.ids.retain(|id| connection.path(*id).is_some());
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
