//! A look at a connection: what its subflows did since the last one, and which of them holds up the others.

/// What a scheduler gives a subflow at a time, bytes: Linux's MPTCP_SEND_BURST_SIZE (net/mptcp/protocol.c), 64 kB.
const BURST: f64 = 65_428.0;
/// As much as a path may cost before it is tried without it, a share of what is delivered.
pub(crate) const GAIN: f64 = 0.8;
/// A path is busy all the time from this share on, and one has room that delivers less than this share of what it
/// could.
pub(crate) const BUSY: f64 = 0.9;

/// A subflow at a look; `P` names it.
#[derive(Clone, Copy, Debug)]
pub struct Sample<P> {
    /// Its connection.
    pub token: u32,
    /// Its name.
    pub subflow: P,
    /// Bytes acknowledged since it began.
    pub acked: u64,
    /// Bytes received since it began.
    pub received: u64,
    /// Time since it began in which there was something to send, or out, µs (`tcpi_busy_time`).
    pub busy_us: u64,
    /// Smoothed RTT, µs.
    pub srtt_us: u32,
    /// What its control lets be out, bytes: [`window`].
    pub window: u64,
    /// Is it a backup, whoever wanted that?
    pub backup: bool,
}

/// What a control lets be out that has a window of so many packets of `mss` bytes. That of a model law is twice what
/// it wants out, so that late acknowledgements do not stop it (BBR's cwnd_gain: Cardwell et al., CACM 60(2), 2017).
pub fn window(cwnd: u32, mss: u32, model: bool) -> u64 {
    u64::from(cwnd) * u64::from(mss) / if model { 2 } else { 1 }
}

/// What a subflow did between two looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<P> {
    pub subflow: P,
    pub bytes: f64,
    pub received: f64,
    pub busy_s: f64,
    pub srtt_us: u32,
    pub window: f64,
    pub backup: bool,
}

impl<P: Copy> Part<P> {
    pub fn between(last: &Sample<P>, now: &Sample<P>) -> Part<P> {
        Part {
            subflow: now.subflow,
            bytes: now.acked.saturating_sub(last.acked) as f64,
            received: now.received.saturating_sub(last.received) as f64,
            busy_s: now.busy_us.saturating_sub(last.busy_us) as f64 / 1e6,
            srtt_us: now.srtt_us,
            window: now.window as f64,
            backup: now.backup,
        }
    }

    /// What it would deliver if it always had something to send, bytes/s: what it delivered while it had, and, as a
    /// small window is on its way all the time, no less than a window each round trip.
    fn could(&self) -> f64 {
        let by_window =
            if self.srtt_us > 0 { self.window * 1e6 / f64::from(self.srtt_us) } else { 0.0 };
        (self.bytes / self.busy_s).max(by_window)
    }

    /// Until what is given to it now is acknowledged, s.
    fn holds(&self, seconds: f64) -> f64 {
        f64::from(self.srtt_us) / 1e6 + BURST * seconds / self.bytes
    }
}

/// A path that holds up the others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drag<P> {
    pub subflow: P,
    /// What is sent with it, and what the others could deliver without it, bytes/s.
    pub with: f64,
    pub without: f64,
}

/// The path that takes longest for what is given to it, if the others wait for it and could deliver more.
pub(crate) fn drag<P: Copy + PartialEq>(parts: &[Part<P>], seconds: f64) -> Option<Drag<P>> {
    let used: Vec<&Part<P>> =
        parts.iter().filter(|part| !part.backup && part.busy_s > 0.0).collect();
    // One that delivers nothing is dead for now: all wait for that one, and the path manager sees to it.
    if used.iter().any(|part| part.bytes == 0.0) {
        return None;
    }
    let holds = |part: &&&Part<P>| part.holds(seconds);
    let worst = used.iter().max_by(|one, other| holds(one).total_cmp(&holds(other)))?;
    let others = || used.iter().filter(|part| part.subflow != worst.subflow);
    let wait = others().next().is_some()
        && others().all(|part| part.bytes < BUSY * part.could() * seconds);
    let without: f64 = others().map(|part| part.could()).sum();
    let with = parts.iter().map(|part| part.bytes).sum::<f64>() / seconds;
    let delivered = with + parts.iter().map(|part| part.received).sum::<f64>() / seconds;
    let receives = worst.received > (1.0 - GAIN) * delivered * seconds;
    let drags = wait && worst.busy_s >= BUSY * seconds && with < GAIN * without;
    (drags && !receives).then_some(Drag { subflow: worst.subflow, with, without })
}
