//! `narrows quic`: a server and its clients, as processes.

#![cfg(feature = "quic")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn narrows(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_narrows"));
    command.arg("quic").args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Standard error of a command that fails with this code; what it says is one line.
fn fails(args: &[&str], code: i32) -> String {
    let output = narrows(args).output().unwrap();
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(output.stdout.is_empty());
    line.trim_end().strip_prefix("narrows: ").unwrap().to_owned()
}

fn interrupt(child: &Child) {
    let pid = libc::pid_t::try_from(child.id()).unwrap();
    // SAFETY: kill() takes numbers only; the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGINT) }, 0);
}

/// A server of `dir` on the loopback, and the URL of its file `file`.
struct Serving(Child, String);

impl Serving {
    fn new(dir: &Path) -> Serving {
        let listen = ["serve", dir.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        let mut child = narrows(&listen).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        Serving(child, line.trim_end().replace("FILE", "file"))
    }

    /// Ctrl-C; what it has said.
    fn end(mut self) -> String {
        interrupt(&self.0);
        let mut said = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(self.0.wait().unwrap().code(), Some(0), "{said}");
        said
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It has ended unless a test failed.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A file with holes, which needs no space.
fn file(path: &Path, bytes: u64) {
    fs::File::create(path).unwrap().set_len(bytes).unwrap();
}

#[test]
fn a_file_is_got_over_two_paths_and_its_hash_is_shown() {
    let home = tempfile::tempdir().unwrap();
    file(&home.path().join("file"), 50_000_000);
    let got = home.path().join("got");
    for cc in ["olia", "bbr"] {
        is_got(home.path(), &got, cc);
        fs::remove_file(&got).unwrap();
    }
}

/// Gets the file under a control that couples both paths, to `got`.
fn is_got(home: &Path, got: &Path, cc: &str) {
    let serving = Serving::new(home);
    let paths = ["--path", "127.0.0.1", "--path", "127.0.0.2", "--cc", cc];
    let get = ["get", &serving.1, "-o", got.to_str().unwrap()];
    let Output { status, stdout, stderr } = narrows(&[&get[..], &paths].concat()).output().unwrap();
    let said = String::from_utf8(stdout).unwrap();
    assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
    assert!(said.contains("got: 50000000 bytes in "), "{said}");
    assert!(said.contains(&format!(", {cc}\n")) && said.contains("  127.0.0.2 "), "{said}");
    assert!(said.contains("2 paths are coupled, nothing is known of bottlenecks"), "{said}");
    // `head -c 50000000 /dev/zero | sha256sum`
    let hash = "SHA-256 ";
    let at = said.find(hash).unwrap() + hash.len();
    let sum = Command::new("sha256sum").arg(got).output().unwrap();
    assert!(sum.stdout.starts_with(&said.as_bytes()[at..at + 64]), "{said}");
    let log = serving.end();
    assert!(log.contains(&format!("\"file\": 50000000 bytes, {cc}")), "{log}");
    assert!(log.contains("\"file\": 50000000 bytes sent"), "{log}");
}

/// The URL of the same file by `hq-interop`.
fn plain(url: &str) -> String {
    url.split_once('#').unwrap().0.replace("quic://", "https://")
}

/// By `hq-interop`, which tells neither the length of a file nor whether there is one.
#[test]
fn a_file_is_got_as_from_a_server_of_another_stack() {
    let home = tempfile::tempdir().unwrap();
    file(&home.path().join("file"), 5_000_000);
    file(&home.path().join("empty"), 0);
    let serving = Serving::new(home.path());
    let url = plain(&serving.1);
    let got = home.path().join("got");
    let get = |url: &str, more: &[&str]| {
        let args = [&["get", url, "-k", "-o", got.to_str().unwrap()], more].concat();
        let Output { status, stdout, stderr } = narrows(&args).output().unwrap();
        let [said, noted] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(noted.starts_with("narrows: the certificate is not checked"), "{noted}");
        (status.code(), said, noted)
    };
    let (code, said, noted) = get(&url, &["--path", "127.0.0.1", "--path", "127.0.0.2"]);
    // On a busy machine there are lines of progress, too.
    assert_eq!((code, noted.matches("narrows: ").count()), (Some(0), 1), "{noted}");
    assert!(said.starts_with(&format!("{}: 5000000 bytes in ", got.display())), "{said}");
    assert!(said.contains(", hq-interop\nSHA-256 ") && !said.contains("as the server's"), "{said}");
    assert!(said.contains("  127.0.0.2 ") && said.ends_with("  the server does not report\n"));
    assert_eq!(fs::metadata(&got).unwrap().len(), 5_000_000);
    fs::remove_file(&got).unwrap();
    let (code, said, noted) = get(&url.replace("/file", "/empty"), &[]);
    assert!(code == Some(0) && said.contains("got: 0 bytes in "), "{said}");
    assert!(noted.contains("the server sent nothing"), "{noted}");
    fs::remove_file(&got).unwrap();
    let (code, said, noted) = get(&url.replace("/file", "/none"), &[]);
    assert_eq!((code, said.as_str()), (Some(1), ""));
    assert!(noted.ends_with("it reset the stream after 0 bytes, with code 1\n"), "{noted}");
    assert!(!got.exists());
    serving.end();
}

/// Whose name came in a link that somebody sent.
#[test]
fn what_a_file_is_called_is_told_on_one_line() {
    let home = tempfile::tempdir().unwrap();
    let (served, into) = (home.path().join("served"), home.path().join("into"));
    fs::create_dir(&served).unwrap();
    fs::create_dir(&into).unwrap();
    file(&served.join("ev\u{1b}[2J\u{202e}\nil"), 1000);
    let serving = Serving::new(&served);
    let url = serving.1.replace("/file#", "/ev%1b[2J%E2%80%AE%0Ail#");
    let got = narrows(&["get", &url]).current_dir(&into).output().unwrap();
    let said = String::from_utf8(got.stdout).unwrap();
    assert!(said.starts_with("ev\\u001b[2J\\u202e\\nil: 1000 bytes in "), "{said:?}");
    let log = serving.end();
    let bad = |one: char| one == '\u{202e}' || one.is_control() && one != '\n';
    assert!(!log.contains(bad) && log.lines().all(|line| line.contains("127.0.0.1:")), "{log:?}");
}

#[test]
fn memory_does_not_grow_with_the_file() {
    let home = tempfile::tempdir().unwrap();
    let most = |bytes: u64| {
        file(&home.path().join("file"), bytes);
        let serving = Serving::new(home.path());
        let got = home.path().join("got");
        let mut get = narrows(&["get", &serving.1, "-o", got.to_str().unwrap()]);
        let mut get = get.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let (mut most, status) = ([0; 2], Path::new("/proc"));
        while get.try_wait().unwrap().is_none() {
            for (most, child) in most.iter_mut().zip([&get, &serving.0]) {
                let text = fs::read_to_string(status.join(child.id().to_string()).join("status"));
                let text = text.unwrap_or_default();
                let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
                let kb = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
                *most = u64::max(*most, kb.unwrap_or(0));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(get.wait().unwrap().success());
        fs::remove_file(got).unwrap();
        serving.end();
        most
    };
    let (small, large) = (most(100_000_000), most(500_000_000));
    for (small, large) in small.into_iter().zip(large) {
        // Windows and buffers are some 20 MB; the file is 400 MB longer.
        assert!(large < small + 100_000, "{large} kB for 500 MB, {small} kB for 100 MB");
    }
}

#[test]
fn a_get_that_is_interrupted_leaves_nothing() {
    let home = tempfile::tempdir().unwrap();
    let (served, into) = (home.path().join("served"), home.path().join("into"));
    fs::create_dir(&served).unwrap();
    fs::create_dir(&into).unwrap();
    file(&served.join("file"), 5_000_000_000);
    let serving = Serving::new(&served);
    let mut get = narrows(&["get", &serving.1]).current_dir(&into).spawn().unwrap();
    let begin = Instant::now();
    while fs::read_dir(&into).unwrap().count() == 0 {
        assert!(begin.elapsed() < Duration::from_secs(30), "it never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(500));
    interrupt(&get);
    let mut said = String::new();
    get.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(get.wait().unwrap().code(), Some(130), "{said}");
    assert!(said.ends_with("narrows: interrupted, no file was written\n"), "{said}");
    assert_eq!(fs::read_dir(&into).unwrap().count(), 0, "something was left");
    serving.end();
}

#[test]
fn mistakes_are_told_in_one_line() {
    let home = tempfile::tempdir().unwrap();
    file(&home.path().join("file"), 1000);
    let serving = Serving::new(home.path());
    let url = serving.1.as_str();
    let plain = &plain(url);
    let taken = home.path().join("file");
    let (got, taken) = (home.path().join("got"), taken.to_str().unwrap());
    let (got, below) = (got.to_str().unwrap(), format!("{taken}/got"));
    for (args, expected) in [
        (&["get", "http://a"][..], "neither quic:// nor https://"),
        (&["get", url, "-o", taken], "already exists and is not overwritten"),
        (&["get", url, "-o", "/none/got"], "/none/got: "),
        (
            &["get", url, "-o", got, "--cc", "oila"],
            "--cc: unknown law 'oila' (did you mean 'olia'?)",
        ),
        (
            &["get", url, "-o", got, "--cc", "mptcp-sbd"],
            "--cc: signal receiver-us: a one-way delay",
        ),
        (&["get", url, "-o", got, "--path", "a/b"], "expected a local IP address or the name"),
        (
            &["get", url, "-o", got, "--path", "192.0.2.1"],
            "--path 192.0.2.1: this host has no IPv4",
        ),
        (&["get", url, "-o", got, "--path", "::1"], "--path ::1: this host has no IPv4"),
        (&["get", url, "-o", got, "--ca", taken], "the URL has the certificate's fingerprint"),
        (&["get", plain, "-o", got, "--ca", "/none"], "--ca /none: No such file"),
        (&["get", plain, "-o", got, "--ca", taken], "expected certificates in PEM"),
        (&["get", plain, "-o", taken], "already exists and is not overwritten"),
        // Nor is it told that whoever answers is not known.
        (&["get", plain, "-k", "-o", taken], "already exists and is not overwritten"),
        (&["get", plain, "-k", "-o", &below], "/file/got: Not a directory (os error 20)"),
        (&["get", plain, "-k", "-o", got, "--cc", "oila"], "--cc: unknown law 'oila'"),
        (&["get", plain, "-k", "-o", got, "--path", "::1"], "--path ::1: this host has no IPv4"),
        (&["serve", "/none"], "/none: No such file"),
        (&["serve", taken], "not a directory"),
        (&["serve", ".", "--listen", "192.0.2.1:1"], "--listen 192.0.2.1:1: "),
        (&["serve", ".", "--cc", "mptcp-sbd"], "--cc: signal receiver-us: a one-way delay"),
    ] {
        let line = fails(args, 2);
        assert!(line.contains(expected), "{line}");
        assert!(!line.contains(".narrows-"), "a name that nobody chose: {line}");
    }
    let (rest, _) = url.split_once('#').unwrap();
    let other = format!("{rest}#{}", "00".repeat(32));
    assert!(
        fails(&["get", &other, "-o", got], 1).contains("refused, its certificate has the fing")
    );
    let none = url.replace("/file", "/none");
    assert_eq!(fails(&["get", &none, "-o", got], 1), "\"none\": no such file");
    // This system's authorities did not issue it; the second if there are none.
    let refused = narrows(&["get", plain, "-o", got]).output().unwrap();
    let line = String::from_utf8(refused.stderr).unwrap();
    match refused.status.code() {
        Some(1) => assert!(line.ends_with("is of an unknown issuer (see --ca)\n"), "{line}"),
        code => assert!(code == Some(2) && line.contains("no authorities are found"), "{line}"),
    }
    assert!(!Path::new(got).exists());
    serving.end();
}
