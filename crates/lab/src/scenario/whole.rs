//! A scenario written out whole: one file without a base, with all that a generator makes and all that is
//! default.

use std::fmt::Write;

use indexmap::IndexMap;
use narrows_laws::Params;
use narrows_net::{Distribution, MILLISECOND, Nanos, Rate, Trace};
use sha2::{Digest, Sha256};
use toml::Value;

use super::either::{Either, Tables};
use super::file::{File, Fullmesh, Kind, Scheduler};
use super::resolve::idle;
use super::tcp::TcpFile;
use super::{Scenario, detection, era, generate};
use crate::units::{Bytes, Time};
use crate::user_law;

impl Scenario {
    /// The scenario whole, as TOML that loads as the same scenario and gives the same text: what its
    /// name, its bases and the changes of the command line come to, and the SHA-256 of the traces in it.
    /// What is changed in the loaded scenario, such as its law by `--cc`, is not in it.
    ///
    /// Traces on disk are named by their paths from the current folder.
    pub fn text(&self) -> String {
        let whole = self.whole();
        let written = "what was read can be written";
        let mut text = toml::to_string(&whole).expect(written);
        text += &format!("\n{}", toml::to_string(&whole.params).expect(written));
        for link in &self.links {
            // Writing to a string cannot fail.
            if let Rate::Trace(trace) = &link.config.rate {
                let digest = digest([rates(trace)]);
                let _ = writeln!(text, "# {}: sha256 {digest}", trace.name());
            }
            if let Distribution::Recorded(delays) = &link.config.variation.distribution {
                let line = |&(at, delay): &(Nanos, Nanos)| format!("{at} {delay}\n");
                let digest = digest(delays.points().iter().map(line));
                let _ = writeln!(text, "# {}: sha256 {digest}", delays.name());
            }
        }
        text
    }

    fn whole(&self) -> File {
        let mut file = self.file.clone();
        // It could be expanded when the scenario was loaded.
        let _ = generate::expand(&mut file);
        era::apply(&mut file);
        file.params = IndexMap::new();
        // What is listed must be used, unless it is the generator's.
        if idle(&file, &self.flows, &self.links).next().is_none() {
            file.generator = None;
        }
        for (link, loaded) in file.links.values_mut().zip(&self.links) {
            link.fill(loaded);
        }
        for (flow, loaded) in file.flows.values_mut().zip(&self.flows) {
            if flow.active.is_none() {
                flow.start.get_or_insert(Time(0));
            }
            if flow.kind != Kind::Udp {
                flow.send_buffer.get_or_insert(Bytes(loaded.send_buffer));
                flow.recv_buffer.get_or_insert(Bytes(loaded.recv_buffer));
            }
            if flow.kind == Kind::Mptcp {
                flow.scheduler.get_or_insert(Scheduler::Linux);
                flow.path_manager.get_or_insert(Either::Word(Fullmesh));
            }
        }
        let tables = match &mut file.background {
            None => &mut [],
            Some(Tables::One(one)) => std::slice::from_mut(one),
            Some(Tables::List(list)) => &mut list[..],
        };
        for table in tables {
            table.active.get_or_insert(vec![(Time(0), Time(self.end()))]);
            table.cc.get_or_insert("reno".into());
            table.greedy.get_or_insert(vec![0; table.links.len()]);
        }
        file.detection = detection::whole(&file);
        file.tcp = Some(TcpFile::whole(file.tcp.as_ref()));
        // A law's defaults belong to its version, and another process may not have it.
        let (user, defaults) = (user_law::loaded().map(|law| law.name), Params::default());
        for param in narrows_laws::params::all() {
            let value = param.value(&self.params);
            if user == Some(param.group()) && value == param.value(&defaults) {
                continue;
            }
            let value = scalar(value);
            let table = file.params.entry(param.group().to_owned()).or_default();
            table.insert(param.field().to_owned(), value);
        }
        file
    }
}

/// A number as a number, else a word.
fn scalar(text: String) -> Value {
    match (text.parse(), text.parse()) {
        (Ok(whole), _) => Value::Integer(whole),
        (_, Ok(number)) => Value::Float(number),
        _ => Value::String(text),
    }
}

/// A trace as a plain file.
fn rates(trace: &Trace) -> String {
    let mut lines: String = trace.times().iter().map(|time| format!("{time}\n")).collect();
    if trace.times().last().map(|&ms| Time(u64::from(ms) * MILLISECOND))
        != Some(Time(trace.period()))
    {
        lines += &format!("until {}\n", trace.period());
    }
    lines
}

/// SHA-256 of a trace as a plain file, of its parts.
fn digest(parts: impl IntoIterator<Item = String>) -> String {
    let hash = parts.into_iter().fold(Sha256::new(), |hash, part| hash.chain_update(part));
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
