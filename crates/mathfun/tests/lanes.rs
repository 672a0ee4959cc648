//! All forms of a function give the same bits: one point, slices in lanes, and the addresses that generated code calls.

mod support;

use chainrule_cases::Xorshift;
use chainrule_mathfun::{self as mathfun, Form, Function};
use support::arguments;

/// Returns whether the bits are equal, or both numbers are NaN.
fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

fn one_point(function: Function) -> fn(f64) -> f64 {
    match function {
        Function::Sin => mathfun::sin,
        Function::Cos => mathfun::cos,
        Function::Exp => mathfun::exp,
        Function::Expm1 => mathfun::expm1,
        Function::Log => mathfun::log,
        Function::Log1p => mathfun::log1p,
        Function::Sinh => mathfun::sinh,
        Function::Cosh => mathfun::cosh,
        Function::Erf => mathfun::erf,
        Function::Tanh => mathfun::tanh,
        Function::Atan => mathfun::atan,
        Function::Asinh => mathfun::asinh,
        Function::Acosh => mathfun::acosh,
        Function::Atanh => mathfun::atanh,
        Function::Cbrt => mathfun::cbrt,
        Function::Tan => mathfun::tan,
        other => panic!("{other:?} has not one argument and one result"),
    }
}

fn two_arguments(function: Function) -> fn(f64, f64) -> f64 {
    match function {
        Function::Atan2 => mathfun::atan2,
        Function::Pow => mathfun::pow,
        Function::Hypot => mathfun::hypot,
        other => panic!("{other:?} has not two arguments"),
    }
}

fn binary() -> impl Iterator<Item = Function> {
    Function::ALL.into_iter().filter(|f| f.arity() == 2)
}

fn unary() -> impl Iterator<Item = Function> {
    Function::ALL.into_iter().filter(|f| f.arity() == 1 && *f != Function::SinCos)
}

/// Returns mixtures of usual and rare arguments; their number is not a multiple of 8.
fn arguments_of(function: Function) -> Vec<f64> {
    let mut random = Xorshift::new(7);
    let mut all = arguments::of(function.name(), 40_000);
    for _ in 0..20_000 {
        all.push(match random.bits() % 6 {
            0 => f64::from_bits(random.bits()),
            1 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0][(random.bits() % 5) as usize],
            _ => all[(random.bits() % all.len() as u64) as usize],
        });
    }
    all.truncate(all.len() / 8 * 8 + 5);
    all
}

fn forms() -> impl Iterator<Item = Form> {
    let missing: Vec<_> = Form::ALL.into_iter().filter(|form| !form.available()).collect();
    if !missing.is_empty() {
        println!("not tried, this processor has them not: {missing:?}");
    }
    Form::ALL.into_iter().filter(|form| form.available())
}

#[test]
fn slices_have_the_bits_of_one_point() {
    for function in unary() {
        let of = one_point(function);
        let x = arguments_of(function);
        let expected: Vec<f64> = x.iter().map(|x| of(*x)).collect();
        for form in forms() {
            let mut y = vec![0.0; x.len()];
            mathfun::apply1_in(form, function, &x, &mut y);
            for ((x, y), e) in x.iter().zip(&y).zip(&expected) {
                assert!(same(*y, *e), "{function:?}({x:e}) in {form:?}: {y:e}, as one point {e:e}");
            }
        }
    }
}

#[test]
fn slices_of_two_arguments_have_the_bits_of_one_point() {
    for function in binary() {
        let of = two_arguments(function);
        let pairs = arguments::pairs_of(function.name(), 60_003);
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
        for form in forms() {
            let mut y = vec![0.0; a.len()];
            mathfun::apply2_in(form, function, &a, &b, &mut y);
            for ((a, b), y) in a.iter().zip(&b).zip(&y) {
                let e = of(*a, *b);
                assert!(same(*y, e), "{function:?}({a:e}, {b:e}) in {form:?}: {y:e}, as one point {e:e}");
            }
        }
    }
}

#[test]
fn sine_and_cosine_together_have_the_bits_of_each() {
    let x = arguments_of(Function::Sin);
    let mut results: Vec<(Vec<f64>, Vec<f64>)> = vec![x.iter().map(|x| mathfun::sin_cos(*x)).unzip()];
    for form in forms() {
        let (mut s, mut c) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        mathfun::apply_sin_cos_in(form, &x, &mut s, &mut c);
        results.push((s, c));
    }
    for (s, c) in results {
        for ((x, s), c) in x.iter().zip(&s).zip(&c) {
            assert!(same(*s, mathfun::sin(*x)) && same(*c, mathfun::cos(*x)), "{x:e}");
        }
    }
}

#[test]
fn short_slices_are_done_in_full() {
    for form in forms() {
        for n in 0..20 {
            let x: Vec<f64> = (0..n).map(|i| 0.3 * f64::from(i)).collect();
            let mut y = vec![9.0; x.len()];
            mathfun::apply1_in(form, Function::Exp, &x, &mut y);
            assert!(x.iter().zip(&y).all(|(x, y)| same(mathfun::exp(*x), *y)), "{n} in {form:?}");
        }
    }
}

#[test]
#[should_panic(expected = "differ in number")]
fn lengths_that_differ_are_refused() {
    mathfun::apply1(Function::Sin, &[1.0, 2.0], &mut [0.0]);
}

#[cfg(target_arch = "x86_64")]
mod addresses {
    //! The calling convention of generated code.
    #![allow(unsafe_code, improper_ctypes_definitions)]

    use super::*;
    use core::arch::x86_64::*;

    type One = unsafe extern "sysv64" fn(f64) -> f64;
    type OneOfTwo = unsafe extern "sysv64" fn(f64, f64) -> f64;
    type FourOfTwo = unsafe extern "sysv64" fn(__m256d, __m256d) -> __m256d;
    type EightOfTwo = unsafe extern "sysv64" fn(__m512d, __m512d) -> __m512d;
    type OneSinCos = unsafe extern "sysv64" fn(f64, *mut f64) -> f64;
    type Four = unsafe extern "sysv64" fn(__m256d) -> __m256d;
    type FourSinCos = unsafe extern "sysv64" fn(__m256d, *mut [f64; 4]) -> __m256d;
    type Eight = unsafe extern "sysv64" fn(__m512d) -> __m512d;
    type EightSinCos = unsafe extern "sysv64" fn(__m512d, *mut [f64; 8]) -> __m512d;

    #[target_feature(enable = "avx2,fma")]
    unsafe fn four(at: *const (), x: &[f64; 4]) -> [f64; 4] {
        // SAFETY: `at` is an entry for four lanes, `x` and `y` are four doubles.
        unsafe {
            let code: Four = core::mem::transmute(at);
            let mut y = [0.0; 4];
            _mm256_storeu_pd(y.as_mut_ptr(), code(_mm256_loadu_pd(x.as_ptr())));
            y
        }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn eight(at: *const (), x: &[f64; 8]) -> [f64; 8] {
        // SAFETY: `at` is an entry for eight lanes, `x` and `y` are eight doubles.
        unsafe {
            let code: Eight = core::mem::transmute(at);
            let mut y = [0.0; 8];
            _mm512_storeu_pd(y.as_mut_ptr(), code(_mm512_loadu_pd(x.as_ptr())));
            y
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn four_of_two(at: *const (), a: &[f64; 4], b: &[f64; 4]) -> [f64; 4] {
        // SAFETY: `at` is an entry for four lanes and two arguments, all arrays are four doubles.
        unsafe {
            let code: FourOfTwo = core::mem::transmute(at);
            let mut y = [0.0; 4];
            _mm256_storeu_pd(y.as_mut_ptr(), code(_mm256_loadu_pd(a.as_ptr()), _mm256_loadu_pd(b.as_ptr())));
            y
        }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn eight_of_two(at: *const (), a: &[f64; 8], b: &[f64; 8]) -> [f64; 8] {
        // SAFETY: `at` is an entry for eight lanes and two arguments, all arrays are eight doubles.
        unsafe {
            let code: EightOfTwo = core::mem::transmute(at);
            let mut y = [0.0; 8];
            _mm512_storeu_pd(y.as_mut_ptr(), code(_mm512_loadu_pd(a.as_ptr()), _mm512_loadu_pd(b.as_ptr())));
            y
        }
    }

    #[target_feature(enable = "avx2,fma")]
    unsafe fn four_sin_cos(at: *const (), x: &[f64; 4]) -> ([f64; 4], [f64; 4]) {
        // SAFETY: `at` is the entry of sine and cosine, the arrays are four doubles.
        unsafe {
            let code: FourSinCos = core::mem::transmute(at);
            let (mut s, mut c) = ([0.0; 4], [0.0; 4]);
            _mm256_storeu_pd(s.as_mut_ptr(), code(_mm256_loadu_pd(x.as_ptr()), &raw mut c));
            (s, c)
        }
    }

    #[target_feature(enable = "avx512f")]
    unsafe fn eight_sin_cos(at: *const (), x: &[f64; 8]) -> ([f64; 8], [f64; 8]) {
        // SAFETY: `at` is the entry of sine and cosine, the arrays are eight doubles.
        unsafe {
            let code: EightSinCos = core::mem::transmute(at);
            let (mut s, mut c) = ([0.0; 8], [0.0; 8]);
            _mm512_storeu_pd(s.as_mut_ptr(), code(_mm512_loadu_pd(x.as_ptr()), &raw mut c));
            (s, c)
        }
    }

    #[test]
    fn addresses_give_the_same_bits() {
        for function in unary() {
            let of = one_point(function);
            let x = arguments_of(function);
            for form in forms() {
                let at = function.entry(form).unwrap();
                for chunk in x.chunks_exact(form.lanes()) {
                    // SAFETY: the processor has the form.
                    let y = unsafe {
                        match form {
                            Form::One => vec![core::mem::transmute::<*const (), One>(at)(chunk[0])],
                            Form::Lanes4 => four(at, chunk.try_into().unwrap()).to_vec(),
                            Form::Lanes8 => eight(at, chunk.try_into().unwrap()).to_vec(),
                        }
                    };
                    assert!(chunk.iter().zip(&y).all(|(x, y)| same(of(*x), *y)), "{function:?} {form:?} {chunk:?}");
                }
            }
        }
    }

    #[test]
    fn addresses_of_two_arguments_give_the_same_bits() {
        for function in binary() {
            let of = two_arguments(function);
            let (a, b): (Vec<f64>, Vec<f64>) = arguments::pairs_of(function.name(), 20_000).into_iter().unzip();
            for form in forms() {
                let at = function.entry(form).unwrap();
                for (a, b) in a.chunks_exact(form.lanes()).zip(b.chunks_exact(form.lanes())) {
                    // SAFETY: the processor has the form.
                    let y = unsafe {
                        match form {
                            Form::One => vec![core::mem::transmute::<*const (), OneOfTwo>(at)(a[0], b[0])],
                            Form::Lanes4 => four_of_two(at, a.try_into().unwrap(), b.try_into().unwrap()).to_vec(),
                            Form::Lanes8 => eight_of_two(at, a.try_into().unwrap(), b.try_into().unwrap()).to_vec(),
                        }
                    };
                    for ((a, b), y) in a.iter().zip(b).zip(y) {
                        assert!(same(of(*a, *b), y), "{function:?}({a:e}, {b:e}) in {form:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_address_of_sine_and_cosine_stores_cosines() {
        for form in forms() {
            let at = Function::SinCos.entry(form).unwrap();
            for chunk in arguments_of(Function::Sin).chunks_exact(form.lanes()) {
                // SAFETY: the processor has the form.
                let (s, c) = unsafe {
                    match form {
                        Form::One => {
                            let mut c = 0.0;
                            let s = core::mem::transmute::<*const (), OneSinCos>(at)(chunk[0], &raw mut c);
                            (vec![s], vec![c])
                        }
                        Form::Lanes4 => {
                            let (s, c) = four_sin_cos(at, chunk.try_into().unwrap());
                            (s.to_vec(), c.to_vec())
                        }
                        Form::Lanes8 => {
                            let (s, c) = eight_sin_cos(at, chunk.try_into().unwrap());
                            (s.to_vec(), c.to_vec())
                        }
                    }
                };
                for ((x, s), c) in chunk.iter().zip(s).zip(c) {
                    assert!(same(s, mathfun::sin(*x)) && same(c, mathfun::cos(*x)), "{x:e} {form:?}");
                }
            }
        }
    }
}
