//! Peak memory of this process, if the system reports it (Linux).

/// Resets the peak, so that the next one only covers later memory; has no effect if the system refuses.
pub fn forget_peak() {
    // A 5 written to this file resets `VmHWM`: proc(5), /proc/pid/clear_refs. A refusal only makes peaks too large.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak in MiB.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}
