//! Code buffer: memory in which machine code is written, and which becomes executable.
//!
//! In: an estimate of the number of bytes. Out: [`Room`], growing memory for writing, which
//! [`Executable`](crate::executable::Executable) takes over without a copy.
//!
//! Pages are requested shortly before they are written, many at a time: that costs a fraction of page faults, and an
//! estimate that is too large costs nothing.

use crate::pool;
use chainrule_runtime::lines::PAGE_BYTES;
use memmap2::{Advice, MmapMut, MmapOptions};
use std::io;
use std::ops::{Deref, DerefMut};

/// Number of bytes whose pages are requested initially.
const FIRST: usize = 64 << 10;

/// Number of bytes whose pages are requested at a time later, unless a caller requests more.
const MORE: usize = 256 << 10;

/// Minimum size for huge pages, in bytes; these take a fraction of the time to fault in and, as code, to run.
const LARGE: usize = 4 << 20;

/// Private memory. Bytes that were not written are unspecified; they may be older code.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Memory,
    /// First byte of the memory.
    start: *mut u8,
    /// Number of resident bytes; the others are only mapped.
    ready: usize,
}

// SAFETY: `start` points into `memory`, which the buffer owns and which may move between threads.
unsafe impl Send for Room {}

#[derive(Debug)]
enum Memory {
    Map(MmapMut),
    /// Replacement for memory that the system denies: a small area to write to, so that only the end has to check for
    /// it.
    None(Vec<u8>, usize, io::Error),
}

/// Size of [`Memory::None`], in bytes.
const LITTLE: usize = 4096;

impl Room {
    /// Returns a buffer of at least `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        if let Some((map, ready)) = pool::take(bytes) {
            return Self::of(Memory::Map(map), ready);
        }
        let bytes = if bytes <= pool::LARGEST { bytes.next_multiple_of(PAGE_BYTES) } else { bytes };
        let first = bytes.clamp(1, FIRST);
        let mut options = MmapOptions::new();
        options.len(bytes.max(1));
        if first >= bytes {
            options.populate();
        }
        match options.map_anon() {
            Ok(map) => {
                if bytes >= LARGE {
                    large_pages(&map);
                } else if bytes <= pool::LARGEST {
                    apart(&map);
                }
                let mut room = Self::of(Memory::Map(map), 0);
                if first >= bytes {
                    room.ready = room.len();
                } else {
                    room.make_ready(first);
                }
                room
            }
            Err(error) => Self::of(nothing(bytes, error), LITTLE),
        }
    }

    /// Returns a buffer on `memory` with `ready` resident bytes.
    fn of(mut memory: Memory, ready: usize) -> Self {
        let start = match &mut memory {
            Memory::Map(map) => map.as_mut_ptr(),
            Memory::None(little, ..) => little.as_mut_ptr(),
        };
        Self { memory, start, ready }
    }

    /// Returns the number of bytes that can be written without growing.
    #[inline]
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// Returns `N` bytes from `at` on.
    ///
    /// # Safety
    /// [`ready`](Self::ready) is at least `at + N`.
    #[inline]
    pub(crate) unsafe fn window<const N: usize>(&mut self, at: usize) -> &mut [u8; N] {
        debug_assert!(at + N <= self.ready);
        // SAFETY: ready bytes are in the memory at `start`, which lives as long as `self` and is not accessed by others
        // while `self` is borrowed.
        unsafe { &mut *self.start.add(at).cast() }
    }

    /// Returns whether writes persist: the system gave the memory.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.memory, Memory::Map(_))
    }

    /// Makes at least `bytes` bytes ready and keeps the first `used` ones; returns whether that succeeded. If the
    /// system gives no more memory, the written bytes are lost, and [`into_map`](Self::into_map) fails.
    pub(crate) fn grow(&mut self, used: usize, bytes: usize) -> bool {
        if !self.is_there() {
            return false;
        }
        if bytes > self.len() {
            let wanted = bytes.max(2 * self.len());
            match MmapOptions::new().len(wanted).map_anon() {
                Ok(mut map) => {
                    if wanted >= LARGE {
                        large_pages(&map);
                    }
                    map[..used].copy_from_slice(&self[..used]);
                    *self = Self::of(Memory::Map(map), used);
                }
                Err(error) => {
                    *self = Self::of(nothing(wanted, error), LITTLE);
                    return false;
                }
            }
        }
        let more = if self.len() <= pool::LARGEST { FIRST } else { MORE };
        self.make_ready(bytes.max(self.ready + more).min(self.len()));
        true
    }

    /// Requests the pages up to `end`. Failure is no error: they are faulted in when written.
    fn make_ready(&mut self, end: usize) {
        #[cfg(target_os = "linux")]
        if let Memory::Map(map) = &self.memory {
            let _ = map.advise_range(Advice::PopulateWrite, self.ready, end - self.ready);
        }
        self.ready = end;
    }

    /// Returns the memory, of which `used` bytes are needed, and the number of its resident bytes.
    ///
    /// # Errors
    /// The number of bytes that the system denied, and its error.
    pub(crate) fn into_map(self, used: usize) -> Result<(MmapMut, usize), (usize, io::Error)> {
        match self.memory {
            // Memory for the cache stays as it is; pages that were never written are not resident.
            Memory::Map(map) if map.len() <= pool::LARGEST => Ok((map, self.ready)),
            Memory::Map(map) => {
                let map = without_end(map, used);
                let ready = self.ready.min(map.len());
                Ok((map, ready))
            }
            Memory::None(_, bytes, error) => Err((bytes, error)),
        }
    }
}

impl Deref for Room {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.memory {
            Memory::Map(map) => map,
            Memory::None(little, ..) => little,
        }
    }
}

impl DerefMut for Room {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.memory {
            Memory::Map(map) => map,
            Memory::None(little, ..) => little,
        }
    }
}

fn nothing(bytes: usize, error: io::Error) -> Memory {
    Memory::None(vec![0; LITTLE], bytes, error)
}

/// Requests huge pages; small ones work as well.
fn large_pages(map: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

/// Prevents the system from merging the mapping with its neighbours, from which it would be split again at each change
/// of protection; that takes half of the time of the change. Mappings with different advice are not merged; huge pages
/// are too large for it anyway.
fn apart(map: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::NoHugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

/// Unmaps the memory behind the first `used` bytes, if it is large.
fn without_end(map: MmapMut, used: usize) -> MmapMut {
    #[cfg(target_os = "linux")]
    if map.len() - used > FIRST / 2 {
        let mut map = map;
        // SAFETY: the memory is private, and does not move, because it shrinks.
        let _ = unsafe { map.remap(used.max(1), memmap2::RemapOptions::new()) };
        return map;
    }
    let _ = used;
    map
}

#[cfg(test)]
mod tests {
    use super::{FIRST, Room};

    #[test]
    fn written_code_stays_when_the_buffer_grows() {
        for first in [1, 4096, FIRST, FIRST + 1, 3 << 20, 5 << 20] {
            let mut room = Room::new(first);
            let mut used = 0;
            while used < 12 << 20 {
                if room.ready() - used < 1000 {
                    assert!(room.grow(used, used + 1000));
                    assert!(room.ready() - used >= 1000 && room.ready() <= room.len());
                }
                room[used..used + 1000].fill((used / 1000) as u8);
                used += 1000;
            }
            let (map, ready) = room.into_map(used).unwrap();
            assert!(ready <= map.len());
            assert!(map.len() >= used);
            assert!(map[..used].chunks(1000).enumerate().all(|(i, chunk)| chunk.iter().all(|byte| *byte == i as u8)));
        }
    }

    /// Returns the system's flags for the mapping that contains `address`.
    #[cfg(target_os = "linux")]
    fn flags_at(address: usize) -> Option<String> {
        let maps = std::fs::read_to_string("/proc/self/smaps").ok()?;
        let mut is_here = false;
        maps.lines().find_map(|line| {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            if let Some((from, to)) = range
                && let (Ok(from), Ok(to)) = (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
            {
                is_here = (from..to).contains(&address);
            }
            line.strip_prefix("VmFlags:").filter(|_| is_here).map(str::to_owned)
        })
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_is_not_put_together_with_what_lies_beside() {
        let room = Room::new(crate::pool::LARGEST);
        match flags_at(room.as_ptr().addr()) {
            Some(flags) if std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() => {
                assert!(flags.split_whitespace().any(|flag| flag == "nh"), "{flags}");
            }
            _ => println!("skipped: the system has no large pages, or does not say"),
        }
    }

    #[test]
    fn missing_memory_is_reported_at_the_end() {
        let mut room = Room::new(usize::MAX / 2);
        room[..64].fill(1);
        assert!(!room.grow(64, 1 << 20));
        assert!(room.ready() >= 64);
        assert!(room.into_map(64).is_err());

        let mut room = Room::new(4096);
        assert!(!room.grow(64, usize::MAX / 2), "no machine has so much");
        assert!(room.into_map(64).is_err());
    }
}
