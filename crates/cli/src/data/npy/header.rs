//! Headers of NumPy's format: a dictionary in Python's notation, of which only what NumPy writes is read.

/// Maximum length of a header in bytes, NumPy's own.
const MOST_HEADER: usize = 10_000;

/// Number type.
#[derive(Clone, Copy)]
pub enum Kind {
    Real,
    Signed,
    Unsigned,
}

/// Format of elements.
#[derive(Clone, Copy)]
pub struct Element {
    pub kind: Kind,
    /// Length in bytes: 8 or less.
    pub size: usize,
    pub is_big_endian: bool,
}

impl Element {
    /// Returns the format with a type string such as `<f8`; `None` for other ones than numbers.
    fn new(descr: &str) -> Option<Self> {
        let mut chars = descr.chars();
        let (order, kind, size) = (chars.next()?, chars.next()?, chars.as_str());
        let (kind, sizes) = match kind {
            'f' => (Kind::Real, &["4", "8"][..]),
            'i' => (Kind::Signed, &["1", "2", "4", "8"][..]),
            // Of 8 bytes, some are no integers of 64 bits with a sign.
            'u' => (Kind::Unsigned, &["1", "2", "4"][..]),
            _ => return None,
        };
        let size = sizes.iter().find(|known| **known == size)?.parse().ok()?;
        "<>|=".contains(order).then_some(Self { kind, size, is_big_endian: order == '>' })
    }
}

/// Content of a header.
pub struct Header {
    /// Format of elements, or its description if they are no numbers.
    pub element: Result<Element, String>,
    pub is_column_major: bool,
    pub extents: Vec<usize>,
}

/// Returns the number of bytes of a header whose file begins with these 12 bytes, and where it begins.
///
/// # Errors
/// Fails for bytes that begin no file in this format, and for longer headers than NumPy reads.
pub fn span(start: &[u8]) -> Result<(usize, usize), String> {
    let ends = || "it ends within its header".to_owned();
    let Some(rest) = start.strip_prefix(b"\x93NUMPY") else { return Err("it does not begin as one".to_owned()) };
    let [major, minor, rest @ ..] = rest else { return Err(ends()) };
    let (length, begin) = match (major, rest) {
        (1, [a, b, ..]) => (usize::from(u16::from_le_bytes([*a, *b])), 10),
        (2 | 3, [a, b, c, d, ..]) => (u32::from_le_bytes([*a, *b, *c, *d]) as usize, 12),
        (1..=3, _) => return Err(ends()),
        _ => return Err(format!("its version is {major}.{minor}; 1.0 to 3.0 are known")),
    };
    if length > MOST_HEADER {
        return Err(format!("its header has {length} bytes, more than {MOST_HEADER}"));
    }
    Ok((length, begin))
}

/// Value of a key.
enum Entry {
    Text(String),
    Flag(bool),
    Extents(Vec<usize>),
    /// Fields of a record.
    Fields(String),
}

/// Reads a header.
///
/// # Errors
/// Fails with a reason if the text is no dictionary with each of the three keys once.
pub fn read(text: &[u8]) -> Result<Header, String> {
    let text = std::str::from_utf8(text).map_err(|_| "its header is not text".to_owned())?;
    let mut reader = Reader { rest: text };
    let (mut element, mut order, mut extents) = (None, None, None);
    reader.expect('{')?;
    while !reader.skip('}') {
        let key = reader.quoted()?;
        reader.expect(':')?;
        let entry = reader.entry()?;
        let known = match (key, entry) {
            ("descr", Entry::Text(text)) => {
                element.replace(Element::new(&text).ok_or_else(|| format!("'{text}'"))).is_none()
            }
            ("descr", Entry::Fields(text)) => element.replace(Err(text)).is_none(),
            ("fortran_order", Entry::Flag(flag)) => order.replace(flag).is_none(),
            ("shape", Entry::Extents(all)) => extents.replace(all).is_none(),
            ("descr" | "fortran_order" | "shape", _) => return Err(format!("its header has a wrong `{key}`")),
            _ => return Err(format!("its header has an unknown key, `{}`", chainrule::report::printable(key))),
        };
        if !known {
            return Err(format!("its header has `{key}` twice"));
        }
        if !reader.skip(',') {
            reader.expect('}')?;
            break;
        }
    }
    match (element, order, extents) {
        (Some(element), Some(is_column_major), Some(extents)) => Ok(Header { element, is_column_major, extents }),
        (None, ..) => Err("its header has no `descr`".to_owned()),
        (_, None, _) => Err("its header has no `fortran_order`".to_owned()),
        _ => Err("its header has no `shape`".to_owned()),
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    /// Returns whether the next character is `c`, and skips it.
    fn skip(&mut self, c: char) -> bool {
        self.rest = self.rest.trim_start();
        let rest = self.rest.strip_prefix(c);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, c: char) -> Result<(), String> {
        if self.skip(c) { Ok(()) } else { Err(format!("its header has no `{c}` in a place where one belongs")) }
    }

    /// Reads a string without escapes.
    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.skip('"') { '"' } else { '\'' };
        if quote == '\'' {
            self.expect(quote)?;
        }
        let (text, rest) = self.rest.split_once(quote).ok_or("its header has a string without end")?;
        self.rest = rest;
        match text.chars().all(|c| c != '\\' && !c.is_control()) {
            true => Ok(text),
            false => Err("its header has an escape in a string".to_owned()),
        }
    }

    fn entry(&mut self) -> Result<Entry, String> {
        if self.skip('(') {
            return self.extents().map(Entry::Extents);
        }
        for (word, flag) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(Entry::Flag(flag));
            }
        }
        if self.rest.starts_with('[') {
            return self.fields().map(Entry::Fields);
        }
        self.quoted().map(|text| Entry::Text(text.to_owned()))
    }

    /// Reads the rest of a tuple of sizes; Python 2 wrote `3L`.
    fn extents(&mut self) -> Result<Vec<usize>, String> {
        let mut extents = Vec::new();
        while !self.skip(')') {
            let digits = self.rest.len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = self.rest.split_at(digits);
            extents.push(number.parse().map_err(|_| "its header has a wrong `shape`".to_owned())?);
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.skip(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(extents)
    }

    /// Skips a list.
    fn fields(&mut self) -> Result<String, String> {
        let (mut depth, mut quote) = (0_usize, None);
        for (at, c) in self.rest.char_indices() {
            match (quote, c) {
                (Some(open), _) if c == open => quote = None,
                (Some(_), _) => {}
                (None, '\'' | '"') => quote = Some(c),
                (None, '[') => depth += 1,
                (None, ']') => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let (fields, rest) = self.rest.split_at(at + 1);
                self.rest = rest;
                return Ok(chainrule::report::printable(fields));
            }
        }
        Err("its header has a list without end".to_owned())
    }
}

/// Returns the start of a file of elements with this type string: all that comes before its data.
pub fn write(descr: &str, extents: &[usize]) -> Vec<u8> {
    let extents: String = extents.iter().map(|n| format!("{n},")).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}");
    // Data begins at a multiple of 64.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.push_str(&" ".repeat(length - 1 - text.len()));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(length).unwrap_or(u16::MAX).to_le_bytes());
    bytes.extend(text.bytes());
    bytes
}
