//! Value numbering: equal values wherever the originals are defined; equal nodes are merged, almost equal ones are not.

use arbitrary::Unstructured;
use chainrule_cases::covers;
use chainrule_graph::generate::{Numbers, Options, Recipe, layered};
use chainrule_graph::{ExternalFunction, Graph, Node, NodeId, Numbered, Numbering, Semantics, evaluate, number};
use chainrule_ops::{Big, Op, Precise};
use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};

fn numbered(g: &mut Graph, roots: &[NodeId]) -> Numbered {
    number(g, roots, &Numbering::default())
}

/// Expressions over x, y, z (positive or negative) and a few functions of them.
struct Scene {
    g: Graph,
    x: NodeId,
    y: NodeId,
    z: NodeId,
}

impl Scene {
    fn new() -> Self {
        let mut g = Graph::new(Semantics::Algebraic);
        let (x, y, z) = (g.input("x"), g.input("y"), g.input("z"));
        Self { g, x, y, z }
    }

    fn f(&mut self, op: Op, args: &[NodeId]) -> NodeId {
        self.g.raw(op, args)
    }

    fn c(&mut self, c: f64) -> NodeId {
        self.g.constant(c)
    }

    /// Returns whether the two become one node, or a constant times one.
    fn merges(&mut self, a: NodeId, b: NodeId) -> bool {
        // Each has a use, so that merging saves an operation.
        let (fa, fb) = (self.f(Op::Erf, &[a]), self.f(Op::Erf, &[b]));
        let (ea, eb) = (self.f(Op::Atan, &[fa]), self.f(Op::Atan, &[fb]));
        let roots = [a, b, ea, eb];
        let result = numbered(&mut self.g, &roots);
        self.check(&roots, &result.roots);
        result.roots[0] == result.roots[1]
    }

    /// Checks that values are equal at points of all signs, including zeros, wherever the originals are defined.
    fn check(&mut self, before: &[NodeId], after: &[NodeId]) {
        let numbers = [-2.5, -1.0, -0.75, 0.0, 0.5, 1.0, 3.25];
        for x in numbers {
            for y in numbers {
                for z in numbers {
                    let old = self.g.f64_at(&[x, y, z], before).expect("inputs have values");
                    let new = self.g.f64_at(&[x, y, z], after).expect("inputs have values");
                    for (a, b) in old.iter().zip(&new) {
                        let close = (a - b).abs() <= 1e-9 * (1.0 + a.abs());
                        assert!(!a.is_finite() || close, "{a} became {b} at {x}, {y}, {z}");
                    }
                }
            }
        }
    }
}

macro_rules! scene {
    ($s:ident, $x:ident, $y:ident, $z:ident) => {
        #[allow(unused_mut)]
        let mut $s = Scene::new();
        #[allow(unused_variables)]
        let ($x, $y, $z) = ($s.x, $s.y, $s.z);
    };
}

#[test]
fn polynomials_that_are_equal_become_one() {
    scene!(s, x, y, z);
    // (x + y)^2 - z^2 = (x + y + z) * (x + y - z)
    let xy = s.f(Op::Add, &[x, y]);
    let (a, b) = (s.f(Op::Mul, &[xy, xy]), s.f(Op::Mul, &[z, z]));
    let left = s.f(Op::Sub, &[a, b]);
    let (p, q) = (s.f(Op::Add, &[xy, z]), s.f(Op::Sub, &[xy, z]));
    let right = s.f(Op::Mul, &[p, q]);
    assert!(s.merges(left, right));
}

#[test]
fn rotations_are_orthogonal() {
    scene!(s, x, y, z);
    // The rows of Rz(x) Ry(y) Rx(z) have length 1, and their products vanish.
    let entries: Vec<[NodeId; 2]> = [x, y, z].iter().map(|q| [s.f(Op::Sin, &[*q]), s.f(Op::Cos, &[*q])]).collect();
    let [[sx, cx], [sy, cy], [sz, cz]] = entries[..] else { unreachable!() };
    let g = &mut s.g;
    let zero = g.constant(0.0);
    let one = g.constant(1.0);
    let minus = [g.neg(sx), g.neg(sy), g.neg(sz)];
    let rotations = [
        [[cx, minus[0], zero], [sx, cx, zero], [zero, zero, one]],
        [[cy, zero, sy], [zero, one, zero], [minus[1], zero, cy]],
        [[one, zero, zero], [zero, cz, minus[2]], [zero, sz, cz]],
    ];
    let dot = |g: &mut Graph, a: [NodeId; 3], b: [NodeId; 3]| {
        let p: Vec<NodeId> = (0..3).map(|i| g.mul(a[i], b[i])).collect();
        let first = g.add(p[0], p[1]);
        g.add(first, p[2])
    };
    let product = |g: &mut Graph, a: [[NodeId; 3]; 3], b: [[NodeId; 3]; 3]| {
        let column = |j: usize| [b[0][j], b[1][j], b[2][j]];
        a.map(|row| [dot(g, row, column(0)), dot(g, row, column(1)), dot(g, row, column(2))])
    };
    let r = product(g, rotations[0], rotations[1]);
    let r = product(g, r, rotations[2]);
    let gram: Vec<NodeId> = (0..9).map(|k| dot(g, r[k / 3], r[k % 3])).collect();
    let result = numbered(g, &gram);
    let expected: Vec<NodeId> = (0..9).map(|k| if k / 3 == k % 3 { one } else { zero }).collect();
    assert_eq!(result.roots, expected);
    assert_eq!(result.report.after.weight, 0);
    s.check(&gram, &result.roots);
}

#[test]
fn equal_up_to_a_factor() {
    scene!(s, x, y, z);
    let g = &mut s.g;
    // x/3 + 5y/3 and 0.1x + 0.5y
    let numbers = [1.0 / 3.0, 5.0 / 3.0, 0.1, 0.5].map(|c| g.constant(c));
    let t: Vec<NodeId> = numbers.iter().zip([x, y, x, y]).map(|(c, v)| g.raw(Op::Mul, &[*c, v])).collect();
    let (a, b) = (g.raw(Op::Add, &[t[0], t[1]]), g.raw(Op::Add, &[t[2], t[3]]));
    let result = numbered(g, &[a, b]);
    assert_eq!((result.report.before.arithmetic(), result.report.after.arithmetic()), (6, 4));
    s.check(&[a, b], &result.roots);
}

#[test]
fn values_are_made_of_what_is_there() {
    scene!(s, x, y, z);
    // (x+z)(y+z) - z(x+y+z) is x*y.
    let (xz, yz) = (s.f(Op::Add, &[x, z]), s.f(Op::Add, &[y, z]));
    let (product, sum) = (s.f(Op::Mul, &[xz, yz]), s.f(Op::Add, &[xz, y]));
    let rest = s.f(Op::Mul, &[z, sum]);
    let short = s.f(Op::Sub, &[product, rest]);
    let result = numbered(&mut s.g, &[short]);
    assert_eq!(result.roots, [s.g.mul(x, y)]);
    // x^2 z, y^2 z and (x^2 + y^2) z: the third is the sum of the others.
    scene!(s, x, y, z);
    let (xx, yy) = (s.f(Op::Mul, &[x, x]), s.f(Op::Mul, &[y, y]));
    let (a, b, sum) = (s.f(Op::Mul, &[xx, z]), s.f(Op::Mul, &[yy, z]), s.f(Op::Add, &[xx, yy]));
    let roots = [a, b, s.f(Op::Mul, &[sum, z])];
    let result = numbered(&mut s.g, &roots);
    assert_eq!((result.report.before.arithmetic(), result.report.after.arithmetic()), (6, 5));
    s.check(&roots, &result.roots);
    let quick = number(&mut s.g, &roots, &Numbering { max_pairs: 0, ..Numbering::default() });
    assert_eq!(quick.roots, roots);
}

#[test]
fn differences_that_cancel_are_not_taken() {
    // a = 1000x + s and b = 1000x exist; s must not become a - b.
    scene!(s, x, y, z);
    let thousand = s.c(1000.0);
    let b = s.f(Op::Mul, &[thousand, x]);
    let (c, d) = (s.f(Op::Sin, &[y]), s.f(Op::Cos, &[y]));
    let (cc, dd) = (s.f(Op::Mul, &[c, c]), s.f(Op::Mul, &[d, d]));
    let small = s.f(Op::Sub, &[cc, dd]);
    let a = s.f(Op::Add, &[b, small]);
    let (twice, two) = (s.f(Op::Mul, &[small, small]), s.c(2.0));
    let more = s.f(Op::Mul, &[two, twice]);
    let roots = [a, b, more];
    let result = numbered(&mut s.g, &roots);
    let point = [1.0, 0.785, 0.0];
    let exact = s.g.f64_at(&point, &roots).unwrap()[2];
    let found = s.g.f64_at(&point, &result.roots).unwrap()[2];
    assert!((exact - found).abs() <= 1e-15 * exact.abs(), "{exact} became {found}");
}

#[test]
fn known_functions_follow_their_identities() {
    for (op, sign) in [(Op::Sin, -1.0), (Op::Cos, 1.0), (Op::Tanh, -1.0), (Op::Erf, -1.0), (Op::Cosh, 1.0)] {
        scene!(s, x, y, z);
        // f((x+y)(x-y)) and f(y^2 - x^2)
        let (p, q) = (s.f(Op::Add, &[x, y]), s.f(Op::Sub, &[x, y]));
        let (xx, yy) = (s.f(Op::Mul, &[x, x]), s.f(Op::Mul, &[y, y]));
        let (u, v) = (s.f(Op::Mul, &[p, q]), s.f(Op::Sub, &[yy, xx]));
        let (a, b) = (s.f(op, &[u]), s.f(op, &[v]));
        let c = s.c(sign);
        let b = s.f(Op::Mul, &[c, b]);
        assert!(s.merges(a, b), "{op:?}");
    }
    scene!(s, x, y, z);
    let (c, h) = (s.f(Op::Cosh, &[x]), s.f(Op::Sinh, &[x]));
    let (cc, hh) = (s.f(Op::Mul, &[c, c]), s.f(Op::Mul, &[h, h]));
    let (a, b) = (s.f(Op::Sub, &[cc, hh]), s.c(1.0));
    assert!(s.merges(a, b));
    let (t, minus) = (s.f(Op::Exp, &[x]), s.f(Op::Neg, &[x]));
    let u = s.f(Op::Exp, &[minus]);
    let a = s.f(Op::Mul, &[t, u]);
    assert!(s.merges(a, b));
}

#[test]
fn almost_equal_is_not_equal() {
    for c in [1e-30, 1e-16, f64::EPSILON / 2.0, 5e-324] {
        scene!(s, x, y, z);
        let c = s.c(c);
        let a = s.f(Op::Add, &[x, c]);
        assert!(!s.merges(x, a));
        let a = s.f(Op::Mul, &[y, c]);
        let a = s.f(Op::Add, &[x, a]);
        assert!(!s.merges(x, a));
    }
    for (c, d) in [(1.0, 1.0 + f64::EPSILON), (1.0 / 3.0, 0.333_333_333_333_333_4), (0.1, 0.100_000_000_000_000_02)] {
        scene!(s, x, y, z);
        let (c, d) = (s.c(c), s.c(d));
        let (p, q) = (s.f(Op::Mul, &[c, x]), s.f(Op::Mul, &[d, x]));
        let (a, b) = (s.f(Op::Add, &[p, y]), s.f(Op::Add, &[q, y]));
        assert!(!s.merges(a, b));
        let difference = s.f(Op::Sub, &[p, q]);
        let result = numbered(&mut s.g, &[difference]);
        assert_ne!(s.g.as_const(result.roots[0]), Some(0.0));
    }
}

#[test]
fn roots_and_logarithms_have_branches() {
    scene!(s, x, y, z);
    let xx = s.f(Op::Mul, &[x, x]);
    let root = s.f(Op::Sqrt, &[xx]);
    assert!(!s.merges(x, root));
    let minus = s.f(Op::Neg, &[x]);
    assert!(!s.merges(minus, root));
    let (log, log2) = (s.f(Op::Log, &[x]), s.f(Op::Log, &[xx]));
    let twice = s.f(Op::Add, &[log, log]);
    assert!(!s.merges(log2, twice));
    let xy = s.f(Op::Mul, &[x, y]);
    let (a, b, c) = (s.f(Op::Sqrt, &[x]), s.f(Op::Sqrt, &[y]), s.f(Op::Sqrt, &[xy]));
    let ab = s.f(Op::Mul, &[a, b]);
    assert!(!s.merges(c, ab));
    let size = s.f(Op::Abs, &[x]);
    assert!(!s.merges(x, size));
    let sign = s.f(Op::Sign, &[x]);
    let (square, one) = (s.f(Op::Mul, &[sign, sign]), s.c(1.0));
    assert!(!s.merges(one, square));
    let half = s.c(0.5);
    let power = s.f(Op::Pow, &[xx, half]);
    assert!(!s.merges(x, power));
    let (angle, ratio) = (s.f(Op::Atan2, &[y, x]), s.f(Op::Div, &[y, x]));
    let arc = s.f(Op::Atan, &[ratio]);
    assert!(!s.merges(angle, arc));
    let (low, high) = (s.f(Op::Min, &[x, y]), s.f(Op::Max, &[x, y]));
    assert!(!s.merges(low, high));
    let floor = s.f(Op::Floor, &[x]);
    assert!(!s.merges(x, floor));
}

#[test]
fn powers_that_are_equal_in_the_field_only() {
    // x squared 61 times is x^(2^61), which is x^2 modulo 2^61 - 1.
    let mut g = Graph::new(Semantics::Algebraic);
    let x = g.input("x");
    let mut powers = vec![x];
    for i in 0..64 {
        powers.push(g.mul(powers[i], powers[i]));
    }
    let roots = [powers[1], powers[61], powers[62]];
    let result = numbered(&mut g, &roots);
    assert_eq!(result.roots, roots);
    let difference = g.sub(powers[61], powers[1]);
    assert_eq!(numbered(&mut g, &[difference]).roots, [difference]);
}

#[test]
fn nothing_is_replaced_by_what_is_defined_less_often() {
    // (x*y)/y is older than x*1: x must not become 0/0 at y = 0.
    scene!(s, x, y, z);
    let (xx, yx) = (s.f(Op::Mul, &[x, x]), s.f(Op::Mul, &[y, x]));
    let (xxx, yy) = (s.f(Op::Mul, &[xx, x]), s.f(Op::Mul, &[y, y]));
    // (x + y) by a quotient, created first
    let numerator = s.f(Op::Sub, &[xx, yy]);
    let difference = s.f(Op::Sub, &[x, y]);
    let partial = s.f(Op::Div, &[numerator, difference]);
    let sum = s.f(Op::Add, &[y, x]);
    let roots = [partial, sum, yx, xxx];
    let result = numbered(&mut s.g, &roots);
    s.check(&roots, &result.roots);
    assert_eq!(result.roots[1], sum);
}

#[test]
fn what_a_branch_guards_stays_inside() {
    scene!(s, x, y, z);
    let zero = s.c(0.0);
    let positive = s.f(Op::Lt, &[zero, x]);
    let (log, root) = (s.f(Op::Log, &[x]), s.f(Op::Sqrt, &[x]));
    let guarded = s.g.select(positive, log, zero);
    // (x^2 - y^2) / (x - y) in a branch where x > y; x + y outside.
    let (xx, yy) = (s.f(Op::Mul, &[x, x]), s.f(Op::Mul, &[y, y]));
    let (p, q) = (s.f(Op::Sub, &[xx, yy]), s.f(Op::Sub, &[x, y]));
    let partial = s.f(Op::Div, &[p, q]);
    let apart = s.f(Op::Lt, &[y, x]);
    let lazy = s.g.select(apart, partial, z);
    let sum = s.f(Op::Add, &[x, y]);
    let outside = s.f(Op::Mul, &[sum, z]);
    let inside = s.f(Op::Mul, &[partial, z]);
    let scaled = s.g.select(apart, inside, zero);
    let safe = s.g.select(positive, root, z);
    let more = s.f(Op::Mul, &[safe, safe]);
    let (a, b) = (s.f(Op::Mul, &[safe, x]), s.f(Op::Mul, &[safe, y]));
    let spread = s.f(Op::Add, &[a, b]);
    let factored = s.f(Op::Mul, &[safe, sum]);
    let roots = [guarded, lazy, outside, scaled, more, spread, factored, sum];
    let result = numbered(&mut s.g, &roots);
    s.check(&roots, &result.roots);
    // A choice is a value like any other: its users are compared.
    assert_eq!(result.roots[5], result.roots[6]);
}

#[test]
fn division_by_zero_in_the_field_is_unknown() {
    scene!(s, x, y, z);
    let (xx, yy) = (s.f(Op::Mul, &[x, x]), s.f(Op::Mul, &[y, y]));
    let (sum, difference) = (s.f(Op::Add, &[x, y]), s.f(Op::Sub, &[x, y]));
    let (p, q) = (s.f(Op::Mul, &[sum, difference]), s.f(Op::Sub, &[xx, yy]));
    let zero = s.f(Op::Sub, &[p, q]);
    let (a, b) = (s.f(Op::Div, &[x, zero]), s.f(Op::Div, &[y, zero]));
    let result = numbered(&mut s.g, &[a, b, zero]);
    assert_ne!(result.roots[0], result.roots[1]);
    assert_eq!(s.g.as_const(result.roots[2]), Some(0.0));
}

#[test]
fn users_functions_are_equal_where_their_arguments_are() {
    scene!(s, x, y, z);
    let f = s.g.register(ExternalFunction::new("f", 1, |a| a[0].sqrt()));
    let h = s.g.register(ExternalFunction::new("h", 1, |a| a[0].sqrt()));
    let (p, q) = (s.f(Op::Add, &[x, y]), s.f(Op::Sub, &[x, y]));
    let (xx, yy) = (s.f(Op::Mul, &[x, x]), s.f(Op::Mul, &[y, y]));
    let (u, v) = (s.f(Op::Mul, &[p, q]), s.f(Op::Sub, &[xx, yy]));
    let calls = [s.g.external(f, &[u]), s.g.external(f, &[v]), s.g.external(h, &[u])];
    let result = numbered(&mut s.g, &calls);
    assert_eq!(result.roots[0], result.roots[1]);
    assert_ne!(result.roots[0], result.roots[2]);
}

#[test]
fn scales_do_not_overflow() {
    scene!(s, x, y, z);
    let (big, small) = (s.c(1e300), s.c(1e-300));
    let (p, q) = (s.f(Op::Mul, &[big, x]), s.f(Op::Mul, &[small, y]));
    let (a, b) = (s.f(Op::Add, &[p, q]), s.f(Op::Sub, &[p, q]));
    let (xy, yx) = (s.f(Op::Mul, &[p, y]), s.f(Op::Mul, &[q, x]));
    let roots = [a, b, xy, yx];
    let result = numbered(&mut s.g, &roots);
    s.check(&roots, &result.roots);
    let value = s.g.f64_at(&[1e-300, 1e300, 0.0], &result.roots).unwrap();
    assert_eq!(value, [2.0, 0.0, 1e300, 1e-300]);
}

#[test]
fn strict_is_left_alone() {
    let mut g = Graph::new(Semantics::Strict);
    let (x, y) = (g.input("x"), g.input("y"));
    let (a, b) = (g.mul(x, y), g.mul(x, x));
    let (s, t) = (g.add(a, b), g.add(x, y));
    let product = g.mul(t, x);
    let roots = [s, product];
    assert_eq!(numbered(&mut g, &roots).roots, roots);
}

/// Comparability of a value at a point.
enum Looked {
    /// A relevant value is undefined, or at a discontinuity: no guarantee.
    Nothing,
    /// All relevant values are finite and below this size, and above its inverse.
    Size(f64),
}

/// Examines the relevant values of `root`: nodes below it, of choices only the branches that are taken.
fn looked_at(g: &Graph, ctx: &Precise, root: NodeId, at: &dyn Fn(NodeId) -> Big) -> Looked {
    let mut stack = vec![root];
    let mut seen = std::collections::BTreeSet::new();
    let mut size: f64 = 1.0;
    while let Some(id) = stack.pop() {
        if !seen.insert(id) {
            continue;
        }
        let value = ctx.as_f64(&at(id));
        if !value.is_finite() {
            return Looked::Nothing;
        }
        if value != 0.0 {
            size = size.max(value.abs()).max(1.0 / value.abs());
        }
        let args = g.args(id);
        let number = |k: usize| ctx.as_f64(&at(args[k]));
        match g.node(id) {
            Node::Apply(Op::Select, _) => stack.extend([args[0], if number(0) != 0.0 { args[1] } else { args[2] }]),
            Node::Apply(op, _) => {
                stack.extend(args);
                let jumps = match op {
                    Op::Lt | Op::Le | Op::Eq => number(0) == number(1) || (number(0) - number(1)).abs() < 1e-9,
                    Op::Sign => number(0).abs() < 1e-9,
                    Op::Floor | Op::Ceil => (number(0) - number(0).round()).abs() < 1e-9,
                    Op::Quot | Op::Mod => true,
                    Op::Atan2 => number(0).abs() < 1e-9,
                    _ => false,
                };
                if jumps {
                    return Looked::Nothing;
                }
            }
            _ => {}
        }
    }
    Looked::Size(size)
}

/// Compares the original and the numbered values at `point` in extended precision. Returns the number of comparisons.
fn compare(g: &Graph, point: &[f64], old: &[NodeId], new: &[NodeId]) -> Result<u32, TestCaseError> {
    let mut ctx = Precise::new();
    let inputs: Vec<Big> = point.iter().map(|x| ctx.from_f64(*x)).collect();
    let all: Vec<NodeId> = g.reachable(&[old, new].concat()).iter().collect();
    let values = evaluate(g, &mut ctx, &inputs, &all).expect("inputs have values");
    let at = |id: NodeId| values[all.binary_search(&id).expect("it was reached")].clone();
    let mut n = 0;
    for (a, b) in old.iter().zip(new) {
        // Huge or tiny intermediate values amplify the rounding of constants.
        let Looked::Size(size) = looked_at(g, &ctx, *a, &at) else { continue };
        if size > 1e6 {
            continue;
        }
        n += 1;
        let difference = ctx.as_f64(&ctx.sub(&at(*a), &at(*b))).abs();
        prop_assert!(difference <= 1e-12 * size * size, "{} became {} at {point:?}", g.short(*a), g.short(*b));
    }
    Ok(n)
}

fn random_graphs(cases: u32, seed: u64, options: &Options) {
    let config = ProptestConfig {
        cases: chainrule_cases::cases(cases),
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (changed, compared) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    TestRunner::new(config)
        .run(&prop::collection::vec(any::<u8>(), 0..400), |bytes| {
            let mut u = Unstructured::new(&bytes);
            let Ok(recipe) = Recipe::random(&mut u, options) else { return Ok(()) };
            for (mut g, roots) in [recipe.simplified(Semantics::Algebraic), recipe.raw(Semantics::Algebraic)] {
                let result = number(&mut g, &roots, &Numbering::default());
                prop_assert_eq!(&number(&mut g.clone(), &roots, &Numbering::default()).roots, &result.roots);
                prop_assert!(result.report.after.weight <= result.report.before.weight);
                changed.set(changed.get() + u32::from(result.roots != roots));
                let other: Vec<f64> = recipe.point.iter().map(|x| -0.75 * x).collect();
                for point in [&recipe.point, &other, &vec![0.0; other.len()]] {
                    compared.set(compared.get() + compare(&g, point, &roots, &result.roots)?);
                }
            }
            Ok(())
        })
        .expect("values are kept");
    let (changed, compared) = (changed.get(), compared.get());
    covers!(changed > cases / 20 && compared > cases, "{changed} programs changed, {compared} values compared");
}

#[test]
fn random_programs_keep_their_values() {
    random_graphs(1500, 1, &Options::new(60));
}

#[test]
fn random_arithmetic_keeps_its_values() {
    let arithmetic = [Op::Add, Op::Sub, Op::Mul, Op::Neg, Op::Div, Op::Sin, Op::Cos, Op::Exp, Op::Sinh, Op::Cosh];
    let operators = Op::all().filter(|op| !arithmetic.contains(op)).collect::<Vec<_>>();
    let options = Options { n_inputs: 2, ..Options::new(80).without(&operators) };
    random_graphs(1500, 2, &options);
}

#[test]
fn random_lazy_programs_keep_their_values() {
    let left = [
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Sqrt,
        Op::Log,
        Op::Select,
        Op::Lt,
        Op::Le,
        Op::And,
        Op::Not,
        Op::Min,
        Op::Max,
        Op::Abs,
        Op::Sign,
    ];
    let operators = Op::all().filter(|op| !left.contains(op)).collect::<Vec<_>>();
    let options =
        Options { in_domain: false, n_inputs: 3, numbers: Numbers::Tame, ..Options::new(60).without(&operators) };
    random_graphs(1500, 3, &options);
}

#[test]
fn a_hundred_thousand_nodes_are_quick() {
    let (mut g, roots) = layered(Semantics::Algebraic, 100_000, 10, 3, 5);
    let result = numbered(&mut g, &roots);
    let point = [0.3, -0.2, 0.9, 0.1, -0.7, 0.5, 0.4, -0.6, 0.8, -0.1];
    let (old, new) = (g.f64_at(&point, &roots).unwrap(), g.f64_at(&point, &result.roots).unwrap());
    for (a, b) in old.iter().zip(&new) {
        assert!((a - b).abs() < 1e-6, "{a} became {b}");
    }
}
