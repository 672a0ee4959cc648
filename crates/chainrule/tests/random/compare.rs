//! Comparison of all ways to compile and to differentiate a program, shared by tests and fuzz targets.

use crate::case::Case;
use crate::exact::{Exact, ROUNDINGS, TOLERANCE, within};
use crate::values::{columns, doubles, fields, limited, matrix, same, with_doubles};
use chainrule::{Backend, Checks, CompileOptions, Compiled, Derivation, Error, Function, Level, Rewrite, Type, Value};
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_ir::{self as ir, Size, bind_sizes, evaluate};
use chainrule_ops::{F64, Semantics};
use chainrule_rewrite::{Options, optimise, optimise_watched};
use chainrule_runtime::RunError;

type Outcome<T = ()> = Result<T, String>;

/// Returns whether the error is a bug of Chainrule.
fn is_bug(e: &Error) -> bool {
    matches!(e, Error::Bug(_) | Error::Run(RunError::Bug(_)))
}

/// Returns whether a program has a value, with all intermediate numbers finite.
fn has_value(case: &Case) -> bool {
    Exact::new(&case.ir, &case.args).is_some()
}

/// Returns options without fusion and reordering.
fn bit_for_bit() -> CompileOptions {
    CompileOptions { fuse: Some(false), sequential: true, ..CompileOptions::default() }
}

/// Calls a compiled function; `None` for a limitation of Chainrule.
fn call(way: &str, f: &Function, options: &CompileOptions, args: &[Value<f64>]) -> Outcome<Option<Vec<Value<f64>>>> {
    match f.compile_with(options).and_then(|f| f.call(args)) {
        Err(e) if limited(&e) => Ok(None),
        found => found.map(Some).map_err(|e| format!("{way}: {e}")),
    }
}

fn all_same(a: &[Value<f64>], b: &[Value<f64>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

/// Checks for the same bits in native code, with the widest vectors of this machine and with short ones, in the
/// interpreter, and in Cranelift if available.
fn on_all(way: &str, f: &Function, options: &CompileOptions, args: &[Value<f64>]) -> Outcome<Option<Vec<Value<f64>>>> {
    let native = call(way, f, options, args)?;
    let others = [(Backend::Interpreter, None), (Backend::Native, Some(Level::Avx2)), (Backend::Cranelift, None)];
    for (backend, level) in others {
        let found = call(way, f, &CompileOptions { backend, level, ..*options }, args)?;
        let is_same = match (&native, &found) {
            (Some(a), Some(b)) => all_same(a, b),
            // Only the interpreter is always available.
            (_, None) => native.is_none() || backend != Backend::Interpreter,
            (None, Some(_)) => false,
        };
        if !is_same {
            return Err(format!("{way}: {native:?} natively, {found:?} by {backend:?} {level:?}"));
        }
    }
    Ok(native)
}

/// Checks that the result of every pass of the optimiser is a valid function.
fn verified(function: &ir::Function) -> Outcome {
    let mut broken = Ok(());
    optimise_watched(function, &Options::default(), &mut |pass, function| {
        if let (Ok(()), Err(found)) = (&broken, ir::verify(function)) {
            broken = Err(format!("after {pass} the function does not verify: {found:?}"));
        }
    });
    broken
}

/// Compares the value: bit for bit if no bit may change, near otherwise, the same on all backends.
pub fn values(case: &Case) -> Outcome<bool> {
    let fails = |e| case.fails(e);
    let expanded = expand(&case.ir).map_err(|e| fails(format!("{e:?}")))?;
    let Ok(expected) = evaluate(&expanded, &mut F64, &case.args) else {
        let options = CompileOptions { rewrite: Rewrite::Off, ..bit_for_bit() };
        let exact = Options { semantics: Semantics::Strict, ..Options::default() };
        return match case.strict.compile_with(&options).and_then(|f| f.call(&case.args)) {
            Err(e) if is_bug(&e) => Err(fails(format!("{e}"))),
            Err(_) => Ok(false),
            // Unused values are not computed, and so do not fail.
            Ok(found) => match evaluate(&optimise(&expanded, &exact).0, &mut F64, &case.args) {
                Ok(expected) if all_same(&found, std::slice::from_ref(&expected)) => Ok(false),
                expected => {
                    Err(fails(format!("{found:?}, not {expected:?}, though the evaluator has no value for all of it")))
                }
            },
        };
    };
    let Some(found) = on_all("strict", &case.strict, &bit_for_bit(), &case.args).map_err(fails)? else {
        return Ok(false);
    };
    if !all_same(&found, std::slice::from_ref(&expected)) {
        return Err(fails(format!("{found:?} where no bit may change, not {expected:?}")));
    }
    verified(&expanded).map_err(fails)?;
    let Some(exact) = Exact::new(&case.ir, &case.args) else { return Ok(false) };
    if !exact.smooth && expanded != case.ir {
        // Derivatives in it depend on the mode: of the square root of an empty sum 0 or NaN.
        return Ok(false);
    }
    let Some(found) = on_all("default", &case.f, &CompileOptions::default(), &case.args).map_err(fails)? else {
        return Ok(false);
    };
    exact.near(&found).map_err(|e| fails(format!("default: {e}")))?;
    let options = CompileOptions { checks: Checks::Memory, ..CompileOptions::default() };
    let loose = call("without checks", &case.f, &options, &case.args).map_err(fails)?;
    if loose.is_none_or(|loose| !all_same(&loose, &found)) {
        return Err(fails("other bits without checks".to_owned()));
    }
    for options in [bit_for_bit(), CompileOptions { threads: Some(2), ..CompileOptions::default() }] {
        let way = if options.sequential { "unfused" } else { "on threads" };
        let found = on_all(way, &case.f, &options, &case.args).map_err(fails)?.unwrap_or_default();
        exact.near(&found).map_err(|e| fails(format!("{way}: {e}")))?;
    }
    Ok(true)
}

/// Checks that a program and its derivatives, dense and sparse, have a value or fail by one of their checks: no backend
/// computes an address outside of its buffer. A value is compared as in [`values`].
pub fn failures(case: &Case) -> Outcome<bool> {
    let mut functions = vec![("value", case.f.clone()), ("strict", case.strict.clone())];
    for mode in ["forward", "reverse"] {
        for derivation in [case.f.jacobian(), case.f.hessian()] {
            match derivation.strategy(mode).function() {
                Err(e) if is_bug(&e) => return Err(case.fails(e)),
                derived => functions.extend(derived.ok().map(|f| (mode, f))),
            }
        }
    }
    for (way, f) in &functions {
        for options in [CompileOptions::default(), bit_for_bit()] {
            let options = CompileOptions { backend: Backend::Interpreter, ..options };
            match f.compile_with(&options).and_then(|f| f.call(&case.args)) {
                Err(e) if is_bug(&e) => return Err(case.fails(format!("{way}: {e}"))),
                _ => {}
            }
        }
    }
    for sparse in [case.f.sparse_jacobian(&[]), case.f.sparse_hessian(&[])] {
        match sparse.and_then(|sparse| sparse.prepare(&case.args)?.run()) {
            Err(e) if is_bug(&e) => return Err(case.fails(format!("sparse: {e}"))),
            _ => {}
        }
    }
    if evaluate(&case.ir, &mut F64, &case.args).is_ok() { values(case) } else { Ok(true) }
}

/// Builds a request; by all arguments if `by` is empty.
fn request(part: Part, mode: Mode, by: &[&str]) -> Request {
    Request { parts: vec![part], by: by.iter().map(|name| (*name).into()).collect(), mode, checkpoints: None }
}

/// Returns distinct numbers for the numbers of `values`; other arguments are omitted.
fn directions(types: &[Type], values: &[Value<f64>]) -> Vec<Value<f64>> {
    let mut k = 0;
    let mut next = |_: &f64| {
        k += 1;
        f64::from(k * 7 % 11) / 4.0 - 1.2
    };
    types.iter().zip(values).filter(|(ty, _)| ty.has_double()).map(|(_, v)| v.map(&mut next)).collect()
}

/// Checks that the request in all ways is near the result of forward mode in the evaluator.
fn in_all_ways(
    case: &Case,
    part: Part,
    ask: &dyn Fn(&Function) -> Derivation,
    by: &[&str],
    args: &[Value<f64>],
) -> Outcome<Option<Exact>> {
    let name = part.name();
    let forward = derive(&case.ir, &request(part, Mode::Forward, by)).map_err(|e| format!("{name}: {e:?}"))?;
    let Some(exact) = Exact::new(&forward, args) else { return Ok(None) };
    let reverse = derive(&case.ir, &request(part, Mode::Reverse, by)).map_err(|e| format!("{name}: {e:?}"))?;
    verified(&forward).and_then(|()| verified(&reverse)).map_err(|e| format!("{name}: {e}"))?;
    let sequential = CompileOptions { sequential: true, ..CompileOptions::default() };
    for (strategy, checkpoints) in [("auto", None), ("forward", None), ("reverse", None), ("reverse", Some(2))] {
        let mut derivation = ask(&case.f).strategy(strategy);
        if !by.is_empty() {
            derivation = derivation.by(by);
        }
        let mut way = format!("{name}, {strategy}");
        if let Some(n) = checkpoints {
            derivation = derivation.checkpoints(n);
            way += " with checkpoints";
        }
        let derived = match derivation.function() {
            Ok(derived) => derived,
            Err(e) if limited(&e) => continue,
            Err(e) => return Err(format!("{way}: {e}")),
        };
        for (options, how) in [(&CompileOptions::default(), "in lanes"), (&sequential, "in order")] {
            let way = format!("{way}, {how}");
            let found = match strategy {
                "reverse" => on_all(&way, &derived, options, args)?,
                _ => call(&way, &derived, options, args)?,
            };
            if let Some(found) = found {
                exact.near(&found).map_err(|e| format!("{way}: {e}"))?;
            }
        }
    }
    Ok(Some(exact))
}

/// Compares Jacobians and products with them.
pub fn first_derivatives(case: &Case) -> Outcome<bool> {
    let fails = |e| case.fails(e);
    let Some(exact) = Exact::new(&case.ir, &case.args) else { return Ok(false) };
    let jacobian = in_all_ways(case, Part::Jacobian, &Function::jacobian, &[], &case.args).map_err(fails)?;
    let Some(jacobian) = jacobian else { return Ok(false) };
    let types: Vec<Type> = case.ir.params.iter().map(|p| case.ir.ty(*p).clone()).collect();
    let along = directions(&types, &case.args);
    let args = [case.args.clone(), along].concat();
    let forward = derive(&case.ir, &request(Part::Jvp, Mode::Forward, &[])).map_err(|e| fails(format!("{e:?}")))?;
    if let (Some(exact), Some(found)) = (
        Exact::new(&forward, &args),
        call("jvp", &case.f.jvp().function().map_err(|e| fails(e.to_string()))?, &CompileOptions::default(), &args)
            .map_err(fails)?,
    ) {
        exact.near(&found).map_err(|e| fails(format!("jvp: {e}")))?;
    }
    let against = directions(&[case.ir.result_type().clone()], std::slice::from_ref(&exact.value));
    let args = [case.args.clone(), against.clone()].concat();
    let vjp = case.f.vjp().function().map_err(|e| fails(e.to_string()))?;
    let Some(found) = call("vjp", &vjp, &CompileOptions::default(), &args).map_err(fails)? else { return Ok(true) };
    let mut counts = Vec::new();
    types.iter().zip(&case.args).for_each(|(ty, arg)| fields(ty, arg, &mut counts));
    let weights = doubles(&against);
    let rows = matrix(&doubles(std::slice::from_ref(&jacobian.value)), weights.len(), &counts);
    let rows = rows.ok_or_else(|| fails("the Jacobian has another size".to_owned()))?;
    let found = doubles(&found);
    for (column, found) in found.iter().enumerate() {
        let terms = rows.iter().zip(&weights).map(|(row, w)| row[column] * w);
        let (sum, size) = terms.fold((0.0, 1.0), |(sum, size): (f64, f64), t| (sum + t, size.max(t.abs())));
        let (off, most) = (sum - found, 10.0 * TOLERANCE * size);
        if !within(off, most) && !within(off, most + 10.0 * ROUNDINGS * jacobian.precisely().map_err(fails)?.1) {
            return Err(fails(format!("vjp: number {column} is {found}, not {sum}")));
        }
    }
    // Results of which no bit may change.
    let reverse =
        derive(&case.ir, &request(Part::Jacobian, Mode::Reverse, &[])).map_err(|e| fails(format!("{e:?}")))?;
    let expected = evaluate(&reverse, &mut F64, &case.args).map_err(|e| fails(format!("reverse: {e}")))?;
    let strict = case.strict.jacobian().strategy("reverse").function().map_err(|e| fails(e.to_string()))?;
    match on_all("strict reverse", &strict, &bit_for_bit(), &case.args).map_err(fails)? {
        Some(found) if !all_same(&found, std::slice::from_ref(&expected)) => {
            Err(fails(format!("reverse: {found:?} where no bit may change, not {expected:?}")))
        }
        _ => Ok(true),
    }
}

/// Compares Hessians, their diagonals, and products with them.
pub fn second_derivatives(case: &Case) -> Outcome<bool> {
    let fails = |e| case.fails(e);
    // A derivative may omit computations that the value needs, and may fail differently.
    if !has_value(case) {
        return Ok(false);
    }
    // By the first and the last: by all of them there are many blocks.
    let names = case.ir.params.iter().filter(|p| case.ir.ty(**p).has_double());
    let names: Vec<&str> = names.filter_map(|p| case.ir.vars[*p].name.as_deref()).collect();
    let by = [names[0], names[names.len() - 1]];
    let hessian = in_all_ways(case, Part::Hessian, &Function::hessian, &by, &case.args).map_err(fails)?;
    if hessian.is_none() {
        return Ok(false);
    }
    in_all_ways(case, Part::HessianDiagonal, &Function::hessian_diagonal, &[], &case.args).map_err(fails)?;
    let types: Vec<Type> = case.ir.params.iter().map(|p| case.ir.ty(*p).clone()).collect();
    let args = [case.args.clone(), directions(&types, &case.args)].concat();
    in_all_ways(case, Part::Hvp, &Function::hvp, &[], &args).map_err(fails)?;
    Ok(true)
}

/// Compares values with products with Jacobians, of programs on long arrays: compiled they equal those of the
/// evaluator, and those of one mode match those of the other: `w (J v) = (w J) v`.
pub fn products(case: &Case) -> Outcome<bool> {
    let fails = |e| case.fails(e);
    let Some(exact) = Exact::new(&case.ir, &case.args) else { return Ok(false) };
    let types: Vec<Type> = case.ir.params.iter().map(|p| case.ir.ty(*p).clone()).collect();
    let along = directions(&types, &case.args);
    let against = directions(&[case.ir.result_type().clone()], std::slice::from_ref(&exact.value));
    let product = |part: Part, mode: Mode, derivation: Derivation, more: &[Value<f64>]| -> Outcome<Option<Exact>> {
        let name = part.name();
        let asked = Request { parts: vec![Part::Value, part], ..request(part, mode, &[]) };
        let derived = derive(&case.ir, &asked).map_err(|e| format!("{name}: {e:?}"))?;
        let args = [&case.args, more].concat();
        let Some(exact) = Exact::new(&derived, &args) else { return Ok(None) };
        let compiled = derivation.with_value().function().map_err(|e| format!("{name}: {e}"))?;
        let sequential = CompileOptions { sequential: true, ..CompileOptions::default() };
        for (options, how) in [(&CompileOptions::default(), "in lanes"), (&sequential, "in order")] {
            let way = format!("{name}, {how}");
            if let Some(found) = on_all(&way, &compiled, options, &args)? {
                exact.near(&found).map_err(|e| format!("{way}: {e}"))?;
            }
        }
        Ok(Some(exact))
    };
    let forward = product(Part::Jvp, Mode::Forward, case.f.jvp(), &along).map_err(fails)?;
    let reverse = product(Part::Vjp, Mode::Reverse, case.f.vjp(), &against).map_err(fails)?;
    let (Some(forward), Some(reverse)) = (forward, reverse) else { return Ok(false) };
    // After the value.
    let n_values = exact.value.reals().len();
    let terms = |a: &[Value<f64>], b: &Value<f64>| -> Vec<f64> {
        doubles(a).iter().zip(b.reals().into_iter().skip(n_values)).map(|(a, b)| a * b).collect()
    };
    let (forward_terms, reverse_terms) = (terms(&against, &forward.value), terms(&along, &reverse.value));
    let all = || forward_terms.iter().chain(&reverse_terms);
    let off = forward_terms.iter().sum::<f64>() - reverse_terms.iter().sum::<f64>();
    let most = 10.0 * TOLERANCE * all().map(|term| term.abs()).sum::<f64>().max(1.0);
    let lost = || -> Outcome<f64> {
        let weights: f64 = [&against, &along].iter().flat_map(|v| doubles(v)).map(f64::abs).sum();
        Ok(10.0 * ROUNDINGS * weights * (forward.precisely()?.1 + reverse.precisely()?.1))
    };
    if !within(off, most) && !within(off, most + lost().map_err(fails)?) {
        return Err(fails(format!("w (J v) and (w J) v are {off} apart")));
    }
    Ok(true)
}

/// Returns whether the type is a number, or an array of them.
fn is_array_of_doubles(ty: &Type) -> bool {
    match ty {
        Type::Array(_, element) => is_array_of_doubles(element),
        ty => *ty == Type::Double,
    }
}

/// Checks that the sparse Jacobian of an array, or the Hessian of a number by one argument, is the dense one without
/// its zeros.
pub fn sparse_derivatives(case: &Case) -> Outcome<bool> {
    let fails = |e| case.fails(e);
    let (ir, scalar) = (&case.ir, *case.ir.result_type() == Type::Double);
    let by: Vec<_> = (ir.params.iter().zip(&case.args)).filter(|(p, _)| is_array_of_doubles(ir.ty(**p))).collect();
    if by.is_empty() || !is_array_of_doubles(ir.result_type()) {
        return Ok(false);
    }
    let by = if scalar { &by[by.len() - 1..] } else { &by[..] };
    let names: Vec<&str> = by.iter().filter_map(|(p, _)| ir.vars[**p].name.as_deref()).collect();
    let part = if scalar { Part::Hessian } else { Part::Jacobian };
    let dense = derive(ir, &request(part, Mode::Forward, &names)).map_err(|e| fails(format!("dense: {e:?}")))?;
    let (Some(value), Some(dense)) = (Exact::new(ir, &case.args), Exact::new(&dense, &case.args)) else {
        return Ok(false);
    };
    let sparse = if scalar { case.f.sparse_hessian(&names) } else { case.f.sparse_jacobian(&names) };
    let sparse = match sparse {
        Err(e) if limited(&e) => return Ok(false),
        sparse => sparse.map_err(|e| fails(format!("sparse: {e}")))?,
    };
    let mut at = sparse.prepare(&case.args).map_err(|e| fails(format!("sparse: {e}")))?;
    at.run().map_err(|e| fails(format!("sparse: {e}")))?;
    let counts: Vec<usize> = by.iter().map(|(_, arg)| arg.reals().len()).collect();
    let n_columns = counts.iter().sum();
    let n_rows = if scalar { n_columns } else { value.value.reals().len() };
    if at.pattern().shape() != (n_rows, n_columns) {
        return Err(fails(format!("sparse: {:?}, not {n_rows} x {n_columns}", at.pattern().shape())));
    }
    let mut rows = vec![vec![0.0; n_columns]; n_rows];
    for ((row, column, ..), x) in at.pattern().coo().iter().zip(at.values()) {
        rows[*row][*column] += x;
    }
    // By argument, and row by row within each.
    let mut begin = 0;
    let mut flat = Vec::new();
    for count in counts {
        rows.iter().for_each(|row| flat.extend_from_slice(&row[begin..begin + count]));
        begin += count;
    }
    dense.near(&[flat.into()]).map_err(|e| fails(format!("sparse: {e}")))?;
    Ok(true)
}

/// Collects the extents of the array for each column of an argument; those of arrays in an empty array come from
/// `size`.
fn extents(ty: &Type, value: &Value<f64>, size: &dyn Fn(&Size) -> usize, outer: &[usize], all: &mut Vec<Vec<usize>>) {
    match (ty, value) {
        (Type::Array(_, element), Value::Array(parts)) => {
            let outer = [outer, &[parts.len()]].concat();
            match parts.first() {
                Some(first) => extents(element, first, size, &outer, all),
                None => empty(element, size, outer, all),
            }
        }
        (Type::Tuple(types, _), Value::Tuple(parts)) => {
            types.iter().zip(parts).for_each(|(ty, part)| extents(ty, part, size, outer, all));
        }
        _ => all.push(outer.to_vec()),
    }
}

/// Does the same for arrays in an empty array.
fn empty(ty: &Type, size: &dyn Fn(&Size) -> usize, outer: Vec<usize>, all: &mut Vec<Vec<usize>>) {
    match ty {
        Type::Array(n, element) => empty(element, size, [&outer[..], &[size(n)]].concat(), all),
        Type::Tuple(types, _) => types.iter().for_each(|ty| empty(ty, size, outer.clone(), all)),
        _ => all.push(outer),
    }
}

/// Checks that batches equal single points, and so does a saved and loaded function.
pub fn batches(case: &Case) -> Outcome<bool> {
    let fails = |e: String| case.fails(e);
    let types: Vec<Type> = case.ir.params.iter().map(|p| case.ir.ty(*p).clone()).collect();
    if !has_value(case) {
        return Ok(false);
    }
    let mut functions = vec![case.f.clone()];
    functions.extend(case.f.jacobian().function());
    for f in &functions {
        let compiled = match f.compile() {
            Err(e) if limited(&e) => continue,
            compiled => compiled.map_err(|e| fails(e.to_string()))?,
        };
        let said = |e: Error| fails(format!("a batch: {e}"));
        let Ok(found) = compiled.call(&case.args) else { continue };
        let loaded = compiled.to_bytes().and_then(|bytes| Compiled::from_bytes(&bytes)).map_err(said)?;
        if !all_same(&loaded.call(&case.args).map_err(said)?, &found) {
            return Err(fails("other bits when it is loaded".to_owned()));
        }
        if !types.iter().all(Type::is_linear) {
            continue;
        }
        let (numbers, n_points) = (doubles(&case.args), 11);
        let mut inputs: Vec<Vec<f64>> = Vec::new();
        let mut expected: Vec<Vec<f64>> = Vec::new();
        let add = |all: &mut Vec<Vec<f64>>, types: &[Type], values: &[Value<f64>]| {
            let more = types.iter().zip(values).flat_map(|(ty, value)| columns(ty, value));
            for (i, column) in more.enumerate() {
                match all.get_mut(i) {
                    Some(before) => before.extend(column),
                    None => all.push(column),
                }
            }
        };
        let results: Vec<Type> = compiled.signature().results.iter().map(|(_, ty)| ty.clone()).collect();
        for p in 0..n_points {
            let moved: Vec<f64> = numbers.iter().map(|x| x * (1.0 - p as f64 / 64.0)).collect();
            let args = with_doubles(&case.args, &moved);
            add(&mut expected, &results, &compiled.call(&args).map_err(said)?);
            add(&mut inputs, &types, &args);
        }
        let mut shapes = Vec::new();
        let sizes = bind_sizes(&case.ir, &case.args).map_err(|e| fails(e.to_string()))?;
        let size = |n: &Size| sizes.eval(n).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
        types.iter().zip(&case.args).for_each(|(ty, arg)| extents(ty, arg, &size, &[], &mut shapes));
        let shapes: Vec<&[usize]> = shapes.iter().map(Vec::as_slice).collect();
        let mut workspace = compiled.workspace(&shapes).map_err(said)?;
        let mut found: Vec<Vec<f64>> = expected.iter().map(|column| vec![0.0; column.len()]).collect();
        let inputs: Vec<&[f64]> = inputs.iter().map(Vec::as_slice).collect();
        let mut outputs: Vec<&mut [f64]> = found.iter_mut().map(Vec::as_mut_slice).collect();
        compiled.eval_batch(n_points, &inputs, &mut outputs, &mut workspace).map_err(said)?;
        let bits = |all: &[Vec<f64>]| {
            all.concat().iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect::<Vec<_>>()
        };
        if bits(&found) != bits(&expected) {
            return Err(fails(format!("a batch: {found:?}, one by one {expected:?}")));
        }
    }
    Ok(true)
}
