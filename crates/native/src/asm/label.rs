//! Labels, and jumps to them.
//!
//! A jump back takes 2 bytes if its label is near. A jump forward takes its long form, since its label's position is
//! unknown; it is patched when the code is finished.

use super::{Assembler, displacement};
use chainrule_base::Diagnostic;

/// A position in the code, known or not yet known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Label(u32);

/// Position of an unbound label.
pub(super) const UNBOUND: usize = usize::MAX;

/// A jump whose 4-byte displacement ends the instruction.
pub(super) struct Jump {
    at: usize,
    label: Label,
}

impl Jump {
    /// Returns the same jump in code that is appended to other code with so many bytes and labels.
    pub(super) fn moved(self, bytes: usize, n_labels: u32) -> Self {
        Self { at: self.at + bytes, label: Label(self.label.0 + n_labels) }
    }
}

/// Returns the position of a label in code that is appended to so many bytes.
pub(super) fn moved(place: usize, bytes: usize) -> usize {
    if place == UNBOUND { UNBOUND } else { place + bytes }
}

/// Condition on flags of a jump, `setcc` or `cmovcc`; the value is the manual's `cc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Condition {
    /// The signed result did not fit.
    Overflow = 0x0,
    /// The signed result fits.
    NoOverflow = 0x1,
    /// Unsigned less; after `vucomisd`, less or unordered.
    Below = 0x2,
    /// Unsigned greater or equal; after `vucomisd`, greater or equal, and ordered.
    AboveEqual = 0x3,
    /// Equal, or zero.
    Equal = 0x4,
    /// Not equal, or not zero.
    NotEqual = 0x5,
    /// Unsigned less or equal; after `vucomisd`, less, equal or unordered.
    BelowEqual = 0x6,
    /// Unsigned greater; after `vucomisd`, greater, and ordered.
    Above = 0x7,
    /// The sign bit is set.
    Negative = 0x8,
    /// The sign bit is not set.
    NotNegative = 0x9,
    /// Parity even; after `vucomisd`, unordered.
    Parity = 0xA,
    /// Parity odd; after `vucomisd`, ordered.
    NoParity = 0xB,
    /// Signed less.
    Less = 0xC,
    /// Signed greater or equal.
    GreaterEqual = 0xD,
    /// Signed less or equal.
    LessEqual = 0xE,
    /// Signed greater.
    Greater = 0xF,
}

impl Condition {
    /// All conditions, by value.
    pub(crate) const ALL: [Self; 16] = [
        Self::Overflow,
        Self::NoOverflow,
        Self::Below,
        Self::AboveEqual,
        Self::Equal,
        Self::NotEqual,
        Self::BelowEqual,
        Self::Above,
        Self::Negative,
        Self::NotNegative,
        Self::Parity,
        Self::NoParity,
        Self::Less,
        Self::GreaterEqual,
        Self::LessEqual,
        Self::Greater,
    ];

    /// Returns the condition that holds exactly if this one does not.
    pub(crate) fn negated(self) -> Self {
        Self::ALL[self as usize ^ 1]
    }
}

impl Assembler {
    /// Returns a label for a later position.
    pub(crate) fn new_label(&mut self) -> Label {
        self.labels.push(UNBOUND);
        Label(self.labels.len() as u32 - 1)
    }

    /// Binds the label to the current position. Only once.
    pub(crate) fn bind(&mut self, label: Label) {
        let here = self.len;
        match self.labels.get_mut(label.0 as usize) {
            Some(place) if *place == UNBOUND => *place = here,
            _ => self.wrong("a label bound twice, or of another assembler"),
        }
    }

    /// Returns the position of a label, if it is bound.
    pub(crate) fn place(&self, label: Label) -> Option<usize> {
        self.labels.get(label.0 as usize).copied().filter(|&place| place != UNBOUND)
    }

    /// `jmp`
    pub(crate) fn jmp(&mut self, label: Label) {
        self.jump(0xEB, 0xE9, 1, label);
    }

    /// `jcc`
    pub(crate) fn jcc(&mut self, condition: Condition, label: Label) {
        let cc = condition as u64;
        self.jump(0x70 | cc, 0x0F | (0x80 | cc) << 8, 2, label);
    }

    /// `call` of a label.
    pub(crate) fn call_label(&mut self, label: Label) {
        self.jump_long(0xE8, 1, label);
    }

    fn jump(&mut self, short: u64, long: u64, long_len: usize, label: Label) {
        if let Some(place) = self.place(label) {
            // A bound label is not ahead; at most it is this jump's own position.
            let back = self.len.wrapping_sub(place).wrapping_add(2);
            if back <= 128 {
                return self.emit(short | (256 - back as u64) << 8, 2);
            }
        }
        self.jump_long(long, long_len, label);
    }

    fn jump_long(&mut self, opcode: u64, opcode_len: usize, label: Label) {
        self.jumps.push(Jump { at: self.len + opcode_len, label });
        self.emit(opcode, opcode_len + 4);
    }

    /// Writes the displacements of all long jumps.
    pub(super) fn patch_jumps(&mut self) -> Result<(), Diagnostic> {
        for jump in &self.jumps {
            let place = self.labels.get(jump.label.0 as usize).copied().unwrap_or(UNBOUND);
            if place == UNBOUND {
                self.fault.get_or_insert("a jump to a label that is not bound");
                continue;
            }
            let distance = displacement(jump.at + 4, place)?;
            self.code[jump.at..jump.at + 4].copy_from_slice(&distance.to_le_bytes());
        }
        Ok(())
    }
}
