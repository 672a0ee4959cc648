//! Loops whose number of steps is not a literal, in reverse mode: all states are kept if memory can be planned for
//! them, otherwise there are checkpoints; in both cases derivatives equal those of forward mode and of central
//! differences, with no step, one and many.

use chainrule_autodiff::{CHECKPOINTS, Mode, Part, Reason, Request, check, derive, derive_told};
use chainrule_base::Sources;
use chainrule_ir::{Function, Program, Value, evaluate, print, verify};
use chainrule_ops::{Big, F64, Precise};

const STEP: &str = "
let step = fun (s : [n]Double) -> build n (fun i -> sqrt (s[i] * s[mod (i + 1) n]) * 0.97)
let steps = fun (s : [n]Double) (k : Int) -> ifold (fun s _ -> step s) s k
let shrunk = fun (s : [n]Double) (limit : Int) -> while (fun s -> s[0] > 1.1) step s limit
let f = fun (x : [n]Double) (m : Int) (l : Int) (a : [k]Int) -> ";

/// All states are kept: the number of steps is known at entry, or bounded by a number known there.
const KEPT: &[&str] = &[
    "vectorSum (steps x m)",
    "vectorSum (steps x (2 * m + 1))",
    "vectorSum (steps x (div k 2))",
    "vectorSum (steps x (min a[0] k))",
    "vectorSum (steps x (min m a[0]))",
    "sum k (fun j -> vectorSum (steps x (k - 1 - j)))",
    "vectorSum (shrunk x l)",
    "vectorSum (shrunk x (l + 100))",
    "vectorSum (shrunk x (max l 0))",
    "vectorSum (ifold (fun s j -> shrunk (step s) (l + j)) x m)",
    "sum n (fun i -> vectorSum (shrunk (build n (fun j -> x[j] + real i)) l))",
    "ifold (fun t j -> t * 0.5 + vectorSum (steps x (j + 1))) 0.0 3",
    // The result of a sum over `n - 1` is kept with the states.
    "vectorSum (ifold (fun w i -> build (n - 1) (fun j -> w[j] - log (sum (n - 1) (fun k -> exp w[k])))) \
     (build (n - 1) (fun i -> x[i])) m)",
];

/// The number of steps is computed from data, or from an argument in a way that bounds do not follow.
const COMPUTED: &[&str] = &[
    "vectorSum (steps x a[0])",
    "vectorSum (steps x (max m 1))",
    "vectorSum (steps x (if m > 3 then 3 else m))",
    "sum k (fun j -> vectorSum (steps (build n (fun i -> x[i] * real (j + 1))) a[j]))",
    "vectorSum (build k (fun j -> x[0] * vectorSum (steps x a[j])))",
    "vectorSum (shrunk x (a[1] + l))",
    "vectorSum (ifold (fun s j -> steps s a[j]) x k)",
    "vectorSum (ifold (fun s j -> shrunk (steps s a[j]) l) x k)",
    "vectorSum (ifold (fun s _ -> steps (step s) a[0]) x a[1])",
    "ifold (fun t j -> t * 0.5 + vectorSum (ifold (fun s i -> steps s i) x a[j])) 0.0 k",
];

/// The number of steps is at most a literal, which is too large to plan memory for.
const UNSURE: &[&str] = &[
    "vectorSum (while (fun s -> s[0] > 1.1) step x 10000000000)",
    "while (fun s -> s > 1.1) (fun s -> sqrt s * 1.04) x[0] 2000000",
    "(while (fun (s, t) -> s > 1.1) (fun (s, t) -> (s * 0.97, t + sqrt s)) (x[0], x[0]) 600000).1",
];

fn function(body: &str) -> Function {
    let (mut sources, text) = (Sources::new(), format!("{STEP}{body}\n"));
    let root = sources.add("main.ft", text.clone());
    let program = Program::load(&mut sources, root, |path: &str, _| Err(format!("there is no file {path}")));
    program.and_then(|program| program.elaborate("f")).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn request(part: Part, mode: Mode, checkpoints: Option<u32>) -> Request {
    Request { parts: vec![part], by: vec!["x".into()], mode, checkpoints }
}

fn integers(numbers: &[i64]) -> Value<f64> {
    Value::Array(numbers.iter().map(|number| Value::Int(*number)).collect())
}

/// Returns arguments for loops of no step, of one, and of more than there are checkpoints; `most` bounds the number.
fn arguments(most: i64) -> Vec<Vec<Value<f64>>> {
    let point = |x: [f64; 3], m: i64, a: [i64; 2]| {
        vec![x.to_vec().into(), Value::Int(m.min(most)), Value::Int(400), integers(&a.map(|a| a.min(most)))]
    };
    vec![
        point([1.0, 0.9, 1.05], 0, [0, 0]),
        point([1.13, 1.1, 1.12], 1, [1, 0]),
        point([1.3, 1.7, 1.2], 3, [2, 4]),
        point([3.5, 2.5, 4.5], 47, [40, 3]),
    ]
}

fn precisely(precise: &mut Precise, function: &Function, args: &[Value<f64>]) -> Value<Big> {
    let args: Vec<Value<Big>> = args.iter().map(|arg| arg.map(&mut |x| precise.from_f64(*x))).collect();
    evaluate(function, precise, &args).unwrap_or_else(|e| panic!("{e}\n{}", print(function)))
}

/// Checks the first derivatives of the program; returns the reasons for checkpoints.
fn gradients(body: &str) -> Vec<Reason> {
    let f = function(body);
    let (gradient, made_again) =
        derive_told(&f, &request(Part::Gradient, Mode::Reverse, None)).unwrap_or_else(|e| panic!("{e}"));
    verify(&gradient).unwrap_or_else(|e| panic!("{e:?}\n{}", print(&gradient)));
    let forward = derive(&f, &request(Part::Gradient, Mode::Forward, None)).unwrap_or_else(|e| panic!("{e}"));
    let mut precise = Precise::new();
    for args in arguments(i64::MAX) {
        let [found, expected] = [&gradient, &forward].map(|f| precisely(&mut precise, f, &args));
        check::agree(&mut precise, &expected, &found).unwrap_or_else(|e| panic!("{body} at {args:?}: {e}"));
        for k in 0..3 {
            let tangent = found.reals()[k].clone();
            let mut place = 0;
            let along: Vec<Value<Big>> = (args.iter())
                .map(|arg| {
                    arg.map(&mut |_| {
                        place += 1;
                        precise.from_f64(f64::from(u8::from(place == k + 1)))
                    })
                })
                .collect();
            let args: Vec<Value<Big>> = args.iter().map(|arg| arg.map(&mut |x| precise.from_f64(*x))).collect();
            let compared = check::central_differences(&mut precise, &f, &args, &along, &[tangent]);
            assert_eq!(compared, Ok(Some(())), "{body} by x[{k}] at {args:?}");
        }
    }
    made_again.into_iter().map(|made_again| made_again.reason).collect()
}

#[test]
fn states_that_can_be_planned_for_are_kept() {
    for body in KEPT {
        assert_eq!(gradients(body), [], "{body}");
    }
}

#[test]
fn where_the_number_of_steps_is_computed_there_are_checkpoints() {
    for body in COMPUTED {
        let reasons = gradients(body);
        assert!(!reasons.is_empty() && reasons.iter().all(|reason| *reason == Reason::Computed), "{body}: {reasons:?}");
    }
}

#[test]
fn a_literal_out_of_proportion_does_not_count() {
    for (body, limit) in UNSURE.iter().zip([10_000_000_000, 2_000_000, 600_000]) {
        assert_eq!(gradients(body), [Reason::Limit(limit)], "{body}");
    }
    // A million states of one number can be kept, and any number of states if it is known at entry.
    assert_eq!(gradients("while (fun s -> s > 1.1) (fun s -> s * 0.97) x[0] 1000000"), []);
    let many = function("ifold (fun s _ -> sqrt s) x[0] 2000000");
    let (_, made_again) = derive_told(&many, &request(Part::Gradient, Mode::Reverse, None)).expect("a gradient");
    assert_eq!(made_again, []);
}

#[test]
fn what_has_checkpoints_by_itself_is_what_has_as_many_if_asked() {
    for body in COMPUTED.iter().chain(UNSURE) {
        let f = function(body);
        let [by_itself, asked] = [None, Some(CHECKPOINTS)]
            .map(|n| derive(&f, &request(Part::Gradient, Mode::Reverse, n)).unwrap_or_else(|e| panic!("{e}")));
        for args in arguments(i64::MAX) {
            let [found, expected] = [&by_itself, &asked].map(|f| evaluate(f, &mut F64, &args).expect("a value"));
            assert_eq!(found, expected, "{body} at {args:?}");
        }
    }
}

/// Reverse over reverse visits the checkpoints backwards, and forward over reverse forwards.
#[test]
fn second_derivatives_are_those_of_forward_mode() {
    let mut precise = Precise::new();
    for body in [KEPT[0], KEPT[6], KEPT[9], COMPUTED[0], COMPUTED[3], COMPUTED[7], UNSURE[0]] {
        let f = function(body);
        let gradient = derive(&f, &request(Part::Gradient, Mode::Reverse, None)).unwrap_or_else(|e| panic!("{e}"));
        let twice = derive(&gradient, &request(Part::Vjp, Mode::Reverse, None)).unwrap_or_else(|e| panic!("{e}"));
        let [along, expected] = [Mode::Reverse, Mode::Forward]
            .map(|mode| derive(&f, &request(Part::Hvp, mode, None)).unwrap_or_else(|e| panic!("{e}")));
        for mut args in arguments(5) {
            args.push(vec![0.5, -1.0, 2.0].into());
            let [twice, along, expected] = [&twice, &along, &expected].map(|f| precisely(&mut precise, f, &args));
            for found in [twice, along] {
                check::agree(&mut precise, &expected, &found).unwrap_or_else(|e| panic!("{body} at {args:?}: {e}"));
            }
        }
    }
}
