//! CPU time of a transfer over two paths of the loopback device, both ends, under laws of ours over
//! that under noq's own NewReno: in pairs, one after the other, whose order alternates.
//!
//! `cargo bench -p narrows-quic`

#[path = "../tests/common/loopback.rs"]
mod loopback;

use loopback::connect;
use narrows_quic::Coupling;
use narrows_stats::Spread;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use noq::congestion::{ControllerFactory, NewRenoConfig};
use std::sync::Arc;

const PAIRS: usize = 40;
const STREAMS: usize = 4;
/// Bytes per stream.
const BYTES: usize = 64 << 20;

/// User and system time of this process, ms.
fn cpu_ms() -> f64 {
    let used = getrusage(UsageWho::RUSAGE_SELF).expect("for oneself it cannot fail");
    (used.user_time() + used.system_time()).num_microseconds() as f64 / 1e3
}

/// CPU time of a transfer, ms.
async fn transfer(factory: Arc<dyn ControllerFactory + Send + Sync>) -> f64 {
    let (client, server, _) = connect(factory).await;
    let piece = vec![7; 1 << 20];
    let before = cpu_ms();
    let receiving: Vec<_> = (0..STREAMS)
        .map(|_| {
            let server = server.clone();
            tokio::spawn(async move {
                let mut stream = server.accept_uni().await.unwrap();
                let mut received = 0;
                while let Some(chunk) = stream.read_chunk(usize::MAX).await.unwrap() {
                    received += chunk.len();
                }
                received
            })
        })
        .collect();
    let sending: Vec<_> = (0..STREAMS)
        .map(|_| {
            let (client, piece) = (client.clone(), piece.clone());
            tokio::spawn(async move {
                let mut stream = client.open_uni().await.unwrap();
                for _ in 0..BYTES / piece.len() {
                    stream.write_all(&piece).await.unwrap();
                }
                stream.finish().unwrap();
            })
        })
        .collect();
    for task in sending {
        task.await.unwrap();
    }
    for task in receiving {
        assert_eq!(task.await.unwrap(), BYTES);
    }
    cpu_ms() - before
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let newreno = || runtime.block_on(transfer(Arc::new(NewRenoConfig::default())));
    newreno(); // what is done once is nobody's
    let mb = (STREAMS * BYTES) >> 20;
    println!(
        "CPU time of {mb} MB over two paths of the loopback device, of NewReno's, {PAIRS} pairs:"
    );
    for control in ["reno", "olia", "gcubic+xcorr"] {
        let coupling = Coupling::new(control).expect("a control");
        let ours = || runtime.block_on(transfer(coupling.factory()));
        let ratios: Vec<f64> = (0..PAIRS)
            .map(|pair| match pair % 2 {
                0 => ours() / newreno(),
                _ => 1.0 / (newreno() / ours()),
            })
            .collect();
        let spread = Spread::of(&ratios).expect("there are pairs");
        println!("{control:<14} {:.3} ±{:.3}", spread.mean, spread.ci95.expect("two at least"));
    }
}
