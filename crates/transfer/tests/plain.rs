//! Files of servers of other stacks, by `hq-interop`: of our own, which speaks it too, and of servers whose
//! certificate, protocol and answers are chosen here.

mod common;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use common::{Served, runtime};
use narrows_transfer::{Error, Get, Received, Trust, Url, get};
use noq::crypto::rustls::QuicServerConfig;
use noq::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use noq::rustls::{self, crypto::ring, version};
use noq::{Connection, Endpoint, SendStream, ServerConfig, TransportConfig, VarInt};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

const MB: usize = 1_000_000;
const BOTH: [&str; 2] = ["127.0.0.1", "127.0.0.2"];
const CONTENT: &[u8] = b"content";

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn on_loopback(bytes: usize) -> Served {
    Served::new(bytes, anywhere(), || ())
}

/// The request of the served file by another stack's protocol.
fn plain(served: &Served, paths: &[&str], trust: Trust) -> Get {
    let request = served.request(paths);
    Get { url: Url { fingerprint: None, ..served.url.clone() }, trust, ..request }
}

/// Panics if anything but these is there.
fn only(folder: &Path, names: &[&str]) {
    let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut found: Vec<_> = found.collect();
    found.sort();
    assert_eq!(found, names);
}

#[test]
fn a_file_arrives_over_two_paths_where_the_server_has_multipath() {
    let served = on_loopback(20 * MB + 1);
    let received = served.arrives(&plain(&served, &BOTH, Trust::Anyone), |_| ());
    let end = &received.progress;
    assert_eq!((end.bytes, end.size, &end.control), (20 * MB as u64 + 1, None, &None));
    assert!(end.multipath && end.paths.len() == 2);
    for path in &end.paths {
        assert!(path.bytes > 0 && path.report.is_none(), "{path:?}");
    }
    if let Ok(sum) = std::process::Command::new("sha256sum").arg(served.output()).output() {
        assert!(String::from_utf8_lossy(&sum.stdout).starts_with(&received.sha256));
    }
}

#[test]
fn an_empty_file_arrives_and_a_missing_one_is_a_stream_that_is_reset() {
    let served = on_loopback(0);
    let mut request = plain(&served, &[], Trust::Anyone);
    assert_eq!(served.arrives(&request, |_| ()).progress.bytes, 0);
    let again = served.get(&request, |_| ()).unwrap_err();
    assert!(matches!(&again, Error::Input(_, why) if why.contains("already exists")), "{again}");
    fs::remove_file(served.output()).unwrap();
    request.url.name = "none".into();
    let line = served.get(&request, |_| ()).unwrap_err().to_string();
    assert!(line.ends_with(": it reset the stream after 0 bytes, with code 1"), "{line}");
    only(served.home.path(), &["served"]);
}

#[test]
fn a_transfer_that_is_stopped_leaves_nothing() {
    let served = on_loopback(200 * MB);
    let stop = AtomicBool::new(false);
    let request = plain(&served, &BOTH, Trust::Anyone);
    let getting = get(&request, &stop, |now| {
        assert!(now.bytes < 200 * MB as u64, "too fast to be stopped");
        stop.store(now.bytes > 0, Ordering::Relaxed);
    });
    assert!(matches!(runtime().block_on(getting), Err(Error::Interrupted)));
    only(served.home.path(), &["served"]);
}

/// An authority, and the certificate that it issued for `name`.
struct Issued {
    home: TempDir,
    certificate: CertificateDer<'static>,
    key: KeyPair,
}

impl Issued {
    fn new(name: &str) -> Issued {
        let [own, key] = [(); 2].map(|()| KeyPair::generate().unwrap());
        let mut authority = CertificateParams::default();
        authority.distinguished_name.push(DnType::CommonName, format!("authority of {name}"));
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let root = authority.self_signed(&own).unwrap();
        let issuer = Issuer::new(authority, own);
        let params = CertificateParams::new([name.into()]).unwrap();
        let certificate = params.signed_by(&key, &issuer).unwrap().der().clone();
        let home = tempfile::tempdir().unwrap();
        let label = |which| format!("-----{which} CERTIFICATE-----\n");
        let pem = label("BEGIN") + &BASE64_STANDARD.encode(root.der()) + "\n" + &label("END");
        fs::write(home.path().join("ca.pem"), pem).unwrap();
        Issued { home, certificate, key }
    }

    fn trusted(&self) -> Trust {
        Trust::Authorities(self.home.path().join("ca.pem"))
    }

    /// Where the file is written.
    fn output(&self) -> PathBuf {
        self.home.path().join("got")
    }

    /// Gets `file` of a server that has this certificate and no multipath, speaks `protocol`, and does what
    /// `answer` says with its stream.
    fn get<F: Future<Output = ()> + Send + 'static>(
        &self,
        trust: Trust,
        protocol: &str,
        answer: impl Fn(Connection, SendStream) -> F + Send + 'static,
    ) -> Result<Received, Error> {
        let key = PrivatePkcs8KeyDer::from(self.key.serialize_der());
        let mut tls = rustls::ServerConfig::builder_with_provider(ring::default_provider().into())
            .with_protocol_versions(&[&version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key.into())
            .unwrap();
        tls.alpn_protocols = vec![protocol.into()];
        let tls = QuicServerConfig::try_from(tls).unwrap();
        let mut config = ServerConfig::with_crypto(Arc::new(tls));
        config.transport_config(Arc::new(TransportConfig::default()));
        runtime().block_on(async {
            let endpoint = Endpoint::server(config, anywhere()).unwrap();
            let server = endpoint.local_addr().unwrap().to_string();
            let serving = tokio::spawn(async move {
                let Ok(connection) = endpoint.accept().await.unwrap().await else { return };
                let (send, mut recv) = connection.accept_bi().await.unwrap();
                assert_eq!(recv.read_to_end(100).await.unwrap(), b"GET /file\r\n");
                answer(connection.clone(), send).await;
                connection.closed().await;
            });
            let request = Get {
                url: Url { server, name: "file".into(), fingerprint: None },
                paths: BOTH.iter().map(|path| path.parse().unwrap()).collect(),
                control: None,
                trust,
                output: self.output(),
            };
            let received = get(&request, &AtomicBool::new(false), |_| ()).await;
            serving.await.unwrap();
            received
        })
    }

    /// Why nothing is got; nothing may be left.
    fn refused<F: Future<Output = ()> + Send + 'static>(
        &self,
        trust: Trust,
        protocol: &str,
        answer: impl Fn(Connection, SendStream) -> F + Send + 'static,
    ) -> String {
        let error = self.get(trust, protocol, answer).unwrap_err();
        assert!(matches!(error, Error::Failed(..)), "{error}");
        only(self.home.path(), &["ca.pem"]);
        let line = error.to_string();
        assert_eq!(line.lines().count(), 1, "{line}");
        line
    }
}

/// Answers with all of the file.
async fn all(_: Connection, mut send: SendStream) {
    send.write_all(CONTENT).await.unwrap();
    send.finish().unwrap();
    let _ = send.stopped().await;
}

#[test]
fn a_file_arrives_over_one_path_from_a_server_that_an_authority_vouches_for() {
    let issued = Issued::new("127.0.0.1");
    let end = issued.get(issued.trusted(), "hq-interop", all).unwrap().progress;
    assert_eq!(fs::read(issued.output()).unwrap(), CONTENT);
    assert!(!end.multipath && end.paths[0].bytes > 0);
    // There is nothing to open it with.
    assert_eq!((end.paths[1].id, end.paths[1].bytes), (None, 0));
}

#[test]
fn a_certificate_of_another_authority_or_for_another_host_is_refused_unless_any_is_taken() {
    let (issued, other) = (Issued::new("127.0.0.1"), Issued::new("example.org"));
    let unknown = ": refused, its certificate is of an unknown issuer (see --ca)";
    let line = issued.refused(other.trusted(), "hq-interop", all);
    assert!(line.ends_with(unknown), "{line}");
    let line = other.refused(other.trusted(), "hq-interop", all);
    let not_valid = ": refused, its certificate: not valid for name \"127.0.0.1\"";
    assert!(line.contains(not_valid) && line.contains("example.org"), "{line}");
    other.get(Trust::Anyone, "hq-interop", all).unwrap();
    assert_eq!(fs::read(other.output()).unwrap(), CONTENT);
}

#[test]
fn a_server_of_another_protocol_is_told_from_one_that_cannot_be_reached() {
    let issued = Issued::new("127.0.0.1");
    let line = issued.refused(issued.trusted(), "h3", all);
    assert!(line.ends_with(": it does not speak hq-interop"), "{line}");
}

/// Only the stream's end says that this was all.
#[test]
fn what_a_server_breaks_off_is_not_kept() {
    let issued = Issued::new("127.0.0.1");
    let line = issued.refused(issued.trusted(), "hq-interop", |_, mut send| async move {
        send.reset(VarInt::from_u32(7)).unwrap();
    });
    assert!(line.ends_with(": it reset the stream after 0 bytes, with code 7"), "{line}");
    let line = issued.refused(issued.trusted(), "hq-interop", |connection, mut send| async move {
        send.write_all(CONTENT).await.unwrap();
        // It may arrive before.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        connection.close(VarInt::from_u32(0), b"enough\x1b[2J\n");
    });
    assert!(line.ends_with(": closed by the server: enough\\u001b[2J\\n"), "{line}");
}

#[test]
fn authorities_that_cannot_be_read_are_wrong_input() {
    let served = on_loopback(1000);
    let file = served.home.path().join("served/file");
    for (trust, why) in [
        (Trust::Authorities("/none".into()), "No such file"),
        (Trust::Authorities(file), "expected certificates in PEM"),
    ] {
        let error = served.get(&plain(&served, &[], trust), |_| ()).unwrap_err();
        assert!(matches!(&error, Error::Input(_, told) if told.contains(why)), "{error}");
    }
    // The fingerprint says more than an authority could.
    let request = Get { trust: Trust::Anyone, ..served.request(&[]) };
    let error = served.get(&request, |_| ()).unwrap_err();
    assert!(matches!(&error, Error::Input(_, why) if why.contains("fingerprint")), "{error}");
    only(served.home.path(), &["served"]);
}
