//! What client and server say to each other: version 1 of the protocol.
//!
//! A client opens bidirectional streams only. On the first it sends [`Request::File`] and ends its
//! side; the server answers with [`Reply`]s, a line of JSON each: what the file is, or why there is
//! none; then [`Reply::Paths`] five times a second, and once [`Reply::Sha256`]. On every other stream it
//! sends [`Request::Range`] and ends its side; the server answers with these bytes of that file.
//!
//! A congestion control that the server shall use is asked for before the connection has one: as a
//! second protocol name, `cc=NAME`, in the ALPN list of the client's first packet (RFC 7301).

use serde::{Deserialize, Serialize};

/// The protocol, as ALPN has it.
pub const PROTOCOL: &[u8] = b"narrows-transfer/1";
/// What the protocol name begins with that asks for a congestion control.
pub const CONTROL: &str = "cc=";
/// Bytes of a request, at most.
pub const MAX_REQUEST: usize = 8192;
/// Bytes of a line of the answer to [`Request::File`], at most.
pub const MAX_REPLY: usize = 8192;
/// Bytes of a range, at most.
pub const MAX_RANGE: u64 = 4 << 20;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// The file of this name below the server's folder.
    File(String),
    /// Bytes of the file.
    Range {
        /// Where they begin.
        offset: u64,
        /// How many.
        length: u64,
    },
}

impl Request {
    /// From what a client sent.
    ///
    /// # Errors
    /// It is no request: what was expected, in one line.
    pub fn parse(bytes: &[u8]) -> Result<Request, String> {
        if bytes.len() > MAX_REQUEST {
            return Err(format!("a request of more than {MAX_REQUEST} bytes"));
        }
        let request = serde_json::from_slice(bytes).map_err(|error| format!("request: {error}"))?;
        match request {
            Request::Range { length, .. } if length > MAX_RANGE => {
                Err(format!("a range of {length} bytes; expected at most {MAX_RANGE}"))
            }
            Request::Range { offset, length } if offset.checked_add(length).is_none() => {
                Err(format!("a range that begins at {offset}, beyond any file"))
            }
            request => Ok(request),
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("only maps with other keys than strings fail")
    }
}

/// A line of the server's on the first stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// The file is there.
    File {
        /// Its bytes.
        size: u64,
        /// The congestion control that the server uses.
        control: String,
    },
    /// There is none, or not for this client: why.
    Refused(String),
    /// The paths that the server sends on.
    Paths(Vec<PathReport>),
    /// The SHA-256 of the whole file, in hexadecimal digits.
    Sha256(String),
}

impl Reply {
    /// As a line. A message of whatever length fits into one.
    pub(crate) fn line(&self) -> Vec<u8> {
        let mut line =
            serde_json::to_vec(self).expect("only maps with other keys than strings fail");
        line.push(b'\n');
        line
    }
}

/// What the server knows of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathReport {
    /// Its number, the same at both ends.
    pub id: u32,
    /// Window, bytes.
    pub cwnd: u64,
    /// Smoothed RTT, µs; none before the first sample.
    pub srtt_us: Option<u64>,
    /// Where the detector has placed it; none without a detector, and before its first decision.
    pub place: Option<Place>,
    /// The paths that its window is coupled with, itself included.
    pub coupled: Vec<u32>,
}

/// A detector's decision on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Paths with the same number share a bottleneck.
    Group(u8),
    /// Not congested.
    Clear,
    /// Not enough is known.
    Undecided,
}

impl From<narrows_laws::Place> for Place {
    fn from(place: narrows_laws::Place) -> Place {
        match place {
            narrows_laws::Place::Group(group) => Place::Group(group),
            narrows_laws::Place::Clear => Place::Clear,
            narrows_laws::Place::Undecided => Place::Undecided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_read() {
        let range = Request::Range { offset: 1 << 40, length: MAX_RANGE };
        for request in [Request::File("a/b c".into()), range] {
            assert_eq!(Request::parse(&request.bytes()), Ok(request));
        }
        let line = Reply::Paths(vec![]).line();
        assert_eq!(line, b"{\"paths\":[]}\n");
    }

    #[test]
    fn ranges_beyond_the_limit_and_other_bytes_are_refused() {
        let refused = |text: &str| Request::parse(text.as_bytes()).unwrap_err();
        let long = format!(r#"{{"range":{{"offset":0,"length":{}}}}}"#, MAX_RANGE + 1);
        assert!(refused(&long).starts_with("a range of 4194305 bytes"));
        let far = format!(r#"{{"range":{{"offset":{},"length":2}}}}"#, u64::MAX);
        assert!(refused(&far).contains("beyond any file"));
        for text in ["", "{", "null", r#"{"file":7}"#, r#"{"put":"a"}"#, "\u{0}\u{1}"] {
            assert!(refused(text).starts_with("request: "), "{text:?}");
        }
        assert!(Request::parse(&vec![b' '; MAX_REQUEST + 1]).is_err());
    }
}
