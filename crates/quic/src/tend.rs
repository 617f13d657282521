//! A task that looks after a connection: what a controller must not do, as it is called by noq.

use crate::coupling::Factory;
use narrows_laws::Advice;
use noq::{Connection, PathEvent, PathId, PathStatus, WeakConnectionHandle};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use tokio_stream::Stream;

/// What to do with a path for the law's advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Park,
    Unpark,
    Close,
}

/// `parked`: its status was set to Backup here. What the program has set stays.
fn act(advice: Advice, parked: bool) -> Option<Act> {
    match (advice, parked) {
        (Advice::Close, _) => Some(Act::Close),
        (Advice::Backup, false) => Some(Act::Park),
        (Advice::None, true) => Some(Act::Unpark),
        _ => None,
    }
}

/// The open paths among 256 ids from `first` on.
fn open(connection: &Connection, first: PathId) -> impl Iterator<Item = PathId> {
    let ids = (0..256u32).map(move |n| first.saturating_add(n));
    ids.filter(|id| connection.path(*id).is_some())
}

/// Looks after `connection`, whose controllers are `factory`'s, until it is closed or dropped: every
/// `interval` sends something on each path, and sets its status or closes it as the law advises; tells
/// the factory at once which paths are abandoned. For both sides, with an interval below the paths' idle
/// timeout. Holds no handle that would keep the connection open. Needs tokio's timers.
pub fn tend(
    connection: &Connection,
    factory: Arc<Factory>,
    interval: Duration,
) -> impl Future<Output = ()> + Send + use<> {
    let mut events = connection.path_events();
    let weak = connection.weak_handle();
    let mut paths: BTreeMap<PathId, bool> =
        open(connection, PathId::ZERO).map(|id| (id, false)).collect();
    async move {
        let mut next = Instant::now() + interval;
        loop {
            let event = poll_fn(|context| Pin::new(&mut events).poll_next(context));
            match timeout_at(next, event).await {
                Ok(Some(Ok(PathEvent::Established { id, .. }))) => {
                    paths.insert(id, false);
                }
                Ok(Some(Ok(PathEvent::Abandoned { id, .. }))) => {
                    paths.remove(&id);
                    let state =
                        weak.upgrade().and_then(|connection| connection.congestion_state(id));
                    state.into_iter().for_each(|state| factory.abandoned(state));
                }
                // Events were lost, as noq holds 32: perhaps of a path that is open now.
                Ok(Some(Err(_))) => {
                    let first = paths.keys().next().copied().unwrap_or(PathId::ZERO);
                    for id in weak.upgrade().iter().flat_map(|connection| open(connection, first)) {
                        paths.entry(id).or_insert(false);
                    }
                }
                Ok(Some(Ok(_))) => {}
                Ok(None) => return,
                Err(_) => {
                    next += interval;
                    if turn(&weak, &factory, &mut paths).is_none() {
                        return;
                    }
                }
            }
        }
    }
}

/// A turn over all paths; none if the connection is gone.
fn turn(
    weak: &WeakConnectionHandle,
    factory: &Factory,
    paths: &mut BTreeMap<PathId, bool>,
) -> Option<()> {
    let connection = weak.upgrade().filter(|open| open.close_reason().is_none())?;
    for (&id, parked) in paths {
        // One that was abandoned meanwhile refuses all of this.
        let Some(path) = connection.path(id) else { continue };
        let _ = path.ping();
        let state = connection.congestion_state(id).and_then(|state| factory.path(state));
        match act(state.map_or(Advice::None, |state| state.advice), *parked) {
            Some(Act::Close) => {
                let _ = path.close();
            }
            Some(Act::Park) => *parked = path.set_status(PathStatus::Backup).is_ok(),
            Some(Act::Unpark) => *parked = path.set_status(PathStatus::Available).is_err(),
            None => {}
        }
        // Each time: after a migration the controller may be another one.
        if let Some(state) = connection.congestion_state(id) {
            factory.parked(state, *parked);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_path_comes_back_and_one_that_the_program_parked_stays() {
        assert_eq!(act(Advice::Backup, false), Some(Act::Park));
        assert_eq!(act(Advice::Backup, true), None);
        assert_eq!(act(Advice::None, true), Some(Act::Unpark));
        assert_eq!(act(Advice::None, false), None);
        assert_eq!(act(Advice::Close, true), Some(Act::Close));
    }
}
