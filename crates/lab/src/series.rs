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

/// Writes the samples as Parquet: one row group, columns as in the CSV.
#[cfg(feature = "parquet")]
pub fn write_parquet(samples: &[Sample], to: impl Write + Send) -> std::io::Result<()> {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type};
    use parquet::errors::Result;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    const SCHEMA: &str = "message series {
        required double time_s;
        required binary connection (UTF8);
        required binary path (UTF8);
        optional int32 cwnd_packets;
        optional int32 ssthresh_packets;
        optional double srtt_ms;
        optional int32 inflight_packets;
        optional double goodput_mbps;
        required double queue_ms;
    }";

    fn column<T: DataType, W: Write + Send>(
        group: &mut SerializedRowGroupWriter<W>,
        (values, defined): (Vec<T::T>, Option<Vec<i16>>),
    ) -> Result<()> {
        // The columns come in the order of the schema, and so do the calls below.
        if let Some(mut column) = group.next_column()? {
            column.typed::<T>().write_batch(&values, defined.as_deref(), None)?;
            column.close()?;
        }
        Ok(())
    }

    // The values that are there, and where they are.
    type Column<T> = (Vec<T>, Option<Vec<i16>>);
    fn some<T>(values: impl Iterator<Item = Option<T>> + Clone) -> Column<T> {
        let defined = values.clone().map(|value| i16::from(value.is_some())).collect();
        (values.flatten().collect(), Some(defined))
    }

    let text = |get: fn(&Sample) -> &str| -> Column<ByteArray> {
        (samples.iter().map(|sample| ByteArray::from(get(sample))).collect(), None)
    };
    let number =
        |get: fn(&Sample) -> f64| -> Column<f64> { (samples.iter().map(get).collect(), None) };
    let count = |get: fn(&Sample) -> Option<u32>| -> Column<i32> {
        some(samples.iter().map(get).map(|of| of.map(|n| n.try_into().unwrap_or(i32::MAX))))
    };

    let write = || -> Result<()> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        // The default names the version of the library, which is not ours to put in a result.
        let properties = WriterProperties::builder().set_created_by("narrows".into()).build();
        let mut file = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        column::<DoubleType, _>(&mut group, number(|s| s.time_s))?;
        column::<ByteArrayType, _>(&mut group, text(|s| &s.connection))?;
        column::<ByteArrayType, _>(&mut group, text(|s| &s.path))?;
        column::<Int32Type, _>(&mut group, count(|s| s.cwnd_packets))?;
        column::<Int32Type, _>(&mut group, count(|s| s.ssthresh_packets))?;
        column::<DoubleType, _>(&mut group, some(samples.iter().map(|s| s.srtt_ms)))?;
        column::<Int32Type, _>(&mut group, count(|s| s.inflight_packets))?;
        column::<DoubleType, _>(&mut group, some(samples.iter().map(|s| s.goodput_mbps)))?;
        column::<DoubleType, _>(&mut group, number(|s| s.queue_ms))?;
        group.close()?;
        file.close().map(|_| ())
    };
    write().map_err(std::io::Error::other)
}
