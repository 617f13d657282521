//! The detectors on recorded flows: up to [`MAX_FLOWS`] flows, with samples in the order of time.
//!
//! ```
//! use narrows_laws::detect::{Flows, Sample};
//! use narrows_laws::{Detector, Params, Place};
//!
//! let mut flows = Flows::new(Detector::SSC, &Params::default(), 2)?;
//! let sample = Sample { now_us: 0, delay_us: Some(1_000), delivered: 1, ..Sample::default() };
//! assert_eq!(flows.sample(0, &sample), None);
//! let first = flows.advance(4_000_000).unwrap();
//! assert_eq!(first.places, [Place::Undecided; 2]); // it takes longer to know
//! # Ok::<(), narrows_laws::detect::Unfit>(())
//! ```

use crate::place::{Place, agreement};
use crate::{Detector, Params, raw};
use std::collections::VecDeque;

pub use crate::finding::Finding;
pub use crate::pair::{Answer, Pair, Why};
pub use crate::raw::DELACK_US;

/// Flows that can be compared (`NR_DETECT_MAX` of `c/many.c`).
pub const MAX_FLOWS: usize = 64;

/// A detector that cannot work on captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("detector '{name}' does not use delays and losses; expected one of: {known}", known = fit())]
#[non_exhaustive]
pub struct Unfit {
    /// Its name.
    pub name: &'static str,
}

fn fit() -> String {
    let fit = Detector::all().filter(|detector| detector.measures_delay());
    fit.map(Detector::name).collect::<Vec<_>>().join(", ")
}

/// A sample of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Time, µs, of any clock. A sample from before the last one counts as of the same time.
    pub now_us: u64,
    /// Delay against any fixed zero, µs; none: there is no sample of it.
    pub delay_us: Option<i32>,
    /// Round-trip time, µs; none: unknown. The delay counts as of half the flow's smallest one earlier.
    pub rtt_us: Option<u32>,
    /// Packets delivered since the last sample.
    pub delivered: u32,
    /// Packets lost since the last sample.
    pub lost: u32,
    /// Limited by the application.
    pub limited: bool,
}

/// A decision on the flows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowsDecision {
    /// End of its last interval, µs.
    pub at_us: u64,
    /// The place of each flow.
    pub places: Vec<Place>,
    /// Confidence of each place, from 0 to 1: the share of the observations with a place that
    /// agree; in a group with others, that have both together, mean over the others. 0: undecided.
    pub confidence: Vec<f64>,
}

/// Flows that share a bottleneck.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Group {
    /// Their numbers, in order; a single one has its own bottleneck.
    pub flows: Vec<usize>,
    /// The mean of their [`FlowsDecision::confidence`].
    pub confidence: f64,
}

impl FlowsDecision {
    /// One that was not made by [`Flows`].
    pub fn new(at_us: u64, places: Vec<Place>, confidence: Vec<f64>) -> FlowsDecision {
        FlowsDecision { at_us, places, confidence }
    }

    /// The groups, in the order of their first flows.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<(Place, Group)> = Vec::new();
        for (flow, &place) in self.places.iter().enumerate() {
            if !matches!(place, Place::Group(_)) {
                continue;
            }
            match groups.iter_mut().find(|(of, _)| *of == place) {
                Some((_, group)) => group.flows.push(flow),
                None => groups.push((place, Group { flows: vec![flow], confidence: 0.0 })),
            }
        }
        let mut groups: Vec<Group> = groups.into_iter().map(|(_, group)| group).collect();
        for group in &mut groups {
            let sum: f64 = group.flows.iter().map(|&flow| self.confidence[flow]).sum();
            group.confidence = sum / group.flows.len() as f64;
        }
        groups
    }

    /// The flows that are not congested, in order.
    pub fn uncongested(&self) -> Vec<usize> {
        self.at(Place::Clear)
    }

    /// The undecided flows, in order.
    pub fn undecided(&self) -> Vec<usize> {
        self.at(Place::Undecided)
    }

    fn at(&self, place: Place) -> Vec<usize> {
        (0..self.places.len()).filter(|&flow| self.places[flow] == place).collect()
    }
}

/// A detector on flows. Each interval of time gives an observation, and some observations a
/// decision, as in a connection.
pub struct Flows {
    /// `struct nr_many`.
    memory: Box<[u64]>,
    flows: usize,
    t_us: u64,
    /// Observations that a decision looks at.
    kept: usize,
    /// The time at which interval 0 begins, once there is a sample.
    origin_us: Option<u64>,
    /// The open interval, and the newest time.
    number: u64,
    now_us: u64,
    /// Has the open interval a sample; how many before it had none?
    sampled: bool,
    silent: usize,
    observed: VecDeque<Vec<Place>>,
    due: VecDeque<FlowsDecision>,
}

impl Flows {
    /// `detector` with `params` on `flows` flows. Panics at more than [`MAX_FLOWS`], or if
    /// [`Params::check`] finds fault with the parameters.
    ///
    /// # Errors
    /// The detector does not use delays and losses.
    pub fn new(detector: Detector, params: &Params, flows: usize) -> Result<Flows, Unfit> {
        assert!(flows <= MAX_FLOWS, "{flows} flows of at most {MAX_FLOWS}");
        if let Err(error) = params.check() {
            panic!("{error}");
        }
        if !detector.measures_delay() {
            return Err(Unfit { name: detector.name() });
        }
        let params = params.of_detectors();
        // SAFETY: a dynamic detector, and parameters of the C side's layout.
        let pace = unsafe { raw::narrows_pace(detector.number(), &params) };
        // SAFETY: a constant of the C side.
        let words = unsafe { ffi::narrows_many_size() }.div_ceil(8);
        let mut memory = vec![0u64; words as usize].into_boxed_slice();
        // SAFETY: zeroed memory of its size and alignment.
        unsafe { ffi::narrows_many_init(memory.as_mut_ptr().cast(), detector.number(), &params) };
        Ok(Flows {
            memory,
            flows,
            t_us: u64::from(pace.t_us),
            kept: pace.observations.max(pace.hold_us.div_ceil(pace.t_us)) as usize,
            origin_us: None,
            number: 0,
            now_us: 0,
            sampled: false,
            silent: 0,
            observed: VecDeque::new(),
            due: VecDeque::new(),
        })
    }

    /// Takes a sample of `flow`, and returns the oldest decision that was not returned yet.
    /// Panics if there is no such flow.
    pub fn sample(&mut self, flow: usize, sample: &Sample) -> Option<FlowsDecision> {
        assert!(flow < self.flows, "flow {flow} of {}", self.flows);
        self.close_until(sample.now_us);
        (self.sampled, self.silent) = (true, 0);
        let sample = ffi::Sample {
            now_us: self.now_us,
            bw: 0,
            delay_us: sample.delay_us.unwrap_or(0),
            delivered: sample.delivered,
            lost: sample.lost,
            cycles: 0,
            rtt_us: sample.rtt_us.unwrap_or(0),
            sampled: sample.delay_us.is_some().into(),
            supposed: 0,
            limited: sample.limited.into(),
            resting: 0,
        };
        // SAFETY: memory that `new` prepared, and a flow in range.
        unsafe { ffi::narrows_many_sample(self.memory.as_mut_ptr().cast(), flow as u32, &sample) };
        self.due.pop_front()
    }

    /// Advances the time to `now_us` and returns the oldest decision that was not returned yet; at
    /// the end, call it until there is none. Has no effect before the first sample.
    pub fn advance(&mut self, now_us: u64) -> Option<FlowsDecision> {
        if self.origin_us.is_some() {
            self.close_until(now_us);
        }
        self.due.pop_front()
    }

    /// From one observation to the next while a flow sends, µs.
    pub fn interval_us(&self) -> u64 {
        self.t_us
    }

    /// What is known of flows `i` and `j` now; none if the detector does not compare pairs.
    /// Panics if there is no such flow, or it is one.
    pub fn pair(&self, i: usize, j: usize) -> Option<Pair> {
        assert!(i < self.flows && j < self.flows && i != j, "{i} and {j} of {}", self.flows);
        let mut pair = raw::Pair::default();
        let many = self.memory.as_ptr().cast();
        // SAFETY: memory that `new` prepared, and flows in range.
        let kept = unsafe { ffi::narrows_many_pair(many, i as u32, j as u32, &mut pair) } != 0;
        kept.then(|| Pair::unpack(&pair, self.origin_us.unwrap_or(0), self.t_us))
    }

    /// Closes all intervals before that of `now_us`. Where no flow has a sample in any
    /// observation that a decision looks at, there is nothing to decide until one has.
    fn close_until(&mut self, now_us: u64) {
        // Intervals begin where those of a connection with the same clock do.
        let origin = *self.origin_us.get_or_insert(now_us - now_us % self.t_us);
        self.now_us = self.now_us.max(now_us.saturating_sub(origin));
        let now = self.now_us / self.t_us;
        while self.number < now && self.silent <= self.kept {
            self.close();
        }
        self.number = now;
    }

    fn close(&mut self) {
        let (mut observed, mut decided) = ([0; MAX_FLOWS], [0; MAX_FLOWS]);
        // SAFETY: memory that `new` prepared, and arrays of the size it fills.
        let due = unsafe {
            let many = self.memory.as_mut_ptr().cast();
            ffi::narrows_many_close(many, self.number, &mut observed, &mut decided)
        };
        self.silent += usize::from(!self.sampled);
        self.sampled = false;
        self.number += 1;
        if self.observed.len() == self.kept {
            self.observed.pop_front();
        }
        self.observed.push_back(self.places(&observed));
        if due != 0 {
            let places = self.places(&decided);
            let confidence = (0..self.flows)
                .map(|flow| {
                    agreement(self.observed.iter().map(|places| &places[..]), &places, flow)
                })
                .collect();
            let at_us = self.origin_us.unwrap_or(0).saturating_add(self.number * self.t_us);
            self.due.push_back(FlowsDecision { at_us, places, confidence });
        }
    }

    fn places(&self, raw: &[u8; MAX_FLOWS]) -> Vec<Place> {
        let place = |raw: &u8| match raw {
            0xfe => Place::Clear,
            0xff => Place::Undecided,
            group => Place::Group(*group),
        };
        raw[..self.flows].iter().map(place).collect()
    }
}

pub(crate) mod ffi {
    use super::MAX_FLOWS;
    use crate::raw::{DETECTOR_PARAMS, Pair};

    /// `struct nr_many`: see `c/many.c`.
    #[repr(C)]
    pub struct Many([u64; 0]);

    /// `struct nr_sample`.
    #[repr(C)]
    pub struct Sample {
        pub now_us: u64,
        pub bw: u64,
        pub delay_us: i32,
        pub delivered: u32,
        pub lost: u32,
        pub cycles: u32,
        pub rtt_us: u32,
        pub sampled: u8,
        pub supposed: u8,
        pub limited: u8,
        pub resting: u8,
    }

    unsafe extern "C" {
        pub fn narrows_many_size() -> u64;
        pub fn narrows_many_pair(many: *const Many, i: u32, j: u32, pair: *mut Pair) -> i32;
        pub fn narrows_many_init(
            many: *mut Many,
            detector: u32,
            params: *const [u32; DETECTOR_PARAMS],
        );
        pub fn narrows_many_sample(many: *mut Many, flow: u32, sample: *const Sample) -> u32;
        pub fn narrows_many_close(
            many: *mut Many,
            number: u64,
            observed: *mut [u8; MAX_FLOWS],
            decided: *mut [u8; MAX_FLOWS],
        ) -> i32;
    }
}
