//! The search for a few seconds under our own laws: nothing new may be wrong.

use std::sync::atomic::AtomicBool;

use narrows_adversary::{Blame, Charge, Head, Network, Plan, Verdict, judge, rival, search, text};
use narrows_lab::{Algorithm, Edits, Error, host, parse};

/// What this search finds today, on a link that is shared with a rival: a group's goodput is one flow's
/// share, of which a run of seconds says little, with queues of two packets. What is mended loses its line.
const KNOWN: &[(&str, Charge)] =
    &[("greno+xcorr", Charge::Goodput), ("gcubic+xcorr", Charge::Goodput)];

/// What is wrong with `control` by its own fault in the first networks.
fn wrong(control: Algorithm) -> Vec<Charge> {
    let stop = AtomicBool::new(false);
    let rival = rival(control).unwrap();
    let judge = |network: &Network, seed: u64| -> Result<Verdict, Error> {
        let text = text(network, &rival, &Head { name: "quick", title: "", source: "" });
        judge(host("sim")?, &parse(&text, &Edits::default())?, control, seed, &stop)
    };
    let plan =
        Plan { seed: 1, candidates: 48, hops: 20_000, shrinks: 0, judge: &judge, go_on: &|_| true };
    let finds = search(&plan).unwrap().finds.into_iter();
    finds.filter(|find| find.blame == Blame::Law).map(|find| find.charge).collect()
}

#[test]
fn a_short_search_finds_nothing_new_of_our_laws() {
    let found = ["greno+xcorr", "gcubic+xcorr"].into_iter().flat_map(|cc| {
        let wrong = wrong(cc.parse().unwrap()).into_iter();
        wrong.map(move |charge| (cc, charge))
    });
    assert_eq!(found.collect::<Vec<_>>(), KNOWN);
}
