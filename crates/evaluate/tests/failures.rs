//! Runs of one criterion that fail in different ways: which of them the verdict tells.

use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::Duration;

use narrows_evaluate::rule::Verdict;
use narrows_evaluate::{CATALOGUE, Law};
use narrows_lab::{Error, Host, HostId, Job, Run};
use narrows_laws::user::{self, Checks};
use narrows_papers::{Form, Runs};

/// Keeps its window.
const STILL: &str = "#ifndef NARROWS_LAW_STILL_H
#define NARROWS_LAW_STILL_H
#include \"law.h\"
NR_INLINE nr_u32 nr_still_ssthresh(NR_HOOK)
{
	return p->cwnd;
}
NR_LAW(still) = {
    .name = \"still\", .code = \"still\", .about = \"keeps its window\", .source = \"none\",
    .kind = NR_WINDOW, .ssthresh = nr_still_ssthresh,
};
#endif
";

/// A host on which all runs fail: those of the first seed and of the standards by an internal error at once, the others by
/// the law, those of later seeds sooner.
struct Fails;

impl Host for Fails {
    fn id(&self) -> HostId {
        HostId::new("fails")
    }

    fn real_time(&self) -> bool {
        false
    }

    fn check(&self, _: &Job) -> Result<(), Error> {
        Ok(())
    }

    fn run(&self, job: Job) -> Result<Run, Error> {
        let (scenario, seed) = (job.scenario.name.clone(), job.seed);
        if seed == 1 || !job.scenario.takes_user_law(job.control.as_slice()) {
            let (cc, message) = ("still".into(), "ran out of memory".into());
            return Err(Error::Fault { scenario, cc, seed, message });
        }
        sleep(Duration::from_millis(10 * 5_u64.saturating_sub(seed)));
        let (place, reason) = ("still.h".into(), "divides by zero, or overflows a division".into());
        Err(Error::Law { place, reason, scenario, seed })
    }
}

#[test]
fn what_the_law_did_is_told_and_of_two_runs_that_of_the_first() {
    let home = tempfile::tempdir().unwrap();
    let header = home.path().join("still.h");
    std::fs::write(&header, STILL).unwrap();
    user::load(&header, Checks::None).unwrap();
    let (law, stop) = (Law::new("still").unwrap(), AtomicBool::new(false));
    let criterion = CATALOGUE.iter().find(|one| one.id() == "5.1.1/loss").unwrap();
    for jobs in [1, 2, 4, 8] {
        let runs = Runs::new(Form::Quick, Some(5), None, jobs, &stop, &|_| ()).unwrap();
        let outcome = criterion.evaluate(&law, &runs.on(&Fails)).unwrap();
        assert_eq!(outcome.verdict, Verdict::FallsShort, "{jobs} jobs: {}", outcome.line);
        let line = "still.h: the law divides by zero, or overflows a division (";
        assert!(outcome.line.starts_with(line), "{}", outcome.line);
        assert!(outcome.line.ends_with(", seed 2)"), "{jobs} jobs: {}", outcome.line);
    }
}
