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
    /// Lognormal, over a factor of two within two sizes.
    Lognormal,
    /// A site's: three access networks, a tenth of the connections that stand almost still, and a tail of
    /// Pareto's kind.
    Mixed,
}

impl Kind {
    /// The stratum and the value of a connection.
    fn draw(self, random: &mut Random) -> (usize, f64) {
        match self {
            Kind::Lognormal => {
                let size = (random.next() & 1) as usize;
                (size, 18.0 + 3.0 * size as f64 + normal(random))
            }
            Kind::Mixed => {
                let size = (random.next() % 4) as usize;
                let access = [17.0, 20.0, 22.5][(random.next() % 3) as usize];
                let still = if random.unit() < 0.1 { -9.0 } else { 0.0 };
                let tail = -random.unit().log2() / 1.5;
                (size, access + size as f64 + still - tail + 0.5 * normal(random))
            }
        }
    }

    /// The standard deviation within a stratum.
    fn deviation(self) -> f64 {
        let mut random = Random(1);
        let mut sums = [Sums::default(); 4];
        for _ in 0..20_000 {
            let (stratum, value) = self.draw(&mut random);
            sums[stratum].add(value);
        }
        let n: f64 = sums.iter().map(|one| one.n).sum();
        (sums.iter().map(|one| one.variance() * one.n).sum::<f64>() / n).sqrt()
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
    let mut strata = [[Sums::default(); 2]; 4];
    for n in 1..=connections {
        let arm = usize::from(random.unit() < share);
        let (stratum, value) = kind.draw(&mut random);
        strata[stratum][arm].add(value + effect * arm as f64);
        if n % every == 0 && sequence.difference(&strata).is_some_and(|one| one.differs()) {
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
fn of_400_trials_of_the_same_at_most_29_report_a_difference() {
    for kind in [Kind::Lognormal, Kind::Mixed] {
        for (share, connections) in [(0.05, 20_000), (0.5, 5_000)] {
            let differ = same(kind, share, 400, connections);
            println!("{kind:?}, {share}: {differ} of 400 differ within {connections} connections");
            assert!(differ <= 29, "{kind:?}, {share}: {differ} of 400");
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
