//! Emitted source text, compiled by the toolchain of these tests with and without the standard library's fused product,
//! gives the bits of the crate.

#![allow(clippy::unwrap_used)]

mod support;

use chainrule_cases::Xorshift;
use chainrule_mathfun::functions::fma_exact;
use chainrule_mathfun::source::{self, Fma};
use chainrule_mathfun::{self as mathfun, Function};
use std::path::Path;
use std::process::{Command, Stdio};
use support::arguments;

/// Compiles with warnings as errors.
fn compile(folder: &Path, name: &str, text: &str, options: &[&str]) {
    let file = folder.join(format!("{name}.rs"));
    std::fs::write(&file, text).unwrap();
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let output = Command::new(rustc)
        .args(["--edition", "2021", "-D", "warnings", "-O", "--out-dir"])
        .args([folder, file.as_path()])
        .args(options)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Returns a program that reads two numbers from each line, as bits, and prints all functions of them.
fn program(fma: Fma) -> String {
    let mut text = String::from(
        "fn main() {\n    for line in std::io::stdin().lines() {\n        let line = line.unwrap();\n        \
         let mut words = line.split(' ').map(|w| f64::from_bits(w.parse().unwrap()));\n        \
         let (a, b) = (words.next().unwrap(), words.next().unwrap());\n        let results = [\n",
    );
    for function in Function::ALL {
        text.push_str(&match (function, function.arity()) {
            (Function::SinCos, _) => "elementary::sin_cos(a).0, elementary::sin_cos(a).1,\n".to_owned(),
            (f, 2) => format!("elementary::{}(a, b),\n", f.name()),
            (f, _) => format!("elementary::{}(a),\n", f.name()),
        });
    }
    text.push_str(
        "        ];\n        for r in results { print!(\"{} \", r.to_bits()); }\n        println!();\n    }\n}\nmod elementary {\n",
    );
    text.push_str(&source::module(&Function::ALL, fma));
    text + "}\n"
}

fn expected(a: f64, b: f64) -> Vec<f64> {
    let (s, c) = mathfun::sin_cos(a);
    vec![
        mathfun::sin(a),
        mathfun::cos(a),
        s,
        c,
        mathfun::tan(a),
        mathfun::exp(a),
        mathfun::expm1(a),
        mathfun::log(a),
        mathfun::log1p(a),
        mathfun::cbrt(a),
        mathfun::sinh(a),
        mathfun::cosh(a),
        mathfun::tanh(a),
        mathfun::asinh(a),
        mathfun::acosh(a),
        mathfun::atanh(a),
        mathfun::atan(a),
        mathfun::erf(a),
        mathfun::atan2(a, b),
        mathfun::hypot(a, b),
        mathfun::pow(a, b),
    ]
}

#[test]
fn emitted_text_gives_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let mut pairs = arguments::pairs_of("pow", 3000);
    pairs.extend(arguments::pairs_of("atan2", 3000));
    let mut input = String::new();
    for (a, b) in &pairs {
        input.push_str(&format!("{} {}\n", a.to_bits(), b.to_bits()));
    }
    std::fs::write(folder.path().join("input"), input).unwrap();
    for (name, fma) in [("standard", Fma::Standard), ("exact", Fma::Exact)] {
        compile(folder.path(), name, &program(fma), &[]);
        let output = Command::new(folder.path().join(name))
            .stdin(Stdio::from(std::fs::File::open(folder.path().join("input")).unwrap()))
            .output()
            .unwrap();
        assert!(output.status.success());
        let output = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.lines().count(), pairs.len());
        for (line, (a, b)) in output.lines().zip(&pairs) {
            let got: Vec<f64> = line.split_whitespace().map(|w| f64::from_bits(w.parse().unwrap())).collect();
            let want = expected(*a, *b);
            assert_eq!(got.len(), want.len());
            for (i, (g, w)) in got.iter().zip(&want).enumerate() {
                let same = g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan());
                assert!(same, "{name}: function {i} of {a:e}, {b:e}: {g:e}, not {w:e}");
            }
        }
    }
}

#[test]
fn emitted_text_needs_no_standard_library() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("#![no_std]\n\npub mod elementary {{\n{}}}\n", source::module(&Function::ALL, Fma::Exact));
    compile(folder.path(), "nostd", &text, &["--crate-type", "rlib"]);
}

#[test]
fn a_function_brings_only_what_it_needs() {
    let names = |f: Function| source::pieces(&[f], Fma::Standard).iter().map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(names(Function::Exp), ["exp", "fma", "lanes", "one"]);
    assert_eq!(names(Function::Sin), ["circle", "fma", "huge", "lanes", "one", "sin"]);
    assert_eq!(names(Function::Pow), ["exp", "fma", "lanes", "log", "one", "pow"]);
}

#[test]
fn the_exact_root_is_the_standard_one() {
    let mut random = Xorshift::new(5);
    let specials = arguments::special().into_iter().chain([f64::INFINITY, f64::NEG_INFINITY, f64::NAN]);
    let mut all: Vec<f64> = specials.collect();
    for _ in 0..100_000 {
        let x = random.between(1.0, 4.0);
        // Squares and their neighbours; subnormal numbers.
        let square = (random.between(1.0, 2.0) * 1024.0).round().powi(2);
        let subnormal = f64::from_bits(random.bits() >> (12 + random.bits() % 50));
        all.extend([f64::from_bits(random.bits()), x, square, square.next_up(), (x * x).next_down(), subnormal]);
    }
    for x in all {
        let (got, want) = (fma_exact::sqrt(x), x.sqrt());
        assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()), "{x:e}: {got:e}, not {want:e}");
    }
}

#[test]
fn the_exact_fused_product_is_the_standard_one() {
    let mut random = Xorshift::new(3);
    let specials =
        [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324, -5e-324, f64::MAX, -f64::MAX];
    let same = |a: f64, b: f64, c: f64| {
        let (got, want) = (fma_exact::fma(a, b, c), a.mul_add(b, c));
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(same, "{a:e} * {b:e} + {c:e}: {got:e}, not {want:e}");
    };
    for a in specials {
        for b in specials {
            for c in specials {
                same(a, b, c);
            }
        }
    }
    for i in 0..400_000 {
        let (a, b) = (f64::from_bits(random.bits()), f64::from_bits(random.bits()));
        match i % 5 {
            0 => same(a, b, f64::from_bits(random.bits())),
            // The sum nearly cancels, or the product is next to the midpoint of two doubles.
            1 => same(a, b, -(a * b)),
            2 => same(a, b, (a * b) * f64::from_bits(0x3fe0_0000_0000_0000 + ((random.bits() % 64) << 46))),
            3 => {
                let (a, b) = (random.between(-2.0, 2.0), random.between(-2.0, 2.0));
                same(a, b, random.between(-60.0, 60.0).exp2() * a.signum());
            }
            // Subnormal results.
            _ => {
                let (a, b) = (random.between(-1.0, 1.0) * 2f64.powi(-500), random.between(-1.0, 1.0) * 2f64.powi(-540));
                same(a, b, f64::from_bits(random.bits() >> (12 + random.bits() % 40)) * b.signum());
            }
        }
    }
}
