//! The constant pool, which is behind the code and addressed relative to the instruction.
//!
//! Invariants: a constant has one entry, except for those of [`Assembler::new_constant`]; a block starts at a multiple
//! of its length; gaps before blocks are filled with single constants. A constant takes one or two look-ups in a hash
//! map.

use super::{Assembler, displacement};
use chainrule_base::Diagnostic;
use rustc_hash::FxHashMap;

/// Constants so far.
#[derive(Default)]
pub(super) struct Constants {
    words: Vec<u64>,
    /// Index of each word, single ones and those of blocks, by their [`mixed`] bits.
    singles: FxHashMap<u64, u32>,
    /// Index of each block, by its words padded with zeros, and the number of words.
    blocks: FxHashMap<([u64; 8], usize), u32>,
    /// Indices of unused words.
    holes: Vec<usize>,
}

/// A displacement for the address of a constant, in 8 bytes: code has many.
pub(super) struct Reference {
    /// Position of the displacement.
    at: u32,
    /// Offset of the constant in bytes from the first one, a multiple of 8; its low bits are the number of bytes of the
    /// instruction after the displacement.
    offset_and_rest: u32,
}

impl Reference {
    #[inline]
    pub(super) fn new(at: u32, offset: u32, rest: u32) -> Self {
        Self { at, offset_and_rest: offset | rest }
    }
}

impl Constants {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn with_capacity(constants: usize) -> Self {
        Self { words: Vec::with_capacity(constants), ..Self::default() }
    }

    /// Returns the size in bytes.
    pub(super) fn len(&self) -> usize {
        8 * self.words.len()
    }

    /// Writes all constants to `bytes`, which has that size.
    pub(super) fn write_to(&self, bytes: &mut [u8]) {
        for (word, bytes) in self.words.iter().zip(bytes.chunks_exact_mut(8)) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Returns the offset of a word, if it fits into 32 bits.
    fn offset(index: usize) -> Option<u32> {
        u32::try_from(8 * index as u64).ok()
    }
}

/// Returns a bijective hash of a word. The map's hash depends more on the low bits of a number than on the high ones,
/// which are the only nonzero bits of short doubles.
#[inline]
fn mixed(bits: u64) -> u64 {
    bits ^ bits >> 32
}

impl Assembler {
    /// Returns the offset of a double or any other 8 bytes, for [`Mem::Constant`](super::Mem::Constant). Equal bits
    /// share an entry; zeros of either sign have different bits.
    pub(crate) fn constant(&mut self, bits: u64) -> u32 {
        if let Some(&offset) = self.constants.singles.get(&mixed(bits)) {
            return offset;
        }
        let index = match self.constants.holes.pop() {
            Some(index) => {
                self.constants.words[index] = bits;
                index
            }
            None => {
                self.constants.words.push(bits);
                self.constants.words.len() - 1
            }
        };
        let offset = self.offset_of(index);
        self.constants.singles.insert(mixed(bits), offset);
        offset
    }

    /// Adds an entry for 8 bytes without a look-up, for callers that cache their requests.
    pub(crate) fn new_constant(&mut self, bits: u64) -> u32 {
        self.constants.words.push(bits);
        self.offset_of(self.constants.words.len() - 1)
    }

    /// Returns the offset of 2, 4 or 8 adjacent words, aligned to their 16, 32 or 64 bytes.
    pub(crate) fn constant_block<const N: usize>(&mut self, words: [u64; N]) -> u32 {
        const { assert!(N == 2 || N == 4 || N == 8, "a vector has 2, 4 or 8 words") };
        let mut key = [0; 8];
        key[..N].copy_from_slice(&words);
        if let Some(&offset) = self.constants.blocks.get(&(key, N)) {
            return offset;
        }
        let end = self.constants.words.len();
        let start = end.next_multiple_of(N);
        // Taken from the end: the lowest of the latest gaps first.
        self.constants.holes.extend((end..start).rev());
        self.constants.words.resize(start, 0);
        self.constants.words.extend_from_slice(&words);
        let offset = self.offset_of(start);
        self.constants.blocks.insert((key, N), offset);
        for (i, &word) in words.iter().enumerate() {
            let offset = self.offset_of(start + i);
            self.constants.singles.entry(mixed(word)).or_insert(offset);
        }
        offset
    }

    /// Appends other constants, and references to them from code that now starts at `begin`.
    pub(super) fn append_constants(&mut self, other: Constants, references: Vec<Reference>, begin: usize) {
        // Blocks stay aligned to their lengths.
        const LARGEST: usize = 8;
        let words = &mut self.constants.words;
        if !other.is_empty() {
            words.resize(words.len().next_multiple_of(LARGEST), 0);
        }
        let first = words.len();
        words.extend(other.words);
        let moves =
            Constants::offset(words.len()).and_then(|_| Some((u32::try_from(begin).ok()?, Constants::offset(first)?)));
        let Some((begin, first)) = moves else { return self.wrong("more than 4 GiB of code or constants") };
        let is_far = references.last().is_some_and(|last| last.at.checked_add(begin).is_none());
        if is_far {
            return self.wrong("a constant in code of more than 4 GiB");
        }
        self.references.extend(references.into_iter().map(|Reference { at, offset_and_rest }| Reference {
            at: at + begin,
            offset_and_rest: offset_and_rest + first,
        }));
    }

    fn offset_of(&mut self, index: usize) -> u32 {
        Constants::offset(index).unwrap_or_else(|| {
            self.wrong("more than 4 GiB of constants");
            0
        })
    }

    /// Records that the displacement `at` bytes into the instruction of `end` bytes refers to a constant.
    #[inline]
    pub(super) fn refer(&mut self, at: usize, end: usize, offset: u32) {
        match u32::try_from(self.len + at) {
            Ok(at_in_code) => {
                let rest = (end - at - 4) as u32 & 7;
                self.references.push(Reference::new(at_in_code, offset, rest));
            }
            Err(_) => self.wrong("a constant in code of more than 4 GiB"),
        }
    }

    /// Writes the displacements of all constants, which start at `start`.
    pub(super) fn patch_references(&mut self, start: usize) -> Result<(), Diagnostic> {
        let pool = self.constants.len();
        for Reference { at, offset_and_rest } in &self.references {
            let (at, offset, rest) = (*at as usize, (offset_and_rest & !7) as usize, (offset_and_rest & 7) as usize);
            if offset >= pool {
                self.fault.get_or_insert("a constant that was not made");
            }
            let distance = displacement(at + 4 + rest, start + offset)?;
            self.code[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Ok(())
    }
}
