//! Comparison of derivatives of array programs at given or random sizes and integers.
//!
//! In: an array program and a request for a Jacobian or a gradient. Out: an [`Agreement`]. The references come from the
//! reference evaluator, in 115 digits: forward mode, and central differences of the program.

use super::{Agreement, Noise, Settings, worse};
use crate::derive::Derivation;
use crate::function::ArrayBody;
use crate::{Error, Function, Result};
use chainrule_autodiff::{Mode, Request, derive};
use chainrule_base::{Diagnostic, Diagnostics, Name, Sources};
use chainrule_ir::{self as ir, Sizes, Type, Value, VarId, bind_sizes};
use chainrule_ops::{Big, F64, Precise};
use std::sync::Arc;

/// Maximum number of sets of sizes and integers that are tried until the program has a value.
const TRIES: u64 = 64;

/// Largest random size and integer.
const LARGEST: f64 = 4.0;

/// Compares the derivative of `function`, whose body is `body`, that `derivation` requests.
pub(super) fn compare(
    function: &Function,
    body: &ArrayBody,
    derivation: &Derivation,
    settings: &Settings,
) -> Result<Agreement> {
    let shifted = derivation.shifted(&body.function)?;
    let request = derivation.first_derivative(&shifted.by).ok_or_else(|| {
        Error::request("only a dense Jacobian or gradient is compared", "ask for `jacobian` or `gradient` alone")
    })?;
    let fail = |d: Diagnostics| Error::program(d, &body.sources);
    let program = chainrule_autodiff::expand(&shifted.function).map_err(fail)?;
    let asked = derive(&shifted.function, &request).map_err(fail)?;
    let by_forward_mode = Request { mode: Mode::Forward, checkpoints: None, ..request.clone() };
    let forward = derive(&shifted.function, &by_forward_mode).map_err(fail)?;
    let compiled = derivation.function()?.compile()?;
    let mut noise = Noise(settings.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1));
    let mut plain = chainrule_autodiff::expand(&body.function).map_err(fail)?;
    plain.requires.clone_from(&program.requires);
    let first = arguments(function, &plain, settings, &mut noise, &body.sources)?;
    let shifts = shifts(&program, &first);
    let components = components(&program, &request.by, &[&*first, &shifts].concat());
    let mut agreement =
        Agreement { points: settings.points, elements: 0, from_forward: 0.0, precisely: 0.0, from_differences: 0.0 };
    let mut ctx = Precise::new();
    let failed = |failure: ir::Failure| Error::program(Diagnostic::from(failure), &body.sources);
    for _ in 0..settings.points {
        let (lo, hi) = settings.range;
        let args: Vec<Value<f64>> = first.iter().map(|arg| arg.map(&mut |_| lo + (hi - lo) * noise.next())).collect();
        let exact: Vec<Value<Big>> = args.iter().chain(&shifts).map(|arg| arg.map(&mut |x| ctx.from_f64(*x))).collect();
        let reference = ir::evaluate(&forward, &mut ctx, &exact).map_err(failed)?;
        let precise = ir::evaluate(&asked, &mut ctx, &exact).map_err(failed)?;
        let found = compiled.call(&args)?;
        let found: Vec<f64> = found.iter().flat_map(Value::reals).copied().collect();
        let (reference, precise) = (reference.reals(), precise.reals());
        if reference.len() != found.len() || precise.len() != found.len() {
            return Err(Error::Bug("derivatives of one request have different numbers of elements".to_owned()));
        }
        agreement.elements = found.len();
        let differences = differences(&program, &request.by, &mut ctx, &exact, &components).map_err(failed)?;
        let largest = reference.iter().map(|x| ctx.as_f64(x).abs()).fold(f64::MIN_POSITIVE, f64::max);
        for (k, expected) in reference.iter().enumerate() {
            let off = |ctx: &Precise, found: &Big| ctx.as_f64(&ctx.sub(found, expected)).abs() / largest;
            let in_doubles = ctx.from_f64(found[k]);
            agreement.from_forward = worse(agreement.from_forward, off(&ctx, &in_doubles));
            agreement.precisely = worse(agreement.precisely, off(&ctx, precise[k]));
            if let Some(difference) = differences.get(k) {
                agreement.from_differences = worse(agreement.from_differences, off(&ctx, difference));
            }
        }
    }
    Ok(agreement)
}

/// Returns the shifts of zero of parts of the arguments: the parameters of `program` that follow those in `args`.
fn shifts(program: &ir::Function, args: &[Value<f64>]) -> Vec<Value<f64>> {
    let Some(params) = program.params.get(args.len()..).filter(|params| !params.is_empty()) else { return Vec::new() };
    let before = ir::Function { params: program.params[..args.len()].to_vec(), ..program.clone() };
    let sizes = bind_sizes(&before, args).unwrap_or_default();
    params.iter().filter_map(|param| value(program.ty(*param), &sizes, &mut |_| Value::Real(0.0))).collect()
}

/// Returns the parameters that are differentiated by, in the order of the request.
fn asked(program: &ir::Function, by: &[Name]) -> Vec<usize> {
    let all = 0..program.params.len();
    if by.is_empty() {
        return all.filter(|k| program.ty(program.params[*k]).has_double()).collect();
    }
    let named = |name: &Name| program.params.iter().position(|param| program.vars[*param].name.as_ref() == Some(name));
    by.iter().filter_map(named).collect()
}

/// Returns the numbers of doubles of the differentiated components of the arguments: a Jacobian has a block for each.
fn components(program: &ir::Function, by: &[Name], args: &[Value<f64>]) -> Vec<usize> {
    fn add(ty: &Type, value: &Value<f64>, into: &mut Vec<usize>) {
        match (ty, value) {
            (Type::Tuple(types, _), Value::Tuple(parts)) => {
                types.iter().zip(parts).for_each(|(ty, part)| add(ty, part, into));
            }
            (ty, value) if ty.has_double() => into.push(value.reals().len()),
            _ => {}
        }
    }
    let mut counts = Vec::new();
    for k in asked(program, by) {
        add(program.ty(program.params[k]), &args[k], &mut counts);
    }
    counts
}

/// Returns the Jacobian by central differences with a step of 1e-35, in the order of the derived function's result: a
/// block for each component, whose rows have the component's doubles.
fn differences(
    program: &ir::Function,
    by: &[Name],
    ctx: &mut Precise,
    args: &[Value<Big>],
    components: &[usize],
) -> std::result::Result<Vec<Big>, ir::Failure> {
    let tiny = ctx.from_f64(1e-35);
    let run = ctx.add(&tiny, &tiny);
    let mut columns: Vec<Vec<Big>> = Vec::new();
    for k in asked(program, by) {
        for moved in 0..args[k].reals().len() {
            let mut at = |sign: bool| {
                let mut next = 0;
                let mut args = args.to_vec();
                args[k] = args[k].map(&mut |x| {
                    next += 1;
                    match (next - 1 == moved, sign) {
                        (false, _) => x.clone(),
                        (true, true) => ctx.add(x, &tiny),
                        (true, false) => ctx.sub(x, &tiny),
                    }
                });
                ir::evaluate(program, ctx, &args)
            };
            let (above, below) = (at(true)?, at(false)?);
            let quotient = |(a, b): (&&Big, &&Big)| ctx.div(&ctx.sub(a, b), &run);
            columns.push(above.reals().iter().zip(&below.reals()).map(quotient).collect());
        }
    }
    let n_rows = columns.first().map_or(0, Vec::len);
    let mut flat = Vec::new();
    let mut begin = 0;
    for n in components {
        for row in 0..n_rows {
            flat.extend(columns[begin..begin + n].iter().map(|column| column[row].clone()));
        }
        begin += n;
    }
    Ok(flat)
}

/// Returns an integer of try `k`: in the first all sizes are 3 and all others 1, for with equal sizes most programs
/// have a value.
fn whole(k: u64, noise: &mut Noise, usual: i64, least: i64) -> i64 {
    if k == 0 { usual } else { least + (noise.next() * LARGEST) as i64 }
}

/// Returns arguments at which the program has a value: random sizes and integers, doubles in the middle of the range.
fn arguments(
    function: &Function,
    program: &ir::Function,
    settings: &Settings,
    noise: &mut Noise,
    sources: &Arc<Sources>,
) -> Result<Vec<Value<f64>>> {
    let (lo, hi) = settings.range;
    let mut failure = None;
    for k in 0..TRIES {
        let mut sizes = Sizes::default();
        for var in &program.sizes {
            sizes.insert(*var, whole(k, noise, 3, 1));
        }
        for param in program.params.iter().filter(|param| *program.ty(**param) == Type::Int) {
            sizes.insert(*param, whole(k, noise, 1, 0));
        }
        let mut scalar = |ty: &Type| match ty {
            Type::Int => Value::Int(whole(k, noise, 1, 0)),
            Type::Bool => Value::Bool(noise.next() < 0.5),
            _ => Value::Real(f64::midpoint(lo, hi)),
        };
        let argument = |param: &VarId| match program.ty(*param) {
            Type::Int => sizes.get(*param).map(Value::Int),
            ty => value(ty, &sizes, &mut scalar),
        };
        let args: Option<Vec<Value<f64>>> = program.params.iter().map(argument).collect();
        let Some(args) = args.filter(|args| bind_sizes(program, args).is_ok()) else { continue };
        match ir::evaluate(program, &mut F64, &args) {
            Ok(_) => return Ok(args),
            Err(found) => failure = failure.or(Some(found)),
        }
    }
    // Where there is nothing to choose, the program itself is what fails.
    let has_choice = !program.sizes.is_empty() || program.params.iter().any(|param| !program.ty(*param).is_linear());
    if let Some(failure) = failure.filter(|_| !has_choice) {
        return Err(Error::program(Diagnostic::from(failure), sources));
    }
    Err(Error::request(
        format!("no sizes and integers up to {LARGEST} were found for which `{}` has a value", function.name()),
        "give sizes and integer arguments, as in `--size n=4`",
    ))
}

/// Returns a value of type `ty` whose scalars `scalar` makes; `None` if a size is negative.
fn value(ty: &Type, sizes: &Sizes, scalar: &mut impl FnMut(&Type) -> Value<f64>) -> Option<Value<f64>> {
    Some(match ty {
        Type::Double | Type::Int | Type::Bool => scalar(ty),
        Type::Array(size, element) => {
            let n = usize::try_from(sizes.eval(size)?).ok()?;
            Value::Array((0..n).map(|_| value(element, sizes, scalar)).collect::<Option<Vec<_>>>()?)
        }
        Type::Tuple(fields, _) => {
            Value::Tuple(fields.iter().map(|field| value(field, sizes, scalar)).collect::<Option<Vec<_>>>()?)
        }
    })
}
