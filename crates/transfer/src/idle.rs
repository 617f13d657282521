//! How long a path may be silent: beside others not long, as acknowledgements may take it; a connection's
//! only path may be silent as long as the connection.

use crate::{CONNECTION_IDLE, PATH_IDLE};
use noq::{Connection, PathId};

/// What was set last: paths begin with [`PATH_IDLE`].
#[derive(Debug, Default)]
pub(crate) struct Idle {
    alone: bool,
}

impl Idle {
    /// Sets the timeouts of the open paths, if there is one where there were several, or the reverse: it
    /// starts their timers anew.
    pub fn set(&mut self, connection: &Connection, open: impl ExactSizeIterator<Item = PathId>) {
        let alone = open.len() == 1;
        if alone == self.alone {
            return;
        }
        self.alone = alone;
        let timeout = if alone { CONNECTION_IDLE } else { PATH_IDLE };
        for path in open.filter_map(|id| connection.path(id)) {
            // One that was closed meanwhile needs none.
            let _ = path.set_max_idle_timeout(Some(timeout));
        }
    }
}
