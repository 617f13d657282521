//! All connections of QUIC of a run, and the thread that has their end points.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Instant;

use narrows_emu::{First, go_first};
use narrows_net::Nanos;
use narrows_quic::Coupling;
use narrows_sim::Detection;
use nix::unistd::gettid;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::connection::Connection;
use super::task::finished;
use crate::Error;
use crate::hosts::kernel::{self, Built, Cpu, cpu};
use crate::measured::FlowState;
use crate::panics::catch;

/// The connections, by flow; none of the flows that are the kernel's. As TCP has one thread for all its
/// sources, they have one for all their end points.
pub struct Connections<'a> {
    connections: Vec<Option<Connection<'a>>>,
    /// Until it has started.
    runtime: Option<Runtime>,
    /// The same for good.
    handle: Handle,
    thread: Option<JoinHandle<Result<(), String>>>,
    /// Number of the thread, 0 until it runs.
    id: Arc<AtomicI32>,
    stop: Option<oneshot::Sender<()>>,
}

impl<'a> Connections<'a> {
    /// Opens the sockets of all connections, which have these congestion controls.
    ///
    /// # Errors
    /// A socket that cannot be had.
    pub fn open(
        built: &Built<'a>,
        couplings: &[Option<Coupling>],
    ) -> Result<Connections<'a>, Error> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::input("quic", error))?;
        let inside = runtime.enter();
        let open = |(flow, coupling): (usize, &Option<Coupling>)| {
            let connection = coupling.as_ref().map(|coupling| {
                Connection::open(built, flow, coupling).map_err(|error| {
                    Error::input(format!("flows.{}", built.scenario.flows[flow].name), error)
                })
            });
            connection.transpose()
        };
        let connections = couplings.iter().enumerate().map(open).collect::<Result<_, _>>()?;
        drop(inside);
        Ok(Connections {
            connections,
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            thread: None,
            id: Arc::default(),
            stop: None,
        })
    }

    fn present(&self) -> impl Iterator<Item = &Connection<'a>> {
        self.connections.iter().flatten()
    }
}

impl kernel::Connections for Connections<'_> {
    fn start(&mut self, began: Instant) -> Result<(), Error> {
        let Some(runtime) = self.runtime.take() else { return Ok(()) };
        let tasks = self.connections.iter_mut().flatten();
        let tasks: Vec<_> = tasks.filter_map(|connection| connection.task()).collect();
        let (stop, mut stopped) = oneshot::channel();
        let own = self.id.clone();
        let work = async move {
            let mut running = JoinSet::new();
            tasks.into_iter().for_each(|task| drop(running.spawn(task.run(began))));
            let mut all = pin!(finished(running));
            poll_fn(|context| {
                let ended = all.as_mut().poll(context).is_ready();
                let stopped = pin!(&mut stopped).poll(context).is_ready();
                if ended || stopped { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        };
        let thread = std::thread::Builder::new().name("quic".into()).spawn(move || {
            own.store(gettid().as_raw(), Ordering::Relaxed);
            go_first(First::EndPoints);
            catch(|| runtime.block_on(work))
        });
        let thread = thread.map_err(|error| Error::input("quic", error))?;
        (self.thread, self.stop) = (Some(thread), Some(stop));
        Ok(())
    }

    fn look(&mut self, now: Nanos) {
        self.connections.iter_mut().flatten().for_each(|connection| connection.look(now));
    }

    fn flow(&self, flow: usize) -> Option<&FlowState> {
        self.connections[flow].as_ref().map(|connection| &connection.seen.state)
    }

    fn detection(&self, flow: usize) -> Option<&Detection> {
        self.connections[flow].as_ref().map(|connection| &connection.seen.detection)
    }

    fn lose(&mut self, flow: usize, path: usize) {
        if let Some(connection) = &mut self.connections[flow] {
            connection.lose(path);
        }
    }

    fn add(&mut self, flow: usize, path: usize) -> Result<(), Error> {
        let _inside = self.handle.enter();
        match &mut self.connections[flow] {
            Some(connection) => connection.add(path),
            None => Ok(()),
        }
    }

    fn cpu(&self) -> Option<Cpu> {
        cpu(self.id.load(Ordering::Relaxed))
    }

    fn failed(&self) -> Option<String> {
        self.present().find_map(Connection::failed)
    }

    fn notes(&self) -> Vec<String> {
        self.present().flat_map(Connection::notes).cloned().collect()
    }

    fn stop(&mut self) -> Result<(), Error> {
        drop(self.stop.take());
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let done = thread.join().unwrap_or_else(|_| Err("a panic without a message".into()));
        done.map_err(|panic| Error::input("quic", panic))
    }
}

impl Drop for Connections<'_> {
    fn drop(&mut self) {
        // After another error, which is reported.
        kernel::Connections::stop(self).ok();
    }
}
