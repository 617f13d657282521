//! Figure 9: a fat tree, whose traffic is drawn.

use narrows_lab::{ConnectionSummary, Edits, Error, load};
use narrows_stats::mean;

use super::networks::{Column, LONG_KB, Pair, with_lisa};
use crate::figures::Interval;
use crate::{Ask, Form, Runs};

const SCENARIO: &str = "lisa/fat-tree";

/// A metric of a connection; none if it has none.
pub type Metric = fn(&ConnectionSummary) -> Option<f64>;

/// Completion, s.
pub fn done(of: &ConnectionSummary) -> Option<f64> {
    of.acknowledged_s
}

/// Segments retransmitted.
pub fn retransmits(of: &ConnectionSummary) -> Option<f64> {
    Some(of.retransmits as f64)
}

/// Segments retransmitted in slow start.
pub fn slow_start_retransmits(of: &ConnectionSummary) -> Option<f64> {
    of.slow_start_retransmits.map(|segments| segments as f64)
}

/// The sum of windows at the end of slow start, packets.
pub fn slow_start_cwnd(of: &ConnectionSummary) -> Option<f64> {
    of.slow_start_cwnd_packets
}

/// Figures 9(a) and (b): "from 2 up to 42 packets".
pub fn queues(form: Form) -> Vec<u64> {
    form.pick((2..=42).step_by(4).collect(), vec![2, 10, 26, 42], vec![10])
}

/// "Good, medium and bad" queues for the sizes of files, packets.
fn three(form: Form) -> Vec<u64> {
    form.pick(vec![10, 25, 40], vec![10, 25, 40], vec![25])
}

/// Figures 9(c) and (d), kB.
pub fn sizes(form: Form) -> Vec<u64> {
    form.pick(vec![50, 100, 200, 300, 500, 900], vec![100, 300, 900], vec![100, 300])
}

/// Draws of the tree's traffic, in which connections over core switches count.
pub struct Tree<'a> {
    runs: &'a Runs<'a>,
    /// By draw, the names of the flows that lead from one pod to another.
    over_core: Vec<Vec<String>>,
    /// Other fields.
    settings: Vec<String>,
}

impl<'a> Tree<'a> {
    /// As many draws as other networks have seeds.
    pub fn new(runs: &'a Runs<'a>) -> Result<Tree<'a>, Error> {
        let over_core = (1..=runs.seeds(10, 3)).map(over_core).collect::<Result<_, _>>()?;
        Ok(Tree { runs, over_core, settings: Vec::new() })
    }

    /// The same draws with other fields.
    pub fn set(&self, settings: &[&str]) -> Tree<'a> {
        let settings = settings.iter().map(|&one| one.to_owned()).collect();
        Tree { runs: self.runs, over_core: self.over_core.clone(), settings }
    }

    /// A metric of slow start, a long file.
    pub fn slow_start(&self, packets: u64, column: Column, of: Metric) -> Result<Pair, Error> {
        self.pair(packets, LONG_KB, column, of)
    }

    /// A metric of a file, the mean over the three queues.
    pub fn file(&self, kilobytes: u64, column: Column, of: Metric) -> Result<Pair, Error> {
        let at = |packets| self.pair(packets, kilobytes, column, of);
        let each = three(self.runs.form()).into_iter().map(at).collect::<Result<Vec<_>, _>>()?;
        Ok(Pair::averaged(&each))
    }

    /// By draw, the mean of a metric over the connections that have it both without LISA and with.
    fn pair(
        &self,
        packets: u64,
        kilobytes: u64,
        column: Column,
        of: Metric,
    ) -> Result<Pair, Error> {
        let (law, lisa) = (column.law, with_lisa(column.law));
        let asks = (1..=self.over_core.len()).flat_map(|draw| {
            [law, &lisa].map(|control| {
                // All hosts run the control under test.
                Ask::of(SCENARIO, [control])
                    .set([
                        format!("generator.fat-tree.seed={draw}"),
                        format!("generator.fat-tree.cc={control}"),
                        format!("generator.fat-tree.core.queue={packets} packets"),
                        format!("generator.fat-tree.source.file.size={kilobytes} kB"),
                    ])
                    .set(column.era.settings().iter().copied())
                    .set(self.settings.clone())
            })
        });
        let found = self.runs.all(&asks.collect::<Vec<_>>())?;
        let mut pair = Pair { with: Vec::new(), without: Vec::new() };
        for (drawn, names) in found.chunks(2).zip(&self.over_core) {
            let (without, with) = (&drawn[0][law][0], &drawn[1][lisa.as_str()][0]);
            let both: Vec<(f64, f64)> = names
                .iter()
                .filter_map(|name| {
                    Some((of(with.connection(name))?, of(without.connection(name))?))
                })
                .collect();
            let side = |side: fn(&(f64, f64)) -> f64| {
                Interval::of(&both.iter().map(side).collect::<Vec<_>>()).map(|found| found.mean)
            };
            pair.with.push(side(|both| both.0));
            pair.without.push(side(|both| both.1));
        }
        Ok(pair)
    }
}

/// The flows of a draw that lead over a core switch.
fn over_core(draw: u64) -> Result<Vec<String>, Error> {
    let set = vec![("generator.fat-tree.seed".into(), draw.to_string())];
    let scenario = load(SCENARIO, &Edits { set, traces: Vec::new() })?;
    let crosses = |link: &usize| scenario.links[*link].config.name.contains("core");
    let flows = scenario.flows.iter().filter(|flow| flow.paths[0].links.iter().any(crosses));
    Ok(flows.map(|flow| flow.name.clone()).collect())
}

/// How the gain of time goes with that of retransmissions over the sizes: a correlation by draw.
pub fn follows(time: &[Pair], retransmits: &[Pair]) -> Option<Interval> {
    let by_draw = |pairs: &[Pair]| -> Vec<Option<Vec<f64>>> {
        let gains: Vec<_> = pairs.iter().map(Pair::differences).collect();
        let draws = gains.first().map_or(0, Vec::len);
        (0..draws).map(|draw| gains.iter().map(|gain| gain[draw]).collect()).collect()
    };
    let both = by_draw(time).into_iter().zip(by_draw(retransmits));
    let found = both.filter_map(|(time, retransmits)| correlation(&time?, &retransmits?));
    Interval::of(&found.collect::<Vec<_>>())
}

/// Pearson's; none where one of them does not change.
fn correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let still = |values: &[f64]| values.iter().all(|value| *value == values[0]);
    if still(one) || still(other) {
        return None;
    }
    let off = |values: &[f64]| {
        let middle = mean(values);
        values.iter().map(|value| value - middle).collect::<Vec<_>>()
    };
    let (one, other) = (off(one), off(other));
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    Some(product(&one, &other) / (product(&one, &one) * product(&other, &other)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_differ_and_some_flows_stay_in_their_pod() {
        let (one, two) = (over_core(1).unwrap(), over_core(2).unwrap());
        assert_ne!(one, two);
        for names in [one, two] {
            assert!((1..16).contains(&names.len()), "{names:?}");
        }
    }

    #[test]
    fn gains_that_go_with_others_correlate() {
        // Two draws, three sizes.
        let of = |gain: fn(f64) -> f64| {
            let pair =
                |size| Pair { with: vec![Some(1.0); 2], without: vec![Some(1.0 + gain(size)); 2] };
            [1.0, 2.0, 3.0].map(pair)
        };
        let time = of(|size| size);
        for (gain, expected) in
            [(of(|size| 10.0 * size), 1.0), (of(|size| 40.0 - 10.0 * size), -1.0)]
        {
            let found = follows(&time, &gain).unwrap();
            assert!((found.mean - expected).abs() < 1e-12, "{found:?}");
        }
        assert_eq!(follows(&time, &of(|_| 1.0)), None, "it does not change");
    }
}
