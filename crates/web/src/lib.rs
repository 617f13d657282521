//! The simulator in a browser: scenarios, controls and results of [`narrows_lab`], by questions and answers in JSON.
//!
//! [`answer`] is all of it; in WebAssembly a worker calls it. `page` has the page around it, which `scripts/site`
//! puts together. A run's files are those of `narrows run --out`, byte by byte.

mod knobs;
#[cfg(target_family = "wasm")]
mod memory;

use std::sync::atomic::AtomicBool;

use narrows_lab::{
    Asked, Edits, Error, Estimate, Job, Scenario, Setup, detection, host, json, load, page, series,
};
use narrows_laws::catalogue;
use serde::{Deserialize, Serialize};

use knobs::Knob;

/// What the page asks.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Question {
    /// What there is to choose from.
    Controls,
    /// What a choice is.
    Describe(Choice),
    /// What it gives.
    Run(Choice),
}

/// What is chosen on the page.
#[derive(Deserialize)]
struct Choice {
    scenario: String,
    /// None: the scenario's.
    cc: Option<String>,
    /// As it is written: it may be greater than what a script can count.
    seed: String,
    /// What is set of the scenario, by field.
    set: Vec<(String, String)>,
}

/// What it is told.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Controls(Vec<Named>),
    Described(Described),
    Ran(Ran),
    Error { error: String },
}

/// A control that has a name.
#[derive(Serialize)]
struct Named {
    name: String,
    law: String,
    /// The first of a law is its own.
    detector: String,
    /// What law and detector do; of a system its source.
    about: [String; 2],
    /// Where the page lists the law.
    group: &'static str,
}

/// A choice, before it runs.
#[derive(Serialize)]
struct Described {
    title: String,
    cc: Option<String>,
    /// The command that does the same.
    command: String,
    knobs: Vec<Knob>,
    /// What is most likely not meant.
    warnings: Vec<String>,
    /// CPU time of the native command, seconds.
    estimate_s: f64,
}

/// A run.
#[derive(Serialize)]
struct Ran {
    /// The results as HTML, and what `narrows.draw` draws in it.
    html: String,
    data: String,
    /// Time at the end, seconds.
    end_s: f64,
    /// Names and contents, as `narrows run --out` writes them.
    files: Vec<(&'static str, String)>,
}

/// Memory that a run may take at most: WebAssembly has 4 GB, and a phone less.
const MEMORY: f64 = 1e9;

/// Answers a question; both are JSON.
pub fn answer(question: &str) -> String {
    let answer = match serde_json::from_str(question) {
        Ok(Question::Controls) => Ok(Answer::Controls(controls())),
        Ok(Question::Describe(choice)) => describe(&choice).map(Answer::Described),
        Ok(Question::Run(choice)) => run(&choice).map(Answer::Ran),
        Err(error) => Err(Error::input("question", error)),
    };
    let answer = answer.unwrap_or_else(|error| Answer::Error { error: error.to_string() });
    json(&answer)
}

/// All controls with the slow start of their law, and the systems of papers.
fn controls() -> Vec<Named> {
    let ours = catalogue::controls().map(|control| Named {
        name: control.to_string(),
        law: control.law.name().into(),
        detector: control.detector.name().into(),
        about: [control.law.about().into(), control.detector.about().into()],
        group: if control.law.couples() { "coupled" } else { "uncoupled" },
    });
    let systems = catalogue::NAMES.iter().filter(|named| named.is_system());
    let systems = systems.map(|named| Named {
        name: named.name.into(),
        law: named.name.into(),
        detector: named.control().detector.name().into(),
        about: [named.source.into(), named.control().detector.about().into()],
        group: "systems of papers",
    });
    ours.chain(systems).collect()
}

impl Choice {
    fn asked(&self) -> Result<Asked, Error> {
        let edits = Edits { set: self.set.clone(), ..Edits::default() };
        Asked::of(load(&self.scenario, &edits)?, self.cc.as_deref(), None)
    }

    fn seed(&self) -> Result<u64, Error> {
        let expected = |_| {
            let message = format!("expected a whole number below 2^64, found '{}'", self.seed);
            Error::input("--seed", message)
        };
        self.seed.trim().parse().map_err(expected)
    }

    fn command(&self, seed: u64) -> String {
        let seed = seed.to_string();
        let set = self.set.iter().map(|(field, value)| format!("{field}={value}"));
        let set: Vec<String> = set.collect();
        let mut words = vec!["run", &self.scenario];
        words.extend(self.cc.iter().flat_map(|cc| ["--cc", cc]));
        words.extend(["--seed", &seed]);
        words.extend(set.iter().flat_map(|set| ["--set", set]));
        narrows_report::command_line(words)
    }
}

fn describe(choice: &Choice) -> Result<Described, Error> {
    let asked = choice.asked()?;
    let scenario = &asked.scenario;
    Ok(Described {
        title: scenario.title.clone(),
        cc: asked.under_test.map(|cc| cc.to_string()),
        command: choice.command(choice.seed()?),
        knobs: knobs::of(scenario),
        warnings: scenario.warnings(),
        estimate_s: Estimate::of(scenario).seconds(),
    })
}

/// As `narrows run` does.
fn run(choice: &Choice) -> Result<Ran, Error> {
    let Asked { scenario, control, .. } = choice.asked()?;
    check(&scenario)?;
    let stop = AtomicBool::new(false);
    let job = Job { control, seed: choice.seed()?, series: true, ..Job::new(&scenario, &stop) };
    let host = host("sim")?;
    host.check(&job)?;
    let mut run = host.run(job)?;
    run.summary.setup = Some(Setup::of(&scenario, control.as_slice()));
    let (html, data) = page::shown(&scenario, &run).inside();
    let mut files = vec![
        ("summary.json", json(&run.summary)),
        ("series.csv", text(|to| series::write_csv(&run.series, to))),
    ];
    if !run.decisions.is_empty() {
        files.push(("decisions.csv", text(|to| detection::write_csv(&run.decisions, to))));
    }
    Ok(Ran { html, data, end_s: scenario.end() as f64 / 1e9, files })
}

/// Bytes of the answer for each of the series: as CSV and as plots.
const ANSWER: f64 = 3.0;

/// Is there memory for it? The answer is there as parts, as the JSON of all, and once more in the page.
fn check(scenario: &Scenario) -> Result<(), Error> {
    let series = Estimate::series(scenario);
    let needed = Estimate::of(scenario).memory + series + 3.0 * ANSWER * series;
    if needed > MEMORY {
        let message = format!(
            "a run may take {:.1} GB, and a page has {:.0}; the command has what the machine has",
            needed / 1e9,
            MEMORY / 1e9
        );
        return Err(Error::input(&scenario.name, message));
    }
    Ok(())
}

/// What is written, as text.
fn text(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = write(&mut bytes);
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn ask(question: Value) -> Value {
        serde_json::from_str(&answer(&question.to_string())).unwrap()
    }

    fn choice(scenario: &str, cc: &str, seed: &str, set: &[[&str; 2]]) -> Value {
        json!({ "scenario": scenario, "cc": cc, "seed": seed, "set": set })
    }

    #[test]
    fn every_control_that_is_offered_is_one_and_the_first_of_a_law_is_its_own() {
        let all = ask(json!("controls"));
        let all = all.as_array().unwrap();
        assert!(all.len() > 30, "{}", all.len());
        let mut laws = Vec::new();
        for control in all {
            let name = control["name"].as_str().unwrap();
            let question = json!({ "describe": choice("sbd/sb-2", name, "1", &[]) });
            assert_eq!(ask(question)["cc"], name);
            if !laws.contains(&&control["law"]) {
                assert_eq!(control["name"], control["law"]);
                laws.push(&control["law"]);
            }
        }
    }

    #[test]
    fn the_answer_is_no_larger_than_what_is_counted_for_it() {
        for scenario in ["sbd/sb-2", "sbd/nsb-5", "phone/wifi-lte"] {
            let set = &[["duration", "60 s"]];
            let choice = choice(scenario, "gcubic+xcorr", "1", set);
            let length = answer(&json!({ "run": choice }).to_string()).len() as f64;
            let edits = Edits { set: vec![("duration".into(), "60 s".into())], ..Edits::default() };
            let series = Estimate::series(&load(scenario, &edits).unwrap());
            println!("{scenario}: {length} of {}", ANSWER * series);
            // The page without a sample has its texts.
            assert!(length < ANSWER * series + 1e6, "{scenario}: {length} bytes, series {series}");
            assert!(length > 0.2 * series, "{scenario}: {length} bytes, series {series}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let error = |choice: Value| {
            let said = ask(json!({ "run": choice }))["error"].take();
            said.as_str().expect("an error").to_owned()
        };
        let wrong = error(choice("sbd/sb2", "lia", "1", &[]));
        assert!(wrong.starts_with("sbd/sb2: ") && wrong.contains("'sbd/sb-2'"), "{wrong}");
        let wrong = error(choice("sbd/sb-2", "leo", "1", &[]));
        assert!(wrong.starts_with("--cc: unknown law 'leo'"), "{wrong}");
        let wrong = error(choice("sbd/sb-2", "kernel:bbr", "1", &[]));
        assert!(wrong.contains("the simulator has no kernel:bbr"), "{wrong}");
        let wrong = error(choice("sbd/sb-2", "lia", "-1", &[]));
        assert_eq!(wrong, "--seed: expected a whole number below 2^64, found '-1'");
        let wrong = error(choice("sbd/sb-2", "lia", "1", &[["links.bottleneck1.rate", "fast"]]));
        assert!(wrong.starts_with("--set links.bottleneck1.rate=fast: "), "{wrong}");
        let wrong = error(choice("sbd/sb-2", "lia", "1", &[["duration", "300000 s"]]));
        assert!(wrong.contains("GB, and a page has 1"), "{wrong}");
    }

    #[test]
    fn the_command_says_what_was_chosen() {
        let set = [["links.bottleneck1.rate", "5 Mbit/s"]];
        let said =
            ask(json!({ "describe": choice("sbd/sb-2", "lia", "18446744073709551615", &set) }));
        assert_eq!(
            said["command"],
            "narrows run sbd/sb-2 --cc lia --seed 18446744073709551615 --set \
             'links.bottleneck1.rate=5 Mbit/s'"
        );
    }
}
