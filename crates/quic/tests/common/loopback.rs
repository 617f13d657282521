//! A connection of two paths over the loopback device (Linux, where all of 127.0.0.0/8 is local).

use noq::congestion::ControllerFactory;
use noq::{
    ClientConfig, Connection, Endpoint, FourTuple, Path, PathStatus, ServerConfig, TransportConfig,
    rustls,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Connects a client whose controllers are `factory`'s: its end, the server's, and the client's handle
/// of the second path.
pub async fn connect(
    factory: Arc<dyn ControllerFactory + Send + Sync>,
) -> (Connection, Connection, Path) {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone()).unwrap();
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(8);

    let mut config =
        ServerConfig::with_single_cert(vec![own.cert.der().clone()], key.into()).unwrap();
    config.transport_config(Arc::new(transport.clone()));
    let listener = Endpoint::server(config, SocketAddr::from(([0, 0, 0, 0], 0))).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move { listener.accept().await.unwrap().await.unwrap() });

    transport.congestion_controller_factory(factory);
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    config.transport_config(Arc::new(transport));
    let client = Endpoint::client(SocketAddr::from(([0, 0, 0, 0], 0))).unwrap();
    let first = SocketAddr::from(([127, 0, 0, 1], port));
    let client = client.connect_with(config, first, "localhost").unwrap().await.unwrap();
    let address = FourTuple::new(SocketAddr::from(([127, 0, 0, 2], port)), None);
    let second = loop {
        match client.open_path(address, PathStatus::Available).await {
            Ok(path) => break path,
            Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    };
    (client, server.await.unwrap(), second)
}
