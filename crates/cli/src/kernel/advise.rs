//! `narrows kernel advise`.

use std::time::{Duration, Instant};

use narrows_mptcp_admin::advise::{Follower, allowed};
use narrows_netns::Namespace;

use super::wait;
use crate::args::kernel::AdviseArgs;
use crate::error::Error;
use crate::{print, stop};

/// Time between two looks at the advice.
const TICK: Duration = Duration::from_secs(1);

/// Follows the advice until Ctrl-C or the end of --for, and sets back what it set.
pub fn advise(args: &AdviseArgs) -> Result<(), Error> {
    let namespace = match &args.netns {
        Some(name) => Namespace::named(name),
        None => Namespace::current(),
    };
    let namespace = namespace.map_err(|error| Error::input("--netns", error))?;
    allowed()?;
    let stop = stop::on_signal()?;
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut follower = Follower::open(namespace, args.netns.is_none())?;
    let result = loop {
        let told = follower.look().map_err(Error::from).and_then(|lines| tell(&lines));
        let next = Instant::now() + TICK;
        let over = end.is_some_and(|end| end < next);
        let until = end.filter(|_| over).unwrap_or(next);
        if told.is_err() || !wait(until, &stop) || over {
            break told;
        }
    };
    let told = tell(&follower.end());
    result.and(told)
}

fn tell(lines: &[String]) -> Result<(), Error> {
    print(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
}
