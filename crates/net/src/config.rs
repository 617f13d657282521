//! What a link is made of.

use crate::{
    ConfigError, Discipline, Limit, Loss, MAX_DELAY, Nanos, Policer, Rate, Reorder, Variation, Wifi,
};

/// Largest rate: 1 Pbit/s. More is taken for a mistake in units.
const MAX_RATE: u64 = 1_000_000_000_000_000;

/// Largest packet: 1 GiB. With [`MAX_RATE`] it keeps the transmission time's arithmetic in 64 bits.
const MAX_MTU: u32 = 1 << 30;

/// The description of a link. The default is a perfect link: no delay, no loss, infinite rate.
#[derive(Clone, Debug)]
pub struct LinkConfig {
    /// Name, for the caller's tables and for error messages.
    pub name: String,
    /// Transmission rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Nanos,
    /// Largest additional delay of a packet; each packet draws from 0 to this. Order is
    /// kept: a packet never arrives before its predecessor.
    pub jitter: Nanos,
    /// How it draws.
    pub variation: Variation,
    /// Random loss at the entry of the link.
    pub loss: Loss,
    /// Limit of the queue, whatever the discipline.
    pub limit: Limit,
    /// The queue discipline.
    pub discipline: Discipline,
    /// Whether the discipline marks packets of ECN-capable flows ([`crate::Ecn`]) where it would
    /// drop others; RFC 3168.
    pub ecn: bool,
    /// Drops at the entry what exceeds a rate.
    pub policer: Option<Policer>,
    /// Some packets propagate longer and are overtaken.
    pub reorder: Option<Reorder>,
    /// Access to the channel and aggregation as on Wi-Fi.
    pub wifi: Option<Wifi>,
    /// Largest packet in bytes on the wire.
    pub mtu: u32,
    /// Keep the distribution of queueing delays, so that [`crate::Counters::queue_delay`] can report
    /// quantiles: some kB, and in a large network a cache miss per packet.
    pub quantiles: bool,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            name: String::new(),
            rate: Rate::default(),
            delay: 0,
            jitter: 0,
            variation: Variation::default(),
            loss: Loss::None,
            limit: Limit::default(),
            discipline: Discipline::default(),
            ecn: false,
            policer: None,
            reorder: None,
            wifi: None,
            mtu: 1500,
            quantiles: true,
        }
    }
}

impl LinkConfig {
    /// Says whether a link can be built from this.
    ///
    /// # Errors
    /// The first field that is out of its range, see [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let link = || self.name.clone();
        if let Rate::Constant(rate) = self.rate {
            if rate == 0 || rate > MAX_RATE {
                return Err(ConfigError::Rate { link: link(), rate });
            }
        }
        for (field, value) in [("delay", self.delay), ("jitter", self.jitter)] {
            if value > MAX_DELAY {
                return Err(ConfigError::Delay { link: link(), field, value });
            }
        }
        // Written so that NaN fails too.
        let wrong = self.loss.probabilities().into_iter().find(|p| !(0.0..=1.0).contains(p));
        if let Some(loss) = wrong {
            return Err(ConfigError::Loss { link: link(), loss });
        }
        if matches!(self.limit, Limit::Packets(0) | Limit::Bytes(0) | Limit::Time(0)) {
            return Err(ConfigError::ZeroLimit { link: link() });
        }
        if self.mtu == 0 || self.mtu > MAX_MTU {
            return Err(ConfigError::Mtu { link: link(), mtu: self.mtu });
        }
        match self.fault() {
            Some(fault) => Err(ConfigError::Feature { link: link(), fault }),
            None => Ok(()),
        }
    }

    /// What is wrong with the features that only some links have, or with two of them together.
    fn fault(&self) -> Option<&'static str> {
        let plain = self.discipline == Discipline::DropTail;
        let policed = |wrong: fn(Policer, u64) -> bool| {
            self.policer.is_some_and(|policer| wrong(policer, self.mtu.into()))
        };
        let reorder = |r: Reorder| !(0.0..=1.0).contains(&r.share) || r.delay > MAX_DELAY;
        if plain && self.ecn {
            Some("a droptail queue does not mark, ECN needs another discipline")
        } else if matches!(self.discipline, Discipline::DualPi2(_)) && !self.ecn {
            Some("DualPI2 marks, so the link must: ECN on")
        } else if !plain && matches!(self.rate, Rate::Infinite) {
            Some("at an infinite rate there is no queue to manage")
        } else if self.wifi.is_some() && !matches!(self.rate, Rate::Constant(_)) {
            Some("Wi-Fi needs a constant rate, that of the radio")
        } else if policed(|policer, _| policer.rate == 0 || policer.rate > MAX_RATE) {
            Some("a policer's rate must be above 0 and at most 1 Pbit/s")
        } else if policed(|policer, mtu| policer.burst < mtu) {
            Some("a policer's burst must be at least the MTU")
        } else if self.reorder.is_some_and(reorder) {
            Some("reordering needs a share in 0..=1 and a delay of at most one hour")
        } else {
            let discipline = self.discipline.fault(self.limit).or(self.variation.fault());
            discipline.or(self.wifi.and_then(|wifi| wifi.fault()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        CoDel, Distribution, DualPi2, FqCoDel, GilbertElliott, Header, LinkId, Network, Pie, Red,
        Weight,
    };

    /// What the network says about a link with one field set wrong.
    fn refusal(set: impl FnOnce(&mut LinkConfig)) -> String {
        let mut config = LinkConfig { name: "lte".into(), ..LinkConfig::default() };
        set(&mut config);
        Network::<()>::new(1).add_link(config).unwrap_err().to_string()
    }

    #[test]
    fn a_link_out_of_range_is_refused_by_name() {
        assert!(refusal(|c| c.rate = Rate::Constant(0)).starts_with("link 'lte': a rate of 0"));
        refusal(|c| c.rate = Rate::Constant(MAX_RATE + 1));
        assert!(refusal(|c| c.delay = MAX_DELAY + 1).contains("a delay of"));
        assert!(refusal(|c| c.jitter = MAX_DELAY + 1).contains("a jitter of"));
        for loss in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(refusal(|c| c.loss = Loss::Random(loss)).contains("not a probability"));
            let burst = GilbertElliott { bad_to_good: loss, ..GilbertElliott::default() };
            let burst = Loss::GilbertElliott(burst);
            assert!(refusal(|c| c.loss = burst).contains("not a probability"));
        }
        for limit in [Limit::Packets(0), Limit::Bytes(0), Limit::Time(0)] {
            assert!(refusal(|c| c.limit = limit).contains("limit of 0"));
        }
        assert!(refusal(|c| c.mtu = 0).contains("an MTU of 0"));
        refusal(|c| c.mtu = MAX_MTU + 1);
    }

    #[test]
    fn features_out_of_range_or_at_odds_are_refused() {
        let constant = |c: &mut LinkConfig| c.rate = Rate::Constant(1_000_000);
        let discipline = |discipline| {
            refusal(|c| {
                constant(c);
                c.discipline = discipline;
            })
        };
        let red = |red| discipline(Discipline::Red(red));
        let mixed = Red { min: Limit::Bytes(5), ..Red::default() };
        assert!(red(mixed).contains("both thresholds"));
        assert!(
            red(Red { min: Limit::Packets(15), ..Red::default() }).contains("below its maximum")
        );
        assert!(red(Red { min: Limit::Packets(0), ..Red::default() }).contains("above 0"));
        assert!(red(Red { max_p: 1.1, ..Red::default() }).contains("max_p"));
        assert!(red(Red { weight: Weight::Fixed(0.0), ..Red::default() }).contains("weight"));
        let codel = CoDel { target: 0, ..CoDel::default() };
        assert!(discipline(Discipline::CoDel(codel)).contains("CoDel's target"));
        let codel = CoDel { interval: Nanos::MAX, ..CoDel::default() };
        assert!(discipline(Discipline::CoDel(codel)).contains("one hour"));
        let fair = FqCoDel { flows: 0, ..FqCoDel::default() };
        assert!(discipline(Discipline::FqCoDel(fair)).contains("flows"));
        let dual = |dual| {
            refusal(|c| {
                constant(c);
                (c.discipline, c.ecn) = (Discipline::DualPi2(dual), true);
            })
        };
        for unfit in [0, 333_332] {
            let dual = dual(DualPi2 { target: unfit, ..DualPi2::default() });
            assert!(dual.contains("DualPI2's target"));
        }
        for unfit in [f64::NAN, 0.99] {
            let dual = dual(DualPi2 { coupling: unfit, ..DualPi2::default() });
            assert!(dual.contains("coupling"));
        }
        assert!(dual(DualPi2 { range: Nanos::MAX, ..DualPi2::default() }).contains("one hour"));
        assert!(discipline(Discipline::DualPi2(DualPi2::default())).contains("ECN on"));
        let pie = Pie { alpha: f64::NAN, ..Pie::default() };
        assert!(discipline(Discipline::Pie(pie)).contains("alpha"));
        let pie = Pie { update: MAX_DELAY + 1, ..Pie::default() };
        assert!(discipline(Discipline::Pie(pie)).contains("one hour"));

        let fair = Discipline::FqCoDel(FqCoDel::default());
        assert!(refusal(|c| c.discipline = fair).contains("infinite rate"));
        let timed = |c: &mut LinkConfig| {
            constant(c);
            (c.discipline, c.limit) = (fair, Limit::Time(1));
        };
        assert!(refusal(timed).contains("not in time"));
        assert!(refusal(|c| c.ecn = true).contains("does not mark"));
        assert!(refusal(|c| c.wifi = Some(Wifi::default())).contains("Wi-Fi needs"));
        let policer = Policer { rate: 1_000_000, burst: 1499 };
        assert!(refusal(|c| c.policer = Some(policer)).contains("burst must be at least the MTU"));
        for correlation in [-0.1, 1.0, f64::NAN] {
            let variation = Variation { correlation, ..Variation::default() };
            assert!(refusal(|c| c.variation = variation).contains("correlation must be in 0..1"));
        }
        for shape in [1.0, f64::NAN, f64::INFINITY] {
            let distribution = Distribution::Pareto { mean: 1, shape };
            let variation = Variation { distribution, correlation: 0.0 };
            assert!(refusal(|c| c.variation = variation).contains("shape must be above 1"));
        }
        let reorder = Reorder { share: f64::NAN, delay: 0 };
        assert!(refusal(|c| c.reorder = Some(reorder)).contains("reordering needs"));
    }

    #[test]
    fn the_ends_of_the_ranges_are_allowed_and_do_not_overflow() {
        let slow = Rate::Constant(1);
        let fast = Rate::Constant(MAX_RATE);
        for (rate, loss) in [(slow, Loss::None), (fast, Loss::Random(1.0))] {
            let mut network = Network::new(1);
            let link = network
                .add_link(LinkConfig {
                    rate,
                    loss,
                    delay: MAX_DELAY,
                    jitter: MAX_DELAY,
                    mtu: MAX_MTU,
                    ..LinkConfig::default()
                })
                .unwrap();
            let route = network.add_route(&[link]).unwrap();
            for _ in 0..10 {
                let header = Header { size: MAX_MTU, ..Header::default() };
                network.enqueue(0, route, header, ());
            }
            while network.advance(Nanos::MAX).is_some() {}
            assert!(network.is_conserved());
        }
    }

    #[test]
    fn a_route_needs_links_that_exist() {
        let mut network = Network::<()>::new(1);
        assert_eq!(network.add_route(&[]), Err(ConfigError::EmptyRoute));
        let link = network.add_link(LinkConfig::default()).unwrap();
        assert_eq!(network.add_route(&[link, LinkId(1)]), Err(ConfigError::UnknownLink(1)));
        let route = network.add_route(&[link, link]).unwrap();
        assert!(network.route(route).eq([link, link]));
    }
}
