//! Integer arithmetic is exact or fails on every backend.

#![allow(clippy::unwrap_used, reason = "tests")]

use chainrule::{Backend, CompileOptions, Compiled, Derivation, Error, Function, Module, Semantics, Unroll, Value};

/// Returns every way to run `f` of the program.
fn ways(text: &str) -> Vec<(String, Compiled)> {
    let mut ways = Vec::new();
    for semantics in [Semantics::Algebraic, Semantics::Strict] {
        let module = Module::from_text("f.ft", text).unwrap().with_semantics(semantics);
        let f = module.function("f").unwrap();
        for backend in [Backend::Auto, Backend::Interpreter] {
            let compiled = f.compile_with(&CompileOptions { backend, ..CompileOptions::default() }).unwrap();
            ways.push((format!("{semantics:?} {backend:?}"), compiled));
        }
    }
    ways
}

/// Checks that `f` at `args` returns `exact`, or an overflow error, in every way.
#[track_caller]
fn exact_or_error(text: &str, args: &[i64], exact: i128) {
    let values: Vec<Value<f64>> = args.iter().map(|i| Value::Int(*i)).collect();
    for (way, f) in ways(text) {
        match f.call(&values) {
            Ok(results) => {
                let [Value::Int(found)] = results[..] else { panic!("{text}: {results:?}") };
                assert_eq!(i128::from(found), exact, "{way}: {text} at {args:?}");
            }
            Err(error) => {
                assert!(!matches!(error, Error::Bug(_)), "{way}: {text} at {args:?}: {error}");
                let message = error.to_string();
                assert!(message.contains("64 bits"), "{way}: {text} at {args:?}: {message}");
            }
        }
    }
}

/// As [`exact_or_error`], but it must be the number.
#[track_caller]
fn exact(text: &str, args: &[i64], exact: i64) {
    let values: Vec<Value<f64>> = args.iter().map(|i| Value::Int(*i)).collect();
    for (way, f) in ways(text) {
        assert_eq!(f.call(&values).unwrap(), [Value::Int(exact)], "{way}: {text} at {args:?}");
    }
}

#[test]
fn constants_at_the_ends_of_the_range_do_not_saturate() {
    let text = "let f = fun (i : Int) -> 0 - 9223372036854775807 - 1000 + i";
    exact_or_error(text, &[1000], -i128::from(i64::MAX));
    exact_or_error(text, &[0], -i128::from(i64::MAX) - 1000);
    let text = "let f = fun (i : Int) -> (0-9223372036854775807)*i - i - i - i - i + 9223372036854775807*i";
    for i in [0, 1, -1, 2, 1 << 40] {
        exact_or_error(text, &[i], -4 * i128::from(i));
    }
    exact("let f = fun (i : Int) -> 9223372036854775807 - i", &[7], i64::MAX - 7);
    exact("let f = fun (i : Int) -> 0 - 9223372036854775807 - 1 + i", &[7], i64::MIN + 7);
    exact("let f = fun (i : Int) -> 4611686018427387904 * i + 1", &[-2], i64::MIN + 1);
}

#[test]
fn numbers_that_turn_out_constant_do_not_saturate() {
    let text = "let f = fun (i : Int) -> let at = build 2 (fun k -> if k < 1 then i - i + 9223372036854775807 else 5 + i - i) in 3 * at[0] - at[1] + i";
    exact_or_error(text, &[0], 3 * i128::from(i64::MAX) - 5);
    let text = "let f = fun (i : Int) -> let at = build 2 (fun k -> if k < 1 then i - i + 4294967296 else 5 + i - i) in at[0] * at[0] * at[1] + i";
    exact_or_error(text, &[0], 5 << 64);
    let text = "let f = fun (i : Int) -> let at = build 2 (fun k -> if k < 1 then i - i + 1048576 else 5 + i - i) in at[0] * at[0] * at[1] + i";
    exact(text, &[-1], (5 << 40) - 1);
    let text = "let f = fun (i : Int) -> fst (scan (fun s k -> (s * 3037000500, s)) i 3)";
    exact_or_error(text, &[1], 3_037_000_500i128.pow(3));
    exact(text, &[0], 0);
}

#[test]
fn a_high_power_is_an_operation_like_others() {
    let power = "let f = fun (m : Int) (x : Double) -> x * real (m*m*m*m*m*m*m)";
    let sum = "let f = fun (m : Int) (x : Double) -> sum (m*m*m*m*m*m*m) (fun _ -> x)";
    for text in [power, sum] {
        for (way, f) in ways(text) {
            assert_eq!(f.call(&[Value::Int(2), Value::Real(0.5)]).unwrap(), [Value::Real(64.0)], "{way}");
            let error = f.call(&[Value::Int(1 << 10), Value::Real(0.5)]).unwrap_err().to_string();
            assert!(error.contains("64 bits"), "{way}: {error}");
        }
    }
}

#[test]
fn the_size_of_a_result_that_is_not_known_at_entry_is_a_limitation() {
    for size in ["m*m*m*m*m*m*m", "mod m 5", "m + 4294967296"] {
        let text = format!("let f = fun (m : Int) (v : [n]Double) -> build ({size}) (fun i -> v[0])");
        let module = Module::from_text("f.ft", &text).unwrap();
        let error = module.function("f").unwrap_err();
        assert!(matches!(error, Error::Program { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains("the size of the result is computed while the function runs"), "{message}");
        // Inside, it is an ordinary count.
        let text = format!("let f = fun (m : Int) (v : [n]Double) -> sum (mod ({size}) 7) (fun i -> v[0])");
        let f = Module::from_text("f.ft", &text).unwrap().function("f").unwrap().compile().unwrap();
        let m = 3i64;
        let count = [m.pow(7), m % 5, m + (1 << 32)].map(|n| (n % 7) as f64);
        let known = ["m*m*m*m*m*m*m", "mod m 5", "m + 4294967296"].iter().position(|s| *s == size).unwrap();
        assert_eq!(f.call(&[Value::Int(m), vec![1.0].into()]).unwrap(), [Value::Real(count[known])]);
    }
}

#[test]
fn extents_beyond_64_bits_are_a_limitation() {
    let text = "let f = fun (v : [4294967296][4294967296]Double) -> v[0][0]";
    let error = Module::from_text("f.ft", text).unwrap().function("f").and_then(|f| f.compile().map(drop)).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("more elements than 64 bits can count"), "{message}");
}

/// Random sums, differences and products of arguments and constants, with an exact reference.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn number(&mut self) -> i64 {
        let near = self.below(3) as i64 - 1;
        match self.below(7) {
            0 => i64::MAX - 1 + near,
            1 => i64::MAX / 2 + near,
            2 => (1 << 31) + near,
            3 => (1 << 32) + near,
            4 => 3_037_000_499 + near,
            _ => self.below(5) as i64,
        }
    }

    /// Returns the text and the exact value modulo 2^64; and the value itself, `None` if 128 bits do not suffice.
    fn expr(&mut self, depth: u32, i: i64, j: i64) -> (String, i64, Option<i128>) {
        if depth == 0 || self.below(6) == 0 {
            let (text, value) = match self.below(4) {
                0 => ("i".to_owned(), i),
                1 => ("j".to_owned(), j),
                _ => {
                    let number = self.number();
                    (number.to_string(), number)
                }
            };
            return (text, value, Some(value.into()));
        }
        let (a, u, x) = self.expr(depth - 1, i, j);
        let (b, v, y) = self.expr(depth - 1, i, j);
        let both = x.zip(y);
        match self.below(4) {
            0 => (format!("({a} - {b})"), u.wrapping_sub(v), both.and_then(|(x, y)| x.checked_sub(y))),
            1 => (format!("({a} * {b})"), u.wrapping_mul(v), both.and_then(|(x, y)| x.checked_mul(y))),
            2 => (format!("(let k = {a} in k + {b} - k)"), v, y),
            _ => (format!("({a} + {b})"), u.wrapping_add(v), both.and_then(|(x, y)| x.checked_add(y))),
        }
    }
}

#[test]
fn random_arithmetic_on_large_numbers_is_exact_or_fails() {
    let mut random = Random(1);
    for _ in 0..120 {
        let (i, j) = (random.number(), random.number());
        let (text, low, value) = random.expr(4, i, j);
        // Integer arguments without known bounds, and the same from an array, as data.
        let direct = format!("let f = fun (i : Int) (j : Int) -> i - i + j - j + {text}");
        let looped =
            format!("let f = fun (i : Int) (j : Int) -> fst (scan (fun s k -> ({text} + k * s, s)) (i - i) 1)");
        for program in [direct, looped] {
            exact_or_error(&program, &[i, j], value.unwrap_or(low.into()));
        }
    }
}

/// Term over the integers `i` and `j`, and the states and indices of folds.
enum Term {
    /// Variable of this number, from the outermost.
    Name(usize),
    /// Number that has the type of the variable.
    Number(i64, usize),
    Op(&'static str, Box<[Self; 2]>),
    /// The third if the first is less than the second, else the fourth.
    If(Box<[Self; 4]>),
    /// Binds the state and the index.
    Fold(Box<[Self; 2]>, u8),
}

impl Random {
    fn term(&mut self, depth: u32, n_names: usize) -> Term {
        let name = self.below(n_names as u64) as usize;
        if depth == 0 || self.below(7) == 0 {
            return if self.below(2) == 0 { Term::Name(name) } else { Term::Number(self.number(), name) };
        }
        let mut next = |names| self.term(depth - 1, names);
        let two = Box::new([next(n_names), next(n_names)]);
        match self.below(10) {
            k @ 0..8 => Term::Op(["+", "-", "*", "+", "min", "max", "div", "mod"][k as usize], two),
            8 => {
                let [a, b] = *two;
                Term::If(Box::new([a, b, self.term(depth - 1, n_names), self.term(depth - 1, n_names)]))
            }
            _ => {
                let ([init, _], body) = (*two, self.term(depth - 1, n_names + 2));
                Term::Fold(Box::new([init, body]), self.below(4) as u8)
            }
        }
    }
}

impl Term {
    fn text(&self, n_names: usize) -> String {
        let name = |k: usize| if k < 2 { ["i", "j"][k].to_owned() } else { format!("s{k}") };
        let of = |term: &Self| term.text(n_names);
        match self {
            Self::Name(k) => name(*k),
            Self::Number(number, k) => format!("({} - {} + {number})", name(*k), name(*k)),
            Self::Op(op @ ("+" | "-" | "*"), two) => format!("({} {op} {})", of(&two[0]), of(&two[1])),
            Self::Op(op, two) => format!("({op} {} {})", of(&two[0]), of(&two[1])),
            Self::If(four) => {
                let [a, b, c, d] = [0, 1, 2, 3].map(|k| of(&four[k]));
                format!("(if {a} < {b} then {c} else {d})")
            }
            Self::Fold(two, count) => {
                let (state, index, body) = (name(n_names), name(n_names + 1), two[1].text(n_names + 2));
                format!("(ifold (fun {state} {index} -> {body}) {} {count})", of(&two[0]))
            }
        }
    }

    /// Returns the exact value; `None` for a division by zero, or beyond 128 bits.
    fn value(&self, names: &mut Vec<i128>) -> Option<i128> {
        match self {
            Self::Name(k) => names.get(*k).copied(),
            Self::Number(number, _) => Some((*number).into()),
            Self::Op(op, two) => {
                let (x, y) = (two[0].value(names)?, two[1].value(names)?);
                match *op {
                    "+" => x.checked_add(y),
                    "-" => x.checked_sub(y),
                    "*" => x.checked_mul(y),
                    "min" => Some(x.min(y)),
                    "max" => Some(x.max(y)),
                    // Rounded down.
                    "div" => x.checked_div_euclid(y).map(|q| q - i128::from(y < 0 && q * y != x)),
                    _ => x.checked_rem_euclid(y).map(|r| if y < 0 && r != 0 { r + y } else { r }),
                }
            }
            Self::If(four) => {
                let holds = four[0].value(names)? < four[1].value(names)?;
                four[if holds { 2 } else { 3 }].value(names)
            }
            Self::Fold(two, count) => {
                let mut state = two[0].value(names)?;
                for k in 0..*count {
                    names.extend([state, k.into()]);
                    let next = two[1].value(names);
                    names.truncate(names.len() - 2);
                    state = next?;
                }
                Some(state)
            }
        }
    }
}

#[test]
fn random_loops_and_branches_on_large_numbers_are_exact_or_fail() {
    let mut random = Random(7);
    let n_cases = chainrule_cases::cases(200);
    let mut n_values = 0;
    for _ in 0..n_cases {
        let [i, j] = [0, 1].map(|_| if random.below(2) == 0 { random.number() } else { -random.number() });
        let term = random.term(4, 2);
        let Some(exact) = term.value(&mut vec![i.into(), j.into()]) else { continue };
        n_values += 1;
        let text = term.text(2);
        exact_or_error(&format!("let f = fun (i : Int) (j : Int) -> {text}"), &[i, j], exact);
        let read = format!(
            "let f = fun (i : Int) (j : Int) ->
               let a = build 2 (fun k -> if k == 0 then i else j) in
               (build 1 (fun k -> let i = a[k] in let j = a[k + 1] in {text}))[0]"
        );
        exact_or_error(&read, &[i, j], exact);
    }
    assert!(n_values > n_cases / 2, "{n_values} values");
}

/// Integers that data select are unrolled: values and derivatives of straight-line code are those of loops.
#[test]
fn data_select_integers() {
    let bodies = [
        "x[argmax x] * x[argmin x] * x[1]",
        "let k = if x[0] > 1 then 2 else if x[1] > 0 then 1 else 0 in [1.5, 2.5, 4.0][k] * x[0] + real k * x[2]",
        "let k = if x[0] > x[1] then 3 else 1 in ifold (fun s i -> s * x[i] + real i) x[3] k",
        "let k = (if x[0] > x[1] then 3 else 1) - (if x[2] > 0 then 1 else 0) in sum k (fun i -> x[i] ** 2 + x[i + 1])",
        "let k = (if x[0] > x[1] then 3 else 5) + (if x[1] > 0 then 1 else 0) in real (mod k 3) * x[0] + real (div k 2) * x[1]",
        "let (j, k) = (if x[0] > x[1] then 1 else 0, if x[1] > x[2] then 1 else 2) in if j == k && x[3] > 0 then x[j] * x[3] else x[2]",
        "let k = if x[0] > x[1] then 0 else 7 in if k < 4 then x[k] * x[3] else x[2] ** 2",
        "let p = ifold (fun p i -> if x[p] < x[i] then i else p) 0 4 in x[p] * x[max (p - 1) 0] * x[min (p + 1) 3]",
        "let v = ifold (fun v i -> let p = argmax v in build 4 (fun j -> if j == p then v[j] / 2 else v[j])) x 3 in vectorDot v v",
    ];
    let points = [[0.5, -1.0, 2.0, 1.25], [3.0, 2.0, 1.0, 0.5], [-0.5, 0.25, 0.75, -1.0], [1.5, 1.5, -2.0, 3.0]];
    let requests: [fn(&Function) -> Derivation; 3] = [Function::value, Function::gradient, Function::hessian];
    for body in bodies {
        let text = format!("let f = fun (x : [4]Double) -> {body}");
        let f = Module::from_text("f.ft", &text).unwrap().function("f").unwrap();
        let [straight, loops] = [Unroll::Always, Unroll::Never].map(|unroll| f.clone().unroll(unroll));
        for request in requests {
            let derived = [&straight, &loops].map(|f| request(f).function().unwrap());
            assert!(!derived[0].keeps_loops() && derived[1].keeps_loops(), "{body}");
            let [straight, loops] = derived.map(|f| f.compile().unwrap());
            for point in &points {
                let [found, expected] = [&straight, &loops].map(|f| f.eval(&[point.as_slice()]).unwrap().remove(0));
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
                assert!(found.iter().zip(&expected).all(near), "{body} at {point:?}: {found:?}, not {expected:?}");
            }
        }
    }
    // Loops report an index outside; straight-line code would not.
    let text = "let f = fun (x : [2]Double) -> let k = if x[0] > 0 then 0 else 3 in x[k] * x[1]";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap();
    let why = f.clone().unroll(Unroll::Always).value().function().unwrap_err().to_string();
    assert!(why.contains("may be out of range"), "{why}");
    let loops = f.compile().unwrap();
    assert_eq!(loops.eval(&[&[2.0, 3.0]]).unwrap(), [[6.0]]);
    let why = loops.eval(&[&[-2.0, 3.0]]).unwrap_err().to_string();
    assert!(why.contains("the index `k` lies outside"), "{why}");
    let text =
        "let f = fun (x : [2]Double) -> let k = if x[0] > 0 then 1 else 3 in vectorSum (build k (fun i -> x[0]))";
    let f = Module::from_text("f.ft", text).unwrap().function("f").unwrap().unroll(Unroll::Always);
    let why = f.value().function().unwrap_err().to_string();
    assert!(why.contains("the size of an array depends on data"), "{why}");
}

/// A size that a requirement makes equal to another has its own extent, which is compared at entry.
#[test]
fn sizes_that_must_be_equal_are_compared() {
    let text = "let f = fun (v : [n]Double) (w : [m][k]Double) (c : Int) ->
        let dot = fun (a : [l]Double) (b : [l]Double) -> sum l (fun i -> a[i] * exp b[i])
        let last = fun (a : [l]Double) -> a[l - 1]
        sum m (fun i -> dot v w[i] * last w[i]) + real c";
    let one = text.replace("[k]", "[n]");
    let three = text.replace("dot v w[i]", "dot (build 3 (fun j -> v[j])) w[i]");
    let [two, one, three] =
        [text, &one, &three].map(|text| Module::from_text("f.ft", text).unwrap().function("f").unwrap());
    let requests: [fn(&Function) -> Derivation; 3] = [Function::value, Function::gradient, Function::hessian];
    let args = |k: usize| {
        let row = |i: usize| (0..k).map(|j| (i + 2 * j) as f64 / 4.0).collect::<Vec<f64>>();
        [Value::from(vec![0.5, -1.0, 2.0]), Value::from((0..4).map(row).collect::<Vec<_>>()), Value::Int(3)]
    };
    for backend in [Backend::Auto, Backend::Interpreter] {
        let options = CompileOptions { backend, ..CompileOptions::default() };
        for request in requests {
            let [two, one, three] =
                [&two, &one, &three].map(|f| request(f).function().unwrap().compile_with(&options).unwrap());
            assert_eq!(two.call(&args(3)).unwrap(), one.call(&args(3)).unwrap());
            // Sums of three terms are written out, in another order.
            let digits = |f: &Compiled| format!("{:.12?}", f.call(&args(3)).unwrap());
            assert_eq!(digits(&three), digits(&one));
            for f in [two, three] {
                for k in [2, 4] {
                    let why = f.call(&args(k)).unwrap_err().to_string();
                    assert!(why.contains("must be 0"), "{why}");
                }
            }
        }
    }
}

#[test]
fn integers_of_doubles_are_rounded_towards_zero() {
    let text = "let f = fun (x : Double) -> truncate x";
    for x in
        [0.0, 0.9, -0.9, 1.0, -1.5, 1e15 + 0.5, 2f64.powi(62), -(2f64.powi(63)), 2f64.powi(63), f64::NAN, f64::INFINITY]
    {
        for (way, f) in ways(text) {
            let expected = if (-(2f64.powi(63))..2f64.powi(63)).contains(&x) { x as i64 } else { i64::MIN };
            assert_eq!(f.call(&[Value::Real(x)]).unwrap(), [Value::Int(expected)], "{way}: {x}");
        }
    }
}

#[test]
fn derivatives_do_not_go_through_integers_of_doubles() {
    let text = "let f = fun (t : [n]Double) (x : [m]Double) ->
  sum m (fun i -> t[truncate x[i]] * (x[i] - real (truncate x[i])) + real (truncate (3 * x[i])))";
    let module = Module::from_text("f.ft", text).unwrap();
    let f = module.function("f").unwrap();
    let reals = |values: &[f64]| Value::Array(values.iter().map(|x| Value::Real(*x)).collect());
    let args = [reals(&[2.0, 4.0, 8.0]), reals(&[0.5, 2.75, 0.25])];
    let expected = [Value::Tuple(vec![reals(&[0.75, 0.0, 0.75]), reals(&[2.0, 8.0, 2.0])])];
    let gradient = f.gradient().by(&["t", "x"]).compile().unwrap();
    assert_eq!(gradient.call(&args).unwrap(), expected);
    // Straight-line code has no integers that data decide: loops are kept, also where all sizes are known.
    let known = f.at_sizes(&[("n", 3), ("m", 3)]).unwrap();
    let value = |f: &Function| f.compile().unwrap().call(&args).unwrap();
    assert_eq!(value(&known), value(&f));
    let gradient = known.gradient().by(&["t", "x"]).compile().unwrap();
    assert_eq!(gradient.call(&args).unwrap(), expected);
    let error = f.unrolled(&[("n", 3), ("m", 3)]).unwrap_err().to_string();
    assert!(error.contains("this integer is not known in straight-line code"), "{error}");
}
