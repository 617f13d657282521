//! A socket for each local address, as one for noq. Paths of interfaces leave through these without any
//! rule in the host's routing; and a first path has an address, which noq gives only to later ones.

use noq::udp::{RecvMeta, Transmit};
use noq::{AsyncUdpSocket, Runtime, TokioRuntime, UdpSender};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The sockets of an end point of noq, one for each local address, which may come and go while it is in
/// use. What is sent from an address that has gone is lost.
#[derive(Clone, Debug, Default)]
pub struct Sockets(Arc<Mutex<All>>);

#[derive(Debug, Default)]
struct All {
    bound: Vec<Bound>,
    /// How many have ever been.
    count: u64,
    /// Where the next round of receiving begins, so that none is left out.
    turn: usize,
    receiver: Option<Waker>,
}

#[derive(Debug)]
struct Bound {
    number: u64,
    address: IpAddr,
    socket: Box<dyn AsyncUdpSocket>,
}

impl Sockets {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a socket at an address, which `bind` gives, unless there is one. Within a runtime of tokio.
    ///
    /// # Errors
    /// That of `bind`.
    pub fn add(
        &self,
        address: IpAddr,
        bind: impl FnOnce() -> io::Result<UdpSocket>,
    ) -> io::Result<()> {
        let mut all = self.all();
        if all.bound.iter().any(|bound| bound.address == address) {
            return Ok(());
        }
        let socket = TokioRuntime.wrap_udp_socket(bind()?)?;
        all.count += 1;
        let bound = Bound { number: all.count, address, socket };
        all.bound.push(bound);
        all.receiver.take().into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Closes the socket at an address.
    pub fn remove(&self, address: IpAddr) {
        self.all().bound.retain(|bound| bound.address != address);
    }

    fn first<T>(&self, of: impl FnOnce(&dyn AsyncUdpSocket) -> T) -> Option<T> {
        self.all().bound.first().map(|bound| of(&*bound.socket))
    }
}

impl AsyncUdpSocket for Sockets {
    fn create_sender(&self) -> Pin<Box<dyn UdpSender>> {
        let segments = self.first(|socket| socket.create_sender().max_transmit_segments());
        Box::pin(Sender {
            sockets: self.clone(),
            own: Vec::new(),
            segments: segments.unwrap_or(NonZeroUsize::MIN),
        })
    }

    fn poll_recv(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let mut all = self.all();
        all.receiver = Some(cx.waker().clone());
        all.turn = all.turn.wrapping_add(1);
        let turn = all.turn;
        let mut left = all.bound.len();
        while left > 0 {
            let at = turn.wrapping_add(left) % all.bound.len();
            left -= 1;
            match all.bound[at].socket.poll_recv(cx, bufs, meta) {
                Poll::Pending => {}
                Poll::Ready(Ok(count)) => return Poll::Ready(Ok(count)),
                // It is no better than an address that is gone: the next look at these binds another.
                Poll::Ready(Err(_)) => {
                    all.bound.swap_remove(at);
                    left = all.bound.len();
                }
            }
        }
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.first(|socket| socket.local_addr())
            .unwrap_or_else(|| Err(io::ErrorKind::AddrNotAvailable.into()))
    }

    fn max_receive_segments(&self) -> NonZeroUsize {
        self.first(|socket| socket.max_receive_segments()).unwrap_or(NonZeroUsize::MIN)
    }

    fn may_fragment(&self) -> bool {
        self.first(|socket| socket.may_fragment()).unwrap_or(true)
    }
}

/// A connection's way to the sockets.
#[derive(Debug)]
struct Sender {
    sockets: Sockets,
    /// A sender of each socket that was used, by its number.
    own: Vec<(u64, Pin<Box<dyn UdpSender>>)>,
    segments: NonZeroUsize,
}

impl UdpSender for Sender {
    fn poll_send(
        mut self: Pin<&mut Self>,
        transmit: &Transmit<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Sender { sockets, own, .. } = &mut *self;
        let all = sockets.all();
        own.retain(|(number, _)| all.bound.iter().any(|bound| bound.number == *number));
        let from = |bound: &&Bound| transmit.src_ip.is_none_or(|source| source == bound.address);
        // An address that is gone: the packet is lost.
        let Some(bound) = all.bound.iter().find(from) else { return Poll::Ready(Ok(())) };
        let number = bound.number;
        if !own.iter().any(|(other, _)| *other == number) {
            own.push((number, bound.socket.create_sender()));
        }
        drop(all);
        let own = own.iter_mut().find(|(other, _)| *other == number);
        own.map_or(Poll::Ready(Ok(())), |(_, sender)| sender.as_mut().poll_send(transmit, cx))
    }

    fn max_transmit_segments(&self) -> NonZeroUsize {
        self.segments
    }
}
