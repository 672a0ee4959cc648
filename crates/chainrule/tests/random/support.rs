//! What the tests share: running them on random bytes, programs read from text, values taken apart.

use arbitrary::Unstructured;
use chainrule::{Function, Module, Sources, Type, Value};
use chainrule_ir::generate::{Case, Options, expressible_case};
use chainrule_ir::{self as ir, print};
use chainrule_ops::{Algebra, Big, Precise};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::Cell;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs `test` on `cases` random byte strings; it says whether its program told anything. At least `useful` must.
pub fn run(seed: u64, cases: u32, useful: u32, len: usize, test: impl Fn(&[u8]) -> Result<bool, String>) {
    let factor = u32::try_from(setting("CHAINRULE_RANDOM_CASES", 1)).unwrap();
    let config = ProptestConfig {
        cases: cases * factor,
        rng_seed: RngSeed::Fixed(seed.wrapping_add(setting("CHAINRULE_RANDOM_SEED", 0).wrapping_mul(1000))),
        failure_persistence: None,
        max_shrink_iters: 5_000,
        ..ProptestConfig::default()
    };
    let told = Cell::new(0);
    let bytes = proptest::collection::vec(any::<u8>(), len / 8..len);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| match test(&bytes) {
        Ok(useful) => {
            told.set(told.get() + u32::from(useful));
            Ok(())
        }
        Err(what) => Err(TestCaseError::fail(what)),
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
    println!("{} of {} programs told something", told.get(), cases * factor);
    assert!(told.get() >= useful * factor, "only {} of {} programs told anything", told.get(), cases * factor);
}

/// Whether a message is about something that Chainrule cannot do.
pub fn limited(error: &impl std::fmt::Display) -> bool {
    error.to_string().contains("Limitation")
}

/// A program as its text says it.
pub struct Program {
    pub text: String,
    pub function: Function,
    pub ir: ir::Function,
    pub args: Vec<Value<f64>>,
}

/// The program that `bytes` describe, printed and read.
pub fn program(bytes: &[u8], options: Options) -> Result<Option<Program>, String> {
    let Ok(Case { function, args }) = expressible_case(&mut Unstructured::new(bytes), options) else {
        return Ok(None);
    };
    let text = print(&function);
    let module = Module::from_text("<random>", &text).map_err(|e| format!("{e}\n{text}"))?;
    let read = module.function(&function.name).map_err(|e| format!("{e}\n{text}"))?;
    let ir = reread(&text, &function.name)?;
    Ok(Some(Program { text, function: read, ir, args }))
}

/// The IR that a text means.
pub fn reread(text: &str, name: &str) -> Result<ir::Function, String> {
    let mut sources = Sources::new();
    let file = sources.add("<printed>", text);
    let program = ir::Program::load(&mut sources, file, |path: &str, _: &str| Err(format!("there is no {path}")));
    program.and_then(|program| program.elaborate(name)).map_err(|d| format!("{d}\n{text}"))
}

impl Program {
    /// A failure with the program that shows it.
    pub fn fails(&self, what: impl std::fmt::Display) -> String {
        format!("{what}\n{}\nat {:?}", self.text, self.args)
    }

    /// The numbers of its sizes and `Int` arguments, by name.
    pub fn sizes(&self) -> Option<Vec<(&str, i64)>> {
        let bound = ir::bind_sizes(&self.ir, &self.args).ok()?;
        let ints = self.ir.params.iter().filter(|p| *self.ir.ty(**p) == Type::Int);
        let size = |v: &ir::VarId| Some((self.ir.vars[*v].name.as_deref()?, bound.get(*v)?));
        self.ir.sizes.iter().chain(ints).map(size).collect()
    }

    /// The arguments a little aside, so that no comparison is a tie by chance.
    pub fn move_aside(&mut self) {
        let mut k = 0.0;
        let mut aside = |x: &f64| {
            k += 1.0;
            x + (k * std::f64::consts::SQRT_2).fract() / 1024.0
        };
        self.args = self.args.iter().map(|arg| arg.map(&mut aside)).collect();
    }
}

/// All doubles of `values`.
pub fn doubles<T: Clone>(values: &[Value<T>]) -> Vec<T> {
    values.iter().flat_map(Value::reals).cloned().collect()
}

/// `values` with their doubles replaced in order.
pub fn with_doubles<T>(values: &[Value<f64>], doubles: &[T]) -> Vec<Value<T>>
where
    T: Clone,
{
    let mut next = doubles.iter();
    values.iter().map(|v| v.map(&mut |_| next.next().unwrap().clone())).collect()
}

/// Bit for bit; every NaN is as good as another.
pub fn same(a: &Value<f64>, b: &Value<f64>) -> bool {
    let bits = |v: &Value<f64>| v.map(&mut |x| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() });
    bits(a) == bits(b)
}

/// The doubles of a value of type `ty`, one list a scalar field: arrays of tuples as tuples of arrays.
pub fn columns<T: Clone>(ty: &Type, value: &Value<T>) -> Vec<Vec<T>> {
    match (ty, value) {
        (Type::Array(_, element), Value::Array(parts)) => {
            let mut all = vec![Vec::new(); n_fields(element)];
            for part in parts {
                for (all, more) in all.iter_mut().zip(columns(element, part)) {
                    all.extend(more);
                }
            }
            all
        }
        (Type::Tuple(fields, _), Value::Tuple(parts)) => {
            fields.iter().zip(parts).flat_map(|(ty, part)| columns(ty, part)).collect()
        }
        _ => vec![value.reals().into_iter().cloned().collect()],
    }
}

fn n_fields(ty: &Type) -> usize {
    match ty {
        Type::Array(_, element) => n_fields(element),
        Type::Tuple(fields, _) => fields.iter().map(n_fields).sum(),
        _ => 1,
    }
}

/// For each double in the order of `columns`, its place in the order of `doubles`.
pub fn places(types: &[Type], values: &[Value<f64>]) -> Vec<usize> {
    let mut k = 0;
    let mut count = |_: &f64| {
        k += 1;
        k - 1
    };
    let numbered: Vec<Value<usize>> = values.iter().map(|v| v.map(&mut count)).collect();
    types.iter().zip(&numbered).flat_map(|(ty, v)| columns(ty, v)).flatten().collect()
}

/// How many doubles there are in each part of `value` that a derivative of an array program has a field for.
pub fn fields(ty: &Type, value: &Value<f64>, counts: &mut Vec<usize>) {
    match (ty, value) {
        (Type::Tuple(types, _), Value::Tuple(parts)) => {
            types.iter().zip(parts).for_each(|(ty, part)| fields(ty, part, counts));
        }
        _ if ty.has_double() => counts.push(value.reals().len()),
        _ => {}
    }
}

/// Numbers in the order of an array program's Jacobian as rows of results and columns of arguments.
pub fn matrix<T: Clone>(flat: &[T], rows: usize, counts: &[usize]) -> Option<Vec<Vec<T>>> {
    if flat.len() != rows * counts.iter().sum::<usize>() {
        return None;
    }
    let mut matrix = vec![Vec::new(); rows];
    let mut rest = flat;
    for count in counts {
        for row in &mut matrix {
            let (here, after) = rest.split_at(*count);
            row.extend_from_slice(here);
            rest = after;
        }
    }
    Some(matrix)
}

/// How a function moves along a direction, in extended precision.
pub struct Slope {
    /// The central difference quotient.
    pub value: f64,
    /// Whether the quotients to both sides agree: where they do not, the function has a kink or a jump.
    pub smooth: bool,
}

/// The slopes of the doubles of the result of `function` at `args`, one row a double among the arguments. `None` when
/// the function has no value there or beside.
pub fn slopes(function: &ir::Function, args: &[Value<f64>], precise: &mut Precise) -> Option<Vec<Vec<Slope>>> {
    let at: Vec<Big> = doubles(args).iter().map(|x| precise.from_f64(*x)).collect();
    let step = precise.from_f64(2f64.powi(-100));
    let run = |precise: &mut Precise, at: &[Big]| -> Option<Vec<Big>> {
        let value = ir::evaluate(function, precise, &with_doubles(args, at)).ok()?;
        Some(doubles(&[value]))
    };
    let here = run(precise, &at)?;
    let mut rows = Vec::new();
    for k in 0..at.len() {
        let mut moved = at.clone();
        moved[k] = precise.add(&at[k], &step);
        let ahead = run(precise, &moved)?;
        moved[k] = precise.sub(&at[k], &step);
        let behind = run(precise, &moved)?;
        let slope = |((ahead, here), behind): ((&Big, &Big), &Big)| {
            let quotient = |a: &Big, b: &Big| precise.as_f64(&precise.div(&precise.sub(a, b), &step));
            let (up, down) = (quotient(ahead, here), quotient(here, behind));
            let smooth = (up - down).abs() <= 1e-12 * (1e-3 + up.abs());
            Slope { value: up / 2.0 + down / 2.0, smooth: smooth && precise.to_f64(here).is_some() }
        };
        rows.push(ahead.iter().zip(&here).zip(&behind).map(slope).collect());
    }
    Some(rows)
}
