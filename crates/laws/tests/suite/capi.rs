//! The C library, `capi/`: built by make and cc, it takes the decisions that Rust takes of the same
//! events, bit by bit.

use narrows_laws::replay::{queued, trace};
use narrows_laws::{Advice, Conn, Control, Detector, Event, EventKind, Law, MAX_PATHS, Params};
use narrows_laws::{Place, Private, SlowStart, catalogue, params, raw};
use narrows_testkit::blocks;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const CAPI: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/capi");
const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/capi");

fn succeeded(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{error}", output.status);
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A command that knows nothing of a make or cargo that runs this test.
fn apart(program: &str) -> Command {
    let mut command = Command::new(program);
    for variable in ["MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PREFIX", "DESTDIR", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    command
}

/// What it prints.
fn make(targets: &[&str], settings: &[String]) -> String {
    let mut make = apart("make");
    make.args(["-s", "-C", CAPI, "CFLAGS=-O1 -Werror"]).args(settings).args(targets);
    text(&succeeded(&mut make).stdout)
}

/// Where the library is built, once.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
        // Flags of distributions.
        let flags = "CFLAGS=-O2 -g -flto=auto -ffat-lto-objects".to_owned();
        make(&["all", &format!("{}/example", folder.display())], &[into(&folder), flags]);
        folder
    })
}

fn into(folder: &Path) -> String {
    format!("O={}", folder.display())
}

/// Compiles a program of `tests/capi` against the static library.
fn program(name: &str) -> PathBuf {
    let folder = tempfile::tempdir_in(built()).unwrap().keep();
    let to = folder.join(name);
    succeeded(
        Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-I", CAPI, "-o"])
            .args([&to, &Path::new(TESTS).join(format!("{name}.c"))])
            .arg(built().join("libnarrows_cc.a")),
    );
    to
}

/// `struct narrows_path`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Read {
    bytes: u64,
    pacing_rate: u64,
    bw: u64,
    credit: i64,
    words: [u32; 6],
}

const READ: usize = 4 * 8 + 6 * 4;

impl Read {
    fn parse(bytes: &[u8]) -> Read {
        let long = |n: usize| u64::from_ne_bytes(bytes[8 * n..][..8].try_into().unwrap());
        let word = |n: usize| u32::from_ne_bytes(bytes[32 + 4 * n..][..4].try_into().unwrap());
        Read {
            bytes: long(0),
            pacing_rate: long(1),
            bw: long(2),
            credit: long(3) as i64,
            words: std::array::from_fn(word),
        }
    }

    /// What Rust says of a path that is there.
    fn of(conn: &Conn, path: usize, private: &[Private]) -> Read {
        let line = conn.path(path);
        let there =
            (0..MAX_PATHS).filter(|&i| conn.path(i).cwnd > 0).fold(0, |all, i| all | 1 << i);
        let credit = private[path].credit();
        let part = i128::from(credit) * i128::from(line.mss) / i128::from(raw::ONE_PACKET);
        let place = match conn.decision().map(|decision| decision.places[path]) {
            Some(Place::Group(group)) => group.into(),
            Some(Place::Clear) => 0xfe,
            Some(Place::Undecided) | None => 0xff,
        };
        let advice = match line.advice() {
            Advice::None => 0,
            Advice::Backup => 1,
            Advice::Close => 2,
            other => panic!("{other:?}"),
        };
        let cut = (conn.cuts() & conn.masks()).to_le_bytes()[path];
        Read {
            bytes: (i128::from(line.cwnd) * i128::from(line.mss) + part) as u64,
            pacing_rate: line.pacing_rate,
            bw: line.bw,
            credit,
            words: [
                line.cwnd,
                line.ssthresh,
                advice,
                u32::from(conn.mask(path)) & there,
                u32::from(cut) & there,
                place,
            ],
        }
    }
}

/// The bytes of an event, as C has them.
fn bytes(path: u32, event: &Event) -> Vec<u8> {
    let e = event;
    let longs = [path.into(), e.now_us, e.sent_us, e.rate];
    let words = [
        e.kind,
        e.flags,
        e.state,
        e.delivered,
        e.lost,
        e.marked,
        e.rtt_us,
        e.owd_us as u32,
        e.dwell_us,
        e.inflight,
        e.sample_inflight,
        e.sample_delivered,
        e.sample_lost,
        e.cwnd,
        e.ssthresh,
        e.srtt8_us,
        e.mss,
        e.wait_us,
    ];
    let longs = longs.iter().flat_map(|long: &u64| long.to_ne_bytes());
    longs.chain(words.iter().flat_map(|word: &u32| word.to_ne_bytes())).collect()
}

/// The same events through both; how many answers were equal, and how many places were groups of several
/// paths.
fn compare(replay: &Path, control: Control, settings: &[(&str, &str)], seconds: u64) -> [usize; 2] {
    let params = Params::default().with(settings);
    let mut conn = Conn::with_params(control, &params);
    let mut private = [Private::default(); MAX_PATHS];
    let mut expected = Vec::new();
    let mut answer = |path: usize, event: &Event| {
        let output = conn.event(path, &mut private[path], event);
        let left = event.kind == EventKind::Left as u32;
        expected.push(if left { Read::default() } else { Read::of(&conn, path, &private) });
        output
    };
    let events = match seconds {
        0 => trace(7, 4, 5_000, &mut answer),
        seconds => queued(2, 4, seconds, &mut answer),
    };
    let input: Vec<u8> = events.iter().flat_map(|(path, event)| bytes(*path, event)).collect();
    let mut file = tempfile::tempfile_in(built()).unwrap();
    std::io::Write::write_all(&mut file, &input).unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let settings: Vec<String> = settings.iter().map(|(name, is)| format!("{name}={is}")).collect();
    let mut command = Command::new(replay);
    command.arg(control.to_string()).arg(settings.join(" ")).stdin::<File>(file);
    let output = succeeded(&mut command).stdout;
    assert_eq!(output.len(), READ * events.len(), "{control}");
    let read = output.chunks_exact(READ).map(Read::parse);
    for (n, ((expected, read), event)) in expected.iter().zip(read).zip(&events).enumerate() {
        assert_eq!(*expected, read, "{control} {settings:?}: event {n}, {event:?}");
    }
    let places = |read: &&Read| read.words[5] < 8 && read.words[4].count_ones() > 1;
    [expected.len(), expected.iter().filter(places).count()]
}

#[test]
fn the_same_events_get_the_same_bits_as_in_rust() {
    let replay = program("replay");
    // Every law, and one with every slow start.
    let starts = SlowStart::all().map(|start| match start.joins() {
        true => Control { join: start, ..Control::OLIA },
        false => Control { exit: start, ..Control::OLIA },
    });
    for control in Law::all().map(Control::of).chain(starts) {
        let [equal, _] = compare(&replay, control, &[], 0);
        assert_eq!(equal, 5_000);
    }
    // Every detector that decides.
    for detector in Detector::all().filter(|detector| detector.decides()) {
        let law = if detector.measures_delay() { Law::LIA } else { law("bbr") };
        let control = Control { detector, ..Control::of(law) };
        assert_eq!(control.fault(), None);
        // One that watches for 100 s before it says anything is not waited for.
        let [_, grouped] = compare(&replay, control, &[], 75);
        let late = [Detector::DCW, Detector::BTLBW].contains(&detector);
        assert!(grouped > 0 || late, "{control} put no paths together");
    }
}

fn law(name: &str) -> Law {
    Law::all().find(|law| law.name() == name).unwrap()
}

#[test]
fn a_setting_is_the_same_word_as_in_rust() {
    let replay = program("replay");
    let detector = |detector| Control { detector, ..Control::LIA };
    let controls = [
        ("window", Control::RENO),
        ("decision", detector(Detector::SSC)),
        ("ssc", detector(Detector::SSC)),
        ("tr", detector(Detector::TR)),
        ("xcorr", detector(Detector::XCORR)),
        ("dcw", detector(Detector::DCW)),
        ("lisa", catalogue::control("olia+lisa").unwrap()),
        ("btlbw", catalogue::control("bbr+btlbw").unwrap()),
    ];
    let of_law = |name: &'static str| Law::all().find(|law| law.name() == name).map(Control::of);
    for group in params::groups() {
        let listed = controls.iter().find(|(name, _)| *name == group);
        let control = listed.map(|(_, control)| *control).or_else(|| of_law(group));
        let control = control.unwrap_or_else(|| panic!("no control has the parameters {group}.*"));
        for param in params::all().filter(|param| param.group() == group) {
            for value in [param.range.0, (param.range.0 + param.range.1) / 2.0, param.range.1] {
                let value = match param.unit {
                    params::Unit::Choice(words) => words[value as usize].to_owned(),
                    params::Unit::Count => (value as u64).to_string(),
                    _ => format!("{value:.4}"),
                };
                // Of two that must agree the other is at its end.
                let other = match param.name.as_str() {
                    "decision.together" => Some(("decision.observations", "32")),
                    "decision.observations" => Some(("decision.together", "1")),
                    "lisa.least" => Some(("lisa.most", "1000")),
                    "lisa.most" => Some(("lisa.least", "1")),
                    _ => None,
                };
                let settings: Vec<_> = [(&*param.name, &*value)].into_iter().chain(other).collect();
                let seconds = if control.detector.decides() { 3 } else { 0 };
                compare(&replay, control, &settings, seconds);
            }
        }
    }
    let [_, grouped] =
        compare(&replay, detector(Detector::SSC), &[("ssc.preset", "mptcp-sbd")], 75);
    assert!(grouped > 0);
}

#[test]
fn names_and_settings_that_are_wrong_are_refused_in_one_line() {
    let replay = program("replay");
    let refused = |control: &str, settings: &str| {
        let mut command = Command::new(&replay);
        let output = command.args([control, settings]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{control} {settings}");
        let error = text(&output.stderr);
        assert!(error.ends_with('\n') && error.lines().count() == 1, "{control}: {error:?}");
        error.trim_end().to_owned()
    };
    for (control, reason) in [
        ("ollia", "unknown law 'ollia'; expected LAW[+DETECTOR][+START]"),
        ("", "unknown law ''; expected LAW[+DETECTOR][+START]"),
        ("olia+xyz", "unknown detector or slow start 'xyz'"),
        ("olia+\x1b[2J\n", "unknown detector or slow start ''"),
        ("olia+", "unknown detector or slow start ''"),
        ("bbr+lisa", "slow start 'lisa' is for window laws; 'bbr' has its own"),
        (
            "olia+btlbw",
            "detector 'btlbw' uses the bandwidth estimate of a model law; 'olia' has none",
        ),
        (
            "reno+hystart+hystart++",
            "two slow starts for the join or for the exit; expected at most one for each",
        ),
    ] {
        assert_eq!(refused(control, ""), reason);
        assert!(catalogue::control(control).is_err(), "{control}");
    }
    for (settings, reason) in [
        ("lia", "setting 'lia': expected GROUP.PARAMETER=VALUE"),
        ("decision.every", "setting 'decision.every': expected GROUP.PARAMETER=VALUE"),
        ("olia.floor=1", "setting 'olia.floor=1': not a parameter of this control"),
        ("decision.every=0", "setting 'decision.every=0': the parameter does not take this"),
        ("decision.every=1.5", "setting 'decision.every=1.5': the parameter does not take this"),
        ("decision.every=1e3", "setting 'decision.every=1e3': the parameter does not take this"),
        ("ssc.preset=none", "setting 'ssc.preset=none': the parameter does not take this"),
        (
            "decision.together=11",
            "setting 'decision.together=11': expected at most decision.observations, 10",
        ),
    ] {
        assert_eq!(refused("lia+ssc", settings), reason);
    }
    let taken = |control: &str, settings: &str| {
        let mut command = Command::new(&replay);
        succeeded(command.args([control, settings]).stdin(std::process::Stdio::null()));
    };
    // And every control that Rust knows is one, as are the header's examples.
    for control in catalogue::all() {
        taken(&control.to_string(), "");
    }
    let header = std::fs::read_to_string(format!("{CAPI}/narrows_cc.h")).unwrap();
    let (_, text) = header.split_once("`control` is").unwrap();
    let quoted: Vec<&str> =
        text.split("NULL").next().unwrap().split('"').skip(1).step_by(2).collect();
    let (settings, controls) = quoted.split_last().unwrap();
    assert!(controls.len() > 2 && settings.contains('='), "{quoted:?}");
    controls.iter().for_each(|control| taken(control, ""));
    taken("gcubic+xcorr", settings);
}

#[test]
fn what_a_stack_does_wrong_is_refused() {
    let output = succeeded(&mut Command::new(program("refused")));
    assert_eq!(text(&output.stdout), "");
}

#[test]
fn both_libraries_have_the_names_of_the_header_and_no_others() {
    let header = std::fs::read_to_string(format!("{CAPI}/narrows_cc.h")).unwrap();
    let mut listed: Vec<String> = Vec::new();
    for part in header.split("NARROWS_API ").skip(1) {
        let name = part.split('(').next().unwrap().rsplit([' ', '*']).next().unwrap();
        if name.starts_with("narrows_") {
            listed.push(name.to_owned());
        }
    }
    listed.sort();
    assert!(listed.contains(&"narrows_cc_event".to_owned()), "{listed:?}");
    for (library, dynamic) in [("libnarrows_cc.so.1", "-D"), ("libnarrows_cc.a", "-g")] {
        let mut nm = Command::new("nm");
        let nm = succeeded(nm.args([dynamic, "--defined-only"]).arg(built().join(library)));
        let names = text(&nm.stdout);
        let names = names.lines().filter_map(|line| line.split(' ').nth(2));
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        assert_eq!(names, listed, "{library}");
    }
}

#[test]
fn the_header_is_c_and_cxx_without_a_warning() {
    for (compiler, language, standard) in
        [("cc", "c", "c99"), ("cc", "c", "c17"), ("c++", "c++", "c++11"), ("c++", "c++", "c++20")]
    {
        let warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"];
        succeeded(
            Command::new(compiler)
                .args(warnings)
                .args([&format!("-std={standard}"), "-x", language, "-fsyntax-only", "-I", CAPI])
                .args(["-include", "narrows_cc.h", "/dev/null"]),
        );
    }
}

fn no_pkg_config() -> bool {
    let none = Command::new("pkg-config").arg("--version").output().is_err();
    if none {
        println!("skipped: no pkg-config");
    }
    none
}

/// What docs/guide/c-api.md says can be typed, with the example for a stack.
#[test]
fn what_its_page_says_can_be_typed() {
    if no_pkg_config() {
        return;
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(repository.join("docs/guide/c-api.md")).unwrap();
    let script: String = blocks(&page, "sh capi").collect();
    assert!(script.contains("make capi ") && script.contains("PREFIX=/usr/local "), "{script}");
    let home = tempfile::tempdir().unwrap();
    for name in ["Makefile", "crates", "scripts"] {
        symlink(repository.join(name), home.path().join(name)).unwrap();
    }
    std::fs::copy(Path::new(CAPI).join("example.c"), home.path().join("stack.c")).unwrap();
    let prefix = home.path().join("prefix");
    std::fs::create_dir(&prefix).unwrap();
    let script = script.replace("/usr/local", &prefix.display().to_string());
    let mut shell = apart("sh");
    shell.args(["-euxc", &script]).current_dir(home.path()).env("CFLAGS", "-O1");
    succeeded(shell.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")));
}

/// From `make install` to a program that runs, as a stack's build would: with pkg-config and the shared
/// library.
#[test]
fn installed_it_is_found_by_pkg_config() {
    if no_pkg_config() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let destination = format!("DESTDIR={}", root.path().display());
    make(&["install"], &[into(built()), destination, "PREFIX=/opt/narrows".into()]);
    let lib = root.path().join("opt/narrows/lib");
    let pkg_config = |question: &str| {
        let mut command = Command::new("pkg-config");
        command.args([question, "narrows_cc"]).env("PKG_CONFIG_PATH", lib.join("pkgconfig"));
        command.env("PKG_CONFIG_SYSROOT_DIR", root.path());
        let output = text(&succeeded(&mut command).stdout);
        output.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(pkg_config("--modversion"), [env!("CARGO_PKG_VERSION")]);
    let example = root.path().join("example");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-o"]).args([&example, &Path::new(CAPI).join("example.c")]);
    succeeded(cc.args(pkg_config("--cflags")).args(pkg_config("--libs")));
    let run = |arguments: &[&str]| {
        let mut command = Command::new(&example);
        command.args(arguments.iter().map(OsStr::new)).env("LD_LIBRARY_PATH", &lib);
        text(&succeeded(&mut command).stdout)
    };
    // Both paths of an uncoupled law have their share of the link, and the link is full.
    let both = run(&["reno"]);
    let goodput: Vec<f64> = both
        .lines()
        .filter_map(|line| line.split_once(": ")?.1.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(goodput.len(), 3, "{both}");
    assert!(goodput[2] > 18.0 && goodput[2] <= 20.0, "{both}");
    assert!(goodput[0].min(goodput[1]) > 5.0, "{both}");
    assert!(run(&["lia+xcorr", "decision.every=5"]).contains("lia+xcorr: 19."));

    make(
        &["uninstall"],
        &[
            into(built()),
            format!("DESTDIR={}", root.path().display()),
            "PREFIX=/opt/narrows".into(),
        ],
    );
    let left = Command::new("find").arg(root.path().join("opt")).args(["-type", "f"]).output();
    assert_eq!(text(&left.unwrap().stdout), "");
}

/// A program finds the library once the loader's cache has it; of a package its own scripts see to that.
#[test]
fn the_loader_is_told_of_what_is_installed_but_not_of_a_package() {
    for target in ["install", "uninstall"] {
        let told = |more: &str| {
            let done = make(&["-n", target], &[into(built()), more.into()]);
            assert!(done.contains("libnarrows_cc.so.1"), "{done}");
            done.lines().filter(|line| *line == "ldconfig").count()
        };
        let may = succeeded(Command::new("sh").args(["-c", "id -u; command -v ldconfig || :"]));
        let here = usize::from(text(&may.stdout).starts_with("0\n/"));
        let whose = [told("PREFIX=/opt/narrows"), told("DESTDIR=/tmp/package")];
        assert_eq!(whose, [here, 0], "{target}");
    }
}
