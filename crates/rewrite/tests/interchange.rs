//! Folds for each of several directions: `fold-of-builds` preserves their value bit for bit, and is not applied if it
//! may not be, or does not pay.

use arbitrary::{Result, Unstructured};
use chainrule_cases::covers;
use chainrule_ir::{Builder, Expr, Function, Size, Sizes, StateLoop, Type, Value, VarId, print};
use chainrule_ops::{Op, Semantics};
use chainrule_rewrite::engine::apply;
use chainrule_rewrite::{Options, check};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::cell::Cell;

const RULE: &str = "fold-of-builds";

/// The forms of a state of three scalars.
#[derive(Clone, Copy)]
enum Form {
    /// [n](Double, Double, Double)
    Array,
    /// (Double, (Double, Double))
    Tuple,
    /// ([n]Double, [n](Double, Double))
    Arrays,
}

struct Make<'u, 'd> {
    b: Builder,
    u: &'u mut Unstructured<'d>,
    n: Size,
    /// [n]Double, [n]Double, [k][n]Double, Int.
    x: VarId,
    w: VarId,
    d: VarId,
    int: VarId,
    form: Form,
    /// The direction, and variables of the body around the iteration that depend on it.
    direction: VarId,
    row: VarId,
    scale: VarId,
}

impl Make<'_, '_> {
    fn one_in(&mut self, n: u8) -> Result<bool> {
        Ok(self.u.int_in_range(0..=n - 1)? == 0)
    }

    /// Writes scalar `leaf` of `state` at `index`.
    fn leaf(&mut self, state: VarId, leaf: usize, index: VarId) -> VarId {
        let b = &mut self.b;
        match self.form {
            Form::Array => {
                let element = b.get_proved(state, index);
                b.component(element, leaf)
            }
            Form::Tuple if leaf == 0 => b.component(state, 0),
            Form::Tuple => {
                let pair = b.component(state, 1);
                b.component(pair, leaf - 1)
            }
            Form::Arrays => {
                let array = b.component(state, usize::from(leaf > 0));
                let element = b.get_proved(array, index);
                if leaf > 0 { b.component(element, leaf - 1) } else { element }
            }
        }
    }

    /// Writes a state whose scalars `leaf` makes at an index.
    fn state(&mut self, mut leaf: impl FnMut(&mut Self, usize, VarId) -> Result<VarId>) -> Result<VarId> {
        let mut array = |this: &mut Self, leaves: &[usize]| -> Result<VarId> {
            let index = this.b.fresh(Type::Int);
            this.b.push_block();
            let parts = leaves.iter().map(|k| leaf(this, *k, index)).collect::<Result<Vec<_>>>()?;
            let result = if let [one] = parts[..] { one } else { this.b.tuple(&parts) };
            let body = this.b.pop_block(result);
            Ok(this.b.compute(Expr::Build { size: this.n.clone(), index, body }))
        };
        match self.form {
            Form::Array => array(self, &[0, 1, 2]),
            Form::Arrays => {
                let parts = [array(self, &[0])?, array(self, &[1, 2])?];
                Ok(self.b.tuple(&parts))
            }
            Form::Tuple => {
                let index = self.direction;
                let parts = [leaf(self, 0, index)?, leaf(self, 1, index)?, leaf(self, 2, index)?];
                let pair = self.b.tuple(&parts[1..]);
                Ok(self.b.tuple(&[parts[0], pair]))
            }
        }
    }

    /// Returns an index of an array of `n`: `index`, or its mirror image.
    fn place(&mut self, index: VarId) -> Result<VarId> {
        if matches!(self.form, Form::Tuple) || self.one_in(2)? {
            return Ok(index);
        }
        if self.one_in(4)? {
            let (one, n) = (self.b.int(1), self.b.size(self.n.clone()));
            let next = self.b.op(Op::Add, &[index, one]);
            return Ok(self.b.op(Op::Mod, &[next, n]));
        }
        let backwards = self.n.sub(&Size::constant(1)).sub(&Size::var(index));
        Ok(self.b.size(backwards))
    }

    /// Writes a number that depends on scalars of `state` up to `most`, and on the direction if `directed`.
    fn number(
        &mut self,
        depth: u8,
        state: VarId,
        (most, directed): (usize, bool),
        (index, step): (VarId, VarId),
    ) -> Result<VarId> {
        let of = (most, directed);
        if depth == 0 {
            let inside = !matches!(self.form, Form::Tuple);
            return Ok(match self.u.int_in_range(0..=7)? {
                0 if directed => self.scale,
                1 if directed && inside => {
                    let place = self.place(index)?;
                    self.b.get_proved(self.row, place)
                }
                2 if directed => {
                    let equal = self.b.op(Op::Eq, &[self.direction, if inside { index } else { step }]);
                    let (one, two) = (self.b.real(0.5), self.b.real(-1.5));
                    self.b.op(Op::Select, &[equal, one, two])
                }
                3 if inside => {
                    // Sometimes checked.
                    if self.one_in(8)? {
                        self.b.get(self.w, self.int)
                    } else {
                        let place = self.place(index)?;
                        self.b.get_proved(self.w, place)
                    }
                }
                4 => self.b.to_real(step),
                _ => {
                    let (leaf, place) = (self.u.int_in_range(0..=most)?, self.place(index)?);
                    self.leaf(state, leaf, place)
                }
            });
        }
        let a = self.number(depth - 1, state, of, (index, step))?;
        Ok(match self.u.int_in_range(0..=5)? {
            0 | 1 => self.b.op(Op::Sin, &[a]),
            2 => self.b.op(Op::Tanh, &[a]),
            op => {
                let b = self.number(depth - 1, state, of, (index, step))?;
                self.b.op([Op::Add, Op::Mul, Op::Sub][usize::from(op as u8 - 3)], &[a, b])
            }
        })
    }
}

fn function(u: &mut Unstructured<'_>) -> Result<Function> {
    let mut b = Builder::new("f");
    let (n, k) = (b.size_param("n"), b.size_param("k"));
    let (n, k) = (b.size_of(n), b.size_of(k));
    let vector = Type::array(n.clone(), Type::Double);
    let (x, w) = (b.param("x", vector.clone()), b.param("w", vector.clone()));
    let d = b.param("d", Type::array(k.clone(), vector));
    let int = b.param("i", Type::Int);
    let form = *u.choose(&[Form::Array, Form::Tuple, Form::Arrays])?;
    let direction = b.fresh(Type::Int);
    b.push_block();
    let (row, q) = (b.get_proved(d, direction), b.to_real(direction));
    let scale = b.op(Op::Cos, &[q]);
    let mut p = Make { b, u, n: n.clone(), x, w, d, int, form, direction, row, scale };
    let tuple = matches!(form, Form::Tuple);
    let init = p.state(|p, leaf, index| {
        // Sometimes a common part depends on the direction, or conversely.
        let directed = (leaf == 2) != p.one_in(8)?;
        Ok(match (directed, tuple) {
            (true, true) => p.scale,
            (true, false) => {
                let row = if p.one_in(4)? { p.b.get_proved(p.d, p.direction) } else { p.row };
                p.b.get_proved(row, index)
            }
            (false, true) => p.b.real(0.3),
            (false, false) => p.b.get_proved(p.x, index),
        })
    })?;
    let count = match p.u.int_in_range(0..=3)? {
        0 => Size::constant(p.u.int_in_range(0..=3)?),
        1 => n,
        2 => Size::var(int),
        _ => Size::constant(5),
    };
    let (step, state) = (p.b.fresh(Type::Int), p.b.fresh(p.b.ty(init).clone()));
    p.b.push_block();
    let next = p.state(|p, leaf, index| {
        let of = if p.one_in(12)? { (2, true) } else { [(0, false), (1, false), (2, true)][leaf] };
        p.number(3, state, of, (index, step))
    })?;
    let body = p.b.pop_block(next);
    let last = p.b.compute(Expr::Fold(StateLoop { count, index: step, state, init, body }));
    let wanted = p.u.int_in_range(0..=2)?;
    let result = if tuple {
        p.leaf(last, wanted, direction)
    } else if p.one_in(2)? {
        let index = p.b.fresh(Type::Int);
        p.b.push_block();
        let element = p.leaf(last, wanted, index);
        let body = p.b.pop_block(element);
        p.b.compute(Expr::Build { size: p.n.clone(), index, body })
    } else {
        last
    };
    let mut b = p.b;
    let body = b.pop_block(result);
    let all = b.compute(Expr::Build { size: k, index: direction, body });
    Ok(b.finish(all))
}

fn arguments(u: &mut Unstructured<'_>, f: &Function) -> Result<Vec<Value<f64>>> {
    let mut sizes = Sizes::default();
    for size in &f.sizes {
        sizes.insert(*size, u.int_in_range(0..=3)?);
    }
    let special = [0.0, -0.0, f64::INFINITY, f64::NAN];
    let is_special = u.int_in_range(0..=3)? == 0;
    fn value(ty: &Type, sizes: &Sizes, u: &mut Unstructured<'_>, special: &[f64]) -> Result<Value<f64>> {
        Ok(match ty {
            Type::Array(size, element) => {
                let len = sizes.eval(size).unwrap_or(0);
                Value::Array((0..len).map(|_| value(element, sizes, u, special)).collect::<Result<_>>()?)
            }
            Type::Int => Value::Int(u.int_in_range(-1..=4)?),
            _ if !special.is_empty() && u.int_in_range(0..=2)? == 0 => Value::Real(*u.choose(special)?),
            _ => Value::Real(f64::from(u.int_in_range(-16..=16)?) / 8.0),
        })
    }
    let special = if is_special { &special[..] } else { &[] };
    f.params.iter().map(|param| value(f.ty(*param), &sizes, u, special)).collect()
}

#[test]
fn random_folds_in_builds_keep_their_value() {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(3000),
        rng_seed: RngSeed::Fixed(83),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (told, applied, chosen) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let bytes = proptest::collection::vec(any::<u8>(), 100..600);
    let outcome = TestRunner::new(config).run(&bytes, |bytes| {
        let mut u = Unstructured::new(&bytes);
        let Ok(f) = function(&mut u) else { return Ok(()) };
        let Ok(args) = arguments(&mut u, &f) else { return Ok(()) };
        let fail = |what: String| TestCaseError::fail(format!("{what}\n{}\n{args:?}", print(&f)));
        // Only the rule, whose result still has everything that other rules remove.
        let (found, report) = apply(&f, &[RULE, "component"], Semantics::Strict);
        chainrule_ir::verify(&found).map_err(|what| fail(format!("{what:?}\n{}", print(&found))))?;
        let compared = check::compare(&f, &found, &args, Semantics::Strict).map_err(fail)?;
        told.set(told.get() + u32::from(compared));
        applied.set(applied.get() + u32::from(compared && report.times(RULE) > 0));
        let options = Options { semantics: Semantics::Strict, ..Options::default() };
        let (_, report, compared) = check::optimised(&f, &args, &options).map_err(fail)?;
        chosen.set(chosen.get() + u32::from(compared && report.times(RULE) > 0));
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{}", failure.to_string().split("minimal failing").next().unwrap_or_default());
    }
    let counts = [told.get(), applied.get(), chosen.get()];
    covers!(
        counts[0] > 2000 && counts[1] > 800 && counts[2] > 600,
        "{counts:?} compared, with the rule, chosen by cost"
    );
}

/// Returns how often the rule is applied to `build k (fun d -> (ifold (fun (y, t) i -> step y t i d) init n).1)`, for
/// `v` and `w` of [n] and `e` of [k].
fn times(
    k: Option<i64>,
    init: impl FnOnce(&mut Builder, [VarId; 3], VarId) -> [VarId; 2],
    step: impl FnOnce(&mut Builder, [VarId; 3], [VarId; 4]) -> [VarId; 2],
) -> u64 {
    let mut b = Builder::new("f");
    let (n, m) = (b.size_param("n"), b.size_param("k"));
    let (n, m) = (b.size_of(n), b.size_of(m));
    let v = b.param("v", Type::array(n.clone(), Type::Double));
    let w = b.param("w", Type::array(n.clone(), Type::Int));
    let e = b.param("e", Type::array(m.clone(), Type::Double));
    let all = b.build(k.map_or(m, Size::constant), |b, d| {
        let init = init(b, [v, w, e], d);
        let init = b.tuple(&init);
        let last = b.fold(n, init, |b, s, i| {
            let [y, t] = [0, 1].map(|k| b.component(s, k));
            let next = step(b, [v, w, e], [y, t, i, d]);
            b.tuple(&next)
        });
        b.component(last, 1)
    });
    let f = b.finish(all);
    apply(&f, &[RULE, "component"], Semantics::Strict).1.times(RULE)
}

fn alike(b: &mut Builder, [_, _, e]: [VarId; 3], d: VarId) -> [VarId; 2] {
    [b.real(0.5), b.get_proved(e, d)]
}

fn numbered(b: &mut Builder, _: [VarId; 3], d: VarId) -> [VarId; 2] {
    [b.real(0.5), b.to_real(d)]
}

fn dear(b: &mut Builder, _: [VarId; 3], [y, t, ..]: [VarId; 4]) -> [VarId; 2] {
    let (sine, cosine) = (b.op(Op::Sin, &[y]), b.op(Op::Cos, &[y]));
    [sine, b.op(Op::Mul, &[cosine, t])]
}

#[test]
fn it_applies_where_it_may() {
    assert_eq!(times(None, alike, dear), 1);
    // Few directions, whatever their states cost.
    assert_eq!(times(Some(8), numbered, dear), 1);
}

#[test]
fn it_does_not_apply_where_nothing_is_alike() {
    // The initial state depends on the direction.
    assert_eq!(times(None, |b, [_, _, e], d| [b.get_proved(e, d), b.get_proved(e, d)], dear), 0);
    // The next one does: directly, or through another value.
    let directed = |b: &mut Builder, of: [VarId; 3], [y, t, i, d]: [VarId; 4]| {
        let [next, moved] = dear(b, of, [y, t, i, d]);
        let d = b.to_real(d);
        [b.op(Op::Add, &[next, d]), moved]
    };
    assert_eq!(times(None, alike, directed), 0);
    let moved = |b: &mut Builder, of: [VarId; 3], vars: [VarId; 4]| {
        let [next, moved] = dear(b, of, vars);
        [b.op(Op::Add, &[next, moved]), moved]
    };
    assert_eq!(times(None, alike, moved), 0);
}

#[test]
fn it_does_not_apply_where_it_does_not_pay() {
    let cheap =
        |b: &mut Builder, _: [VarId; 3], [y, t, ..]: [VarId; 4]| [b.op(Op::Mul, &[y, y]), b.op(Op::Mul, &[y, t])];
    assert_eq!(times(None, alike, cheap), 0);
}

/// Returns how often the rule is applied to `build k (fun d -> sum over ys of an array of pairs)`: the number of
/// directions, and whether the element of the result is the array of tangents, or a number.
fn of_arrays(k: Option<i64>, whole: bool) -> u64 {
    let mut b = Builder::new("f");
    let (n, m) = (b.size_param("n"), b.size_param("k"));
    let (n, m) = (b.size_of(n), b.size_of(m));
    let vector = Type::array(n.clone(), Type::Double);
    let v = b.param("v", vector.clone());
    b.param("e", Type::array(m.clone(), vector));
    let all = b.build(k.map_or(m, Size::constant), |b, d| {
        let d = b.to_real(d);
        let init = b.build(n.clone(), |b, i| {
            let x = b.get_proved(v, i);
            b.tuple(&[x, d])
        });
        let last = b.fold(Size::constant(9), init, |b, s, _| {
            b.build(n.clone(), |b, i| {
                let pair = b.get_proved(s, i);
                let [y, t] = [0, 1].map(|k| b.component(pair, k));
                let (sine, cosine) = (b.op(Op::Sin, &[y]), b.op(Op::Cos, &[y]));
                let t = b.op(Op::Mul, &[cosine, t]);
                b.tuple(&[sine, t])
            })
        });
        let tangent = |b: &mut Builder, i: VarId| {
            let pair = b.get_proved(last, i);
            b.component(pair, 1)
        };
        if whole { b.build(n.clone(), tangent) } else { b.sum(n.clone(), tangent) }
    });
    apply(&b.finish(all), &[RULE, "component"], Semantics::Strict).1.times(RULE)
}

#[test]
fn memory_for_all_directions_is_that_of_the_result_or_of_few() {
    assert_eq!(of_arrays(None, true), 1);
    // A gradient by forward mode has a number for each direction, and would have a state of n.
    assert_eq!(of_arrays(None, false), 0);
    assert_eq!(of_arrays(Some(64), false), 1);
    assert_eq!(of_arrays(Some(65), false), 0);
}

#[test]
fn it_does_not_apply_where_a_failure_would_be_added() {
    // A checked element: none is read if there is no direction.
    let checked = |b: &mut Builder, of: [VarId; 3], [y, t, i, d]: [VarId; 4]| {
        let [next, moved] = dear(b, of, [y, t, i, d]);
        let at = b.get_proved(of[1], i);
        let x = b.get(of[0], at);
        [b.op(Op::Add, &[next, x]), moved]
    };
    assert_eq!(times(None, alike, checked), 0);
    // With at least one direction it may be read.
    assert_eq!(times(Some(8), numbered, checked), 1);
    // An index that only depends on the direction: no element is read for the common part.
    let indexed = |b: &mut Builder, of: [VarId; 3], [y, t, i, d]: [VarId; 4]| {
        let [next, moved] = dear(b, of, [y, t, i, d]);
        let x = b.get(of[0], d);
        [next, b.op(Op::Add, &[moved, x])]
    };
    assert_eq!(times(Some(8), numbered, indexed), 1);
}
