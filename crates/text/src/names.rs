//! Identifiers for functions and parameters.
//!
//! In: names as people write them, `camera.rotation`, `x'`, `λ`, `double`. Out: identifiers of the language, unique in
//! their scope, equal on every run. Available identifiers stay as they are.

use std::collections::BTreeSet;

/// Returns whether the emitted code uses such names itself: `r_7`, `i_7`, `b_7`, `c_7` for registers, buffers and
/// counts, `cr_sign` for helpers.
#[must_use]
pub fn is_internal(name: &str) -> bool {
    let digits = name.strip_prefix(['r', 'i', 'b', 'c']).and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
        || name.starts_with("cr_")
        || name.starts_with("CR_")
}

/// Returns whether `name` is a valid identifier.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Returns `name` as an identifier: a prime becomes `_prime`, other ASCII characters except letters and digits become
/// `_`, all other characters `u` and their code. A `reserved` result with a leading underscore gets the prefix `x`.
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

/// Prefix of names without a meaning in any language.
const ESCAPE: &str = "x_";

/// First number at which a name gets a prefix. A name whose variants are all reserved is refused with every number.
const FIRST_ESCAPED: u64 = 9;

/// Used identifiers.
#[derive(Clone)]
pub struct Scope {
    taken: BTreeSet<String>,
    /// Functions of the file, from whose names other names may be derived.
    functions: Vec<String>,
    reserved: fn(&str) -> bool,
}

impl Scope {
    /// Returns an empty scope in which `reserved` names are never available.
    #[must_use]
    pub fn new(reserved: fn(&str) -> bool) -> Self {
        Self { taken: BTreeSet::new(), functions: Vec::new(), reserved }
    }

    /// Adds a function `name` of the file.
    pub fn add_function(&mut self, name: impl Into<String>) {
        self.functions.push(name.into());
    }

    /// Returns the functions of the file.
    #[must_use]
    pub fn functions(&self) -> &[String] {
        &self.functions
    }

    /// Reserves `name` unconditionally.
    pub fn reserve(&mut self, name: impl Into<String>) {
        self.taken.insert(name.into());
    }

    /// Returns whether `name` is available.
    #[must_use]
    pub fn is_free(&self, name: &str) -> bool {
        !(self.reserved)(name) && !self.taken.contains(name)
    }

    /// Returns the first name that `fits` of: `name` as spelt, with `suffix`, with `_2`, `_3`, and so on; from `_9` on
    /// also with the prefixes `x_`, `x10_`, `x11_`, ... in turn.
    ///
    /// Terminates if `fits` only refuses reserved names, used names, and names that begin with such a name. These may
    /// include all names that begin like `name` (`intN_t`), but only finitely many of those with the prefixes `x10_`,
    /// `x11_`, ...
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
