//! Checks every program under `tests/programs`: every line with an expected result, by every way to compute it.

// A failing test stops.
#![allow(clippy::unwrap_used)]

use chainrule::{Derivation, Function, Module, STRATEGIES, Type, Value};
use chainrule_ops::F64;
use serde_json::Value as Json;
use std::path::Path;

/// `// WHAT NAME ARGS = RESULT`.
struct Line {
    what: String,
    name: String,
    args: Vec<Json>,
    result: Json,
}

fn parse(line: &str) -> Option<Line> {
    let rest = line.strip_prefix("// ")?;
    let (what, rest) = rest.split_once(' ')?;
    if !["call", "gradient", "jacobian", "hessian", "diagonal"].contains(&what) {
        return None;
    }
    let (call, result) = rest.rsplit_once(" = ")?;
    let (name, args) = call.split_once(' ').unwrap_or((call, ""));
    let args = serde_json::Deserializer::from_str(args).into_iter().collect::<Result<_, _>>().unwrap();
    Some(Line { what: what.into(), name: name.into(), args, result: serde_json::from_str(result).unwrap() })
}

fn value(ty: &Type, json: &Json) -> Value<f64> {
    match (ty, json) {
        (Type::Double, _) => Value::Real(json.as_f64().unwrap()),
        (Type::Int, _) => Value::Int(json.as_i64().unwrap()),
        (Type::Bool, _) => Value::Bool(json.as_bool().unwrap()),
        (Type::Array(_, element), Json::Array(items)) => {
            Value::Array(items.iter().map(|item| value(element, item)).collect())
        }
        (Type::Tuple(fields, Some(names)), Json::Object(object)) => {
            Value::Tuple(names.iter().zip(fields).map(|(name, ty)| value(ty, &object[name.as_str()])).collect())
        }
        (Type::Tuple(fields, _), Json::Array(items)) => {
            Value::Tuple(fields.iter().zip(items).map(|(ty, item)| value(ty, item)).collect())
        }
        _ => panic!("{json} is no {ty:?}"),
    }
}

fn numbers(json: &Json) -> Vec<f64> {
    match json {
        Json::Number(n) => vec![n.as_f64().unwrap()],
        Json::Array(items) => items.iter().flat_map(numbers).collect(),
        Json::Object(object) => object.values().flat_map(numbers).collect(),
        other => panic!("{other} is no number"),
    }
}

fn compare(way: &str, found: &[f64], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{way}: {found:?} is not {expected:?}");
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() <= 1e-14 * b.abs().max(1.0), "{way}: {found:?} is not {expected:?}");
    }
}

fn derivation(function: &Function, what: &str) -> Derivation {
    match what {
        "gradient" => function.gradient(),
        "jacobian" => function.jacobian(),
        "diagonal" => function.hessian_diagonal(),
        _ => function.hessian(),
    }
}

/// Returns the sizes of a function with one size per dimension, from its arguments.
fn sizes<'a>(function: &'a chainrule_ir::Function, args: &[Value<f64>]) -> Option<Vec<(&'a str, i64)>> {
    let bound = chainrule_ir::bind_sizes(function, args).ok()?;
    let ints = function.params.iter().filter(|p| *function.ty(**p) == Type::Int);
    function.sizes.iter().chain(ints).map(|v| Some((function.vars[*v].name.as_deref()?, bound.get(*v)?))).collect()
}

#[test]
fn programs_have_their_expected_values_in_every_way() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/programs");
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "ft"));
    paths.sort();
    let mut ways = 0;
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let module = Module::load(&path).unwrap_or_else(|e| panic!("{e}"));
        let mut sources = chainrule::Sources::new();
        let root = sources.add("program", text.as_str());
        let program = chainrule_ir::Program::load(&mut sources, root, |_: &str, _: &str| Err("no".to_owned())).unwrap();
        for (line, text) in text.lines().filter_map(|text| Some((parse(text)?, text))) {
            let function = module.function(&line.name).unwrap_or_else(|e| panic!("{e}"));
            let ir = program.elaborate(&line.name).unwrap();
            let params = &function.signature().params;
            assert_eq!(params.len(), line.args.len(), "{text}");
            let args: Vec<Value<f64>> = params.iter().zip(&line.args).map(|((_, ty), json)| value(ty, json)).collect();
            let expected = numbers(&line.result);
            let doubles = |values: &[Value<f64>]| values.iter().flat_map(|v| v.reals()).copied().collect::<Vec<f64>>();
            let run =
                |function: &Function| function.compile().unwrap().call(&args).unwrap_or_else(|e| panic!("{text}: {e}"));
            if line.what == "call" {
                let meaning = chainrule_ir::evaluate(&ir, &mut F64, &args).unwrap_or_else(|e| panic!("{text}: {e:?}"));
                compare(&format!("{text} by the reference evaluator"), &doubles(&[meaning]), &expected);
                compare(&format!("{text} by the interpreter"), &doubles(&run(&function)), &expected);
                ways += 2;
            } else {
                for strategy in ["auto", "forward", "reverse"] {
                    let derived = derivation(&function, &line.what).strategy(strategy).function();
                    let derived = derived.unwrap_or_else(|e| panic!("{text}: {e}"));
                    compare(&format!("{text} with loops, {strategy}"), &doubles(&run(&derived)), &expected);
                    ways += 1;
                }
            }
            // Straight-line code, if control flow depends on doubles only.
            let Some(sizes) = sizes(&ir, &args) else { continue };
            let Ok(straight) = function.unrolled(&sizes) else { continue };
            let flat: Vec<Vec<f64>> = params
                .iter()
                .zip(&args)
                .filter(|((_, ty), _)| *ty != Type::Int)
                .flat_map(|((_, ty), arg)| match ty {
                    Type::Tuple(..) => arg.reals().into_iter().map(|x| vec![*x]).collect(),
                    _ => vec![doubles(std::slice::from_ref(arg))],
                })
                .collect();
            if straight.inputs().len() != flat.len() {
                continue;
            }
            let flat: Vec<&[f64]> = flat.iter().map(Vec::as_slice).collect();
            if line.what == "call" {
                let found = straight.compile().unwrap().eval(&flat).unwrap().concat();
                compare(&format!("{text} unrolled"), &found, &expected);
                ways += 1;
                continue;
            }
            for strategy in STRATEGIES {
                let derived = derivation(&straight, &line.what).strategy(strategy.name).compile().unwrap();
                compare(&format!("{text} by {}", strategy.name), &derived.eval(&flat).unwrap().concat(), &expected);
                ways += 1;
            }
        }
    }
    assert!(ways > 150, "only {ways} comparisons were made");
}
