//! `quic://HOST:PORT/NAME#FINGERPRINT`.

use crate::error::Error;
use crate::tls::Fingerprint;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

const EXPECTED: &str =
    "expected quic://HOST:PORT/NAME#FINGERPRINT, as `narrows quic serve` prints it";

/// A file of a server. The fragment is the fingerprint of the server's certificate: it stays with the
/// client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `HOST:PORT`; IPv6 addresses in brackets.
    pub server: String,
    /// Name of the file below the server's folder.
    pub name: String,
    /// The only certificate that is accepted.
    pub fingerprint: Fingerprint,
}

impl Url {
    /// The server's address; of a name that has several the first.
    pub(crate) fn address(&self) -> Result<SocketAddr, Error> {
        let mut addresses =
            self.server.to_socket_addrs().map_err(|error| Error::input(&self.server, error))?;
        addresses.next().ok_or_else(|| Error::input(&self.server, "the name has no address"))
    }

    /// What a file is called that holds it: the last part of the name.
    pub fn file_name(&self) -> Option<&str> {
        let last = self.name.rsplit('/').next()?;
        (!["", ".", ".."].contains(&last) && !last.contains('\0')).then_some(last)
    }
}

impl FromStr for Url {
    /// What is wrong with it, and what was expected.
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = |what: String| format!("{what}; {EXPECTED}");
        let rest = text.strip_prefix("quic://").ok_or_else(|| wrong("not quic://".into()))?;
        let (rest, fingerprint) =
            rest.split_once('#').ok_or_else(|| wrong("no fingerprint".into()))?;
        let fingerprint = fingerprint.parse().map_err(|()| {
            wrong(format!("fingerprint '{fingerprint}': not 64 hexadecimal digits"))
        })?;
        let (server, name) =
            rest.split_once('/').ok_or_else(|| wrong("no name of a file".into()))?;
        let port = server.rsplit_once(':').map(|(host, port)| (host, port.parse::<u16>()));
        if !matches!(port, Some((host, Ok(1..))) if !host.is_empty()) {
            return Err(wrong(format!("server '{server}': not HOST:PORT")));
        }
        let name =
            decoded(name).ok_or_else(|| wrong(format!("name '{name}': not %-encoded UTF-8")))?;
        Ok(Url { server: server.into(), name, fingerprint })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "quic://{}/", self.server)?;
        for byte in self.name.bytes() {
            match byte {
                // RFC 3986, section 2.3, and what separates folders.
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                    write!(f, "{}", byte as char)?;
                }
                other => write!(f, "%{other:02X}")?,
            }
        }
        write!(f, "#{}", self.fingerprint)
    }
}

/// RFC 3986, section 2.1.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return None;
            }
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(first);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn a_name_is_encoded_and_decoded() {
        let text = format!("quic://[fd00::1]:4433/a%20b/%C3%BC.bin#{PIN}");
        let url: Url = text.parse().unwrap();
        assert_eq!((url.server.as_str(), url.name.as_str()), ("[fd00::1]:4433", "a b/ü.bin"));
        assert_eq!(url.file_name(), Some("ü.bin"));
        assert_eq!(url.to_string(), text);
    }

    #[test]
    fn each_part_that_is_wrong_is_named() {
        for (text, part) in [
            ("http://a:1/f#PIN", "not quic://"),
            ("quic://a:1/f", "no fingerprint"),
            ("quic://a:1/f#0011", "fingerprint '0011'"),
            ("quic://a:1#PIN", "no name of a file"),
            ("quic://a/f#PIN", "server 'a'"),
            ("quic://:1/f#PIN", "server ':1'"),
            ("quic://a:0/f#PIN", "server 'a:0'"),
            ("quic://a:1/%f#PIN", "name '%f'"),
            ("quic://a:1/%+1#PIN", "name '%+1'"),
            ("quic://a:1/%ff#PIN", "name '%ff'"),
        ] {
            let line = text.replace("PIN", PIN).parse::<Url>().unwrap_err();
            assert!(line.contains(part) && line.contains(EXPECTED), "{line}");
        }
    }

    #[test]
    fn a_file_is_never_called_after_a_folder() {
        for name in ["", "a/", "..", "a/.."] {
            let url =
                Url { server: "a:1".into(), name: name.into(), fingerprint: PIN.parse().unwrap() };
            assert_eq!(url.file_name(), None, "{name}");
        }
    }
}
