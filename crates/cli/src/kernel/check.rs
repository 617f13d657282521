//! `narrows kernel check`.

use narrows_mptcp_admin::check::check as look;
use narrows_netns::Namespace;

use crate::error::Error;
use crate::print;

/// Checks this machine and MPTCP in a network namespace. Missing features are an error.
pub fn check(netns: Option<&str>) -> Result<(), Error> {
    let namespace = match netns {
        Some(name) => Namespace::named(name),
        None => Namespace::current(),
    };
    let namespace = namespace.map_err(|error| Error::input("--netns", error))?;
    let place = || format!("network namespace {}", namespace.name);
    let report = look(&namespace).map_err(|error| Error::input(place(), error))?;
    print(&report.to_string())?;
    match report.missing() {
        0 => Ok(()),
        missing => Err(Error::no("not ready", format!("{missing} missing"))),
    }
}
