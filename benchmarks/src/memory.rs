//! The peak of this process's memory, where the system tells it (Linux).

/// Forgets the peak so far, so that the next one is of what follows; where that cannot be, it stays.
pub fn forget_peak() {
    // A 5 written here resets `VmHWM`: proc(5), /proc/pid/clear_refs. A refusal only makes peaks too large.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// The peak in MiB.
pub fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}
