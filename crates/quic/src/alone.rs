//! A path whose law knows no other: what is left where the shared state cannot be used.

use crate::shared::Reply;
use narrows_laws::{Conn, Control, Detector, Event, Params, Private};

/// A connection of one path.
#[derive(Clone, Debug)]
pub(crate) struct Alone {
    conn: Conn,
    private: Private,
}

impl Alone {
    /// The control's law and slow start on one path.
    pub fn new(control: Control, params: &Params) -> Alone {
        let control = Control { detector: Detector::DISJOINT, ..control };
        Alone { conn: Conn::with_params(control, params), private: Private::default() }
    }

    pub fn event(&mut self, event: &Event) -> Reply {
        let output = self.conn.event(0, &mut self.private, event);
        Reply { output, credit: self.private.credit(), bw: self.conn.path(0).bw }
    }
}
