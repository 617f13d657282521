//! Scenarios on this machine's kernel from Python, by the library that cargo has just built. Where it has not the kernel,
//! and without root, BTF or TUN devices, the test says so and passes.

mod library;

use std::process::Command;
use std::sync::atomic::AtomicBool;

use narrows_lab::{Edits, Job, host, load};
use narrows_testkit::machine::{mptcp, tools, tun, turn_of_scenarios, without_scenarios};
use narrows_testkit::root::Root;

const RUNS: &str = r#"
import narrows

brief = narrows.Scenario.load("sbd/nsb-2").set("warmup", "1 s").set("duration", "2 s")
run = narrows.run(brief, cc="lia", on="kernel", series=True)
print(run)
print(run.summary.to_pylist()[0]["goodput_mbps"] > 0, len(run.series) > 0)
both = narrows.compare(brief, "lia", 1, on=["sim", "kernel"], progress=False)
# What a busy machine made of a run may count for nothing.
print([row["host"] for row in both.rows.to_pylist()], len(both.runs))
"#;

/// Can `lia` run on the kernel?
fn able() -> Result<(), String> {
    let scenario = load("sbd/nsb-2", &Edits::default()).unwrap();
    let stop = AtomicBool::new(false);
    let job = Job { control: Some("lia".parse().unwrap()), ..Job::new(&scenario, &stop) };
    let ready = host("kernel").and_then(|kernel| kernel.ready(&job));
    ready.map_err(|reason| reason.to_string())?;
    tun().and_then(|()| mptcp()).and_then(|()| tools(&["python3"]))
}

#[test]
fn root_runs_scenarios_on_the_kernel() {
    let Some(_turn) = turn_of_scenarios("the kernel from Python", able()) else { return };
    let before = without_scenarios(Root::now);
    let package = library::package();
    let output = Command::new("python3")
        .args(["-c", RUNS])
        .env("PYTHONPATH", package.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "<narrows.Run sbd/nsb-2 under lia, seed 1 on kernel>
True True
['sim', 'kernel'] 2
";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    without_scenarios(|| before.is_unchanged());
}
