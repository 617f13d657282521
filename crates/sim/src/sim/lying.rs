//! Receivers that lie to make two subflows of one bottleneck look apart: how much that gains them, by
//! what it leaves to the TCP connections beside them.

use narrows_laws::{Control, Place};
use narrows_net::rng::{below, stream};
use narrows_net::{Limit, LinkConfig, LinkId, MILLISECOND as MS, Nanos, Rate, SECOND as S};
use narrows_traffic::{ConnId, Signal, TcpConfig};

use super::Sim;
use crate::packet::{Ack, Body, Packet};
use crate::{ConnectionConfig, PathConfig};

/// Payload of a packet of MPTCP.
const MSS: u64 = 1424;

/// What a receiver does to its acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lie {
    /// Nothing.
    None,
    /// It holds those of the second subflow back, each 250 ms for another time of up to 40 ms.
    Holds,
    /// The same for ten seconds in twenty, so that the subflows look apart and together by turns.
    HoldsByTurns,
    /// It adds that to the timestamps of the second subflow, and holds nothing back.
    Timestamps,
    /// It acknowledges each segment by itself, and holds as [`Lie::Holds`].
    Splits,
    /// It acknowledges what was lost as well, on both subflows.
    HidesLosses,
}

/// What a lie came to.
#[derive(Debug)]
struct Outcome {
    /// What the connection took of the bottleneck, in shares of the TCP connections beside it.
    shares: f64,
    /// In which part of the decisions the subflows were apart; 0 without a detector.
    apart: f64,
}

/// How much a held acknowledgement, or a forged timestamp, is late: another time each 250 ms.
fn late(seed: u64, now: Nanos) -> Nanos {
    below(&mut stream(seed, now / (250 * MS)), 40) * MS
}

/// The connection's acknowledgements as they reach the sender.
struct Liar {
    lie: Lie,
    seed: u64,
    connection: ConnId,
    /// Where those of the second subflow pass.
    back: LinkId,
    /// Next byte of each subflow that the sender knows to be acknowledged.
    acked: [u64; 2],
    /// End of what arrived, in data sequence.
    end: u64,
}

impl Liar {
    /// Lets everything happen up to `until`.
    fn run(&mut self, sim: &mut Sim, until: Nanos) {
        while sim.now < until {
            let now = sim.now;
            let holds = match self.lie {
                Lie::Holds | Lie::Splits => true,
                Lie::HoldsByTurns => now / (10 * S) % 2 == 0,
                _ => false,
            };
            let delay = 5 * MS + if holds { late(self.seed, now) } else { 0 };
            sim.set_link_delay(self.back, delay).expect("a valid delay");
            self.step(sim, until.min(now + 10 * MS));
        }
    }

    /// As [`Sim::run_until`], with a say in what arrives.
    fn step(&mut self, sim: &mut Sim, until: Nanos) {
        loop {
            let timer = sim.timers.first();
            if let Some(mut delivery) = sim.network.advance(timer.min(until)) {
                sim.now = delivery.time;
                for packet in self.forge(delivery.payload, sim.now) {
                    delivery.payload = packet;
                    sim.deliver(&delivery);
                }
            } else if timer <= until {
                sim.now = timer;
                sim.expire();
            } else {
                break;
            }
        }
        sim.now = until;
    }

    /// What becomes of a packet.
    fn forge(&mut self, packet: Packet, now: Nanos) -> Vec<Packet> {
        if packet.flow != self.connection.0 {
            return vec![packet];
        }
        let path = usize::from(packet.path);
        let mut ack = match packet.body {
            Body::Ack(ack) => ack,
            Body::Data(data) => {
                self.end = self.end.max(data.dsn + u64::from(data.len));
                return vec![packet];
            }
            _ => return vec![packet],
        };
        if self.lie == Lie::Timestamps && path == 1 {
            ack.elapsed_us += (late(self.seed, now) / 1000) as i32;
        }
        if self.lie == Lie::HidesLosses {
            let highest = ack.blocks().map(|(_, end)| end).max();
            ack = Ack {
                ack: highest.unwrap_or(0).max(ack.ack),
                data_ack: self.end,
                edge: self.end + (1 << 20),
                sack: Ack::default().sack,
                ..ack
            };
        }
        let mut packets = Vec::new();
        if self.lie == Lie::Splits {
            for to in (self.acked[path] + MSS..ack.ack).step_by(MSS as usize) {
                let part = Ack { ack: to, sack: Ack::default().sack, ..ack };
                packets.push(Packet { body: Body::Ack(part), ..packet });
            }
        }
        self.acked[path] = self.acked[path].max(ack.ack);
        packets.push(Packet { body: Body::Ack(ack), ..packet });
        packets
    }
}

/// Two subflows and two TCP connections, all under `control` or its law, through a link of 20 Mbit/s,
/// from 20 s to 80 s.
fn outcome(control: &str, signal: Signal, lie: Lie, seed: u64) -> Outcome {
    let control: Control = control.parse().expect("a known control");
    let mut sim = Sim::new(seed);
    let mut link = |rate, delay, limit, jitter| {
        let config = LinkConfig { rate, delay, limit, jitter, ..LinkConfig::default() };
        sim.add_link(config).expect("a valid link")
    };
    let (mbit, unlimited) = (|n: u64| Rate::Constant(n * 1_000_000), Limit::Unlimited);
    let bottleneck = link(mbit(20), 5 * MS, Limit::Packets(35), 0);
    let access = [(); 4].map(|()| link(mbit(1000), 0, unlimited, 2 * MS));
    let backs = [(); 4].map(|()| link(Rate::Infinite, 5 * MS, unlimited, 0));
    let paths: Vec<PathConfig> = access
        .iter()
        .zip(backs)
        .map(|(&access, back)| {
            let forward = sim.add_route(&[access, bottleneck]).expect("a valid route");
            PathConfig::new("path", forward, sim.add_route(&[back]).expect("a valid route"))
        })
        .collect();
    let connect = |paths: &[PathConfig], control| ConnectionConfig {
        multipath: paths.len() > 1,
        paths: paths.to_vec(),
        control,
        tcp: TcpConfig { signal, ..TcpConfig::default() },
        send_buffer: 1 << 20,
        recv_buffer: 1 << 20,
        ..ConnectionConfig::default()
    };
    let rivals =
        [0, 1].map(|n| sim.add_connection(connect(&paths[n..=n], Control::of(control.law))));
    let connection = sim.add_connection(connect(&paths[2..], control));
    let mut liar = Liar { lie, seed, connection, back: backs[3], acked: [0; 2], end: 0 };
    let bytes = |sim: &Sim| -> u64 {
        rivals.iter().map(|&rival| sim.connection(rival).delivered_bytes).sum()
    };
    liar.run(&mut sim, 20 * S);
    let before = bytes(&sim);
    liar.run(&mut sim, 80 * S);
    // A packet of TCP has 1448 bytes of payload in 1500.
    let rivals = (bytes(&sim) - before) as f64 * 1500.0 / 1448.0 / 2.0;
    let all = 20e6 / 8.0 * 60.0;
    let decisions = sim.detection(connection).map_or(&[][..], |found| &found.decisions);
    let late = decisions.iter().filter(|decision| decision.at_us > 20_000_000);
    let (mut count, mut apart) = (0, 0);
    for decision in late {
        count += 1;
        if let [Place::Group(a), Place::Group(b), ..] = decision.places {
            apart += usize::from(a != b);
        }
    }
    Outcome { shares: (all - 2.0 * rivals) / rivals, apart: apart as f64 / f64::from(count.max(1)) }
}

/// The mean of three seeds.
fn mean(control: &str, signal: Signal, lie: Lie) -> Outcome {
    let all = [1, 2, 3].map(|seed| outcome(control, signal, lie, seed));
    let mean = |of: fn(&Outcome) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
    let mean = Outcome { shares: mean(|one| one.shares), apart: mean(|one| one.apart) };
    let Outcome { shares, apart } = mean;
    println!("{control}, {signal:?}, {lie:?}: {shares:.2} shares, apart {apart:.2} of the time");
    mean
}

/// Lies about delays make the subflows look apart. Then each has about the share of a connection of its own,
/// as without coupling; what is held back costs the liar some of it. Acknowledgements of one
/// segment each help less: those that may have waited have no delay.
#[test]
fn who_lies_about_delays_gets_about_the_share_of_the_uncoupled_law() {
    for (control, uncoupled) in [("greno+xcorr", "reno"), ("gcubic+xcorr", "cubic")] {
        let uncoupled = mean(uncoupled, Signal::Rtt, Lie::None).shares;
        assert!(uncoupled > 1.5, "{uncoupled}");
        for signal in [Signal::Rtt, Signal::SenderUs] {
            let honest = mean(control, signal, Lie::None);
            assert!(honest.shares < 1.1 && honest.apart < 0.05, "{honest:?}");
        }
        for (lie, signal, most) in [
            (Lie::Holds, Signal::Rtt, 1.0),
            (Lie::HoldsByTurns, Signal::Rtt, 1.0),
            (Lie::Splits, Signal::Rtt, 1.0),
            (Lie::Timestamps, Signal::SenderUs, 1.15),
        ] {
            let lies = mean(control, signal, lie);
            assert!(lies.apart > 0.5 || lie == Lie::Splits, "{control}, {lie:?}: {lies:?}");
            assert!(lies.shares < most * uncoupled, "{control}, {lie:?}: {lies:?}");
        }
    }
}

/// No detector has a part in this.
#[test]
fn who_hides_losses_gets_more_under_any_control() {
    let honest = mean("reno", Signal::Rtt, Lie::None).shares;
    for control in ["reno", "greno", "greno+xcorr"] {
        let hides = mean(control, Signal::Rtt, Lie::HidesLosses).shares;
        assert!(hides > 1.2 * honest, "{control}: {hides}, with honest acknowledgements {honest}");
    }
}
