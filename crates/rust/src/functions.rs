//! Where the spelling of an operator, and the definition that it needs, come from.
//!
//! In: an operator, a [`Library`], a precision. Out: a `Call`: a template and the text of a helper. This
//! is the only place that knows the libraries.
//!
//! The rows of `chainrule_ops` spell operators with methods of the standard library, on `f64`, and say
//! how C calls the functions. The crate `libm` has the names of `math.h`, and an `f` at their ends on
//! `f32`; so what C says gives what is called there.

use chainrule_kernel::Signs;
use chainrule_mathfun::Function;
use chainrule_mathfun::source::Fma;
use chainrule_ops::Op;
use chainrule_text::Precision;

/// Who computes functions such as the sine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Library {
    /// Methods of the standard library, `x.sin()`. The last places may differ from one machine to
    /// another. The error function, lgamma and its derivatives, which it lacks, are from `libm`.
    #[default]
    Std,
    /// The crate `libm`, `libm::sin(x)`: for `no_std`. The same on every machine; the last places of functions that
    /// Chainrule has of its own differ from its interpreter's.
    Libm,
    /// Chainrule's own functions, whose text stands in the module: with them, and the version of `libm` that
    /// Chainrule itself uses for the rest, results are those of its interpreter bit for bit, on every machine.
    /// They multiply and add with one rounding: by the standard library, or by code of their own for `no_std`,
    /// which is slower. For numbers of 64 bits only.
    Own(Fma),
}

/// How an operator is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    /// With `{0}`, `{1}`, `{2}` in the places of the arguments.
    pub template: String,
    /// The definition of a function that it calls.
    pub helper: Option<String>,
    /// The function of Chainrule's own that it calls.
    pub elementary: Option<Function>,
}

impl Call {
    /// Whether it calls the crate `libm`.
    pub fn needs_libm(&self) -> bool {
        [Some(&self.template), self.helper.as_ref()].into_iter().flatten().any(|text| text.contains(LIBM))
    }

    /// Whether it calls what only the standard library has.
    pub fn needs_std(&self) -> bool {
        is_method(&self.template)
    }
}

const LIBM: &str = "libm::";

/// The module of Chainrule's own functions.
pub(crate) const ELEMENTARY: &str = "elementary";

/// How `op` is written.
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

/// A product and a sum, rounded once.
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

/// Whether a method is called on an argument.
fn is_method(template: &str) -> bool {
    template.contains("}.") || template.contains(").")
}

/// What C calls, called in the crate: `sin({0})` becomes `libm::sin({0})`.
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

/// Text on `f64` in a precision.
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
            assert_eq!(template(Op::Cosh, Library::Own(fma), Precision::Double), "libm::cosh({0})");
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
