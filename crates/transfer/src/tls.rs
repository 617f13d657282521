//! TLS with a certificate that is known by its fingerprint, or that an authority issued.

use crate::wire::{CONTROL, PROTOCOL};
use crate::{Error, plain};
use narrows_foreign::Foreign;
use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::rustls::client::WebPkiServerVerifier;
use noq::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use noq::rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use noq::rustls::pki_types::pem::PemObject;
use noq::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use noq::rustls::{
    self, CertificateError, DigitallySignedStruct, RootCertStore, SignatureScheme, version,
};
use noq::{ConnectionError, TransportErrorCode};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

/// The name in the certificate, which nothing depends on.
pub(crate) const NAME: &str = "narrows";

/// SHA-256 of a certificate in DER, as `openssl x509 -fingerprint -sha256` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    fn of(certificate: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(certificate).into())
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = ();

    /// From 64 hexadecimal digits.
    fn from_str(text: &str) -> Result<Fingerprint, ()> {
        if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| ())?;
        }
        Ok(Fingerprint(bytes))
    }
}

/// Which certificate is accepted of a server whose URL has no fingerprint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// One for its host, by an authority that this system trusts.
    #[default]
    System,
    /// One for its host, by an authority whose certificate this file has, in PEM.
    Authorities(PathBuf),
    /// Any: who answers is not known.
    Anyone,
}

/// A server's side, with a new key and certificate.
pub(crate) fn server() -> (noq::ServerConfig, Fingerprint) {
    let own = rcgen::generate_simple_self_signed(vec![NAME.into()]).expect("a valid name");
    let certificate = own.cert.der().clone();
    let fingerprint = Fingerprint::of(&certificate);
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&version::TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .expect("the key of the certificate");
    tls.alpn_protocols = vec![PROTOCOL.into(), plain::PROTOCOL.into()];
    let tls = QuicServerConfig::try_from(tls).expect("ring has the first cipher suite of QUIC");
    (noq::ServerConfig::with_crypto(Arc::new(tls)), fingerprint)
}

/// The protocols of a client that asks for the congestion control `control`.
pub(crate) fn protocols(control: Option<&str>) -> Vec<Vec<u8>> {
    let control = control.map(|name| format!("{CONTROL}{name}").into_bytes());
    [PROTOCOL.into()].into_iter().chain(control).collect()
}

/// A client's side, and where another certificate's fingerprint is found after it was refused.
pub(crate) fn client(
    pinned: Fingerprint,
    protocols: Vec<Vec<u8>>,
) -> (noq::ClientConfig, Arc<OnceLock<Fingerprint>>) {
    let other = Arc::new(OnceLock::new());
    let verifier =
        Pinned { pinned: Some(pinned), other: other.clone(), provider: ring::default_provider() };
    (config(Arc::new(verifier), protocols, false), other)
}

/// The side of a client of another stack's server.
///
/// # Errors
/// No certificates of authorities are found.
pub(crate) fn plain_client(trust: &Trust) -> Result<noq::ClientConfig, Error> {
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::System => issued_by(system()?),
        Trust::Authorities(file) => issued_by(
            authorities(file)
                .map_err(|why| Error::input(format!("--ca {}", file.display()), why))?,
        ),
        Trust::Anyone => Arc::new(Pinned {
            pinned: None,
            other: Arc::default(),
            provider: ring::default_provider(),
        }),
    };
    Ok(config(verifier, vec![plain::PROTOCOL.into()], true))
}

fn config(
    verifier: Arc<dyn ServerCertVerifier>,
    protocols: Vec<Vec<u8>>,
    names_host: bool,
) -> noq::ClientConfig {
    let mut tls = rustls::ClientConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&version::TLS13])
        .expect("ring has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    tls.alpn_protocols = protocols;
    tls.enable_sni = names_host;
    let tls = QuicClientConfig::try_from(tls).expect("ring has the first cipher suite of QUIC");
    noq::ClientConfig::new(Arc::new(tls))
}

fn issued_by(roots: RootCertStore) -> Arc<WebPkiServerVerifier> {
    let provider = ring::default_provider().into();
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .expect("there are roots, and no lists of what was revoked")
}

/// The authorities that this system trusts.
fn system() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    // As elsewhere, one that cannot be read is one that is not trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        let message = "no authorities are found; expected --ca FILE or --insecure";
        return Err(Error::input("this system's certificates", message));
    }
    Ok(roots)
}

/// Those whose certificates a file has.
fn authorities(file: &Path) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| why(&error))? {
        let certificate = certificate.map_err(|error| why(&error))?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    if roots.is_empty() {
        return Err("expected certificates in PEM".into());
    }
    Ok(roots)
}

/// Without the library's name for it.
fn why(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Why a handshake with another stack's server failed, if TLS is why.
pub(crate) fn plain_refusal(error: &ConnectionError) -> Option<String> {
    let none = "it does not speak hq-interop";
    match error {
        ConnectionError::TransportError(error) => match error.crypto.as_ref()?.downcast_ref()? {
            rustls::Error::NoApplicationProtocol => Some(none.into()),
            rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                Some("refused, its certificate is of an unknown issuer (see --ca)".into())
            }
            rustls::Error::InvalidCertificate(error) => {
                let why = error.to_string();
                let why = why.strip_prefix("certificate ").unwrap_or(&why);
                Some(format!("refused, its certificate: {}", Foreign::from(why)))
            }
            _ => None,
        },
        // RFC 7301, section 3.2, as RFC 9001, section 4.8, has it.
        ConnectionError::ConnectionClosed(close)
            if close.error_code == TransportErrorCode::crypto(120) =>
        {
            Some(none.into())
        }
        _ => None,
    }
}

/// Accepts the certificate of a fingerprint alone, or any if there is none, whatever its name and dates.
#[derive(Debug)]
struct Pinned {
    pinned: Option<Fingerprint>,
    other: Arc<OnceLock<Fingerprint>>,
    provider: CryptoProvider,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Fingerprint::of(certificate);
        if self.pinned.is_none_or(|pinned| pinned == found) {
            return Ok(ServerCertVerified::assertion());
        }
        // It is set once: a connection has one handshake.
        let _ = self.other.set(found);
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use noq::Endpoint;
    use noq::rustls::sign::{CertifiedKey, SingleCertAndKey};
    use std::net::{Ipv4Addr, SocketAddr};

    /// A server of a certificate, with its key or with another.
    fn server_of(is_right: bool) -> (noq::ServerConfig, Fingerprint) {
        let [own, other] =
            [(); 2].map(|()| rcgen::generate_simple_self_signed([NAME.into()]).unwrap());
        let key = if is_right { &own } else { &other }.signing_key.serialize_der();
        let key = ring::sign::any_supported_type(&PrivatePkcs8KeyDer::from(key).into()).unwrap();
        let pair = CertifiedKey::new(vec![own.cert.der().clone()], key);
        let mut tls = rustls::ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(pair)));
        tls.alpn_protocols = vec![PROTOCOL.into()];
        let tls = QuicServerConfig::try_from(tls).unwrap();
        (noq::ServerConfig::with_crypto(Arc::new(tls)), Fingerprint::of(own.cert.der()))
    }

    /// Anybody can have the certificate, from the server itself: the key is what it proves to have.
    #[test]
    fn the_pinned_certificate_without_its_key_is_refused() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            for is_right in [true, false] {
                let (config, pinned) = server_of(is_right);
                let server = Endpoint::server(config, free).unwrap();
                let to = server.local_addr().unwrap();
                tokio::spawn(async move { server.accept().await.unwrap().await });
                let (config, other) = client(pinned, protocols(None));
                let connecting = Endpoint::client(free).unwrap().connect_with(config, to, NAME);
                let connected = connecting.unwrap().await;
                assert_eq!(connected.is_ok(), is_right, "{connected:?}");
                assert_eq!(other.get(), None, "it is the certificate that was pinned");
            }
        });
    }
}
