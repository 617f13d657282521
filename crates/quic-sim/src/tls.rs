//! TLS with a fixed certificate: an Ed25519 signature has one length, whatever it signs, so a
//! handshake has the same size in every run.

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{ClientConfig, ServerConfig, TransportConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme, version};
use std::sync::Arc;

const CERTIFICATE: &[u8] = include_bytes!("localhost.cert.der");
const KEY: &[u8] = include_bytes!("localhost.key.der");

/// The name that the certificate is for.
pub const NAME: &str = "localhost";

/// A server's side.
pub fn server(transport: TransportConfig) -> Arc<ServerConfig> {
    let key = PrivatePkcs8KeyDer::from(KEY).into();
    let tls = rustls::ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&[&version::TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![CERTIFICATE.into()], key)
        .expect("the key of the certificate");
    let tls = QuicServerConfig::try_from(tls).expect("ring has the first cipher suite of QUIC");
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    Arc::new(config)
}

/// The side of a client that takes this certificate and no other.
pub fn client(transport: TransportConfig) -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&version::TLS13])
        .expect("ring has TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned(provider)))
        .with_no_client_auth();
    let tls = QuicClientConfig::try_from(tls).expect("ring has the first cipher suite of QUIC");
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    config
}

/// Accepts [`CERTIFICATE`] alone, at any time: the machine's clock has no say.
#[derive(Debug)]
struct Pinned(Arc<CryptoProvider>);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match certificate.as_ref() == CERTIFICATE {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(Error::General("another certificate".into())),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
