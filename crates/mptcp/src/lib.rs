//! MPTCP and TCP as the kernel of this machine reports them and lets them be set, by netlink and /proc:
//! sockets and connections, who holds them, the path manager, interfaces and routes. All of it but the
//! holders is about the network namespace that the calling thread is in (`narrows_netns`).

pub mod diag;
pub mod holders;
mod netlink;
pub mod pm;
pub mod routes;

use std::collections::BTreeMap;
use std::{fs, io};

/// MPTCP's counters (`MPTcpExt` in /proc/net/netstat; `nstat -az 'MPTcp*'`). Empty: no MPTCP.
///
/// # Errors
/// No /proc.
pub fn counters() -> io::Result<BTreeMap<String, u64>> {
    // /proc/net is that of the process' first thread.
    Ok(parse_counters(&fs::read_to_string("/proc/thread-self/net/netstat")?))
}

/// Two lines a group: names, then values.
fn parse_counters(text: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt: "));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else {
        return BTreeMap::new();
    };
    let values = values.split(' ').map(|value| value.parse().unwrap_or(0));
    names.split(' ').map(str::to_owned).zip(values).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_names() {
        let text = "TcpExt: SyncookiesSent SyncookiesRecv\nTcpExt: 5 6\n\
                    MPTcpExt: MPCapableSYNRX MPJoinSynRx\nMPTcpExt: 3 7\nIpExt: InNoRoutes\nIpExt: 0\n";
        let counters = parse_counters(text);
        assert_eq!(counters.len(), 2);
        assert_eq!(counters["MPJoinSynRx"], 7);
        assert_eq!(parse_counters("TcpExt: a\nTcpExt: 1\n").len(), 0);
    }
}
