//! Tables: what is read, and what each mistake is told as.

mod wire;

use narrows_detect::{Input, Limits, Observation, Signal, Source};
use wire::observations;

fn open(text: &str, losses: Option<&str>) -> Result<Source, String> {
    let losses = losses.map(|text| Input::bytes("losses.csv", text.as_bytes()));
    Source::open(
        Input::bytes("t.csv", text.as_bytes()),
        losses,
        Limits { flows: 16, packets: 1, at: None },
    )
    .map_err(|e| e.to_string())
}

fn refused(text: &str) -> String {
    open(text, None).unwrap_err()
}

#[test]
fn columns_are_found_by_name_and_the_wait_is_subtracted() {
    let text = "t_s, ackno ,flow,rtt_ms,rtx,dwell_ms\r\n\
                1.5,7,wifi,50.25,0,0\n\
                1.6,8,lte,80,0,1e1\n\
                1.7,9,wifi,90,0,40\n\
                1.8,9,wifi,900,1,0\n";
    let source = open(text, Some("flow,t_s\nother,1.55\nlte,1.65\nwifi,1.7\nwifi,9\n")).unwrap();
    assert_eq!((source.recording().signal, source.recording().span), (Signal::Rtt, (1.5, 9.0)));
    assert_eq!(source.recording().flows, ["wifi", "lte"]);
    let of = |flow, now_us, delay_us| {
        let (delivered, lost) = if now_us % 100_000 == 50_000 { (0, 1) } else { (1, 0) };
        Observation { flow, now_us, delay_us, delivered, lost }
    };
    let lost = |now_us| Observation { flow: 0, now_us, delay_us: None, delivered: 0, lost: 1 };
    assert_eq!(
        observations(&source),
        [
            of(0, 0, Some(0)),
            of(1, 100_000, Some(0)),
            of(1, 150_000, None),
            lost(200_000),
            of(0, 200_000, Some(-250)),
            of(0, 300_000, None),
            lost(7_500_000),
        ]
    );
}

#[test]
fn one_way_delay_is_before_round_trip_time() {
    let source = open("flow,t_s,rtt_ms,owd_ms\na,0,9,1\n", None).unwrap();
    assert_eq!(source.recording().signal, Signal::Owd);
}

#[test]
fn mistakes_are_reported_with_file_line_and_what_was_expected() {
    let header = "t.csv line 1: expected a capture (pcap, pcapng) or CSV with a header that has flow, \
                  t_s and owd_ms or rtt_ms, found";
    for (text, found) in [
        ("", ""),
        ("flow, t_s\na,1\n", "flow,t_s"),
        ("\u{0}\u{1}binary", "\\0\\u{1}binary"),
        ("flow;t_s;owd_ms\na;1;2\n", "flow;t_s;owd_ms"),
    ] {
        assert_eq!(refused(text), format!("{header} \"{found}\""));
    }
    assert_eq!(refused("flow,t_s,owd_ms\n"), "t.csv line 2: expected rows, found none");
    let row = |row: &str| refused(&format!("flow,t_s,owd_ms,dwell_ms,rtx\na,1,2,0,0\n{row}\n"));
    let seconds = "t.csv line 3: expected t_s, a number of seconds, found";
    assert_eq!(row("a,x,2,0,0"), format!("{seconds} \"x\""));
    assert_eq!(row("a,nan,2,0,0"), format!("{seconds} \"nan\""));
    assert_eq!(row("a,1e300,2,0,0"), format!("{seconds} \"1e300\""));
    let milliseconds = "t.csv line 3: expected owd_ms, a number of milliseconds, found";
    assert_eq!(row("a,2,,0,0"), format!("{milliseconds} \"\""));
    assert_eq!(row("a,2,3,-1,0"), "t.csv line 3: expected dwell_ms, at least 0, found \"-1\"");
    assert_eq!(row("a,2,3,1,2"), "t.csv line 3: expected rtx, 0 or 1, found \"2\"");
    assert_eq!(row("a,2"), "t.csv line 3: expected a field owd_ms, found \"a,2\"");
    assert_eq!(
        row("a,0.5,2,0,0"),
        "t.csv line 3: expected rows in the order of time, t_s at least 1, found \"0.5\""
    );
    let name = "t.csv line 3: expected flow, a name of 1 to 200 bytes of UTF-8 without control \
                characters, found";
    assert_eq!(row(",2,2,0,0"), format!("{name} \"\""));
    assert_eq!(row("\u{1b}[2J,2,2,0,0"), format!("{name} \"\\u{{1b}}[2J\""));
    let long = row(&"a".repeat(70_000));
    assert_eq!(long, "t.csv: cannot be read: line 3 has more than 65536 bytes");
    for column in ["flow", "owd_ms", "dwell_ms", "rtx"] {
        let twice = refused(&format!("flow,t_s,owd_ms,dwell_ms,rtx,{column}\na,1,2,0,0,0\n"));
        assert_eq!(twice, format!("t.csv line 1: expected one column {column}"));
    }
    let twice = open("flow,t_s,seq,seq,owd_ms\na,1,0,0,0\n", None);
    assert!(twice.is_ok(), "columns that are not read may be there twice");
    let losses = open("flow,t_s,owd_ms\na,1,2\n", Some("flow,t_s\na,x\n")).unwrap_err();
    assert_eq!(losses, "losses.csv line 2: expected t_s, a number of seconds, found \"x\"");
    let losses = open("flow,t_s,owd_ms\na,1,2\n", Some("t_s\n")).unwrap_err();
    assert_eq!(
        losses,
        "losses.csv line 1: expected CSV with a header that has flow and t_s, found \"t_s\""
    );
}

#[test]
fn lines_are_counted_as_an_editor_does() {
    for end in ["\n", "\r\n"] {
        for last in [end, ""] {
            let lines = ["flow,t_s,owd_ms", "a,1,2", "", "  ", "a,2,2", "a,x,2"].join(end);
            let message = refused(&(lines + last));
            let expected = "t.csv line 6: expected t_s, a number of seconds, found \"x\"";
            assert_eq!(message, expected, "{end:?} {last:?}");
        }
        let lines = ["flow,t_s,owd_ms", "", "a,1,2", "", "a,2,3"].join(end);
        assert_eq!(observations(&open(&lines, None).unwrap()).len(), 2, "{end:?}");
    }
}

#[test]
fn the_flows_with_most_rows_are_reported() {
    let mut text = String::from("flow,t_s,owd_ms\n");
    for row in 0..100 {
        let flow = if row % 10 == 0 { format!("f{row}") } else { "big".into() };
        text += &format!("{flow},{row},1\n");
    }
    let source = Source::open(
        Input::bytes("t.csv", text.as_bytes()),
        None,
        Limits { flows: 3, packets: 1, at: None },
    )
    .unwrap();
    assert_eq!(source.recording().flows, ["big", "f0", "f10"]);
    assert_eq!(
        source.recording().notes,
        ["the 3 largest flows are analysed; 8 others are left out, with 8.0 % of the rows"]
    );
}

#[test]
fn the_number_of_flows_that_return_after_others_is_a_bound() {
    let mut text = String::from("flow,t_s,owd_ms\n");
    for row in 0..30_000 {
        text += &format!("f{},{row},1\n", row % 10_000);
    }
    let notes = open(&text, None).unwrap().recording().notes.to_vec();
    assert!(notes[0].contains("are analysed; at most "), "{notes:?}");
}

#[test]
fn losses_of_nobody_are_counted() {
    let table = "flow,t_s,owd_ms\na,1,2\n";
    let notes = |losses| open(table, Some(losses)).unwrap().recording().notes.to_vec();
    assert!(notes("flow,t_s\na,1\n").is_empty());
    assert_eq!(
        notes("flow,t_s\na,1\n\"a\",2\nb,3\n"),
        ["losses.csv: 2 of 3 losses are of flows that are not analysed"]
    );
}
