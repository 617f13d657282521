//! `narrows kernel`.

mod advise;
mod check;
mod export;
mod receiver;
mod recommend;
mod status;
mod trial;
mod watch;

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use narrows_kernel::Settings;
use narrows_kernel::control::loadable;
use narrows_kernel::object;
use narrows_kernel::pins::{Change, loaded};
use narrows_kernel::register::is_ours;
use narrows_laws::catalogue::{control_of_kernel_name, kernel_name};
use narrows_laws::user::{self, Checks};
use narrows_laws::{Control, Law};
use narrows_mptcp_admin::assign::{
    Admin, Keepers, Kept, Moved, Place, Process, Target, Undone, Use, uses,
};
use narrows_mptcp_admin::boot::Boot;
use narrows_mptcp_admin::trial::Report;

use crate::args::kernel::{self as args, Command};
use crate::error::Error;
use crate::{print, set, stop};

/// Runs the command.
pub fn kernel(command: &Command) -> Result<(), Error> {
    match command {
        Command::Check { netns } => check::check(netns.as_deref()),
        Command::Status(args) => status::status(args),
        Command::Watch(args) => watch::watch(args),
        Command::Recommend(args) => recommend::recommend(args),
        Command::Advise(args) => advise::advise(args),
        Command::Receiver(args) => receiver::receiver(args),
        Command::Export(args) => export::export(args),
        Command::Trial(args) => trial::trial(args),
        Command::Load { names, set, signal, boot } => {
            let controls = controls(names)?;
            for &control in &controls {
                loadable(control)?;
                has_use_for_its_detector(control)?;
                only_built_in(boot, Some(control))?;
            }
            let settings =
                Settings { params: set::params(set)?, signal: signal.unwrap_or_default() };
            are_of(set, &controls)?;
            if signal.is_some() && !controls.iter().any(|control| control.detector.decides()) {
                let controls: Vec<String> = controls.iter().map(Control::to_string).collect();
                let message = format!("{}: no detector that decides", controls.join(", "));
                return Err(Error::input("--signal", message));
            }
            let now = |admin: &Admin, stop: &AtomicBool| load(admin, &controls, &settings, stop);
            with_boot(boot, |boot| boot.load(&controls), now)
        }
        Command::Use { name, target, mptcp_only, open, boot } => {
            let ((name, control), target) = (named(name)?, target.target());
            control.map_or(Ok(()), loadable)?;
            only_built_in(boot, control)?;
            for_the_machine(boot, &target, control.map(|control| (control, *mptcp_only)))?;
            let change = |boot: &mut Boot| {
                boot.make_default(control.expect("only_built_in refuses none"), *mptcp_only);
            };
            with_boot(boot, change, |admin, _| use_it(admin, &name, &target, *mptcp_only, *open))
        }
        Command::Unuse { target, open, boot } => {
            let target = target.target();
            for_the_machine(boot, &target, None)?;
            with_boot(boot, |boot| boot.default = None, |admin, _| unuse(admin, &target, *open))
        }
        Command::Unload { names, boot } => {
            let all: Vec<_> = names.iter().map(|name| named(name)).collect::<Result<_, _>>()?;
            let (names, controls): (Vec<_>, Vec<_>) = all.into_iter().unzip();
            let change = |boot: &mut Boot| match controls[..] {
                [] => *boot = Boot::default(),
                _ => boot.unload(&controls.iter().copied().flatten().collect::<Vec<_>>()),
            };
            with_boot(boot, change, |admin, _| unload(admin, names))
        }
        Command::Objects { folder } => objects(folder),
    }
}

/// How soon Ctrl-C is noticed.
const SLICE: Duration = Duration::from_millis(50);

/// False: Ctrl-C came first.
fn wait(until: Instant, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => return true,
            left => sleep(left.min(SLICE)),
        }
    }
    false
}

/// Refuses a detector that decides for a law of narrows that would not couple: `cubic` where `gcubic` was
/// meant.
fn has_use_for_its_detector(control: Control) -> Result<(), Error> {
    if !control.detector.decides() || control.law.couples() || control.law == Law::USER {
        return Ok(());
    }
    let laws: Vec<&str> = Law::all().filter(|law| law.couples()).map(Law::name).collect();
    let message = format!(
        "{} does not couple subflows, so that a detector changes nothing; expected one of {}",
        control.law.name(),
        laws.join(", ")
    );
    Err(Error::input(control.to_string(), message))
}

/// Refuses --boot for a user's law: its header may be missing at boot.
fn only_built_in(boot: &args::Boot, control: Option<Control>) -> Result<(), Error> {
    if boot.boot && control.is_none_or(|control| control.law == Law::USER) {
        return Err(Error::input("--boot", "only for the laws of narrows, not for your own"));
    }
    Ok(())
}

/// Refuses settings that none of `controls` has.
fn are_of(settings: &[String], controls: &[Control]) -> Result<(), Error> {
    let has = |control: &Control, group: &str| {
        let Control { law, detector, join, .. } = control;
        [law.name(), detector.name(), join.name()].contains(&group)
            || (group == "decision" && detector.decides())
            || (group == "window" && !law.is_model())
    };
    for text in settings {
        let name = text.split('=').next().unwrap_or_default();
        let group = name.split('.').next().unwrap_or_default();
        if !controls.iter().any(|control| has(control, group)) {
            let controls: Vec<String> = controls.iter().map(Control::to_string).collect();
            let message = format!("{name} is no parameter of {}", controls.join(", "));
            return Err(Error::input("--set", message));
        }
    }
    Ok(())
}

fn load(
    admin: &Admin,
    controls: &[Control],
    settings: &Settings,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let changes = admin.load(controls, settings, || stop.load(Ordering::Relaxed))?;
    let mut text = String::new();
    for (name, change) in changes {
        let change = match change {
            Change::Loaded => "loaded",
            Change::Replaced => {
                "loaded, replacing another build or settings; open connections keep the old ones"
            }
            Change::None => "already loaded",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name}: {change}");
    }
    print(&text)
}

fn use_it(
    admin: &Admin,
    name: &str,
    target: &Target,
    mptcp_only: bool,
    open: bool,
) -> Result<(), Error> {
    let (Use { name, place, .. }, moved) = admin.assign(name, target, mptcp_only, open)?;
    let (whose, place) = match place {
        Place::Netns { netns, before, .. } if mptcp_only => {
            (format!("MPTCP connections; plain TCP keeps {before}"), netns)
        }
        Place::Netns { netns, before, .. } => (format!("connections instead of {before}"), netns),
        Place::Cgroup { cgroup, .. } => {
            let whose = if mptcp_only { "MPTCP connections" } else { "connections" };
            (whose.to_owned(), cgroup.as_path().into())
        }
    };
    let mut text = format!("{name}: used in {place} for new {whose}\n");
    write_moved(&mut text, &moved);
    if moved.open > 0 {
        let open = count(moved.open, "open MPTCP connection", "keep");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{open} the former control (--open moves them)");
    }
    let routes = target.routes_with_others(&name);
    if let Some(first) = routes.first() {
        let more = match routes.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "not used over routes with a control of their own: {first}{more}");
    }
    print(&text)
}

fn unuse(admin: &Admin, target: &Target, open: bool) -> Result<(), Error> {
    let (undone, moved) = admin.unassign(target, open)?;
    let mut text = format!("{}: {}\n", target.place(), show(&undone));
    write_moved(&mut text, &moved);
    if moved.open > 0 {
        let open = count(moved.open, "open MPTCP connection", "keep");
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{open} it (--open moves them); their later subflows get it too if a socket option \
             was set, else the default"
        );
    }
    print(&text)
}

/// What was moved, and what not.
fn write_moved(text: &mut String, moved: &Moved) {
    // Writing to a string cannot fail.
    for (n, what) in
        [(moved.listeners, "older MPTCP listener"), (moved.connections, "open MPTCP connection")]
    {
        if n > 0 {
            let _ = writeln!(text, "moved {}", count(n, what, "").trim_end());
        }
    }
    for Kept { local, remote, control, process, why } in &moved.kept {
        let what = match remote {
            Some(remote) => format!("connection {local} > {remote}"),
            None => format!("listener {local}"),
        };
        let whose = process.as_ref().map(|(pid, command)| format!(" of {command} (pid {pid})"));
        let whose = whose.unwrap_or_default();
        let _ = writeln!(text, "not moved: {what}{whose} keeps {control}: {why}");
    }
}

/// A number, what it counts, and what they do.
fn count(n: usize, what: &str, verb: &str) -> String {
    match (n, verb) {
        (1, "") => format!("1 {what}"),
        (1, verb) => format!("1 {what} {verb}s"),
        (n, verb) => format!("{n} {what}s {verb}"),
    }
}

fn unload(admin: &Admin, mut names: Vec<String>) -> Result<(), Error> {
    let (mut set_back, mut swept) = (Vec::new(), Ok(()));
    if names.is_empty() {
        // What cannot be set back keeps nothing from being unloaded.
        (set_back, swept) = narrows_mptcp_admin::advise::sweep();
        print(&set_back.iter().map(|line| format!("{line}\n")).collect::<String>())?;
        names = loaded()?.into_iter().map(|held| held.name).collect();
        names.extend(uses()?.into_iter().map(|used| used.name));
        names.sort();
        names.dedup();
    }
    if names.is_empty() && set_back.is_empty() && swept.is_ok() {
        return print("nothing is loaded\n");
    }
    for name in names {
        let mut text = String::new();
        let done = admin.unload(&name)?;
        // Writing to a string cannot fail.
        if done.trial {
            let _ = writeln!(text, "trial: ended");
        }
        text.extend(done.found.as_ref().map(Report::text));
        for (place, undone) in &done.uses {
            let _ = writeln!(text, "{place}: {}", show(undone));
        }
        for (namespace, now) in &done.others {
            let _ = writeln!(text, "namespace {namespace}: {now} instead of the inherited {name}");
        }
        write_moved(&mut text, &done.moved);
        let _ = match done.loaded {
            false => writeln!(text, "{name}: not loaded by narrows"),
            true => writeln!(text, "{name}: unloaded{}", show_keepers(&done.keepers)),
        };
        // At once: the next one may fail.
        print(&text)?;
        if done.trial {
            admin.forget_trial()?;
        }
    }
    swept.map_err(Error::from)
}

/// What still runs an unloaded control, in words; nothing where nothing does.
fn show_keepers(keepers: &Keepers) -> String {
    /// Processes that are named; a server may have hundreds of workers.
    const NAMED: usize = 8;
    let Keepers { sockets, unheld, processes } = keepers;
    let mut text = match sockets {
        0 => return String::new(),
        1 => "; 1 socket keeps it until it closes".to_owned(),
        n => format!("; {n} sockets keep it until they close"),
    };
    let name = |process: &Process| format!("{} (pid {})", process.command, process.pid);
    let mut held: Vec<String> = processes.iter().take(NAMED).map(name).collect();
    if processes.len() > NAMED {
        held.push(format!("{} more processes", processes.len() - NAMED));
    }
    if *unheld > 0 {
        held.push(format!("no process: {unheld}"));
    }
    // Writing to a string cannot fail.
    let _ = write!(text, ", held by {}", held.join(", "));
    text
}

/// Writes the objects for bpftool.
fn objects(folder: &Path) -> Result<(), Error> {
    let failed =
        |path: &Path, error| Error::input(path.display(), format!("cannot write: {error}"));
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut text = String::new();
    for law in Law::all() {
        let path = folder.join(format!("{}.bpf.o", kernel_name(Control::of(law))));
        std::fs::write(&path, object::of(law)).map_err(|error| failed(&path, error))?;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", path.display());
    }
    print(&text)
}

/// The result of undoing a use, in words.
fn show(undone: &Undone) -> String {
    match undone {
        Undone::Nothing => "no control of narrows is in use there".into(),
        Undone::Gone { name } => format!("no longer exists; {name} was in use there"),
        Undone::Restored { name, now } => format!("restored {now} instead of {name}"),
        Undone::Changed { name, now } => {
            format!("left at {now}: it was changed from {name} since")
        }
        Undone::Detached { name } => format!("no longer {name}"),
    }
}

/// --boot needs the machine's default as target. `used`: the control to be used, and whether for
/// MPTCP only.
fn for_the_machine(
    boot: &args::Boot,
    target: &Target,
    used: Option<(Control, bool)>,
) -> Result<(), Error> {
    let option = match target {
        Target::Default => return Ok(()),
        _ if !boot.boot => return Ok(()),
        Target::Netns(name) => format!("--netns {name}"),
        Target::Cgroup(path) => format!("--cgroup {}", path.display()),
    };
    let message = match used {
        None => "nothing is in use there at boot; omit --boot".to_owned(),
        Some((control, mptcp_only)) => format!(
            "does not exist yet at boot; put this into the service (systemctl edit): \
             ExecStartPre=+{} kernel use {control} {option}{}",
            this_command()?.display(),
            if mptcp_only { " --mptcp-only" } else { "" }
        ),
    };
    Err(Error::input(format!("--boot with {option}"), message))
}

/// Does `now`, and with --boot also changes the files for boot: both or none.
fn with_boot(
    options: &args::Boot,
    change: impl FnOnce(&mut Boot),
    now: impl FnOnce(&Admin, &AtomicBool) -> Result<(), Error>,
) -> Result<(), Error> {
    // Ctrl-C interrupts loading, which takes seconds. Other steps are completed.
    let begin = || -> Result<_, Error> { Ok((Admin::open()?, stop::on_signal()?)) };
    if !options.boot {
        let (admin, stop) = begin()?;
        return now(&admin, &stop);
    }
    let (root, command) = (Path::new("/"), this_command()?);
    // The lock also covers reading and writing the files.
    let begun = if options.dry_run { None } else { Some(begin()?) };
    let before = Boot::read(root)?;
    let mut after = before.clone();
    change(&mut after);
    if after != Boot::default() && Path::new("/etc/openwrt_release").exists() {
        let message = "OpenWrt has no systemd; expected the control in /etc/config/narrows and \
                       `/etc/init.d/narrows enable`";
        return Err(Error::input("--boot", message));
    }
    let Some((admin, stop)) = begun else { return print(&after.show(&command)?) };
    after.write(root, &command)?;
    if let Err(error) = now(&admin, &stop) {
        before.write(root, &command)?;
        return Err(error);
    }
    let runs = Path::new("/run/systemd/system").exists();
    if runs {
        reload_systemd()?;
    }
    print(match (after == Boot::default(), runs) {
        (true, _) => "at boot: nothing\n",
        (false, true) => "at boot: narrows.service\n",
        (false, false) => "at boot: narrows.service, by systemd, which does not run here now\n",
    })
}

/// Reloads systemd's units.
fn reload_systemd() -> Result<(), Error> {
    let status = std::process::Command::new("systemctl").arg("daemon-reload").status();
    match status {
        Ok(status) if status.success() => Ok(()),
        _ => Err(Error::input("systemctl daemon-reload", "failed; the unit file was written")),
    }
}

fn this_command() -> Result<PathBuf, Error> {
    std::env::current_exe().map_err(|error| Error::input("/proc/self/exe", error))
}

fn controls(names: &[String]) -> Result<Vec<Control>, Error> {
    names.iter().map(|name| control(name)).collect()
}

/// The kernel name of a control, and the control; none for a user's law that another process
/// loaded, which has no other name.
fn named(name: &str) -> Result<(String, Option<Control>), Error> {
    match control(name) {
        Ok(control) => Ok((kernel_name(control), Some(control))),
        Err(_) if is_ours(name) && loaded()?.iter().any(|held| held.name == name) => {
            Ok((name.to_owned(), None))
        }
        Err(error) => Err(error),
    }
}

/// A control by either of its names, or by the header of a user's law.
fn control(name: &str) -> Result<Control, Error> {
    if name.ends_with(".h") {
        let law = user::load(Path::new(name), Checks::None).map_err(Error::of_law)?;
        object::compile_user().map_err(Error::of_law)?;
        return Ok(Control::of(law));
    }
    match control_of_kernel_name(name) {
        Some(control) => Ok(control),
        None => name.parse().map_err(|error| Error::input(name, error)),
    }
}
