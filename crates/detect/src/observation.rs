//! What a capture or a table shows of a flow at one time.

use std::fmt;

use narrows_laws::detect::Sample;

/// How a delay was taken. One run has one signal, so that delays can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// One-way delay, as a table has it.
    Owd,
    /// One-way delay at or near the receiver: when data passed, less its timestamp.
    OwdReceiver,
    /// One-way delay at or near the sender: the timestamp of the acknowledgement less when the data
    /// passed.
    OwdSender,
    /// Time from data to its acknowledgement, as a table or a capture near the sender has it.
    Rtt,
    /// Time from one change of QUIC's spin bit to the next, in a capture of any place.
    Spin,
}

impl Signal {
    /// Its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Signal::Owd => "owd",
            Signal::OwdReceiver => "owd-receiver",
            Signal::OwdSender => "owd-sender",
            Signal::Rtt => "rtt",
            Signal::Spin => "spin",
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        match self {
            Signal::Owd => "one-way delay",
            Signal::OwdReceiver => "one-way delay, by timestamps, captured near the receiver",
            Signal::OwdSender => "one-way delay, by timestamps, captured near the sender",
            Signal::Rtt => "round-trip time",
            Signal::Spin => "round-trip time, by QUIC's spin bit",
        }
    }

    /// The same of a capture that was made in the middle, as `--at` says.
    pub(crate) fn about_in_the_middle(self) -> &'static str {
        match self {
            Signal::OwdReceiver | Signal::OwdSender => {
                "one-way delay, by timestamps, captured in the middle"
            }
            Signal::Owd | Signal::Rtt | Signal::Spin => self.about(),
        }
    }

    /// Does it come with losses?
    pub(crate) fn has_losses(self) -> bool {
        self != Signal::Spin
    }

    /// Its column in a table.
    pub(crate) fn column(self) -> &'static str {
        if self == Signal::Rtt { "rtt_ms" } else { "owd_ms" }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is known of a flow at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Number of the flow.
    pub flow: usize,
    /// Microseconds since the beginning of the file; never less than before.
    pub now_us: u64,
    /// Relative to some delay of the flow, microseconds.
    pub delay_us: Option<i32>,
    /// Packets that arrived since the flow's last.
    pub delivered: u32,
    /// Packets that were lost since.
    pub lost: u32,
}

impl Observation {
    /// What a detector is given of it.
    pub(crate) fn sample(&self) -> Sample {
        let Observation { now_us, delay_us, delivered, lost, .. } = *self;
        Sample { now_us, delay_us, rtt_us: None, delivered, lost, limited: false }
    }
}
