//! The smallest RTT of the last five minutes, so that a path that became longer is seen to: the
//! windowed filter of Linux's tcp_update_rtt_min() (lib/win_minmax.c, after Kathleen Nichols). It
//! keeps the smallest sample and two runners-up, each younger than the one before, instead of all.

use narrows_net::{Nanos, SECOND};

/// Linux's tcp_min_rtt_wlen.
const WINDOW: Nanos = 300 * SECOND;

#[derive(Clone, Copy, Debug)]
struct Sample {
    time: Nanos,
    rtt: Nanos,
}

/// Smallest RTT of a subflow.
#[derive(Debug)]
pub(crate) struct MinRtt {
    /// The smallest, and the smallest since each of them.
    best: [Sample; 3],
}

impl Default for MinRtt {
    fn default() -> Self {
        MinRtt { best: [Sample { time: 0, rtt: Nanos::MAX }; 3] }
    }
}

impl MinRtt {
    /// `Nanos::MAX` before the first sample.
    pub fn get(&self) -> Nanos {
        self.best[0].rtt
    }

    pub fn sample(&mut self, rtt: Nanos, now: Nanos) {
        let new = Sample { time: now, rtt: rtt.max(1) };
        // What is larger than the new one can never be the smallest again.
        for place in 0..3 {
            if new.rtt <= self.best[place].rtt {
                self.best[place..].fill(new);
                break;
            }
        }
        self.age(new);
    }

    fn age(&mut self, new: Sample) {
        let [first, second, third] = self.best;
        let age = new.time - first.time;
        if age > WINDOW {
            self.best = [second, third, new];
            if new.time - second.time > WINDOW {
                self.best = [third, new, new];
            }
            if new.time - third.time > WINDOW {
                self.best = [new; 3];
            }
        } else if second.time == first.time && age > WINDOW / 4 {
            // No runner-up in a quarter of the window: it begins here.
            self.best[1..].fill(new);
        } else if third.time == second.time && age > WINDOW / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The path gets longer, from 20 to 50 ms: for five minutes nobody can know.
    #[test]
    fn a_longer_path_is_believed_after_five_minutes() {
        let mut min = MinRtt::default();
        let mut seen = vec![];
        for second in 0..400 {
            let rtt = if second < 10 { 20 } else { 50 + second % 7 };
            min.sample(rtt, second * SECOND);
            seen.push(min.get());
        }
        assert_eq!((seen[309], seen[310]), (20, 50));
        // A shorter one is believed at once.
        min.sample(10, 400 * SECOND);
        assert_eq!(min.get(), 10);
    }

    /// Against all samples of the window: never less than their smallest, and not more than that of
    /// the last half of it.
    #[test]
    fn it_is_the_smallest_of_about_the_window() {
        let mut min = MinRtt::default();
        let mut samples = vec![];
        let mut state = 1_u64;
        for second in 0..5_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let rtt = 1_000 + (state >> 33) % 1_000_000;
            samples.push(rtt);
            min.sample(rtt, second * SECOND);
            let since = |seconds: usize| {
                let from = (second as usize + 1).saturating_sub(seconds);
                *samples[from..].iter().min().unwrap()
            };
            assert!((since(301)..=since(150)).contains(&min.get()), "after {second} s");
        }
    }
}
