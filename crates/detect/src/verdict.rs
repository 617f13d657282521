//! Whether each two flows share a bottleneck, over a whole file.

use std::fmt;

use narrows_laws::Place;
use narrows_laws::detect::{Answer, Finding, Pair, Why};

use crate::Decision;

/// What a detector knows of two flows at the end of a file. An answer that was given once is in force
/// until the other one is: a flow may end before the file does.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Their numbers, the smaller first.
    pub flows: (usize, usize),
    /// The newest answer; unsure: it cannot be told.
    pub answer: Answer,
    /// Why it cannot be told.
    pub why: Option<Why>,
    /// Since when it is in force, seconds in the time of the file; none: it cannot be told.
    pub since_s: Option<f64>,
    /// For how long there was enough of both to compare, seconds; none: a detector that groups flows.
    pub compared_s: Option<f64>,
    /// What it is based on; none: it cannot be told, or follows from answers on pairs with others.
    pub evidence: Option<Evidence>,
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
                write!(f, "{percent} %: concordance {concordance:.2} of ")?;
                match observations {
                    0 => write!(
                        f,
                        "less than 1 independent observation, as the delays changed slowly: more time makes it surer"
                    ),
                    1 => write!(f, "1 observation"),
                    more => write!(f, "{more} observations"),
                }
            }
            Evidence::Decisions { agree, all } => write!(f, "{agree} of {all} decisions"),
        }
    }
}

/// The verdicts while a file is read.
#[derive(Debug)]
pub(crate) struct Verdicts {
    of: Vec<State>,
    /// Time from one decision to the next while flows send, seconds.
    interval_s: f64,
    /// Time of the newest decision, seconds.
    last_s: Option<f64>,
}

/// What is known of two flows.
#[derive(Debug)]
struct State {
    flows: (usize, usize),
    answer: Answer,
    since_s: f64,
    /// Of a detector that groups flows: why the newest decision gave none.
    why: Why,
    /// Of one that compares pairs: why it gave none since its last answer, and for how long, seconds.
    reasons: Vec<(Why, f64)>,
    /// For how long the detector compared the two, seconds; none: it groups flows.
    compared_s: Option<f64>,
    /// The pair's own answer, if that is the same.
    pair: Option<Pair>,
    /// Its newest answer, and the one in force: the newest that there was, unless it was taken back.
    said: Answer,
    own: Answer,
    /// Decisions that have both in groups: in one, and all.
    shared: u64,
    placed: u64,
}

impl Verdicts {
    pub fn new(flows: usize, interval_s: f64) -> Verdicts {
        let begin = |flows| State {
            flows,
            answer: Answer::Unsure,
            since_s: 0.0,
            why: Why::Few,
            reasons: Vec::new(),
            compared_s: None,
            pair: None,
            said: Answer::Unsure,
            own: Answer::Unsure,
            shared: 0,
            placed: 0,
        };
        Verdicts { of: pairs(flows).map(begin).collect(), interval_s, last_s: None }
    }

    /// A decision of a detector that groups flows.
    pub fn grouped(&mut self, decision: &Decision) {
        for state in &mut self.of {
            let (a, b) = state.flows;
            let (answer, why) = match (decision.on.places[a], decision.on.places[b]) {
                (Place::Group(a), Place::Group(b)) if a == b => (Answer::Shared, Why::Few),
                (Place::Group(_), Place::Group(_)) => (Answer::Separate, Why::Few),
                (Place::Clear, _) | (_, Place::Clear) => (Answer::Unsure, Why::Flat),
                _ => (Answer::Unsure, Why::Few),
            };
            state.placed += u64::from(answer != Answer::Unsure);
            state.shared += u64::from(answer == Answer::Shared);
            state.why = why;
            state.decided(decision.t_s, answer);
        }
    }

    /// What a detector that compares pairs says at a time: of so many flows, each pair in the order of
    /// [`pairs`], and what they say together. What followed from an answer that is taken back is taken
    /// back with it.
    pub fn compared(&mut self, t_s: f64, flows: usize, said: &[Pair], finding: &Finding) {
        // In a pause nothing is compared.
        let passed_s = self.last_s.replace(t_s).map_or(f64::INFINITY, |last_s| t_s - last_s);
        let passed_s = passed_s.min(self.interval_s);
        for (state, pair) in self.of.iter_mut().zip(said) {
            let enough = pair.why != Some(Why::Few);
            *state.compared_s.get_or_insert(0.0) += if enough { passed_s } else { 0.0 };
            // Taken back: not for want of delays, as after the end of a flow.
            let unsure = pair.answer == Answer::Unsure;
            let taken_back = unsure && state.said != Answer::Unsure && pair.why != Some(Why::Few);
            if !unsure || taken_back {
                state.own = pair.answer;
            }
            state.said = pair.answer;
            match pair.why {
                Some(why) if unsure => state.unanswered(why, passed_s),
                _ => state.reasons.clear(),
            }
        }
        let own = self.of.iter().map(|state| (state.flows.0, state.flows.1, state.own));
        let in_force = Finding::new(flows, own);
        for (state, pair) in self.of.iter_mut().zip(said) {
            let (a, b) = state.flows;
            let answer = finding.answer(a, b);
            let followed = state.answer;
            if answer == Answer::Unsure
                && state.own != followed
                && in_force.answer(a, b) != followed
            {
                state.answer = Answer::Unsure;
                state.pair = None;
            }
            state.decided(t_s, answer);
            if answer != Answer::Unsure {
                state.pair = (state.said == answer).then_some(*pair);
            }
        }
    }

    /// In the order of the flows.
    pub fn now(&self) -> Vec<Verdict> {
        self.of.iter().map(State::now).collect()
    }
}

impl State {
    fn decided(&mut self, t_s: f64, answer: Answer) {
        if answer != Answer::Unsure && answer != self.answer {
            self.answer = answer;
            self.since_s = t_s;
        }
    }

    /// The two were compared for so long without an answer. Too few delays are none to compare: that counts
    /// where there never were enough, as it is said after the end of a flow, too.
    fn unanswered(&mut self, why: Why, passed_s: f64) {
        if why == Why::Few {
            return;
        }
        match self.reasons.iter_mut().find(|(of, _)| *of == why) {
            Some((_, held_s)) => *held_s += passed_s,
            None => self.reasons.push((why, passed_s)),
        }
    }

    /// The reason that held for most of the time in which the two were compared.
    fn why(&self) -> Why {
        let longest = self.reasons.iter().max_by(|(_, a), (_, b)| a.total_cmp(b));
        longest.map_or(self.why, |(why, _)| *why)
    }

    fn now(&self) -> Verdict {
        let State { flows, answer, compared_s, .. } = *self;
        if answer == Answer::Unsure {
            let (why, since_s, evidence) = (Some(self.why()), None, None);
            return Verdict { flows, answer, why, since_s, compared_s, evidence };
        }
        let delays = |pair: Pair| {
            let confidence = pair.confidence()?;
            let Pair { concordance, observations, .. } = pair;
            Some(Evidence::Delays { confidence, concordance, observations })
        };
        let shared = answer == Answer::Shared;
        let agree = if shared { self.shared } else { self.placed - self.shared };
        let evidence = match compared_s {
            Some(_) => self.pair.and_then(delays),
            None => Some(Evidence::Decisions { agree, all: self.placed }),
        };
        Verdict { flows, answer, why: None, since_s: Some(self.since_s), compared_s, evidence }
    }
}

/// Each two of so many flows.
pub(crate) fn pairs(flows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..flows).flat_map(move |a| (a + 1..flows).map(move |b| (a, b)))
}

/// The end of a sentence that ends in "because".
pub fn because(why: Why) -> &'static str {
    match why {
        Why::Few => "too few of their delays were measured at the same time",
        Why::Flat => "their delays hardly change: no queue, or one of constant length",
        Why::Between => "their delays are less alike than in one queue, and more than in two",
        other => other.name(),
    }
}

/// All verdicts on so many flows in one sentence.
pub fn sentence(verdicts: &[Verdict], flows: usize) -> String {
    if verdicts.is_empty() {
        return "There is one flow: nothing to compare it with.".into();
    }
    let answers = verdicts.iter().map(|of| (of.flows.0, of.flows.1, of.answer));
    let mut groups = Finding::new(flows, answers).groups();
    groups.retain(|group| group.len() > 1);
    let together = |&(a, b): &(usize, usize)| {
        groups.iter().any(|group| group.contains(&a) && group.contains(&b))
    };
    let unsure: Vec<Why> = verdicts
        .iter()
        .filter(|verdict| !together(&verdict.flows))
        .filter_map(|verdict| verdict.why)
        .collect();
    let most = |why: &&Why| unsure.iter().filter(|other| other == why).count();
    let because = unsure.iter().max_by_key(most).map_or("", |why| because(*why));
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

#[cfg(test)]
mod tests {
    use narrows_laws::detect::FlowsDecision;

    use super::*;

    /// The sentence on these answers; of an unsure one why it is.
    fn said(flows: usize, answers: &[(Answer, Option<Why>)]) -> String {
        let verdict = |(flows, &(answer, why))| Verdict {
            flows,
            answer,
            why,
            since_s: None,
            compared_s: None,
            evidence: None,
        };
        let verdicts: Vec<Verdict> = pairs(flows).zip(answers).map(verdict).collect();
        sentence(&verdicts, flows)
    }

    const UNDECIDED: [Place; 2] = [Place::Undecided; 2];
    const TOGETHER: [Place; 2] = [Place::Group(0); 2];
    const APART: [Place; 2] = [Place::Group(0), Place::Group(1)];

    /// The verdict on two flows after decisions, each a second after the one before.
    fn after(decisions: &[[Place; 2]]) -> Verdict {
        let mut verdicts = Verdicts::new(2, 1.0);
        for (second, places) in decisions.iter().enumerate() {
            let on = FlowsDecision::new(0, places.to_vec(), vec![1.0; 2]);
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
            assert_eq!((of.answer, of.since_s, of.evidence), (Answer::Unsure, None, None));
            of.why
        };
        assert_eq!(why(&[]), Some(Why::Few));
        assert_eq!(why(&[UNDECIDED]), Some(Why::Few));
        let clear = [Place::Clear, Place::Group(0)];
        assert_eq!(why(&[UNDECIDED, clear]), Some(Why::Flat));
    }

    #[test]
    fn pairs_have_their_own_evidence() {
        let pair = |answer, why, concordance| {
            let mut pair = Pair::new(answer);
            (pair.why, pair.concordance, pair.observations) = (why, concordance, 9);
            pair
        };
        let shared = pair(Answer::Shared, None, 0.9);
        let separate = pair(Answer::Separate, None, 0.4);
        let unsure = |why| pair(Answer::Unsure, Some(why), 0.0);
        // Of three flows, what is said of 1 2, 1 3 and 2 3 at one time and at the next.
        let after = |times: &[[Pair; 3]]| {
            // Decisions come after half a second, and here each after a pause of another half.
            let mut verdicts = Verdicts::new(3, 0.5);
            for (second, said) in times.iter().enumerate() {
                let answers = pairs(3).zip(said).map(|((a, b), pair)| (a, b, pair.answer));
                verdicts.compared(second as f64, 3, said, &Finding::new(3, answers));
            }
            // An interval for each decision for which there was enough of both.
            for (at, verdict) in verdicts.now().iter().enumerate() {
                let enough = |said: &&[Pair; 3]| said[at].why != Some(Why::Few);
                let compared = times.iter().filter(enough).count();
                assert_eq!(verdict.compared_s, Some(0.5 * compared as f64));
            }
            let of = |v: Verdict| ((v.answer, v.why), v.since_s, v.evidence);
            verdicts.now().into_iter().map(of).collect::<Vec<_>>()
        };
        let delays = |concordance| {
            let confidence = if concordance > 0.5 { 0.99 } else { 0.95 };
            Some(Evidence::Delays { confidence, concordance, observations: 9 })
        };
        let few = unsure(Why::Few);
        // The newest answer was given on this evidence, whatever came later.
        let said = after(&[[few, few, few], [shared, separate, few], [few, few, few]]);
        assert_eq!(said[0], ((Answer::Shared, None), Some(1.0), delays(0.9)));
        assert_eq!(said[1], ((Answer::Separate, None), Some(1.0), delays(0.4)));
        assert_eq!(said[2], ((Answer::Separate, None), Some(1.0), None), "2 is where 1 is");
        // One that is taken back is none.
        let between = unsure(Why::Between);
        let said = after(&[[shared, separate, few], [between, separate, few]]);
        assert_eq!(said[0], ((Answer::Unsure, Some(Why::Between)), None, None));
        // Nor is one that follows from it: 1 and 3 share by way of 2.
        let said = after(&[[shared, few, shared], [shared, few, between]]);
        assert_eq!(said[1], ((Answer::Unsure, Some(Why::Few)), None, None));
        assert_eq!(said[0].0, (Answer::Shared, None));
        // It stays where 2 has only ended, and where 1 and 3 were alike themselves.
        let said = after(&[[shared, few, shared], [shared, few, few], [few, few, few]]);
        assert_eq!(said[1], ((Answer::Shared, None), Some(0.0), None));
        let said = after(&[[shared, shared, shared], [shared, few, between]]);
        assert_eq!(said[1].0, (Answer::Shared, None));
        for why in [Why::Few, Why::Flat, Why::Between] {
            let reason = ((Answer::Unsure, Some(why)), None, None);
            assert_eq!(after(&[[unsure(why); 3]])[0], reason);
        }
        // The reason is that of most of the time that was compared, not what is said after a flow has ended.
        let flat = unsure(Why::Flat);
        let said = after(&[[flat; 3], [flat; 3], [between; 3], [few; 3], [few; 3], [few; 3]]);
        assert_eq!(said[0], ((Answer::Unsure, Some(Why::Flat)), None, None));
        // What was so before an answer is no reason that this was taken back.
        let said = after(&[[flat; 3], [flat; 3], [shared; 3], [between; 3], [few; 3]]);
        assert_eq!(said[0], ((Answer::Unsure, Some(Why::Between)), None, None));
    }

    #[test]
    fn evidence_of_no_whole_observation_says_why_and_what_it_lacks() {
        let said = |observations| {
            Evidence::Delays { confidence: 0.95, concordance: 0.0, observations }.to_string()
        };
        let begin = "95 %: concordance 0.00 of ";
        assert_eq!(said(2), format!("{begin}2 observations"));
        assert_eq!(said(1), format!("{begin}1 observation"));
        let why = "as the delays changed slowly: more time makes it surer";
        assert_eq!(said(0), format!("{begin}less than 1 independent observation, {why}"));
    }

    #[test]
    fn one_plain_sentence() {
        let shared = (Answer::Shared, None);
        let separate = (Answer::Separate, None);
        let flat = (Answer::Unsure, Some(Why::Flat));
        let few = (Answer::Unsure, Some(Why::Few));
        assert_eq!(said(1, &[]), "There is one flow: nothing to compare it with.");
        assert_eq!(said(2, &[shared]), "The 2 flows share a bottleneck.");
        assert_eq!(said(2, &[separate]), "The 2 flows have separate bottlenecks.");
        assert_eq!(
            said(2, &[flat]),
            "Cannot tell whether the 2 flows share a bottleneck, because their delays hardly \
             change: no queue, or one of constant length."
        );
        // Pairs 1 2, 1 3, 1 4, 2 3, 2 4, 3 4.
        let four = |answers: [_; 6]| said(4, &answers);
        assert_eq!(
            four([separate, shared, separate, separate, separate, separate]),
            "2 of 4 flows share a bottleneck: #1 and #3."
        );
        assert_eq!(
            four([shared, separate, separate, separate, separate, shared]),
            "Flows #1 and #2 share a bottleneck; flows #3 and #4 share another."
        );
        // By way of another flow.
        assert_eq!(
            four([shared, flat, separate, shared, separate, separate]),
            "3 of 4 flows share a bottleneck: #1, #2 and #3."
        );
        assert_eq!(
            four([separate, separate, few, separate, flat, flat]),
            "No flows are known to share a bottleneck; for 3 of the 6 pairs it cannot be told, \
             mostly because their delays hardly change: no queue, or one of constant length."
        );
    }
}
