//! A scenario's links and the routes of its flows, in whatever takes links and routes.

use narrows_net::{ConfigError, LinkConfig, LinkId, Nanos, Network, Rate, RouteId};

use crate::scenario::{FlowPath, Scenario};

/// No packet is too large for an access link: the shared links limit the MTU.
const ACCESS_MTU: u32 = 65_535;

/// What takes links and routes.
pub trait Routed {
    fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, ConfigError>;
    fn add_route(&mut self, links: &[LinkId]) -> Result<RouteId, ConfigError>;
}

impl<P: Copy> Routed for Network<P> {
    fn add_link(&mut self, config: LinkConfig) -> Result<LinkId, ConfigError> {
        Network::add_link(self, config)
    }

    fn add_route(&mut self, links: &[LinkId]) -> Result<RouteId, ConfigError> {
        Network::add_route(self, links)
    }
}

/// Adds the links of `scenario`.
pub fn add_links(to: &mut impl Routed, scenario: &Scenario) -> Result<Vec<LinkId>, ConfigError> {
    scenario.links.iter().map(|link| to.add_link(link.config.clone())).collect()
}

/// Adds the data's way of a path: the sender's access link, then the shared ones. `links` are the
/// scenario's.
pub fn add_forward(
    to: &mut impl Routed,
    links: &[LinkId],
    path: &FlowPath,
) -> Result<RouteId, ConfigError> {
    let mut route = vec![own_link(to, "access", path.access_delay, path.access_jitter)?];
    route.extend(path.links.iter().map(|&link| links[link]));
    to.add_route(&route)
}

/// Adds the acknowledgements' way of a path: the shared links, then the rest of the way.
pub fn add_reverse(
    to: &mut impl Routed,
    links: &[LinkId],
    path: &FlowPath,
) -> Result<RouteId, ConfigError> {
    let mut route: Vec<LinkId> = path.back.iter().map(|&link| links[link]).collect();
    route.push(own_link(to, "return", path.return_delay, 0)?);
    to.add_route(&route)
}

/// A link of one flow alone, without limits of its own.
fn own_link(
    to: &mut impl Routed,
    name: &str,
    delay: Nanos,
    jitter: Nanos,
) -> Result<LinkId, ConfigError> {
    to.add_link(LinkConfig {
        name: name.to_owned(),
        rate: Rate::Infinite,
        delay,
        jitter,
        mtu: ACCESS_MTU,
        quantiles: false,
        ..LinkConfig::default()
    })
}
