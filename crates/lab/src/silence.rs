//! How long an application waits for data that its connection could have delivered: the time in which
//! it gets nothing though the sender has more and a path is there.

use narrows_net::{Nanos, Rate, SECOND, Trace};
use narrows_traffic::Source;

use crate::measured::FlowState;
use crate::scenario::{EventKind, Flow, Link, Scenario};

/// A link that replays a trace is there if it offers a packet in so much time. A radio link's shorter
/// gaps are part of its rate, and a connection has to live with them.
const TRACE_GAP: Nanos = SECOND;

/// The longest silence of a flow so far, seen in samples.
#[derive(Clone, Debug, Default)]
pub struct Silence {
    /// Bytes handed to the application at the last sample.
    delivered: u64,
    /// When the silence that lasts began.
    since: Option<Nanos>,
    longest: Nanos,
}

impl Silence {
    /// The flow of this index, from the last sample at `from` until now, `to`. Counts only what is
    /// `analysed`.
    pub fn sample(
        &mut self,
        scenario: &Scenario,
        flow: usize,
        [from, to]: [Nanos; 2],
        now: &FlowState,
        analysed: bool,
    ) {
        let got = now.delivered > std::mem::replace(&mut self.delivered, now.delivered);
        let of = &scenario.flows[flow];
        let could = || {
            let path = |path| is_there(scenario, flow, path, from, to);
            wants(of, now, from, to) && (0..of.paths.len()).any(path)
        };
        if got || !analysed || !could() {
            self.since = None;
        } else {
            self.longest = self.longest.max(to - *self.since.get_or_insert(from));
        }
    }

    /// The longest; none of a flow that does not always have more to send.
    pub fn longest(&self, of: &Flow) -> Option<Nanos> {
        matches!(of.source, Source::Greedy | Source::File { .. }).then_some(self.longest)
    }
}

/// Does the application have more to send in all that time?
fn wants(flow: &Flow, now: &FlowState, from: Nanos, to: Nanos) -> bool {
    let sends = |&(start, stop): &(Nanos, Nanos)| start <= from && to <= stop;
    match flow.source {
        Source::Greedy => flow.active.iter().any(sends),
        Source::File { .. } => {
            now.completed.is_none() && flow.active.first().is_some_and(|period| period.0 <= from)
        }
        _ => false,
    }
}

/// Can a path carry data there and acknowledgements back in all that time?
fn is_there(scenario: &Scenario, flow: usize, path: usize, from: Nanos, to: Nanos) -> bool {
    let crossed = &scenario.flows[flow].paths[path];
    let mut lost = false;
    let mut down: Vec<usize> = Vec::new();
    let crosses = |link: &usize| crossed.links.contains(link) || crossed.back.contains(link);
    for event in scenario.events.iter().take_while(|event| event.at < to) {
        match event.what {
            EventKind::LinkHold(link, time) if crosses(&link) => {
                if event.at + time > from {
                    return false;
                }
                continue;
            }
            EventKind::LinkUp(link, up) if crosses(&link) => {
                down.retain(|&other| other != link);
                if !up {
                    down.push(link);
                }
            }
            EventKind::PathLost(of, which) if (of, which) == (flow, path) => lost = true,
            EventKind::PathAdded(of, which) if (of, which) == (flow, path) => lost = false,
            _ => continue,
        }
        // What came back within the time was away in a part of it.
        if event.at >= from {
            return false;
        }
    }
    let links = crossed.links.iter().chain(&crossed.back);
    !lost
        && down.is_empty()
        && links.map(|&link| &scenario.links[link]).all(|link| offers(link, to))
}

/// Has a link offered to carry anything lately?
fn offers(link: &Link, to: Nanos) -> bool {
    match &link.config.rate {
        Rate::Trace(trace) => offered(trace, to) > offered(trace, to.saturating_sub(TRACE_GAP)),
        _ => true,
    }
}

/// Opportunities of a trace from its start to `time`, of all its repetitions.
fn offered(trace: &Trace, time: Nanos) -> u64 {
    let offset = time % trace.period() / narrows_net::MILLISECOND;
    let within = trace.times().partition_point(|&ms| u64::from(ms) <= offset);
    time / trace.period() * trace.opportunities() as u64 + within as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Edits, parse};
    use narrows_net::MILLISECOND;

    const TENTH: Nanos = 100 * MILLISECOND;

    /// A connection over two links; `more` is what the test is about.
    fn two(more: &str) -> Scenario {
        let text = format!(
            "name = \"two\"\ntitle = \"\"\nsource = \"\"\nwarmup = \"1 s\"\nduration = \"9 s\"\n\
             links.a = {{ rate = \"10 Mbit/s\" }}\nlinks.b = {{ rate = \"10 Mbit/s\" }}\n\
             routes.a = {{ links = [\"a\"], rtt = \"20 ms\" }}\n\
             routes.b = {{ links = [\"b\"], rtt = \"40 ms\" }}\n\
             flows.c = {{ kind = \"mptcp\", routes = [\"a\", \"b\"], cc = \"lia\" }}\n{more}"
        );
        parse(&text, &Edits::default()).unwrap()
    }

    /// The longest silence if nothing arrives from `quiet.0` to `quiet.1`, ms.
    fn longest(scenario: &Scenario, quiet: [u64; 2]) -> u64 {
        let mut silence = Silence::default();
        let mut state = FlowState::default();
        for sample in 0..100 {
            let [from, to] = [sample * TENTH, (sample + 1) * TENTH];
            if !(quiet[0] * MILLISECOND..quiet[1] * MILLISECOND).contains(&from) {
                state.delivered += 1000;
            }
            silence.sample(scenario, 0, [from, to], &state, from >= scenario.warmup);
        }
        silence.longest(&scenario.flows[0]).unwrap() / MILLISECOND
    }

    #[test]
    fn silence_counts_while_there_is_data_and_a_path() {
        assert_eq!(longest(&two(""), [3000, 5000]), 2000);
        assert_eq!(longest(&two(""), [0, 0]), 0);
        // In the warm-up nothing counts.
        assert_eq!(longest(&two(""), [0, 1500]), 500);
        let event = |at: u64, what: &str| format!("[[events]]\nat = \"{at} ms\"\n{what}\n");
        let down = |link: &str| event(3000, &format!("link = \"{link}\"\nup = false"));
        // The other path is there.
        assert_eq!(longest(&two(&down("a")), [3000, 5000]), 2000);
        assert_eq!(longest(&two(&(down("a") + &down("b"))), [3000, 5000]), 0);
        // None until one is back.
        let back = down("a") + &down("b") + &event(4250, "link = \"b\"\nup = true");
        assert_eq!(longest(&two(&back), [3000, 5000]), 700);
        let lost = down("a") + &event(3000, "flow = \"c\"\nlose = \"b\"");
        assert_eq!(longest(&two(&lost), [3000, 5000]), 0);
        // An application that is switched off.
        let pause =
            event(3500, "flow = \"c\"\non = false") + &event(4000, "flow = \"c\"\non = true");
        assert_eq!(longest(&two(&pause), [3000, 5000]), 1000);
    }

    #[test]
    fn a_trace_is_away_while_it_offers_nothing_for_a_second() {
        // At 0.1, 0.2 and 5 s, again and again.
        let trace = Trace::parse(b"100\n200\n5000\n", "gaps").unwrap();
        let link = |trace: &Trace| {
            let mut link = two("").links.remove(0);
            link.config.rate = Rate::Trace(trace.clone().into());
            link
        };
        let at = |ms: u64| offers(&link(&trace), ms * MILLISECOND);
        assert!(at(100) && at(1199) && !at(1200) && !at(4999) && at(5000));
        assert!(at(5100) && at(6199) && !at(6200));
    }

    #[test]
    fn a_source_with_gaps_of_its_own_has_no_silence() {
        let mut scenario = two("");
        scenario.flows[0].source =
            Source::Messages { bytes: 1000, interval: SECOND, poisson: false };
        assert_eq!(Silence::default().longest(&scenario.flows[0]), None);
    }
}
