//! Where a capture was made, from how soon it is answered.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::packet::End;

/// Where a capture was made, of the way of a flow's data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum At {
    /// Near who sends the data.
    Sender,
    /// Near who gets it.
    #[default]
    Receiver,
    /// In between: the delay up to there counts, or that from there on.
    Middle,
}

impl FromStr for At {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<At, &'static str> {
        let all = [At::Sender, At::Receiver, At::Middle];
        let named = all.into_iter().find(|at| at.to_string() == name);
        named.ok_or("expected sender, receiver or middle")
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            At::Sender => "sender",
            At::Receiver => "receiver",
            At::Middle => "middle",
        })
    }
}

impl At {
    /// In a sentence.
    pub fn name(self) -> &'static str {
        match self {
            At::Sender => "near the sender",
            At::Receiver => "near the receiver",
            At::Middle => "in the middle",
        }
    }
}

/// Who answers sooner is here, if nobody else answers, nanoseconds.
const HERE: i64 = 1_000_000;

/// Evidence is clear if it is this share of what there could be.
const CLEAR: f64 = 0.5;

/// What a flow shows of the place.
#[derive(Clone, Copy, Debug)]
pub struct Clue {
    /// Who sends its data, and who gets it.
    pub ends: (End, End),
    pub bytes: u64,
    /// Shortest times until the receiver answered, and until the sender did, nanoseconds.
    pub reach: (Option<i64>, Option<i64>),
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    pub at: At,
    pub why: Why,
}

/// What it follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// One side answers much sooner.
    Answers,
    /// One side answers a little sooner.
    Unclear,
    /// Nobody answers.
    Silence,
}

impl Clue {
    fn says(&self) -> Says {
        let all = self.bytes as f64;
        let receiver = match self.reach {
            (Some(receiver), Some(sender)) => {
                let longer = receiver.max(sender).max(1) as f64;
                all * (sender - receiver) as f64 / longer
            }
            (Some(receiver), None) if receiver < HERE => all,
            (Some(_), None) => -all,
            (None, _) => return Says::default(),
        };
        Says { receiver, all }
    }

    /// Was the flow's data asked for? Who serves has the smaller port.
    fn is_download(&self) -> bool {
        self.ends.0.1 <= self.ends.1.1
    }
}

/// Where each flow was captured. That is between two sides: all flows of a host are on one, whatever a
/// single flow seems to say. Flows of hosts that say nothing clear are taken together, downloads and
/// uploads apart.
pub fn places(clues: &[Clue]) -> Vec<Decided> {
    let mut sides = Sides::default();
    // Where flows go in circles, as between three hosts of a router, each stands for itself.
    let fits: Vec<bool> =
        clues.iter().map(|clue| sides.join(clue.ends.0.0, clue.ends.1.0)).collect();
    let side = |clue: &Clue| sides.find(clue.ends.1.0);
    // Of hosts that have flows with each other: is the side near that their first is on?
    let mut said: BTreeMap<IpAddr, Says> = BTreeMap::new();
    for (clue, _) in clues.iter().zip(&fits).filter(|(_, fits)| **fits) {
        let (first, other) = side(clue);
        said.entry(first).or_default().add(clue.says().turned(other));
    }
    let of = |(clue, fits): (&Clue, &bool)| {
        let (first, other) = side(clue);
        let said = said.get(&first).filter(|_| *fits);
        said.map_or(clue.says(), |said| said.turned(other))
    };
    let own: Vec<Says> = clues.iter().zip(&fits).map(of).collect();
    let mut pooled = [Says::default(); 2];
    for (clue, _) in clues.iter().zip(&own).filter(|(_, own)| !own.clear()) {
        pooled[usize::from(clue.is_download())].add(clue.says());
    }
    let place = |(clue, own): (&Clue, &Says)| {
        let says = if own.clear() { *own } else { pooled[usize::from(clue.is_download())] };
        let at = if says.receiver >= 0.0 { At::Receiver } else { At::Sender };
        let why = match (own.clear(), says.all > 0.0) {
            (true, _) => Why::Answers,
            (_, true) => Why::Unclear,
            _ => Why::Silence,
        };
        Decided { at, why }
    };
    clues.iter().zip(&own).map(place).collect()
}

/// Bytes of data.
#[derive(Clone, Copy, Debug, Default)]
struct Says {
    /// That say that it is near the receiver, less those that say the opposite; by how much sooner one
    /// side answers.
    receiver: f64,
    /// That say anything.
    all: f64,
}

impl Says {
    fn add(&mut self, other: Says) {
        self.receiver += other.receiver;
        self.all += other.all;
    }

    fn turned(self, turn: bool) -> Says {
        Says { receiver: if turn { -self.receiver } else { self.receiver }, ..self }
    }

    fn clear(&self) -> bool {
        self.all > 0.0 && self.receiver.abs() >= CLEAR * self.all
    }
}

/// On which side each host is: those that have a flow are on opposite ones.
#[derive(Debug, Default)]
struct Sides(BTreeMap<IpAddr, (IpAddr, bool)>);

impl Sides {
    /// The first of the hosts that one is joined with, and is it on the other side?
    fn find(&self, host: IpAddr) -> (IpAddr, bool) {
        let (mut at, mut other) = (host, false);
        while let Some(&(next, turn)) = self.0.get(&at) {
            (at, other) = (next, other != turn);
        }
        (at, other)
    }

    /// Puts two hosts on opposite sides, if they are not on the same already.
    fn join(&mut self, a: IpAddr, b: IpAddr) -> bool {
        let ((a, of_a), (b, of_b)) = (self.find(a), self.find(b));
        if a == b {
            return of_a != of_b;
        }
        self.0.insert(b, (a, of_a == of_b));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// Sender and receiver by their last bytes, the sender's port, and when receiver and sender answer, ms.
    fn clue(from: u8, to: u8, port: u16, reach: (Option<i64>, Option<i64>)) -> Clue {
        let end = |host: u8, port| (IpAddr::from([10, 0, 0, host]), port);
        let ms = |time: Option<i64>| time.map(|ms| ms * MS);
        let ends = (end(from, port), end(to, 5000));
        Clue { ends, bytes: 1000, reach: (ms(reach.0), ms(reach.1)) }
    }

    fn of(clues: &[Clue]) -> Vec<(At, Why)> {
        places(clues).iter().map(|of| (of.at, of.why)).collect()
    }

    #[test]
    fn a_host_is_on_one_side_whatever_one_of_its_flows_says() {
        let download = clue(1, 9, 443, (Some(1), Some(40)));
        let upload = clue(9, 2, 9000, (Some(30), Some(1)));
        // One that is odd, and one that nobody answers.
        let (odd, silent) = (clue(3, 9, 443, (Some(9), Some(8))), clue(4, 9, 443, (None, None)));
        let clear = |at| (at, Why::Answers);
        assert_eq!(
            of(&[download, upload, odd, silent]),
            [At::Receiver, At::Sender, At::Receiver, At::Receiver].map(clear)
        );
        // A proxy is near on both of its sides.
        let proxy = [clue(1, 9, 443, (Some(0), Some(40))), clue(9, 2, 80, (Some(30), Some(0)))];
        assert_eq!(of(&proxy), [At::Receiver, At::Sender].map(clear));
    }

    #[test]
    fn in_the_middle_all_downloads_have_one_place() {
        let large = Clue { bytes: 3000, ..clue(1, 2, 443, (Some(20), Some(22))) };
        let small = clue(3, 4, 443, (Some(22), Some(20)));
        let upload = clue(5, 6, 9000, (Some(22), Some(20)));
        let unclear = |at| (at, Why::Unclear);
        let places = [At::Receiver, At::Receiver, At::Sender].map(unclear);
        assert_eq!(of(&[large, small, upload]), places);
    }

    #[test]
    fn where_only_data_was_captured_nobody_knows() {
        assert_eq!(of(&[clue(1, 2, 443, (None, None))]), [(At::Receiver, Why::Silence)]);
        let answered = |receiver| of(&[clue(1, 2, 443, (Some(receiver), None))]);
        assert_eq!(answered(0), [(At::Receiver, Why::Answers)]);
        assert_eq!(answered(30), [(At::Sender, Why::Answers)]);
    }

    #[test]
    fn hosts_whose_flows_go_in_circles_stand_for_themselves() {
        let clues = [
            clue(1, 2, 443, (Some(0), Some(40))),
            clue(2, 3, 443, (Some(0), Some(40))),
            clue(3, 1, 443, (Some(40), Some(0))),
        ];
        assert_eq!(of(&clues)[2], (At::Sender, Why::Answers));
    }
}
