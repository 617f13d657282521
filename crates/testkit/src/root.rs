//! What the root namespace has, and what must be there again at the end.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::sysctls::{sysctls, unchanged};
use crate::wait_until;

/// Links, addresses, routes, rules, sysctls and named namespaces, each under its name.
pub struct Root(BTreeMap<String, String>);

impl Root {
    /// As it is.
    pub fn now() -> Root {
        let mut all = BTreeMap::new();
        for arguments in [
            "-o link",
            "-o address",
            "-4 route show table all",
            "-6 route show table all",
            "-4 rule",
            "-6 rule",
        ] {
            let output = Command::new("ip").args(arguments.split(' ')).output().expect("ip");
            let text = String::from_utf8_lossy(&output.stdout);
            // Lifetimes of what a router or DHCP said run down.
            let counts = |word: &&str| !word.ends_with("sec");
            let lines = text.lines().map(|line| line.split(' ').filter(counts).collect::<Vec<_>>());
            let text = lines.map(|line| line.join(" ")).collect::<Vec<_>>().join("\n");
            all.insert(format!("ip {arguments}"), text);
        }
        all.insert("netns".into(), namespaces().join(" "));
        all.extend(sysctls(&["net"]));
        let children = fs::read_dir("/proc/self/task").expect("/proc").flatten();
        let children = children.map(|task| fs::read_to_string(task.path().join("children")));
        all.insert("children".into(), children.filter_map(Result::ok).collect());
        Root(all)
    }

    /// Waits until it is as it was, or panics.
    pub fn is_unchanged(&self) {
        wait_until(20, || unchanged(&self.0, &Root::now().0));
    }
}

/// Those with a name, but not of testbeds that live: other processes may have some.
fn namespaces() -> Vec<String> {
    let entries = fs::read_dir("/run/netns").into_iter().flatten().flatten();
    let mut names: Vec<_> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| {
        let id = name.strip_prefix("nr-").and_then(|name| name.split('-').next());
        id.is_none_or(|id| !Path::new("/run/narrows").join(format!("{id}.lock")).exists())
    });
    names.sort_unstable();
    names
}
