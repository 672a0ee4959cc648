//! Names with another meaning in Rust.

use chainrule_text::names::is_internal;

/// Keywords of all editions, and names of the prelude that would be patterns instead of variables.
const RESERVED: &str = "\
    _ abstract as async await become box break const continue crate do dyn else enum Err extern f32 f64 false \
    final fn for gen i64 if impl in let loop macro match mod move mut None Ok override priv pub ref return self \
    Self Some static struct super trait true try type typeof union unsafe unsized use usize virtual where while \
    yield";

/// Returns whether `name` has another meaning in Rust, or is among the names of registers (`r_7`), buffers and helpers
/// (`cr_sign`) in the code.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.split_ascii_whitespace().any(|word| word == name) || is_internal(name)
}

#[cfg(test)]
mod tests {
    use super::is_reserved;
    use chainrule_text::Scope;

    #[test]
    fn names_are_unique_and_mean_nothing_else() {
        let mut scope = Scope::new(is_reserved);
        let names = ["x", "x", "fn", "r_7", "None", "_", "double", "'", "self", "Self", "Ok", "cr_len"];
        let taken = names.map(|name| {
            let identifier = scope.pick(name, "_out", Scope::is_free);
            scope.reserve(identifier.clone());
            identifier
        });
        let expected =
            ["x", "x_out", "fn_", "r_7_", "None_", "x_", "double", "_prime", "self_", "Self_", "Ok_", "x_cr_len_"];
        assert_eq!(taken, expected);
    }
}
