//! What a program names: a control, and a factory of controllers for each connection.

use crate::controller::PathController;
use crate::qlog::QlogVersion;
use crate::shared::Shared;
use crate::snapshot::{PathState, Snapshot};
use narrows_laws::catalogue::{self, NoControl};
use narrows_laws::params::ParamError;
use narrows_laws::{Control, Params};
use noq_proto::congestion::{Controller, ControllerFactory};
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

/// A congestion control for connections of several paths.
#[derive(Clone, Debug)]
pub struct Coupling {
    control: Control,
    params: Params,
    srtt: bool,
}

/// Why there is no such [`Coupling`], in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CouplingError {
    /// No control has this name.
    #[error(transparent)]
    Control(#[from] NoControl),
    /// No parameter has this name, or not this value.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A signal that QUIC does not have, of a published system or set.
    #[error("signal {0}: a one-way delay, which QUIC does not report; expected rtt or srtt")]
    Signal(String),
}

impl Coupling {
    /// The control called `name`: `LAW[+DETECTOR][+SLOW START]`, such as `olia`, `greno+xcorr` or
    /// `lia+hystart++`; or a published system, with its settings (`tr-lia`, `ssc-lia`).
    ///
    /// # Errors
    /// No control has this name, or it needs what QUIC does not have.
    pub fn new(name: &str) -> Result<Coupling, CouplingError> {
        let control = catalogue::control(name)?;
        let mut coupling = Coupling { control, params: Params::default(), srtt: false };
        let system = catalogue::stands_for(name).into_iter().flat_map(|of| of.settings());
        for (field, value) in system {
            coupling.set(field, value)?;
        }
        Ok(coupling)
    }

    fn set(&mut self, field: &str, value: &str) -> Result<(), CouplingError> {
        match (field, value) {
            ("detection.signal", "rtt") => self.srtt = false,
            ("detection.signal", "srtt") => self.srtt = true,
            ("detection.signal", signal) => return Err(CouplingError::Signal(signal.to_owned())),
            _ => self.params.set(field, value)?,
        }
        Ok(())
    }

    /// The same with a parameter of the law or the detector set, such as `olia.floor` to `2`; or with
    /// `detection.signal`, what the detector samples, set to `rtt` or `srtt`, the smoothed one.
    ///
    /// # Errors
    /// No such parameter, or not a value of it.
    pub fn with(mut self, parameter: &str, value: &str) -> Result<Coupling, CouplingError> {
        self.set(parameter, value)?;
        self.params.check()?;
        Ok(self)
    }

    /// The same with these parameters in place of all others.
    ///
    /// # Errors
    /// They do not fit each other.
    pub fn with_params(self, params: Params) -> Result<Coupling, CouplingError> {
        params.check()?;
        Ok(Coupling { params, ..self })
    }

    /// Law, detector and slow starts.
    pub fn control(&self) -> Control {
        self.control
    }

    /// A factory of the controllers of **one** connection, for
    /// `TransportConfig::congestion_controller_factory`. The paths of all connections that are given
    /// the same one cannot be told apart: this is noticed at the second handshake, and each path then
    /// runs its law alone.
    pub fn factory(&self) -> Arc<Factory> {
        let shared = Shared::new(self.control, &self.params, self.srtt);
        Arc::new(Factory { shared: Arc::new(shared) })
    }
}

/// The controllers of one connection's paths, and what they share.
#[derive(Debug)]
pub struct Factory {
    shared: Arc<Shared>,
}

impl Factory {
    /// The state of all paths at their last events.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// From now on writes what happens to the coupling to `writer`, as qlog events of the namespace
    /// `narrows`, and windows as events of `version`, in JSON text sequences; times are since `start`. noq,
    /// built with its feature `qlog`, logs the packets to a file of its own, on the same axis if it has the
    /// same start. Controllers write under noq's lock: to a writer that may wait, noq waits.
    ///
    /// # Errors
    /// The head of the file cannot be written, or the factory writes one already
    /// ([`io::ErrorKind::AlreadyExists`]). A later error ends the file, with a warning by `tracing`.
    pub fn qlog(
        &self,
        version: QlogVersion,
        writer: Box<dyn Write + Send>,
        start: Instant,
    ) -> io::Result<()> {
        self.shared.log_to(version, writer, start)
    }

    /// The state of a path of noq's, from what `Connection::congestion_state(id)` returns. None if the
    /// path has sent nothing yet, runs alone, or has another controller.
    pub fn path(&self, state: Box<dyn Controller>) -> Option<PathState> {
        let number = self.own(state)?.number()?;
        self.snapshot().paths.into_iter().find(|path| path.slot == number)
    }

    /// noq has abandoned a path (`PathEvent::Abandoned`), of which `Connection::congestion_state(id)`
    /// returned `state`: its siblings do not count it from now on. Without this they do until noq
    /// discards it after three timeouts, or it was silent for a second; and no longer than the program
    /// keeps what `congestion_state` returned.
    pub fn abandoned(&self, state: Box<dyn Controller>) {
        if let Some(path) = self.own(state) {
            path.leave();
        }
    }

    /// The program has parked a path on the law's advice, or uses it again: `parked`, of which
    /// `Connection::congestion_state(id)` returned `state`. From now on the law takes a parked path for a
    /// backup, and what only keeps it open, as pings, is not reported. [`crate::tend`] does this.
    pub fn parked(&self, state: Box<dyn Controller>, parked: bool) {
        if let Some(path) = self.own(state) {
            path.park(parked);
        }
    }

    fn own(&self, state: Box<dyn Controller>) -> Option<Box<PathController>> {
        let path = state.into_any().downcast::<PathController>().ok()?;
        path.is_of(&self.shared).then_some(path)
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(PathController::new(self.shared.clone(), current_mtu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_do_not_fit_are_refused_before_there_is_a_factory() {
        let lisa = || Coupling::new("lia+lisa").unwrap();
        let mut params = Params::default();
        assert!(lisa().with_params(params).is_ok());
        params.set("lisa.least", "20").unwrap();
        let error = lisa().with_params(params).unwrap_err().to_string();
        assert_eq!(error, "lisa.least: '20' is not at most lisa.most, 10");
        assert_eq!(lisa().with("lisa.least", "20").unwrap_err().to_string(), error);
    }
}
