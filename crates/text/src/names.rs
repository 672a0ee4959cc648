//! Identifiers for functions and parameters.
//!
//! In: names as people write them, `camera.rotation`, `x'`, `λ`, `double`. Out: identifiers of the language,
//! unique where they stand, the same on every run. What is an identifier and not taken stays as it is.

use std::collections::BTreeSet;

/// Whether the emitted code gives such names itself: `r_7`, `i_7`, `b_7`, `c_7` to registers, buffers and
/// counts, `cr_sign` to helpers.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    let digits = name.strip_prefix(['r', 'i', 'b', 'c']).and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
        || name.starts_with("cr_")
        || name.starts_with("CR_")
}

/// Whether `name` is spelt as an identifier.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `name` spelt as an identifier: a prime becomes `_prime`, other ASCII that is no letter or digit `_`, any other
/// character `u` and its code. What is `reserved` and begins with an underscore begins with `x` then.
#[must_use]
pub fn spell(name: &str, reserved: fn(&str) -> bool) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            _ if c.is_ascii_alphanumeric() || c == '_' => text.push(c),
            '\'' => text.push_str("_prime"),
            _ if c.is_ascii() => text.push('_'),
            _ => text.push_str(&format!("u{:x}", u32::from(c))),
        }
    }
    if !text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        text.insert_str(0, ESCAPE);
    }
    if text.starts_with('_') && reserved(&text) {
        text.insert(0, 'x');
    }
    text
}

/// Prefix of names that mean nothing in any language.
const ESCAPE: &str = "x_";

/// First number at which a name gets a prefix. A name whose variants are all reserved is refused with every number.
const FIRST_ESCAPED: u64 = 9;

/// Identifiers that are taken.
#[derive(Clone)]
pub struct Scope {
    taken: BTreeSet<String>,
    /// Functions of the file, whose names other names may be derived from.
    functions: Vec<String>,
    reserved: fn(&str) -> bool,
}

impl Scope {
    /// Nothing is taken, but what is `reserved` never can be.
    #[must_use]
    pub fn new(reserved: fn(&str) -> bool) -> Self {
        Self { taken: BTreeSet::new(), functions: Vec::new(), reserved }
    }

    /// Notes that the file defines the function `name`.
    pub fn add_function(&mut self, name: impl Into<String>) {
        self.functions.push(name.into());
    }

    /// Functions of the file.
    #[must_use]
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// Takes `name` whatever it is.
    pub fn reserve(&mut self, name: impl Into<String>) {
        self.taken.insert(name.into());
    }

    /// Whether `name` can still be taken.
    #[must_use]
    pub fn is_free(&self, name: &str) -> bool {
        !(self.reserved)(name) && !self.taken.contains(name)
    }

    /// The first that `fits` of: `name` as it is spelt, with `suffix`, with `_2`, `_3`, and so on; from `_9` on with `x_`, `x10_`,
    /// `x11_`, ... before it in turn.
    ///
    /// Ends if `fits` refuses only names that are reserved, names that are taken, and names that begin with such a name: all
    /// names that begin as `name` does may be among them (`intN_t`), of those with the prefixes `x10_`, `x11_`, ... only finitely
    /// many are.
    pub fn pick(&self, name: &str, suffix: &str, fits: impl Fn(&Self, &str) -> bool) -> String {
        let mut base = spell(name, self.reserved);
        if (self.reserved)(&base) {
            base.push('_');
        }
        if (self.reserved)(&base) {
            base.insert_str(0, ESCAPE);
        }
        let with_suffix = format!("{base}{suffix}");
        if let Some(found) = [&base, &with_suffix].into_iter().find(|candidate| fits(self, candidate)) {
            return found.clone();
        }
        let mut k = 2u64;
        loop {
            // `r_2` is a register's name, `r__2` is free.
            let between = if is_internal(&format!("{base}_{k}")) { "__" } else { "_" };
            let numbered = format!("{base}{between}{k}");
            if fits(self, &numbered) {
                return numbered;
            }
            let prefix = if k == FIRST_ESCAPED { ESCAPE.to_owned() } else { format!("x{k}_") };
            let escaped = format!("{prefix}{}", base.trim_start_matches('_'));
            if k >= FIRST_ESCAPED && fits(self, &escaped) {
                return escaped;
            }
            k += 1;
        }
    }
}
