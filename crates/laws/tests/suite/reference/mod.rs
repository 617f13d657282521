//! The laws in floating point, written from their sources and not from the C.

pub mod dcw;
pub mod group;
pub mod ssc;
pub mod tr;
pub mod xcorr;

/// A path as the formulas see it.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Window, packets.
    pub w: u32,
    /// Smoothed round-trip time, 1/8 µs.
    pub rtt8: u32,
    /// OLIA's l: packets between losses.
    pub l: u32,
}

impl Flow {
    fn w(&self) -> f64 {
        f64::from(self.w)
    }

    fn rtt(&self) -> f64 {
        f64::from(self.rtt8) / 8e6
    }

    fn x(&self) -> f64 {
        self.w() / self.rtt()
    }
}

/// RFC 5681, equation 3: packets per acknowledged packet.
pub fn reno(w: u32) -> f64 {
    1.0 / f64::from(w)
}

/// RFC 6356, section 3 and 4: min(alpha / w_total, 1 / w_i) per acknowledged packet.
pub fn lia(flows: &[Flow], i: usize) -> f64 {
    let total: f64 = flows.iter().map(Flow::w).sum();
    let rates: f64 = flows.iter().map(Flow::x).sum();
    let best = flows.iter().map(|k| k.w() / (k.rtt() * k.rtt())).fold(0.0, f64::max);
    let alpha = total * best / (rates * rates);
    (alpha / total).min(reno(flows[i].w))
}

/// draft-khalili-05, equation 1: its two terms.
pub fn olia(flows: &[Flow], i: usize) -> (f64, f64) {
    let own = flows[i];
    let rates: f64 = flows.iter().map(Flow::x).sum();
    let first = own.w() / (own.rtt() * own.rtt()) / (rates * rates);
    // Ties must be ties: l_p / rtt_p^2 as exact fractions, by cross-multiplication.
    let quality = |a: &Flow, b: &Flow| {
        let (ra, rb) = (u128::from(a.rtt8), u128::from(b.rtt8));
        (u128::from(a.l) * rb * rb).cmp(&(u128::from(b.l) * ra * ra))
    };
    let best = |k: &Flow| flows.iter().all(|other| quality(k, other).is_ge());
    let largest = |k: &Flow| flows.iter().all(|other| k.w >= other.w);
    let collected = |k: &Flow| best(k) && !largest(k);
    let count = |of: &dyn Fn(&Flow) -> bool| flows.iter().filter(|k| of(k)).count() as f64;
    let alpha = if count(&collected) == 0.0 {
        0.0
    } else if collected(&own) {
        1.0 / flows.len() as f64 / count(&collected)
    } else if largest(&own) {
        -1.0 / flows.len() as f64 / count(&largest)
    } else {
        0.0
    };
    (first, alpha / own.w())
}

fn balia_alpha(flows: &[Flow], i: usize) -> f64 {
    flows.iter().map(Flow::x).fold(0.0, f64::max) / flows[i].x()
}

/// draft-walid-04, section 2: increase per acknowledged packet.
pub fn balia(flows: &[Flow], i: usize) -> f64 {
    let alpha = balia_alpha(flows, i);
    let rates: f64 = flows.iter().map(Flow::x).sum();
    flows[i].x() / (flows[i].rtt() * rates * rates) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
}

/// draft-walid-04, section 2: packets taken off at a loss.
pub fn balia_decrease(flows: &[Flow], i: usize) -> f64 {
    flows[i].w() / 2.0 * balia_alpha(flows, i).min(1.5)
}

/// Honda et al. 2009: a / w per acknowledged packet. From a / w = p w / 2, 1/n of sqrt(2 / p) is
/// a = 1 / n^2.
pub fn ewtcp(flows: &[Flow], i: usize) -> f64 {
    let n = flows.len() as f64;
    1.0 / (n * n) / flows[i].w()
}

/// draft-xu-mptcp-congestion-control-05, a path's round trips; as the header departs from it: whole
/// packets between diff and alpha, and only a path that queues 2 (alpha + 1) drains.
pub struct Vegas {
    alpha: f64,
    queue: f64,
}

/// What a round trip does to the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Round {
    Up,
    Stay,
    Down,
    /// Slow start ends at this window.
    Leave(f64),
    /// The window that lets the queue run empty.
    Drain(f64),
}

impl Vegas {
    const TOTAL_ALPHA: f64 = 10.0;
    const INITIAL_ALPHA: f64 = 2.0;
    const GAMMA: f64 = 1.0;

    pub fn new() -> Vegas {
        Vegas { alpha: Vegas::INITIAL_ALPHA, queue: f64::INFINITY }
    }

    /// A round at window `w` with these RTTs; `base` is the smallest so far, `share` the path's part
    /// of the connection's rate. None where rounding decides.
    pub fn round(
        &mut self,
        w: f64,
        slow_start: bool,
        rtts: &[u32],
        base: u32,
        share: f64,
    ) -> Option<Round> {
        if rtts.len() <= 2 {
            return Some(Round::Up);
        }
        let rtt = rtts.iter().map(|rtt| f64::from(*rtt)).sum::<f64>() / rtts.len() as f64;
        let base = f64::from(base);
        let diff = w * (rtt - base) / rtt;
        let near = |a: f64, b: f64| (a - b).abs() < 1e-3;
        if slow_start {
            let over = diff > Vegas::GAMMA;
            let leave = Round::Leave(w.min((w * base / rtt).floor() + 1.0));
            return (!near(diff, Vegas::GAMMA)).then_some(if over { leave } else { Round::Up });
        }
        if near(diff, self.alpha) {
            return None;
        }
        if diff >= self.alpha {
            self.alpha = (share * Vegas::TOTAL_ALPHA).max(Vegas::INITIAL_ALPHA);
        }
        if near(diff, self.alpha) || near(diff, self.alpha + 1.0) {
            return None;
        }
        let queue = rtt - base;
        self.queue = self.queue.min(queue);
        let most = 2.0 * (self.alpha + 1.0);
        if near(diff, most) || diff > most && (queue - 2.0 * self.queue).abs() < 0.02 {
            return None;
        }
        if queue >= 2.0 * self.queue && diff >= most {
            self.queue = f64::INFINITY;
            return Some(Round::Drain(w * base / (2.0 * rtt)));
        }
        if diff < self.alpha {
            return Some(Round::Up);
        }
        Some(if diff < self.alpha + 1.0 { Round::Stay } else { Round::Down })
    }
}

/// RFC 9438: CUBIC's window in congestion avoidance, after one loss at `w_max` and no other.
pub struct Cubic {
    /// Window, packets, with its fraction.
    pub w: f64,
    w_max: f64,
    w_est: f64,
    w_prior: f64,
    k: f64,
}

impl Cubic {
    const C: f64 = 0.4;
    const BETA: f64 = 0.7;

    /// Congestion avoidance begins at `w`, with the plateau at `w_max` (0: at `w`) and the window
    /// of the last loss `w_prior`.
    pub fn new(w: f64, w_max: f64, w_prior: f64) -> Cubic {
        let w_max = if w_max > w { w_max } else { w };
        let k = libm::cbrt((w_max - w) / Cubic::C);
        Cubic { w, w_max, w_est: w, w_prior, k }
    }

    /// Section 4.2, equation 1.
    pub fn cubic(&self, t: f64) -> f64 {
        Cubic::C * libm::pow(t - self.k, 3.0) + self.w_max
    }

    /// A packet is acknowledged `t` seconds into congestion avoidance.
    pub fn acked(&mut self, t: f64, rtt: f64) {
        let alpha = if self.w_est < self.w_prior {
            3.0 * (1.0 - Cubic::BETA) / (1.0 + Cubic::BETA)
        } else {
            1.0
        };
        self.w_est += alpha / self.w;
        if self.cubic(t) < self.w_est {
            self.w = self.w.max(self.w_est); // section 4.3
        } else {
            let target = self.cubic(t + rtt).clamp(self.w, 1.5 * self.w);
            self.w += (target - self.w) / self.w; // sections 4.4 and 4.5
        }
    }
}

/// An RTT in microseconds, or infinity.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rtt(f64);

impl Rtt {
    pub const INFINITE: Rtt = Rtt(f64::INFINITY);

    pub fn us(us: u32) -> Rtt {
        Rtt(f64::from(us))
    }

    /// As an event has it: 0 is no sample.
    pub fn sample(self) -> u32 {
        if self == Rtt::INFINITE { 0 } else { self.0 as u32 }
    }
}

/// RFC 9406, section 4.2, line by line: the first slow start of a connection.
pub struct HystartPlusPlus {
    pub cwnd: f64,
    pub ssthresh: Option<u32>,
    /// Rounds of conservative slow start, the present one included, while in it.
    pub css: Option<u32>,
    /// Congestion avoidance has begun.
    pub done: bool,
    limit: u32,
    last_round_min_rtt: Rtt,
    current_round_min_rtt: Rtt,
    css_baseline_min_rtt: Rtt,
    rtt_sample_count: u32,
}

impl HystartPlusPlus {
    const MIN_RTT_THRESH: f64 = 4_000.0;
    const MAX_RTT_THRESH: f64 = 16_000.0;
    const MIN_RTT_DIVISOR: f64 = 8.0;
    const N_RTT_SAMPLE: u32 = 8;
    const CSS_GROWTH_DIVISOR: f64 = 4.0;
    const CSS_ROUNDS: u32 = 5;

    pub fn new(paced: bool) -> HystartPlusPlus {
        HystartPlusPlus {
            cwnd: 10.0,
            ssthresh: None,
            css: None,
            done: false,
            limit: if paced { u32::MAX } else { 8 },
            last_round_min_rtt: Rtt::INFINITE,
            current_round_min_rtt: Rtt::INFINITE,
            css_baseline_min_rtt: Rtt::INFINITE,
            rtt_sample_count: 0,
        }
    }

    pub fn new_round(&mut self) {
        if let Some(rounds) = self.css {
            if rounds == HystartPlusPlus::CSS_ROUNDS {
                self.ssthresh = Some(self.cwnd as u32);
                self.done = true;
            }
            self.css = Some(rounds + 1);
        }
        self.last_round_min_rtt = self.current_round_min_rtt;
        self.current_round_min_rtt = Rtt::INFINITE;
        self.rtt_sample_count = 0;
    }

    pub fn acked(&mut self, packets: u32, rtt: Rtt) {
        if self.done {
            return;
        }
        if rtt != Rtt::INFINITE {
            self.sample(rtt);
        }
        let n = f64::from(packets.min(self.limit));
        self.cwnd += if self.css.is_some() { n / HystartPlusPlus::CSS_GROWTH_DIVISOR } else { n };
    }

    fn sample(&mut self, rtt: Rtt) {
        if rtt < self.current_round_min_rtt {
            self.current_round_min_rtt = rtt;
        }
        self.rtt_sample_count += 1;
        if self.rtt_sample_count < HystartPlusPlus::N_RTT_SAMPLE {
            return;
        }
        if self.css.is_some() {
            if self.current_round_min_rtt < self.css_baseline_min_rtt {
                self.css_baseline_min_rtt = Rtt::INFINITE;
                self.css = None;
            }
        } else if self.last_round_min_rtt != Rtt::INFINITE {
            // Whole microseconds, as samples are.
            let eighth = (self.last_round_min_rtt.0 / HystartPlusPlus::MIN_RTT_DIVISOR).floor();
            let thresh =
                eighth.clamp(HystartPlusPlus::MIN_RTT_THRESH, HystartPlusPlus::MAX_RTT_THRESH);
            if self.current_round_min_rtt.0 >= self.last_round_min_rtt.0 + thresh {
                self.css_baseline_min_rtt = self.current_round_min_rtt;
                self.css = Some(1);
            }
        }
    }
}
