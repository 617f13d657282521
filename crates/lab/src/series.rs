//! Time series of a run: one row per path every 100 ms, as CSV or Parquet.

use std::io::Write;

use narrows_net::{MILLISECOND, Nanos};
use serde::{Deserialize, Serialize};

/// Time between samples.
pub const INTERVAL: Nanos = 100 * MILLISECOND;

/// The state of a path at a time. The names carry the units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Time since the start of the run.
    pub time_s: f64,
    /// Name of the connection.
    pub connection: String,
    /// Name of the path.
    pub path: String,
    /// Congestion window; none before its subflow is there.
    pub cwnd_packets: Option<u32>,
    /// Slow start threshold; none before the first loss.
    pub ssthresh_packets: Option<u32>,
    /// Smoothed RTT; none before the first measurement.
    pub srtt_ms: Option<f64>,
    /// Packets in flight.
    pub inflight_packets: Option<u32>,
    /// Payload acknowledged on this path since the last sample; none before the connection starts.
    pub goodput_mbps: Option<f64>,
    /// Queueing delay a packet would meet now on the shared links of the path.
    pub queue_ms: f64,
}

/// Writes the samples as CSV, with a line of names.
pub fn write_csv(samples: &[Sample], to: impl Write) -> std::io::Result<()> {
    let mut writer = csv::Writer::from_writer(to);
    for sample in samples {
        writer.serialize(sample)?;
    }
    writer.flush()
}
