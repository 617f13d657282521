//! A client's paths: one for each local address that it has, opened and closed as these come and go.

use crate::idle::Idle;
use crate::local::{Local, sources};
use crate::{Error, MAX_PATHS};
use narrows_quic_sockets::Sockets;
use noq::{
    Connection, Endpoint, EndpointConfig, FourTuple, Path, PathId, PathStatus, TokioRuntime,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

/// What began at one local address.
#[derive(Debug)]
pub(crate) struct Line {
    /// None: what the host's routes say.
    pub local: Option<IpAddr>,
    path: Option<Path>,
    /// Bytes that arrived on former paths.
    before: u64,
}

impl Line {
    /// The open path.
    pub fn id(&self) -> Option<PathId> {
        self.path.as_ref().map(Path::id)
    }

    /// Bytes of UDP payload that arrived.
    pub fn bytes(&self) -> u64 {
        self.before + self.path.as_ref().map_or(0, |path| path.stats().udp_rx.bytes)
    }

    fn leave(&mut self) {
        self.before = self.bytes();
        self.path = None;
    }
}

/// The first of a server's addresses to which a path can begin at one of `locals`, else the first.
pub(crate) fn reached(servers: &[SocketAddr], locals: &[Local]) -> SocketAddr {
    let can_begin = |server: &&SocketAddr| !sources(locals, server.is_ipv6()).is_empty();
    *servers.iter().find(can_begin).unwrap_or(&servers[0])
}

/// The paths to a server.
#[derive(Debug)]
pub(crate) struct Paths {
    locals: Vec<Local>,
    server: SocketAddr,
    sockets: Sockets,
    lines: Vec<Line>,
    idle: Idle,
}

impl Paths {
    /// Paths to `server` from `locals`; without any it is one, from where the routes say. And the endpoint
    /// that they belong to.
    pub fn new(locals: &[Local], server: SocketAddr) -> Result<(Paths, Endpoint), Error> {
        let sockets = Sockets::default();
        let mut lines = Vec::new();
        let endpoint = if locals.is_empty() {
            lines.push(Line { local: None, path: None, before: 0 });
            let any: IpAddr = match server {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            Endpoint::client(SocketAddr::new(any, 0))
        } else {
            for source in sources(locals, server.is_ipv6()).iter().take(MAX_PATHS as usize) {
                sockets
                    .add(source.address, || source.bind())
                    .map_err(|error| Error::input(format!("--path {}", source.address), error))?;
                lines.push(Line { local: Some(source.address), path: None, before: 0 });
            }
            if lines.is_empty() {
                let locals: Vec<String> = locals.iter().map(Local::to_string).collect();
                let family = if server.is_ipv6() { "IPv6" } else { "IPv4" };
                let message = format!("this host has no {family} address of it now");
                return Err(Error::input(format!("--path {}", locals.join(", ")), message));
            }
            let (config, runtime) = (EndpointConfig::default(), Arc::new(TokioRuntime));
            let sockets = Box::new(sockets.clone());
            Endpoint::new_with_abstract_socket(config, None, sockets, runtime)
        };
        let endpoint = endpoint.map_err(|error| Error::input("UDP socket", error))?;
        Ok((
            Paths { locals: locals.into(), server, sockets, lines, idle: Idle::default() },
            endpoint,
        ))
    }

    /// The connection's first path is that of the first address.
    pub fn connected(&mut self, connection: &Connection) {
        self.lines[0].path = connection.path(PathId::ZERO);
    }

    /// Looks which addresses there are: opens and closes paths.
    pub fn look(&mut self, connection: &Connection) {
        for line in &mut self.lines {
            // noq has given it up.
            if line.id().is_some_and(|id| connection.path(id).is_none()) {
                line.leave();
            }
        }
        let open: Vec<PathId> = self.lines.iter().filter_map(Line::id).collect();
        self.idle.set(connection, open.into_iter());
        if self.locals.is_empty() || !connection.is_multipath_enabled() {
            return;
        }
        let sources = sources(&self.locals, self.server.is_ipv6());
        for source in &sources {
            if !self.lines.iter().any(|line| line.local == Some(source.address)) {
                self.lines.push(Line { local: Some(source.address), path: None, before: 0 });
            }
        }
        // Addresses that are gone and brought nothing: those of privacy change every day.
        self.lines.retain(|line| {
            let here = sources.iter().any(|source| line.local == Some(source.address));
            here || line.path.is_some() || line.before > 0
        });
        let open = |lines: &[Line]| lines.iter().filter(|line| line.path.is_some()).count();
        for at in 0..self.lines.len() {
            let Some(local) = self.lines[at].local else { continue };
            let source = sources.iter().find(|source| source.address == local);
            let is_open = self.lines[at].path.is_some();
            match source {
                None if is_open => {
                    // It is refused for the last one, which then waits for an address.
                    let closed =
                        self.lines[at].path.as_ref().is_some_and(|path| path.close().is_ok());
                    if closed {
                        self.lines[at].leave();
                        self.sockets.remove(local);
                    }
                }
                // What fails now is tried at the next look.
                Some(source) if self.sockets.add(source.address, || source.bind()).is_err() => {}
                Some(_) if !is_open && open(&self.lines) < MAX_PATHS as usize => {
                    let four = FourTuple::new(self.server, Some(local));
                    let opening = connection.open_path(four, PathStatus::Available);
                    let id = opening.path_id();
                    self.lines[at].path = id.and_then(|id| connection.path(id));
                }
                _ => {}
            }
        }
    }

    /// By local address.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_server_with_two_families_that_of_the_paths_is_taken() {
        let [v6, v4] = ["[::1]:1", "127.0.0.1:1"].map(|address| address.parse().unwrap());
        let local = |text: &str| text.parse::<Local>().unwrap();
        assert_eq!(reached(&[v6, v4], &[local("127.0.0.2")]), v4);
        assert_eq!(reached(&[v6, v4], &[]), v6);
        // 192.0.2.0/24 is for documentation: this host has none of it.
        assert_eq!(reached(&[v6, v4], &[local("192.0.2.1")]), v6);
    }
}
