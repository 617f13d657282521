//! The server's log: a thread of its own writes the lines, so that one that waits holds up nobody.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

/// Lines that wait to be written; with more, new ones are left out.
const LINES: usize = 256;
/// Characters of a line at most. Names may have 8 kB, and more once they are escaped.
const LENGTH: usize = 300;

enum Item {
    Line(String),
    /// All before it is written.
    Flush(SyncSender<()>),
}

/// Where lines are written.
#[derive(Clone)]
pub(crate) struct Log {
    items: SyncSender<Item>,
    left_out: Arc<AtomicU64>,
}

impl Log {
    /// Lines go to `write`, one after the other.
    pub fn new(write: impl Fn(String) + Send + 'static) -> Log {
        let (items, written) = sync_channel(LINES);
        let left_out = Arc::new(AtomicU64::new(0));
        let log = Log { items, left_out: left_out.clone() };
        let work = move || {
            for item in written {
                let count = left_out.swap(0, Ordering::Relaxed);
                if count > 0 {
                    write(format!("{count} lines are left out"));
                }
                match item {
                    Item::Line(line) => write(line),
                    // Nobody waits any more.
                    Item::Flush(done) => drop(done.try_send(())),
                }
            }
        };
        // Without a thread no line is written.
        let _ = std::thread::Builder::new().name("log".into()).spawn(work);
        log
    }

    /// Writes a line, cut if it is long, or leaves it out if too many wait. Does not wait itself.
    pub fn line(&self, mut line: String) {
        if let Some((end, _)) = line.char_indices().nth(LENGTH) {
            line.truncate(end);
            line.push_str("...");
        }
        if self.items.try_send(Item::Line(line)).is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until all lines are written, but not for longer than `patience`.
    pub fn flush(&self, patience: Duration) {
        let (done, written) = sync_channel(1);
        if self.items.try_send(Item::Flush(done)).is_ok() {
            let _ = written.recv_timeout(patience);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    /// The reader of the log stands still, as one behind Ctrl-S; later it reads on.
    #[test]
    fn a_log_that_nobody_reads_holds_up_nobody() {
        let (go_on, wait) = channel::<()>();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let log = {
            let (lines, wait) = (lines.clone(), Mutex::new(wait));
            Log::new(move |line| {
                let _ = wait.lock().unwrap().recv();
                lines.lock().unwrap().push(line);
            })
        };
        for number in 0..3 * LINES {
            log.line(format!("{number}"));
        }
        log.flush(Duration::from_millis(1));
        assert!(lines.lock().unwrap().is_empty());
        drop(go_on);
        let begin = Instant::now();
        loop {
            assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", lines.lock().unwrap());
            log.flush(Duration::from_secs(1));
            let lines = lines.lock().unwrap();
            let told =
                |line: &String| line.strip_suffix(" lines are left out")?.parse::<usize>().ok();
            let left_out: usize = lines.iter().filter_map(told).sum();
            let written = lines.iter().filter(|line| line.parse::<usize>().is_ok()).count();
            if left_out + written == 3 * LINES {
                assert!(left_out >= LINES, "{left_out}");
                break;
            }
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        let log = Log::new(move |line| kept.lock().unwrap().push(line));
        log.line("ü".repeat(1000));
        log.flush(Duration::from_secs(60));
        assert_eq!(*lines.lock().unwrap(), [format!("{}...", "ü".repeat(LENGTH))]);
    }
}
