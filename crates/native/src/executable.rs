//! Memory that holds machine code.
//!
//! In: the bytes of code with its constants, in the buffer in which they were written. Out: [`Executable`], the same
//! memory, from which the code runs until its owner is dropped; then the memory goes to the cache for other code, or
//! back to the system (`pool`). The memory is written first and then made readable and executable, never writable and
//! executable at the same time. Some systems permit no executable memory (hardened kernels, sandboxes). That is a
//! value, [`Refusal`], so that the caller can report it and use the interpreter.

use crate::asm::Code;
use crate::pool;
use chainrule_base::Diagnostic;
use memmap2::Mmap;
use std::io;
use std::mem::ManuallyDrop;

/// Whether executable memory is requested from the system.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Policy {
    /// Request it.
    #[default]
    Ask,
    /// Behave as if it were denied, for tests.
    Deny,
}

/// Reason why there is no executable memory.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The system permits none.
    Denied(io::Error),
    /// Out of memory: requested bytes, and the system's error.
    NoMemory(usize, io::Error),
}

impl Refusal {
    /// Returns the message for a person.
    pub(crate) fn diagnostic(&self) -> Diagnostic {
        match self {
            Self::Denied(error) => Diagnostic::limitation("this system denies executable memory")
                .with_reason(error.to_string())
                .with_help("the interpreter needs none, nor does emitted C"),
            Self::NoMemory(bytes, error) => Diagnostic::limitation(format!("no memory for {bytes} bytes of code"))
                .with_reason(error.to_string())
                .with_help("the interpreter needs less"),
        }
    }
}

/// Executable code in memory. Threads may share it, because it is immutable.
#[derive(Debug)]
pub(crate) struct Executable {
    map: ManuallyDrop<Mmap>,
    len: usize,
    /// Number of bytes of the memory that are resident.
    ready: usize,
    /// Whether its addresses are never reused.
    keeps_addresses: bool,
}

impl Drop for Executable {
    fn drop(&mut self) {
        // SAFETY: the map is taken only here, and not used afterwards.
        let map = unsafe { ManuallyDrop::take(&mut self.map) };
        if self.keeps_addresses { pool::retire(map) } else { pool::give(map, self.ready) }
    }
}

impl Executable {
    /// Makes `code` executable in place: page-aligned, and so aligned to any power of two up to 4096 bytes.
    ///
    /// Takes a system call, and another one if the buffer is much larger than the code.
    ///
    /// # Errors
    /// [`Refusal`], if the system gave no memory or does not let it become executable.
    pub(crate) fn of(code: Code, policy: Policy) -> Result<Self, Refusal> {
        let len = code.len;
        let (map, ready) = code.room.into_map(len).map_err(|(bytes, error)| Refusal::NoMemory(bytes, error))?;
        let made = match policy {
            Policy::Ask => map.make_exec(),
            Policy::Deny => Err(io::Error::new(io::ErrorKind::PermissionDenied, "denied by the policy of the caller")),
        };
        match made {
            Ok(map) => Ok(Self { map: ManuallyDrop::new(map), len, ready, keeps_addresses: false }),
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => Err(Refusal::NoMemory(len, error)),
            Err(error) => Err(Refusal::Denied(error)),
        }
    }

    /// As [`Self::of`], for a copy of these bytes.
    #[cfg(test)]
    pub(crate) fn new(code: &[u8], policy: Policy) -> Result<Self, Refusal> {
        let mut room = crate::room::Room::new(code.len());
        if code.len() <= room.ready() || room.grow(0, code.len()) {
            room[..code.len()].copy_from_slice(code);
        }
        Self::of(Code { room, len: code.len(), instructions: code.len() }, policy)
    }

    /// Reserves its addresses for this code, even after it is dropped.
    pub(crate) fn keep_addresses(&mut self) {
        self.keeps_addresses = true;
    }

    /// Returns the address of a byte of the code, if it is one. It is valid as long as `self`.
    pub(crate) fn entry(&self, offset: usize) -> Option<*const u8> {
        self.map[..self.len].get(offset).map(std::ptr::from_ref)
    }

    /// The code and its constants.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map[..self.len]
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::{Executable, Policy, Refusal};
    use crate::Level;
    use crate::asm::Assembler;

    /// `mov eax, 42; ret`.
    const ANSWER: [u8; 6] = [0xB8, 42, 0, 0, 0, 0xC3];

    fn is_shared<T: Send + Sync>() {}

    fn call(code: &Executable, offset: usize) -> u32 {
        let entry = code.entry(offset).unwrap();
        // SAFETY: `offset` is the start of a copy of ANSWER, which takes no arguments, returns a 32-bit integer in eax,
        // accesses no other register and no memory, and returns.
        #[allow(unsafe_code)]
        unsafe {
            std::mem::transmute::<*const u8, extern "C" fn() -> u32>(entry)()
        }
    }

    #[test]
    fn code_runs() {
        is_shared::<Executable>();
        let code = Executable::new(&ANSWER, Policy::Ask).unwrap();
        assert_eq!(call(&code, 0), 42);
        assert_eq!(code.len(), 6);
        assert!(code.entry(5).is_some());
        assert!(code.entry(6).is_none());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(call(&code, 0), 42));
            }
        });
    }

    #[test]
    fn memory_is_never_writable_and_executable() {
        let code = Executable::new(&ANSWER, Policy::Ask).unwrap();
        let address = code.entry(0).unwrap().addr();
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else {
            println!("skipped: no /proc/self/maps");
            return;
        };
        let ours = maps.lines().find(|line| {
            let (range, _) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            (usize::from_str_radix(from, 16).unwrap()..usize::from_str_radix(to, 16).unwrap()).contains(&address)
        });
        assert!(ours.unwrap().contains(" r-xp "), "{ours:?}");
    }

    #[test]
    fn huge_and_empty_codes_are_fine() {
        let mut bytes = vec![0x90; 100 << 20];
        let end = bytes.len() - ANSWER.len();
        bytes[end..].copy_from_slice(&ANSWER);
        assert_eq!(call(&Executable::new(&bytes, Policy::Ask).unwrap(), end), 42);
        assert!(Executable::new(&[], Policy::Ask).unwrap().entry(0).is_none());
    }

    #[test]
    fn a_denial_is_a_value() {
        let refusal = Executable::new(&ANSWER, Policy::Deny).unwrap_err();
        assert!(matches!(refusal, Refusal::Denied(_)));
        assert_eq!(
            refusal.diagnostic().to_string(),
            "limitation: this system denies executable memory: denied by the policy of the caller (help: the \
             interpreter needs none, nor does emitted C)"
        );
    }

    #[test]
    fn code_for_which_there_was_no_memory_is_a_value() {
        let mut asm = Assembler::with_room(Level::Avx2, usize::MAX / 4, 0);
        let end = asm.new_label();
        (0..10_000).for_each(|_| asm.jmp(end));
        asm.bind(end);
        asm.ret();
        let refusal = Executable::of(asm.finish().unwrap(), Policy::Ask).unwrap_err();
        assert!(matches!(refusal, Refusal::NoMemory(bytes, _) if bytes > usize::MAX / 4), "{refusal:?}");
    }

    #[test]
    fn memory_that_is_not_there_is_a_value() {
        let refusal = Refusal::NoMemory(7, std::io::Error::from(std::io::ErrorKind::OutOfMemory));
        assert_eq!(
            refusal.diagnostic().to_string(),
            "limitation: no memory for 7 bytes of code: out of memory (help: the interpreter needs less)"
        );
    }
}
