//! `narrows quic`.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use narrows_foreign::Foreign;
use narrows_transfer::wire::Place;
use narrows_transfer::{Get, PathProgress, Progress, Server, Trust, get as get_file};

use crate::args::quic::{Command, GetArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::terminal::show as show_beside;
use crate::{note, print, stop};

/// Between two lines where there is no terminal.
const LINE: Duration = Duration::from_secs(1);

/// Serves a folder, or gets a file.
pub fn quic(command: &Command) -> Result<(), Error> {
    match command {
        Command::Serve { dir, listen, cc } => serve(dir, *listen, cc),
        Command::Get(args) => get(args),
    }
}

fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.enable_all().build().map_err(|error| Error::input("threads", error))?;
    let done = runtime.block_on(work);
    // A disk or a name server that hangs holds up nobody who wants to stop.
    runtime.shutdown_timeout(Duration::from_secs(1));
    done
}

fn serve(dir: &Path, listen: SocketAddr, cc: &str) -> Result<(), Error> {
    let stop = stop::on_signal()?;
    block_on(async {
        let server = Server::new(dir, listen, cc)?;
        // FILE stays as it is: it needs no encoding.
        let urls = server.urls("FILE").map_err(|error| Error::input("UDP socket", error))?;
        print(&urls.iter().map(|url| format!("{url}\n")).collect::<String>())?;
        Ok(server.run(&stop, |line| note(&line)).await?)
    })
}

fn get(args: &GetArgs) -> Result<(), Error> {
    let trust = match &args.ca {
        _ if args.insecure => Trust::Anyone,
        Some(file) => Trust::Authorities(file.clone()),
        None => Trust::System,
    };
    let output = match (&args.output, args.url.file_name()) {
        (Some(output), _) => output.clone(),
        (None, Some(name)) => PathBuf::from(name),
        (None, None) => {
            return Err(Error::input(&args.url, "expected the name of a file, or -o FILE"));
        }
    };
    let request = Get {
        url: args.url.clone(),
        paths: args.paths.clone(),
        control: args.cc.clone(),
        trust,
        output: output.clone(),
    };
    let stop = stop::on_signal()?;
    let mut unchecked = args.insecure && args.url.fingerprint.is_none();
    let mut warn = || {
        if std::mem::take(&mut unchecked) {
            note("narrows: the certificate is not checked: who answers is not known");
        }
    };
    let bar = bar(args.url.fingerprint.is_some());
    let mut next = LINE;
    let show = |now: &Progress| {
        warn();
        match &bar {
            Some(bar) => {
                if let Some(size) = now.size {
                    bar.set_length(size);
                }
                bar.set_position(now.bytes);
                show_beside(bar, &paths(now));
            }
            None if now.elapsed >= next => {
                next += LINE;
                note(&line(now));
            }
            None => {}
        }
    };
    let received = block_on(async { Ok(get_file(&request, &stop, show).await?) });
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    // Nobody answers to wrong input.
    if received.as_ref().err().is_none_or(|error: &Error| error.exit_code() != Exit::Input as u8) {
        warn();
    }
    let received = received?;
    let end = &received.progress;
    if end.size.is_none() && end.bytes == 0 {
        note("narrows: the server sent nothing: by hq-interop an empty file, or none of this name");
    }
    let text = format!(
        "{}: {} bytes in {:.1} s, {:.1} Mbit/s, {}\nSHA-256 {}{}\n{}\n",
        Foreign::from(output.as_path()),
        end.bytes,
        end.elapsed.as_secs_f64(),
        mbit(end.rate),
        end.control.as_deref().unwrap_or("hq-interop"),
        received.sha256,
        if args.url.fingerprint.is_some() { ", as the server's" } else { "" },
        paths(end),
    );
    print(&text)
}

/// Of a transfer whose length the server tells, or does not.
fn bar(tells_length: bool) -> Option<ProgressBar> {
    if !std::io::stderr().is_terminal() {
        return None;
    }
    let (bar, template) = if tells_length {
        let template = "{bar:30} {decimal_bytes} of {decimal_total_bytes}, {eta} left\n{msg}";
        (ProgressBar::new(0), template)
    } else {
        (ProgressBar::no_length(), "{decimal_bytes} in {elapsed}\n{msg}")
    };
    bar.set_style(ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar()));
    Some(bar)
}

fn mbit(bytes_per_second: f64) -> f64 {
    bytes_per_second * 8e-6
}

/// A line for each path, and one on what they share.
fn paths(now: &Progress) -> String {
    let mut text = String::new();
    for path in &now.paths {
        // Writing to a string cannot fail.
        let _ = write!(text, "  {:<16} {:6.1} Mbit/s", name(path), mbit(path.rate));
        let _ = match (&path.report, path.id) {
            (Some(report), _) => {
                let srtt = report.srtt_us.map_or("-".into(), |us| format!("{}", us / 1000));
                writeln!(text, "  RTT {srtt:>4} ms  cwnd {:5} kB", report.cwnd / 1000)
            }
            (None, Some(_)) if now.control.is_none() => writeln!(text),
            (None, Some(_)) => writeln!(text, "  opening"),
            (None, None) if !now.multipath => {
                writeln!(text, "  not used, the server has no multipath QUIC")
            }
            (None, None) => writeln!(text, "  closed"),
        };
    }
    text + "  " + &bottlenecks(now)
}

/// All in one line.
fn line(now: &Progress) -> String {
    let path = |path: &PathProgress| format!("{} {:.1}", name(path), mbit(path.rate));
    let paths: Vec<String> = now.paths.iter().map(path).collect();
    let of = now.size.map_or(String::new(), |size| format!("of {:.1} ", size as f64 / 1e6));
    format!(
        "{:.1} {of}MB, {:.1} Mbit/s: {}; {}",
        now.bytes as f64 / 1e6,
        mbit(now.rate),
        paths.join(", "),
        bottlenecks(now)
    )
}

fn name(path: &PathProgress) -> String {
    path.local.map_or("default".into(), |local| local.to_string())
}

/// What the server's detector has decided, in words.
fn bottlenecks(now: &Progress) -> String {
    if now.control.is_none() {
        return "the server does not report".into();
    }
    let open: Vec<&PathProgress> = now.paths.iter().filter(|path| path.report.is_some()).collect();
    if open.len() < 2 {
        return "one path".into();
    }
    let place = |path: &PathProgress| path.report.as_ref().and_then(|report| report.place);
    if open.iter().all(|path| place(path).is_none()) {
        let coupled = |path: &&&PathProgress| {
            path.report.as_ref().is_some_and(|report| report.coupled.len() > 1)
        };
        return match open.iter().filter(coupled).count() {
            0 => "no path is coupled".into(),
            count => format!("{count} paths are coupled, nothing is known of bottlenecks"),
        };
    }
    let mut said = Vec::new();
    for (at, path) in open.iter().enumerate() {
        let Some(group @ Place::Group(_)) = place(path) else { continue };
        let with: Vec<_> = open.iter().filter(|other| place(other) == Some(group)).collect();
        if with.len() > 1 && std::ptr::eq(*with[0], open[at]) {
            let names: Vec<String> = with.iter().map(|path| name(path)).collect();
            said.push(format!("{} share a bottleneck", names.join(" and ")));
        }
    }
    let undecided = open.iter().filter(|path| matches!(place(path), Some(Place::Undecided) | None));
    match undecided.count() {
        0 if said.is_empty() => said.push("no bottleneck is shared".into()),
        0 => {}
        count => said.push(format!("{count} undecided")),
    }
    said.join(", ")
}
