//! Results of instructions on this machine: names and documentation of the encoder agree with the processor. `decode`
//! checks that the bytes are those of the named instructions.

#![expect(clippy::neg_cmp_op_on_partial_ord, reason = "that is what the negated predicates mean")]

use crate::Level;
use crate::asm::{
    Arith, Assembler, Fma, FmaOrder, Gpr, Half, Integer, IntegerPredicate, LaneShift, Logic, Mask, MaskLogic, Mem,
    Predicate, Rounding, Shape, Xmm,
};
use crate::executable::{Executable, Policy};

/// Registers of the arguments and of the result.
const A: Xmm = Xmm(0);
const B: Xmm = Xmm(1);
const C: Xmm = Xmm(2);
const RESULT: Xmm = Xmm(3);

type Lanes = [f64; 8];

/// Returns whether a comparison holds.
type Holds<T> = fn(T, T) -> bool;

/// Returns the lanes of the result of `call`, whose arguments are in registers, in as many lanes as `shape` has.
fn run(level: Level, shape: Shape, [a, b, c]: [Lanes; 3], call: impl FnOnce(&mut Assembler)) -> Vec<u64> {
    let input: Vec<f64> = [a, b, c].concat();
    let mut output = [0u64; 8];
    let mut asm = Assembler::new(level);
    let at = |base, disp| Mem::At { base, disp };
    for (i, register) in [A, B, C].into_iter().enumerate() {
        asm.load(shape, register, at(Gpr::RDI, 64 * i as i32));
    }
    call(&mut asm);
    asm.store(shape, at(Gpr::RSI, 0), RESULT);
    asm.vzeroupper();
    asm.ret();
    let code = Executable::new(asm.finish().unwrap().bytes(), Policy::Ask).unwrap();
    let entry = code.entry(0).unwrap();
    // SAFETY: the code follows the C calling convention for two pointers: it reads three times 64 bytes from the first,
    // writes at most 64 through the second, only changes caller-saved registers, and returns. `code` lives until after
    // the call.
    #[allow(unsafe_code)]
    unsafe {
        let function: extern "sysv64" fn(*const f64, *mut u64) = std::mem::transmute(entry);
        function(input.as_ptr(), output.as_mut_ptr());
    }
    output[..lanes(shape)].to_vec()
}

fn lanes(shape: Shape) -> usize {
    match shape {
        Shape::One => 1,
        Shape::Four => 4,
        Shape::Eight => 8,
    }
}

/// Returns the levels of this machine with their shapes.
fn everywhere() -> Vec<(Level, Shape)> {
    let all = [
        (Level::Avx2, Shape::One),
        (Level::Avx2, Shape::Four),
        (Level::Avx512, Shape::One),
        (Level::Avx512, Shape::Four),
        (Level::Avx512, Shape::Eight),
    ];
    all.into_iter().filter(|(level, _)| level.missing().is_empty()).collect()
}

const X: Lanes = [1.0, -2.5, f64::NAN, 0.0, -0.0, 3.5, 1e300, -7.0];
const Y: Lanes = [1.0, 2.5, 1.0, -0.0, f64::NAN, -3.5, 1e10, f64::INFINITY];
const Z: Lanes = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8];

/// Returns the arguments rotated by each number of lanes, so that scalars see all of them.
fn arguments() -> impl Iterator<Item = [Lanes; 3]> {
    (0..8).map(|n| {
        [X, Y, Z].map(|mut lanes| {
            lanes.rotate_left(n);
            lanes
        })
    })
}

/// Checks every lane of `call` against `wanted`, a function of the bits of three arguments; all NaNs are equal.
fn check(name: &str, call: impl Fn(&mut Assembler, Shape), wanted: impl Fn(u64, u64, u64) -> u64) {
    let canonical =
        |bits: u64| if f64::from_bits(bits).is_nan() && bits != u64::MAX { f64::NAN.to_bits() } else { bits };
    for (level, shape) in everywhere() {
        for [a, b, c] in arguments() {
            let result = run(level, shape, [a, b, c], |asm| call(asm, shape));
            for (i, bits) in result.into_iter().enumerate() {
                let [x, y, z] = [a, b, c].map(|lanes| lanes[i].to_bits());
                let context = || format!("{name} of {} {} {} in {shape:?} of {level:?}", a[i], b[i], c[i]);
                assert_eq!(canonical(bits), canonical(wanted(x, y, z)), "{}", context());
            }
        }
    }
}

fn of(f: impl Fn(f64, f64, f64) -> f64) -> impl Fn(u64, u64, u64) -> u64 {
    move |a, b, c| f(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c)).to_bits()
}

#[test]
fn arithmetic() {
    let two = |name, op, f: fn(f64, f64) -> f64| {
        check(name, |asm, s| asm.arith(op, s, RESULT, A, B), of(|a, b, _| f(a, b)));
    };
    two("add", Arith::Add, |a, b| a + b);
    two("sub", Arith::Sub, |a, b| a - b);
    two("mul", Arith::Mul, |a, b| a * b);
    two("div", Arith::Div, |a, b| a / b);
    two("min", Arith::Min, |a, b| if a < b { a } else { b });
    two("max", Arith::Max, |a, b| if a > b { a } else { b });
    check("sqrt", |asm, s| asm.sqrt(s, RESULT, A), of(|a, _, _| a.sqrt()));
    let round = |name, mode, f: fn(f64) -> f64| {
        check(name, |asm, s| asm.round(mode, s, RESULT, A), of(|a, _, _| f(a)));
    };
    round("nearest", Rounding::Nearest, f64::round_ties_even);
    round("floor", Rounding::Floor, f64::floor);
    round("ceil", Rounding::Ceil, f64::ceil);
    round("trunc", Rounding::Trunc, f64::trunc);
}

#[test]
fn fused_operations() {
    let ops: [(Fma, f64, f64); 4] =
        [(Fma::MulAdd, 1.0, 1.0), (Fma::MulSub, 1.0, -1.0), (Fma::NegMulAdd, -1.0, 1.0), (Fma::NegMulSub, -1.0, -1.0)];
    for (op, product, addend) in ops {
        let fma = |order| {
            move |asm: &mut Assembler, s: Shape| {
                asm.mov(s, RESULT, A);
                asm.fma(op, order, s, RESULT, B, C);
            }
        };
        // `dst` is A, `a` is B, `source` is C.
        let f = |x: f64, y: f64, z: f64| (product * x).mul_add(y, addend * z);
        check(&format!("{op:?} 132"), fma(FmaOrder::O132), of(|a, b, c| f(a, c, b)));
        check(&format!("{op:?} 213"), fma(FmaOrder::O213), of(|a, b, c| f(b, a, c)));
        check(&format!("{op:?} 231"), fma(FmaOrder::O231), of(|a, b, c| f(b, c, a)));
    }
}

#[test]
fn bits() {
    let logic = |name, op, f: fn(u64, u64) -> u64| {
        check(name, |asm, s| asm.logic(op, s, RESULT, A, B), |a, b, _| f(a, b));
    };
    logic("and", Logic::And, |a, b| a & b);
    logic("and not", Logic::AndNot, |a, b| !a & b);
    logic("or", Logic::Or, |a, b| a | b);
    logic("xor", Logic::Xor, |a, b| a ^ b);
    let integer = |name, op, f: fn(u64, u64) -> u64| {
        check(name, |asm, s| asm.integer(op, s, RESULT, A, B), |a, b, _| f(a, b));
    };
    integer("integer add", Integer::Add, u64::wrapping_add);
    integer("integer sub", Integer::Sub, u64::wrapping_sub);
    integer("integer and", Integer::And, |a, b| a & b);
    integer("integer and not", Integer::AndNot, |a, b| !a & b);
    integer("integer or", Integer::Or, |a, b| a | b);
    integer("integer xor", Integer::Xor, |a, b| a ^ b);
    for n in [0, 1, 52, 63] {
        let shift = |op| move |asm: &mut Assembler, s| asm.integer_shift(op, s, RESULT, A, n);
        check("left", shift(LaneShift::Left), |a, _, _| a << n);
        check("right", shift(LaneShift::Right), |a, _, _| a >> n);
        let signed = |asm: &mut Assembler, s: Shape| {
            if asm.level() == Level::Avx512 {
                return asm.integer_shift(LaneShift::RightSigned, s, RESULT, A, n);
            }
            // AVX2 has no such instruction: shifted bits, and the sign above them.
            let sign = asm.constant_block([1u64 << (63 - n); 8]);
            asm.integer_shift(LaneShift::Right, s, RESULT, A, n);
            asm.integer(Integer::Xor, s, RESULT, RESULT, Mem::Constant(sign));
            asm.integer(Integer::Sub, s, RESULT, RESULT, Mem::Constant(sign));
        };
        check("right, signed", signed, |a, _, _| (a as i64 >> n) as u64);
    }
}

/// Writes all ones if the comparison holds, in the level's own way.
fn chosen(asm: &mut Assembler, shape: Shape, predicate: Predicate) {
    if asm.level() == Level::Avx512 {
        asm.compare_mask(predicate, shape, Mask(1), A, B);
        asm.mask_spread(shape, RESULT, Mask(1));
        asm.mask_of_signs(shape, Mask(2), RESULT);
        asm.mask_spread(shape, RESULT, Mask(2));
    } else {
        asm.compare(predicate, shape, RESULT, A, B);
    }
}

#[test]
fn comparisons() {
    let predicates: [(Predicate, Holds<f64>); 15] = [
        (Predicate::Equal, |a, b| a == b),
        (Predicate::Unordered, |a, b| a.is_nan() || b.is_nan()),
        (Predicate::NotEqual, |a, b| a != b),
        (Predicate::Ordered, |a, b| !a.is_nan() && !b.is_nan()),
        (Predicate::False, |_, _| false),
        (Predicate::OrderedNotEqual, |a, b| a != b && !a.is_nan() && !b.is_nan()),
        (Predicate::True, |_, _| true),
        (Predicate::Less, |a, b| a < b),
        (Predicate::LessEqual, |a, b| a <= b),
        (Predicate::NotLess, |a, b| !(a < b)),
        (Predicate::NotLessEqual, |a, b| !(a <= b)),
        (Predicate::NotGreaterEqual, |a, b| !(a >= b)),
        (Predicate::NotGreater, |a, b| !(a > b)),
        (Predicate::GreaterEqual, |a, b| a >= b),
        (Predicate::Greater, |a, b| a > b),
    ];
    let ones = |holds: bool| if holds { u64::MAX } else { 0 };
    for (predicate, f) in predicates {
        let wanted = |a: u64, b: u64, _: u64| ones(f(f64::from_bits(a), f64::from_bits(b)));
        check(&format!("{predicate:?}"), |asm, s| chosen(asm, s, predicate), wanted);
        // Both forms of selection, by a vector and by a mask.
        let choice = |asm: &mut Assembler, s: Shape| {
            chosen(asm, s, predicate);
            if s != Shape::Eight {
                asm.blend(s, Xmm(4), A, C, RESULT);
            }
            if asm.level() == Level::Avx512 {
                asm.blend_mask(s, RESULT, A, C, Mask(1));
            } else {
                asm.mov(s, RESULT, Xmm(4));
            }
        };
        check(&format!("choice by {predicate:?}"), choice, of(|a, b, c| if f(a, b) { c } else { a }));
    }
    let integers: [(IntegerPredicate, Holds<i64>); 2] =
        [(IntegerPredicate::Equal, |a, b| a == b), (IntegerPredicate::Greater, |a, b| a > b)];
    for (predicate, f) in integers {
        let call = |asm: &mut Assembler, s: Shape| {
            if asm.level() == Level::Avx512 {
                asm.integer_compare_mask(predicate, s, Mask(7), A, B);
                asm.mask_mov(Mask(1), Mask(7));
                asm.mask_logic(MaskLogic::And, Mask(1), Mask(1), Mask(7));
                asm.mask_logic(MaskLogic::AndNot, Mask(2), Mask(7), Mask(7));
                asm.mask_logic(MaskLogic::Or, Mask(1), Mask(1), Mask(2));
                asm.mask_logic(MaskLogic::XorNot, Mask(3), Mask(1), Mask(2));
                asm.mask_not(Mask(3), Mask(3));
                asm.mask_spread(s, RESULT, Mask(3));
            } else {
                asm.integer_compare(predicate, s, RESULT, A, B);
            }
        };
        check(&format!("integer {predicate:?}"), call, |a, b, _| ones(f(a as i64, b as i64)));
    }
}

#[test]
fn numbers_compare_without_sign() {
    for (level, shape) in everywhere().into_iter().filter(|(level, _)| *level == Level::Avx512) {
        for arguments in arguments() {
            let call = |asm: &mut Assembler| {
                asm.at_most_mask(shape, Mask(1), A, B);
                asm.mask_spread(shape, RESULT, Mask(1));
            };
            let expected =
                arguments[0].iter().zip(arguments[1]).map(|(a, b)| u64::MAX * u64::from(a.to_bits() <= b.to_bits()));
            let expected: Vec<u64> = expected.take(lanes(shape)).collect();
            assert_eq!(run(level, shape, arguments, call), expected, "{level:?} {shape:?}");
        }
    }
}

#[test]
fn lanes_move() {
    let a: Lanes = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
    let b = a.map(|x| x + 10.0);
    let moved = |level, shape, call: &dyn Fn(&mut Assembler)| -> Vec<f64> {
        run(level, shape, [a, b, a], call).into_iter().map(f64::from_bits).collect()
    };
    for (level, shape) in everywhere() {
        if shape == Shape::One {
            continue;
        }
        let n = lanes(shape);
        let wanted = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
        let low = moved(level, shape, &|asm| asm.unpack_low(shape, RESULT, A, B));
        assert_eq!(low, wanted(&|i| if i % 2 == 0 { a[i] } else { b[i - 1] }));
        let high = moved(level, shape, &|asm| asm.unpack_high(shape, RESULT, A, B));
        assert_eq!(high, wanted(&|i| if i % 2 == 0 { a[i + 1] } else { b[i] }));
        let pairs = moved(level, shape, &|asm| asm.permute_pairs(shape, RESULT, A, 0b0110_0101));
        assert_eq!(pairs, wanted(&|i| a[i / 2 * 2 + (0b0110_0101 >> i & 1)]));
        let reversed = moved(level, shape, &|asm| asm.permute_fours(shape, RESULT, A, 0b00_01_10_11));
        assert_eq!(reversed, wanted(&|i| a[i / 4 * 4 + 3 - i % 4]));
        let first = moved(level, shape, &|asm| asm.broadcast(shape, RESULT, B));
        assert_eq!(first, wanted(&|_| b[0]));
        for (which, upper) in [(Half::Lower, false), (Half::Upper, true)] {
            let halves = moved(level, shape, &|asm| asm.halves_of_fours(shape, RESULT, A, B, which));
            // As many fours of `a` as fit into half of the result, then as many of `b`.
            let lane = |i: usize| i % (n / 2) / 2 * 4 + i % 2 + if upper { 2 } else { 0 };
            assert_eq!(halves, wanted(&|i| if i < n / 2 { a[lane(i)] } else { b[lane(i)] }));
            let from = if upper { n / 2 } else { 0 };
            // The upper lanes of the result of `half` are zero.
            let half = moved(level, shape, &|asm| asm.half(shape, RESULT, A, which));
            assert_eq!(half, wanted(&|i| if i < n / 2 { a[i + from] } else { 0.0 }));
            let inserted = moved(level, shape, &|asm| asm.insert_half(shape, RESULT, A, B, which));
            assert_eq!(inserted, wanted(&|i| if (from..from + n / 2).contains(&i) { b[i - from] } else { a[i] }));
        }
    }
}

#[test]
fn doubles_to_integers() {
    let call = |rounding: bool| {
        move |asm: &mut Assembler, s: Shape| {
            if asm.level() == Level::Avx512 {
                if rounding { asm.cvtpd2qq(s, RESULT, A) } else { asm.cvttpd2qq(s, RESULT, A) }
            } else {
                // AVX2 only does it for scalars.
                if rounding {
                    asm.cvtsd2si(Gpr::RAX, A);
                } else {
                    asm.cvttsd2si(Gpr::RAX, A);
                }
                asm.movq_from(RESULT, Gpr::RAX);
            }
        }
    };
    // Numbers that do not fit become the minimum integer; Rust's casts saturate.
    let integer = |x: f64| if x.abs() < 9.2e18 { x as i64 } else { i64::MIN } as u64;
    for (level, shape) in everywhere() {
        if level == Level::Avx2 && shape != Shape::One {
            continue;
        }
        for rounding in [false, true] {
            for arguments in arguments() {
                let result = run(level, shape, arguments, |asm| call(rounding)(asm, shape));
                let f = |x: f64| integer(if rounding { x.round_ties_even() } else { x.trunc() });
                let wanted: Vec<u64> = arguments[0][..lanes(shape)].iter().map(|&x| f(x)).collect();
                assert_eq!(result, wanted);
            }
        }
    }
}

#[test]
fn flags_of_comparisons() {
    use crate::asm::Condition as C;
    let conditions: [(C, Holds<f64>); 6] = [
        (C::Below, |a, b| !(a >= b)),
        (C::AboveEqual, |a, b| a >= b),
        (C::BelowEqual, |a, b| !(a > b)),
        (C::Above, |a, b| a > b),
        (C::Parity, |a, b| a.is_nan() || b.is_nan()),
        (C::NoParity, |a, b| !a.is_nan() && !b.is_nan()),
    ];
    for (condition, f) in conditions {
        for (level, shape) in everywhere().into_iter().filter(|(_, shape)| *shape == Shape::One) {
            for arguments in arguments() {
                let result = run(level, shape, arguments, |asm| {
                    asm.mov_ri(Gpr::RAX, -1);
                    asm.compare_flags(A, B);
                    asm.setcc(condition, Gpr::RAX);
                    asm.movzx_byte(Gpr::RAX, Gpr::RAX);
                    asm.movq_from(RESULT, Gpr::RAX);
                });
                let [a, b, _] = arguments.map(|lanes| lanes[0]);
                assert_eq!(result, [u64::from(f(a, b))], "{condition:?} of {a} and {b}");
            }
        }
    }
}

#[test]
fn flags_of_signs() {
    use crate::asm::Condition;
    // Zero flag: no common sign; carry flag: `a` has all signs of `b`. A scalar's 16 bytes have zero above.
    for (level, shape) in everywhere().into_iter().filter(|(_, shape)| *shape != Shape::Eight) {
        for arguments in arguments() {
            let flag = |condition| {
                let result = run(level, shape, arguments, |asm| {
                    asm.mov_ri(Gpr::RAX, 0);
                    asm.test_signs(shape, A, B);
                    asm.setcc(condition, Gpr::RAX);
                    asm.movq_from(RESULT, Gpr::RAX);
                });
                result[0] == 1
            };
            let [a, b, _] = arguments;
            let signs = || (0..lanes(shape)).map(|i| (a[i].is_sign_negative(), b[i].is_sign_negative()));
            assert_eq!(flag(Condition::Equal), signs().all(|(a, b)| !(a && b)));
            assert_eq!(flag(Condition::Below), signs().all(|(a, b)| a || !b));
        }
    }
}
