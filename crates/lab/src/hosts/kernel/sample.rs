//! What the kernel reports of the flows: sock_diag of the senders' namespaces, and our controls' map.

use std::collections::HashMap;
use std::net::IpAddr;

use narrows_emu::Host;
use narrows_kernel::state;
use narrows_laws::raw::SSTHRESH_MAX;
use narrows_laws::{Decision, MAX_PATHS, Place};
use narrows_mptcp::diag::{self, Socket, State, TcpInfo};
use narrows_net::{Counters, Nanos};
use narrows_sim::Detection;
use narrows_traffic::Message;

use super::controls::{kernel, name};
use crate::Error;
use crate::algorithm::Algorithm;
use crate::measured::{FlowState, Observed, PathState};

/// The state of a run at one time.
#[derive(Default)]
pub struct Snapshot {
    /// By flow.
    pub flows: Vec<FlowState>,
    /// Queueing delay, by link.
    pub queues: Vec<Nanos>,
    /// By link.
    pub counters: Vec<Counters>,
    /// By flow; at the end of the run alone.
    pub messages: Vec<Vec<Message>>,
}

impl Observed for Snapshot {
    fn flow(&self, flow: usize) -> FlowState {
        self.flows[flow].clone()
    }

    fn queue_delay(&self, link: usize) -> Nanos {
        self.queues[link]
    }

    fn link(&self, link: usize) -> &Counters {
        &self.counters[link]
    }

    fn messages(&self, flow: usize) -> Vec<Message> {
        self.messages[flow].clone()
    }
}

/// A flow whose sender's sockets are followed.
pub struct Sender {
    /// Name of the flow.
    pub name: String,
    /// Index of its host.
    pub host: usize,
    /// Its addresses, by path.
    pub addresses: Vec<IpAddr>,
    /// Its congestion control; none of UDP, which has no sockets worth a look.
    pub algorithm: Option<Algorithm>,
}

/// Follows the sockets of the senders.
pub struct Sampler<'a> {
    /// The testbed's, by their indices.
    hosts: Vec<&'a Host>,
    senders: Vec<Sender>,
    /// Flow and path by address.
    place: HashMap<IpAddr, (usize, usize)>,
    counted: Vec<Counted>,
    /// The sockets at the last look, each with flow and path.
    sockets: Vec<(usize, usize, Socket)>,
    /// Their windows, by socket.
    windows: HashMap<u64, Window>,
    /// The first window that was too large to be one.
    absurd: Option<String>,
    /// What the detector of the connection under test decided.
    detection: Detection,
}

/// The window of a socket as far as it was looked at.
#[derive(Clone, Copy)]
struct Window {
    /// The largest, packets.
    largest: u32,
    /// Segments sent until the last look.
    sent: u32,
}

impl Window {
    /// Before the first look: RFC 6928.
    const FIRST: Window = Window { largest: 10, sent: 0 };

    /// The most that the window can have become, packets, if `sent` segments have left since the
    /// beginning. It grows by at most one packet for each acknowledged, and those were in flight
    /// at the last look, within the window, or were sent since; a control that restores an earlier
    /// window, or that sets one, is left as much again.
    fn most(&self, sent: u32) -> u32 {
        let since = sent.wrapping_sub(self.sent);
        self.largest.saturating_add(since).saturating_mul(2)
    }
}

/// What a flow counted, those of its sockets included that are closed now.
#[derive(Default)]
struct Counted {
    fallback: bool,
    /// Bytes that went out on a second subflow, by connection.
    retransmitted: HashMap<u32, u64>,
    /// Bytes acknowledged and segments sent again, by path and socket.
    paths: Vec<HashMap<u64, (u64, u64)>>,
}

impl<'a> Sampler<'a> {
    /// For the senders of all flows, in their order.
    pub fn new(hosts: Vec<&'a Host>, senders: Vec<Sender>) -> Sampler<'a> {
        let mut place = HashMap::new();
        let mut counted = Vec::new();
        for (flow, sender) in senders.iter().enumerate() {
            place.extend((0..).zip(&sender.addresses).map(|(path, ip)| (*ip, (flow, path))));
            let paths = vec![HashMap::new(); sender.addresses.len()];
            counted.push(Counted { paths, ..Counted::default() });
        }
        let (sockets, windows) = (Vec::new(), HashMap::new());
        let (absurd, detection) = (None, Detection::default());
        Sampler { hosts, senders, place, counted, sockets, windows, absurd, detection }
    }

    /// Looks at all sockets of the senders.
    ///
    /// # Errors
    /// The kernel does not report it.
    pub fn look(&mut self) -> Result<(), Error> {
        self.sockets.clear();
        let mut hosts: Vec<usize> = self.senders.iter().map(|sender| sender.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        for host in hosts {
            let look = || Ok((diag::sockets()?, diag::connections()?));
            let seen = self.hosts[host].run(look).and_then(|seen| seen);
            let (sockets, connections) = seen.map_err(kernel)?;
            for connection in connections {
                let Some(&(flow, _)) = self.place.get(&connection.local.ip()) else { continue };
                let counted = &mut self.counted[flow];
                counted.fallback |= connection.fell_back;
                counted.retransmitted.insert(connection.token, connection.retransmitted_bytes);
            }
            for socket in sockets.into_iter().filter(|socket| socket.state != State::Listen) {
                let Some(&(flow, path)) = self.place.get(&socket.local.ip()) else { continue };
                let Some(info) = &socket.info else { continue };
                let counts = (info.bytes_acked, u64::from(info.total_retrans));
                self.counted[flow].paths[path].insert(socket.cookie, counts);
                let window = self.windows.entry(socket.cookie).or_insert(Window::FIRST);
                let (cwnd, most) = (info.snd_cwnd, window.most(info.data_segs_out));
                if cwnd > most && self.absurd.is_none() {
                    let name = &self.senders[flow].name;
                    self.absurd = Some(format!(
                        "a window of {cwnd} packets in {name}, at most {most} possible"
                    ));
                }
                let largest = if cwnd > most { window.largest } else { window.largest.max(cwnd) };
                *window = Window { largest, sent: info.data_segs_out };
                self.sockets.push((flow, path, socket));
            }
        }
        Ok(())
    }

    /// Looks at what the detector of `flow` decided, at `now`.
    ///
    /// # Errors
    /// The maps cannot be read.
    pub fn detect(&mut self, flow: usize, now: Nanos) -> Result<(), Error> {
        let sender = &self.senders[flow];
        let Some(control) = sender.algorithm.and_then(|algorithm| algorithm.ours()) else {
            return Ok(());
        };
        if !control.detector.decides() {
            return Ok(());
        }
        let inum = self.hosts[sender.host].inum();
        let of = |ip| self.place.get(&ip).filter(|place| place.0 == flow).map(|place| place.1);
        let entries = state::connections().map_err(kernel)?;
        for entry in entries.iter().filter(|entry| entry.netns == inum) {
            let decision = state::decision(entry.token).map_err(kernel)?;
            let Some(decision) = decision else { continue };
            let mut places = [Place::Undecided; MAX_PATHS];
            for path in &entry.paths {
                let Some(to) = of(path.local.ip()) else { continue };
                places[to] = decision.places[path.slot];
            }
            let log = &mut self.detection.decisions;
            if log.last().is_none_or(|last| last.number != decision.number) {
                log.push(Decision::new(decision.number, now / 1000, places));
            }
        }
        Ok(())
    }

    /// What the detector of the connection under test decided, as it was seen.
    pub fn detection(&self) -> &Detection {
        &self.detection
    }

    /// The first window since the beginning that was larger than what was in flight and the window
    /// before allow.
    pub fn absurd(&self) -> Option<&str> {
        self.absurd.as_deref()
    }

    /// The flow as it was at the last look, without what its receiver knows.
    pub fn flow(&self, flow: usize) -> FlowState {
        if self.senders[flow].algorithm.is_none() {
            return FlowState { reinjections: Some(0), ..FlowState::default() };
        }
        let counted = &self.counted[flow];
        let path = |(path, sockets): (usize, &HashMap<u64, (u64, u64)>)| {
            let own = self.sockets.iter().filter(|own| (own.0, own.1) == (flow, path));
            // Before it closes for good, the last one may be there beside a new one.
            let own = own.filter(|(.., socket)| socket.state == State::Established);
            let own =
                own.filter_map(|(.., socket)| socket.info.as_ref()).max_by_key(|i| i.bytes_acked);
            PathState {
                delivered: sockets.values().map(|counts| counts.0).sum(),
                retransmits: sockets.values().map(|counts| counts.1).sum(),
                ..own.map(state).unwrap_or_default()
            }
        };
        let paths: Vec<PathState> = counted.paths.iter().enumerate().map(path).collect();
        let retransmitted: u64 = counted.retransmitted.values().sum();
        FlowState {
            delivered: paths.iter().map(|path| path.delivered).sum(),
            retransmits: paths.iter().map(|path| path.retransmits).sum(),
            reinjections: Some(retransmitted.div_ceil(SEGMENT)),
            fallback: counted.fallback,
            paths,
            ..FlowState::default()
        }
    }

    /// Does each subflow that has sent something run what its flow is to run, and is one of ours in
    /// charge of all subflows of its connection? If not, what was wrong at the last look.
    ///
    /// # Errors
    /// The map cannot be read.
    pub fn wrong(&self) -> Result<Option<String>, Error> {
        let ours = |sender: &Sender| sender.algorithm.is_some_and(|a| a.ours().is_some());
        let any = self.senders.iter().any(ours);
        let entries = if any { state::connections().map_err(kernel)? } else { Vec::new() };
        for (flow, _, socket) in &self.sockets {
            let sender = &self.senders[*flow];
            let sent = socket.info.as_ref().is_some_and(|info| info.bytes_acked > 1);
            let Some(algorithm) = sender.algorithm.filter(|_| sent) else { continue };
            if socket.state != State::Established {
                continue;
            }
            let of = format!("the subflow of {} from {}", sender.name, socket.local.ip());
            if socket.control != name(algorithm) {
                return Ok(Some(format!("{of} runs {}, not {algorithm}", socket.control)));
            }
            let inum = self.hosts[sender.host].inum();
            let mut entries = entries.iter().filter(|entry| {
                entry.netns == inum && entry.control == algorithm.ours() && !entry.closed
            });
            let has = |entry: &state::Connection| {
                let is = |path: &state::ConnectionPath| {
                    (path.local, path.remote) == (socket.local, socket.remote) && !path.outside
                };
                entry.paths.iter().any(is)
            };
            // What fell back is plain TCP, which has no entry.
            let mptcp = socket.subflow.is_some_and(|subflow| !subflow.fell_back());
            if ours(sender) && mptcp && !entries.any(has) {
                return Ok(Some(format!("{of} is not controlled by {algorithm}")));
            }
        }
        Ok(None)
    }
}

/// Payload of a segment that is sent again on another subflow, at the usual MTU.
const SEGMENT: u64 = 1424;

fn state(info: &TcpInfo) -> PathState {
    PathState {
        cwnd: info.snd_cwnd,
        ssthresh: (info.snd_ssthresh < SSTHRESH_MAX).then_some(info.snd_ssthresh),
        srtt: Nanos::from(info.rtt) * 1000,
        inflight: (info.unacked + info.retrans).saturating_sub(info.sacked + info.lost),
        ..PathState::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_grows_by_what_is_acknowledged() {
        let window = Window { largest: 40, sent: 1_000 };
        // All that was in flight, and all that was sent since, is acknowledged in slow start.
        assert!(window.most(1_080) >= 40 + 40 + 80);
        // Nothing was sent, as the application has nothing.
        assert!(window.most(1_000) >= 40 && window.most(1_000) < 100);
        assert!(Window::FIRST.most(10) >= 20);
        // What a stack without its control's answer took for a window.
        assert!(window.most(22_000) < 667_073_216);
    }
}
