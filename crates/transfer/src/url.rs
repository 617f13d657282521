//! `quic://HOST:PORT/NAME#FINGERPRINT`, and `https://HOST[:PORT]/NAME`.

use crate::error::Error;
use crate::tls::Fingerprint;
use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

const EXPECTED: &str = "expected quic://HOST:PORT/NAME#FINGERPRINT, as `narrows quic serve` prints it, \
     or https://HOST[:PORT]/NAME of a server of hq-interop";
/// That of `https`, if the URL has none.
const PORT: u16 = 443;

/// A file of a server: of ours, or of any that speaks `hq-interop`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// `HOST:PORT`; IPv6 addresses in brackets.
    pub server: String,
    /// Name of the file below our server's folder; for another server what its URL has after the host and
    /// `/`, as it is there.
    pub name: String,
    /// The only certificate that is accepted, of our server. It is the URL's fragment, which stays with the
    /// client. None: another server, asked by `hq-interop`.
    pub fingerprint: Option<Fingerprint>,
}

impl Url {
    /// The name or the address for which a certificate is issued.
    pub(crate) fn host(&self) -> &str {
        let host = self.server.rsplit_once(':').map_or(&*self.server, |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// The server's addresses, in the resolver's order.
    pub(crate) fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let found = self.server.to_socket_addrs();
        let all: Vec<_> = found.map_err(|error| Error::input(&self.server, error))?.collect();
        if all.is_empty() {
            return Err(Error::input(&self.server, "the name has no address"));
        }
        Ok(all)
    }

    /// What a file is called that holds it: the last part of the name, without what a query adds.
    pub fn file_name(&self) -> Option<&str> {
        let path = match self.fingerprint {
            Some(_) => Some(&*self.name),
            None => self.name.split('?').next(),
        };
        let last = path?.rsplit('/').next()?;
        (!["", ".", ".."].contains(&last) && !last.contains('\0')).then_some(last)
    }
}

impl FromStr for Url {
    /// What is wrong with it, and what was expected.
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = |what: String| format!("{what}; {EXPECTED}");
        let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
        let (scheme, rest) = rest.split_once("://").unwrap_or(("", rest));
        let is_ours = match scheme {
            "quic" => true,
            "https" => false,
            _ => return Err(wrong("neither quic:// nor https://".into())),
        };
        let fingerprint = match fragment {
            _ if !is_ours => None,
            "" => return Err(wrong("no fingerprint".into())),
            fragment => Some(fragment.parse().map_err(|()| {
                wrong(format!("fingerprint '{fragment}': not 64 hexadecimal digits"))
            })?),
        };
        let (server, name) =
            rest.split_once('/').ok_or_else(|| wrong("no name of a file".into()))?;
        let (host, port) = match server.rsplit_once(':') {
            // The last part of an IPv6 address is no port.
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().unwrap_or(0)),
            _ => (server, if is_ours { 0 } else { PORT }),
        };
        if host.is_empty() || port == 0 {
            let form = if is_ours { "HOST:PORT" } else { "HOST[:PORT]" };
            return Err(wrong(format!("server '{server}': not {form}")));
        }
        let server = format!("{host}:{port}");
        let name = if is_ours {
            decoded(name).ok_or_else(|| wrong(format!("name '{name}': not %-encoded UTF-8")))?
        } else if name.contains(char::is_control) {
            return Err(wrong(format!("name {name:?}: a character that is not %-encoded")));
        } else {
            name.into()
        };
        Ok(Url { server, name, fingerprint })
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(fingerprint) = self.fingerprint else {
            return write!(f, "https://{}/{}", self.server, self.name);
        };
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
        write!(f, "#{fingerprint}")
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

    /// It is for the server to decode.
    #[test]
    fn a_name_at_another_server_stays_as_it_is() {
        let url: Url = "https://[fd00::1]/a%20b/%C3%BC?v=/1#top".parse().unwrap();
        assert_eq!((url.server.as_str(), url.host()), ("[fd00::1]:443", "fd00::1"));
        assert_eq!((url.name.as_str(), url.fingerprint), ("a%20b/%C3%BC?v=/1", None));
        assert_eq!(url.file_name(), Some("%C3%BC"));
        assert_eq!(url.to_string(), "https://[fd00::1]:443/a%20b/%C3%BC?v=/1");
        let url: Url = "https://example.org:4433/f".parse().unwrap();
        assert_eq!((url.server.as_str(), url.host()), ("example.org:4433", "example.org"));
    }

    #[test]
    fn each_part_that_is_wrong_is_named() {
        for (text, part) in [
            ("http://a:1/f#PIN", "neither quic:// nor https://"),
            ("a", "neither quic:// nor https://"),
            ("https://a", "no name of a file"),
            ("https:///f", "server ''"),
            ("https://a:0/f", "server 'a:0'"),
            ("https://a:b/f", "server 'a:b'"),
            ("https://a/f\r\nGET /g", "name \"f\\r\\n"),
            ("quic://[::1]/f#PIN", "server '[::1]'"),
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
            for fingerprint in [None, Some(PIN.parse().unwrap())] {
                let url = Url { server: "a:1".into(), name: name.into(), fingerprint };
                assert_eq!(url.file_name(), None, "{name}");
            }
        }
    }
}
