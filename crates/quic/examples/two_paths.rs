//! A client that sends 10 MB to a server over two paths of the loopback device, as one flow of CUBIC
//! where they share a bottleneck. Linux, where all of 127.0.0.0/8 is local.

use narrows_quic::Coupling;
use noq::{ClientConfig, Endpoint, FourTuple, PathStatus, ServerConfig, TransportConfig, rustls};
use std::{error::Error, net::SocketAddr, sync::Arc, time::Duration};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let coupling = Coupling::new("gcubic+xcorr")?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_multipath_paths(8);

    let own = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let mut roots = rustls::RootCertStore::empty();
    roots.add(own.cert.der().clone())?;

    // The server: a factory for each connection that it accepts.
    let mut config = ServerConfig::with_single_cert(vec![own.cert.der().clone()], key.into())?;
    config.transport_config(Arc::new(transport.clone()));
    let server = Endpoint::server(config.clone(), SocketAddr::from(([0, 0, 0, 0], 0)))?;
    let port = server.local_addr()?.port();
    let (coupled, mut with_paths) = (coupling.clone(), transport.clone());
    let served = tokio::spawn(async move {
        let incoming = server.accept().await.expect("a client");
        let factory = coupled.factory();
        with_paths.congestion_controller_factory(factory.clone());
        config.transport_config(Arc::new(with_paths));
        let connection = incoming.accept_with(Arc::new(config)).unwrap().await.unwrap();
        tokio::spawn(narrows_quic::tend(&connection, factory, Duration::from_secs(1)));
        connection.accept_uni().await.unwrap().read_to_end(20_000_000).await.unwrap().len()
    });

    // The client: a factory for each connection that it makes.
    let factory = coupling.factory();
    transport.congestion_controller_factory(factory.clone());
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport));
    let client = Endpoint::client(SocketAddr::from(([0, 0, 0, 0], 0)))?;
    let first = SocketAddr::from(([127, 0, 0, 1], port));
    let connection = client.connect_with(config, first, "localhost")?.await?;
    let second = FourTuple::new(SocketAddr::from(([127, 0, 0, 2], port)), None);
    // Until the peer has given connection ids for it.
    while connection.open_path(second, PathStatus::Available).await.is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::spawn(narrows_quic::tend(&connection, factory.clone(), Duration::from_secs(1)));
    let mut stream = connection.open_uni().await?;
    stream.write_all(&vec![7; 10_000_000]).await?;
    stream.finish()?;
    println!("{} bytes arrived; {:#?}", served.await?, factory.snapshot());
    Ok(())
}
