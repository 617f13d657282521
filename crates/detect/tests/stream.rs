//! A capture that is read as it comes is answered as its file is.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use narrows_detect::{
    Answer, Detection, Error, Event, Input, Limits, Part, Source, Stream, begin, detectors,
};
use narrows_laws::Params;

/// Captures of two flows and more, with what is right.
const CAPTURES: [&str; 6] = [
    "bbr-shared",
    "bbr-separate",
    "cubic-shared",
    "cubic-separate",
    "four-in-pairs",
    "mptcp-shared",
];

fn capture(name: &str) -> Vec<u8> {
    let path = format!("{}/../cli/tests/captures/{name}.pcap.gz", env!("CARGO_MANIFEST_DIR"));
    let mut plain = Vec::new();
    MultiGzDecoder::new(std::fs::File::open(&path).unwrap()).read_to_end(&mut plain).unwrap();
    plain
}

/// Gives so many bytes at a time, as a pipe does.
struct Drops(std::io::Cursor<Vec<u8>>, usize);

impl Read for Drops {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let room = buffer.len().min(self.1);
        self.0.read(&mut buffer[..room])
    }
}

fn stream(
    bytes: Vec<u8>,
    drop: usize,
    limits: Limits,
    tell: impl FnMut(Event) -> Result<(), Error>,
) -> Result<Part, Error> {
    let xcorr = detectors(["xcorr"]).unwrap()[0];
    let (is_capture, from) = begin(Drops(std::io::Cursor::new(bytes), drop)).unwrap();
    assert!(is_capture);
    Stream::new(xcorr, &Params::default(), limits)?.read("stream", from, tell)
}

/// Each two flows by their names, and the answer on them.
fn answers<'a>(
    flows: &'a [String],
    verdicts: &[narrows_detect::Verdict],
) -> Vec<([&'a str; 2], Answer)> {
    let of = |verdict: &narrows_detect::Verdict| {
        let mut names = [flows[verdict.flows.0].as_str(), flows[verdict.flows.1].as_str()];
        names.sort_unstable();
        (names, verdict.answer)
    };
    let mut answers: Vec<_> = verdicts.iter().map(of).collect();
    answers.sort_by_key(|(names, _)| *names);
    answers
}

#[test]
fn it_is_answered_as_its_file_is() {
    let xcorr = detectors(["xcorr"]).unwrap()[0];
    for name in CAPTURES {
        let bytes = capture(name);
        let source =
            Source::open(Input::bytes(name, bytes.clone()), None, Limits::default()).unwrap();
        let detection = Detection::new(&source, xcorr, &Params::default()).unwrap();
        let of_file = detection.run::<Error>(&mut [], |_| Ok(())).unwrap();
        // Drops of 7 bytes fill no header; larger ones no packet.
        for drop in [7, 1 << 20] {
            let mut decisions = 0;
            let part = stream(bytes.clone(), drop, Limits::default(), |event| {
                decisions += u32::from(matches!(event, Event::Decided { .. }));
                Ok(())
            });
            let part = part.unwrap();
            assert_eq!(part.recording.signal, source.recording().signal, "{name}");
            assert_eq!(
                answers(&part.recording.flows, &part.found.verdicts),
                answers(&source.recording().flows, &of_file.verdicts),
                "{name}"
            );
            assert!(decisions > 20, "{name}: {decisions}");
        }
    }
}
