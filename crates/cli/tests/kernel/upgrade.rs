//! An upgrade under living connections, and the way back: of a law there are two builds, with other
//! programs, and each command loads the one that it has.

use super::host::Host;
use super::older::Server;
use narrows_testkit::wait_until;
use std::path::Path;

const LAW: &str = r#"
#include "law.h"
#include "laws/reno.h"
NR_INLINE nr_s64 nr_mine_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{
	return GROWTH;
}
NR_LAW(mine) = {
    .name = "mine",
    .code = "mine",
    .about = "Reno, or half of it",
    .source = "a test",
    .credit = nr_mine_credit,
};
"#;

/// Writes a build of a law, whose window grows by `growth`; its header.
fn build(folder: &Path, growth: &str) -> String {
    let text = LAW.replace("GROWTH", growth);
    std::fs::create_dir(folder).unwrap();
    let header = folder.join("mine.h");
    std::fs::write(&header, text).unwrap();
    header.to_str().unwrap().to_owned()
}

/// How many builds the kernel has, with those that are kept by a connection alone.
fn builds(host: &Host) -> usize {
    host.sh("bpftool -j map list | grep -o '\"name\":\"nr_ops\"' || true").lines().count()
}

/// How many sockets have run the build that is loaded.
fn joins(host: &Host) -> usize {
    let counters =
        host.sh("bpftool -j map lookup pinned /sys/fs/bpf/narrows/nr_mine/counters key 0 0 0 0");
    counters.matches("\"0x02\"").count()
}

#[test]
fn living_connections_outlive_an_upgrade_and_the_way_back() {
    let Some(host) = Host::new("upgrade and back") else { return };
    let before = host.state();
    let folder = tempfile::tempdir().unwrap();
    let older = build(&folder.path().join("older"), "nr_reno_credit(p->cwnd)");
    let newer = build(&folder.path().join("newer"), "nr_reno_credit(p->cwnd) / 2");
    let none = builds(&host);

    assert_eq!(host.does(&["load", &older]), "nr_mine: loaded\n");
    host.does(&["use", "nr_mine", "--default"]);
    let loaded = host.state();
    let mut server = Server::new(&host, "");
    server.does("listen");
    server.does("connect");
    assert_eq!((builds(&host), joins(&host)), (none + 1, 1), "one build, and both ends run it");

    let replaced = "nr_mine: loaded, replacing another build or settings; open connections keep the old ones\n";
    for (at, header) in [&newer, &older].into_iter().enumerate() {
        assert_eq!(host.does(&["load", header]), replaced);
        assert_eq!(host.state(), loaded);
        // What is open keeps its build, and that stays for it alone.
        assert_eq!((builds(&host), joins(&host)), (none + 2 + at, 0));
        server.does("send");
        // What begins has the new one.
        server.does("listen");
        server.does("connect");
        assert_eq!((builds(&host), joins(&host)), (none + 2 + at, 1));
        let status = host.does(&["status"]);
        let ends = format!(": {} connections\n", 2 * (2 + at));
        assert!(status.contains(&ends), "{status}");
    }
    server.does("send");
    drop(server);
    // The builds that nothing runs are gone.
    wait_until(30, || match builds(&host) - none {
        1 => Ok(()),
        more => Err(format!("{more} builds")),
    });
    host.does(&["unload"]);
    assert_eq!(host.state(), before);
}
