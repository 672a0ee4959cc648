//! Rules, and steps of the engine, tested as text: one file a rule in `filetests/`, with one or more cases.
//!
//! ```text
//! ; rule: if-same
//! ; The equation, and comments.
//!
//! ; case: Why the case exists.
//! let f = fun (x : Double) ->
//!   ...
//! ; expected
//! let f = fun (x : Double) ->
//!   ...
//! ```
//!
//! `; rule: NAMES` rebuilds the function once with only these rules; `; step: NAME` runs the whole optimiser in
//! strict mode. A case holds if the rule or step is applied, turns the first listing into the second, and both compute
//! equal values at sizes 0, 1 and more: bit for bit, with infinities, NaN and zeros of both signs, or, if a rule is
//! algebraic, in extended precision. A case that ends with `; unchanged` holds if the rule is not applied.
//!
//! `UPDATE_FILETESTS=1` writes the second listings anew.
#![allow(clippy::unwrap_used)] // helpers of tests

use chainrule_cases::files;
use chainrule_ir::{Function, Sizes, Type, Value, VarId, evaluate, listing, parse, verify};
use chainrule_ops::{F64, Semantics};
use chainrule_rewrite::engine::apply;
use chainrule_rewrite::{Options, check, optimise_watched, rules};

const RULE: &str = "; rule: ";
const STEP: &str = "; step: ";
const CASE: &str = "\n; case";
const EXPECTED: &str = "; expected\n";
const UNCHANGED: &str = "; unchanged\n";

const FINITE: [f64; 7] = [1.5, -0.75, 2.0, 0.1, -3.25, 0.5, 4.0];
const SPECIAL: [f64; 9] = [f64::NAN, 0.0, -0.0, f64::INFINITY, 1.0, f64::NEG_INFINITY, -2.5, 5e-324, 1e300];

/// Number of random arguments at which a function is evaluated.
const RANDOM: usize = 60;

/// Minimum number of arguments at which a case must have a value.
const MIN_COMPARED: usize = 5;

/// The transformation of a file.
enum Transform {
    /// Only these rules, once.
    Rules(Vec<String>),
    /// The whole optimiser; the step must be made.
    Step(String),
}

impl Transform {
    fn of(file: &str) -> Result<Self, String> {
        let line = file.lines().next().unwrap_or_default();
        match (line.strip_prefix(RULE), line.strip_prefix(STEP)) {
            (Some(names), _) => Ok(Self::Rules(names.split(", ").map(str::to_owned).collect())),
            (_, Some(name)) => Ok(Self::Step(name.to_owned())),
            _ => Err(format!("the first line starts neither with `{RULE}` nor with `{STEP}`")),
        }
    }

    /// Returns the strictest semantics under which all of it holds.
    fn semantics(&self) -> Semantics {
        let Self::Rules(names) = self else { return Semantics::Strict };
        let of_rules = rules::all().iter().filter(|rule| names.iter().any(|name| name == rule.name));
        of_rules.map(|rule| rule.holds_under).min().unwrap_or(Semantics::Strict)
    }

    /// Returns the transformed function and how often the rules or the step were applied.
    fn run(&self, function: &Function) -> Result<(Function, u64), String> {
        let (found, times) = match self {
            Self::Rules(names) => {
                // Rules that look through tuples need simplified components.
                let enabled: Vec<&str> = names.iter().map(String::as_str).chain(["component"]).collect();
                let (found, report) = apply(function, &enabled, self.semantics());
                let times = names.iter().map(|name| report.times(name)).sum();
                (found, times)
            }
            Self::Step(name) => {
                let mut fault = None;
                let options = Options { semantics: Semantics::Strict, ..Options::default() };
                let (found, report) = optimise_watched(function, &options, &mut |pass, now| {
                    if let (None, Err(errors)) = (&fault, verify(now)) {
                        fault = Some(format!("after {pass}, {}\n{}", errors[0], listing(now)));
                    }
                });
                if let Some(fault) = fault {
                    return Err(fault);
                }
                (found, report.times(name))
            }
        };
        verify(&found).map_err(|errors| format!("{}\n{}", errors[0], listing(&found)))?;
        Ok((found, times))
    }
}

fn value(ty: &Type, sizes: &Sizes, next: &mut impl FnMut() -> f64, int: i64) -> Value<f64> {
    match ty {
        Type::Double => Value::Real(next()),
        Type::Int => Value::Int(int),
        Type::Bool => Value::Bool(next() > 0.0),
        Type::Array(size, element) => {
            Value::Array((0..sizes.eval(size).unwrap_or(0)).map(|_| value(element, sizes, next, int)).collect())
        }
        Type::Tuple(fields, _) => Value::Tuple(fields.iter().map(|f| value(f, sizes, next, int)).collect()),
    }
}

/// Returns arguments at some sizes, whose reals cycle through `reals`; all integers are equal: aliasing indices.
fn regular_arguments(f: &Function, reals: &[f64]) -> Vec<Vec<Value<f64>>> {
    let mut all = Vec::new();
    for n in [0, 1, 2, 3] {
        for start in 0..reals.len() {
            let mut sizes = Sizes::default();
            f.sizes.iter().zip([n, (n + 1) % 3]).for_each(|(size, n)| sizes.insert(*size, n));
            let mut at = start;
            let mut next = || {
                at += 1;
                reals[at % reals.len()]
            };
            let int = start as i64 - 2;
            all.push(f.params.iter().map(|p| value(f.ty(*p), &sizes, &mut next, int)).collect());
        }
    }
    all
}

/// Returns random arguments: sizes from 0 to 4, integers in range and out of it, reals from `reals` and between them.
fn random_arguments(f: &Function, reals: &[f64], seed: u64) -> Vec<Vec<Value<f64>>> {
    let mut state = seed;
    let mut draw = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    (0..RANDOM)
        .map(|_| {
            let mut sizes = Sizes::default();
            f.sizes.iter().zip([5, 4]).for_each(|(size, bound)| sizes.insert(*size, draw(bound) as i64));
            let args: Vec<(VarId, i64)> = f.params.iter().map(|param| (*param, draw(7) as i64 - 2)).collect();
            let mut next = || {
                let [a, b] = [0, 1].map(|_| reals[draw(reals.len() as u64) as usize]);
                if draw(3) == 0 { a * 0.75 + b } else { a }
            };
            args.into_iter().map(|(param, int)| value(f.ty(param), &sizes, &mut next, int)).collect()
        })
        .collect()
}

fn arguments(f: &Function) -> impl Iterator<Item = Vec<Value<f64>>> {
    [&FINITE[..], &SPECIAL]
        .into_iter()
        .zip([7, 8])
        .flat_map(|(reals, seed)| regular_arguments(f, reals).into_iter().chain(random_arguments(f, reals, seed)))
}

/// Returns whether both functions have different bits at some argument.
fn differ(before: &Function, after: &Function) -> bool {
    arguments(before).any(|args| match (evaluate(before, &mut F64, &args), evaluate(after, &mut F64, &args)) {
        (Ok(a), Ok(b)) => format!("{a:?}") != format!("{b:?}"),
        _ => false,
    })
}

fn compare(before: &Function, after: &Function, semantics: Semantics) -> Result<(), String> {
    let mut n_compared = 0;
    for args in arguments(before) {
        let compared = check::compare(before, after, &args, semantics);
        n_compared += usize::from(compared.map_err(|fault| format!("{fault}\nat {args:?}"))?);
    }
    match n_compared > MIN_COMPARED {
        true => Ok(()),
        false => Err(format!("only {n_compared} arguments have values that can be compared")),
    }
}

/// Checks a case: its text after the word `case`. Returns that text with the listing that was found, and whether bits
/// differ.
fn check_case(text: &str, transform: &Transform) -> Result<(String, bool), String> {
    let (why, rest) = text.split_once('\n').ok_or("a case has no listing")?;
    let (input, is_unchanged) = match (rest.split_once(UNCHANGED), rest.split_once(EXPECTED)) {
        (Some((input, _)), _) => (input, true),
        (_, Some((input, _))) => (input, false),
        _ => (rest, false),
    };
    let before = parse(input).map_err(|reason| format!("in the listing, {reason}"))?;
    verify(&before).map_err(|errors| errors[0].to_string())?;
    let (after, times) = transform.run(&before)?;
    let found = listing(&after);
    if is_unchanged {
        return match times {
            0 => Ok((format!("{why}\n{input}{UNCHANGED}"), false)),
            _ => Err(format!("the rule is applied, and makes\n{found}")),
        };
    }
    if times == 0 {
        return Err(format!("the rule is not applied; found\n{found}"));
    }
    compare(&before, &after, transform.semantics())?;
    let is_inexact = transform.semantics() == Semantics::Algebraic && differ(&before, &after);
    Ok((format!("{why}\n{input}{EXPECTED}{found}"), is_inexact))
}

/// Checks a file. Returns its text with the listings that were found, and its transformation.
fn check_file(file: &str) -> Result<(String, Transform), String> {
    let transform = Transform::of(file)?;
    let mut parts = file.split(CASE);
    let mut written = parts.next().unwrap_or_default().trim_end().to_owned();
    let mut is_inexact = false;
    for (number, text) in (1..).zip(parts) {
        let (text, inexact) = check_case(text, &transform).map_err(|fault| format!("case {number}: {fault}"))?;
        written += &format!("\n{CASE}{}", text.trim_end());
        is_inexact |= inexact;
    }
    // Strict semantics leave out no more rules than necessary.
    if transform.semantics() == Semantics::Algebraic && !is_inexact {
        return Err("the algebraic rule is exact on all cases".to_owned());
    }
    Ok((written + "\n", transform))
}

#[test]
fn rules_and_steps_turn_listings_into_listings() {
    let mut covered = Vec::new();
    files::check(concat!(env!("CARGO_MANIFEST_DIR"), "/filetests"), |file| {
        let (text, transform) = check_file(file)?;
        match transform {
            Transform::Rules(names) => covered.extend(names),
            Transform::Step(name) => covered.push(name),
        }
        Ok(text)
    });
    let names = rules::all().iter().map(|rule| rule.name).chain(rules::ENGINE.map(|(name, _)| name));
    let missing: Vec<&str> = names.filter(|name| !covered.iter().any(|covered| covered == name)).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}
