//! Programs that people use, over two paths with our control as the hosts' default: all subflows run
//! it, by `ss` and by the map.

mod support;

use narrows_kernel::control::Registered;
use narrows_laws::Control;
use narrows_netns::Namespace;
use narrows_testkit::net;
use std::ffi::OsStr;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use support::Alone;
use support::law::{Net, agree, counted, counter};

const LAW: Control = Control::OLIA;

/// A program that is killed when dropped.
struct Program(Child);

impl Program {
    fn start(host: &Namespace, program: impl AsRef<OsStr>, arguments: &[&str]) -> Program {
        let mut command = net::command(host, program);
        let command = command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        Program(command.spawn().unwrap())
    }

    /// Waits for its end, which must be a good one.
    fn end(mut self) {
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Waits until something listens.
fn listens(host: &Namespace, port: u16) {
    narrows_testkit::wait_until(20, || {
        let listeners = net::run("ss", &["-N", host.name.raw(), "-tlnH"]);
        match listeners.contains(&format!(":{port} ")) {
            true => Ok(()),
            false => Err(format!("nobody listens on {port}")),
        }
    });
}

/// `server` and `client` with what they are started with; while the client works it has
/// `connections` of two subflows.
fn over_two_paths(
    server: (&OsStr, &[&str]),
    client: (&OsStr, &[&str]),
    port: u16,
    connections: usize,
) {
    let law = Registered::register(LAW).unwrap();
    let net = Net::new(&[50, 50]);
    net.set_default(law.name());
    let server = Program::start(&net.server, server.0, server.1);
    listens(&net.server, port);
    let client = Program::start(&net.client, client.0, client.1);
    // The next look is another one: it goes on.
    for _ in 0..2 {
        agree(&net, LAW, law.name(), 2 * connections);
        sleep(Duration::from_millis(300));
    }
    client.end();
    drop(server);
    net.drained();
    println!("  {}", counted(&law));
    assert_eq!(counter(&law, "joins"), counter(&law, "leaves"));
}

#[test]
fn iperf3_under_mptcpize() {
    let Some(_alone) = Alone::with("iperf3 under mptcpize", &["iperf3", "mptcpize"]) else {
        return;
    };
    let run = ["run", "iperf3"];
    // Its control connection beside the one that measures.
    let server = [&run[..], &["-s", "-1"]].concat();
    let client = [&run[..], &["-c", "10.77.255.1", "-t", "3", "-R"]].concat();
    over_two_paths((OsStr::new("mptcpize"), &server), (OsStr::new("mptcpize"), &client), 5201, 2);
}

#[test]
fn a_go_web_server_is_downloaded_from() {
    let Some(_alone) = Alone::with("a Go net/http server", &["go"]) else { return };
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients");
    let program = concat!(env!("CARGO_TARGET_TMPDIR"), "/nr-test-http");
    // Go 1.24, from which on listeners speak MPTCP by themselves; no other is to be downloaded.
    let version = net::run("go", &["env", "GOVERSION"]);
    let minor = version.trim().strip_prefix("go1.").and_then(|rest| rest.split('.').next());
    if minor.and_then(|minor| minor.parse::<u32>().ok()).is_none_or(|minor| minor < 24) {
        println!("  skipped, {} is here and 1.24 is wanted", version.trim());
        return;
    }
    let built = Command::new("go")
        .args(["build", "-o", program, "http.go"])
        .current_dir(folder)
        .envs([("GOTOOLCHAIN", "local"), ("GOFLAGS", ""), ("CGO_ENABLED", "0")])
        .status()
        .unwrap();
    assert!(built.success(), "go build: {built}");
    over_two_paths(
        (OsStr::new(program), &["serve", "10.77.255.1:8080"]),
        (OsStr::new(program), &["get", "http://10.77.255.1:8080/"]),
        8080,
        1,
    );
}

#[test]
fn python_sockets() {
    let Some(_alone) = Alone::with("Python sockets", &["python3"]) else { return };
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/sockets.py");
    let python = OsStr::new("python3");
    over_two_paths((python, &[program, "serve"]), (python, &[program, "get"]), 8081, 1);
}
