//! Controls and MPTCP on this machine, for those who run it: controls are loaded, used and unloaded
//! ([`assign`]), also at the start of the machine ([`boot`]); what hinders them or MPTCP is found
//! ([`check`]), and what runs now is shown ([`status`]).

pub mod assign;
pub mod boot;
pub mod check;
mod listeners;
mod sockets;
pub mod status;
