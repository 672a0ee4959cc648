//! Encoding of numbers and texts.
//!
//! | written | as |
//! | --- | --- |
//! | natural number | seven bits a byte, lowest first, the top bit set in all bytes but the last |
//! | integer | the natural number `2i`, or `-2i - 1` where it is negative |
//! | double | its eight bytes, lowest first |
//! | text | its length in bytes, its bytes (UTF-8) |
//! | list | its length, its elements |
//!
//! Each value has one form: a number with more bytes than it needs is rejected. Reading and writing again therefore
//! returns the same bytes.

use chainrule_base::{Diagnostic, Name};

/// Reason why bytes cannot be read. Boxed, so that results that carry numbers stay small.
pub type Damage = Box<Diagnostic>;

/// Returns the error for bytes with a valid checksum and invalid content, which no version of Chainrule writes.
#[cold]
#[must_use]
pub fn damage(what: impl Into<String>) -> Damage {
    Box::new(
        Diagnostic::error("this Chainrule file is damaged")
            .with_reason(what)
            .with_help("make the file anew, or copy it again from where it was made"),
    )
}

/// Growing sequence of bytes.
#[derive(Default, Debug)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Returns a writer without bytes.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes written.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// Returns the number of bytes written.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Returns whether nothing was written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Writes one byte.
    pub fn byte(&mut self, byte: u8) {
        self.bytes.push(byte);
    }

    /// Writes bytes unchanged.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A natural number.
    #[inline]
    pub fn natural(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.bytes.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.bytes.push(n as u8);
    }

    /// Writes the length of a list, or an index.
    #[inline]
    pub fn count(&mut self, n: usize) {
        self.natural(n as u64);
    }

    /// An integer.
    #[inline]
    pub fn integer(&mut self, i: i64) {
        self.natural(((i << 1) ^ (i >> 63)) as u64);
    }

    /// Writes a double, bit for bit.
    pub fn double(&mut self, x: f64) {
        self.raw(&x.to_bits().to_le_bytes());
    }

    /// Writes a text.
    pub fn text(&mut self, text: &str) {
        self.count(text.len());
        self.raw(text.as_bytes());
    }
}

/// Cursor over bytes that are not trusted.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Returns a cursor at the start of `bytes`.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Returns the number of remaining bytes.
    #[must_use]
    pub const fn left(&self) -> usize {
        self.left.len()
    }

    /// Checks that no bytes remain.
    ///
    /// # Errors
    /// Remaining bytes.
    pub fn end(&self) -> Result<(), Damage> {
        if self.left.is_empty() { Ok(()) } else { Err(damage("there is more in it than belongs to it")) }
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// No remaining byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Damage> {
        let Some((first, rest)) = self.left.split_first() else { return Err(short()) };
        self.left = rest;
        Ok(*first)
    }

    /// Reads `n` bytes unchanged.
    ///
    /// # Errors
    /// Fewer remaining bytes.
    pub fn raw(&mut self, n: usize) -> Result<&'a [u8], Damage> {
        let Some((raw, rest)) = self.left.split_at_checked(n) else { return Err(short()) };
        self.left = rest;
        Ok(raw)
    }

    /// Reads a natural number.
    ///
    /// # Errors
    /// A number that does not end, does not fit into 64 bits, or has more bytes than it needs.
    #[inline]
    pub fn natural(&mut self) -> Result<u64, Damage> {
        match self.left {
            [first, rest @ ..] if *first < 0x80 => {
                self.left = rest;
                Ok(u64::from(*first))
            }
            [first, second, rest @ ..] if *second < 0x80 && *second > 0 => {
                self.left = rest;
                Ok(u64::from(*first & 0x7f) | u64::from(*second) << 7)
            }
            _ => self.long_natural(),
        }
    }

    fn long_natural(&mut self) -> Result<u64, Damage> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                break;
            }
            n |= bits << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err(damage("a number in it is malformed"))
    }

    /// Reads a natural number below 2^32.
    ///
    /// # Errors
    /// Those of [`natural`](Self::natural); a larger number.
    #[inline]
    pub fn natural32(&mut self) -> Result<u32, Damage> {
        u32::try_from(self.natural()?).map_err(|_| damage("a number in it is too large"))
    }

    /// Reads an index. The caller checks its range.
    ///
    /// # Errors
    /// Those of [`natural`](Self::natural).
    #[inline]
    pub fn index(&mut self) -> Result<usize, Damage> {
        self.natural32().map(|n| n as usize)
    }

    /// Reads the length of a list whose elements take at least `least` bytes each.
    ///
    /// # Errors
    /// Those of [`natural`](Self::natural); a list longer than the remaining bytes.
    pub fn count(&mut self, least: usize) -> Result<usize, Damage> {
        let n = self.natural()?;
        match usize::try_from(n) {
            Ok(n) if n <= self.left() / least.max(1) => Ok(n),
            _ => Err(short()),
        }
    }

    /// Reads an integer.
    ///
    /// # Errors
    /// Those of [`natural`](Self::natural).
    #[inline]
    pub fn integer(&mut self) -> Result<i64, Damage> {
        let n = self.natural()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// Reads a double, bit for bit.
    ///
    /// # Errors
    /// Fewer than eight remaining bytes.
    pub fn double(&mut self) -> Result<f64, Damage> {
        let Some((bits, rest)) = self.left.split_first_chunk() else { return Err(short()) };
        self.left = rest;
        Ok(f64::from_bits(u64::from_le_bytes(*bits)))
    }

    /// Reads a truth value: a byte that is 0 or 1.
    ///
    /// # Errors
    /// Another byte; no remaining byte.
    pub fn truth(&mut self) -> Result<bool, Damage> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(damage("a truth value in it is neither 0 nor 1")),
        }
    }

    /// Reads a text.
    ///
    /// # Errors
    /// A text that is not UTF-8, or truncated.
    pub fn text(&mut self) -> Result<&'a str, Damage> {
        let n = self.count(1)?;
        std::str::from_utf8(self.raw(n)?).map_err(|_| damage("a text in it is not UTF-8"))
    }

    /// Reads a name.
    ///
    /// # Errors
    /// Those of [`text`](Self::text).
    pub fn name(&mut self) -> Result<Name, Damage> {
        self.text().map(Name::new)
    }
}

#[cold]
fn short() -> Damage {
    damage("its content ends too early")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_form_each() {
        let samples = [0, 1, 63, 64, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX];
        for n in samples {
            let mut writer = Writer::new();
            writer.natural(n);
            writer.integer(n as i64);
            let bytes = writer.into_bytes();
            let mut reader = Reader::new(&bytes);
            assert_eq!((reader.natural().unwrap(), reader.integer().unwrap()), (n, n as i64));
            reader.end().unwrap();
        }
        for overlong in [&[0x80, 0][..], &[0xff, 0], &[0x80, 0x80, 0], &[0xff; 11], &[0x80]] {
            assert!(Reader::new(overlong).natural().is_err(), "{overlong:?}");
        }
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert!(Reader::new(&too_large).natural().is_err());
    }

    #[test]
    fn doubles_keep_their_bits() {
        for x in [0.0, -0.0, 1.5, f64::NAN, -f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001), f64::INFINITY, 5e-324] {
            let mut writer = Writer::new();
            writer.double(x);
            let bytes = writer.into_bytes();
            assert_eq!(Reader::new(&bytes).double().unwrap().to_bits(), x.to_bits());
        }
    }

    #[test]
    fn a_length_beyond_the_end_is_refused() {
        assert!(Reader::new(&[5, b'a', b'b']).text().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).count(1).is_err());
        assert!(Reader::new(&[2, 0xff, 0xff]).text().is_err());
    }
}
