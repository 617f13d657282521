//! A series as Parquet holds what the CSV holds.

use narrows_lab::series::Sample;
use narrows_lab::tables::{series, write_parquet};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

#[test]
fn samples_come_back_from_parquet() {
    let sample = |time_s, ssthresh_packets| Sample {
        time_s,
        connection: "mptcp".into(),
        path: "path1".into(),
        cwnd_packets: Some(10),
        ssthresh_packets,
        srtt_ms: ssthresh_packets.map(|_| 20.5),
        inflight_packets: Some(9),
        goodput_mbps: Some(1.25),
        queue_ms: 3.0,
    };
    let mut bytes = Vec::new();
    let table = series(&[sample(0.1, None), sample(0.2, Some(7))]).unwrap();
    write_parquet(&table, &mut bytes).unwrap();
    // A few names stand in many rows.
    for name in ["connection", "path"] {
        let column = table.column_by_name(name).unwrap().data_type();
        assert!(matches!(column, arrow_schema::DataType::Dictionary(..)), "{name}: {column}");
    }

    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &bytes).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 2);
    let names: Vec<&String> = rows[0].get_column_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names,
        [
            "time_s",
            "connection",
            "path",
            "cwnd_packets",
            "ssthresh_packets",
            "srtt_ms",
            "inflight_packets",
            "goodput_mbps",
            "queue_ms"
        ]
    );
    assert_eq!(rows[1].get_double(0).unwrap(), 0.2);
    assert_eq!(rows[1].get_string(1).unwrap(), "mptcp");
    assert!(rows[0].get_uint(4).is_err(), "no ssthresh before the first loss");
    assert_eq!(rows[1].get_uint(4).unwrap(), 7);
    assert!(rows[0].get_double(5).is_err(), "no RTT before it was measured");
    assert_eq!(rows[1].get_double(5).unwrap(), 20.5);
    assert_eq!(rows[1].get_double(8).unwrap(), 3.0);
}
