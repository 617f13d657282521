//! A search for the networks in which a multipath congestion control does worst.
//!
//! A [`Network`] is a network and what happens in it, in few numbers: drawn, varied and made simpler
//! here, and run as an ordinary scenario, whose [`text`] it is. [`judge`] runs it under a control,
//! under the control's law uncoupled and on each path alone, and measures what the control can be
//! [charged](Charge) with; [`search`] breeds the networks that are worst by a charge, confirms them with
//! fresh seeds and shrinks them. `docs/method/adversary.md` has the method and its limits.

mod alone;
mod charge;
mod draw;
mod file;
mod judge;
mod memo;
mod network;
mod search;
mod shrink;
mod vary;

pub use charge::{Blame, CHARGES, Charge, Measure};
pub use file::{Head, text};
pub use judge::{Verdict, judge, rival, uncoupled};
pub use memo::Memo;
pub use network::{Change, DISCIPLINES, Link, Loss, Network, Path, Rival, SCHEDULERS, What};
pub use search::{FRESH, Find, Found, Plan, agreed, search};
