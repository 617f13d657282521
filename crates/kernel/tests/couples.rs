//! A connection over two paths runs each control, its paths meet in one entry of the state map, and
//! nothing stays behind. On this machine's kernel; `make test-kernels` runs the same program on
//! others.

use narrows_kernel::cgroup::{self, Cgroup};
use narrows_kernel::control::{Loaded, Registered};
use narrows_kernel::pins::FOLDER;
use narrows_kernel::receiver::ReceiverDetector;
use narrows_kernel::register::available_controls;
use narrows_kernel::sampler::Sampler;
use narrows_kernel::state::{Connection, Detections, connections};
use narrows_kernel::trial::{self, End, Guards, Plan};
use narrows_kernel::{Settings, object, reap};
use narrows_laws::catalogue::kernel_name;
use narrows_laws::{Control, Detector, Law, Place};
use narrows_testkit::machine::{KernelLog, Turn, leaves_programs_out, turn, with_own_pins};
use narrows_testkit::net::{Host, ip, run, sysctl, veth};
use narrows_testkit::wait_until;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic::{self, AssertUnwindSafe};
use std::process::{self, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const PATHS: usize = 2;
/// Over two paths of 10 Mbit/s each: 2.4 s.
const BYTES: usize = 6_000_000;
const SAMPLE: Duration = Duration::from_millis(150);
const PATIENCE: Duration = Duration::from_secs(30);

/// In namespaces of their own, so some run at a time.
#[test]
fn each_law() {
    let Some(_machine) = machine("each law") else { return };
    let laws = Mutex::new(Law::all());
    let next = || laws.lock().unwrap().next();
    let some = 2 * thread::available_parallelism().unwrap().get();
    leaves_nothing(|| {
        thread::scope(|scope| {
            for _ in 0..some {
                scope.spawn(|| {
                    while let Some(law) = next() {
                        couples(Control::of(law));
                    }
                });
            }
        });
    });
}

#[test]
fn gcubic_xcorr() {
    runs_on_both_paths("gcubic+xcorr");
}

#[test]
fn olia_ssc() {
    runs_on_both_paths("olia+ssc");
}

#[test]
fn lia_tr() {
    runs_on_both_paths("lia+tr");
}

#[test]
fn bbr_btlbw() {
    runs_on_both_paths("bbr+btlbw");
}

/// The verifier follows what detects beside each law.
#[test]
fn each_law_with_xcorr() {
    let Some(_machine) = machine("laws with xcorr") else { return };
    for law in Law::all().filter(|law| Control::of(*law).detector == Detector::SHARED) {
        let control = Control { detector: Detector::XCORR, ..Control::of(law) };
        let loaded = Loaded::load(control, &Settings::default()).unwrap();
        let insns = loaded.verified_insns().unwrap();
        let (dearest, most) = insns.iter().max_by_key(|(_, insns)| *insns).unwrap();
        println!("{}, {control}: verifier {most} instructions ({dearest})", kernel());
    }
}

/// The two links have a queue each, one of them with a TCP beside the connection, else they would be
/// in step. The detector finds that they are two.
#[test]
fn lia_xcorr_finds_that_two_links_are_separate() {
    let Some(_machine) = machine("lia+xcorr finds separate links") else { return };
    let control: Control = "lia+xcorr".parse().unwrap();
    let registered = Registered::register(control).unwrap();
    let network = Network::new(registered.name());
    // netem takes a burst of segments for one packet, whose acknowledgement is then one delay.
    for device in ["c1", "c2"] {
        ip(&network.client, &format!("link set dev {device} gso_max_segs 1"));
    }
    let (listener, server) = network.listener();
    let rival = network.server.run(|| TcpListener::bind("10.78.2.2:0")).unwrap().unwrap();
    let address = rival.local_addr().unwrap();
    let mut client = network.client.run(socket).unwrap();
    let mut rivals = network.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    let receivers = [
        thread::spawn(move || io::copy(&mut listener.accept().unwrap().0, &mut io::sink())),
        thread::spawn(move || io::copy(&mut rival.accept().unwrap().0, &mut io::sink())),
    ];
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, stops) = (stop.clone(), stop.clone());
    let stop = Stop(stop);
    let block = [0; 1 << 16];
    let senders = [
        thread::spawn(move || {
            client.connect(&server.into()).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                client.write_all(&block).unwrap();
            }
        }),
        thread::spawn(move || {
            while !stops.load(Ordering::Relaxed) {
                rivals.write_all(&block).unwrap();
            }
        }),
    ];
    let began = Instant::now();
    let mut linked = None;
    wait_until(60, || {
        let Some(sent) = entry(network.client.inum, control) else { return Err("none".into()) };
        let both = sent.paths.len() == PATHS;
        let detection = Detections::open().unwrap().of(sent.token).unwrap();
        let pair = detection.as_ref().and_then(|detection| detection.pair(control.detector, 0, 1));
        let places =
            detection.and_then(|detection| detection.decision()).map(|decision| decision.places);
        if both && linked.is_none() && sent.paths.iter().all(|path| path.mask & 3 == 3) {
            linked = Some((began.elapsed(), places, pair));
        }
        let apart = sent.paths.iter().all(|path| path.mask & 3 == 1 << path.slot);
        match places {
            Some([Place::Group(a), Place::Group(b), ..]) if both && apart && a != b => Ok(()),
            _ => Err(format!("{places:?}, {pair:?}, {sent:?}")),
        }
    });
    let seconds = began.elapsed().as_secs_f64();
    drop(stop);
    for sender in senders {
        sender.join().unwrap();
    }
    for receiver in receivers {
        receiver.join().unwrap().unwrap();
    }
    assert!(
        seconds > 10.0 || linked.is_none(),
        "paths of which nothing is known are not linked at first: {linked:?}, {:?}",
        registered.counters().unwrap()
    );
    println!("{}, {control}: two groups after {seconds:.1} s", kernel());
}

/// Ends what sends, also where a test fails.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn lia_disjoint_hystartpp() {
    runs_on_both_paths("lia+disjoint+hystart++");
}

#[test]
fn olia_lisa_hystartpp() {
    runs_on_both_paths("olia+lisa+hystart++");
}

/// A connection under any control is sampled: times pass, and what was delivered grows.
#[test]
fn sampler() {
    let Some(_machine) = machine("the sampler") else { return };
    let network = Network::new("reno");
    let (sampler, sender, mut receiver) = sampled(&network);
    let reading = thread::spawn(move || io::copy(&mut receiver, &mut io::sink()).unwrap());
    let mut samples = Vec::new();
    let (begin, block) = (Instant::now(), [0; 20_000]);
    while samples.len() < 50 {
        assert!(begin.elapsed() < PATIENCE, "{samples:?}");
        (&sender).write_all(&block).unwrap();
        sampler.drain(|sample| samples.push(sample)).unwrap();
    }
    drop(sender);
    reading.join().unwrap();
    let kernel = kernel();
    for pair in samples.windows(2) {
        assert!(pair[0].at_us < pair[1].at_us && pair[0].delivered < pair[1].delivered, "{pair:?}");
    }
    let timed = samples.iter().filter(|sample| (1..10_000_000).contains(&sample.rtt_us)).count();
    assert!(timed > samples.len() / 2, "{samples:?}");
    let last = samples.last().unwrap();
    println!(
        "{kernel}, sampler: {} samples, {timed} with an RTT, the last {last:?}",
        samples.len()
    );
}

/// A request at a time: each is a flight of one packet, and has a round-trip time.
#[test]
fn sampler_of_requests() {
    let Some(_machine) = machine("the sampler, requests") else { return };
    let network = Network::new("reno");
    let (sampler, mut sender, mut receiver) = sampled(&network);
    let mut samples = Vec::new();
    let begin = Instant::now();
    while samples.len() < 20 {
        assert!(begin.elapsed() < Duration::from_secs(20), "{samples:?}");
        sender.write_all(b"request").unwrap();
        receiver.read_exact(&mut [0; 7]).unwrap();
        receiver.write_all(b"answer").unwrap();
        sender.read_exact(&mut [0; 6]).unwrap();
        sampler.drain(|sample| samples.push(sample)).unwrap();
    }
    for pair in samples.windows(2) {
        assert!(pair[0].at_us < pair[1].at_us && pair[0].delivered < pair[1].delivered, "{pair:?}");
    }
    assert!(samples.iter().all(|sample| (1..10_000_000).contains(&sample.rtt_us)), "{samples:?}");
    println!("{}, sampler of requests: {} samples", kernel(), samples.len());
}

/// A connection of the client's to the server, both ends, and a sampler that samples the client's.
fn sampled(network: &Network) -> (Sampler, TcpStream, TcpStream) {
    let listener = network.server.run(|| TcpListener::bind("10.78.1.2:0")).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let sampler = Sampler::start().unwrap();
    let sender = network.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
    let (receiver, _) = listener.accept().unwrap();
    sampler.add(SockRef::from(&sender).cookie().unwrap()).unwrap();
    (sampler, sender, receiver)
}

/// What stands beside the laws: detection at the receiver (loaded alone), a control chosen for a cgroup, a
/// trial among its connections, and what deletes entries that were left behind.
#[test]
fn cgroup_trial_and_reap() {
    let Some(_machine) = machine("what stands beside the laws") else { return };
    leaves_nothing(|| {
        let controls = [Law::RENO, Law::CUBIC].map(|law| Registered::register(Control::of(law)));
        let names = controls.each_ref().map(|control| control.as_ref().unwrap().name().to_owned());
        let network = Network::new("reno");
        let tried = with_own_pins(|| in_own_cgroup(|cgroup| try_out(&network, &names, cgroup)));
        assert_eq!(reap().unwrap(), 0);
        println!("{}, a trial: {tried:?} connections' ends in its arms", kernel());
    });
}

/// Does `work` with this process in a cgroup made for it.
fn in_own_cgroup<T>(work: impl FnOnce(&Cgroup) -> T) -> T {
    let top = Cgroup::top().unwrap().path;
    let before = fs::read_to_string("/proc/self/cgroup").unwrap();
    let before = before.lines().find_map(|line| line.strip_prefix("0::/")).unwrap();
    let folder = top.join(format!("nr-couples-{}", process::id()));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("cgroup.procs"), "0").unwrap();
    let done = panic::catch_unwind(AssertUnwindSafe(|| work(&Cgroup::open(&folder).unwrap())));
    fs::write(top.join(before).join("cgroup.procs"), "0").unwrap();
    fs::remove_dir(&folder).unwrap();
    done.unwrap_or_else(|reason| panic::resume_unwind(reason))
}

/// The first of the controls is chosen for the cgroup, and the second one tried there: ends of
/// connections in each arm.
fn try_out(network: &Network, names: &[String; 2], cgroup: &Cgroup) -> [u64; 2] {
    const CONNECTIONS: usize = 32;
    let listener = network.server.run(|| TcpListener::bind("10.78.1.2:5001")).unwrap().unwrap();
    let address = listener.local_addr().unwrap();
    let connect = || {
        let socket = network.client.run(|| TcpStream::connect(address)).unwrap().unwrap();
        [socket, listener.accept().unwrap().0]
    };
    let runs = |socket: &TcpStream, name: &String| {
        let control = SockRef::from(socket).tcp_congestion().unwrap();
        control.split(|byte| *byte == 0).next() == Some(name.as_bytes())
    };
    ReceiverDetector::start(cgroup).unwrap().sweep().unwrap();
    fs::create_dir(FOLDER).unwrap();
    cgroup.attach(&cgroup::choice(&names[0], false, cgroup).unwrap()).unwrap();
    assert!(connect().iter().all(|socket| runs(socket, &names[0])), "as chosen");

    let plan = Plan {
        controls: names.clone(),
        share: 0.5,
        netns: None,
        ports: vec![address.port()],
        mptcp_only: false,
        lasts: Duration::from_secs(3600),
        guards: Guards::default(),
        planned: 1000,
    };
    trial::start(cgroup, &plan).unwrap();
    let sockets: Vec<_> = (0..CONNECTIONS).flat_map(|_| connect()).collect();
    let arms = names
        .each_ref()
        .map(|name| sockets.iter().filter(|socket| runs(socket, name)).count() as u64);
    assert_eq!(arms.iter().sum::<u64>(), 2 * CONNECTIONS as u64);
    assert!(arms.iter().all(|ends| *ends > 0), "{arms:?}");
    let seen = trial::read().unwrap().unwrap();
    assert_eq!((seen.drawn, seen.living, seen.refused), (arms, arms, 0));

    for host in [&network.client, &network.server] {
        host.run(trial::put_back).unwrap().unwrap();
    }
    assert!(sockets.iter().all(|socket| runs(socket, &names[0])), "put back");
    let seen = trial::read().unwrap().unwrap();
    assert_eq!((seen.ended, seen.put_back), (Some(End::Stopped), arms[1]));
    trial::remove().unwrap();
    cgroup::detach(cgroup.id).unwrap();
    arms
}

fn runs_on_both_paths(control: &str) {
    let Some(_machine) = machine(control) else { return };
    leaves_nothing(|| couples(control.parse().unwrap()));
}

/// After `work` there are the controls that were there before it, and the kernel complained of nothing.
fn leaves_nothing(work: impl FnOnce()) {
    let (before, mut log) = (available_controls().unwrap(), KernelLog::open());
    work();
    assert_eq!(available_controls().unwrap(), before);
    assert_eq!(log.complaints(), [""; 0], "of the kernel");
}

/// Registered by us, chosen as the default of both namespaces. Where the kernel leaves programs out
/// now and then, up to twice more.
fn couples(control: Control) {
    let mut tries = if leaves_programs_out() { 3 } else { 1 };
    loop {
        let registered = Registered::register(control).unwrap();
        let insns = registered.verified_insns().unwrap();
        let (dearest, most) = insns.iter().max_by_key(|(_, insns)| *insns).unwrap();
        let seen = transfer(control);
        let mut counters = registered.counters().unwrap();
        counters.retain(|(counter, count)| match *counter {
            "joins" | "leaves" => *count != 2 * PATHS as u64,
            "decisions" | "regroupings" if control.detector.decides() => false,
            _ => *count != 0,
        });
        drop(registered);
        tries -= 1;
        if counters.is_empty() {
            println!("{}, {control}: {seen}; verifier {most} instructions ({dearest})", kernel());
            return;
        }
        assert!(tries > 0, "{control}: {counters:?}");
        eprintln!("{control}: once more, as this kernel leaves programs out: {counters:?}");
    }
}

/// The objects as they are installed, without anything of ours that loads them.
#[test]
fn bpftool() {
    let Some(_machine) = machine("bpftool") else { return };
    if Command::new("bpftool").arg("version").output().is_err() {
        println!("bpftool: skipped, it is not installed");
        return;
    }
    let (before, mut log) = (available_controls().unwrap(), KernelLog::open());
    let mut seen = String::new();
    for law in Law::all() {
        let control = Control::of(law);
        let file = std::env::temp_dir().join(format!("nr-couples-{}.bpf.o", law.name()));
        fs::write(&file, object::of(law)).unwrap();
        // A mount namespace of its own: what bpftool pins is gone with it.
        let mounted =
            "mount -t bpf bpf /sys/fs/bpf && exec bpftool struct_ops register \"$0\" 2>&1";
        let output = run("unshare", &["-m", "sh", "-c", mounted, &file.to_string_lossy()]);
        fs::remove_file(&file).unwrap();
        let id =
            output.split_whitespace().last().expect("Registered tcp_congestion_ops nr_ops id N");
        let registered = Unregister(id.to_owned());
        assert!(available_controls().unwrap().contains(&kernel_name(control)));
        if law == Law::OLIA {
            seen = transfer(control);
        }
        drop(registered);
        assert_eq!(available_controls().unwrap(), before);
    }
    assert_eq!(log.complaints(), [""; 0], "of the kernel");
    println!("{}, {} objects by bpftool, olia: {seen}", kernel(), Law::all().count());
}

/// Undoes `bpftool struct_ops register`.
struct Unregister(String);

impl Drop for Unregister {
    fn drop(&mut self) {
        run("bpftool", &["struct_ops", "unregister", "id", &self.0]);
    }
}

/// The machine for one test at a time; none, and a word on the terminal, where there is no BPF.
fn machine(test: &str) -> Option<Turn> {
    turn(test, narrows_kernel::available().map_err(|reason| reason.to_string()))
}

/// Two namespaces with a router between them, and on each of two paths through it 10 Mbit/s and, where
/// the kernel has netem, 10 ms each way. The queues are the router's: TCP keeps those of its own host
/// short (TSQ). Gone when dropped.
struct Network {
    client: Host,
    server: Host,
    _router: Host,
}

impl Network {
    /// Every TCP socket there runs `control` by default.
    fn new(control: &str) -> Network {
        let [client, server, router] =
            ["client", "server", "router"].map(|host| Host::new(&format!("{host}-{control}")));
        sysctl(&router, "net/ipv4/ip_forward", "1").unwrap();
        for host in [&client, &server] {
            ip(host, "mptcp limits set subflow 1 add_addr_accepted 1");
            sysctl(host, "net/ipv4/tcp_congestion_control", control).unwrap();
        }
        for path in 1..=PATHS {
            let ends = [(&client, 'c', "10.77", "10.78", 1), (&server, 's', "10.78", "10.77", 2)];
            for (host, device, here, there, last) in ends {
                let (device, far) = (format!("{device}{path}"), format!("r{device}{path}"));
                veth((host, &device), (&router, &far));
                ip(host, &format!("addr add {here}.{path}.{last}/24 dev {device}"));
                ip(host, &format!("link set {device} up"));
                ip(&router, &format!("addr add {here}.{path}.254/24 dev {far}"));
                ip(&router, &format!("link set {far} up"));
                ip(host, &format!("route add {there}.{path}.0/24 via {here}.{path}.254"));
                let netem = "netem rate 10mbit delay 10ms limit 60";
                let tbf = "tbf rate 10mbit burst 16kb latency 60ms";
                if !shape(&router, &far, netem) {
                    assert!(shape(&router, &far, tbf), "neither netem nor tbf");
                }
            }
        }
        // The server announces its second address, and the route there leaves by the second link.
        ip(&server, "mptcp endpoint add 10.78.2.2 signal");
        Network { client, server, _router: router }
    }

    /// A listener on all addresses of the server, and the first of them.
    fn listener(&self) -> (Socket, SocketAddr) {
        let server: SocketAddr = "10.78.1.2:5001".parse().unwrap();
        let any: SocketAddr = (Ipv4Addr::UNSPECIFIED, server.port()).into();
        let listener = self.server.run(socket).unwrap();
        listener.bind(&any.into()).unwrap();
        listener.listen(1).unwrap();
        (listener, server)
    }

    /// The cwnd that ss shows for the client's socket on that address, if it runs `control`.
    fn cwnd(&self, local: SocketAddr, control: &str) -> Option<u32> {
        let listed = run("ip", &["netns", "exec", self.client.name.raw(), "ss", "-tnHOi"]);
        let line = listed.lines().find(|line| line.contains(&format!(" {local} ")))?;
        let mut words = line.split_whitespace();
        words.clone().find(|word| *word == control)?;
        // It leaves a window of 2 out.
        Some(words.find_map(|word| word.strip_prefix("cwnd:")?.parse().ok()).unwrap_or(2))
    }
}

fn shape(host: &Host, device: &str, discipline: &str) -> bool {
    let mut tc = Command::new("tc");
    tc.args(["-n", host.name.raw(), "qdisc", "add", "dev", device, "root"]);
    tc.args(discipline.split(' ')).output().unwrap().status.success()
}

/// Sends and receives; while it runs, both sides have one entry with both paths in it, whose
/// windows are those that ss shows; afterwards there is none. Returns what was seen, in words.
fn transfer(control: Control) -> String {
    let name = kernel_name(control);
    let network = Network::new(&name);
    let (listener, server) = network.listener();
    let client = network.client.run(socket).unwrap();

    let began = Instant::now();
    let receiver = thread::spawn(move || receive(listener.accept().unwrap().0, &bytes()));
    let sender = thread::spawn(move || send(client, server, &bytes()));
    let (mut both, mut windows) = (0, Vec::new());
    while !sender.is_finished() && began.elapsed() < PATIENCE {
        thread::sleep(SAMPLE);
        let Some(sent) = entry(network.client.inum, control) else { continue };
        let Some(received) = entry(network.server.inum, control) else { continue };
        both += usize::from(received.paths.len() == PATHS);
        let shown: Vec<_> = sent.paths.iter().map(|path| network.cwnd(path.local, &name)).collect();
        let Some(after) = entry(network.client.inum, control) else { continue };
        for ((path, shown), after) in sent.paths.iter().zip(shown).zip(&after.paths) {
            if path.line.srtt8_us > 0 {
                let shown = shown.expect("ss knows the socket, and the control by that name");
                windows.push((path.local.ip(), [path.line.cwnd, after.line.cwnd], shown));
            }
        }
    }
    sender.join().unwrap();
    assert_eq!(receiver.join().unwrap(), BYTES, "{control}: all bytes came as they were sent");
    let seconds = began.elapsed().as_secs_f64();

    assert!(both >= 5, "{control}: {both} times both paths in an entry on both sides");
    // ss was asked between two readings. During recovery the stack is still reducing the window to the
    // window that the entry has.
    let within = |[a, b]: [u32; 2], shown: u32| (a.min(b)..=a.max(b)).contains(&shown);
    let equal = windows.iter().filter(|(_, ours, shown)| within(*ours, *shown)).count();
    assert!(
        equal * 2 >= windows.len(),
        "{control}: address, cwnd here before and after, cwnd by ss: {windows:?}"
    );
    let last =
        |ip: [u8; 4]| windows.iter().rev().find(|(of, ..)| *of == IpAddr::from(ip)).map(|w| w.2);
    let last = [last([10, 77, 1, 1]).unwrap(), last([10, 77, 2, 1]).unwrap()];

    let left = || {
        let ours = [network.client.inum, network.server.inum];
        let all = connections().unwrap();
        all.into_iter().filter(|left| ours.contains(&left.netns)).collect::<Vec<_>>()
    };
    let closed = Instant::now();
    while closed.elapsed() < PATIENCE && !left().is_empty() {
        thread::sleep(SAMPLE);
    }
    assert!(left().is_empty(), "{control}: left behind: {:?}", left());
    format!(
        "{PATHS} paths in one entry {both} times, cwnd as ss shows {equal} of {} times, at last \
         {} + {}; {BYTES} bytes right in {seconds:.1} s",
        windows.len(),
        last[0],
        last[1],
    )
}

/// The entry of the connection on that side, which runs `control`, coupled as its detector says.
fn entry(netns: u32, control: Control) -> Option<Connection> {
    let all = connections().unwrap();
    let mut all = all.into_iter().filter(|connection| connection.netns == netns);
    let found = all.next()?;
    assert!(all.next().is_none(), "the paths stand in one entry");
    assert_eq!(found.control, Some(control));
    let (paths, coupled) = (&found.paths, control.detector == Detector::SHARED);
    for (path, sibling) in paths.iter().flat_map(|a| paths.iter().map(move |b| (a, b))) {
        let own = path.slot == sibling.slot;
        if !control.detector.decides() {
            assert_eq!(path.mask >> sibling.slot & 1 == 1, own || coupled, "{found:?}");
        }
        assert!(own || path.local != sibling.local, "{found:?}");
    }
    Some(found)
}

fn socket() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap()
}

/// The bytes of the transfer, which depend on their place.
fn bytes() -> Vec<u8> {
    (0..BYTES as u32 / 4).flat_map(|at| at.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect()
}

fn send(mut socket: Socket, server: SocketAddr, bytes: &[u8]) {
    socket.connect(&server.into()).unwrap();
    socket.write_all(bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut end = [0];
    assert_eq!(socket.read(&mut end).unwrap(), 0, "the server closes when it has everything");
}

/// How many bytes came; they are the right ones.
fn receive(mut socket: Socket, bytes: &[u8]) -> usize {
    let (mut got, mut chunk) = (0, vec![0; 1 << 16]);
    loop {
        let n = socket.read(&mut chunk).unwrap();
        if n == 0 {
            return got;
        }
        assert!(bytes.get(got..got + n) == Some(&chunk[..n]), "after {got} bytes");
        got += n;
    }
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    format!("Linux {}", release.trim())
}
