//! A network and what happens in it, as the search draws, varies and shrinks it: few numbers, each
//! valid on its own. `file.rs` writes it as a scenario.

use serde::{Deserialize, Serialize};

use crate::draw::Draw;

/// Rates, kbit/s.
pub const RATES: [u32; 2] = [100, 1_000_000];
/// Base RTTs, ms.
pub const RTTS: [u32; 2] = [1, 700];
/// Limits of queues, in products of rate and the RTT of a path that crosses them.
const QUEUES: [f64; 2] = [0.1, 10.0];
/// And at least so many packets.
const LEAST_QUEUE: f64 = 2.0;
/// Paths of a connection.
pub const PATHS: [usize; 2] = [2, 5];
/// Analysed times, ms.
pub const TIMES: [u32; 2] = [3_000, 60_000];
/// And at least so many RTTs of the longest path: in fewer there is nothing but the start.
const LEAST_RTTS: u32 = 10;
/// Most random loss, in 1/10000; also of bursts in the mean.
pub const MOST_LOSS: u32 = 500;
/// Most changes and most rivals in a network.
pub const MOST_CHANGES: usize = 6;
const MOST_RIVALS: usize = 4;

/// Bits of a packet of full size.
const PACKET_BITS: f64 = 12_000.0;
/// It crosses an access link and the shared one, and every other is acknowledged.
const HOPS: f64 = 2.5;
/// Links up to this rate, kbit/s, are simulated in no time.
const FAST: u32 = 20_000;
/// And up to this one in long runs, too.
const SLOW: u32 = 50_000;
/// About the mean rate of the shipped trace, kbit/s.
const TRACE: u32 = 14_000;

/// Schedulers, as scenarios name them; the first is the default.
pub const SCHEDULERS: [&str; 5] = ["linux", "min-rtt", "round-robin", "redundant", "mptcp-v0.89"];
/// Queue disciplines, likewise.
pub const DISCIPLINES: [&str; 5] = ["droptail", "red", "codel", "fq-codel", "pie"];

/// A network with a connection under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Warm-up that no charge counts, ms.
    pub warmup_ms: u32,
    /// Analysed time, ms.
    pub time_ms: u32,
    /// Links that paths and rivals cross.
    pub links: Vec<Link>,
    /// Paths of the connection under test; the first opens it.
    pub paths: Vec<Path>,
    /// TCP flows beside it.
    pub rivals: Vec<Rival>,
    /// Index into [`SCHEDULERS`].
    pub scheduler: usize,
    /// Buffers of the connection, kB; none: the default of scenarios.
    pub buffer_kb: Option<u32>,
    /// Periods in which its application sends nothing, in order: start and length, ms.
    pub pauses: Vec<[u32; 2]>,
    /// What changes during the run.
    pub changes: Vec<Change>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Rate, kbit/s; while it replays a trace, about the trace's.
    pub kbps: u32,
    /// Replays the shipped trace of an LTE link.
    pub trace: bool,
    /// Limit of its queue, packets.
    pub queue: u32,
    /// Largest random delay besides, ms.
    pub jitter_ms: u32,
    /// Random loss.
    pub loss: Loss,
    /// Index into [`DISCIPLINES`].
    pub discipline: usize,
    /// So many in 1000 packets are late by so many ms.
    pub reorder: Option<[u32; 2]>,
    /// A token bucket with a rate, kbit/s, and a burst, kB, that drops what exceeds it.
    pub policer: Option<[u32; 2]>,
    /// Access and aggregation as on Wi-Fi.
    pub wifi: bool,
}

/// Random loss, in 1/10000 of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Loss {
    /// None.
    No,
    /// Each packet alone.
    Random(u32),
    /// Bursts of so many packets in the mean, in all so many in 10000.
    Bursts(u32, u32),
}

/// A path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Path {
    /// The link that it crosses.
    pub link: usize,
    /// Base RTT, ms.
    pub rtt_ms: u32,
}

/// A greedy TCP flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// The link that it crosses.
    pub link: usize,
    /// Base RTT, ms.
    pub rtt_ms: u32,
    /// When it sends, ms: from, and for how long; none: always.
    pub active: Option<[u32; 2]>,
}

/// A change during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// When, ms.
    pub at_ms: u32,
    /// What changes.
    pub what: What,
}

/// What changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum What {
    /// A link is down, for so many ms.
    Down(usize, u32),
    /// A link has another rate from then on, kbit/s.
    Rate(usize, u32),
    /// A link has this delay, ms, beside the base RTT, from then on.
    Delay(usize, u32),
    /// A path loses its address, for so many ms.
    Leave(usize, u32),
}

impl What {
    /// The link that changes, if it is one.
    fn link(&mut self) -> Option<&mut usize> {
        match self {
            What::Down(link, _) | What::Rate(link, _) | What::Delay(link, _) => Some(link),
            What::Leave(..) => None,
        }
    }
}

impl Network {
    /// A random network whose runs have about `hops` packet-hops at most.
    pub fn random(draw: &mut Draw, hops: u32) -> Network {
        let meet = draw.percent(40);
        let most = draw_paths(draw);
        let count = PATHS[0] + draw.below(most);
        let links = if meet { 1 } else { 1 + draw.below(count) };
        let links: Vec<Link> = (0..links.max(1)).map(|_| Link::random(draw)).collect();
        let rtt = rtt(draw);
        // A quarter of the networks have one RTT on all paths.
        let alike = draw.percent(25);
        let path = |n: usize, draw: &mut Draw| Path {
            link: if n < links.len() { n } else { draw.below(links.len()) },
            rtt_ms: if alike { rtt } else { self::rtt(draw) },
        };
        let paths: Vec<Path> = (0..count).map(|n| path(n, draw)).collect();
        let mut network = Network {
            warmup_ms: 0,
            time_ms: draw.log_int(TIMES[0], TIMES[1]),
            links,
            paths,
            rivals: Vec::new(),
            scheduler: if draw.percent(50) { 0 } else { draw.below(SCHEDULERS.len()) },
            buffer_kb: draw.percent(20).then(|| draw.log_int(20, 4000)),
            pauses: Vec::new(),
            changes: Vec::new(),
        };
        if draw.percent(50) {
            network.warmup_ms = network.time_ms / 2;
        }
        // Shares are judged in long runs.
        if meet && draw.percent(50) {
            network.links[0].kbps = draw.log_int(RATES[0], SLOW);
            network.links[0].draw_queue(draw);
            network.time_ms = draw.log_int(TIMES[1] / 3, TIMES[1]);
            network.warmup_ms = network.time_ms / 2;
        }
        // Shares are judged where a rival is all the time.
        if meet || draw.percent(30) {
            let first = &network.paths[0];
            network.rivals.push(Rival { link: first.link, rtt_ms: first.rtt_ms, active: None });
        }
        for _ in 0..draw.below(3) {
            if draw.percent(40) {
                let rival = Rival::random(draw, &network);
                network.rivals.push(rival);
            }
        }
        if draw.percent(10) {
            network.add_pause(draw);
        }
        if draw.percent(15) && network.paths.len() > 1 {
            network.add_handover(draw);
        }
        for _ in 0..draw.below(4) {
            network.add_change(draw);
        }
        network.valid(hops)
    }

    /// When the run ends, ms.
    pub fn end_ms(&self) -> u32 {
        self.warmup_ms + self.time_ms
    }

    /// Adds a random change.
    pub fn add_change(&mut self, draw: &mut Draw) {
        let at_ms = draw.below(self.end_ms() as usize) as u32;
        let link = draw.below(self.links.len());
        let what = match draw.below(10) {
            // Gaps and outages.
            0..=3 => What::Down(link, draw.log_int(10, self.end_ms())),
            4..=6 => What::Rate(link, draw.log_int(RATES[0], self.links[link].kbps.max(200))),
            7 => What::Delay(link, draw.log_int(1, 300)),
            _ => What::Leave(draw.below(self.paths.len()), draw.log_int(100, self.end_ms())),
        };
        self.changes.push(Change { at_ms, what });
    }

    /// One path leaves, and at about this time another comes, first there then.
    fn add_handover(&mut self, draw: &mut Draw) {
        let at_ms = draw.below(self.end_ms() as usize) as u32;
        let comes = 1 + draw.below(self.paths.len() - 1);
        let late = draw.log_int(1, 2000);
        self.changes.push(Change { at_ms: 0, what: What::Leave(comes, at_ms + late) });
        self.changes.push(Change { at_ms, what: What::Leave(0, self.end_ms()) });
    }

    /// Adds a pause of the application.
    pub fn add_pause(&mut self, draw: &mut Draw) {
        let end = self.end_ms();
        self.pauses.push([draw.below(end as usize) as u32, draw.log_int(100, end / 2)]);
    }

    /// The same with all numbers in their ranges, all indices of something that is there, and no
    /// more packets than `hops` packet-hops.
    pub fn valid(mut self, hops: u32) -> Network {
        self.paths.truncate(PATHS[1]);
        let links = self.links.len();
        for path in &mut self.paths {
            path.link %= links;
            path.rtt_ms = path.rtt_ms.clamp(RTTS[0], RTTS[1]);
        }
        self.rivals.truncate(MOST_RIVALS);
        for rival in &mut self.rivals {
            rival.link %= links;
            rival.rtt_ms = rival.rtt_ms.clamp(RTTS[0], RTTS[1]);
        }
        let paths = self.paths.len();
        for change in &mut self.changes {
            change.what.link().into_iter().for_each(|link| *link %= links);
            if let What::Leave(path, _) = &mut change.what {
                *path %= paths;
            }
        }
        self.without_idle_links();
        self.links.iter_mut().for_each(Link::valid);
        self.fit(hops);
        self.queues();
        self.in_time();
        self
    }

    /// Removes the links that no path crosses, with what is on them.
    fn without_idle_links(&mut self) {
        let crossed = |link: usize, paths: &[Path]| paths.iter().any(|path| path.link == link);
        for link in (0..self.links.len()).rev() {
            if crossed(link, &self.paths) {
                continue;
            }
            self.links.remove(link);
            self.rivals.retain(|rival| rival.link != link);
            self.changes.retain_mut(|change| change.what.link().is_none_or(|of| *of != link));
            let of_changes = self.changes.iter_mut().filter_map(|change| change.what.link());
            let of_paths = self.paths.iter_mut().map(|path| &mut path.link);
            let of_rivals = self.rivals.iter_mut().map(|rival| &mut rival.link);
            for of in of_changes.chain(of_paths).chain(of_rivals).filter(|of| **of > link) {
                *of -= 1;
            }
        }
    }

    /// Shortens the run, and where that would leave too little of it lowers the highest rates.
    fn fit(&mut self, hops: u32) {
        let rtts = self.paths.iter().map(|path| path.rtt_ms * LEAST_RTTS);
        let least = rtts.max().unwrap_or(0).max(TIMES[0]);
        let most = TIMES[1];
        self.time_ms = self.time_ms.clamp(least, most);
        self.warmup_ms = self.warmup_ms.min(most / 2);
        let hops_per_ms: f64 =
            self.links.iter().map(|link| f64::from(link.kbps) / PACKET_BITS * HOPS).sum();
        let room = f64::from(hops) / hops_per_ms;
        let asked = f64::from(self.end_ms());
        if asked > room {
            let factor = (room / asked).max(f64::from(least) / f64::from(self.time_ms));
            let shorter = |ms: u32| libm::round(f64::from(ms) * factor) as u32;
            self.time_ms = shorter(self.time_ms).max(least);
            self.warmup_ms = shorter(self.warmup_ms);
        }
        let room = f64::from(hops) / f64::from(self.end_ms()) * PACKET_BITS / HOPS;
        let most = level(&self.links, room).max(f64::from(FAST)) as u32;
        self.links.iter_mut().for_each(|link| link.kbps = link.kbps.min(most));
    }

    /// Brings queues into their range.
    fn queues(&mut self) {
        for (index, link) in self.links.iter_mut().enumerate() {
            let paths = self.paths.iter().filter(|path| path.link == index);
            let rtts: Vec<u32> = paths.map(|path| path.rtt_ms).collect();
            let bdp = |rtt: Option<&u32>| f64::from(link.kbps * rtt.unwrap_or(&1)) / PACKET_BITS;
            let least = (QUEUES[0] * bdp(rtts.iter().min())).max(LEAST_QUEUE);
            let most = (QUEUES[1] * bdp(rtts.iter().max())).max(LEAST_QUEUE);
            let queue = f64::from(link.queue).clamp(libm::ceil(least), libm::ceil(most));
            link.queue = queue as u32;
        }
    }

    /// Leaves out what happens after the end, and paths that leave while they are away.
    fn in_time(&mut self) {
        let end = self.end_ms();
        self.changes.retain(|change| change.at_ms < end);
        self.changes.truncate(MOST_CHANGES);
        self.changes.sort_by_key(|change| change.at_ms);
        let mut away = vec![0; self.paths.len()];
        self.changes.retain(|change| match change.what {
            // The first path opens the connection.
            What::Leave(path, length) => {
                let leaves = change.at_ms >= away[path] && (change.at_ms > 0 || path > 0);
                if leaves {
                    away[path] = change.at_ms + length + 1;
                }
                leaves
            }
            _ => true,
        });
        self.pauses.sort_unstable();
        let mut last = 0;
        self.pauses.retain(|&[start, length]| {
            let apart = start > last && start + length < end;
            if apart {
                last = start + length;
            }
            apart
        });
        self.rivals.retain(|rival| rival.active.is_none_or(|[from, _]| from < end));
    }
}

/// The rate, kbit/s, that no link may exceed so that all together have `room` at most.
fn level(links: &[Link], room: f64) -> f64 {
    let mut rates: Vec<f64> = links.iter().map(|link| f64::from(link.kbps)).collect();
    rates.sort_by(f64::total_cmp);
    let mut left = room;
    for (index, &rate) in rates.iter().enumerate() {
        let each = left / (rates.len() - index) as f64;
        if rate > each {
            return each;
        }
        left -= rate;
    }
    f64::from(RATES[1])
}

/// How many paths there may be beside two: mostly none or one, as runs of more take longer.
fn draw_paths(draw: &mut Draw) -> usize {
    if draw.percent(70) { 2 } else { 1 + PATHS[1] - PATHS[0] }
}

/// A base RTT, ms.
pub fn rtt(draw: &mut Draw) -> u32 {
    draw.log_int(RTTS[0], RTTS[1])
}

impl Rival {
    /// One that comes and goes.
    pub fn random(draw: &mut Draw, network: &Network) -> Rival {
        let end = network.end_ms();
        let from = draw.below(end as usize) as u32;
        Rival {
            link: draw.below(network.links.len()),
            rtt_ms: rtt(draw),
            active: draw.percent(70).then(|| [from, draw.log_int(200, end)]),
        }
    }
}

impl Link {
    /// A random link: most are plain.
    pub fn random(draw: &mut Draw) -> Link {
        let kbps = draw.log_int(RATES[0], RATES[1]);
        let mut link = Link {
            kbps,
            trace: false,
            queue: 2,
            jitter_ms: 0,
            loss: Loss::No,
            discipline: 0,
            reorder: None,
            policer: None,
            wifi: false,
        };
        link.draw_queue(draw);
        if draw.percent(50) {
            for _ in 0..1 + draw.below(2) {
                link.draw_feature(draw);
            }
        }
        link
    }

    /// A queue of 0.1 to 10 times what the link sends in a likely RTT.
    pub fn draw_queue(&mut self, draw: &mut Draw) {
        let packets = f64::from(self.kbps) * f64::from(rtt(draw)) / PACKET_BITS;
        self.queue = libm::round(packets * draw.log(QUEUES[0], QUEUES[1])) as u32;
    }

    /// Gives the link another loss, jitter, discipline or the like.
    pub fn draw_feature(&mut self, draw: &mut Draw) {
        match draw.below(9) {
            0 | 1 => self.loss = Loss::Random(draw.log_int(1, MOST_LOSS)),
            2 | 3 => self.loss = Loss::Bursts(draw.log_int(2, 50), draw.log_int(1, MOST_LOSS)),
            4 => self.jitter_ms = draw.log_int(1, 100),
            5 => self.reorder = Some([draw.log_int(1, 100), draw.log_int(1, 100)]),
            6 => {
                self.policer =
                    Some([self.kbps / 10 + draw.log_int(10, self.kbps), draw.log_int(5, 500)])
            }
            7 => self.discipline = draw.below(DISCIPLINES.len()),
            _ => {
                (self.wifi, self.trace) =
                    if draw.percent(50) { (true, false) } else { (false, true) }
            }
        }
    }

    fn valid(&mut self) {
        self.kbps = self.kbps.clamp(RATES[0], RATES[1]);
        if self.trace {
            self.kbps = TRACE;
            self.wifi = false;
        }
        if self.wifi {
            // Slower radios than this exist, but not with these overheads.
            self.kbps = self.kbps.max(1_000);
        }
    }
}
