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
        text.insert_str(0, "x_");
    }
    if text.starts_with('_') && reserved(&text) {
        text.insert(0, 'x');
    }
    text
}

/// Identifiers that are taken.
#[derive(Clone)]
pub struct Scope {
    taken: BTreeSet<String>,
    reserved: fn(&str) -> bool,
}

impl Scope {
    /// Nothing is taken, but what is `reserved` never can be.
    #[must_use]
    pub fn new(reserved: fn(&str) -> bool) -> Self {
        Self { taken: BTreeSet::new(), reserved }
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

    /// The first that `fits` of: `name` as it is spelt, with `suffix`, with `_2`, `_3`, ...
    pub fn pick(&self, name: &str, suffix: &str, fits: impl Fn(&Self, &str) -> bool) -> String {
        let mut base = spell(name, self.reserved);
        if (self.reserved)(&base) {
            base.push('_');
        }
        if (self.reserved)(&base) {
            base.insert_str(0, "x_");
        }
        let with_suffix = format!("{base}{suffix}");
        if let Some(found) = [&base, &with_suffix].into_iter().find(|candidate| fits(self, candidate)) {
            return found.clone();
        }
        let mut k = 2u64;
        loop {
            // `r_2` is a register's name, `r__2` is free.
            let between = if is_internal(&format!("{base}_{k}")) { "__" } else { "_" };
            let candidate = format!("{base}{between}{k}");
            if fits(self, &candidate) {
                return candidate;
            }
            k += 1;
        }
    }
}
