//! Traces that links replay: files on disk, plain or compressed, and shipped ones.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use narrows_net::Trace;

use super::shipped;

/// The name of a trace on disk: a path that is absolute or begins with `./`, where one from the folder of
/// shipped scenarios does neither.
pub fn on_disk(path: &Path) -> String {
    Path::new(".").join(path.strip_prefix(".").unwrap_or(path)).display().to_string()
}

/// The trace of that name, on disk or shipped.
///
/// # Errors
/// It cannot be read or is no trace.
pub fn find(name: &str) -> Result<Arc<Trace>, String> {
    let path = Path::new(name);
    let (bytes, name) = if path.is_absolute() || path.starts_with(".") {
        let name = name.strip_prefix("./").unwrap_or(name);
        let bytes = std::fs::File::open(path).and_then(|file| bounded(file, MAX_TRACE));
        (bytes.map_err(|error| format!("cannot read {name}: {error}"))?, name)
    } else {
        let bytes = shipped::file(name).ok_or(format!("no trace \"{name}\" is shipped"))?;
        (bytes.to_vec(), name)
    };
    let text = if bytes.starts_with(&[0x1f, 0x8b]) {
        bounded(flate2::read::MultiGzDecoder::new(&bytes[..]), MAX_TRACE)
            .map_err(|error| format!("{name}: cannot unpack: {error}"))?
    } else {
        bytes
    };
    Trace::parse(&text, name).map(Arc::new).map_err(|error| error.to_string())
}

/// Largest trace, unpacked: hours of a gigabit link. What is beyond would fill the memory.
const MAX_TRACE: u64 = 256 << 20;

/// Reads all there is, which must be at most `limit` bytes.
fn bounded(from: impl Read, limit: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if from.take(limit + 1).read_to_end(&mut bytes)? as u64 > limit {
        let message = format!("more than {limit} bytes are too long for a trace");
        return Err(std::io::Error::other(message));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_not_read_to_its_end() {
        assert_eq!(bounded(&b"12"[..], 2).unwrap(), b"12");
        let error = bounded(std::io::repeat(b'1'), 2).unwrap_err().to_string();
        assert_eq!(error, "more than 2 bytes are too long for a trace");
    }
}
