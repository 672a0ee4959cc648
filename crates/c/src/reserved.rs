//! Names with another meaning in C and C++.

use chainrule_text::names::is_internal;

/// Keywords of C and C++, and declarations of the headers that the code includes.
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

/// Functions and macros of math.h and string.h beyond C11: those of C23, of GNU and of BSD. Those for types other than
/// double have a suffix ([`without_suffix`]).
const EXTENSIONS: &str = "\
    DOMAIN HUGE MAXFLOAT OVERFLOW PLOSS SING SNAN TLOSS UNDERFLOW acospi asinpi atan2pi atanpi basename bcmp bcopy bzero \
    canonicalize compoundn cospi dadd ddiv dfma dmul dsqrt dsub exp10m1 exp2m1 explicit_bzero f32add f32div f32fma f32mul \
    f32sqrt f32sub f32xadd f32xdiv f32xfma f32xmul f32xsqrt f32xsub f64add f64div f64fma f64mul f64sqrt f64sub f64xadd f64xdiv \
    f64xfma f64xmul f64xsqrt f64xsub fadd fdiv ffma ffs ffsl ffsll fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag \
    fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmul fromfp fromfpx fsqrt fsub getpayload i386 iscanonical \
    iseqsig issignaling issubnormal iszero llogb log10p1 log2p1 logp1 memccpy memfrob memmem mempcpy memrchr nextdown nextup \
    pown powr rawmemchr rootn roundeven rsqrt setpayload setpayloadsig sincos sinpi stpcpy stpncpy strcasecmp strcasestr \
    strchrnul strdupa strfry strncasecmp strndup strndupa strnlen strsep strsignal strverscmp tanpi totalorder totalordermag \
    ufromfp ufromfpx";

/// Returns `name` without the suffixes of math.h for other types and for explicit state: `lgammaf_r`, `fmaf64x`.
fn without_suffix(name: &str) -> &str {
    let name = name.strip_suffix("_r").unwrap_or(name);
    let suffixes = ["f16", "f32", "f32x", "f64", "f64x", "f128", "f", "l"];
    suffixes.into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}

/// Returns whether a header declares `name`.
fn is_declared(name: &str) -> bool {
    [RESERVED, EXTENSIONS].iter().any(|words| words.split_ascii_whitespace().any(|word| word == name))
}

/// Functions of the C library and of POSIX. A linked function of such a name would be called instead of the library's,
/// or the other way round.
const LINKED: &str = "\
    abort abs accept access alarm asctime atexit atof atoi atol bind bsearch calloc chdir chmod chown clearerr clock \
    close closedir connect creat ctime difftime div dup dup2 environ execv execve exit fclose fcntl feof ferror fflush \
    fgetc fgets fileno fopen fork fprintf fputc fputs fread free freopen fscanf fseek fstat fsync ftell ftruncate fwrite \
    getc getchar getcwd getenv getpid gets gmtime index ioctl isalnum isalpha isatty iscntrl isdigit isgraph islower \
    isprint ispunct isspace isupper isxdigit kill labs ldiv link listen localeconv localtime longjmp lseek malloc mblen \
    mkdir mkfifo mktime mmap munmap nice open opendir pause perror pipe poll printf putc putchar putenv puts qsort raise \
    rand random read readdir realloc recv remove rename rewind rindex rmdir scanf select send setbuf setenv setjmp \
    setlocale setvbuf shutdown sigaction signal sleep snprintf socket sprintf srand srandom sscanf stat stime \
    strftime strtod strtol strtoul swab symlink sync syscall system time times tmpfile tmpnam tolower toupper truncate \
    umask uname ungetc unlink usleep utime vprintf wait waitpid write";

/// Returns whether a function called `name` would replace another one at link time.
pub(crate) fn is_linked(name: &str) -> bool {
    LINKED.split_ascii_whitespace().any(|linked| linked == name)
}

/// Returns whether `name` has another meaning in C, in the included headers, or among the names of registers (`r_7`),
/// buffers and helpers (`cr_sign`) in the code.
pub(crate) fn is_reserved(name: &str) -> bool {
    let upper_second = |c: char| c == '_' || c.is_ascii_uppercase();
    is_declared(name)
        || is_declared(without_suffix(name))
        || name.starts_with("INT") && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        || name.starts_with("UINT") && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
        || ["SIZE_", "PTRDIFF_", "M_", "FP_", "MATH_", "math_", "WCHAR_", "WINT_", "SIG_"]
            .iter()
            .any(|p| name.starts_with(p))
        || ["int", "uint"].iter().any(|p| name.starts_with(p) && name.ends_with("_t"))
        || name.strip_prefix('_').is_some_and(|rest| rest.starts_with(upper_second))
        || is_internal(name)
}

#[cfg(test)]
mod tests {
    use super::is_reserved;
    use chainrule_text::names::{Scope, is_identifier, spell};

    #[test]
    fn names_become_identifiers() {
        let spelt = ["x", "camera.rotation", "x'", "λ", "2x", "a b", "", "__x", "_X", "_x"]
            .map(|name| spell(name, is_reserved));
        assert_eq!(spelt, ["x", "camera_rotation", "x_prime", "u3bb", "x_2x", "a_b", "x_", "x__x", "x_X", "_x"]);
        assert!(spelt.iter().all(|name| is_identifier(name)));
    }

    #[test]
    fn names_are_unique_and_mean_nothing_else() {
        let mut scope = Scope::new(is_reserved);
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
