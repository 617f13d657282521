//! What a scenario lets happen to its links.

use narrows_emu::{Packet, Wire};
use narrows_net::{ConfigError, LinkId, Nanos, Network};

use super::controls::kernel;
use crate::Error;
use crate::scenario::{EventKind, Scenario};

/// Lets happen now what happens to a link; `links` are the scenario's in the network. To flows and
/// their paths nothing does.
pub fn change(
    wire: &Wire,
    scenario: &Scenario,
    links: &[LinkId],
    what: &EventKind,
) -> Result<(), Error> {
    let (what, links) = (what.clone(), links.to_vec());
    let done = wire.with(move |network, now| apply(network, now, &what, &links));
    done.map_err(kernel)?.map_err(|error| Error::input(&scenario.name, error))
}

fn apply(
    network: &mut Network<Packet>,
    now: Nanos,
    what: &EventKind,
    links: &[LinkId],
) -> Result<(), ConfigError> {
    match what {
        EventKind::LinkUp(link, up) => network.set_up(now, links[*link], *up),
        EventKind::LinkHold(link, time) => network.hold(now, links[*link], now + time),
        EventKind::LinkRate(link, rate) => network.set_rate(now, links[*link], rate.clone())?,
        EventKind::LinkDelay(link, delay) => network.set_delay(now, links[*link], *delay)?,
        EventKind::PathLost(..) | EventKind::PathAdded(..) => {}
    }
    Ok(())
}
