//! Random loss: independent, or in bursts.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::rng;

/// How packets are lost at random at the entry of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// None is.
    #[default]
    None,
    /// Each packet alone, with this probability in 0..=1.
    Random(f64),
    /// In bursts.
    GilbertElliott(GilbertElliott),
}

/// The Gilbert-Elliott model (Gilbert 1960, Elliott 1963): a good and a bad state, each with its
/// loss, between which the link changes from packet to packet; netem's `gemodel p r 1-h 1-k`
/// (tc-netem(8)). The link begins in the good state.
///
/// It is bad for a share p / (p + r) of all packets and for 1 / r packets at a time. The mean loss
/// is (p `loss_bad` + r `loss_good`) / (p + r).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// p: probability per packet that the good state ends, in 0..=1.
    pub good_to_bad: f64,
    /// r: probability per packet that the bad state ends, in 0..=1.
    pub bad_to_good: f64,
    /// 1 - k: probability of loss in the good state, in 0..=1; Gilbert's own model has 0.
    pub loss_good: f64,
    /// 1 - h: probability of loss in the bad state, in 0..=1.
    pub loss_bad: f64,
}

impl Default for GilbertElliott {
    /// Never bad; in the bad state everything is lost, in the good state nothing.
    fn default() -> Self {
        GilbertElliott { good_to_bad: 0.0, bad_to_good: 1.0, loss_good: 0.0, loss_bad: 1.0 }
    }
}

impl Loss {
    /// The share of packets that is lost in the long run.
    pub fn mean(&self) -> f64 {
        match *self {
            Loss::None => 0.0,
            Loss::Random(loss) => loss,
            // Never bad, also if it could not get out again.
            Loss::GilbertElliott(ge) if ge.good_to_bad == 0.0 => ge.loss_good,
            Loss::GilbertElliott(ge) => {
                let (p, r) = (ge.good_to_bad, ge.bad_to_good);
                (p * ge.loss_bad + r * ge.loss_good) / (p + r)
            }
        }
    }

    /// All that must be in 0..=1.
    pub(crate) fn probabilities(&self) -> [f64; 4] {
        match *self {
            Loss::None => [0.0; 4],
            Loss::Random(loss) => [loss, 0.0, 0.0, 0.0],
            Loss::GilbertElliott(ge) => [ge.good_to_bad, ge.bad_to_good, ge.loss_good, ge.loss_bad],
        }
    }
}

/// The loss of one link with its state and its own random stream.
#[derive(Clone, Debug)]
pub(crate) struct Losses {
    model: Loss,
    bad: bool,
    rng: Xoshiro256PlusPlus,
}

impl Losses {
    pub fn new(model: Loss, rng: Xoshiro256PlusPlus) -> Losses {
        Losses { model, bad: false, rng }
    }

    /// Whether the next packet is lost.
    pub fn next(&mut self) -> bool {
        let mut chance = |p: f64| p > 0.0 && rng::uniform_f64(&mut self.rng) < p;
        match self.model {
            Loss::None => false,
            Loss::Random(loss) => chance(loss),
            Loss::GilbertElliott(ge) => {
                let (loss, change) = if self.bad {
                    (ge.loss_bad, ge.bad_to_good)
                } else {
                    (ge.loss_good, ge.good_to_bad)
                };
                let lost = chance(loss);
                self.bad ^= chance(change);
                lost
            }
        }
    }
}
