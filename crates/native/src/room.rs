//! Room for machine code in the making: memory that becomes executable when it is full.
//!
//! In: a guess of how many bytes there will be. Out: [`Room`], bytes to write, which grow, and which
//! [`Executable`](crate::executable::Executable) takes over as they are, without a copy.
//!
//! Pages are asked for shortly before they are written, many at a time: that costs a fraction of what each costs that is
//! missed when it is first written, and a guess that is too large costs nothing.

use crate::pool;
use chainrule_runtime::lines::PAGE_BYTES;
use memmap2::{Advice, MmapMut, MmapOptions};
use std::io;
use std::ops::{Deref, DerefMut};

/// So many bytes are asked for with the room.
const FIRST: usize = 64 << 10;

/// So many bytes at a time later, unless one asks for more.
const MORE: usize = 256 << 10;

/// From so many bytes on large pages are asked for, which take a fraction of the time to come and, as code, to run.
const LARGE: usize = 4 << 20;

/// Bytes that nobody else sees. What is in those that were not written is of no account: it may be older code.
#[derive(Debug)]
pub(crate) struct Room {
    memory: Memory,
    /// The first byte of the memory.
    start: *mut u8,
    /// So many are there; the others are only promised.
    ready: usize,
}

// SAFETY: `start` points into `memory`, which the room owns alone and which may go from thread to thread.
unsafe impl Send for Room {}

#[derive(Debug)]
enum Memory {
    Map(MmapMut),
    /// Instead of memory that the system does not give: a little to write on, so that only the end has to ask.
    None(Vec<u8>, usize, io::Error),
}

/// Bytes of [`Memory::None`].
const LITTLE: usize = 4096;

impl Room {
    /// Room for `bytes`, or more.
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

    /// `memory`, of which so many bytes are there.
    fn of(mut memory: Memory, ready: usize) -> Self {
        let start = match &mut memory {
            Memory::Map(map) => map.as_mut_ptr(),
            Memory::None(little, ..) => little.as_mut_ptr(),
        };
        Self { memory, start, ready }
    }

    /// How many bytes can be written without asking.
    #[inline]
    pub(crate) fn ready(&self) -> usize {
        self.ready
    }

    /// `N` bytes from `at` on.
    ///
    /// # Safety
    /// [`ready`](Self::ready) is `at + N` at the least.
    #[inline]
    pub(crate) unsafe fn window<const N: usize>(&mut self, at: usize) -> &mut [u8; N] {
        debug_assert!(at + N <= self.ready);
        // SAFETY: what is ready is in the memory that begins at `start`, which is there as long as `self` and which nobody
        // else looks at while `self` is borrowed.
        unsafe { &mut *self.start.add(at).cast() }
    }

    /// Whether what is written stays: the system gave the memory.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.memory, Memory::Map(_))
    }

    /// Makes `bytes` ready, at the least, of which `used` are kept; whether they are there: where the system gives no more
    /// memory, what was written is lost, and [`into_map`](Self::into_map) says so.
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

    /// Asks for the pages up to `end`. That they are not there yet is no error: they come when they are written.
    fn make_ready(&mut self, end: usize) {
        #[cfg(target_os = "linux")]
        if let Memory::Map(map) = &self.memory {
            let _ = map.advise_range(Advice::PopulateWrite, self.ready, end - self.ready);
        }
        self.ready = end;
    }

    /// The memory, of which `used` bytes are needed, and how many of its bytes are there.
    ///
    /// # Errors
    /// How many bytes the system did not give, and its words.
    pub(crate) fn into_map(self, used: usize) -> Result<(MmapMut, usize), (usize, io::Error)> {
        match self.memory {
            // What will be kept stays as it is; those of its pages that nobody has written are not there.
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

/// Asks for large pages; small ones do as well.
fn large_pages(map: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::HugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

/// Keeps the system from putting memory together with what lies beside it, from which it would be cut off again whenever its
/// protection changes: that takes half of the time of the change. What has other advice is not put together; large pages
/// are too large for it anyway.
fn apart(map: &MmapMut) {
    #[cfg(target_os = "linux")]
    let _ = map.advise(Advice::NoHugePage);
    #[cfg(not(target_os = "linux"))]
    let _ = map;
}

/// Gives back what is behind the first `used` bytes, where that is much.
fn without_end(map: MmapMut, used: usize) -> MmapMut {
    #[cfg(target_os = "linux")]
    if map.len() - used > FIRST / 2 {
        let mut map = map;
        // SAFETY: nobody else knows this memory, and it stays where it is, for it becomes smaller.
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
    fn what_was_written_stays_when_room_grows() {
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

    /// What the system says of memory of which `address` is a byte.
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
    fn memory_that_is_not_there_is_told_at_the_end() {
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
