//! Captures of a run, and their files: pcapng, one per host or link.

use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use narrows_laws::catalogue::Unknown;

use crate::pcapng::PcapFile;
use crate::scenario::Scenario;
use crate::{Error, Output};

/// A request to capture packets of a run.
pub struct CaptureRequest<'a> {
    /// Flows (both hosts) and links; without any the connection under test, or all listed flows if
    /// there is none.
    pub names: &'a [String],
    /// Bytes that are kept of a packet at most; none: its headers.
    pub snaplen: Option<u32>,
    /// The folder of the files.
    pub output: &'a mut Output,
}

/// Which part of a flow or link a file shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Sender(usize),
    Receiver(usize),
    Link(usize),
}

/// A file being written: what it shows, and where it goes.
pub type CaptureFile = (Part, PathBuf, PcapFile<BufWriter<File>>);

/// Opens a file for each of `parts`, which keeps `snaplen` bytes of a packet at most.
///
/// # Errors
/// A file cannot be written.
pub fn open(
    scenario: &Scenario,
    parts: &[Part],
    snaplen: u32,
    output: &mut Output,
) -> Result<Vec<CaptureFile>, Error> {
    let open = |&part: &Part| {
        let (name, interfaces) = describe(scenario, part);
        let to = output.create(&name)?;
        let file = PcapFile::new(to, &interfaces, snaplen);
        let path = output.target().join(name);
        let file = file.map_err(Error::io(&path, "write"))?;
        Ok((part, path, file))
    };
    parts.iter().map(open).collect()
}

/// What `--capture` asks for: both hosts of each of `names` that is a flow, and each that is a
/// link. Without names it is the connection under test, or all listed flows if there is none.
///
/// # Errors
/// A name that is neither flow nor link.
pub fn parts(scenario: &Scenario, names: &[String]) -> Result<Vec<Part>, Error> {
    let hosts = |flow| [Part::Sender(flow), Part::Receiver(flow)];
    let mut parts = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            continue;
        }
        let flow = scenario.flows.iter().position(|flow| flow.name == *name);
        let link = scenario.links.iter().position(|link| link.config.name == *name);
        if flow.is_none() && link.is_none() {
            let listed = scenario.flows.iter().filter(|flow| !flow.background);
            let flows = listed.map(|flow| flow.name.as_str());
            let links = scenario.links.iter().map(|link| link.config.name.as_str());
            let known: Vec<&str> = flows.chain(links).collect();
            return Err(Error::input("--capture", Unknown::new("flow or link", name, &known)));
        }
        parts.extend(flow.into_iter().flat_map(hosts));
        parts.extend(link.map(Part::Link));
    }
    if names.is_empty() {
        let listed = (0..scenario.flows.len()).filter(|&flow| !scenario.flows[flow].background);
        let flows: Vec<usize> = scenario.test.map_or_else(|| listed.collect(), |test| vec![test]);
        parts.extend(flows.into_iter().flat_map(hosts));
    }
    Ok(parts)
}

/// File name and interfaces of a part.
fn describe(scenario: &Scenario, part: Part) -> (String, Vec<String>) {
    let host = |flow: usize, host: &str| {
        let flow = &scenario.flows[flow];
        let name = format!("{}.{host}", flow.name);
        let interfaces = flow.paths.iter().map(|path| format!("{name}:{}", path.name)).collect();
        (name, interfaces)
    };
    let (name, interfaces) = match part {
        Part::Sender(flow) => host(flow, "sender"),
        Part::Receiver(flow) => host(flow, "receiver"),
        Part::Link(link) => {
            let name = scenario.links[link].config.name.clone();
            (format!("{name}.link"), vec![name])
        }
    };
    let plain = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' };
    (name.chars().map(plain).chain(".pcapng".chars()).collect(), interfaces)
}
