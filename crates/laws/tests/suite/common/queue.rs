//! A queue that AIMD flows fill.

use narrows_testkit::Random;

/// It fills, more and more slowly, and drops; each time anew in length and depth.
pub struct Queue {
    full_us: f64,
    fills_us: f64,
    drops_to: f64,
    began_us: f64,
    until_us: f64,
    left: f64,
}

impl Queue {
    /// A depth, the time to fill it, and the largest share of it that is left after a drop.
    pub fn new(full_us: f64, fills_us: f64, drops_to: f64) -> Queue {
        Queue { full_us, fills_us, drops_to, began_us: 0.0, until_us: 0.0, left: 0.0 }
    }

    /// What a packet waits now; times only grow.
    pub fn delay_us(&mut self, now_us: f64, random: &mut Random) -> f64 {
        while now_us >= self.until_us {
            self.began_us = self.until_us;
            self.until_us += self.fills_us * (0.5 + random.unit());
            self.left = self.drops_to * random.unit();
        }
        let empty = (self.until_us - now_us) / (self.until_us - self.began_us);
        self.full_us * (self.left + (1.0 - self.left) * (1.0 - empty * empty))
    }
}
