//! Trials in which connections come one by one and one looks all the time: of arms that are the same few
//! report a difference, and a tenth less goodput is found with as many connections as was said.

use narrows_stats::sequence::{Sequence, Sums, needed};
use narrows_testkit::Random;

/// As `narrows kernel trial` has it: three values are compared.
const ALPHA: f64 = 0.05 / 3.0;

/// Box and Muller, 1958.
fn normal(random: &mut Random) -> f64 {
    let (a, b) = (random.unit(), random.unit());
    (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
}

/// How log2 of the goodput of connections is spread.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Lognormal, over a factor of two.
    Lognormal,
    /// A site's: three access networks, a tenth of the connections that stand almost still, and a tail of
    /// Pareto's kind.
    Mixed,
    /// Shares that were retransmitted, of which most are nothing.
    Lossy,
}

impl Kind {
    /// The value of a connection.
    fn draw(self, random: &mut Random) -> f64 {
        match self {
            Kind::Lognormal => 18.0 + normal(random),
            Kind::Mixed => {
                let access = [17.0, 20.0, 22.5][(random.next() % 3) as usize];
                let still = if random.unit() < 0.1 { -9.0 } else { 0.0 };
                let tail = -random.unit().log2() / 1.5;
                access + still - tail + 0.5 * normal(random)
            }
            Kind::Lossy if random.unit() < 0.02 => 0.02 * random.unit(),
            Kind::Lossy => 0.0,
        }
    }

    fn deviation(self) -> f64 {
        let mut random = Random(1);
        let mut sums = Sums::default();
        (0..20_000).for_each(|_| sums.add(self.draw(&mut random)));
        sums.variance().sqrt()
    }
}

/// Draws up to `connections` and looks after every `every` of them: after how many a difference was
/// reported, if it was.
fn trial(
    kind: Kind,
    share: f64,
    effect: f64,
    planned: f64,
    connections: usize,
    every: usize,
    seed: u64,
) -> Option<usize> {
    let mut random = Random(seed);
    let sequence = Sequence::new(ALPHA, planned);
    let mut arms = [Sums::default(); 2];
    for n in 1..=connections {
        let arm = usize::from(random.unit() < share);
        arms[arm].add(kind.draw(&mut random) + effect * arm as f64);
        if n % every == 0 && sequence.difference(&arms).is_some_and(|one| one.differs()) {
            return Some(n);
        }
    }
    None
}

fn same(kind: Kind, share: f64, trials: u64, connections: usize) -> usize {
    let found = |seed: &u64| {
        trial(kind, share, 0.0, connections as f64 / 2.0, connections, 20, 1000 + seed).is_some()
    };
    (0..trials).filter(found).count()
}

fn a_tenth_less(kind: Kind, share: f64, trials: u64) -> (usize, f64) {
    let effect = 0.9_f64.log2();
    let enough = needed(ALPHA, effect, kind.deviation(), share);
    let found =
        |seed: &u64| trial(kind, share, effect, enough, enough as usize, 50, 5000 + seed).is_some();
    ((0..trials).filter(found).count(), enough)
}

#[test]
fn of_400_trials_of_the_same_at_most_14_report_a_difference() {
    for kind in [Kind::Lognormal, Kind::Mixed, Kind::Lossy] {
        for (share, connections) in [(0.05, 20_000), (0.5, 5_000)] {
            let differ = same(kind, share, 400, connections);
            println!("{kind:?}, {share}: {differ} of 400 differ within {connections} connections");
            // 400 ALPHA is 6.7, with a deviation of 2.6.
            assert!(differ <= 14, "{kind:?}, {share}: {differ} of 400");
        }
    }
}

#[test]
fn a_tenth_less_goodput_is_found_in_90_of_100_trials_within_as_many_connections_as_was_said() {
    for kind in [Kind::Lognormal, Kind::Mixed] {
        for share in [0.05, 0.5] {
            let (found, enough) = a_tenth_less(kind, share, 100);
            println!("{kind:?}, {share}: {found} of 100 within {enough} connections");
            assert!(found >= 90, "{kind:?}, {share}: {found} of 100 within {enough}");
        }
    }
}
