//! Resident memory of this process, as Linux tells it.

/// The largest so far, bytes; 0 where the system does not tell.
pub fn peak() -> u64 {
    status("VmHWM:")
}

/// Now, bytes; 0 where the system does not tell.
pub fn now() -> u64 {
    status("VmRSS:")
}

fn status(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}
