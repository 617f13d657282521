//! One end of a connection: an end point of noq and what drives it.

use bytes::BytesMut;
use noq_proto::{
    Connection, ConnectionError, ConnectionHandle, ConnectionId, ConnectionIdGenerator,
    DatagramEvent, EcnCodepoint, Endpoint, EndpointConfig, Event, FourTuple, PathEvent,
    ServerConfig, StreamEvent, Transmit,
};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most datagrams that one call of noq's may give.
const BATCH: NonZeroUsize = NonZeroUsize::new(10).unwrap();

/// Connection ids that follow from the seed.
struct Ids(u64);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        // Steps of an odd constant meet every number once.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// One end of a connection.
pub(crate) struct Host {
    endpoint: Endpoint,
    handle: Option<ConnectionHandle>,
    pub connection: Option<Connection>,
    pub connected: bool,
    pub lost: Option<ConnectionError>,
    pub path_events: Vec<PathEvent>,
    /// Streams of which all is acknowledged.
    pub finished_streams: usize,
    buffer: Vec<u8>,
}

impl Host {
    pub fn new(seed: u64, server: Option<Arc<ServerConfig>>) -> Host {
        let mut config = EndpointConfig::default();
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        config.rng_seed(Some(bytes));
        config.cid_generator(Arc::new(move || {
            Box::new(Ids(seed.wrapping_mul(0xd134_2543_de82_ef95)))
                as Box<dyn ConnectionIdGenerator>
        }));
        Host {
            endpoint: Endpoint::new(Arc::new(config), server, true),
            handle: None,
            connection: None,
            connected: false,
            lost: None,
            path_events: Vec::new(),
            finished_streams: 0,
            buffer: Vec::new(),
        }
    }

    pub fn connect(&mut self, now: Instant, config: noq_proto::ClientConfig, to: FourTuple) {
        let (name, remote) = (crate::tls::NAME, to.remote());
        let connected = self.endpoint.connect(now, config, remote, name);
        let (handle, connection) = connected.expect("a client's configuration");
        (self.handle, self.connection) = (Some(handle), Some(connection));
    }

    /// A datagram arrives.
    pub fn receive(
        &mut self,
        now: Instant,
        path: FourTuple,
        ecn: Option<EcnCodepoint>,
        data: BytesMut,
    ) {
        self.buffer.clear();
        match self.endpoint.handle(now, path, ecn, data, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(connection) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = self.endpoint.accept(incoming, now, &mut self.buffer, None);
                let (handle, connection) = accepted.unwrap_or_else(|error| panic!("{error:?}"));
                (self.handle, self.connection) = (Some(handle), Some(connection));
            }
            // Resets of connections that are gone.
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// When noq wants to be called next.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.connection.as_ref()?.poll_timeout()
    }

    /// Lets timers fire that are due. True if one did.
    pub fn timeout(&mut self, now: Instant) -> bool {
        let due = self.next_timeout().is_some_and(|at| at <= now);
        if let Some(connection) = self.connection.as_mut().filter(|_| due) {
            connection.handle_timeout(now);
        }
        due
    }

    /// Takes noq's events.
    pub fn poll(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Path(event) => self.path_events.push(event),
                Event::Stream(StreamEvent::Finished { .. }) => self.finished_streams += 1,
                _ => {}
            }
        }
    }

    /// Exchanges events of connection and end point. True if there were any.
    pub fn exchange(&mut self) -> bool {
        let (Some(handle), Some(connection)) = (self.handle, &mut self.connection) else {
            return false;
        };
        let mut any = false;
        while let Some(event) = connection.poll_endpoint_events() {
            any = true;
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        any
    }

    /// The next datagrams to send, if there are any.
    pub fn transmit(&mut self, now: Instant) -> Option<(Transmit, &[u8])> {
        self.buffer.clear();
        let connection = self.connection.as_mut()?;
        let transmit = connection.poll_transmit(now, BATCH, &mut self.buffer)?;
        let size = transmit.size;
        Some((transmit, &self.buffer[..size]))
    }
}
