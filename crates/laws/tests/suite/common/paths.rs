//! Paths that deliver at a constant rate, for laws with a model of them.

use narrows_laws::{Conn, Control, Event, EventKind, Output, Params, Private, State};

/// Paths that each deliver a packet at a time, at a constant rate and RTT.
#[derive(Clone)]
pub struct Paths {
    pub conn: Conn,
    private: Vec<Private>,
    pub paths: Vec<Path>,
    pub now_us: u64,
}

#[derive(Clone, Copy)]
pub struct Path {
    /// Packets/s.
    pub rate: f64,
    pub rtt_us: u64,
    pub mss: u32,
    pub next_us: f64,
    delivered: u64,
}

impl Path {
    pub fn new(rate: f64, rtt_us: u64, mss: u32) -> Path {
        Path { rate, rtt_us, mss, next_us: 0.0, delivered: 0 }
    }

    /// Packets on the path when it is full.
    pub fn bdp(&self) -> u32 {
        (self.rate * self.rtt_us as f64 / 1e6).ceil() as u32
    }

    /// bytes/s
    pub fn bytes(&self) -> f64 {
        (self.rate * f64::from(self.mss)).floor()
    }
}

impl Paths {
    pub fn new(control: &str, set: &[(&str, &str)], paths: &[Path]) -> Paths {
        let mut params = Params::default();
        set.iter().for_each(|(name, value)| params.set(name, value).unwrap());
        let control: Control = control.parse().unwrap();
        let mut all = Paths {
            conn: Conn::with_params(control, &params),
            private: vec![Private::default(); paths.len()],
            paths: paths.to_vec(),
            now_us: 1_000_000,
        };
        all.paths.iter_mut().for_each(|path| path.next_us = 1e6);
        for path in 0..paths.len() {
            let joined = all.event(path, EventKind::Joined);
            all.report(path, joined);
        }
        all
    }

    pub fn event(&self, path: usize, kind: EventKind) -> Event {
        let of = &self.paths[path];
        Event {
            kind: kind as u32,
            now_us: self.now_us,
            state: State::Active as u32,
            inflight: self.inflight(path),
            srtt8_us: 8 * of.rtt_us as u32,
            mss: of.mss,
            ..Event::default()
        }
    }

    /// Packets on the path and in its queue: what is sent faster than they arrive is queued, and a
    /// drained path holds less than its BDP.
    pub fn inflight(&self, path: usize) -> u32 {
        let (of, line) = (&self.paths[path], self.conn.path(path));
        let faster = line.pacing_rate as f64 > 1.1 * of.bytes();
        let slower = (line.pacing_rate as f64) < 0.95 * of.bytes();
        let inflight = match (faster, slower) {
            (true, _) => 2 * of.bdp() + 400,
            (_, true) => of.bdp() * 4 / 5,
            _ => of.bdp() - 1,
        };
        // As little as ProbeRTT allows.
        if line.cwnd < of.bdp() / 2 + 4 { line.cwnd } else { inflight }
    }

    pub fn report(&mut self, path: usize, event: Event) -> Output {
        self.conn.event(path, &mut self.private[path], &event)
    }

    /// The acknowledgement of a packet.
    pub fn ack(&mut self, path: usize, flags: u32) -> Output {
        let of = self.paths[path];
        self.paths[path].delivered += 1;
        let event = Event {
            delivered: 1,
            rate: of.bytes() as u64,
            rtt_us: of.rtt_us as u32,
            sample_delivered: of.bdp().min(of.delivered as u32 + 1),
            sample_inflight: of.bdp(),
            flags,
            ..self.event(path, EventKind::Acked)
        };
        self.report(path, event)
    }

    /// The next packet of a path arrives.
    pub fn next(&mut self, path: usize, flags: u32) -> Output {
        self.now_us = self.now_us.max(self.paths[path].next_us as u64);
        self.paths[path].next_us += 1e6 / self.paths[path].rate;
        self.ack(path, flags)
    }

    /// For so long each path delivers; returns the outputs of the last path with their times.
    pub fn run(&mut self, us: u64) -> Vec<(u64, Output)> {
        let (end, last) = (self.now_us + us, self.paths.len() - 1);
        let mut seen = vec![];
        while self.now_us < end {
            let due = |path: &usize| self.paths[*path].next_us;
            let path = (0..self.paths.len()).min_by(|a, b| due(a).total_cmp(&due(b))).unwrap();
            let out = self.next(path, 0);
            if path == last {
                seen.push((self.now_us, out));
            }
        }
        seen
    }
}

/// The gains of pacing in what was seen, of bandwidth `bytes`, without repetitions.
pub fn gains(seen: &[(u64, Output)], bytes: f64) -> Vec<f64> {
    let mut gains: Vec<f64> =
        seen.iter().map(|(_, out)| out.pacing_rate as f64 / 0.99 / bytes).collect();
    gains.dedup_by(|a, b| (*a - *b).abs() < 0.004);
    gains
}

pub fn near(a: f64, b: f64, within: f64) -> bool {
    (a - b).abs() <= within * b
}
