//! Transfers over the loopback device, of which all of 127.0.0.0/8 is local.

mod common;
mod middlebox;

use common::{Served, runtime};
use middlebox::Middlebox;
use narrows_transfer::{Error, Url, get};
use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

const MB: usize = 1_000_000;
const BOTH: [&str; 2] = ["127.0.0.1", "127.0.0.2"];

/// A file of so many bytes, at a free port.
fn on_loopback(bytes: usize) -> Served {
    Served::new(bytes, SocketAddr::from(([127, 0, 0, 1], 0)), || ())
}

/// Panics if anything but the served folder is there.
fn nothing_is_left(served: &Served) {
    let names = fs::read_dir(served.home.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["served"]);
}

#[test]
fn a_file_arrives_over_two_paths_with_its_hash() {
    let served = on_loopback(20 * MB + 1);
    let mut shown = 0;
    let received = served.arrives(&served.request(&BOTH), |_| shown += 1);
    let end = &received.progress;
    assert_eq!((end.bytes, end.size), (20 * MB as u64 + 1, Some(20 * MB as u64 + 1)));
    assert_eq!(end.control.as_deref(), Some("gcubic+xcorr"));
    assert!(shown > 0);
    assert_eq!(end.paths.len(), 2);
    for (path, local) in end.paths.iter().zip(BOTH) {
        assert_eq!(path.local.unwrap().to_string(), local);
        assert!(path.bytes > 0, "nothing arrived at {local}");
    }
    // sha256sum's, of a program that is not ours.
    let file = served.output();
    if let Ok(sum) = std::process::Command::new("sha256sum").arg(&file).output() {
        assert!(String::from_utf8_lossy(&sum.stdout).starts_with(&received.sha256));
    }
}

#[test]
fn an_empty_file_arrives_and_the_server_uses_the_control_that_is_asked_for() {
    let served = on_loopback(0);
    let mut request = served.request(&[]);
    request.control = Some("olia".into());
    assert_eq!(served.arrives(&request, |_| ()).progress.control.as_deref(), Some("olia"));
}

#[test]
fn another_certificate_is_refused() {
    let served = on_loopback(1000);
    let mut request = served.request(&[]);
    let other = Some("ab".repeat(32).parse().unwrap());
    request.url = Url { fingerprint: other, ..request.url };
    let error = served.get(&request, |_| ()).unwrap_err();
    assert!(matches!(error, Error::Failed(..)));
    let line = error.to_string();
    assert!(
        line.contains("refused") && line.contains(&served.url.fingerprint.unwrap().to_string()),
        "{line}"
    );
    nothing_is_left(&served);
}

#[test]
fn files_outside_of_the_folder_are_refused() {
    let served = on_loopback(1000);
    fs::write(served.home.path().join("secret"), "secret").unwrap();
    for (name, why) in [
        ("../secret", "outside of the served folder"),
        ("/etc/passwd", "outside of the served folder"),
        ("none", "no such file"),
        ("file\0", "not a name of a file"),
    ] {
        let mut request = served.request(&[]);
        request.url.name = name.into();
        let error = served.get(&request, |_| ()).unwrap_err();
        assert_eq!(error.to_string(), format!("{name:?}: {why}"));
    }
    fs::remove_file(served.home.path().join("secret")).unwrap();
    nothing_is_left(&served);
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    let served = on_loopback(1000);
    fs::write(served.output(), "mine").unwrap();
    let error = served.get(&served.request(&[]), |_| ()).unwrap_err();
    assert!(
        matches!(&error, Error::Input(_, why) if why == "already exists and is not overwritten")
    );
    assert_eq!(fs::read_to_string(served.output()).unwrap(), "mine");
}

/// It appears while the transfer runs.
#[test]
fn a_file_that_appears_meanwhile_is_not_overwritten() {
    let served = on_loopback(10 * MB);
    let request = served.request(&[]);
    let error = served.get(&request, |_| fs::write(served.output(), "mine").unwrap()).unwrap_err();
    assert!(matches!(error, Error::Failed(..)), "{error}");
    assert_eq!(fs::read_to_string(served.output()).unwrap(), "mine");
    fs::remove_file(served.output()).unwrap();
    nothing_is_left(&served);
}

#[test]
fn a_transfer_that_is_stopped_leaves_nothing() {
    let served = on_loopback(200 * MB);
    let stop = AtomicBool::new(false);
    let request = served.request(&BOTH);
    let getting = get(&request, &stop, |now| {
        assert!(Some(now.bytes) < now.size, "too fast to be stopped");
        stop.store(now.bytes > 0, Ordering::Relaxed);
    });
    assert!(matches!(runtime().block_on(getting), Err(Error::Interrupted)));
    nothing_is_left(&served);
}

#[test]
fn a_server_that_falls_silent_ends_the_transfer() {
    let served = on_loopback(1000);
    let mut request = served.request(&[]);
    // Nobody answers at the discard port.
    request.url.server = "127.0.0.1:9".into();
    let line = served.get(&request, |_| ()).unwrap_err().to_string();
    assert_eq!(line, "127.0.0.1:9: no answer within 10 s");
    nothing_is_left(&served);
}

#[test]
fn one_percent_of_loss_on_one_path_is_repaired() {
    let served = on_loopback(10 * MB);
    let middlebox = Middlebox::new(&served.url.server);
    middlebox.lose(BOTH[1], 0.01);
    let mut request = served.request(&BOTH);
    request.url.server = middlebox.address.to_string();
    served.arrives(&request, |_| ());
    assert!(middlebox.lost() > 0);
}

/// The first path, which all acknowledgements take.
#[test]
fn a_path_that_dies_half_way_is_given_up() {
    let served = on_loopback(10 * MB);
    let middlebox = Middlebox::new(&served.url.server);
    middlebox.silence(BOTH[0], 5 * MB as u64);
    let mut request = served.request(&BOTH);
    request.url.server = middlebox.address.to_string();
    let received = served.arrives(&request, |_| ());
    assert!(middlebox.lost() > 0);
    // It is opened again and again, as its address is there; nothing arrives.
    assert!(received.progress.paths[0].report.is_none());
}

#[test]
fn a_nat_that_gives_other_ports_is_followed() {
    let served = on_loopback(10 * MB);
    let middlebox = Middlebox::new(&served.url.server);
    middlebox.rebind(BOTH[0], 3 * MB as u64);
    middlebox.rebind(BOTH[1], 5 * MB as u64);
    let mut request = served.request(&BOTH);
    request.url.server = middlebox.address.to_string();
    served.arrives(&request, |_| ());
    // The second path is pinged once a second, and sends nothing else.
    assert_eq!(middlebox.rebound(), 2);
}
