//! A served folder, and a client of it.

use narrows_testkit::Random;
use narrows_transfer::{Error, Get, Local, Progress, Received, Server, Trust, Url, get};
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// Threads for one end.
pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A folder with the file `file`, served until this is dropped.
pub struct Served {
    pub home: TempDir,
    /// Of `file`.
    pub url: Url,
    pub content: Vec<u8>,
    stop: Arc<AtomicBool>,
    running: Option<std::thread::JoinHandle<()>>,
}

impl Served {
    /// `bytes` of random content at `listen`, from a thread in which `enter` was called first.
    pub fn new(bytes: usize, listen: SocketAddr, enter: impl FnOnce() + Send + 'static) -> Served {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("served");
        fs::create_dir(&root).unwrap();
        let mut random = Random(bytes as u64);
        let mut content: Vec<u8> =
            (0..bytes.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
        content.truncate(bytes);
        fs::write(root.join("file"), &content).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = std::sync::mpsc::channel();
        let running = {
            let stop = stop.clone();
            move || {
                enter();
                runtime().block_on(async {
                    let server = Server::new(&root, listen, "gcubic+xcorr").unwrap();
                    let fingerprint = server.urls("file").unwrap()[0].fingerprint;
                    tell.send((server.address().unwrap(), fingerprint)).unwrap();
                    server.run(&stop, |_| ()).await.unwrap();
                });
            }
        };
        let running = Some(std::thread::spawn(running));
        let (address, fingerprint) = told.recv().unwrap();
        let url = Url { server: address.to_string(), name: "file".into(), fingerprint };
        Served { home, url, content, stop, running }
    }

    pub fn output(&self) -> PathBuf {
        self.home.path().join("got")
    }

    pub fn request(&self, paths: &[&str]) -> Get {
        let paths = paths.iter().map(|path| path.parse::<Local>().unwrap()).collect();
        let (url, output) = (self.url.clone(), self.output());
        Get { url, paths, control: None, trust: Trust::System, output }
    }

    /// Gets it.
    pub fn get(&self, request: &Get, show: impl FnMut(&Progress)) -> Result<Received, Error> {
        runtime().block_on(get(request, &AtomicBool::new(false), show))
    }

    /// Gets it; panics unless it arrives as it is.
    pub fn arrives(&self, request: &Get, show: impl FnMut(&Progress)) -> Received {
        let received = self.get(request, show).unwrap();
        assert!(fs::read(self.output()).unwrap() == self.content, "another content");
        received
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if !std::thread::panicking() {
            self.running.take().unwrap().join().unwrap();
        }
    }
}
