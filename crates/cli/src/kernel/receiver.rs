//! `narrows kernel receiver`.

use std::time::{Duration, Instant};

use narrows_kernel::cgroup::Cgroup;
use narrows_kernel::receiver::ReceiverDetector;

use super::wait;
use crate::args::kernel::ReceiverArgs;
use crate::error::Error;
use crate::{print, stop};

/// Time between two looks for connections that have ended.
const TICK: Duration = Duration::from_secs(1);

/// Detects as the receiver, and obeys receivers, until Ctrl-C or the end of --for.
pub fn receiver(args: &ReceiverArgs) -> Result<(), Error> {
    let cgroup = args.cgroup.as_deref().map_or_else(Cgroup::top, Cgroup::open)?;
    let stop = stop::on_signal()?;
    let mut detector = ReceiverDetector::start(&cgroup)?;
    let end = args.seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
    print(&format!(
        "detecting at the receiver: new MPTCP connections in {}\n",
        cgroup.path.display()
    ))?;
    loop {
        let next = Instant::now() + TICK;
        let over = end.is_some_and(|end| end < next);
        if !wait(end.filter(|_| over).unwrap_or(next), &stop) || over {
            break;
        }
        detector.sweep()?;
    }
    let decisions = detector.decisions();
    print(&format!(
        "decisions made as the receiver: {}, obeyed as the sender: {}\n",
        decisions.decided, decisions.obeyed
    ))
}
