//! What every host must know of the flows it runs: which one it is, what its application sends and
//! when, and what is asked of its end points.
//!
//! A host may be a simulator or a real stack; nothing here knows which. [`Generator`] is a function of
//! seed, flow and source, so that all hosts send the same bytes at the same times.
//!
//! | where to look | |
//! |---|---|
//! | `flow` | which connection or UDP flow |
//! | `source`, `generator` | what an application sends, and when |
//! | `messages` | how long its messages take |
//! | `multipath` | which subflows there are, and which sends the next data |
//! | `tcp` | what a TCP end point does, and what of it a detector sees |

mod flow;
mod generator;
mod messages;
mod multipath;
mod source;
mod tcp;

pub use flow::{ConnId, FlowId, UdpId};
pub use generator::{Generator, Write};
pub use messages::{Message, Messages};
pub use multipath::{PathManager, Scheduler};
pub use source::{MediaControl, SizeDist, Source};
pub use tcp::{Hides, LossDetection, Opener, ReceiverAcks, Signal, TcpConfig, Timestamps};
