//! `narrows kernel recommend`.

use std::time::{Duration, Instant};

use narrows_mptcp_admin::recommend::Recommender;

use super::wait;
use super::watch::{READINGS, TICK, scope};
use crate::args::kernel::RecommendArgs;
use crate::error::Error;
use crate::{print, stop};

/// Watches until the end of --for or Ctrl-C, and says what follows.
pub fn recommend(args: &RecommendArgs) -> Result<(), Error> {
    let mut recommender = Recommender::start(scope(&args.scope, None)?)?;
    let stop = stop::on_signal()?;
    let end = Instant::now() + Duration::from_secs(args.seconds);
    let mut going_on = true;
    let mut tick = Instant::now();
    while going_on {
        recommender.look()?;
        tick = Instant::now();
        for reading in 1..=READINGS {
            let until = end.min(tick + TICK * reading / READINGS);
            going_on = wait(until, &stop) && until < end;
            recommender.sample()?;
            if !going_on {
                break;
            }
        }
    }
    // The last second counts, too, and less than half of one tells nothing.
    if tick.elapsed() >= TICK / 2 {
        recommender.look()?;
    }
    let report = recommender.report();
    if args.json {
        let line = serde_json::to_string(&report).map_err(|error| Error::input("JSON", error))?;
        return print(&format!("{line}\n"));
    }
    let texts: Vec<String> = report.namespaces.iter().map(|one| one.text()).collect();
    match texts.is_empty() {
        true => print("no MPTCP connection of two subflows delivered anything\n")?,
        false => print(&texts.join("\n"))?,
    }
    match report.left_out {
        0 => Ok(()),
        n => print(&format!("\nconnections not watched, as others send more: {n}\n")),
    }
}
