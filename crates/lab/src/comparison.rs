//! What a comparison ran, part by part: so that more seeds of it can be told from another comparison.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::plan::{Plan, Seeds, SeriesOf};
use crate::setup::{Setup, program, sha256};

/// All that the results of a comparison depend on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// The seeds.
    pub seeds: Seeds,
    /// The seeds whose series are kept.
    pub series_of: SeriesOf,
    /// Names of the scenarios.
    scenarios: Vec<String>,
    /// Congestion controls of the connection under test.
    controls: Vec<String>,
    /// Delay signals of detectors.
    signals: Vec<String>,
    /// What ran them.
    hosts: Vec<String>,
    /// Hash of what the command line set in each case, and of a user's law.
    settings_sha256: String,
    /// Hash of the resolved scenarios to the last point of their traces, and of the above.
    content_sha256: String,
    /// Hash of the program, since another build may simulate otherwise; of several, each once in order, with `+` between.
    program_sha256: String,
}

impl Comparison {
    /// That of a plan, by this program.
    ///
    /// # Errors
    /// The program cannot be read.
    pub fn of(plan: &Plan) -> Result<Comparison, Error> {
        let Plan { cases, controls, signals, hosts, seeds, series, jobs: _ } = plan;
        let setups: Vec<Setup> =
            cases.iter().map(|case| Setup::of(&case.scenario, controls)).collect();
        let settings: Vec<&BTreeMap<_, _>> = setups.iter().map(|setup| &setup.settings).collect();
        let mut scenarios: Vec<String> =
            cases.iter().map(|case| case.scenario.name.clone()).collect();
        scenarios.dedup();
        Ok(Comparison {
            seeds: *seeds,
            series_of: *series,
            scenarios,
            controls: controls.iter().map(ToString::to_string).collect(),
            signals: signals.iter().map(|signal| signal.name().into()).collect(),
            hosts: hosts.iter().map(ToString::to_string).collect(),
            settings_sha256: sha256(&settings),
            content_sha256: sha256(&(cases, controls, signals, hosts, &setups)),
            program_sha256: program()?,
        })
    }

    /// The builds of narrows that made these, as one that all of them made names it.
    pub fn builds<'a>(all: impl IntoIterator<Item = &'a Comparison>) -> String {
        let builds = all.into_iter().flat_map(|one| one.program_sha256.split('+'));
        builds.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("+")
    }

    /// The same, made by other [builds](Comparison::builds).
    pub fn by(self, builds: &str) -> Comparison {
        Comparison { program_sha256: builds.into(), ..self }
    }

    /// What `self` and `other` differ in, if not only in their seeds.
    pub fn differs(&self, other: &Comparison) -> Option<&'static str> {
        let (a, b) = (self, other);
        // The cause before its effects: other scenarios have other settings in a sweep.
        let parts = [
            ("another build of narrows", a.program_sha256 == b.program_sha256),
            ("other scenarios", a.scenarios == b.scenarios),
            ("other controls (--cc)", a.controls == b.controls),
            ("other signals (--signal)", a.signals == b.signals),
            ("other hosts (--on)", a.hosts == b.hosts),
            ("other settings", a.settings_sha256 == b.settings_sha256),
            ("a scenario, trace or law that has changed", a.content_sha256 == b.content_sha256),
            ("another choice of series (--series-of)", a.series_of == b.series_of),
        ];
        parts.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
    }
}
