//! One MPTCP transfer, and the CPU time of those who worked on it.

use nix::sched::{CpuSet, sched_setaffinity};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::Pid;
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::machine::Machine;
use crate::wire::Wire;

/// One write, and one read at most.
const CHUNK: usize = 256 * 1024;

/// Where the client's thread runs and where the server's does.
const CLIENT_CPU: u32 = 0;
const SERVER_CPU: u32 = 1;

/// When the client stops.
#[derive(Clone, Copy)]
pub enum Until {
    Bytes(u64),
    Time(Instant),
}

/// What a transfer took, from before the client connects until both sides have seen the end.
pub struct Cost {
    pub wall: Duration,
    /// CPU time of client, server and the ksoftirqd threads. A softirq that runs on a thread's
    /// back is part of that thread's time.
    pub cpu: Duration,
    /// All the time that the CPUs were not idle, whoever had them.
    pub busy: Duration,
    /// What the least used path carried, 1: its equal part.
    pub least: f64,
}

/// Less than this of its equal part, and a path has not been used.
const USED: f64 = 0.01;
const TRIES: usize = 5;

/// Repeats what left a path unused, and says so: on a busy machine it happens, with the kernel's
/// own control too, and one path is not what is measured here.
pub fn on_all_paths<T>(mut run: impl FnMut() -> Result<(T, f64)>) -> Result<T> {
    for _ in 0..TRIES {
        let (done, least) = run()?;
        if least >= USED {
            return Ok(done);
        }
        eprintln!("a transfer left a path unused and is repeated");
    }
    Err(format!("{TRIES} transfers in a row left a path unused").into())
}

/// Sends zeros from client to server under the congestion control of that name.
pub fn transfer(machine: &Machine, wire: &Wire, control: &str, until: Until) -> Result<Cost> {
    let (sent, address) = (wire.sent()?, wire.server_address());
    let (ready, is_ready) = mpsc::channel();
    let cpu = SERVER_CPU % machine.cpus;
    let (softirq, idle, began) = (machine.softirq()?, machine.idle()?, Instant::now());
    let (served, wrote) = thread::scope(|scope| {
        let served = scope.spawn(|| wire.server.run(|| serve(control, cpu, address, ready)));
        let wrote = match is_ready.recv() {
            Ok(()) => wire.client.run(|| send(control, CLIENT_CPU, address, until)),
            Err(_) => Ok(Ok((Duration::ZERO, 0))), // the server returns an error
        };
        (served.join().expect("no panic in the server"), wrote)
    });
    let wall = began.elapsed();
    let softirq = machine.softirq()? - softirq;
    let idle = machine.idle()? - idle;
    let ((server_cpu, read), (client_cpu, written)) = (served??, wrote??);
    if read != written {
        return Err(format!("{control}: {written} bytes sent, {read} arrived").into());
    }
    let carried = wire.sent()?.into_iter().zip(sent).map(|(after, before)| after - before);
    let least = carried.min().unwrap_or(0) as f64 * wire.paths() as f64 / written as f64;
    let busy = (wall * machine.cpus).saturating_sub(idle);
    Ok(Cost { wall, cpu: client_cpu + server_cpu + softirq, busy, least })
}

fn socket(control: &str) -> Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP))?;
    let chosen = socket.set_tcp_congestion(control.as_bytes());
    chosen.map_err(|error| format!("congestion control {control}: {error}"))?;
    Ok(socket)
}

/// Reads one connection to its end. Returns this thread's CPU time for it, and the bytes.
fn serve(
    control: &str,
    cpu: u32,
    address: SocketAddr,
    ready: mpsc::Sender<()>,
) -> Result<(Duration, u64)> {
    let listener = socket(control)?;
    listener.set_reuse_address(true)?;
    // Joins come to the other addresses.
    listener.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())).into())?;
    listener.listen(1)?;
    pin(cpu)?;
    let began = thread_time()?;
    ready.send(())?;
    let (mut connection, _) = listener.accept()?;
    let mut buffer = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        match connection.read(&mut buffer)? {
            0 => break,
            read => bytes += read as u64,
        }
    }
    drop(connection);
    Ok((thread_time()? - began, bytes))
}

/// Writes, and waits until the server has closed. Returns as [`serve`].
fn send(control: &str, cpu: u32, address: SocketAddr, until: Until) -> Result<(Duration, u64)> {
    let mut connection = socket(control)?;
    let buffer = vec![0; CHUNK];
    let mut bytes = 0;
    pin(cpu)?;
    let began = thread_time()?;
    connection.connect(&address.into())?;
    loop {
        let left = match until {
            Until::Bytes(all) => all - bytes,
            Until::Time(end) if Instant::now() < end => CHUNK as u64,
            Until::Time(_) => 0,
        };
        if left == 0 {
            break;
        }
        bytes += connection.write(&buffer[..CHUNK.min(left as usize)])? as u64;
    }
    connection.shutdown(Shutdown::Write)?;
    if connection.read(&mut [0])? != 0 {
        return Err("the server answered".into());
    }
    drop(connection);
    Ok((thread_time()? - began, bytes))
}

fn pin(cpu: u32) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu as usize)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

fn thread_time() -> Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}
