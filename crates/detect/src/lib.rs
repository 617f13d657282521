//! Which flows share a bottleneck, found from recordings of them: a capture (pcap, pcapng), logs of QUIC
//! (qlog) or a table of delays (CSV), plain or compressed by gzip or zstd; or while they send ([`Live`]).
//!
//! A file is read twice. The first pass, [`Source::open`], finds the flows, how large they are and
//! which signal their packets give; the second, [`Detection::run`], gives the delays and losses of the
//! largest to a detector of `narrows_laws` and reports each of its decisions, and at the end a
//! [`Verdict`] on each two flows. Both take the same memory whatever the size of the file. A
//! log is read once: what it shows is kept in a temporary file. How a delay
//! is measured is described in `docs/guide/detect.md`.

mod capture;
mod clock;
mod copies;
mod decision;
mod detect;
mod error;
mod event;
mod file;
mod input;
mod json;
mod live;
mod logs;
mod measure;
mod mptcp;
mod observation;
mod order;
mod others;
mod packet;
mod page;
mod place;
mod plot;
mod qlog;
mod reference;
mod report;
mod sizes;
mod skipped;
mod sorted;
mod source;
mod spin;
mod stream;
mod survey;
mod surveyed;
mod table;
mod tally;
mod trace;
mod traffic;
mod translated;
mod verdict;
mod watch;
mod wrapped;

pub use decision::Decision;
pub use detect::{DEFAULT, Detection, Found, detectors};
pub use error::Error;
pub use file::File;
pub use input::Input;
pub use live::Live;
pub use observation::{Observation, Signal};
pub use page::Sheet;
pub use place::At;
pub use plot::Plot;
pub use report::{Json, Report, Times, line, text, who};
pub use source::{Recording, Source};
pub use stream::{Event, Part, Stream, begin};
pub use traffic::{Limits, Traffic};
pub use verdict::{Evidence, Verdict, because};
pub use watch::Watch;

pub use narrows_laws::detect::{Answer, MAX_FLOWS, Why};
