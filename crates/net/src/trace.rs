//! Recorded traces of delivery opportunities, in Mahimahi's format.

use crate::{MILLISECOND, Nanos, TraceError, TraceFault};

/// A recorded sequence of delivery opportunities.
///
/// The format is that of Mahimahi's `mm-link` (Netravali et al., USENIX ATC 2015): one line per
/// opportunity, its time in whole milliseconds since the start, not decreasing. At each the link
/// carries up to [`Trace::OPPORTUNITY`] bytes. The trace repeats at its end; its period is the last
/// timestamp. Other recordings become such opportunities, see [`Trace::of_times`] and
/// [`Trace::of_rates`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    name: String,
    /// Times of the opportunities in ms; never empty.
    times: Vec<u32>,
    /// Time after which it repeats in ms, above 0 and not before the last of them.
    period: u32,
}

impl Trace {
    /// Bytes that one opportunity carries: Mahimahi's `PACKET_SIZE`, an MTU of 1500 and the 4 bytes
    /// of the TUN header.
    pub const OPPORTUNITY: u32 = 1504;

    /// Reads a trace. `name` is used in error messages only.
    ///
    /// # Errors
    /// The first line that is not a timestamp in order, or a trace without a period; see
    /// [`TraceFault`].
    pub fn parse(text: &[u8], name: &str) -> Result<Trace, TraceError> {
        let error = |line, fault| TraceError { name: name.to_owned(), line, fault };
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if text.is_empty() {
            return Err(error(1, TraceFault::Empty));
        }
        let mut times = Vec::new();
        for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
            times.push(parse_time(line.trim_ascii()).map_err(|fault| error(index + 1, fault))?);
        }
        Trace::of_times(times, name)
    }

    /// A trace with opportunities at these times, ms, the last of which is its period.
    ///
    /// # Errors
    /// As of [`Trace::parse`]; the lines are the places in `times`, from 1.
    pub fn of_times(times: Vec<u32>, name: &str) -> Result<Trace, TraceError> {
        let error = |line, fault| TraceError { name: name.to_owned(), line, fault };
        if let Some(at) = times.windows(2).position(|pair| pair[1] < pair[0]) {
            return Err(error(at + 2, TraceFault::Unordered));
        }
        match times.last() {
            None => Err(error(1, TraceFault::Empty)),
            Some(0) => Err(error(times.len(), TraceFault::ZeroPeriod)),
            Some(&period) => Ok(Trace { name: name.to_owned(), times, period }),
        }
    }

    /// A trace of rates in bit/s, each for a time. An opportunity comes in the millisecond in which its
    /// last byte could have been sent, so that no time has more of them than the rates carry. The period is
    /// the sum of the times, in whole milliseconds.
    ///
    /// # Errors
    /// The trace carries nothing, or is too long; the lines are the places in `steps`, from 1.
    pub fn of_rates(
        steps: impl IntoIterator<Item = (Nanos, u64)>,
        name: &str,
    ) -> Result<Trace, TraceError> {
        let error = |line, fault| TraceError { name: name.to_owned(), line, fault };
        // bit ns at 1 bit/s.
        const NEED: u128 = 8 * Trace::OPPORTUNITY as u128 * crate::SECOND as u128;
        let ms = |time: u128| u32::try_from(time.div_ceil(MILLISECOND.into())).ok();
        let (mut times, mut end, mut has, mut line) = (Vec::new(), 0_u128, 0_u128, 0);
        for (time, rate) in steps {
            line += 1;
            let (mut now, rate) = (end, u128::from(rate));
            end += u128::from(time);
            ms(end).ok_or_else(|| error(line, TraceFault::TooLarge))?;
            // Before they fill the memory.
            if times.len() as u128 + (has + rate * (end - now)) / NEED > Self::MOST as u128 {
                return Err(error(line, TraceFault::TooMany));
            }
            while has + rate * (end - now) >= NEED {
                let wait = (NEED - has).div_ceil(rate);
                now += wait;
                has = has + rate * wait - NEED;
                times.extend(ms(now));
            }
            has += rate * (end - now);
        }
        match ms(end) {
            Some(period) if !times.is_empty() => Ok(Trace { name: name.to_owned(), times, period }),
            _ => Err(error(line.max(1), TraceFault::Nothing)),
        }
    }

    /// Opportunities that a trace of rates may have: a gigabit link for twelve minutes.
    const MOST: usize = 1 << 26;

    /// The name given to [`Trace::parse`].
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Times of the opportunities in one period, ms.
    pub fn times(&self) -> &[u32] {
        &self.times
    }

    /// Number of opportunities in one period.
    pub fn opportunities(&self) -> usize {
        self.times.len()
    }

    /// Time after which the trace repeats.
    pub fn period(&self) -> Nanos {
        u64::from(self.period) * MILLISECOND
    }

    /// Mean rate in bit/s if every opportunity is filled.
    pub fn mean_rate(&self) -> u64 {
        let bits = self.times.len() as u128 * u128::from(Self::OPPORTUNITY) * 8;
        (bits * u128::from(crate::SECOND) / u128::from(self.period())) as u64
    }

    /// Bits that the opportunities carry that come after `from` and until `until`, if each is filled.
    pub fn bits(&self, from: Nanos, until: Nanos) -> f64 {
        let before = |time: Nanos| {
            let periods = (time / self.period()) as usize;
            periods * self.times.len() + self.after(time % self.period())
        };
        let opportunities = before(until).saturating_sub(before(from));
        opportunities as f64 * f64::from(Self::OPPORTUNITY * 8)
    }

    /// Time of opportunity `index` since the start of a period.
    pub(crate) fn time(&self, index: usize) -> Nanos {
        u64::from(self.times[index]) * MILLISECOND
    }

    /// The first opportunity later than `offset` since the start of a period, if there is one.
    pub(crate) fn after(&self, offset: Nanos) -> usize {
        self.times.partition_point(|&ms| u64::from(ms) * MILLISECOND <= offset)
    }
}

/// Reads one line.
fn parse_time(line: &[u8]) -> Result<u32, TraceFault> {
    let (negative, digits) = match line.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, line),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(TraceFault::NotNumeric);
    }
    if negative {
        return Err(TraceFault::Negative);
    }
    // Only digits, hence ASCII, and the only way to fail is to overflow.
    let digits = std::str::from_utf8(digits).map_err(|_| TraceFault::NotNumeric)?;
    digits.parse().map_err(|_| TraceFault::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &str) -> (usize, TraceFault) {
        let error = Trace::parse(text.as_bytes(), "lte.down").unwrap_err();
        (error.line, error.fault)
    }

    #[test]
    fn a_trace_is_a_list_of_milliseconds() {
        let trace = Trace::parse(b"0\n0\n5\r\n10\n", "lte").unwrap();
        assert_eq!(trace.opportunities(), 4);
        assert_eq!(trace.period(), 10 * MILLISECOND);
        // 4 opportunities of 1504 bytes in 10 ms.
        assert_eq!(trace.mean_rate(), 4 * 1504 * 8 * 100);
        assert_eq!(Trace::parse(b"0\n0\n5\n10", "lte").unwrap(), trace);
    }

    #[test]
    fn a_part_of_a_trace_has_the_opportunities_in_it() {
        // Four in the first 10 ms, then none for 30.
        let trace = Trace::parse(b"2\n4\n6\n8\n40\n", "half").unwrap();
        let count = |from: u64, until: u64| {
            trace.bits(from * MILLISECOND, until * MILLISECOND) / (1504.0 * 8.0)
        };
        assert_eq!((count(0, 10), count(10, 39), count(0, 40)), (4.0, 0.0, 5.0));
        assert_eq!((count(4, 6), count(40, 44), count(5, 85)), (1.0, 2.0, 2.0 + 1.0 + 5.0 + 2.0));
        assert_eq!(count(0, 4000) * 1504.0 * 8.0 / 4.0, trace.mean_rate() as f64);
    }

    #[test]
    fn rates_become_opportunities() {
        const MS: Nanos = MILLISECOND;
        // A byte in a microsecond: an opportunity each 1.504 ms; what is left at the end is lost.
        let trace = Trace::of_rates([(10 * MS, 8_000_000)], "rates").unwrap();
        assert_eq!(trace.times(), [2, 4, 5, 7, 8, 10]);
        assert_eq!(trace.period(), 10 * MS);
        // Part of an opportunity is kept over a change of the rate, and over a time without any.
        let steps = [(MS, 8_000_000), (5 * MS, 0), (MS, 8_000_000), (100 * MS, 1)];
        let trace = Trace::of_rates(steps, "rates").unwrap();
        assert_eq!((trace.times(), trace.period()), (&[7][..], 107 * MS));
        let fault = |steps: &[(Nanos, u64)]| {
            let error = Trace::of_rates(steps.iter().copied(), "rates").unwrap_err();
            (error.line, error.fault)
        };
        assert_eq!(fault(&[]), (1, TraceFault::Nothing));
        assert_eq!(fault(&[(MS, 1), (MS, 1)]), (2, TraceFault::Nothing));
        assert_eq!(fault(&[(MS, 1), (Nanos::MAX, 1)]), (2, TraceFault::TooLarge));
        assert_eq!(fault(&[(3_600_000 * MS, 1_000_000_000_000)]), (1, TraceFault::TooMany));
    }

    #[test]
    fn a_broken_trace_is_refused_with_its_line() {
        assert_eq!(fault(""), (1, TraceFault::Empty));
        assert_eq!(fault("\n"), (1, TraceFault::Empty));
        assert_eq!(fault("1\n\n2\n"), (2, TraceFault::NotNumeric));
        assert_eq!(fault("1\n2.5\n"), (2, TraceFault::NotNumeric));
        assert_eq!(fault("1\nx\n"), (2, TraceFault::NotNumeric));
        assert_eq!(fault("1\n+2\n"), (2, TraceFault::NotNumeric));
        assert_eq!(fault("-\n"), (1, TraceFault::NotNumeric));
        assert_eq!(fault("-1\n"), (1, TraceFault::Negative));
        assert_eq!(fault("4294967296\n"), (1, TraceFault::TooLarge));
        assert_eq!(fault("1\n3\n2\n"), (3, TraceFault::Unordered));
        assert_eq!(fault("0\n0\n"), (2, TraceFault::ZeroPeriod));
        let gzip = Trace::parse(b"\x1f\x8b\x08\x00", "lte.gz").unwrap_err();
        assert_eq!(gzip.to_string(), "lte.gz:1: not a whole number of milliseconds");
    }
}
