//! Controls and MPTCP on this machine, for those who run it: controls are loaded, used and unloaded
//! ([`assign`]), also at the start of the machine ([`boot`]); what hinders them or MPTCP is found
//! ([`check`]), what runs now is shown ([`status`]), what the laws advise is done ([`advise`]), which paths
//! meet in one bottleneck is found under any control ([`watch`]), which control and which links suit what was
//! watched is said ([`recommend`]), and a control is tried on a share of the connections before all get it
//! ([`trial`]).

pub mod advise;
pub mod assign;
pub mod boot;
pub mod check;
mod clock;
mod interfaces;
mod listeners;
mod prometheus;
pub mod recommend;
mod sockets;
pub mod status;
pub mod trial;
pub mod watch;
