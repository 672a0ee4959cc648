//! Operations of gradients of realistic programs: by every subset of arguments, the number of operations for each one
//! of the function does not grow with any size.
//!
//! The operations of the function are those that it is written with: what its value does not need may be needed by its
//! gradient, and the other way round.

use crate::case::Case;
use crate::support::run;
use arbitrary::Unstructured;
use chainrule::{Function, Rewrite, Type};
use chainrule_ir::generate::written::{Options, program};

/// Sizes whose operations are compared.
const SIZES: [i64; 2] = [40, 160];
/// Value of the other sizes.
const OTHERS: i64 = 6;
/// Maximum growth of the cost ratio between them; a higher degree would multiply it by 4.
const GROWTH: f64 = 2.0;
/// Cost ratio that is no failure at any size.
const FREE: f64 = 8.0;

/// Returns the number of doubles in a value of type `ty`.
fn elements(case: &Case, ty: &Type, sizes: &[(&str, i64)]) -> f64 {
    let at = |var: &chainrule_ir::VarId| {
        let name = case.ir.vars[*var].name.as_deref();
        sizes.iter().find(|(known, _)| name == Some(*known)).map_or(1, |(_, n)| *n) as f64
    };
    match ty {
        Type::Double => 1.0,
        Type::Int | Type::Bool => 0.0,
        Type::Array(size, element) => {
            let terms =
                size.terms().map(|(vars, factor)| vars.iter().fold(factor as f64, |product, var| product * at(var)));
            terms.sum::<f64>() * elements(case, element, sizes)
        }
        Type::Tuple(fields, _) => fields.iter().map(|field| elements(case, field, sizes)).sum(),
    }
}

/// Checks the gradient by every subset of the first arguments that hold doubles.
fn check(case: &Case) -> Result<bool, String> {
    let known: Vec<(&str, i64)> =
        case.ir.sizes.iter().filter_map(|size| Some((case.ir.vars[*size].name.as_deref()?, OTHERS))).collect();
    // Extents that are arguments would have to be given, too.
    if case.ir.params.iter().any(|param| *case.ir.ty(*param) == Type::Int) {
        return Ok(false);
    }
    let weight = |f: &Function, sizes: &[(&str, i64)], rewrite| match f.counts_at(sizes, rewrite) {
        Ok(counts) => Ok(counts.weight as f64),
        Err(error) => Err(case.fails(error)),
    };
    let names: Vec<(&str, &Type)> = (case.ir.params.iter())
        .filter_map(|p| Some((case.ir.vars[*p].name.as_deref()?, case.ir.ty(*p))))
        .filter(|(_, ty)| ty.has_double())
        .collect();
    for subset in 1_usize..1 << names.len().min(3) {
        let by: Vec<(&str, &Type)> = (0..names.len()).filter(|k| subset >> k & 1 == 1).map(|k| names[k]).collect();
        let only: Vec<&str> = by.iter().map(|(name, _)| *name).collect();
        let gradient = case.f.gradient().by(&only).function().map_err(|e| case.fails(e))?;
        for (grown, _) in &known {
            let mut ratios = [0.0; 2];
            for (ratio, n) in ratios.iter_mut().zip(SIZES) {
                let sizes: Vec<(&str, i64)> =
                    known.iter().map(|(name, _)| (*name, if name == grown { n } else { OTHERS })).collect();
                let written: f64 = by.iter().map(|(_, ty)| elements(case, ty, &sizes)).sum();
                *ratio =
                    weight(&gradient, &sizes, Rewrite::All)? / (1.0 + weight(&case.f, &sizes, Rewrite::Off)? + written);
            }
            if ratios[1] > FREE.max(GROWTH * ratios[0]) {
                let [small, large] = ratios;
                let what =
                    format!("the gradient by {only:?} costs {small:.1} times the function at {grown} = {}", SIZES[0]);
                return Err(case.fails(format!("{what}, and {large:.1} times at {}", SIZES[1])));
            }
        }
    }
    Ok(!known.is_empty())
}

#[test]
fn gradients_by_every_subset_of_arguments_have_the_degree_of_the_function() {
    run(90, 24, 8, 700, |bytes| {
        let options = Options { longest: 9, scalar: true, orders: 0, fuel: 60, ..Options::default() };
        let Ok(written) = program(&mut Unstructured::new(bytes), options) else { return Ok(false) };
        // A stated derivative costs what it states.
        if written.text.contains("withDerivative") {
            return Ok(false);
        }
        Case::new(written)?.map_or(Ok(false), |case| check(&case))
    });
}
