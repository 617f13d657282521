//! The client.

use crate::hash::{Dropped, Hasher};
use crate::local::Local;
use crate::paths::{Paths, reached};
use crate::serve::TOO_SLOW;
use crate::tls::{self, Trust};
use crate::wire::{MAX_RANGE, MAX_REPLY, PathReport, Reply, Request};
use crate::{Error, PING, STREAMS, Url, number, plain, transport};
use bytes::Bytes;
use narrows_foreign::{Foreign, without_path};
use narrows_quic::Coupling;
use noq::{Connection, ConnectionError, ReadError, RecvStream, VarInt, WriteError};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, Permissions};
use std::net::IpAddr;
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinError, JoinHandle, JoinSet, spawn_blocking};
use tokio::time::timeout;

/// Between looks at addresses, at the wish to stop, and what is shown.
const TICK: Duration = Duration::from_millis(200);
/// Rates are over so many ticks.
const RATE_TICKS: usize = 10;
/// Pieces that wait to be written.
const PIECES: usize = 64;
/// For the handshake, and for the answer to the first request.
const PATIENCE: Duration = Duration::from_secs(10);
/// A transfer of which nothing arrives for so long is given up.
const STALLED: Duration = Duration::from_secs(60);
/// For the server's hash of a file that is here: a server hashes few files at a time, and others may be
/// large.
const HASH_PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 600 });
/// The control of the client's own packets, if it asks for none: acknowledgements, which none holds up.
const OWN_CONTROL: &str = "reno";

/// What to get.
#[derive(Clone, Debug)]
pub struct Get {
    /// The file.
    pub url: Url,
    /// Where paths begin; none: one path, from where this host's routes say.
    pub paths: Vec<Local>,
    /// The congestion control of what this end sends, which our server is asked to use, too; none: the
    /// server's choice.
    pub control: Option<String>,
    /// Which certificate is accepted, if the URL has no fingerprint.
    pub trust: Trust,
    /// Where the file is written.
    pub output: PathBuf,
}

/// How far a transfer is.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Bytes of the file that have arrived.
    pub bytes: u64,
    /// Bytes of the file, if the server tells.
    pub size: Option<u64>,
    /// Since the first request.
    pub elapsed: Duration,
    /// Bytes of the file per second, over the last two seconds.
    pub rate: f64,
    /// The congestion control that the server uses, if it tells.
    pub control: Option<String>,
    /// The ends agreed on multipath QUIC.
    pub multipath: bool,
    /// The paths, one for each local address that there was.
    pub paths: Vec<PathProgress>,
}

/// What began at one local address.
#[derive(Clone, Debug)]
pub struct PathProgress {
    /// The address; none: where the host's routes say.
    pub local: Option<IpAddr>,
    /// Number of the path that is open.
    pub id: Option<u32>,
    /// Bytes of UDP payload that arrived there.
    pub bytes: u64,
    /// The same per second, over the last two seconds.
    pub rate: f64,
    /// What our server last reported of the open path.
    pub report: Option<PathReport>,
}

/// A file that is complete.
#[derive(Clone, Debug)]
pub struct Received {
    /// SHA-256 of what was written, in hexadecimal digits; equal to the server's if that is ours.
    pub sha256: String,
    /// At the end. Rates are over the whole time.
    pub progress: Progress,
}

/// Gets a file; `show` is called five times a second. Ends early when `stop` is set. The file is there
/// only if all of it has arrived and has our server's SHA-256, which others do not tell. Needs a runtime of
/// tokio with several threads.
///
/// # Errors
/// Wrong input, or why the transfer failed.
pub async fn get(
    get: &Get,
    stop: &AtomicBool,
    show: impl FnMut(&Progress),
) -> Result<Received, Error> {
    let own = Coupling::new(get.control.as_deref().unwrap_or(OWN_CONTROL))
        .map_err(|error| Error::input("--cc", error))?;
    if get.url.fingerprint.is_some() && get.trust != Trust::System {
        return Err(Error::input("--ca, --insecure", "the URL has the certificate's fingerprint"));
    }
    let output = Output::new(&get.output)?;
    let (servers, (mut config, other)) = {
        // The resolver may wait long, as may a file.
        let Get { url, control, trust, .. } = get.clone();
        let prepared = spawn_blocking(move || {
            let config = match url.fingerprint {
                Some(pinned) => tls::client(pinned, tls::protocols(control.as_deref())),
                None => (tls::plain_client(&trust)?, Arc::default()),
            };
            Ok::<_, Error>((url.addresses()?, config))
        });
        unless(stop, prepared).await?.map_err(|error| Error::failed(&get.url.server, error))??
    };
    let server = reached(&servers, &get.paths);
    let (mut paths, endpoint) = Paths::new(&get.paths, server)?;
    let factory = own.factory();
    let asked = get.control.is_some().then(|| factory.snapshot().control);
    let mut transport = transport();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(0));
    transport.congestion_controller_factory(factory.clone());
    config.transport_config(Arc::new(transport));

    let place = &get.url.server;
    let is_ours = get.url.fingerprint.is_some();
    let connecting = endpoint
        .connect_with(config, server, if is_ours { tls::NAME } else { get.url.host() })
        .map_err(|error| Error::input(place, error))?;
    let connected = unless(stop, timeout(PATIENCE, connecting)).await?;
    let connection = match connected {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => {
            let refused = match other.get() {
                Some(other) => {
                    Some(format!("refused, its certificate has the fingerprint {other}"))
                }
                None if is_ours => None,
                None => tls::plain_refusal(&error),
            };
            return Err(Error::failed(place, refused.unwrap_or_else(|| lost(&error))));
        }
        Err(_) => return Err(Error::failed(place, silence(PATIENCE))),
    };
    tokio::spawn(narrows_quic::tend(&connection, factory, PING));
    paths.connected(&connection);
    let done = match is_ours {
        true => transfer(get, asked, &connection, &mut paths, &output, stop, show).await,
        false => whole(get, &connection, &mut paths, &output, stop, show).await,
    };
    connection.close(VarInt::from_u32(0), b"");
    // So that the server learns of it.
    let _ = timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
    let received = done?;
    output.commit()?;
    Ok(received)
}

/// A file that is named as wished once it is complete, and removed if it never is.
struct Output {
    written: NamedTempFile,
    target: PathBuf,
}

impl Output {
    fn new(target: &Path) -> Result<Output, Error> {
        let wrong = |message: &str| Error::input(target.display(), message);
        let text = target.as_os_str().as_encoded_bytes();
        if target.file_name().is_none() || text.ends_with(b"/") || text.ends_with(b"/.") {
            return Err(wrong("expected the name of a file"));
        }
        if target.symlink_metadata().is_ok() {
            return Err(wrong("already exists and is not overwritten"));
        }
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let written = tempfile::Builder::new()
            .prefix(".narrows-")
            .suffix(".part")
            // As other programs' files: the umask takes its part.
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            .map_err(|error| wrong(&without_path(error).to_string()))?;
        Ok(Output { written, target: target.into() })
    }

    fn commit(self) -> Result<(), Error> {
        let named = self.written.persist_noclobber(&self.target);
        named.map_err(|error| Error::failed(self.target.display(), error.error))?;
        Ok(())
    }
}

/// What `future` leads to, unless `stop` is set before.
async fn unless<T>(stop: &AtomicBool, future: impl Future<Output = T>) -> Result<T, Error> {
    let mut future = pin!(future);
    loop {
        match timeout(TICK, future.as_mut()).await {
            Ok(done) => return Ok(done),
            Err(_) if stop.load(Ordering::Relaxed) => return Err(Error::Interrupted),
            Err(_) => {}
        }
    }
}

fn silence(time: Duration) -> String {
    format!("no answer within {} s", time.as_secs())
}

fn lost(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ApplicationClosed(close) if close.reason.is_empty() => {
            format!("closed by the server, with code {}", close.error_code)
        }
        ConnectionError::ApplicationClosed(close) => {
            format!("closed by the server: {}", Foreign::from(&close.reason[..]))
        }
        ConnectionError::TimedOut => "timed out".into(),
        other => shown(&other.to_string()),
    }
}

/// What a server says, on one line.
fn shown(text: &str) -> String {
    Foreign::from(text).to_string()
}

fn unread(error: &ReadError) -> String {
    match error {
        ReadError::ConnectionLost(error) => lost(error),
        ReadError::Reset(code) if *code == TOO_SLOW => "the server's patience ended".into(),
        ReadError::Reset(_) => "the server cannot read the file".into(),
        other => other.to_string(),
    }
}

fn unwritten(error: &WriteError) -> String {
    match error {
        WriteError::ConnectionLost(error) => lost(error),
        other => other.to_string(),
    }
}

/// What has arrived.
enum Piece {
    /// Bytes, and where in the file they belong.
    Bytes(u64, Bytes),
    /// All of a range.
    End(Range<u64>),
}

/// What the tasks of a transfer share.
struct Shared {
    connection: Connection,
    file: File,
    begin: Instant,
    /// If the server tells.
    size: Option<u64>,
    control: Option<String>,
    /// Where the next range begins.
    next: AtomicU64,
    /// Bytes that have been written.
    bytes: AtomicU64,
    reports: Mutex<Vec<PathReport>>,
    /// The server's.
    sha256: OnceLock<String>,
}

impl Shared {
    fn new(
        connection: &Connection,
        output: &Output,
        begin: Instant,
        size: Option<u64>,
        control: Option<String>,
    ) -> Result<Arc<Shared>, Error> {
        let file = output.written.as_file().try_clone();
        Ok(Arc::new(Shared {
            connection: connection.clone(),
            file: file.map_err(|error| Error::failed(output.target.display(), error))?,
            begin,
            size,
            control,
            next: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            reports: Mutex::default(),
            sha256: OnceLock::new(),
        }))
    }
}

/// From a server of ours.
async fn transfer(
    get: &Get,
    asked: Option<String>,
    connection: &Connection,
    paths: &mut Paths,
    output: &Output,
    stop: &AtomicBool,
    show: impl FnMut(&Progress),
) -> Result<Received, Error> {
    let start = Instant::now();
    let failed = |why: String| Error::failed(&get.url.server, why);
    let refused = |why: String| Error::failed(format!("{:?}", get.url.name), why);
    let asking = timeout(PATIENCE, ask(connection, &get.url.name));
    let answer = unless(stop, asking).await?.map_err(|_| failed(silence(PATIENCE)))?;
    let (lines, answer) = answer.map_err(failed)?;
    let (size, control) = match answer {
        Reply::File { size, control } => (size, shown(&control)),
        Reply::Refused(why) => return Err(refused(shown(&why))),
        _ => return Err(failed("not the answer that was expected".into())),
    };
    // The server reads the name in the client's first packet, and may miss it in a later one.
    if let Some(asked) = asked.filter(|asked| *asked != control) {
        return Err(failed(format!("it uses {control}, not {asked}, for which --cc asks")));
    }
    let shared = Shared::new(connection, output, start, Some(size), Some(control))?;
    let (pieces, writing) = Writing::new(&shared);
    let mut tasks = JoinSet::new();
    for _ in 0..STREAMS {
        tasks.spawn(stream(shared.clone(), size, pieces.clone()));
    }
    drop(pieces);
    tasks.spawn(take_lines(lines, shared.clone()));

    let whole = async {
        // The one that takes lines ends with an error only.
        for _ in 0..STREAMS {
            ended(tasks.join_next().await).map_err(failed)?;
        }
        let elapsed = shared.begin.elapsed();
        let hash = writing.hash(&output.target).await?;
        let known = async {
            while shared.sha256.get().is_none() {
                let end = timeout(TICK / 10, tasks.join_next()).await;
                end.map_or(Ok(()), ended)?;
            }
            Ok(())
        };
        let known = timeout(HASH_PATIENCE, known).await.unwrap_or_else(|_| {
            Err(format!("it has sent no SHA-256 within {} s", HASH_PATIENCE.as_secs()))
        });
        known.map_err(failed)?;
        if shared.sha256.get() != Some(&hash) {
            let message = format!("SHA-256 is {hash}, not the server's; the file is discarded");
            return Err(refused(message));
        }
        Ok((hash, elapsed))
    };
    watch(get, &shared, whole, paths, stop, show).await
}

/// By `hq-interop`: the answer to the one request is the file. Its end shows that it is whole.
async fn whole(
    get: &Get,
    connection: &Connection,
    paths: &mut Paths,
    output: &Output,
    stop: &AtomicBool,
    show: impl FnMut(&Progress),
) -> Result<Received, Error> {
    let start = Instant::now();
    let failed = |why: String| Error::failed(&get.url.server, why);
    // Other paths are opened once it answers: it then knows connection ids of ours for them.
    let asking = timeout(PATIENCE, begin(connection, &get.url.name));
    let answer = unless(stop, asking).await?.map_err(|_| failed(silence(PATIENCE)))?;
    let (recv, first) = answer.map_err(failed)?;
    let shared = Shared::new(connection, output, start, None, None)?;
    let (pieces, writing) = Writing::new(&shared);
    let whole = async {
        take(recv, first, pieces).await.map_err(failed)?;
        let elapsed = shared.begin.elapsed();
        Ok((writing.hash(&output.target).await?, elapsed))
    };
    watch(get, &shared, whole, paths, stop, show).await
}

/// The request, and the first bytes of its answer, which may have none.
async fn begin(connection: &Connection, name: &str) -> Result<(RecvStream, Option<Bytes>), String> {
    let (mut send, mut recv) = connection.open_bi().await.map_err(|error| lost(&error))?;
    send.write_all(&plain::request(name)).await.map_err(|error| unwritten(&error))?;
    let _ = send.finish();
    let first = following(&mut recv, 0).await?;
    Ok((recv, first))
}

/// The bytes that begin `at`, unless the file ends there.
async fn following(recv: &mut RecvStream, at: u64) -> Result<Option<Bytes>, String> {
    recv.read_chunk(MAX_RANGE as usize).await.map_err(|error| match error {
        ReadError::Reset(code) => format!("it reset the stream after {at} bytes, with code {code}"),
        other => unread(&other),
    })
}

/// The whole answer from its first bytes on.
async fn take(
    mut recv: RecvStream,
    mut next: Option<Bytes>,
    pieces: Sender<Piece>,
) -> Result<(), String> {
    let (mut at, mut ended) = (0, 0);
    while let Some(chunk) = next {
        let length = chunk.len() as u64;
        // What writes may have failed, and says why.
        let Ok(()) = pieces.send(Piece::Bytes(at, chunk)).await else { return Ok(()) };
        at += length;
        if at - ended >= MAX_RANGE {
            let Ok(()) = pieces.send(Piece::End(ended..at)).await else { return Ok(()) };
            ended = at;
        }
        next = following(&mut recv, at).await?;
    }
    let _ = pieces.send(Piece::End(ended..at)).await;
    Ok(())
}

/// Shows how far a transfer is, until it is `whole`: the hash and the time that it took.
async fn watch(
    get: &Get,
    shared: &Shared,
    whole: impl Future<Output = Result<(String, Duration), Error>>,
    paths: &mut Paths,
    stop: &AtomicBool,
    mut show: impl FnMut(&Progress),
) -> Result<Received, Error> {
    let mut whole = pin!(whole);
    let mut rates = Rates::default();
    let mut last = (0, Instant::now());
    loop {
        paths.look(&shared.connection);
        let mut now = progress(paths, shared, shared.begin.elapsed());
        rates.fill(&mut now);
        show(&now);
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        // The hash of a large file may come later than its last byte.
        if last.0 != now.bytes || Some(now.bytes) == now.size {
            last = (now.bytes, Instant::now());
        } else if last.1.elapsed() > STALLED {
            let message = format!("nothing has arrived for {} s", STALLED.as_secs());
            return Err(Error::failed(&get.url.server, message));
        }
        if let Ok(whole) = timeout(TICK, whole.as_mut()).await {
            let (sha256, elapsed) = whole?;
            let progress = progress(paths, shared, elapsed).finished();
            return Ok(Received { sha256, progress });
        }
    }
}

/// The end of a task.
fn ended(task: Option<Result<Result<(), String>, JoinError>>) -> Result<(), String> {
    task.unwrap_or(Ok(Ok(()))).map_err(|error| error.to_string())?
}

/// The first request, and the first line of its answer.
async fn ask(connection: &Connection, name: &str) -> Result<(Lines, Reply), String> {
    let (mut send, recv) = connection.open_bi().await.map_err(|error| lost(&error))?;
    let request = Request::File(name.into()).bytes();
    send.write_all(&request).await.map_err(|error| unwritten(&error))?;
    // Only a stream that was reset cannot be finished.
    let _ = send.finish();
    let mut lines = Lines { recv, read: VecDeque::new() };
    let answer = lines.next().await?;
    Ok((lines, answer))
}

/// The server's answers to the first request.
struct Lines {
    recv: RecvStream,
    read: VecDeque<u8>,
}

impl Lines {
    async fn next(&mut self) -> Result<Reply, String> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| format!("the server's answer: {error}"));
            }
            if self.read.len() > MAX_REPLY {
                return Err(format!("the server's answer: a line of more than {MAX_REPLY} bytes"));
            }
            let chunk = self.recv.read_chunk(MAX_REPLY).await.map_err(|error| unread(&error))?;
            self.read.extend(chunk.ok_or("the server's answer ended early")?);
        }
    }
}

async fn take_lines(mut lines: Lines, shared: Arc<Shared>) -> Result<(), String> {
    loop {
        match lines.next().await? {
            Reply::Paths(paths) => {
                *shared.reports.lock().unwrap_or_else(PoisonError::into_inner) = paths;
            }
            // The first counts.
            Reply::Sha256(hash) => drop(shared.sha256.set(hash)),
            Reply::Refused(why) => return Err(shown(&why)),
            Reply::File { .. } => return Err("the server's answer: not expected here".into()),
        }
    }
}

/// Gets one range after the other.
async fn stream(shared: Arc<Shared>, size: u64, pieces: Sender<Piece>) -> Result<(), String> {
    loop {
        let offset = shared.next.fetch_add(MAX_RANGE, Ordering::Relaxed);
        if offset >= size {
            return Ok(());
        }
        let length = MAX_RANGE.min(size - offset);
        let opened = shared.connection.open_bi().await;
        let (mut send, mut recv) = opened.map_err(|error| lost(&error))?;
        let request = Request::Range { offset, length }.bytes();
        send.write_all(&request).await.map_err(|error| unwritten(&error))?;
        let _ = send.finish();
        let (mut at, end) = (offset, offset + length);
        while let Some(chunk) =
            recv.read_chunk(MAX_RANGE as usize).await.map_err(|error| unread(&error))?
        {
            if chunk.len() as u64 > end - at {
                return Err("the server sent more than was asked for".into());
            }
            let length = chunk.len() as u64;
            if pieces.send(Piece::Bytes(at, chunk)).await.is_err() {
                // What writes has failed, and says why.
                return Ok(());
            }
            at += length;
        }
        if at < end {
            return Err("the server sent less than was asked for".into());
        }
        if pieces.send(Piece::End(offset..end)).await.is_err() {
            return Ok(());
        }
    }
}

/// What writes the file.
struct Writing {
    hash: JoinHandle<std::io::Result<String>>,
    _over: Dropped,
}

impl Writing {
    /// And where it is sent what arrives.
    fn new(shared: &Arc<Shared>) -> (Sender<Piece>, Writing) {
        let (pieces, arriving) = channel(PIECES);
        let over = Dropped::default();
        let (shared, flag) = (shared.clone(), over.flag());
        let hash = spawn_blocking(move || write(&shared, arriving, &flag));
        (pieces, Writing { hash, _over: over })
    }

    /// Once all that was sent is written.
    async fn hash(self, target: &Path) -> Result<String, Error> {
        let failed = |error: std::io::Error| Error::failed(target.display(), error);
        self.hash.await.map_err(|error| failed(error.into()))?.map_err(failed)
    }
}

/// Writes what arrives, and hashes the file from its beginning on as that grows: ranges arrive in any
/// order. The hash, once all streams have ended; not of all if the transfer is `over` before.
fn write(
    shared: &Shared,
    mut pieces: Receiver<Piece>,
    over: &AtomicBool,
) -> std::io::Result<String> {
    let (mut hasher, mut whole, mut later) = (Hasher::new(), 0, BTreeMap::new());
    while let Some(piece) = pieces.blocking_recv() {
        match piece {
            Piece::Bytes(at, bytes) => {
                shared.file.write_all_at(&bytes, at)?;
                shared.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            }
            Piece::End(range) => {
                later.insert(range.start, range.end);
                while let Some(end) = later.remove(&whole) {
                    whole = end;
                }
                hasher.read(&shared.file, whole, || !over.load(Ordering::Relaxed))?;
            }
        }
    }
    Ok(hasher.finish())
}

fn progress(paths: &Paths, shared: &Shared, elapsed: Duration) -> Progress {
    let reports = shared.reports.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let paths = paths.lines().iter().map(|line| {
        let id = line.id().map(number);
        let report = reports.iter().find(|report| Some(report.id) == id).cloned();
        PathProgress { local: line.local, id, bytes: line.bytes(), rate: 0.0, report }
    });
    Progress {
        bytes: shared.bytes.load(Ordering::Relaxed),
        size: shared.size,
        elapsed,
        rate: 0.0,
        control: shared.control.clone(),
        multipath: shared.connection.is_multipath_enabled(),
        paths: paths.collect(),
    }
}

impl Progress {
    /// Rates over the whole time.
    fn finished(mut self) -> Progress {
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        self.rate = self.bytes as f64 / seconds;
        self.paths.iter_mut().for_each(|path| path.rate = path.bytes as f64 / seconds);
        self
    }
}

/// What had arrived at former ticks.
#[derive(Default)]
struct Rates(VecDeque<Progress>);

impl Rates {
    fn fill(&mut self, now: &mut Progress) {
        if let Some(then) = self.0.front() {
            let seconds = (now.elapsed - then.elapsed).as_secs_f64().max(1e-9);
            now.rate = (now.bytes - then.bytes) as f64 / seconds;
            for path in &mut now.paths {
                let then = then.paths.iter().find(|then| then.local == path.local);
                let before = then.map_or(0, |then| then.bytes);
                path.rate = (path.bytes - before) as f64 / seconds;
            }
        }
        self.0.push_back(now.clone());
        if self.0.len() > RATE_TICKS {
            self.0.pop_front();
        }
    }
}
