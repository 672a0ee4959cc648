//! C identifiers for functions and parameters.
//!
//! In: names as people write them, `camera.rotation`, `x'`, `λ`, `double`. Out: identifiers of C99 and
//! C++, unique where they stand, the same on every run. What is an identifier and not taken stays as it is.

use std::collections::BTreeSet;

/// Keywords of C and C++, and what the headers that the code includes declare.
const RESERVED: &str = "\
    EOF FP_CONTRACT HUGE_VAL HUGE_VALF HUGE_VALL I INFINITY NAN NULL acos acosf acosh acoshf acoshl acosl \
    alignas alignof and and_eq asin asinf asinh asinhf asinhl asinl asm atan atan2 atan2f atan2l atanf atanh \
    atanhf atanhl atanl auto bitand bitor bool break case catch cbrt cbrtf cbrtl ceil ceilf ceill char char16_t \
    char32_t char8_t class co_await co_return co_yield compl complex concept const const_cast consteval \
    constexpr constinit continue copysign copysignf copysignl cos cosf cosh coshf coshl cosl decltype default \
    delete do double double_t drem dynamic_cast else enum erf erfc erfcf erfcl erff erfl errno exp exp10 exp2 \
    exp2f exp2l expf expl explicit expm1 expm1f expm1l export extern fabs fabsf fabsl false fdim fdimf fdiml \
    finite float float_t floor floorf floorl fma fmaf fmal fmax fmaxf fmaxl fmin fminf fminl fmod fmodf fmodl \
    for fpclassify frexp frexpf frexpl friend gamma goto hypot hypotf hypotl if ilogb ilogbf ilogbl inline int \
    isfinite isgreater isgreaterequal isinf isless islessequal islessgreater isnan isnormal isunordered j0 j1 jn \
    ldexp ldexpf ldexpl lgamma lgammaf lgammal linux llrint llrintf llrintl llround llroundf llroundl log log10 \
    log10f log10l log1p log1pf log1pl log2 log2f log2l logb logbf logbl logf logl long lrint lrintf lrintl \
    lround lroundf lroundl main max_align_t memchr memcmp memcpy memmove memset modf modff modfl mutable \
    namespace nan nanf nanl nearbyint nearbyintf nearbyintl new nextafter nextafterf nextafterl nexttoward \
    nexttowardf nexttowardl noexcept not not_eq nullptr offsetof operator or or_eq pow pow10 powf powl private \
    protected ptrdiff_t public register reinterpret_cast remainder remainderf remainderl remquo remquof remquol \
    requires restrict return rint rintf rintl round roundf roundl scalb scalbln scalblnf scalblnl scalbn scalbnf \
    scalbnl short signbit signed signgam significand sin sinf sinh sinhf sinhl sinl size_t sizeof sqrt sqrtf \
    sqrtl static static_assert static_cast strcat strchr strcmp strcoll strcpy strcspn strdup strerror strlen \
    strncat strncmp strncpy strpbrk strrchr strspn strstr strtok struct strxfrm switch tan tanf tanh tanhf tanhl \
    tanl template tgamma tgammaf tgammal this thread_local throw true trunc truncf truncl try typedef typeid \
    typename typeof typeof_unqual union unix unsigned using virtual void volatile wchar_t while xor xor_eq y0 y1 \
    yn";

/// Whether `name` means something else in C, in the code's headers, or among the names that the code
/// gives to registers (`r_7`), buffers and helpers (`cr_sign`).
pub(crate) fn is_reserved(name: &str) -> bool {
    let upper_second = |c: char| c == '_' || c.is_ascii_uppercase();
    RESERVED.split_ascii_whitespace().any(|word| word == name)
        || name.starts_with("cr_")
        || name.starts_with("CR_")
        || name.starts_with("INT") && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        || name.starts_with("UINT") && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        || ["SIZE_", "PTRDIFF_", "M_", "FP_", "MATH_", "WCHAR_", "WINT_", "SIG_"].iter().any(|p| name.starts_with(p))
        || ["int", "uint"].iter().any(|p| name.starts_with(p) && name.ends_with("_t"))
        || name.strip_prefix('_').is_some_and(|rest| rest.starts_with(upper_second))
        || is_internal(name)
}

/// `r_7`, `i_7`, `b_7`, `c_7`: registers, buffers and counts.
fn is_internal(name: &str) -> bool {
    let digits = name.strip_prefix(['r', 'i', 'b', 'c']).and_then(|rest| rest.strip_prefix('_'));
    digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

/// Whether `name` is spelt as an identifier of C.
pub(crate) fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `name` spelt as an identifier: a prime becomes `_prime`, other ASCII that is no letter or digit `_`, any other
/// character `u` and its code.
pub(crate) fn spell(name: &str) -> String {
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
    if text.starts_with('_') && is_reserved(&text) {
        text.insert(0, 'x');
    }
    text
}

/// Identifiers that are taken.
#[derive(Clone, Default)]
pub(crate) struct Scope {
    taken: BTreeSet<String>,
}

impl Scope {
    /// Takes `name` whatever it is.
    pub fn reserve(&mut self, name: impl Into<String>) {
        self.taken.insert(name.into());
    }

    /// Whether `name` can still be taken.
    pub fn is_free(&self, name: &str) -> bool {
        !is_reserved(name) && !self.taken.contains(name)
    }

    /// The first that `fits` of: `name` as it is spelt, with `suffix`, with `_2`, `_3`, ...
    pub fn pick(&self, name: &str, suffix: &str, fits: impl Fn(&Self, &str) -> bool) -> String {
        let mut base = spell(name);
        if is_reserved(&base) {
            base.push('_');
        }
        if is_reserved(&base) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_identifiers() {
        let spelt = ["x", "camera.rotation", "x'", "λ", "2x", "a b", "", "__x", "_X", "_x"].map(spell);
        assert_eq!(spelt, ["x", "camera_rotation", "x_prime", "u3bb", "x_2x", "a_b", "x_", "x__x", "x_X", "_x"]);
        assert!(spelt.iter().all(|name| is_identifier(name)));
    }

    #[test]
    fn names_are_unique_and_mean_nothing_else() {
        let mut scope = Scope::default();
        let names =
            ["x", "x", "x", "double", "double", "sin", "r_7", "r", "cr_sign", "int64_t", "r", "r", "_X", "INT8_MAX"];
        let taken = names.map(|name| {
            let identifier = scope.pick(name, "_out", Scope::is_free);
            scope.reserve(identifier.clone());
            identifier
        });
        let expected = [
            "x",
            "x_out",
            "x_2",
            "double_",
            "double__out",
            "sin_",
            "r_7_",
            "r",
            "x_cr_sign_",
            "int64_t_",
            "r_out",
            "r__2",
            "x_X",
            "x_INT8_MAX_",
        ];
        assert_eq!(taken, expected);
    }
}
