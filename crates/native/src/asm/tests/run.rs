//! Execution of small functions.

use crate::Level;
use crate::asm::{
    Alu, Arith, Assembler, Condition, Fma, FmaOrder, Gpr, Half, Integer, LaneShift, Logic, Mask, MaskLogic, Mem,
    Predicate, Rounding, Shape, Source, Xmm,
};
use crate::executable::{Executable, Policy};

/// Returns the levels of this machine.
fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| {
        let missing = level.missing();
        if !missing.is_empty() {
            println!("skipped {level:?}: this machine lacks {missing:?}");
        }
        missing.is_empty()
    })
}

/// Runs code that takes pointers to input and output and a number, and returns a number.
fn run(asm: Assembler, input: &[f64], output: &mut [f64], n: i64) -> i64 {
    let code = Executable::new(asm.finish().unwrap().bytes(), Policy::Ask).unwrap();
    let entry = code.entry(0).unwrap();
    // SAFETY: each test's code follows the C calling convention for these arguments, preserves the callee-saved
    // registers, only accesses the slices that the test passes, and returns. `code` lives until after the call.
    #[allow(unsafe_code)]
    unsafe {
        let function: extern "sysv64" fn(*const f64, *mut f64, i64) -> i64 = std::mem::transmute(entry);
        function(input.as_ptr(), output.as_mut_ptr(), n)
    }
}

const INPUT: Gpr = Gpr::RDI;
const OUTPUT: Gpr = Gpr::RSI;
const N: Gpr = Gpr::RDX;

fn at(base: Gpr, disp: i32) -> Mem {
    Mem::At { base, disp }
}

fn shapes(level: Level) -> &'static [(Shape, usize)] {
    match level {
        Level::Avx2 => &[(Shape::One, 1), (Shape::Four, 4)],
        Level::Avx512 => &[(Shape::One, 1), (Shape::Four, 4), (Shape::Eight, 8)],
    }
}

#[test]
fn two_numbers_are_added() {
    for level in levels() {
        let mut asm = Assembler::new(level);
        asm.load(Shape::One, Xmm(0), at(INPUT, 0));
        asm.arith(Arith::Add, Shape::One, Xmm(0), Xmm(0), at(INPUT, 8));
        asm.store(Shape::One, at(OUTPUT, 0), Xmm(0));
        asm.mov_rr(Gpr::RAX, N);
        asm.ret();
        let mut output = [0.0; 2];
        assert_eq!(run(asm, &[1.5, 2.25], &mut output, 77), 77);
        assert_eq!(output, [3.75, 0.0]);
    }
}

#[test]
fn a_loop_runs_over_an_array() {
    for level in levels() {
        for &(shape, lanes) in shapes(level) {
            // output[i] = |input[i]| * 3 - 1, with a broadcast, a block and a fused operation.
            let mut asm = Assembler::new(level);
            let three = asm.constant(3.0f64.to_bits());
            let signs = asm.constant_block([!0 >> 1; 8]);
            let minus_one = asm.constant((-1.0f64).to_bits());
            let (end, head) = (asm.new_label(), asm.new_label());
            let i = Gpr::R9;
            asm.test_rr(N, N);
            asm.jcc(Condition::LessEqual, end);
            asm.broadcast(shape, Xmm(2), Mem::Constant(three));
            asm.broadcast(shape, Xmm(12), Mem::Constant(minus_one));
            asm.mov_ri(i, 0);
            asm.bind(head);
            asm.load(shape, Xmm(1), Mem::Indexed { base: INPUT, index: i, scale: 8, disp: 0 });
            asm.logic(Logic::And, shape, Xmm(1), Xmm(1), Mem::Constant(signs));
            asm.fma(Fma::MulAdd, FmaOrder::O213, shape, Xmm(1), Xmm(2), Xmm(12));
            asm.store(shape, Mem::Indexed { base: OUTPUT, index: i, scale: 8, disp: 0 }, Xmm(1));
            asm.alu_ri(Alu::Add, i, lanes as i32);
            asm.alu_rr(Alu::Cmp, i, N);
            asm.jcc(Condition::Less, head);
            asm.bind(end);
            asm.mov_rr(Gpr::RAX, i);
            asm.vzeroupper();
            asm.ret();
            let input: Vec<f64> = (0..40).map(|i| f64::from(i - 20) * 0.5).collect();
            let mut output = vec![0.0; 40];
            assert_eq!(run(asm, &input, &mut output, 32), 32);
            let wanted: Vec<f64> = (0..40).map(|i| if i < 32 { input[i].abs() * 3.0 - 1.0 } else { 0.0 }).collect();
            assert_eq!(output, wanted);
        }
    }
}

#[test]
fn a_reduction_ends_in_one_lane() {
    for level in levels() {
        for &(shape, lanes) in shapes(level) {
            let mut asm = Assembler::new(level);
            let sum = Xmm(15);
            asm.load(shape, sum, at(INPUT, 0));
            let mut narrower = shape;
            while narrower != Shape::One {
                asm.half(narrower, Xmm(3), sum, Half::Upper);
                let half = if narrower == Shape::Eight { Shape::Four } else { Shape::One };
                if half == Shape::One {
                    // Two lanes remain: as a scalar, once for each.
                    asm.unpack_high(Shape::One, Xmm(4), Xmm(3), Xmm(3));
                    asm.unpack_high(Shape::One, Xmm(5), sum, sum);
                    asm.arith(Arith::Add, Shape::One, Xmm(4), Xmm(4), Xmm(5));
                    asm.arith(Arith::Add, Shape::One, sum, sum, Xmm(3));
                    asm.arith(Arith::Add, Shape::One, sum, sum, Xmm(4));
                } else {
                    asm.arith(Arith::Add, half, sum, sum, Xmm(3));
                }
                narrower = half;
            }
            asm.store(Shape::One, at(OUTPUT, 0), sum);
            asm.vzeroupper();
            asm.ret();
            let input = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];
            let mut output = [0.0];
            run(asm, &input, &mut output, 0);
            assert_eq!(output[0], input[..lanes].iter().sum::<f64>());
        }
    }
}

#[test]
fn lanes_are_chosen_by_a_comparison() {
    let input = [1.0, -2.0, f64::NAN, 4.0, -0.0, 0.0, -7.5, f64::INFINITY];
    for level in levels() {
        for &(shape, lanes) in shapes(level) {
            // output = input < 0 ? floor(input) : sqrt(input)
            let mut asm = Assembler::new(level);
            asm.load(shape, Xmm(0), at(INPUT, 0));
            asm.zero(Xmm(1));
            asm.round(Rounding::Floor, shape, Xmm(2), Xmm(0));
            asm.sqrt(shape, Xmm(3), Xmm(0));
            if level == Level::Avx512 {
                asm.compare_mask(Predicate::Less, shape, Mask(2), Xmm(0), Xmm(1));
                asm.blend_mask(shape, Xmm(20), Xmm(3), Xmm(2), Mask(2));
                asm.mov(shape, Xmm(3), Xmm(20));
                asm.mask_to(Gpr::RAX, Mask(2));
            } else {
                asm.compare(Predicate::Less, shape, Xmm(4), Xmm(0), Xmm(1));
                asm.blend(shape, Xmm(3), Xmm(3), Xmm(2), Xmm(4));
                asm.signs_to(shape, Gpr::RAX, Xmm(4));
            }
            asm.store(shape, at(OUTPUT, 0), Xmm(3));
            asm.vzeroupper();
            asm.ret();
            let mut output = [0.0; 8];
            let bits = run(asm, &input, &mut output, 0);
            let negative = (0..lanes).filter(|&i| input[i] < 0.0).map(|i| 1 << i).sum::<i64>();
            assert_eq!(bits, negative);
            for (x, y) in input.into_iter().zip(output).take(lanes) {
                let wanted = if x < 0.0 { x.floor() } else { x.sqrt() };
                assert!(y.to_bits() == wanted.to_bits() || y.is_nan() && wanted.is_nan(), "{x}: {y}");
            }
        }
    }
}

#[test]
fn tails_touch_only_their_lanes() {
    for level in levels() {
        let lanes = if level == Level::Avx512 { 8 } else { 4 };
        for n in 0..=lanes {
            let mut asm = Assembler::new(level);
            if level == Level::Avx512 {
                asm.mov_ri(Gpr::RAX, (1 << n) - 1);
                asm.mask_from(Mask(1), Gpr::RAX);
                asm.load_zeroing(Shape::Eight, Xmm(30), Mask(1), at(INPUT, 0));
                asm.arith(Arith::Add, Shape::Eight, Xmm(30), Xmm(30), Xmm(30));
                asm.store_masked(Shape::Eight, at(OUTPUT, 0), Mask(1), Xmm(30));
            } else {
                let lane = |i: i64| if i < n { u64::MAX } else { 0 };
                let mask = asm.constant_block([lane(0), lane(1), lane(2), lane(3)]);
                asm.load(Shape::Four, Xmm(9), Mem::Constant(mask));
                asm.load_where(Shape::Four, Xmm(0), Xmm(9), at(INPUT, 0));
                asm.arith(Arith::Add, Shape::Four, Xmm(0), Xmm(0), Xmm(0));
                asm.store_where(Shape::Four, at(OUTPUT, 0), Xmm(9), Xmm(0));
            }
            asm.vzeroupper();
            asm.ret();
            let input: Vec<f64> = (0..n).map(|i| i as f64 + 0.25).collect();
            let mut output = vec![-1.0; 8];
            run(asm, &input, &mut output, 0);
            for (i, y) in output.into_iter().enumerate() {
                assert_eq!(y, input.get(i).map_or(-1.0, |x| x + x));
            }
        }
    }
}

#[test]
fn integers_go_to_doubles_and_back() {
    for level in levels() {
        let mut asm = Assembler::new(level);
        asm.zero(Xmm(3));
        asm.cvtsi2sd(Xmm(3), Xmm(3), N);
        asm.store(Shape::One, at(OUTPUT, 0), Xmm(3));
        // The exponent, by shifts of lanes.
        asm.integer_shift(LaneShift::Right, Shape::One, Xmm(4), Xmm(3), 52);
        asm.movq_to(Gpr::RCX, Xmm(4));
        asm.mov_ri(Gpr::R8, 1023);
        asm.movq_from(Xmm(5), Gpr::R8);
        asm.integer(Integer::Sub, Shape::One, Xmm(4), Xmm(4), Xmm(5));
        asm.movq_to(Gpr::RCX, Xmm(4));
        asm.cvttsd2si(Gpr::RAX, Xmm(3));
        asm.imul_rri(Gpr::RAX, Gpr::RAX, 1000);
        asm.alu_rr(Alu::Add, Gpr::RAX, Gpr::RCX);
        asm.ret();
        let mut output = [0.0];
        assert_eq!(run(asm, &[], &mut output, 1_000_003), 1_000_003_000 + 19);
        assert_eq!(output, [1_000_003.0]);
    }
}

#[test]
fn divisions_branches_and_calls_of_labels() {
    for level in levels() {
        // gcd(|n|, 84) by Euclid's algorithm in a subroutine: rax, rcx to rax.
        let mut asm = Assembler::new(level);
        let (gcd, head, done, positive) = (asm.new_label(), asm.new_label(), asm.new_label(), asm.new_label());
        asm.push(Gpr::RBX);
        asm.mov_rr(Gpr::RAX, N);
        asm.test_rr(Gpr::RAX, Gpr::RAX);
        asm.jcc(Condition::NotNegative, positive);
        asm.neg(Gpr::RAX);
        asm.bind(positive);
        asm.mov_ri(Gpr::RCX, 84);
        asm.call_label(gcd);
        asm.pop(Gpr::RBX);
        asm.ret();
        asm.bind(gcd);
        asm.bind(head);
        asm.test_rr(Gpr::RCX, Gpr::RCX);
        asm.jcc(Condition::Equal, done);
        asm.cqo();
        asm.idiv(Gpr::RCX);
        asm.mov_rr(Gpr::RAX, Gpr::RCX);
        asm.mov_rr(Gpr::RCX, Gpr::RDX);
        asm.jmp(head);
        asm.bind(done);
        asm.ret();
        assert_eq!(run(asm, &[], &mut [], -126), 42);
    }
}

#[test]
fn overflow_is_seen() {
    for level in levels() {
        for (n, wanted) in [(5, 10), (i64::MAX, -1), (i64::MIN, -1)] {
            let mut asm = Assembler::new(level);
            let overflow = asm.new_label();
            asm.mov_rr(Gpr::RAX, N);
            asm.alu_rr(Alu::Add, Gpr::RAX, N);
            asm.jcc(Condition::Overflow, overflow);
            asm.ret();
            asm.bind(overflow);
            asm.mov_ri(Gpr::RAX, -1);
            asm.ret();
            assert_eq!(run(asm, &[], &mut [], n), wanted);
        }
    }
}

extern "sysv64" fn halved(x: f64) -> f64 {
    x / 2.0
}

#[test]
fn functions_outside_are_called() {
    for level in levels() {
        let mut asm = Assembler::new(level);
        let function: extern "sysv64" fn(f64) -> f64 = halved;
        let pointer = asm.constant(function as usize as u64);
        asm.push(OUTPUT);
        asm.load(Shape::One, Xmm(0), at(INPUT, 0));
        asm.call_m(Mem::Constant(pointer));
        asm.pop(OUTPUT);
        asm.store(Shape::One, at(OUTPUT, 0), Xmm(0));
        asm.push(OUTPUT);
        asm.mov_ri(Gpr::RAX, function as usize as i64);
        asm.call_r(Gpr::RAX);
        asm.pop(OUTPUT);
        asm.store(Shape::One, at(OUTPUT, 8), Xmm(0));
        asm.ret();
        let mut output = [0.0; 2];
        run(asm, &[5.0], &mut output, 0);
        assert_eq!(output, [2.5, 1.25]);
    }
}

#[test]
fn broadcasts_and_masks_of_avx512() {
    if levels().all(|level| level != Level::Avx512) {
        return;
    }
    let mut asm = Assembler::new(Level::Avx512);
    asm.load(Shape::Eight, Xmm(16), at(INPUT, 0));
    asm.arith(Arith::Sub, Shape::Eight, Xmm(17), Xmm(16), Source::Broadcast(at(INPUT, 24)));
    asm.mask_of_signs(Shape::Eight, Mask(3), Xmm(17));
    asm.mask_not(Mask(4), Mask(3));
    asm.mask_logic(MaskLogic::Xor, Mask(4), Mask(4), Mask(3));
    asm.broadcast_gpr(Shape::Eight, Xmm(18), N);
    asm.cvtqq2pd(Shape::Eight, Xmm(18), Xmm(18));
    asm.mov_merging(Shape::Eight, Xmm(17), Mask(3), Xmm(18));
    asm.store(Shape::Eight, at(OUTPUT, 0), Xmm(17));
    asm.mask_test(Mask(4), Mask(4));
    asm.mov_ri_keeping_flags(Gpr::RAX, 0);
    asm.setcc(Condition::Below, Gpr::RAX);
    asm.vzeroupper();
    asm.ret();
    let mut output = [0.0; 8];
    let all_ones = run(asm, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &mut output, -9);
    assert_eq!(output, [-9.0, -9.0, -9.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(all_ones, 1);
}
