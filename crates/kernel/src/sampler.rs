//! Samples of round-trip times and losses of chosen sockets under any control, by a BPF program at the
//! tracepoint `tcp:tcp_probe` (`src/bpf/sampler.bpf.c`). Nothing is pinned: program and maps end with
//! the process, however it ends.

use crate::object::{Aligned, ends_with};
use crate::{Error, available, libbpf_log};
use libbpf_rs::{Link, Map, MapCore, MapFlags, Object, ObjectBuilder, RingBufferBuilder};

static SAMPLER: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/sampler.bpf.o")));

const NAME: &str = "sampler";

/// Sockets that can be sampled at the same time (`NR_SAMPLED_MAX`).
pub const SOCKETS_MAX: usize = 1024;

/// What a socket's last acknowledgement that delivered something left (`struct nr_rtt_sample`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RttSample {
    /// The socket's `SO_COOKIE`.
    pub cookie: u64,
    /// When the acknowledgement came, µs of CLOCK_MONOTONIC.
    pub at_us: u64,
    /// Its round-trip time, µs; 0: it has none, as it filled a hole.
    pub rtt_us: u32,
    /// Packets that the connection delivered so far, modulo 2^32.
    pub delivered: u32,
    /// Packets that it lost so far, modulo 2^32.
    pub lost: u32,
    /// 1: limited by the application, as far as TCP knows.
    pub app_limited: u32,
}

/// The program, attached; no socket is sampled yet.
pub struct Sampler {
    /// Detached when dropped.
    _link: Link,
    object: Object,
}

impl Sampler {
    /// Loads and attaches it.
    ///
    /// # Errors
    /// BPF cannot be used here, or the kernel refuses, as one without the tracepoint does.
    pub fn start() -> Result<Sampler, Error> {
        available()?;
        let open = ObjectBuilder::default()
            .name("narrows")
            .and_then(|builder| builder.open_memory(&SAMPLER.0))
            .map_err(Error::bpf(NAME, "open"))?;
        let object = libbpf_log::load(NAME, open)?;
        let program = object.progs_mut().next().expect("the object has a program");
        let (link, _) = libbpf_log::capture(|| program.attach());
        let link = link.map_err(Error::bpf(NAME, "attach"))?;
        Ok(Sampler { _link: link, object })
    }

    /// Samples the socket with this cookie from now on.
    ///
    /// # Errors
    /// There are [`SOCKETS_MAX`].
    pub fn add(&self, cookie: u64) -> Result<(), Error> {
        let sampled = self.map("nr_sampled").update(
            &cookie.to_ne_bytes(),
            &0u32.to_ne_bytes(),
            MapFlags::ANY,
        );
        sampled.map_err(Error::bpf(NAME, "add a socket to"))
    }

    /// No longer.
    pub fn remove(&self, cookie: u64) {
        // It fails if there is no such socket.
        let _ = self.map("nr_sampled").delete(&cookie.to_ne_bytes());
    }

    /// Gives the samples since the last call to `each`: of one socket in the order of time.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn drain(&self, mut each: impl FnMut(RttSample)) -> Result<(), Error> {
        let failed = |error| Error::bpf(NAME, "read samples of")(error);
        let samples = self.map("nr_samples");
        let mut builder = RingBufferBuilder::new();
        builder
            .add(&samples, |bytes| {
                each(RttSample::of(bytes));
                0
            })
            .map_err(failed)?;
        builder.build().and_then(|buffer| buffer.consume()).map_err(failed)
    }

    /// Samples for which there was no room so far.
    pub fn missed(&self) -> u64 {
        let bss = self.object.maps().find(|map| ends_with(map.name(), ".bss"));
        let value = bss.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        value
            .and_then(|value| Some(u64::from_ne_bytes(value.first_chunk()?.to_owned())))
            .unwrap_or(0)
    }

    fn map(&self, name: &str) -> Map<'_> {
        self.object.maps().find(|map| map.name() == name).expect("the object has it")
    }
}

impl RttSample {
    /// From the bytes of the C side.
    fn of(bytes: &[u8]) -> RttSample {
        assert_eq!(bytes.len(), size_of::<RttSample>());
        // SAFETY: integers only, of that size, and read without regard to alignment.
        unsafe { bytes.as_ptr().cast::<RttSample>().read_unaligned() }
    }
}
