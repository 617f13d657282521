//! `narrows detect` of what comes: standard input, an interface.

use std::io::{self, IsTerminal, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use narrows_detect::{Event, Limits, Part, Report, Stream, Times, line, text, who};
use narrows_laws::{Detector, Params};

use crate::args::detect::DetectArgs;
use crate::error::Error;
use crate::terminal::{command, print_while_read};
use crate::{note, print, stop};

/// Bytes read at once, and how many of these wait.
const CHUNK: usize = 256 << 10;
const WAITING: usize = 8;

/// How soon the end of the time and Ctrl-C are seen.
const TICK: Duration = Duration::from_millis(50);

/// Flows of the table.
const ROWS: usize = 16;

/// Of each packet: the headers, also of IPv6 within VXLAN over IPv6, of which TCP's options end at byte 184.
const SNAP_LENGTH: &str = "192";

/// Reads a capture from `from` as it comes, until its end or Ctrl-C.
pub fn read(
    name: &str,
    from: impl Read + Send + 'static,
    json: bool,
    detector: Detector,
    params: &Params,
    limits: Limits,
) -> Result<(), Error> {
    let from = Piped::new(from, stop::on_signal()?, None, None);
    told(name, from, json, detector, params, limits)?.end(json)
}

/// Captures on an interface by tcpdump, until the end of --for or Ctrl-C.
pub fn interface(
    interface: &str,
    args: &DetectArgs,
    detector: Detector,
    params: &Params,
    limits: Limits,
) -> Result<(), Error> {
    let stop = stop::on_signal()?;
    let mut command = Command::new("tcpdump");
    command.args(["-i", interface, "-s", SNAP_LENGTH, "-U", "-w", "-", "--", &args.filter]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let child = command.spawn();
    let child =
        child.map_err(|error| Error::input("tcpdump", format!("cannot run it: {error}")))?;
    let mut tcpdump = Tcpdump(child);
    let (Some(packets), Some(mut said)) = (tcpdump.0.stdout.take(), tcpdump.0.stderr.take()) else {
        return Err(Error::input("tcpdump", "has no output"));
    };
    let said = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = said.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let from = Piped::new(packets, stop, end, Some(tcpdump.0.id()));
    let asked = Arc::clone(&from.asked);
    let told = told(interface, from, args.json, detector, params, limits);
    let status = tcpdump.end()?;
    let said = said.join().unwrap_or_default();
    let failed = match status.code() {
        Some(0) => None,
        // Its last line is the reason.
        Some(_) => {
            let why =
                said.trim().lines().last().unwrap_or("failed").trim_start_matches("tcpdump: ");
            let why = why.trim_start_matches(&format!("{interface}: "));
            Some(format!("tcpdump: {}", why.trim_matches(['(', ')'])))
        }
        None if asked.load(Ordering::Relaxed) => None,
        None => Some(format!("tcpdump was killed ({status})")),
    };
    let failed = failed.map(|why| Error::input(interface, why));
    let mut told = match (told, failed) {
        (Ok(told), None) => told,
        (Err(error), None) | (Err(_), Some(error)) => return Err(error),
        // What was found until then is not lost.
        (Ok(told), Some(error)) => return told.end(args.json).and(Err(error)),
    };
    let dropped = said.lines().find(|line| line.ends_with("dropped by kernel"));
    let dropped = dropped.filter(|line| !line.starts_with("0 "));
    told.part.recording.notes.extend(dropped.map(|line| format!("{interface}: {line}")));
    told.end(args.json)
}

/// A child that does not outlive us.
struct Tcpdump(Child);

impl Tcpdump {
    /// Waits for its end, and sees to it that it comes.
    fn end(&mut self) -> Result<ExitStatus, Error> {
        let mut asking = Asking::default();
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) => return Ok(status),
                Ok(None) => asking.ask(self.0.id()),
                Err(error) => return Err(Error::input("tcpdump", error)),
            }
            thread::sleep(TICK);
        }
    }
}

impl Drop for Tcpdump {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asks a child to end: by SIGINT, each second again, and after three by SIGKILL.
#[derive(Default)]
struct Asking {
    since: Option<Instant>,
    times: u32,
}

impl Asking {
    fn ask(&mut self, child: u32) {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() < Duration::from_secs(self.times.into()) {
            return;
        }
        self.times += 1;
        let signal = if self.times > 3 { libc::SIGKILL } else { libc::SIGINT };
        if let Ok(child) = libc::pid_t::try_from(child) {
            // SAFETY: the call has no memory; the process is a child that was not waited for.
            unsafe { libc::kill(child, signal) };
        }
    }
}

/// What is read by a thread of its own, so that to wait for it can be ended.
struct Piped {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: io::Cursor<Vec<u8>>,
    stop: Arc<AtomicBool>,
    end: Option<Instant>,
    /// Who is asked to end first: what it still has is read.
    child: Option<u32>,
    asking: Asking,
    /// It was ended from here.
    asked: Arc<AtomicBool>,
}

impl Piped {
    fn new(
        mut from: impl Read + Send + 'static,
        stop: Arc<AtomicBool>,
        end: Option<Instant>,
        child: Option<u32>,
    ) -> Piped {
        let (sender, chunks) = sync_channel(WAITING);
        thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK];
                let read = match from.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Ok(0) => break,
                    Ok(read) => {
                        chunk.truncate(read);
                        Ok(chunk)
                    }
                    Err(error) => Err(error),
                };
                let last = read.is_err();
                if sender.send(read).is_err() || last {
                    break;
                }
            }
        });
        let (asking, asked) = (Asking::default(), Arc::default());
        Piped { chunks, chunk: io::Cursor::default(), stop, end, child, asking, asked }
    }

    /// Is it to end now?
    fn over(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

impl Read for Piped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.chunk.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let over = self.over();
            if over {
                self.asked.store(true, Ordering::Relaxed);
                self.child.into_iter().for_each(|child| self.asking.ask(child));
            }
            match self.chunks.recv_timeout(TICK) {
                Ok(chunk) => self.chunk = io::Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) if over && self.child.is_none() => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            }
        }
    }
}

/// What was told of a stream, and what is left to tell at its end.
struct Told {
    detector: Detector,
    times: Times,
    part: Part,
}

impl Told {
    /// Tells the rest.
    fn end(self, json: bool) -> Result<(), Error> {
        for what in &self.part.recording.notes {
            note(&format!("narrows: {what}"));
        }
        if json {
            return print(&line(self.detector, &Event::Renewed(&self.part)));
        }
        print(&format!("\n{}", report(self.detector, self.times, self.part)))
    }
}

fn report(detector: Detector, times: Times, part: Part) -> String {
    let Part { recording, found } = part;
    let report = Report::new(&recording, detector, times, found);
    text(&recording, &[report])
}

/// Reads a capture and tells what happens: for people changes in a line each, on a terminal above a table of
/// the present second; in JSON all decisions.
fn told(
    name: &str,
    from: Piped,
    json: bool,
    detector: Detector,
    params: &Params,
    limits: Limits,
) -> Result<Told, Error> {
    let stream = Stream::new(detector, params, limits)?;
    let confidence = !stream.compares_pairs();
    let mut times = Times::new(confidence);
    let mut screen = Screen { stop: Arc::clone(&from.stop), who: String::new(), shown: 0 };
    let asked = Arc::clone(&from.asked);
    let part = stream.read::<Error>(name, from, &asked, |event| {
        if json {
            return screen.print(&line(detector, &event));
        }
        match event {
            Event::Joined { t_s, flows } => {
                let name = flows.last().map_or("", String::as_str);
                screen.line(&format!("{t_s:8.1}  #{} is {name}\n", flows.len()))
            }
            Event::Decided { decision, .. } => {
                times.decided(decision);
                screen.decided(decision.t_s, who(decision, &[]))
            }
            Event::Second { t_s, flows, mbit_per_s } => screen.second(t_s, flows, mbit_per_s),
            Event::Renewed(part) => {
                let times = std::mem::replace(&mut times, Times::new(confidence));
                let part = part.clone();
                screen.who.clear();
                screen.line(&format!("\n{}\n", report(detector, times, part)))
            }
        }
    })?;
    screen.clear()?;
    Ok(Told { detector, times, part })
}

/// Standard output: lines and, if it is a terminal, a table below them.
struct Screen {
    /// Set when nobody reads it any more.
    stop: Arc<AtomicBool>,
    /// Who shares a bottleneck, as it was told last.
    who: String,
    /// Lines of the table.
    shown: usize,
}

impl Screen {
    fn decided(&mut self, t_s: f64, who: String) -> Result<(), Error> {
        if self.who == who {
            return Ok(());
        }
        self.who = who;
        self.line(&format!("{t_s:8.1}  {}\n", self.who))
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        self.clear()?;
        self.print(text)
    }

    fn print(&mut self, text: &str) -> Result<(), Error> {
        let read = print_while_read(text)?;
        self.stop.fetch_or(!read, Ordering::Relaxed);
        Ok(())
    }

    fn second(&mut self, t_s: f64, flows: &[String], mbit_per_s: &[f64]) -> Result<(), Error> {
        if !io::stdout().is_terminal() {
            return Ok(());
        }
        self.clear()?;
        let mut table = format!("\n{t_s:8.1} s      Mbit/s  flow\n");
        let send = flows.iter().zip(mbit_per_s).enumerate().filter(|(_, (_, rate))| **rate > 0.0);
        for (flow, (name, rate)) in send.take(ROWS) {
            table += &format!("{:>10}  {rate:10.2}  {name}\n", format!("#{}", flow + 1));
        }
        table += &format!("{:>10}  {}\n", "", self.who);
        self.shown = table.lines().count();
        // Lines that are cut at the edge, so that there are as many as are taken away.
        command("\u{1b}[?7l")?;
        self.print(&table)?;
        command("\u{1b}[?7h").map(drop)
    }

    /// Takes the table away.
    fn clear(&mut self) -> Result<(), Error> {
        match std::mem::take(&mut self.shown) {
            0 => Ok(()),
            lines => command(&format!("\u{1b}[{lines}A\u{1b}[J")).map(drop),
        }
    }
}
