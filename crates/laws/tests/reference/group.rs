//! A group as one Reno flow, from docs/one-flow.md.

/// A path of the group.
#[derive(Clone, Copy, Debug)]
pub struct Member {
    /// Window, packets.
    pub w: u32,
    /// Smoothed round-trip time, 1/8 µs.
    pub srtt8: u32,
    /// The same without waits for a second packet, 1/8 µs.
    pub r0: u32,
}

impl Member {
    fn least(&self) -> f64 {
        f64::from(self.r0.min(self.srtt8)) / 8e6
    }

    /// Round trip of a packet in the mean, in the resolution of 1/8 µs: half of the packets wait.
    fn rtt(&self) -> f64 {
        let r0 = self.r0.min(self.srtt8);
        f64::from(r0 + (self.srtt8 - r0) / 2) / 8e6
    }
}

/// Growth of path `i` for each acknowledged packet, packets: all windows alike, in rate 1 / g^2.
pub fn growth(members: &[Member], i: usize) -> f64 {
    let g = members.iter().map(Member::least).fold(f64::INFINITY, f64::min);
    let all: f64 = members.iter().map(|k| (k.rtt() * k.rtt()).recip()).sum();
    let w = f64::from(members[i].w);
    (1.0 / (w * g * g * all)).min(1.0 / w)
}

/// Window of one of `n` members after a cut.
pub fn cut(w: f64, n: usize) -> f64 {
    (w / 2.0 + 0.25 - 0.75 / n as f64).max(2.0)
}
