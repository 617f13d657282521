//! A file that is read twice, from its beginning: plain or compressed by gzip or zstd.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::Error;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Other files of which captures are made: how they begin, and how they are read.
const OTHERS: [(&[u8], &str); 7] = [
    (b"\xfd7zX", "xz (xz -dc FILE | narrows detect -)"),
    (b"BZh", "bzip2 (bzip2 -dc FILE | narrows detect -)"),
    (b"\x04\x22\x4d\x18", "lz4 (lz4 -dc FILE | narrows detect -)"),
    (b"PK\x03\x04", "zip (unzip -p FILE | narrows detect -)"),
    (b"7z\xbc\xaf", "7z (7z x -so FILE | narrows detect -)"),
    (b"snoo", "a capture of snoop (editcap -F pcapng FILE NEW)"),
    (b"GMBU", "a capture of Network Monitor (editcap -F pcapng FILE NEW)"),
];

/// Is a file that begins so another than is read here? What it is, and what makes it one.
pub fn other(beginning: &[u8]) -> Option<&'static str> {
    OTHERS.iter().find(|(begins, _)| beginning.starts_with(begins)).map(|(_, what)| *what)
}

/// Bytes asked of the system at once.
const BLOCK: usize = 256 << 10;

/// What is read, from its beginning.
pub type Reader = Box<dyn Read + Send>;

type Opens = Box<dyn Fn() -> io::Result<Reader> + Send + Sync>;

/// A file, or bytes in its place, that can be read from the beginning as often as is needed.
pub struct Input {
    name: String,
    open: Opens,
}

impl Input {
    /// A file.
    pub fn file(path: &Path) -> Input {
        let name = path.display().to_string();
        let path = path.to_owned();
        let open = move || {
            // Asked before it is opened: to open a pipe waits for who writes it.
            if !fs::metadata(&path)?.is_file() {
                return Err(io::Error::other(
                    "expected a file, as it is read twice; - reads a pipe",
                ));
            }
            Ok(Box::new(File::open(&path)?) as Reader)
        };
        Input { name, open: Box::new(open) }
    }

    /// What is read once from `from`, as from a pipe, kept in a temporary file that has no name.
    ///
    /// # Errors
    /// It cannot be read, or the disk of temporary files is full.
    pub fn kept(name: &str, mut from: impl Read) -> Result<Input, Error> {
        let mut keep = || {
            let mut file = tempfile::tempfile()?;
            io::copy(&mut from, &mut file)?;
            Ok(file)
        };
        let folder = std::env::temp_dir();
        let file = keep().map_err(|error: io::Error| {
            Error::input(name, format!("cannot keep it in {}: {error}", folder.display()))
        })?;
        Ok(Input::of(name, file))
    }

    /// A file that is open and whose name nobody knows.
    pub(crate) fn of(name: &str, file: File) -> Input {
        let file = Arc::new(file);
        let open = move || Ok(Box::new(Kept { file: Arc::clone(&file), at: 0 }) as Reader);
        Input { name: name.into(), open: Box::new(open) }
    }

    /// Bytes, with a name.
    pub fn bytes(name: &str, bytes: impl Into<Arc<[u8]>>) -> Input {
        let bytes = bytes.into();
        let open = move || Ok(Box::new(Cursor::new(Arc::clone(&bytes))) as Reader);
        Input { name: name.to_owned(), open: Box::new(open) }
    }

    /// The same, which cannot be read any further once `stop` is set.
    pub fn until(self, stop: Arc<AtomicBool>) -> Input {
        let Input { name, open } = self;
        let until =
            move || Ok(Box::new(Until { from: open()?, stop: Arc::clone(&stop) }) as Reader);
        Input { name, open: Box::new(until) }
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Opens it, unpacked; `found` is how it begins, up to four bytes, which are read again.
    pub(crate) fn open(&self) -> Result<(Reader, Vec<u8>), Error> {
        let cannot_read = Error::io(&self.name, "read");
        self.begin().map_err(cannot_read)
    }

    fn begin(&self) -> io::Result<(Reader, Vec<u8>)> {
        let (raw, found) = peek((self.open)()?)?;
        let (gzip, zstd) = (found.starts_with(&GZIP), found.starts_with(&ZSTD));
        if !gzip && !zstd {
            return Ok((raw, found));
        }
        let packed = BufReader::with_capacity(BLOCK, raw);
        peek(if gzip {
            Box::new(MultiGzDecoder::new(packed))
        } else {
            Box::new(Frames::new(packed)?)
        })
    }
}

/// What can be read until it is stopped.
struct Until {
    from: Reader,
    stop: Arc<AtomicBool>,
}

impl Read for Until {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("interrupted"));
        }
        self.from.read(buffer)
    }
}

/// A file that several read at the same time: it is opened once, and has no name.
struct Kept {
    file: Arc<File>,
    at: u64,
}

impl Read for Kept {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Input").field(&self.name).finish()
    }
}

type Frame = StreamingDecoder<BufReader<Reader>, FrameDecoder>;

/// The frames of a file compressed by zstd (RFC 8878), one after the other.
struct Frames(Option<Frame>);

impl Frames {
    fn new(packed: BufReader<Reader>) -> io::Result<Frames> {
        StreamingDecoder::new(packed).map(|first| Frames(Some(first))).map_err(io::Error::other)
    }
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(frame) = &mut self.0 {
            let read = frame.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let mut rest = self.0.take().expect("it was read from").into_inner();
            if !rest.fill_buf()?.is_empty() {
                *self = Frames::new(rest)?;
            }
        }
        Ok(0)
    }
}

/// The same, and how it begins.
fn peek(mut from: Reader) -> io::Result<(Reader, Vec<u8>)> {
    let mut found = Vec::new();
    (&mut from).take(4).read_to_end(&mut found)?;
    Ok((Box::new(Filled(Cursor::new(found.clone()).chain(from))), found))
}

/// Reads until the buffer is full: who parses a block at a time then does so rarely.
struct Filled<R>(R);

impl<R: Read> Read for Filled<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.0.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // What came before it is not lost; it comes again at the next call.
                Err(_) if filled > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
