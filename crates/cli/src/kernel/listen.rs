//! `narrows kernel listen`.

use std::time::{Duration, Instant};

use narrows_kernel::cgroup::Cgroup;
use narrows_kernel::listen::Listening;

use super::wait;
use crate::args::kernel::ListenArgs;
use crate::error::Error;
use crate::{print, stop};

/// Time between two looks for connections that have ended.
const TICK: Duration = Duration::from_secs(1);

/// Detects as the receiver, and obeys receivers, until Ctrl-C or the end of --for.
pub fn listen(args: &ListenArgs) -> Result<(), Error> {
    let cgroup = args.cgroup.as_deref().map_or_else(Cgroup::top, Cgroup::open)?;
    let stop = stop::on_signal()?;
    let mut listening = Listening::start(&cgroup)?;
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    print(&format!("listening: new MPTCP connections in {}\n", cgroup.path.display()))?;
    loop {
        let next = Instant::now() + TICK;
        let over = end.is_some_and(|end| end < next);
        if !wait(end.filter(|_| over).unwrap_or(next), &stop) || over {
            break;
        }
        listening.sweep()?;
    }
    let decisions = listening.decisions();
    print(&format!(
        "decisions made as the receiver: {}, obeyed as the sender: {}\n",
        decisions.decided, decisions.obeyed
    ))
}
