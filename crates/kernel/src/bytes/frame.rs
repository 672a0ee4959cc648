//! Frame of a Chainrule file: kind, length and checksum of the content.
//!
//! | bytes | are |
//! | --- | --- |
//! | 0..12 | [`MAGIC`] |
//! | 12..14 | the format's version, [`VERSION`] |
//! | 14..16 | kind of the content, [`Content`] |
//! | 16..24 | length of the content in bytes |
//! | 24..32 | the checksum of bytes 12..24 and the content |
//!
//! Numbers are little-endian. The checksum detects damage: any change within eight bytes for certain, other changes
//! with a probability of 1 - 2^-64. It does not protect against malicious files, so the content is not trusted either.

use chainrule_base::Diagnostic;

/// First bytes of every Chainrule file. The first byte is not text, and the line end reveals a conversion of the file
/// as text.
pub const MAGIC: [u8; 12] = *b"\x89CHAINRULE\r\n";

/// Version that is written, and the newest that is read.
pub const VERSION: u16 = 8;

/// Length of the frame before the content, in bytes.
pub const HEADER: usize = 32;

/// Kind of content of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// A kernel alone.
    Kernel,
    /// A compiled function: its signature and its kernel.
    Function,
}

impl Content {
    const fn code(self) -> u16 {
        match self {
            Self::Kernel => 1,
            Self::Function => 2,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "a kernel",
            Self::Function => "a compiled function",
        }
    }
}

/// Returns whether `bytes` start like a Chainrule file.
#[must_use]
pub fn is_sealed(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns `payload` in a frame.
#[must_use]
pub fn seal(content: Content, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + payload.len());
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&content.code().to_le_bytes());
    bytes.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    let sum = checksum(&bytes[MAGIC.len()..], payload);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Returns the content of a frame that [`seal`] made, of the given kind.
///
/// # Errors
/// A file that is not Chainrule's, of a newer version, of another kind, truncated or damaged.
pub fn open(content: Content, bytes: &[u8]) -> Result<&[u8], Diagnostic> {
    let copy_again = "make the file anew, or copy it again from where it was made";
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    if bytes.is_empty() || *start != MAGIC[..start.len()] {
        return Err(Diagnostic::error("this is not a Chainrule file")
            .with_reason(if bytes.is_empty() { "it is empty" } else { "it does not start as Chainrule files do" })
            .with_help("give a file that Chainrule has saved, as it was saved"));
    }
    let truncated = |whole: String| {
        Diagnostic::error("this Chainrule file is truncated")
            .with_reason(format!("it has {} of {whole} bytes", bytes.len()))
            .with_help(copy_again)
    };
    let Some((header, payload)) = bytes.split_first_chunk::<HEADER>() else {
        return Err(truncated(format!("at least {HEADER}")));
    };
    let version = u16::from_le_bytes([header[12], header[13]]);
    if version > VERSION {
        return Err(Diagnostic::error("this Chainrule file was made by a newer version of Chainrule")
            .with_reason(format!("its format is {version}, and this version reads up to {VERSION}"))
            .with_help("update Chainrule, or save the file with this version"));
    }
    let damaged =
        |what: String| Diagnostic::error("this Chainrule file is damaged").with_reason(what).with_help(copy_again);
    if version == 0 {
        return Err(damaged("no version has the format 0".into()));
    }
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&header[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let length = number(16);
    if length > payload.len() as u64 {
        return Err(truncated(length.saturating_add(HEADER as u64).to_string()));
    }
    if length < payload.len() as u64 {
        let more = payload.len() as u64 - length;
        return Err(damaged(format!("{} after its end", chainrule_base::count(more as usize, "byte"))));
    }
    if number(24) != checksum(&header[MAGIC.len()..24], payload) {
        return Err(damaged("its checksum is not that of its content".into()));
    }
    let found = u16::from_le_bytes([header[14], header[15]]);
    if found != content.code() {
        let is = [Content::Kernel, Content::Function].into_iter().find(|c| c.code() == found);
        return Err(Diagnostic::error(format!("this Chainrule file does not hold {}", content.name()))
            .with_reason(format!("it holds {}", is.map_or("something that this version does not know", Content::name)))
            .with_help(format!("give a file that holds {}", content.name())));
    }
    Ok(payload)
}

/// Returns the checksum of `head` and `payload` together.
///
/// Each step mixes eight bytes into the state by bijections (exclusive or, product with an odd number, xor-shift). Two
/// texts that differ in one step only therefore have different states after it, and at the end. The length comes last.
#[must_use]
pub fn checksum(head: &[u8], payload: &[u8]) -> u64 {
    let mut state = 0x6368_6169_6e72_756c; // "chainrul"
    let mut mix = |word: u64| {
        state = (state ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        state ^= state >> 32;
    };
    for part in [head, payload] {
        let (words, rest) = part.as_chunks::<8>();
        words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(u64::from_le_bytes(last));
        mix(part.len() as u64);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_opens_again() {
        for n in [0, 1, 7, 8, 9, 100] {
            let payload: Vec<u8> = (0..n).collect();
            let bytes = seal(Content::Function, &payload);
            assert_eq!(open(Content::Function, &bytes), Ok(payload.as_slice()));
        }
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let bytes = seal(Content::Kernel, &[1, 2, 3]);
        let says = |bytes: &[u8], what: &str| {
            let message = open(Content::Kernel, bytes).unwrap_err().to_string();
            assert!(message.contains(what), "{message}");
        };
        says(&[], "not a Chainrule file: it is empty");
        says(b"PK\x03\x04", "not a Chainrule file: it does not start");
        says(b"\x89CHAINRULE\n and what follows, long enough for a header", "not a Chainrule file");
        says(&bytes[..5], "truncated: it has 5 of at least 32 bytes");
        says(&bytes[..33], "truncated: it has 33 of 35 bytes");
        let with = |at: usize, byte: u8| {
            let mut changed = bytes.clone();
            changed[at] = byte;
            changed
        };
        says(&with(12, 9), "newer version of Chainrule: its format is 9, and this version reads up to 8");
        says(&with(12, 0), "no version has the format 0");
        says(&with(34, 4), "its checksum is not that of its content");
        says(&[&bytes[..], &[0]].concat(), "1 byte after its end");
        let function = seal(Content::Function, &[]);
        says(&function, "does not hold a kernel: it holds a compiled function");
    }

    #[test]
    fn every_change_of_one_byte_changes_the_checksum() {
        let payload: Vec<u8> = (0..45).map(|i| i * 5).collect();
        let whole = checksum(&[1, 2], &payload);
        for at in 0..payload.len() {
            for flip in 1..=255 {
                let mut changed = payload.clone();
                changed[at] ^= flip;
                assert_ne!(checksum(&[1, 2], &changed), whole);
            }
        }
    }
}
