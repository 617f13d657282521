//! Flows that are others: a router, or their host, has translated their addresses (NAT).

use crate::copies::ends;
use crate::packet::{End, ends_name};
use crate::sizes::Flows;
use crate::tally::Entry;

/// Both ends of a flow.
type Ends = (End, End);

/// A flow that is another; the largest is the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Translated {
    bytes: u64,
    /// Who sends its data, and who gets it: with these addresses, and before.
    now: Ends,
    before: Ends,
}

/// A flow as it was counted.
pub trait Counted {
    /// Bytes of its data.
    fn bytes(&self) -> u64;
    /// Of its ends, the smaller first: who sends its data, and who gets it.
    fn ends(&self, ends: Ends) -> Ends;
    /// What [`ends`] gives for those that most of its data had before.
    fn before(&self) -> Option<u64>;
}

impl Counted for Entry {
    fn bytes(&self) -> u64 {
        self.bytes()
    }

    fn ends(&self, ends: Ends) -> Ends {
        self.ends(ends)
    }

    fn before(&self) -> Option<u64> {
        self.ways[self.data()].is_translated()
    }
}

/// Those of some flows, by their ends.
pub fn translated<'a, F: Counted + 'a>(
    flows: impl Iterator<Item = (&'a Ends, &'a F)> + Clone,
) -> Flows<Ends, Translated> {
    // Most captures have none.
    if flows.clone().all(|(_, flow)| flow.before().is_none()) {
        return Flows::default();
    }
    let known: Flows<u64, (&Ends, Ends)> = flows
        .clone()
        .flat_map(|(of, _)| {
            let &(a, b) = of;
            [(ends(a, b), (of, (a, b))), (ends(b, a), (of, (b, a)))]
        })
        .collect();
    let all: Flows<&Ends, (&Ends, Translated)> = flows
        .filter_map(|(of, flow)| {
            let &(first, before) = known.get(&flow.before()?)?;
            Some((of, (first, Translated { bytes: flow.bytes(), now: flow.ends(*of), before })))
        })
        .collect();
    // Of two that are each other the smaller is left.
    let left = all.iter().filter(|&(&of, &(first, _))| {
        !all.get(first).is_some_and(|&(other, _)| other == of && of < first)
    });
    left.map(|(&of, &(_, translated))| (*of, translated)).collect()
}

/// The note on so many, of which this is the largest.
pub fn note(count: usize, largest: Translated) -> String {
    let others = match count {
        1 => String::new(),
        more => format!(", and {} more", more - 1),
    };
    format!(
        "left out: {} is {} with translated addresses (NAT){others}",
        ends_name(largest.now),
        ends_name(largest.before),
    )
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::tally::Way;

    fn end(host: u8) -> End {
        (IpAddr::from([10, 0, 0, host]), 443)
    }

    /// Flows from these hosts to 10.0.0.99, each half of whose segments were those of another before; which are
    /// left out, as which.
    fn left_out(flows: &[(u8, Option<u8>)]) -> Vec<(u8, u8)> {
        let key = |host| (end(host), end(99));
        let flow = |&(host, first): &(u8, Option<u8>)| {
            let mut entry = Entry::default();
            let translated = first.map(|first| (ends(end(first), end(99)), 10));
            entry.ways[0] = Way { bytes: 1000, segments: 20, translated, ..Way::default() };
            (key(host), entry)
        };
        let flows: Flows<Ends, Entry> = flows.iter().map(flow).collect();
        let found = translated(flows.iter());
        let host = |(address, _): End| match address {
            IpAddr::V4(address) => address.octets()[3],
            IpAddr::V6(_) => 0,
        };
        let mut all: Vec<(u8, u8)> = found
            .iter()
            .map(|(ends, of)| {
                assert_eq!((*ends, of.before.1), (of.now, end(99)));
                (host(of.now.0), host(of.before.0))
            })
            .collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn of_two_that_are_each_other_the_smaller_is_left_whatever_their_order() {
        assert_eq!(left_out(&[(1, Some(9)), (9, Some(1))]), [(9, 1)]);
        assert_eq!(left_out(&[(9, Some(1)), (1, Some(9)), (3, None)]), [(9, 1)]);
        // One after the other, and one of a flow that is not there.
        assert_eq!(left_out(&[(1, None), (2, Some(1)), (3, Some(2))]), [(2, 1), (3, 2)]);
        assert_eq!(left_out(&[(1, None), (2, Some(7))]), []);
    }
}
