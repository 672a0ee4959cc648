//! Spelling of operators, and the definitions that they need.
//!
//! In: an operator, a [`Library`], a precision. Out: a `Call`: a template and the text of a helper. Only this module
//! knows the libraries.
//!
//! The rows of `chainrule_ops` spell operators with methods of the standard library, on `f64`, and with C functions.
//! The crate `libm` uses the names of `math.h`, with a suffix `f` for `f32`, so calls of it are derived from the
//! spelling in C.

use chainrule_kernel::Signs;
use chainrule_mathfun::Function;
use chainrule_mathfun::source::Fma;
use chainrule_ops::Op;
use chainrule_text::Precision;

/// Library of functions such as the sine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Library {
    /// Methods of the standard library, `x.sin()`. The last digits may differ between machines. The error function,
    /// lgamma and its derivatives, which it lacks, are from `libm`.
    #[default]
    Std,
    /// The crate `libm`, `libm::sin(x)`: for `no_std`. Equal on every machine; the last digits of functions that
    /// Chainrule implements itself differ from those of its interpreter.
    Libm,
    /// Chainrule's own functions, whose text is part of the module. With them, and Chainrule's version of `libm` for
    /// the rest, results are those of the interpreter bit for bit, on every machine. Fused multiply-adds use the
    /// standard library, or slower code of their own for `no_std`. Only for numbers of 64 bits.
    Own(Fma),
}

/// Spelling of an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    /// Template with `{0}`, `{1}`, `{2}` for the arguments.
    pub template: String,
    /// Definition of a function that it calls.
    pub helper: Option<String>,
    /// Chainrule's own function that it calls.
    pub elementary: Option<Function>,
}

impl Call {
    /// Returns whether it calls the crate `libm`.
    pub fn needs_libm(&self) -> bool {
        [Some(&self.template), self.helper.as_ref()].into_iter().flatten().any(|text| text.contains(LIBM))
    }

    /// Returns whether it calls functions that only the standard library has.
    pub fn needs_std(&self) -> bool {
        is_method(&self.template)
    }
}

const LIBM: &str = "libm::";

/// Module of Chainrule's own functions.
pub(crate) const ELEMENTARY: &str = "elementary";

/// Returns the spelling of `op`.
pub(crate) fn call(op: Op, library: Library, precision: Precision) -> Call {
    let row = op.row();
    let own = matches!(library, Library::Own(_));
    if let Some(function) = row.elementary.filter(|_| own) {
        let args = if function.arity() == 2 { "{0}, {1}" } else { "{0}" };
        let template = format!("{ELEMENTARY}::{}({args})", function.name());
        return Call { template, helper: None, elementary: Some(function) };
    }
    let template = match library {
        Library::Libm | Library::Own(_) if is_method(row.rust.template) => with_libm(row.c.template),
        _ => row.rust.template.to_owned(),
    };
    Call {
        template: in_precision(&template, precision),
        helper: row.rust.helper.map(|h| in_precision(h, precision)),
        elementary: None,
    }
}

/// Returns the spelling of a fused multiply-add.
pub(crate) fn mul_add(signs: Signs, library: Library, precision: Precision) -> Call {
    let is_method = matches!(library, Library::Std | Library::Own(Fma::Standard));
    let template = match (is_method, signs) {
        (true, Signs::Plus) => "{0}.mul_add({1}, {2})",
        (true, Signs::MinusSummand) => "{0}.mul_add({1}, -{2})",
        (true, Signs::MinusProduct) => "(-{0}).mul_add({1}, {2})",
        (false, Signs::Plus) => "libm::fma({0}, {1}, {2})",
        (false, Signs::MinusSummand) => "libm::fma({0}, {1}, -{2})",
        (false, Signs::MinusProduct) => "libm::fma(-{0}, {1}, {2})",
    };
    Call { template: in_precision(template, precision), helper: None, elementary: None }
}

/// Returns whether the template calls a method on an argument.
fn is_method(template: &str) -> bool {
    template.contains("}.") || template.contains(").")
}

/// Returns a C call as a call of the crate: `sin({0})` becomes `libm::sin({0})`.
fn with_libm(c: &str) -> String {
    let mut text = String::with_capacity(c.len() + LIBM.len());
    let mut in_word = false;
    for ch in c.chars() {
        if ch.is_ascii_alphabetic() && !in_word {
            text.push_str(LIBM);
        }
        in_word = ch.is_ascii_alphanumeric() || ch == '_';
        text.push(ch);
    }
    text
}

/// Converts text on `f64` to a precision.
pub(crate) fn in_precision(text: &str, precision: Precision) -> String {
    if precision == Precision::Double {
        return text.to_owned();
    }
    let text = text.replace("f64", "f32");
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once(LIBM) {
        let end = after.find('(').unwrap_or(after.len());
        out.extend([before, LIBM, &after[..end], "f"]);
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use chainrule_ops::ROWS;

    #[test]
    fn libraries_are_asked_for_what_they_have() {
        let template = |op, library, precision| call(op, library, precision).template;
        assert_eq!(template(Op::Log1p, Library::Std, Precision::Double), "{0}.ln_1p()");
        assert_eq!(template(Op::Log1p, Library::Libm, Precision::Double), "libm::log1p({0})");
        assert_eq!(template(Op::Log1p, Library::Libm, Precision::Single), "libm::log1pf({0})");
        assert_eq!(template(Op::Mod, Library::Libm, Precision::Single), "{0} - {1} * libm::floorf({0} / {1})");
        assert_eq!(template(Op::Abs, Library::Libm, Precision::Double), "libm::fabs({0})");
        assert_eq!(template(Op::Erf, Library::Std, Precision::Single), "libm::erff({0})");
        for fma in [Fma::Standard, Fma::Exact] {
            assert_eq!(template(Op::Log1p, Library::Own(fma), Precision::Double), "elementary::log1p({0})");
            assert_eq!(template(Op::Pow, Library::Own(fma), Precision::Double), "elementary::pow({0}, {1})");
            assert_eq!(template(Op::Cosh, Library::Own(fma), Precision::Double), "elementary::cosh({0})");
            assert_eq!(template(Op::Asin, Library::Own(fma), Precision::Double), "libm::asin({0})");
        }
        assert_eq!(template(Op::Select, Library::Libm, Precision::Single), "if {0} { {1} } else { {2} }");
    }

    #[test]
    fn floats_need_no_doubles_and_libm_no_std() {
        for row in ROWS {
            for library in [Library::Std, Library::Libm] {
                let single = call(row.op, library, Precision::Single);
                for text in [Some(&single.template), single.helper.as_ref()].into_iter().flatten() {
                    assert!(!text.contains("f64"), "{text}");
                }
                assert!(library == Library::Std || !single.needs_std(), "{single:?}");
            }
        }
    }
}
