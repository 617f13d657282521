//! Which control and which links suit the MPTCP connections of this machine, after they were watched for a while: the
//! rules are those of [`narrows_advice::recommend`], on what [`Watch`] sees once a second. Nothing is changed.
//!
//! The structs are the schema of `narrows kernel recommend --json`; docs/guide/watch.md shows it.

use crate::advise::is_model;
use crate::watch::compared::Path;
use crate::watch::report::couples;
use crate::watch::{Connection, Scope, Watch};
use narrows_advice::recommend::{self, Control, Kind, LEAST, Look, Observer, Recommendation};
use narrows_advice::{Sample, window};
use narrows_foreign::Foreign;
use narrows_kernel::Error;
use narrows_laws::catalogue::control_of_kernel_name;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use std::time::Instant;

/// Version of the schema.
const FORMAT: u32 = 1;

/// Watches the connections of this machine, by their network namespaces.
pub struct Recommender {
    watch: Watch,
    began: Instant,
    places: BTreeMap<u32, Place>,
    ended: Vec<Connection>,
}

/// What was seen in a network namespace.
struct Place {
    name: Foreign,
    observer: Observer<u64, Foreign>,
    /// Bytes acknowledged while watched, by socket, and by control.
    acked: BTreeMap<u64, u64>,
    controls: BTreeMap<(Kind, String), u64>,
    connections: BTreeSet<u32>,
}

/// What is recommended to each network namespace in which something was delivered.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// `FORMAT`.
    pub format: u32,
    /// Seconds since the watch began.
    pub t_s: f64,
    /// The namespaces, by their numbers.
    pub namespaces: Vec<Recommended>,
    /// Connections that sent and that there was no room for.
    pub left_out: usize,
}

/// What is recommended to a network namespace. Intervals are of 95 %: low end, value, high end.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Recommended {
    /// Its name.
    pub netns: Foreign,
    /// Connections watched.
    pub connections: usize,
    /// Seconds in which something was delivered.
    pub seconds: u32,
    /// The control that most was sent under, of the kind (uncoupled, coupled, model) that most was sent under.
    pub control: String,
    /// Is it known what to recommend? It takes ten seconds in which something is delivered.
    pub known: bool,
    /// The control to run instead; null: no change.
    pub recommended: Option<&'static str>,
    /// The link to leave out; null: none.
    pub without: Option<Foreign>,
    /// The recommendation and its reason, in two sentences.
    pub sentence: String,
    /// Payload that the peers acknowledged, Mbit/s.
    pub mbit_per_s: [f64; 3],
    /// The links.
    pub links: Vec<Link>,
    /// Links whose paths meet in one bottleneck for most of the time.
    pub shared: Vec<Vec<Foreign>>,
}

/// An interface by which subflows leave, or a local address where that is not known.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Link {
    /// Its name.
    pub link: Foreign,
    /// Payload that the peers acknowledged, Mbit/s.
    pub mbit_per_s: f64,
    /// The share of packets sent again under window laws; null: none was sent under one.
    pub lost: Option<[f64; 3]>,
    /// Mean round-trip time under window laws, ms.
    pub rtt_ms: Option<f64>,
    /// The smallest one, ms.
    pub min_rtt_ms: Option<f64>,
    /// The one over the other.
    pub rtt_over_min: Option<f64>,
    /// The share of the time in which the others waited for it.
    pub held_up: [f64; 3],
    /// What more would be sent without it, at most, Mbit/s.
    pub gain_mbit_per_s: [f64; 3],
}

impl Recommender {
    /// Loads the sampler of [`Watch`].
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(scope: Scope) -> Result<Recommender, Error> {
        let (places, ended) = (BTreeMap::new(), Vec::new());
        Ok(Recommender { watch: Watch::start(scope)?, began: Instant::now(), places, ended })
    }

    /// Takes the samples that came, some times a second.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn sample(&mut self) -> Result<(), Error> {
        self.watch.sample().map(drop)
    }

    /// Looks at all connections, once a second.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn look(&mut self) -> Result<(), Error> {
        self.ended.extend(self.watch.look()?.into_iter().filter(|one| !one.spent.is_empty()));
        let now = self.began.elapsed();
        let mut looks: BTreeMap<u32, Vec<Look<u64, Foreign>>> = BTreeMap::new();
        for (netns, token, path) in self.watch.open() {
            let Some(look) = look(token, path) else { continue };
            let place = self.places.entry(netns).or_insert_with(|| Place {
                name: path.netns.clone(),
                observer: Observer::default(),
                acked: BTreeMap::new(),
                controls: BTreeMap::new(),
                connections: BTreeSet::new(),
            });
            place.connections.insert(token);
            let before = place.acked.insert(path.cookie, look.sample.acked);
            let grown = before.map_or(0, |before| look.sample.acked.saturating_sub(before));
            *place.controls.entry((look.kind, path.control.clone())).or_default() += grown;
            looks.entry(netns).or_default().push(look);
        }
        for (netns, place) in &mut self.places {
            place.observer.look(now, looks.get(netns).map_or(&[], Vec::as_slice));
        }
        Ok(())
    }

    /// What follows from all that was seen.
    pub fn report(&self) -> Report {
        let watched = self.watch.report();
        let mut shared: BTreeMap<&Foreign, BTreeSet<Vec<Foreign>>> = BTreeMap::new();
        for connection in self.ended.iter().chain(&watched.connections) {
            for (group, _) in connection.together_for_most_of_the_time() {
                let paths = || group.iter().map(|number| &connection.paths[number - 1]);
                let of = |path: &crate::watch::Path| named(path.interface.as_ref(), &path.local);
                let links: BTreeSet<Foreign> = paths().map(of).collect();
                if let Some(path) = paths().next() {
                    shared.entry(&path.netns).or_default().insert(links.into_iter().collect());
                }
            }
        }
        let of = |place: &Place| {
            let shared = shared.get(&place.name).map(|all| all.iter().cloned().collect());
            place.recommended(shared.unwrap_or_default())
        };
        Report {
            format: FORMAT,
            t_s: watched.t_s,
            namespaces: self.places.values().map(of).filter(|one| one.seconds > 0).collect(),
            left_out: watched.left_out,
        }
    }
}

fn named(interface: Option<&Foreign>, local: &std::net::SocketAddr) -> Foreign {
    interface.cloned().unwrap_or_else(|| local.ip().to_string().into())
}

fn look(token: u32, path: &Path) -> Option<Look<u64, Foreign>> {
    let info = path.info.as_ref()?;
    let model = is_model(&path.control);
    let kind = match model {
        true => Kind::Model,
        false if couples(&path.control) => Kind::Coupled,
        false => Kind::Uncoupled,
    };
    let sample = Sample {
        token,
        subflow: path.cookie,
        acked: info.bytes_acked,
        received: info.bytes_received,
        busy_us: info.busy_time,
        srtt_us: info.rtt,
        window: window(info.snd_cwnd, info.snd_mss, model),
        backup: path.backup,
    };
    Some(Look {
        sample,
        link: named(path.interface.as_ref(), &path.local),
        kind,
        sent: info.data_segs_out.into(),
        retransmitted: info.total_retrans.into(),
        // Linux begins with the largest number.
        min_rtt_us: if info.min_rtt == u32::MAX { 0 } else { info.min_rtt },
    })
}

impl Place {
    /// As users write it.
    fn control(&self) -> String {
        let mut kinds = BTreeMap::<Kind, u64>::new();
        for ((kind, _), bytes) in &self.controls {
            *kinds.entry(*kind).or_default() += bytes;
        }
        let mostly = kinds.iter().max_by_key(|(_, bytes)| **bytes).map(|(kind, _)| *kind);
        let of = self.controls.iter().filter(|((kind, _), _)| Some(*kind) == mostly);
        let name = of.max_by_key(|(_, bytes)| **bytes).map_or("", |((_, name), _)| name);
        control_of_kernel_name(name).map_or_else(|| name.to_owned(), |control| control.to_string())
    }

    fn recommended(&self, shared: Vec<Vec<Foreign>>) -> Recommended {
        let found = self.observer.recommend(&shared);
        let control = self.control();
        let mbit = |of: [f64; 3]| of.map(|rate| rate * 8e-6);
        let link = |link: &recommend::Link<Foreign>| {
            let seen = link.seen;
            let measured = |of: f64| (seen.min_rtt_us > 0.0).then_some(of);
            Link {
                link: link.link.clone(),
                mbit_per_s: link.rate * 8e-6,
                lost: seen.lost,
                rtt_ms: measured(seen.mean_rtt_us / 1e3),
                min_rtt_ms: measured(seen.min_rtt_us / 1e3),
                rtt_over_min: measured(seen.mean_rtt_us / seen.min_rtt_us),
                held_up: link.holds_up,
                gain_mbit_per_s: mbit(link.gain),
            }
        };
        let mut recommended = Recommended {
            netns: self.name.clone(),
            connections: self.connections.len(),
            seconds: found.looks,
            recommended: match found.control {
                Control::Same => None,
                Control::Model => Some("bbr+xcorr"),
                Control::Coupled if control == "reno" => Some("greno+xcorr"),
                Control::Coupled => Some("gcubic+xcorr"),
            },
            control,
            known: found.looks >= LEAST,
            without: found.without.clone(),
            sentence: String::new(),
            mbit_per_s: mbit(found.rate),
            links: found.links.iter().map(link).collect(),
            shared,
        };
        recommended.sentence = recommended.said(&found);
        recommended
    }
}

impl Recommended {
    /// Two sentences: what, and why with how sure.
    fn said(&self, found: &Recommendation<Foreign>) -> String {
        let [low, mbit, high] = self.mbit_per_s;
        let now = format!("{mbit:.1} Mbit/s ({low:.1} to {high:.1})");
        if !self.known {
            return format!(
                "Cannot tell yet. In {} s something was delivered, and it takes {LEAST}.",
                self.seconds
            );
        }
        let of = |name: &Foreign| self.links.iter().find(|link| link.link == *name);
        let (mut what, mut why) = (Vec::new(), Vec::new());
        if let Some(control) = self.recommended {
            what.push(format!("{control} instead of {}", self.control));
        }
        if let Some(link) = self.without.as_ref().and_then(of) {
            let [low, gain, high] = link.gain_mbit_per_s;
            what.push(format!("leave out {}", link.link));
            why.push(format!(
                "the others waited for {} {}, and could send up to {gain:.1} Mbit/s ({low:.1} to {high:.1}) more without \
                 it, if programs have that to send: make it a backup, by hand or, where this lasts, by `narrows kernel \
                 advise`, which undoes what gains nothing",
                link.link,
                percent(link.held_up, "of the time"),
            ));
        }
        if let Some(link) = found.held_back.as_ref().and_then(of) {
            why.push(format!(
                "losses hold {} back on {}, {} while its mean round-trip time is {:.2} times the minimum, so they are no \
                 queue's",
                self.control,
                link.link,
                percent(link.lost.unwrap_or_default(), "of its packets"),
                link.rtt_over_min.unwrap_or_default(),
            ));
        } else if self.recommended.is_some() {
            let names = |group: &Vec<Foreign>| {
                group.iter().map(Foreign::to_string).collect::<Vec<_>>().join(" and ")
            };
            let stays = |group: &&Vec<Foreign>| {
                self.without.as_ref().is_none_or(|link| !group.contains(link))
            };
            let shared: Vec<String> = self.shared.iter().filter(stays).map(names).collect();
            why.push(format!(
                "paths over {} meet in one bottleneck for most of the time, where coupled ones take one share",
                shared.join(", ")
            ));
        }
        if what.is_empty() {
            return format!(
                "No change: {} over all links delivers {now}. Nothing seen shows that another control, or fewer links, \
                 would deliver more.",
                self.control
            );
        }
        format!("Recommended: {}; now {now}. Why: {}.", what.join(", and "), why.join("; "))
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        let Recommended { netns, connections, seconds, control, .. } = self;
        writeln!(
            text,
            "network namespace {netns}, {control}, connections: {connections}, {seconds} s"
        )?;
        writeln!(text, "{}\n", self.sentence)?;
        writeln!(
            text,
            "  Mbit/s  lost %                   RTT (min), ms  waited for, %       more without it  link"
        )?;
        for link in &self.links {
            let lost =
                link.lost.map_or("-".into(), |lost| shown(lost.map(|share| 100.0 * share), 2));
            // Not their quotient: of a link without propagation, as veth, it is large and says nothing.
            let rtt = link.rtt_ms.zip(link.min_rtt_ms);
            let rtt = rtt.map_or("-".into(), |(mean, min)| format!("{mean:.2} ({min:.2})"));
            writeln!(
                text,
                "{:8.2}  {lost:21}  {rtt:>15}  {:18}  {:>15}  {}",
                link.mbit_per_s,
                shown(link.held_up.map(|share| 100.0 * share), 0),
                format!("{:.1}", link.gain_mbit_per_s[1]),
                link.link
            )?;
        }
        Ok(())
    }
}

/// `0.31 (0.24 to 0.40)`.
fn shown([low, value, high]: [f64; 3], digits: usize) -> String {
    format!("{value:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// A share with its interval, of what.
fn percent(share: [f64; 3], of: &str) -> String {
    let [low, value, high] = share.map(|share| 100.0 * share);
    let digits = if high < 10.0 { 2 } else { 0 };
    format!("{value:.digits$} % {of} ({low:.digits$} to {high:.digits$})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A namespace in which a connection was watched for 30 s over two links, whose second is called by others: Mbit/s,
    /// round-trip time in ms, window in kB and losses a second of each.
    fn place(control: &str, kind: Kind, paths: [(u64, u32, u64, u64); 2]) -> Place {
        measured(control, kind, paths, 40_000)
    }

    /// The same with another smallest round-trip time, µs.
    fn measured(
        control: &str,
        kind: Kind,
        paths: [(u64, u32, u64, u64); 2],
        min_rtt_us: u32,
    ) -> Place {
        let mut observer = Observer::default();
        for second in 0..31 {
            let look = |path: usize| {
                let (mbit, srtt_ms, window_kb, lost) = paths[path];
                let acked = second * mbit * 125_000;
                let sample = Sample {
                    token: 7,
                    subflow: path as u64,
                    acked,
                    received: 0,
                    busy_us: second * 1_000_000,
                    srtt_us: 1000 * srtt_ms,
                    window: 1000 * window_kb,
                    backup: false,
                };
                let link = ["eth0", "e\u{1b}[2J"][path].into();
                let (sent, retransmitted) = (acked / 1400, second * lost);
                Look { sample, link, kind, sent, retransmitted, min_rtt_us }
            };
            observer.look(Duration::from_secs(second), &[0, 1].map(look));
        }
        Place {
            name: "blue".into(),
            observer,
            acked: BTreeMap::new(),
            controls: BTreeMap::from([((kind, control.to_owned()), 1)]),
            connections: BTreeSet::from([7]),
        }
    }

    fn said(place: &Place, shared: Vec<Vec<Foreign>>) -> String {
        let found = place.recommended(shared);
        assert_eq!(found.sentence.matches(". ").count(), 1, "two sentences: {}", found.sentence);
        assert!(!found.text().contains('\u{1b}'), "{}", found.text());
        found.sentence
    }

    #[test]
    fn no_change_is_an_answer() {
        let full = [(40, 80, 400, 20), (2, 500, 125, 1)];
        assert_eq!(
            said(&place("cubic", Kind::Uncoupled, full), Vec::new()),
            "No change: cubic over all links delivers 42.0 Mbit/s (42.0 to 42.0). Nothing seen shows that another \
             control, or fewer links, would deliver more."
        );
        let met = || vec![vec!["eth0".into(), "e\u{1b}[2J".into()]];
        let shared = said(&place("reno", Kind::Uncoupled, full), met());
        assert!(
            shared.starts_with("Recommended: greno+xcorr instead of reno; now 42.0"),
            "{shared}"
        );
        assert!(
            shared.contains("paths over eth0 and e\\u001b[2J meet in one bottleneck"),
            "{shared}"
        );
        let coupled = said(&place("nr_gcub_xc", Kind::Coupled, full), met());
        assert!(coupled.starts_with("No change: gcubic+xcorr"), "{coupled}");
    }

    #[test]
    fn the_control_that_is_named_is_of_the_kind_that_the_rule_goes_by() {
        let mut place = place("cubic", Kind::Uncoupled, [(40, 80, 400, 20), (2, 500, 125, 1)]);
        place.controls = BTreeMap::from([
            ((Kind::Model, "bbr".to_owned()), 40),
            ((Kind::Uncoupled, "cubic".to_owned()), 35),
            ((Kind::Uncoupled, "reno".to_owned()), 25),
        ]);
        assert_eq!(place.control(), "cubic");
    }

    #[test]
    fn losses_and_links_that_hold_up_the_others_are_said_with_their_numbers() {
        let lossy = place("cubic", Kind::Uncoupled, [(40, 80, 400, 20), (20, 42, 105, 5)]);
        let line = said(&lossy, Vec::new());
        // 5 of 1,785 packets a second.
        let why = "losses hold cubic back on e\\u001b[2J, 0.28 % of its packets (0.24 to 0.33) while its mean round-trip \
                   time is 1.05 times the minimum, so they are no queue's.";
        assert!(line.starts_with("Recommended: bbr+xcorr instead of cubic; now 60.0"), "{line}");
        assert!(line.ends_with(why), "{line}");
        let slow = place("cubic", Kind::Uncoupled, [(20, 40, 400, 0), (2, 90, 22, 3)]);
        let line = said(&slow, Vec::new());
        assert!(line.starts_with("Recommended: leave out e\\u001b[2J; now 22.0"), "{line}");
        let why = "the others waited for e\\u001b[2J 100 % of the time (89 to 100), and could send up to 58.0 Mbit/s";
        assert!(line.contains(why), "{line}");
        let found = slow.recommended(Vec::new());
        assert_eq!(
            found.without.as_ref().map(Foreign::raw),
            Some("e\u{1b}[2J"),
            "as it is, for programs"
        );
    }

    /// On veth the smallest is a handshake's, the mean that of a full queue.
    #[test]
    fn round_trip_times_of_a_link_without_propagation_are_shown_as_they_are() {
        let of = |min_rtt_us| {
            let full = [(40, 68, 400, 20), (2, 500, 125, 1)];
            measured("cubic", Kind::Uncoupled, full, min_rtt_us).recommended(Vec::new())
        };
        let found = of(50);
        let first = &found.links[1];
        let rtt = (first.rtt_ms, first.min_rtt_ms, first.rtt_over_min);
        assert_eq!(rtt, (Some(68.0), Some(0.05), Some(1360.0)));
        assert!(!found.text().contains("1360"), "{}", found.text());
        assert!(found.text().contains(" 68.00 (0.05) "), "{}", found.text());
        assert!(found.sentence.starts_with("No change"), "{}", found.sentence);
        let unknown = of(0);
        assert_eq!((unknown.links[1].rtt_ms, unknown.links[1].rtt_over_min), (None, None));
    }

    #[test]
    fn before_ten_seconds_nothing_is_known() {
        let place = Place {
            observer: Observer::default(),
            ..place("cubic", Kind::Uncoupled, [(1, 1, 1, 1); 2])
        };
        let found = place.recommended(Vec::new());
        assert!(
            !found.known && found.sentence.starts_with("Cannot tell yet."),
            "{}",
            found.sentence
        );
    }
}
