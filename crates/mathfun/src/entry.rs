//! Every function in every form, compiled for its processor features, with its address.
//!
//! A level is a form with the processor features that it is compiled for. Only this module enters code for AVX2 and
//! AVX-512, and callers first check the processor ([`Level::available`]). The invariant of `x86` rests on this.

#![allow(unsafe_code)]

use crate::functions;
use crate::{Form, Function};
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, Ordering};

/// Calls `$with!` with the bracketed tokens, then all functions: variant, module, and function in the module.
macro_rules! for_all_functions {
    ($with:ident [$($what:tt)*]) => {
        $with! {
            [$($what)*]
            unary {
                Sin sin, Cos cos, Tan tan, Exp exp, Expm1 expm1, Log log, Log1p log1p, Cbrt cbrt,
                Sinh sinh, Cosh cosh, Tanh tanh, Asinh asinh, Acosh acosh, Atanh atanh, Atan atan,
                Erf erf
            }
            binary { Atan2 atan2, Hypot hypot, Pow pow }
        }
    };
}

/// A form, and the processor features that it is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Level {
    /// One point, any processor; fused multiply-add may call a library function.
    Plain,
    /// One point, AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Fused,
    /// Four lanes, AVX2 and FMA.
    #[cfg(target_arch = "x86_64")]
    Lanes4,
    /// Eight lanes, AVX-512F and DQ.
    #[cfg(target_arch = "x86_64")]
    Lanes8,
}

impl Level {
    /// Returns the best level of a form on this processor.
    #[inline]
    pub(crate) fn of(form: Form) -> Option<Self> {
        match form {
            #[cfg(target_arch = "x86_64")]
            Form::One if Self::Fused.available() => Some(Self::Fused),
            Form::One => Some(Self::Plain),
            #[cfg(target_arch = "x86_64")]
            Form::Lanes4 => Some(Self::Lanes4).filter(|level| level.available()),
            #[cfg(target_arch = "x86_64")]
            Form::Lanes8 => Some(Self::Lanes8).filter(|level| level.available()),
            #[cfg(not(target_arch = "x86_64"))]
            Form::Lanes4 | Form::Lanes8 => None,
        }
    }

    /// Returns whether this processor has the features of the level.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    pub(crate) fn available(self) -> bool {
        match self {
            Self::Plain => true,
            #[cfg(target_arch = "x86_64")]
            Self::Fused | Self::Lanes4 => processor() >= FUSED,
            #[cfg(target_arch = "x86_64")]
            Self::Lanes8 => processor() >= WIDE,
        }
    }
}

/// Features of the processor; 0 until they are detected.
#[cfg(target_arch = "x86_64")]
static PROCESSOR: AtomicU8 = AtomicU8::new(0);
#[cfg(target_arch = "x86_64")]
const PLAIN: u8 = 1;
/// AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
const FUSED: u8 = 2;
/// AVX-512F and DQ too.
#[cfg(target_arch = "x86_64")]
const WIDE: u8 = 3;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn processor() -> u8 {
    let known = PROCESSOR.load(Ordering::Relaxed);
    if known == 0 { ask_processor() } else { known }
}

#[cfg(target_arch = "x86_64")]
#[cold]
#[inline(never)]
fn ask_processor() -> u8 {
    use std::is_x86_feature_detected as has;
    let level = match has!("fma") && has!("avx2") {
        false => PLAIN,
        true if has!("avx512f") && has!("avx512dq") => WIDE,
        true => FUSED,
    };
    // Threads that detect at the same time get the same result.
    PROCESSOR.store(level, Ordering::Relaxed);
    level
}

/// Register type of a level's calling convention, convertible to lanes.
pub(crate) trait Register<const N: usize>: functions::lanes::Lanes {
    type Raw;
    fn of(raw: Self::Raw) -> Self;
    fn raw(self) -> Self::Raw;
    fn load(from: [f64; N]) -> Self;
    fn unload(self) -> [f64; N];
}

impl Register<1> for f64 {
    type Raw = f64;
    #[inline(always)]
    fn of(raw: f64) -> f64 {
        raw
    }
    #[inline(always)]
    fn raw(self) -> f64 {
        self
    }
    #[inline(always)]
    fn load(from: [f64; 1]) -> f64 {
        from[0]
    }
    #[inline(always)]
    fn unload(self) -> [f64; 1] {
        [self]
    }
}

/// Loads up to N doubles, padded with ones.
#[inline(always)]
fn load_some<L: Register<N>, const N: usize>(from: &[f64]) -> L {
    let mut lanes = [1.0; N];
    lanes[..from.len()].copy_from_slice(from);
    L::load(lanes)
}

/// Stores up to N lanes, as many as fit.
#[inline(always)]
fn store_some<L: Register<N>, const N: usize>(lanes: L, to: &mut [f64]) {
    to.copy_from_slice(&lanes.unload()[..to.len()]);
}

/// Code of one level: for each function an entry for a register and one for slices.
macro_rules! level {
    ([#[$feature:meta] $abi:literal $level:ident $lanes:ident $n:literal]
        unary { $($name:ident $function:ident),* } binary { $($name2:ident $function2:ident),* }) => {
        // The memory order of the doubles of a register is irrelevant to generated code.
        #[allow(improper_ctypes_definitions)]
        pub(crate) mod $level {
            #[allow(unused_imports)]
            use super::*;

            type L = $lanes;
            type Raw = <L as Register<$n>>::Raw;

            $(
                #[$feature]
                pub(crate) unsafe extern $abi fn $function(x: Raw) -> Raw {
                    functions::$function::$function(L::of(x)).raw()
                }
            )*
            $(
                #[$feature]
                pub(crate) unsafe extern $abi fn $function2(a: Raw, b: Raw) -> Raw {
                    functions::$function2::$function2(L::of(a), L::of(b)).raw()
                }
            )*

            /// Returns the sines and stores the cosines.
            ///
            /// # Safety
            /// `cosines` has space for as many doubles as there are lanes; the processor has the level.
            #[$feature]
            pub(crate) unsafe extern $abi fn sin_cos(x: Raw, cosines: *mut f64) -> Raw {
                let (s, c) = functions::sin_cos::sin_cos(L::of(x));
                // SAFETY: the caller's promise; the write needs no alignment.
                unsafe { cosines.cast::<[f64; $n]>().write_unaligned(c.unload()) };
                s.raw()
            }

            pub(crate) mod slices {
                use super::*;
                $(
                    #[$feature]
                    pub(crate) unsafe fn $function(x: &[f64], y: &mut [f64]) {
                        let ((x, x_rest), (y, y_rest)) = (x.as_chunks::<$n>(), y.as_chunks_mut::<$n>());
                        for (x, y) in x.iter().zip(y) {
                            *y = functions::$function::$function(L::load(*x)).unload();
                        }
                        if !x_rest.is_empty() {
                            store_some(functions::$function::$function(load_some::<L, $n>(x_rest)), y_rest);
                        }
                    }
                )*
                $(
                    #[$feature]
                    pub(crate) unsafe fn $function2(a: &[f64], b: &[f64], y: &mut [f64]) {
                        let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<$n>(), b.as_chunks::<$n>());
                        let (y, y_rest) = y.as_chunks_mut::<$n>();
                        for ((a, b), y) in a.iter().zip(b).zip(y) {
                            *y = functions::$function2::$function2(L::load(*a), L::load(*b)).unload();
                        }
                        if !a_rest.is_empty() {
                            let (a, b) = (load_some::<L, $n>(a_rest), load_some::<L, $n>(b_rest));
                            store_some(functions::$function2::$function2(a, b), y_rest);
                        }
                    }
                )*
                #[$feature]
                pub(crate) unsafe fn sin_cos(x: &[f64], s: &mut [f64], c: &mut [f64]) {
                    let (x, x_rest) = x.as_chunks::<$n>();
                    let ((s, s_rest), (c, c_rest)) = (s.as_chunks_mut::<$n>(), c.as_chunks_mut::<$n>());
                    for ((x, s), c) in x.iter().zip(s).zip(c) {
                        let (sines, cosines) = functions::sin_cos::sin_cos(L::load(*x));
                        *s = sines.unload();
                        *c = cosines.unload();
                    }
                    if !x_rest.is_empty() {
                        let (sines, cosines) = functions::sin_cos::sin_cos(load_some::<L, $n>(x_rest));
                        store_some(sines, s_rest);
                        store_some(cosines, c_rest);
                    }
                }
            }
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
for_all_functions!(level [#[inline(never)] "C" plain f64 1]);

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::{Register, functions, load_some, store_some};
    use crate::x86::{X4, X8};
    use core::arch::x86_64::{__m256d, __m512d};

    impl Register<4> for X4 {
        type Raw = __m256d;
        #[inline(always)]
        fn of(raw: __m256d) -> Self {
            Self(raw)
        }
        #[inline(always)]
        fn raw(self) -> __m256d {
            self.0
        }
        #[inline(always)]
        fn load(from: [f64; 4]) -> Self {
            Self::from_array(from)
        }
        #[inline(always)]
        fn unload(self) -> [f64; 4] {
            self.to_array()
        }
    }

    impl Register<8> for X8 {
        type Raw = __m512d;
        #[inline(always)]
        fn of(raw: __m512d) -> Self {
            Self(raw)
        }
        #[inline(always)]
        fn raw(self) -> __m512d {
            self.0
        }
        #[inline(always)]
        fn load(from: [f64; 8]) -> Self {
            Self::from_array(from)
        }
        #[inline(always)]
        fn unload(self) -> [f64; 8] {
            self.to_array()
        }
    }

    for_all_functions!(level [#[target_feature(enable = "sse2")] "sysv64" plain f64 1]);
    for_all_functions!(level [#[target_feature(enable = "avx2,fma")] "sysv64" fused f64 1]);
    for_all_functions!(level [#[target_feature(enable = "avx2,fma")] "sysv64" lanes4 X4 4]);
    for_all_functions!(level [#[target_feature(enable = "avx512f,avx512dq,avx2,fma")] "sysv64" lanes8 X8 8]);
}

/// A function of slices with one argument; unsafe: the processor must have its level.
pub(crate) type Slices1 = unsafe fn(&[f64], &mut [f64]);
/// A function of slices with two arguments.
pub(crate) type Slices2 = unsafe fn(&[f64], &[f64], &mut [f64]);
/// A function of slices that returns sine and cosine.
pub(crate) type SlicesSinCos = unsafe fn(&[f64], &mut [f64], &mut [f64]);

/// Code of a function at a level.
pub(crate) struct Entry {
    /// See [`Function::entry`].
    pub(crate) address: *const (),
    pub(crate) slices: Slices,
}

/// Code for slices, by the number of arguments and results.
pub(crate) enum Slices {
    One(Slices1),
    Two(Slices2),
    SinCos(SlicesSinCos),
}

macro_rules! find {
    ([$level:ident $wanted:ident]
        unary { $($name:ident $function:ident),* } binary { $($name2:ident $function2:ident),* }) => {
        match $wanted {
            $(Function::$name => Entry {
                address: $level::$function as *const (),
                slices: Slices::One($level::slices::$function),
            },)*
            $(Function::$name2 => Entry {
                address: $level::$function2 as *const (),
                slices: Slices::Two($level::slices::$function2),
            },)*
            Function::SinCos => Entry {
                address: $level::sin_cos as *const (),
                slices: Slices::SinCos($level::slices::sin_cos),
            },
        }
    };
}

/// Returns the code of a function at a level, whether or not the processor has it.
pub(crate) fn entry(function: Function, level: Level) -> Entry {
    match level {
        Level::Plain => for_all_functions!(find [plain function]),
        #[cfg(target_arch = "x86_64")]
        Level::Fused => for_all_functions!(find [fused function]),
        #[cfg(target_arch = "x86_64")]
        Level::Lanes4 => for_all_functions!(find [lanes4 function]),
        #[cfg(target_arch = "x86_64")]
        Level::Lanes8 => for_all_functions!(find [lanes8 function]),
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    /// Without FMA, a processor computes the same bits: the standard library's fused product is exact.
    #[test]
    fn code_without_fma_gives_the_same_bits() {
        if !Level::Fused.available() {
            println!("not tried: this processor has no FMA");
            return;
        }
        let mut random = chainrule_cases::Xorshift::new(1);
        let x: Vec<f64> = (0..4000)
            .map(|i| {
                let bits = random.bits();
                if i % 2 == 0 { f64::from_bits(bits) } else { (bits as i64 as f64) * 2f64.powi(-57) }
            })
            .collect();
        let (mut a, mut b, mut c, mut d) = (x.clone(), x.clone(), x.clone(), x.clone());
        for function in Function::ALL {
            // SAFETY: the processor has both levels.
            unsafe {
                match (entry(function, Level::Plain).slices, entry(function, Level::Fused).slices) {
                    (Slices::One(plain), Slices::One(fused)) => {
                        plain(&x, &mut a);
                        fused(&x, &mut b);
                    }
                    (Slices::Two(plain), Slices::Two(fused)) => {
                        let y: Vec<f64> = x.iter().rev().copied().collect();
                        plain(&x, &y, &mut a);
                        fused(&x, &y, &mut b);
                    }
                    (Slices::SinCos(plain), Slices::SinCos(fused)) => {
                        plain(&x, &mut a, &mut c);
                        fused(&x, &mut b, &mut d);
                    }
                    _ => panic!("{function:?} is not the same in all levels"),
                }
            }
            for (a, b) in a.iter().chain(&c).zip(b.iter().chain(&d)) {
                assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{function:?}");
            }
        }
    }
}
