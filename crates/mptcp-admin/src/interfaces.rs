//! Which interface a socket's packets leave by.

use narrows_foreign::Foreign;
use narrows_mptcp::diag::Socket;
use narrows_mptcp::routes;
use std::collections::HashMap;
use std::net::IpAddr;

/// The interfaces that sockets' packets leave by.
pub struct Interfaces {
    by_index: HashMap<u32, Foreign>,
    /// The kernel's answers so far: how it routes from one address to another.
    routes: HashMap<(IpAddr, IpAddr), Option<u32>>,
}

impl Interfaces {
    /// Those of the network namespace that this thread is in.
    pub fn look() -> Interfaces {
        let interfaces = routes::interfaces().unwrap_or_default().into_iter();
        Interfaces {
            by_index: interfaces.map(|one| (one.index, one.name)).collect(),
            routes: HashMap::new(),
        }
    }

    /// These, by their index.
    #[cfg(test)]
    pub fn named<const N: usize>(by_index: [(u32, Foreign); N]) -> Interfaces {
        Interfaces { by_index: by_index.into(), routes: HashMap::new() }
    }

    /// The one the socket is bound to, else that of its route.
    pub fn of(&mut self, socket: &Socket) -> Option<Foreign> {
        let (local, remote) = (socket.local.ip(), socket.remote.ip());
        let index = match socket.interface {
            0 => {
                (*self.routes.entry((local, remote)).or_insert_with(|| {
                    let route = routes::resolve(local, remote).ok().flatten()?;
                    Some(route.interface)
                }))?
            }
            bound => bound,
        };
        self.by_index.get(&index).cloned()
    }
}
