//! A scenario written out whole is the same scenario.

use narrows_lab::{Edits, Scenario, load, parse, shipped};

fn set(changes: &[(&str, &str)]) -> Edits {
    let set = changes.iter().map(|&(field, value)| (field.into(), value.into())).collect();
    Edits { set, ..Edits::default() }
}

/// All that a scenario resolves to; how it is written is left out.
fn resolved(scenario: &Scenario) -> String {
    let Scenario { name, title, source, warmup, duration, links, flows, test, .. } = scenario;
    let Scenario { rivals, phases, params, events, paper, .. } = scenario;
    let head = (name, title, source, warmup, duration, test);
    format!("{head:#?}{links:#?}{flows:#?}{rivals:#?}{phases:#?}{params:#?}{events:#?}{paper:#?}")
}

/// Loads what the scenario is written as; it must be the same, to the bit and to the letter.
fn round_trip(scenario: &Scenario) -> String {
    let text = scenario.text();
    let again = parse(&text, &Edits::default()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(resolved(&again), resolved(scenario));
    assert_eq!(again.text(), text);
    text
}

#[test]
fn every_shipped_scenario_is_the_same_written_out_whole() {
    for name in shipped() {
        let text = round_trip(&load(name, &Edits::default()).unwrap());
        for gone in ["base", "[generator"] {
            assert!(!text.lines().any(|line| line.starts_with(gone)), "{name}: {text}");
        }
    }
}

#[test]
fn what_the_command_line_changes_is_in_the_text() {
    let changes = [
        ("links.bottleneck1.aqm.red.min", "7 packets"),
        ("links.bottleneck2.loss", "0.29 %"),
        ("ssc.preset", "mptcp-sbd"),
        ("tcp.timestamps", "us"),
        ("detection.signal", "rtt"),
    ];
    let text = round_trip(&load("sbd/nsb-2", &set(&changes)).unwrap());
    for line in ["min = \"7 packets\"", "max = \"21 packets\"", "loss = \"0.29 %\"", "c_s = -0.01"]
    {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    // What was published holds for the network as it was.
    assert!(!text.contains("[[paper]]"));
}

/// Made flows, and links that no flow came to use.
#[test]
fn a_fat_tree_is_the_same_written_out_whole() {
    let tree = |subflows| {
        let fields = "rate = '10 Mbit/s', delay = '1 ms', queue = '20 packets', cc = 'lia'";
        let text = format!(
            "name = 'tree'\ntitle = ''\nsource = ''\nwarmup = '1 s'\nduration = '4 s'\n\
             generator.fat-tree = {{ {fields}, k = 4, subflows = {subflows}, routing = 'ecmp', \
             seed = 1 }}\n"
        );
        parse(&text, &Edits::default()).unwrap()
    };
    assert!(!round_trip(&tree(8)).contains("[generator"), "each link is used");
    assert!(round_trip(&tree(1)).contains("[generator"), "what is made may be idle");
}

/// Parameters of laws stand beside the keys of a scenario.
#[test]
fn no_law_is_called_as_a_key_is() {
    for name in shipped() {
        let text = load(name, &Edits::default()).unwrap().text();
        let keys: toml::Table = toml::from_str(&text).unwrap();
        for key in keys.keys().filter(|key| narrows_laws::params::groups().iter().all(|g| g != key))
        {
            assert!(narrows_laws::user::check_name(key).is_err(), "{name}: {key}");
        }
    }
}

#[test]
fn a_jitter_with_a_distribution_is_written_out() {
    for jitter in [
        "{ uniform = { max = '5 ms', correlation = '50 %' } }",
        "{ normal = { max = '20 ms', mean = '5 ms', deviation = '2 ms' } }",
        "{ pareto = { max = '1 s', mean = '5 ms', shape = 2.5, correlation = '25 %' } }",
    ] {
        let edits = set(&[("links.bottleneck1.jitter", jitter)]);
        let whole = load("sbd/nsb-2", &edits).unwrap();
        assert_ne!(whole.links[0].config.variation, Default::default(), "{jitter}");
        round_trip(&whole);
    }
}
