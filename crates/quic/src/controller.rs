//! The adapter: noq's callbacks of one path become events of its law.

use crate::ack_wait::AckWait;
use crate::alone::Alone;
use crate::rate::RateSampler;
use crate::shared::{Lost, Reply, Shared, Slot};
use crate::snapshot::PathState;
use crate::window::{Packets, Window};
use narrows_laws::{Advice, Event, EventKind, State, flag};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes that may leave in one call at the most (draft-ietf-ccwg-bbr, section 5.6.3).
const QUANTUM_MAX: u64 = 64 * 1024;

/// What one ACK frame acknowledges, as it is reported packet by packet.
#[derive(Clone, Copy, Debug, Default)]
struct Batch {
    packets: u32,
    /// Bytes of packets that were sent before the recovery that is under way began, and after.
    before: u64,
    after: u64,
    /// Number and send time of the newest packet, µs.
    newest: Option<(u64, u64)>,
    /// The smoothed RTT before this frame, µs.
    srtt_us: u64,
}

/// A loss or mark of which the law was told: a window law reduced the window.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    kind: EventKind,
    at_us: u64,
    /// Packets that are acknowledged were sent before: the window does not grow.
    recovering: bool,
    /// If all its packets turn out to have arrived, it was a mistake.
    undoable: bool,
}

/// The congestion controller of one path.
#[derive(Clone, Debug)]
pub(crate) struct PathController {
    slot: Arc<Slot>,
    alone: Option<Box<Alone>>,
    joined: bool,
    /// It had the handshake.
    first: bool,
    /// Time of the last callback that had one, µs.
    last_us: u64,
    mtu: u16,
    window: Window,
    pacing_rate: u64,
    bw: u64,
    srtt_us: Option<u64>,
    min_rtt_us: u64,
    /// Bytes in flight, without a probe of the MTU: if that is lost noq does not say so.
    inflight: u64,
    /// Number and bytes of the newest probe, unless it arrived.
    probe: Option<(u64, u16)>,
    delivered: Packets,
    /// Packets lost, and acknowledgements with marks, since the last event.
    lost: u32,
    marked: u32,
    batch: Batch,
    reduction: Option<Reduction>,
    rate: RateSampler,
    /// Number of its first packet: earlier ones of the path were another controller's.
    first_sent: Option<u64>,
    last_sent: Option<u64>,
    /// Number of the last packet that carried data: at least half full, and no probe of the MTU.
    last_data: Option<u64>,
    /// The law knows that the path is parked.
    parked: bool,
    largest_acked: Option<u64>,
    /// The window was full when packets up to this one had been sent.
    full_at: Option<u64>,
    /// Packets in a row that were acknowledged alone.
    lone: u32,
    /// [`Shared::ack_updates`] when it was built.
    ack_updates: u32,
}

impl PathController {
    pub fn new(shared: Arc<Shared>, mtu: u16) -> PathController {
        PathController {
            ack_updates: shared.ack_updates(),
            slot: Arc::new(Slot::new(shared)),
            alone: None,
            joined: false,
            first: false,
            last_us: 0,
            mtu,
            window: Window::initial(mtu),
            pacing_rate: 0,
            bw: 0,
            srtt_us: None,
            min_rtt_us: u64::MAX,
            inflight: 0,
            probe: None,
            delivered: Packets::default(),
            lost: 0,
            marked: 0,
            batch: Batch::default(),
            reduction: None,
            rate: RateSampler::default(),
            first_sent: None,
            last_sent: None,
            last_data: None,
            parked: false,
            largest_acked: None,
            full_at: None,
            lone: 0,
        }
    }

    fn shared(&self) -> &Shared {
        &self.slot.shared
    }

    /// Does the law own window and pacing rate at all times, as BBR?
    fn is_model(&self) -> bool {
        self.shared().control.law.is_model()
    }

    /// Does it belong to the factory with this state?
    pub fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.slot.shared, shared)
    }

    /// A time of noq's in µs.
    fn us(&mut self, now: Instant) -> u64 {
        self.last_us = self.last_us.max(self.shared().us(now));
        self.last_us
    }

    /// Its slot among the connection's paths; none before it has one, and if it runs alone.
    pub fn number(&self) -> Option<usize> {
        self.slot.number.get().copied().filter(|_| self.alone.is_none())
    }

    /// noq has abandoned the path, and keeps its state for a while.
    pub fn leave(&self) {
        self.slot.leave();
    }

    /// [`crate::Factory::parked`].
    pub fn park(&self, parked: bool) {
        self.slot.park(parked);
    }

    /// Has this controller sent packet `number`? noq also tells it of the losses of an earlier 4-tuple.
    fn is_own(&self, number: u64) -> bool {
        self.first_sent.is_some_and(|first| number >= first)
    }

    /// Is packet `number` one of a parked path that no data follows? Such ones only keep the path open,
    /// and say nothing of what it could carry.
    fn is_quiet(&self, number: u64) -> bool {
        self.slot.is_parked() && self.last_data.is_none_or(|data| number > data)
    }

    /// Tells the law once that the path is parked, as siblings are to know at once.
    fn tell_parked(&mut self, now_us: u64) {
        let parked = self.slot.is_parked();
        if parked && !self.parked {
            let mut event = self.new_event(EventKind::Acked, now_us);
            event.flags |= if self.recovering().is_some() { flag::IN_RECOVERY } else { 0 };
            self.report(&event);
        }
        self.parked = parked;
    }

    /// An event with what is the same in all.
    fn new_event(&mut self, kind: EventKind, now_us: u64) -> Event {
        let mss = self.window.mss;
        let state = if self.slot.is_parked() { State::Backup } else { State::Active };
        Event {
            kind: kind as u32,
            flags: flag::PACED | flag::RESIZED | if self.shared().srtt { flag::SRTT } else { 0 },
            state: state as u32,
            now_us,
            lost: std::mem::take(&mut self.lost),
            marked: std::mem::take(&mut self.marked),
            inflight: u32::try_from(self.inflight.div_ceil(mss)).unwrap_or(u32::MAX),
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            srtt8_us: self.srtt_us.map_or(0, |us| u32::try_from(8 * us).unwrap_or(u32::MAX).max(1)),
            mss: mss as u32,
            ..Event::default()
        }
    }

    /// The path's first packet leaves: until then it is not there.
    fn join(&mut self, now_us: u64) {
        self.joined = true;
        let mut event = self.new_event(EventKind::Joined, now_us);
        event.state = State::Joining as u32;
        // The slow start says what the first window is: at most this one.
        event.ssthresh = 0;
        match self.shared().join(&event) {
            Ok((number, reply)) => {
                // A path joins once, and its clones have joined with it.
                let _ = self.slot.number.set(number);
                self.apply(reply);
            }
            Err(Lost) => self.go_alone(now_us),
        }
    }

    /// Runs the law on this path alone, from the window that it has.
    fn go_alone(&mut self, now_us: u64) {
        if self.alone.is_some() {
            return;
        }
        self.slot.leave();
        self.shared().count_alone(now_us);
        let mut alone = Box::new(Alone::new(self.shared().control, &self.shared().params));
        let event = self.new_event(EventKind::Joined, now_us);
        let reply = alone.event(&event);
        self.alone = Some(alone);
        self.apply(reply);
    }

    /// Reports an event, and does what the law says.
    fn report(&mut self, event: &Event) {
        if let Some(alone) = &mut self.alone {
            let reply = alone.event(event);
            return self.apply(reply);
        }
        let Some(&number) = self.slot.number.get().filter(|_| !self.slot.has_left()) else {
            return;
        };
        match self.shared().event(number, event) {
            Ok(reply) => self.apply(reply),
            Err(Lost) => {
                self.go_alone(event.now_us);
                self.report(event);
            }
        }
    }

    fn apply(&mut self, reply: Reply) {
        let output = reply.output;
        self.window.set(output.cwnd, output.ssthresh, reply.credit);
        (self.pacing_rate, self.bw) = (output.pacing_rate, reply.bw);
    }

    fn publish(&self) {
        let Some(slot) = self.number().filter(|_| !self.slot.has_left()) else { return };
        self.shared().publish(
            self.last_us,
            PathState {
                slot,
                cwnd: self.window.bytes(),
                inflight: self.inflight,
                ssthresh: self.window.ssthresh_bytes(),
                recovering: self.recovering().is_some(),
                srtt: self.srtt_us.map(Duration::from_micros),
                place: None,
                coupled: 0,
                advice: Advice::None,
            },
        );
    }

    fn recovering(&self) -> Option<u64> {
        self.reduction.filter(|reduction| reduction.recovering).map(|reduction| reduction.at_us)
    }

    /// Is the window what limits the sender? As noq's flag that the application is the limit is of
    /// this moment and of the path's last turn to send, a window counts as used while packets arrive
    /// that were sent before it was last full; in slow start, where it outgrows what is paced, also if
    /// half of it is used (as Linux: tcp_is_cwnd_limited()).
    fn is_full(&self, newest: u64, acked: u64) -> bool {
        self.full_at.is_some_and(|full| newest <= full)
            || self.window.cwnd < self.window.ssthresh
                && self.window.bytes() < 2 * (self.inflight + acked)
    }

    /// A packet arrived, or was lost.
    fn left_flight(&mut self, pn: u64, bytes: u64) {
        if self.probe.take_if(|(probe, _)| *probe == pn).is_none() {
            self.inflight = self.inflight.saturating_sub(bytes);
        }
    }

    /// A packet of an ACK frame; `srtt`: the smoothed RTT before this frame.
    fn arrived(&mut self, sent: Instant, bytes: u64, pn: u64, srtt: Duration) {
        let sent_us = self.shared().us(sent);
        self.left_flight(pn, bytes);
        self.rate.arrived(pn, bytes);
        let before = self.recovering().is_some_and(|began| sent_us <= began);
        let batch = &mut self.batch;
        batch.packets += 1;
        *(if before { &mut batch.before } else { &mut batch.after }) += bytes;
        if batch.newest.is_none_or(|(_, newest)| newest <= sent_us) {
            batch.newest = Some((pn, sent_us));
        }
        batch.srtt_us = srtt.as_micros() as u64;
    }

    /// All packets of an ACK frame have been reported.
    fn acked(&mut self, now_us: u64, application_limited: bool) {
        let batch = std::mem::take(&mut self.batch);
        let Some((newest, sent_us)) = batch.newest else { return };
        // An older packet's round trip is also the wait for an acknowledgement that was overtaken.
        let rtt_us = match self.largest_acked.is_none_or(|largest| newest > largest) {
            true => now_us.saturating_sub(sent_us).max(1),
            false => 0,
        };
        self.largest_acked = self.largest_acked.max(Some(newest));
        if rtt_us > 0 {
            self.min_rtt_us = self.min_rtt_us.min(rtt_us);
        }
        if self.srtt_us.is_none() && rtt_us > 0 {
            // noq's is still what it assumes of an unknown network.
            self.srtt_us = Some(rtt_us);
        } else if self.srtt_us.is_some() {
            self.srtt_us = Some(batch.srtt_us);
        }
        if self.is_quiet(newest) {
            return;
        }
        let full = self.is_full(newest, batch.before + batch.after);
        let model = self.is_model();
        let room = if model { self.inflight < self.window() } else { !full };
        if application_limited && room {
            self.rate.limited(self.inflight);
        }
        if model && batch.after > 0 && self.recovering().is_some() {
            // First, as by Linux: the law's window of before the loss, and then what is delivered.
            self.recovered(now_us);
        }
        let mss = self.window.mss;
        let delivered = if model { self.delivered.add(batch.before + batch.after, mss) } else { 0 };
        self.rate.told(delivered);
        let sample = self.rate.sample(now_us, self.min_rtt_us);
        let packets = |bytes: u64| u32::try_from(bytes.div_ceil(mss)).unwrap_or(u32::MAX);

        let mut event = self.new_event(EventKind::Acked, now_us);
        event.sent_us = sent_us;
        event.rtt_us = u32::try_from(rtt_us).unwrap_or(u32::MAX);
        event.rate = sample.rate;
        event.sample_inflight = packets(sample.inflight);
        event.sample_delivered = packets(sample.delivered);
        event.sample_lost = packets(sample.lost);
        if sample.limited {
            event.flags |= flag::APP_LIMITED;
        }
        if sample.round_start {
            event.flags |= flag::ROUND_START;
        }
        self.lone = if batch.packets >= 2 { 0 } else { self.lone.saturating_add(1) };
        let wait = self.shared().ack_wait(self.ack_updates);
        match wait.dwell_us(batch.packets, self.lone, rtt_us, self.min_rtt_us) {
            Some(dwell_us) => {
                event.flags |= flag::DWELL;
                event.dwell_us = dwell_us;
            }
            // Its delay is none for a detector, as that of a packet that was sent again.
            None => event.flags |= flag::RETRANS,
        }
        if full {
            event.flags |= flag::CWND_LIMITED;
        }
        if self.inflight == 0 && application_limited && !self.slot.is_parked() {
            event.state = State::Idle as u32;
        }
        if model {
            // One event, also in recovery: the sample is of all that was delivered.
            let timeout = EventKind::Timeout;
            if self.reduction.is_some_and(|last| last.recovering && last.kind != timeout) {
                event.flags |= flag::IN_RECOVERY;
            }
            (event.delivered, event.sample_delivered) = (delivered, sample.packets);
            if sample.packets == 0 {
                // Bytes that fill no packet yet: with none delivered a sample would begin a round.
                event.rate = 0;
            }
            if delivered == 0 && self.lone > 0 {
                // The law knows one that was acknowledged alone, and may have waited, by its count.
                event.rtt_us = 0;
            }
            self.report(&event);
        } else {
            self.grow(now_us, &batch, event);
        }
    }

    /// Tells a window law of an ACK frame: in recovery what was sent before it does not grow the window.
    fn grow(&mut self, now_us: u64, batch: &Batch, mut event: Event) {
        if self.recovering().is_some() {
            let during = Event {
                flags: event.flags | flag::IN_RECOVERY,
                delivered: self.delivered.add(batch.before, self.window.mss),
                ..event
            };
            self.report(&during);
            if batch.after == 0 {
                return;
            }
            // RFC 9002, section 7.3.2: a packet arrived that was sent since.
            self.recovered(now_us);
            event.flags &= !flag::ROUND_START;
            (event.lost, event.rtt_us) = (0, 0);
            event.mss = self.window.mss as u32;
        }
        (event.cwnd, event.ssthresh) = (self.window.cwnd, self.window.ssthresh);
        event.delivered = self.delivered.add(batch.after, self.window.mss);
        self.report(&event);
    }

    fn recovered(&mut self, now_us: u64) {
        if let Some(reduction) = &mut self.reduction {
            reduction.recovering = false;
        }
        let event = self.new_event(EventKind::Recovered, now_us);
        self.report(&event);
        self.resize();
    }

    /// Counts in packets of the path's present size; not in recovery, whose end is in the old ones.
    fn resize(&mut self) {
        if u64::from(self.mtu) != self.window.mss && self.recovering().is_none() {
            self.window.resize(self.mtu);
        }
    }

    /// Packets were lost; may an earlier reduction still be undone? noq says so when all packets that
    /// it remembers as lost have arrived. It forgets those sent two timeouts before a later loss, and
    /// would then take a reduction for spurious that was not.
    fn forget_undo(&mut self, now_us: u64) {
        let half = self.srtt_us.unwrap_or(0) / 2;
        if let Some(reduction) = &mut self.reduction {
            reduction.undoable &= now_us.saturating_sub(reduction.at_us) <= half;
        }
    }
}

impl Controller for PathController {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let now_us = self.us(now);
        if !self.joined {
            self.join(now_us);
        }
        // Only the path of the handshake has several spaces of packet numbers.
        if self.last_sent.is_some_and(|last| pn <= last) && self.alone.is_none() && !self.first {
            self.first = true;
            if self.shared().first(now_us).is_err() {
                self.go_alone(now_us);
            }
        }
        self.first_sent = Some(self.first_sent.map_or(pn, |first| first.min(pn)));
        self.last_sent = Some(pn);
        if (self.mtu / 2..=self.mtu).contains(&bytes) {
            self.last_data = Some(pn);
        }
        let idle = self.inflight == 0;
        if idle && self.is_model() && !self.is_quiet(pn) {
            let mut event = self.new_event(EventKind::Restart, now_us);
            event.flags |= if self.rate.is_limited() { flag::APP_LIMITED } else { 0 };
            self.report(&event);
        }
        if bytes > self.mtu {
            self.probe = Some((pn, bytes));
        } else {
            self.inflight += u64::from(bytes);
        }
        self.rate.sent(pn, now_us, self.inflight, idle);
    }

    fn on_cwnd_limited(&mut self) {
        self.full_at = self.last_sent;
    }

    fn on_ack(
        &mut self,
        _: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        _: bool,
        rtt: &RttEstimator,
    ) {
        self.arrived(sent, bytes, pn, rtt.get());
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _: Option<u64>) {
        let now_us = self.us(now);
        // noq does not name all packets that it counts: those of keys that are discarded, and padded ones
        // with nothing but acknowledgements. A probe may be lost already.
        let probe = self.probe.map_or(0, |(_, bytes)| bytes.into());
        self.inflight = self.inflight.clamp(in_flight.saturating_sub(probe), in_flight);
        self.tell_parked(now_us);
        self.acked(now_us, app_limited);
        self.publish();
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        // Of any packet: noq remembers all of them as lost, and says so when the last has arrived.
        let now_us = self.us(now);
        self.forget_undo(now_us);
        // Of packets with nothing but acknowledgements noq gives no size: they were never in flight.
        if lost_bytes == 0 || !self.is_own(pn) {
            return;
        }
        self.left_flight(pn, lost_bytes.into());
        if self.is_quiet(pn) {
            return;
        }
        self.lost = self.lost.saturating_add(1);
        self.rate.lost(lost_bytes.into());
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _: u64,
        largest: u64,
    ) {
        let now_us = self.us(now);
        if !self.is_own(largest) || self.is_quiet(largest) {
            return;
        }
        if is_ecn {
            // noq does not say how many. One: a receiver acknowledges a packet with a mark at once (RFC
            // 9000, section 13.2.1; noq's does).
            self.marked = self.marked.saturating_add(1);
        } else {
            self.forget_undo(now_us);
        }
        // A model law reduces nothing for marks, so that losses after them are news.
        let told =
            self.reduction.filter(|last| is_ecn || !self.is_model() || last.kind != EventKind::Ecn);
        let old = told.is_some_and(|last| self.shared().us(sent) <= last.at_us);
        if old && !is_persistent_congestion {
            if is_ecn && let Some(reduction) = &mut self.reduction {
                reduction.undoable = false;
            }
            return;
        }
        let kind = match (is_persistent_congestion, is_ecn) {
            (true, _) => EventKind::Timeout,
            (false, true) => EventKind::Ecn,
            (false, false) => EventKind::Recovery,
        };
        let mut event = self.new_event(kind, now_us);
        if kind != EventKind::Timeout {
            // Of the largest packet that was lost, also where that had acknowledgements alone.
            event.sent_us = self.shared().us(sent);
        }
        self.report(&event);
        // After persistent congestion slow start runs at once (RFC 9002, section 7.6.2); a model law is
        // told when packets arrive again.
        self.reduction = Some(Reduction {
            kind,
            at_us: now_us,
            recovering: !is_persistent_congestion || self.is_model(),
            undoable: !is_ecn,
        });
        self.resize();
        self.publish();
    }

    fn on_spurious_congestion_event(&mut self) {
        if !self.reduction.is_some_and(|reduction| reduction.undoable) {
            return;
        }
        self.reduction = None;
        // noq gives no time here.
        let event = self.new_event(EventKind::Undo, self.last_us);
        self.report(&event);
        self.resize();
        self.publish();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
        self.resize();
    }

    fn on_ack_frequency_update(&mut self, threshold: u64, delay: Duration) {
        self.shared().set_ack_wait(AckWait {
            threshold: u32::try_from(threshold).unwrap_or(u32::MAX),
            delay_us: u32::try_from(delay.as_micros()).unwrap_or(u32::MAX),
        });
    }

    fn window(&self) -> u64 {
        self.window.bytes().max(2 * u64::from(self.mtu))
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.window.ssthresh_bytes();
        metrics.pacing_rate = (self.pacing_rate > 0).then_some(self.pacing_rate);
        // draft-ietf-ccwg-bbr, section 5.6.3: a millisecond of the rate. noq bounds one call by it; its
        // pacer holds 2 ms of the rate, at least ten packets, so bursts may be longer.
        metrics.send_quantum = metrics
            .pacing_rate
            .map(|rate| (rate / 1000).min(QUANTUM_MAX).max(2 * u64::from(self.mtu)));
        metrics.bandwidth_estimate = (self.bw > 0).then(|| self.bw.saturating_mul(8));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        // noq calls a clone after a rebinding, for another 4-tuple, where nothing is in flight yet.
        let mut clone = self.clone();
        (clone.first_sent, clone.inflight) = (None, 0);
        clone.rate.forget_sent();
        Box::new(clone)
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_laws::{Control, Params};

    /// The least RTT is 10 ms; a lone packet's acknowledgement waits for 25 ms.
    #[test]
    fn a_wait_is_subtracted_from_the_ninth_lone_packet_on_where_it_can_have_been() {
        let (ms, least) = (1_000, 10_000);
        let wait = AckWait::default();
        let dwell = |lone, rtt| wait.dwell_us(1, lone, rtt, least);
        assert_eq!(wait.dwell_us(2, 0, 12 * ms, least), Some(0));
        for lone in 1..=8 {
            assert_eq!(dwell(lone, 40 * ms), None, "{lone}");
        }
        for lone in [9, 10, u32::MAX] {
            assert_eq!(dwell(lone, 40 * ms), Some(25_000), "{lone}");
            // It was acknowledged sooner.
            assert_eq!(dwell(lone, 35 * ms - 1), None, "{lone}");
            assert_eq!(dwell(lone, 35 * ms), Some(25_000), "{lone}");
        }
        // The RTT is not known, or no RTT was yet.
        assert_eq!((dwell(9, 0), wait.dwell_us(1, 9, 40 * ms, u64::MAX)), (None, None));
    }

    #[test]
    fn the_wait_is_what_the_receiver_was_asked_for() {
        let (ms, least) = (1_000, 10_000);
        let mut path = path_of("lia");
        let another = |path: &PathController| PathController::new(path.slot.shared.clone(), 1200);
        let sibling = another(&path);
        let wait = |path: &PathController| path.shared().ack_wait(path.ack_updates);
        path.on_ack_frequency_update(20, Duration::from_millis(5));
        for asked in [wait(&path), wait(&sibling)] {
            assert_eq!(asked.dwell_us(21, 0, 40 * ms, least), Some(0));
            // The timer ended it: the newest waited for a part of it.
            assert_eq!(asked.dwell_us(8, 0, 40 * ms, least), None);
            assert_eq!(asked.dwell_us(1, 9, 20 * ms, least), Some(5_000));
        }
        // noq's receiver has its own threshold for a path that is opened later, until it is asked again.
        let later = another(&path);
        assert_eq!(wait(&later).dwell_us(2, 0, 40 * ms, least), Some(0));
        assert_eq!(wait(&later).dwell_us(1, 9, 20 * ms, least), Some(5_000));
        path.on_ack_frequency_update(0, Duration::from_millis(5));
        assert_eq!(wait(&later).dwell_us(1, 9, 20 * ms, least), Some(0));
    }

    fn path_of(control: &str) -> PathController {
        let control = narrows_laws::catalogue::control(control).unwrap();
        PathController::new(Arc::new(Shared::new(control, &Params::default(), false)), 1200)
    }

    #[test]
    fn a_packet_with_nothing_but_acknowledgements_is_no_loss() {
        let (mut path, now) = (path_of("bbr"), Instant::now());
        path.on_packet_sent(now, 1200, 0);
        path.on_packet_lost(0, 0, now);
        assert_eq!((path.lost, path.inflight), (0, 1200));
        path.on_packet_lost(1200, 0, now);
        assert_eq!((path.lost, path.inflight), (1, 0));
    }

    /// Full packets, and then messages of 130 bytes for eight round trips, each acknowledged alone after
    /// 20 ms: BBR's estimate is the largest sample of ten rounds.
    #[test]
    fn acknowledgements_that_fill_no_packet_begin_no_round() {
        let (mut path, start) = (path_of("bbr"), Instant::now());
        let at =
            |number: u64| Duration::from_millis(number.min(200) + 4 * number.saturating_sub(200));
        let bytes = |number: u64| if number < 200 { 1200 } else { 130 };
        let (mut acked, mut before) = (0, 0);
        for number in 0..240 {
            let now = at(number);
            while at(acked) + Duration::from_millis(20) <= now {
                let ack = start + at(acked) + Duration::from_millis(20);
                path.arrived(start + at(acked), bytes(acked).into(), acked, now - at(acked));
                acked += 1;
                let in_flight = (acked..number).map(|number| u64::from(bytes(number))).sum();
                path.on_end_acks(ack, in_flight, false, None);
            }
            path.on_packet_sent(start + now, bytes(number), number);
            if number == 200 {
                before = path.bw;
            }
        }
        assert!(before > 1_100_000 && path.bw == before, "{before} became {} bytes/s", path.bw);
    }

    #[test]
    fn a_probe_that_is_lost_leaves_the_path_idle() {
        let (mut path, now) = (path_of("bbr"), Instant::now());
        path.on_packet_sent(now, 1200, 0);
        path.on_packet_sent(now, 1452, 1);
        let srtt = Duration::from_millis(20);
        let later = now + Duration::from_millis(20);
        path.arrived(now, 1200, 0, srtt);
        path.on_end_acks(later, 1452, true, Some(0));
        // noq takes the probe for lost, and says nothing.
        assert_eq!(path.inflight, 0);
        // One that arrives was not counted either.
        path.on_packet_sent(later, 1452, 2);
        path.on_packet_sent(later, 1200, 3);
        path.arrived(later, 1452, 2, srtt);
        path.on_end_acks(later, 1200, true, Some(2));
        assert_eq!(path.inflight, 1200);
    }

    #[test]
    fn a_padded_acknowledgement_that_is_lost_leaves_the_bytes_in_flight() {
        let (mut path, now) = (path_of("reno"), Instant::now());
        path.on_packet_sent(now, 1200, 0);
        path.on_packet_sent(now, 1452, 1);
        // With TransportConfig::pad_to_mtu noq says that it is lost, but not that it was sent.
        path.on_packet_lost(1200, 2, now);
        path.on_end_acks(now, 1200 + 1452, false, None);
        assert!(path.inflight <= 1200, "the probe is none of {}", path.inflight);
        // After a black hole the probe is a packet as others.
        path.on_packet_lost(1452, 1, now);
        path.on_packet_sent(now, 1200, 3);
        path.on_end_acks(now, 2400, false, None);
        assert_eq!(path.inflight, 2400);
    }

    #[test]
    fn a_late_acknowledgement_does_not_undo_a_real_loss() {
        let (mut path, now) = (path_of("reno"), Instant::now());
        (0..10).for_each(|number| path.on_packet_sent(now, 1200, number));
        let found = now + Duration::from_millis(50);
        path.on_packet_lost(1200, 3, found);
        path.on_congestion_event(found, now, false, false, 1200, 3);
        let cut = path.window();
        // Of one with nothing but acknowledgements noq reports no congestion event.
        path.on_packet_lost(0, 12, found + Duration::from_secs(5));
        path.on_spurious_congestion_event();
        assert_eq!((path.window(), cut), (6000, 6000));
    }

    /// A window leaves at once, fills the window, and is acknowledged in pairs after 40 ms.
    fn round(path: &mut PathController, now: &mut Instant, next: &mut u64) {
        let (rtt, sent, first) = (Duration::from_millis(40), *now, *next);
        let size = path.mtu;
        let bytes = u64::from(size);
        while path.inflight + bytes <= path.window() {
            path.on_packet_sent(sent, size, *next);
            *next += 1;
        }
        path.on_cwnd_limited();
        *now += rtt;
        for number in first..*next {
            path.arrived(sent, bytes, number, rtt);
            if number % 2 == 1 || number + 1 == *next {
                path.on_end_acks(*now, (*next - 1 - number) * bytes, false, Some(number));
            }
        }
        *now += Duration::from_millis(1);
    }

    /// RFC 9000, section 14.3: a path may find that larger packets pass, and may go back to smaller ones.
    #[test]
    fn packets_of_another_size_leave_the_bytes_of_cubic_s_curve() {
        // Eight round trips from the plateau on, and from far below it, in which sizes change as in noq's search.
        let bytes = |control: &str, losses: usize, sizes: &[u16]| {
            let (mut path, mut now, mut next) = (path_of(control), Instant::now(), 0);
            (0..4).for_each(|_| round(&mut path, &mut now, &mut next));
            for _ in 0..losses {
                let sent = now - Duration::from_millis(41);
                path.on_congestion_event(now, sent, false, false, 1200, next - 1);
                (0..3).for_each(|_| round(&mut path, &mut now, &mut next));
            }
            for n in 0..8 {
                if let Some(&size) = sizes.get(n) {
                    path.on_mtu_update(size);
                }
                round(&mut path, &mut now, &mut next);
            }
            path.window()
        };
        for control in ["cubic", "gcubic+xcorr"] {
            for losses in [1, 2] {
                let same = bytes(control, losses, &[]);
                for sizes in [&[1326, 1389, 1420, 1452][..], &[1452, 1200]] {
                    let other = bytes(control, losses, sizes);
                    let off = other.abs_diff(same) * 100 / same;
                    assert!(off <= 3, "{control}, {losses}: {same} bytes, {other} by {sizes:?}");
                }
            }
        }
    }

    /// Two paths of a group have packets 10 to 29 in flight. One loses its packet 10, the other follows as
    /// 10 and 11 arrive, and packets 12 to 28. 30, 31 and 32 leave, and tell that 29 is lost; or 29 was marked.
    #[test]
    fn the_last_packets_of_what_was_in_flight_are_of_the_event_that_was_followed() {
        for is_ecn in [false, true] {
            let control = narrows_laws::catalogue::control("greno").unwrap();
            let shared = Arc::new(Shared::new(control, &Params::default(), false));
            let mut paths = [(); 2].map(|()| PathController::new(shared.clone(), 1200));
            let start = Instant::now();
            let at = |ms| start + Duration::from_millis(ms);
            let send = |path: &mut PathController, numbers: std::ops::Range<u64>, ms| {
                numbers.for_each(|number| path.on_packet_sent(at(ms), 1200, number));
                path.on_cwnd_limited();
            };
            let ack = |path: &mut PathController, numbers: std::ops::Range<u64>, sent, ms| {
                let left = path.inflight - 1200 * (numbers.end - numbers.start);
                numbers.for_each(|number| {
                    path.arrived(at(sent), 1200, number, Duration::from_millis(40));
                });
                path.on_end_acks(at(ms), left, false, None);
            };
            for path in &mut paths {
                send(path, 0..10, 0);
            }
            for path in &mut paths {
                ack(path, 0..10, 0, 40);
                send(path, 10..30, 41);
            }
            let [path, sibling] = &mut paths;
            sibling.on_packet_lost(1200, 10, at(81));
            sibling.on_congestion_event(at(81), at(41), false, false, 1200, 10);
            ack(path, 10..12, 41, 82);
            assert_eq!(path.window.cwnd, 10);
            ack(path, 12..29, 41, 83);
            send(path, 30..33, 84);
            let cwnd = |path: &PathController| path.window.cwnd;
            let congested = |path: &mut PathController, number, sent, ms| {
                if !is_ecn {
                    path.on_packet_lost(1200, number, at(ms));
                }
                path.on_congestion_event(at(ms), at(sent), false, is_ecn, 1200, number);
            };
            if is_ecn {
                ack(path, 29..30, 41, 123);
            } else {
                ack(path, 30..33, 84, 124);
            }
            let before = cwnd(path);
            congested(path, 29, 41, 124);
            assert_eq!((cwnd(path), cwnd(path) >= 10), (before, true), "{is_ecn}");
            // What leaves now is of a new event.
            send(path, 33..40, 125);
            ack(path, 34..40, 125, 165);
            congested(path, 33, 125, 165);
            assert!(cwnd(path) < before, "{is_ecn}: {} of {before}", cwnd(path));
        }
    }

    #[test]
    fn a_pause_is_no_time_of_cubic_s_curve() {
        for control in ["cubic", "gcubic+xcorr"] {
            let [busy, paused] = [0, 30].map(|pause| {
                let (mut path, mut now, mut next) = (path_of(control), Instant::now(), 0);
                (0..4).for_each(|_| round(&mut path, &mut now, &mut next));
                let sent = now - Duration::from_millis(41);
                path.on_congestion_event(now, sent, false, false, 1200, next - 1);
                (0..20).for_each(|_| round(&mut path, &mut now, &mut next));
                now += Duration::from_secs(pause);
                (0..8).for_each(|_| round(&mut path, &mut now, &mut next));
                path.window()
            });
            assert!(
                busy.abs_diff(paused) < 1200,
                "{control}: {busy}, after a pause {paused} bytes"
            );
        }
    }

    #[test]
    fn a_packet_of_another_4_tuple_is_no_loss_of_this_one() {
        let (mut before, now) = (path_of("bbr"), Instant::now());
        (0..10).for_each(|number| before.on_packet_sent(now, 1200, number));
        let clone = before.clone_box().into_any().downcast::<PathController>().unwrap();
        for mut path in [*clone, path_of("bbr")] {
            path.on_packet_lost(1200, 8, now);
            path.on_packet_sent(now, 1200, 10);
            path.on_packet_lost(1200, 9, now);
            assert_eq!((path.lost, path.inflight), (0, 1200));
            let window = path.window();
            path.on_congestion_event(now, now, true, false, 1200, 9);
            assert_eq!(path.window(), window);
            path.on_packet_lost(1200, 10, now);
            assert_eq!((path.lost, path.inflight), (1, 0));
        }
    }

    #[test]
    fn the_first_window_of_large_packets_has_fewer_of_them() {
        for control in ["reno", "cubic", "lia+lisa", "bbr3"] {
            let mut path = path_of(control);
            path.window = Window::initial(9000);
            path.mtu = 9000;
            assert_eq!(path.initial_window(), 18_000);
            path.on_packet_sent(Instant::now(), 1200, 0);
            assert_eq!(path.window(), 18_000, "{control}");
        }
    }

    #[test]
    fn persistent_congestion_ends_a_recovery_and_counts_in_the_packets_of_today() {
        for control in ["reno", "bbr3"] {
            let (mut path, now) = (path_of(control), Instant::now());
            path.on_packet_sent(now, 1200, 0);
            path.on_congestion_event(now, now, false, false, 1200, 0);
            path.on_mtu_update(1452);
            assert_eq!(path.window.mss, 1200, "{control}");
            let later = now + Duration::from_secs(1);
            path.on_congestion_event(later, later, true, false, 1200, 0);
            // A model law is in recovery until packets arrive.
            let expected = if control == "reno" { 1452 } else { 1200 };
            assert_eq!(path.window.mss, expected, "{control}");
        }
    }

    #[test]
    fn smaller_packets_are_more_of_them_in_the_same_bytes() {
        let shared = Arc::new(Shared::new(Control::LIA, &Params::default(), false));
        let mut path = PathController::new(shared, 1452);
        path.on_packet_sent(Instant::now(), 1452, 0);
        assert_eq!((path.window(), path.window.cwnd), (14_520, 10));
        path.on_mtu_update(1200);
        assert_eq!((path.window(), path.window.cwnd), (14_520, 12));
    }
}
