//! The log that noq writes of a connection with two paths tells whether these share a bottleneck.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use narrows_detect::{Answer, DEFAULT, Detection, Error, Input, Limits, Source, detectors};
use narrows_laws::Params;
use narrows_net::{Limit, LinkConfig, MILLISECOND, Rate, SECOND};
use narrows_quic_sim::{Routes, Setup, Side, Sim};
use noq_proto::{ConnectionId, QlogConfig, QlogFactory};

/// What was written.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl QlogFactory for Memory {
    fn for_connection(
        &self,
        _: Side,
        _: SocketAddr,
        _: ConnectionId,
        _: Instant,
    ) -> Option<QlogConfig> {
        Some(QlogConfig::new(Box::new(self.clone())))
    }
}

/// A queue of 60 ms.
fn link(mbit: u64, delay_ms: u64) -> LinkConfig {
    LinkConfig {
        rate: Rate::Constant(mbit * 1_000_000),
        delay: delay_ms * MILLISECOND,
        limit: Limit::Bytes(mbit * 7_500),
        ..LinkConfig::default()
    }
}

/// The sender's log of 20 s of a connection over these paths of a network.
fn logged(paths: impl FnOnce(&mut Sim) -> Vec<Routes>) -> Vec<u8> {
    let mut sim = Sim::new(1);
    let log = Memory::default();
    let mut setup = Setup::new(paths(&mut sim), Side::Client);
    setup.client.qlog_factory(Arc::new(log.clone()));
    sim.connect(setup);
    sim.run(20 * SECOND);
    drop(sim);
    std::mem::take(&mut log.0.lock().unwrap())
}

/// What is said of the two paths in a log.
fn judged(log: Vec<u8>) -> Answer {
    let source = Source::open(Input::bytes("q", log), None, Limits::default()).unwrap();
    let recording = source.recording();
    assert_eq!(recording.flows.len(), 2, "{recording:?}");
    assert_eq!(recording.notes, [""; 0]);
    for traffic in &recording.traffic {
        let (rate, rtt) = (traffic.rate(), traffic.min_rtt_ms.unwrap());
        assert!(rate > 2.0 && (20.0..60.0).contains(&rtt), "{recording:?}");
    }
    let detector = detectors([DEFAULT]).unwrap()[0];
    let detection = Detection::new(&source, detector, &Params::default()).unwrap();
    let found = detection.run::<Error>(&mut [], |_| Ok(())).unwrap();
    assert!(found.lost.iter().all(|&lost| lost > 0), "{found:?}");
    found.verdicts[0].answer
}

#[test]
fn two_paths_through_one_queue_share_it() {
    let shared = logged(|sim| {
        let queue = sim.link(link(20, 10));
        let back = sim.link(link(100, 20));
        // The second has a link of its own before that.
        let own = sim.link(link(100, 5));
        vec![sim.routes(&[queue], &[back]), sim.routes(&[own, queue], &[back])]
    });
    assert_eq!(judged(shared), Answer::Shared);
}

#[test]
fn two_paths_through_two_queues_are_separate() {
    let separate = logged(|sim| vec![sim.path(&[link(12, 10)]), sim.path(&[link(7, 15)])]);
    assert_eq!(judged(separate), Answer::Separate);
}
