//! Whether each two flows share a bottleneck, over a whole file.

use std::fmt;

use narrows_laws::Place;
use narrows_laws::detect::{self, Pair};

use crate::Decision;
use crate::pairs::Pairs;

/// What a detector knows of two flows at the end of a file. An answer that was given once is in force
/// until the other one is: a flow may end before the file does.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Their numbers, the smaller first.
    pub flows: (usize, usize),
    /// The newest answer.
    pub answer: Answer,
    /// Since when it is in force, seconds in the time of the file; none: it cannot be told.
    pub since_s: Option<f64>,
    /// What it is based on; none: it cannot be told, or follows from answers on pairs with others.
    pub evidence: Option<Evidence>,
}

/// Do two flows share a bottleneck?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// They do.
    Shared,
    /// They do not.
    Separate,
    /// Nobody can tell, and why.
    CannotTell(Why),
}

impl Answer {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Shared => "shared",
            Answer::Separate => "separate",
            Answer::CannotTell(_) => "cannot tell",
        }
    }
}

/// Why it cannot be told whether two flows share a bottleneck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Too few delays of both at the same time, without those that their own sending explains.
    Few,
    /// Their delays hardly change.
    Flat,
    /// Their delays are less alike than in one queue, and more than in two.
    Between,
}

impl Why {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Why::Few => "too few delays",
            Why::Flat => "no queue",
            Why::Between => "in between",
        }
    }

    /// What an answer would have needed, of a detector that takes so many seconds to its first.
    pub(crate) fn needs(self, warm_up_s: f64) -> String {
        match self {
            Why::Few => format!("about {warm_up_s:.0} s in which both flows send"),
            Why::Flat => "a queue that grows and shrinks: more load on the bottleneck".into(),
            Why::Between => "more time".into(),
        }
    }

    /// The end of a sentence that ends in "because".
    pub fn because(self) -> &'static str {
        match self {
            Why::Few => "too few of their delays were measured at the same time",
            Why::Flat => "their delays hardly change: no queue, or one of constant length",
            Why::Between => "their delays are less alike than in one queue, and more than in two",
        }
    }
}

/// What an answer is based on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Evidence {
    /// A detector that compares pairs: how alike their delays were when it last gave the answer, from 0
    /// to 1, over how many independent observations.
    Delays {
        /// How likely the answer is right ([`Pair::confidence`]).
        confidence: f64,
        /// Concordance of their delays.
        concordance: f64,
        /// Independent observations.
        observations: u32,
    },
    /// A detector that groups flows: of the decisions that have both in groups, those that agree.
    Decisions {
        /// Those that agree.
        agree: u64,
        /// All of them.
        all: u64,
    },
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Evidence::Delays { confidence, concordance, observations } => {
                let percent = 100.0 * confidence;
                let s = if *observations == 1 { "" } else { "s" };
                write!(
                    f,
                    "{percent} %: concordance {concordance:.2} of {observations} observation{s}"
                )
            }
            Evidence::Decisions { agree, all } => write!(f, "{agree} of {all} decisions"),
        }
    }
}

/// The verdicts while a file is read.
#[derive(Debug)]
pub(crate) struct Verdicts(Vec<State>);

/// What is known of two flows.
#[derive(Debug)]
struct State {
    flows: (usize, usize),
    /// Shared or not, and since when.
    answer: Option<(bool, f64)>,
    why: Why,
    /// The detector compares pairs; the pair's own answer, if that is the same.
    compared: bool,
    pair: Option<Pair>,
    /// Its newest answer, and the one in force: the newest that there was, unless it was taken back.
    said: Option<bool>,
    own: Option<bool>,
    /// Decisions that have both in groups: in one, and all.
    shared: u64,
    placed: u64,
}

impl Verdicts {
    pub fn new(flows: usize) -> Verdicts {
        let pairs = (0..flows).flat_map(|a| (a + 1..flows).map(move |b| (a, b)));
        let begin = |flows| State {
            flows,
            answer: None,
            why: Why::Few,
            compared: false,
            pair: None,
            said: None,
            own: None,
            shared: 0,
            placed: 0,
        };
        Verdicts(pairs.map(begin).collect())
    }

    /// A decision of a detector that groups flows.
    pub fn grouped(&mut self, decision: &Decision) {
        for state in &mut self.0 {
            let (a, b) = state.flows;
            let (shared, why) = match (decision.on.places[a], decision.on.places[b]) {
                (Place::Group(a), Place::Group(b)) => (Some(a == b), Why::Few),
                (Place::Clear, _) | (_, Place::Clear) => (None, Why::Flat),
                _ => (None, Why::Few),
            };
            state.placed += u64::from(shared.is_some());
            state.shared += u64::from(shared == Some(true));
            state.decided(decision.t_s, shared, why);
        }
    }

    /// What a detector that compares pairs says at a time. What followed from an answer that is taken
    /// back is taken back with it.
    pub fn compared(&mut self, t_s: f64, pairs: &Pairs) {
        for state in &mut self.0 {
            let pair = pairs.pair(state.flows.0, state.flows.1);
            let said = match pair.answer {
                detect::Answer::Unsure => None,
                detect::Answer::Shared => Some(true),
                detect::Answer::Separate => Some(false),
            };
            // Taken back: not for want of delays, as after the end of a flow.
            let taken_back = state.said.is_some() && said.is_none() && pair.why != detect::Why::Few;
            state.own = said.or(state.own.filter(|_| !taken_back));
            state.said = said;
        }
        let in_force = pairs.saying(self.0.iter().map(|state| state.own));
        for state in &mut self.0 {
            let (a, b) = state.flows;
            let pair = pairs.pair(a, b);
            let shared = pairs.shared(a, b);
            let followed = state.answer.map(|(answer, _)| answer);
            if shared.is_none() && state.own != followed && in_force.shared(a, b) != followed {
                state.answer = None;
                state.pair = None;
            }
            let why = match pair.why {
                detect::Why::Flat => Why::Flat,
                detect::Why::Between => Why::Between,
                detect::Why::Few | detect::Why::Sure => Why::Few,
            };
            state.decided(t_s, shared, why);
            state.compared = true;
            if shared.is_some() {
                state.pair = (state.said == shared).then_some(pair);
            }
        }
    }

    /// In the order of the flows.
    pub fn now(&self) -> Vec<Verdict> {
        self.0.iter().map(State::now).collect()
    }
}

impl State {
    fn decided(&mut self, t_s: f64, shared: Option<bool>, why: Why) {
        self.why = why;
        if let Some(shared) = shared {
            let same = self.answer.filter(|(before, _)| *before == shared);
            self.answer = same.or(Some((shared, t_s)));
        }
    }

    fn now(&self) -> Verdict {
        let flows = self.flows;
        let Some((shared, since)) = self.answer else {
            let answer = Answer::CannotTell(self.why);
            return Verdict { flows, answer, since_s: None, evidence: None };
        };
        let delays = |pair: Pair| {
            let confidence = pair.confidence()?;
            let Pair { concordance, observations, .. } = pair;
            Some(Evidence::Delays { confidence, concordance, observations })
        };
        let agree = if shared { self.shared } else { self.placed - self.shared };
        let evidence = match self.compared {
            true => self.pair.and_then(delays),
            false => Some(Evidence::Decisions { agree, all: self.placed }),
        };
        let answer = if shared { Answer::Shared } else { Answer::Separate };
        Verdict { flows, answer, since_s: Some(since), evidence }
    }
}

/// All verdicts on so many flows in one sentence.
pub fn sentence(verdicts: &[Verdict], flows: usize) -> String {
    if verdicts.is_empty() {
        return "There is one flow: nothing to compare it with.".into();
    }
    let groups = groups(verdicts, flows);
    let together = |&(a, b): &(usize, usize)| {
        groups.iter().any(|group| group.contains(&a) && group.contains(&b))
    };
    let unsure: Vec<Why> = verdicts
        .iter()
        .filter(|verdict| !together(&verdict.flows))
        .filter_map(|verdict| match verdict.answer {
            Answer::CannotTell(why) => Some(why),
            _ => None,
        })
        .collect();
    let most = |why: &&Why| unsure.iter().filter(|other| other == why).count();
    let because = unsure.iter().max_by_key(most).map_or("", |why| why.because());
    if unsure.len() == verdicts.len() {
        let which =
            if flows == 2 { "the 2 flows".into() } else { format!("any of the {flows} flows") };
        return format!("Cannot tell whether {which} share a bottleneck, because {because}.");
    }
    let known = match &groups[..] {
        [] if unsure.is_empty() => format!("The {flows} flows have separate bottlenecks"),
        [] => "No flows are known to share a bottleneck".into(),
        [all] if all.len() == flows => format!("The {flows} flows share a bottleneck"),
        [one] => format!("{} of {flows} flows share a bottleneck: {}", one.len(), list(one)),
        [first, others @ ..] => {
            let others =
                others.iter().map(|group| format!("; flows {} share another", list(group)));
            format!("Flows {} share a bottleneck{}", list(first), others.collect::<String>())
        }
    };
    match unsure.len() {
        0 => format!("{known}."),
        count => format!(
            "{known}; for {count} of the {} pairs it cannot be told, {}because {because}.",
            verdicts.len(),
            if unsure.iter().all(|why| *why == unsure[0]) { "" } else { "mostly " }
        ),
    }
}

/// `#1`: flows are numbered for people, and their names may be numbers, too.
pub fn numbered(flow: usize) -> String {
    format!("#{}", flow + 1)
}

/// `#1, #2 and #4`.
fn list(flows: &[usize]) -> String {
    let numbers: Vec<String> = flows.iter().map(|flow| numbered(*flow)).collect();
    match &numbers[..] {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => numbers.concat(),
    }
}

/// Two flows and more that share a bottleneck, each with another of them.
fn groups(verdicts: &[Verdict], flows: usize) -> Vec<Vec<usize>> {
    let mut group: Vec<usize> = (0..flows).collect();
    for verdict in verdicts.iter().filter(|verdict| verdict.answer == Answer::Shared) {
        let (a, b) = (group[verdict.flows.0], group[verdict.flows.1]);
        group.iter_mut().filter(|of| **of == b).for_each(|of| *of = a);
    }
    let members = |of: usize| (0..flows).filter(|&flow| group[flow] == of).collect::<Vec<_>>();
    let mut groups: Vec<Vec<usize>> = (0..flows).map(members).collect();
    groups.retain(|group| group.len() > 1);
    groups.sort();
    groups
}

#[cfg(test)]
mod tests {
    use narrows_laws::detect::FlowsDecision;

    use super::*;

    fn said(flows: usize, answers: &[Answer]) -> String {
        let pairs = (0..flows).flat_map(|a| (a + 1..flows).map(move |b| (a, b)));
        let verdict = |(flows, &answer)| Verdict { flows, answer, since_s: None, evidence: None };
        let verdicts: Vec<Verdict> = pairs.zip(answers).map(verdict).collect();
        sentence(&verdicts, flows)
    }

    const UNDECIDED: [Place; 2] = [Place::Undecided; 2];
    const TOGETHER: [Place; 2] = [Place::Group(0); 2];
    const APART: [Place; 2] = [Place::Group(0), Place::Group(1)];

    /// The verdict on two flows after decisions, each a second after the one before.
    fn after(decisions: &[[Place; 2]]) -> Verdict {
        let mut verdicts = Verdicts::new(2);
        for (second, places) in decisions.iter().enumerate() {
            let on = FlowsDecision { at_us: 0, places: places.to_vec(), confidence: vec![1.0; 2] };
            verdicts.grouped(&Decision { t_s: second as f64, on });
        }
        verdicts.now().remove(0)
    }

    #[test]
    fn an_answer_stays_in_force_until_the_other() {
        let of = after(&[UNDECIDED, TOGETHER, UNDECIDED, TOGETHER, UNDECIDED]);
        assert_eq!((of.answer, of.since_s), (Answer::Shared, Some(1.0)));
        assert_eq!(of.evidence, Some(Evidence::Decisions { agree: 2, all: 2 }));
        let of = after(&[TOGETHER, APART, UNDECIDED, APART, TOGETHER, APART, APART]);
        assert_eq!((of.answer, of.since_s), (Answer::Separate, Some(5.0)));
        assert_eq!(of.evidence, Some(Evidence::Decisions { agree: 4, all: 6 }));
        // Without any.
        let why = |decisions| {
            let of = after(decisions);
            assert_eq!((of.since_s, of.evidence), (None, None));
            of.answer
        };
        assert_eq!(why(&[]), Answer::CannotTell(Why::Few));
        assert_eq!(why(&[UNDECIDED]), Answer::CannotTell(Why::Few));
        let clear = [Place::Clear, Place::Group(0)];
        assert_eq!(why(&[UNDECIDED, clear]), Answer::CannotTell(Why::Flat));
    }

    #[test]
    fn pairs_have_their_own_evidence() {
        let pair =
            |answer, why, concordance| Pair { answer, why, at_us: 0, concordance, observations: 9 };
        let shared = pair(detect::Answer::Shared, detect::Why::Sure, 0.9);
        let separate = pair(detect::Answer::Separate, detect::Why::Sure, 0.4);
        let unsure = |why| pair(detect::Answer::Unsure, why, 0.0);
        // Of three flows, what is said of 1 2, 1 3 and 2 3 at one time and at the next.
        let after = |times: &[[Pair; 3]]| {
            let mut verdicts = Verdicts::new(3);
            for (second, said) in times.iter().enumerate() {
                let pairs = Pairs::new(3, |a, b| Some(said[a + b - 1])).unwrap();
                verdicts.compared(second as f64, &pairs);
            }
            let of = |verdict: Verdict| (verdict.answer, verdict.since_s, verdict.evidence);
            verdicts.now().into_iter().map(of).collect::<Vec<_>>()
        };
        let delays = |concordance| {
            let confidence = if concordance > 0.5 { 0.99 } else { 0.95 };
            Some(Evidence::Delays { confidence, concordance, observations: 9 })
        };
        let few = unsure(detect::Why::Few);
        // The newest answer was given on this evidence, whatever came later.
        let said = after(&[[few, few, few], [shared, separate, few], [few, few, few]]);
        assert_eq!(said[0], (Answer::Shared, Some(1.0), delays(0.9)));
        assert_eq!(said[1], (Answer::Separate, Some(1.0), delays(0.4)));
        assert_eq!(said[2], (Answer::Separate, Some(1.0), None), "2 is where 1 is");
        // One that is taken back is none.
        let between = unsure(detect::Why::Between);
        let said = after(&[[shared, separate, few], [between, separate, few]]);
        assert_eq!(said[0], (Answer::CannotTell(Why::Between), None, None));
        // Nor is one that follows from it: 1 and 3 share by way of 2.
        let said = after(&[[shared, few, shared], [shared, few, between]]);
        assert_eq!(said[1], (Answer::CannotTell(Why::Few), None, None));
        assert_eq!(said[0].0, Answer::Shared);
        // It stays where 2 has only ended, and where 1 and 3 were alike themselves.
        let said = after(&[[shared, few, shared], [shared, few, few], [few, few, few]]);
        assert_eq!(said[1], (Answer::Shared, Some(0.0), None));
        let said = after(&[[shared, shared, shared], [shared, few, between]]);
        assert_eq!(said[1].0, Answer::Shared);
        for (why, reason) in [
            (detect::Why::Few, Why::Few),
            (detect::Why::Flat, Why::Flat),
            (detect::Why::Between, Why::Between),
        ] {
            assert_eq!(after(&[[unsure(why); 3]])[0], (Answer::CannotTell(reason), None, None));
        }
    }

    #[test]
    fn one_plain_sentence() {
        use Answer::{CannotTell, Separate, Shared};
        let flat = CannotTell(Why::Flat);
        assert_eq!(said(1, &[]), "There is one flow: nothing to compare it with.");
        assert_eq!(said(2, &[Shared]), "The 2 flows share a bottleneck.");
        assert_eq!(said(2, &[Separate]), "The 2 flows have separate bottlenecks.");
        assert_eq!(
            said(2, &[flat]),
            "Cannot tell whether the 2 flows share a bottleneck, because their delays hardly \
             change: no queue, or one of constant length."
        );
        // Pairs 1 2, 1 3, 1 4, 2 3, 2 4, 3 4.
        let four = |answers: [Answer; 6]| said(4, &answers);
        assert_eq!(
            four([Separate, Shared, Separate, Separate, Separate, Separate]),
            "2 of 4 flows share a bottleneck: #1 and #3."
        );
        assert_eq!(
            four([Shared, Separate, Separate, Separate, Separate, Shared]),
            "Flows #1 and #2 share a bottleneck; flows #3 and #4 share another."
        );
        // By way of another flow.
        assert_eq!(
            four([Shared, flat, Separate, Shared, Separate, Separate]),
            "3 of 4 flows share a bottleneck: #1, #2 and #3."
        );
        assert_eq!(
            four([Separate, Separate, CannotTell(Why::Few), Separate, flat, flat]),
            "No flows are known to share a bottleneck; for 3 of the 6 pairs it cannot be told, \
             mostly because their delays hardly change: no queue, or one of constant length."
        );
    }
}
