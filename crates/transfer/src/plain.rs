//! What other stacks speak: HTTP/0.9 over QUIC (`hq-interop`), the protocol of the QUIC
//! interoperability tests. A request is a line `GET /NAME` on a bidirectional stream, the answer the
//! bytes of the file.

use noq::Connection;
use noq::crypto::rustls::HandshakeData;

/// The protocol, as ALPN has it.
pub(crate) const PROTOCOL: &[u8] = b"hq-interop";

/// The request of a file.
pub(crate) fn request(name: &str) -> Vec<u8> {
    format!("GET /{name}\r\n").into_bytes()
}

/// Did the ends agree on it?
pub(crate) fn agreed(connection: &Connection) -> bool {
    let data = connection.handshake_data().and_then(|data| data.downcast::<HandshakeData>().ok());
    data.and_then(|data| data.protocol).is_some_and(|protocol| protocol == PROTOCOL)
}

/// The name of the file that a request asks for; names are not encoded.
///
/// # Errors
/// It is no request: what was expected.
pub(crate) fn name(request: &[u8]) -> Result<String, String> {
    const EXPECTED: &str = "expected GET /NAME";
    let text = std::str::from_utf8(request).map_err(|_| EXPECTED)?;
    let line = text.strip_suffix("\r\n").or(text.strip_suffix('\n')).unwrap_or(text);
    match line.strip_prefix("GET /") {
        Some(name) if !name.is_empty() && !name.contains(char::is_control) => Ok(name.into()),
        _ => Err(EXPECTED.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_one_line_with_a_name() {
        for request in ["GET /a/b c\r\n", "GET /a/b c\n", "GET /a/b c"] {
            assert_eq!(name(request.as_bytes()), Ok("a/b c".into()));
        }
        assert_eq!(name(&request("a/b c")), Ok("a/b c".into()));
        // The folder refuses names that lead out of it.
        assert_eq!(name(b"GET /../secret\r\n"), Ok("../secret".into()));
        for request in ["", "GET", "GET /", "GET a", "PUT /a", "GET /a\r\nHost: b\r\n", "get /a"] {
            assert!(name(request.as_bytes()).is_err(), "{request:?}");
        }
        assert!(name(b"GET /\xff").is_err());
    }
}
