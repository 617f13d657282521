//! A group as one flow, Reno or CUBIC, from docs/method/one-flow.md.

/// A path of the group.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Window, packets.
    pub w: u32,
    /// Smoothed round-trip time, 1/8 µs.
    pub srtt8: u32,
    /// The same without waits for a second packet, 1/8 µs.
    pub r0: u32,
    /// Share of acknowledgements that are of two packets or more, 1/31.
    pub pairs: u32,
}

impl Member {
    fn least(&self) -> f64 {
        f64::from(self.r0.min(self.srtt8)) / 8e6
    }

    /// Round trip of a packet in the mean, in the resolution of 1/8 µs: of two packets one waits.
    fn rtt(&self) -> f64 {
        let r0 = self.r0.min(self.srtt8);
        let waits = f64::from(self.srtt8 - r0) * 31.0 / f64::from(31 + self.pairs);
        (f64::from(r0) + libm::floor(waits)) / 8e6
    }
}

/// Growth of path `i` for each acknowledged packet, packets, beside a flow that grows by one each
/// round trip: all windows alike, in rate 1 / G^2.
fn equal(members: &[Member], i: usize, waits: f64) -> f64 {
    let all: f64 = members.iter().map(|k| (k.rtt() * k.rtt()).recip()).sum();
    let round = flow(members, waits).0;
    1.0 / (f64::from(members[i].w) * round * round * all)
}

/// greno's growth for each acknowledged packet, packets.
pub fn growth(members: &[Member], i: usize) -> f64 {
    equal(members, i, 1.0 / 4.0).min(1.0 / f64::from(members[i].w))
}

/// Round trip of one flow of the group's rate, and its window: some packets wait for the next.
fn flow(members: &[Member], waits: f64) -> (f64, f64) {
    let g = members.iter().map(Member::least).fold(f64::INFINITY, f64::min);
    let rate: f64 = members.iter().map(|k| f64::from(k.w) / k.rtt()).sum();
    let rtt = g + waits / rate;
    (rtt, rate * rtt)
}

/// gcubic's z.
const WAITS: f64 = 4.0 / 8.0;

/// Growth of path `i` in its round trip while the flow grows by a packet in its own.
fn step(members: &[Member], i: usize) -> f64 {
    equal(members, i, WAITS) * f64::from(members[i].w)
}

/// What path `i` grows by when the flow's window grows by one packet.
pub fn share(members: &[Member], i: usize) -> f64 {
    step(members, i) * flow(members, WAITS).0 / members[i].rtt()
}

/// The path's part of the flow's window once windows are as growth makes them.
pub fn part(members: &[Member], i: usize) -> f64 {
    share(members, i) * flow(members, WAITS).1
}

/// Window of one of `n` members after a cut of CUBIC's.
pub fn cubic_cut(w: f64, n: usize) -> f64 {
    (0.7 * w + 0.15 - 0.95 / n as f64).max(2.0)
}

/// A member's part of a CUBIC flow since an event at window `w`: its curve, in its own window.
pub struct CubicMember {
    /// Window, packets, with its fraction.
    pub w: f64,
    /// Growth of the flow that a member has: of the cubic, and per round trip.
    share: f64,
    step: f64,
    w_max: f64,
    w_prior: f64,
    w_est: f64,
    k: f64,
}

impl CubicMember {
    const C: f64 = 0.4;

    /// `members[i]` at the event, its window with its fraction, and whether fast convergence applies.
    pub fn new(members: &[Member], i: usize, w: f64, fast: bool) -> CubicMember {
        let part = part(members, i);
        let after = cubic_cut(w, members.len());
        let share = share(members, i);
        let w_max = (0.7 * w + if fast { 0.15 } else { 0.3 } * part).max(after);
        CubicMember {
            w: after,
            share,
            step: step(members, i),
            w_max,
            w_prior: 0.7 * w + 0.3 * part,
            w_est: after,
            k: libm::cbrt((w_max - after) / (share * CubicMember::C)),
        }
    }

    fn cubic(&self, t: f64) -> f64 {
        self.share * CubicMember::C * libm::pow(t - self.k, 3.0) + self.w_max
    }

    /// A packet is acknowledged `t` seconds into the epoch.
    pub fn acked(&mut self, t: f64, rtt: f64) {
        let alpha = if self.w_est < self.w_prior { 9.0 / 17.0 } else { 1.0 };
        self.w_est += alpha * self.step / self.w;
        if self.cubic(t) < self.w_est {
            self.w = self.w.max(self.w_est);
        } else {
            let target = self.cubic(t + rtt).clamp(self.w, 1.5 * self.w);
            self.w += (target - self.w) / self.w;
        }
    }
}

/// Window of one of `n` members after a cut.
pub fn cut(w: f64, n: usize) -> f64 {
    (w / 2.0 + 0.25 - 0.75 / n as f64).max(2.0)
}

/// Packets that a window of `w` is after a cut: an even number where it grows in pairs.
pub fn whole(w: f64) -> f64 {
    if (5.5..13.0).contains(&w) { 2.0 * libm::floor((w + 0.5) / 2.0) } else { libm::floor(w) }
}
