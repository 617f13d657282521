//! What is done when the machine starts: a systemd unit that types the commands, and a sysctl.d file
//! that switches MPTCP on.
//!
//! The default itself does not go into sysctl.d: systemd reads that before the control is loaded, and
//! it would hide what the administrator's own files say was there before. The unit runs after them, and
//! before sysinit.target: the units of sockets, and of services, begin after that (systemd.socket(5)),
//! so that no listener is older. And which start this is.

use narrows_kernel::Error;
use narrows_laws::Control;
use narrows_laws::catalogue::control_of_kernel_name;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

const UNIT: &str = "etc/systemd/system/narrows.service";
const WANTED: &str = "etc/systemd/system/multi-user.target.wants/narrows.service";
const SYSCTL: &str = "etc/sysctl.d/90-narrows.conf";

/// How the files begin.
const OURS: &str = "# Written by `narrows kernel ... --boot`";
const NOT_OURS: &str = "not written by narrows; move it away";

/// The id that the kernel drew at this start of the machine.
///
/// # Errors
/// It cannot be read.
pub(crate) fn this_boot() -> Result<String, Error> {
    let path = Path::new("/proc/sys/kernel/random/boot_id");
    let id = fs::read_to_string(path).map_err(Error::io(path, "read"))?;
    Ok(id.trim_end().to_owned())
}

/// What is loaded and used at the start of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// The controls that are loaded.
    pub loads: Vec<Control>,
    /// The machine's default; true: for MPTCP only.
    pub default: Option<(Control, bool)>,
}

impl Boot {
    /// Reads the unit under `root` (normally `/`).
    ///
    /// # Errors
    /// A file cannot be read, or was not written by narrows.
    pub fn read(root: &Path) -> Result<Boot, Error> {
        ours(&root.join(SYSCTL))?;
        let path = root.join(UNIT);
        let text = ours(&path)?;
        let other = || Error::input(path.display().to_string(), NOT_OURS);
        let control = |name: &str| {
            name.parse().ok().or_else(|| control_of_kernel_name(name)).ok_or_else(other)
        };
        let mut boot = Boot::default();
        for line in text.lines().filter_map(|line| line.strip_prefix("ExecStart=")) {
            let words: Vec<&str> = line.split_whitespace().skip(1).collect();
            match words[..] {
                ["kernel", "load", ref names @ ..] => {
                    for name in names {
                        boot.load(&[control(name)?]);
                    }
                }
                ["kernel", "use", name, "--default", ref more @ ..] => {
                    boot.default = Some((control(name)?, more.contains(&"--mptcp-only")));
                }
                _ => return Err(other()),
            }
        }
        Ok(boot)
    }

    /// `controls` are loaded at the start.
    pub fn load(&mut self, controls: &[Control]) {
        for control in controls {
            if !self.loads.contains(control) {
                self.loads.push(*control);
            }
        }
    }

    /// `control` is loaded at the start, and the default.
    pub fn make_default(&mut self, control: Control, mptcp_only: bool) {
        self.load(&[control]);
        self.default = Some((control, mptcp_only));
    }

    /// `controls` are not loaded at the start.
    pub fn unload(&mut self, controls: &[Control]) {
        self.loads.retain(|control| !controls.contains(control));
        self.default = self.default.filter(|(control, _)| !controls.contains(control));
    }

    /// The files, with their paths under the root. `command` is the path of `narrows`.
    ///
    /// # Errors
    /// systemd would take the path of the command for something else.
    pub fn files(&self, command: &Path) -> Result<Vec<(&'static str, String)>, Error> {
        if self.loads.is_empty() {
            return Ok(Vec::new());
        }
        let command = command.display().to_string();
        let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
        if !command.chars().all(plain) {
            return Err(Error::input(
                command,
                "install narrows in a path without spaces or special characters",
            ));
        }
        let names: Vec<String> = self.loads.iter().map(Control::to_string).collect();
        let mut unit = format!(
            "{OURS}, which also changes and removes it.\n\
             [Unit]\n\
             Description=Coupled congestion control of MPTCP (Narrows)\n\
             DefaultDependencies=no\n\
             # What sysctl.d says is what was there before. Listeners and connections come later.\n\
             After=local-fs.target systemd-sysctl.service\n\
             Before=sysinit.target sockets.target network-pre.target shutdown.target\n\
             Wants=network-pre.target\n\
             Conflicts=shutdown.target\n\
             RequiresMountsFor={command} /sys/fs/bpf\n\
             \n\
             [Service]\n\
             Type=oneshot\n\
             RemainAfterExit=yes\n\
             ExecStart={command} kernel load {}\n",
            names.join(" ")
        );
        if let Some((control, mptcp_only)) = self.default {
            let only = if mptcp_only { " --mptcp-only" } else { "" };
            unit += &format!("ExecStart={command} kernel use {control} --default{only}\n");
        }
        unit += &format!(
            "ExecStop={command} kernel unload\n\
             \n\
             [Install]\n\
             WantedBy=multi-user.target\n"
        );
        let sysctl = format!("{OURS}: coupled control is for MPTCP.\nnet.mptcp.enabled = 1\n");
        Ok(vec![(UNIT, unit), (SYSCTL, sysctl)])
    }

    /// Makes the files under `root` say this; without a control there are none.
    ///
    /// # Errors
    /// One cannot be written; then they are as they were, as far as the system lets.
    pub fn write(&self, root: &Path, command: &Path) -> Result<(), Error> {
        let before = Boot::read(root)?;
        let written = self.write_files(root, &self.files(command)?);
        if written.is_err() {
            let _ = before.write_files(root, &before.files(command)?);
        }
        written
    }

    fn write_files(&self, root: &Path, files: &[(&str, String)]) -> Result<(), Error> {
        let wanted = root.join(WANTED);
        if files.is_empty() {
            for path in [wanted.clone(), root.join(UNIT), root.join(SYSCTL)] {
                if path.symlink_metadata().is_ok() {
                    fs::remove_file(&path).map_err(Error::io(&path, "remove"))?;
                }
            }
            // As systemctl disable does; it goes if we were the only one.
            let _ = wanted.parent().map(fs::remove_dir);
            return Ok(());
        }
        for (name, text) in files {
            let path = root.join(name);
            make_parent(&path)?;
            // Whole or not at all, whenever the power goes.
            let new = PathBuf::from(format!("{}.new", path.display()));
            let written = File::create(&new).and_then(|mut file| {
                file.write_all(text.as_bytes())?;
                file.sync_all()
            });
            written.map_err(Error::io(&new, "write"))?;
            fs::rename(&new, &path).map_err(Error::io(&path, "write"))?;
        }
        if wanted.symlink_metadata().is_err() {
            make_parent(&wanted)?;
            symlink("../narrows.service", &wanted).map_err(Error::io(&wanted, "write"))?;
        }
        Ok(())
    }

    /// The files as `--dry-run` shows them.
    ///
    /// # Errors
    /// As [`Boot::files`].
    pub fn show(&self, command: &Path) -> Result<String, Error> {
        let files = self.files(command)?;
        if files.is_empty() {
            return Ok(format!("# /{UNIT}, /{WANTED} and /{SYSCTL} would be removed\n"));
        }
        let mut text = String::new();
        for (name, content) in files {
            text += &format!("# /{name}\n{content}\n");
        }
        Ok(text + &format!("# /{WANTED} -> ../narrows.service\n"))
    }
}

/// The content of a file written by narrows; empty if there is none.
fn ours(path: &Path) -> Result<String, Error> {
    if path.symlink_metadata().is_err() {
        return Ok(String::new());
    }
    let text = fs::read_to_string(path).map_err(Error::io(path, "read"))?;
    if text.starts_with(OURS) {
        return Ok(text);
    }
    Err(Error::input(path.display().to_string(), NOT_OURS))
}

fn make_parent(path: &Path) -> Result<(), Error> {
    match path.parent() {
        Some(parent) => fs::create_dir_all(parent).map_err(Error::io(parent, "make")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = "/usr/local/bin/narrows";

    /// All that is under `root`, with what it says.
    fn tree(root: &Path) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for name in [UNIT, WANTED, SYSCTL] {
            if let Ok(text) = fs::read_to_string(root.join(name)) {
                all.push((name.to_owned(), text));
            }
        }
        all
    }

    #[test]
    fn what_was_written_is_read_and_what_is_taken_back_is_gone() {
        let root = std::env::temp_dir().join(format!("narrows-boot-{}", std::process::id()));
        let command = Path::new(COMMAND);
        let mut boot = Boot::default();
        boot.load(&[Control::LIA]);
        boot.make_default("olia+disjoint+hystart++".parse().unwrap(), true);
        boot.write(&root, command).unwrap();
        assert_eq!(Boot::read(&root).unwrap(), boot);
        let text = tree(&root);
        assert_eq!(text.len(), 3);
        assert_eq!(text[0].1, text[1].1, "the link leads to the unit");
        let use_line = "ExecStart=/usr/local/bin/narrows kernel use olia+disjoint+hystart++ \
                        --default --mptcp-only\n";
        assert!(text[0].1.contains(use_line), "{}", text[0].1);

        boot.write(&root, command).unwrap();
        assert_eq!(tree(&root), text, "twice is the same");
        boot.unload(&["olia+disjoint+hystart++".parse().unwrap()]);
        boot.write(&root, command).unwrap();
        let left = Boot { loads: vec![Control::LIA], default: None };
        assert_eq!(Boot::read(&root).unwrap(), left);
        boot.unload(&[Control::LIA]);
        boot.write(&root, command).unwrap();
        assert_eq!(tree(&root), []);
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_unit_begins_before_listeners_and_waits_for_nothing_that_comes_later() {
        let root = std::env::temp_dir().join(format!("narrows-boot-order-{}", std::process::id()));
        let mut boot = Boot::default();
        boot.make_default(Control::OLIA, true);
        boot.write(&root, Path::new("/bin/true")).unwrap();
        let unit = fs::read_to_string(root.join(UNIT)).unwrap();
        let before = unit.lines().find_map(|line| line.strip_prefix("Before=")).unwrap();
        // systemd.socket(5): a socket's unit begins after sysinit.target.
        assert!(before.split(' ').any(|word| word == "sysinit.target"), "{before}");
        let mut verify = std::process::Command::new("systemd-analyze");
        let folder = root.join("etc/systemd/system");
        // Before the system's own units, whose folders follow the colon.
        verify.env("SYSTEMD_UNIT_PATH", format!("{}:", folder.display()));
        match verify.args(["verify", "multi-user.target"]).output() {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(!said.contains("narrows"), "{said}");
            }
            Err(error) => println!("without systemd-analyze: {error}"),
        }
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn a_file_of_somebody_else_is_left_alone() {
        let root = std::env::temp_dir().join(format!("narrows-boot-other-{}", std::process::id()));
        let mut boot = Boot::default();
        boot.load(&[Control::LIA]);
        let theirs = [
            (UNIT, "[Service]\nExecStart=/bin/true\n".to_owned()),
            (UNIT, format!("{OURS}\nExecStart=/bin/true\n")),
            // Of a later narrows.
            (UNIT, format!("{OURS}\nExecStart=/bin/narrows kernel load nolaw\n")),
            (SYSCTL, "net.mptcp.enabled = 0\n".to_owned()),
        ];
        for (name, text) in theirs {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &text).unwrap();
            let error = boot.write(&root, Path::new(COMMAND)).unwrap_err().to_string();
            assert_eq!(error, format!("{}: {NOT_OURS}", path.display()));
            assert_eq!(tree(&root), [(name.to_owned(), text)]);
            fs::remove_file(path).unwrap();
        }
        fs::remove_dir_all(&root).unwrap();
    }
}
