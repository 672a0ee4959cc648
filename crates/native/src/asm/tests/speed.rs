//! Encoding speed: `cargo test --release -p chainrule-native speed -- --ignored --nocapture`.

use crate::Level;
use crate::asm::{Arith, Assembler, Fma, FmaOrder, Gpr, Mem, Shape, Source, Xmm};
use std::hint::black_box;
use std::time::{Duration, Instant};

const INSTRUCTIONS: usize = 1_000_000;

/// Returns the best of some runs, and the number of bytes.
fn best(level: Level, mut call: impl FnMut(&mut Assembler, usize)) -> (Duration, usize) {
    let runs = (0..7).map(|_| {
        let start = Instant::now();
        let mut asm = Assembler::with_room(level, 8 * INSTRUCTIONS, 0);
        for i in 0..INSTRUCTIONS {
            call(&mut asm, i);
        }
        let code = black_box(asm.finish().unwrap());
        (start.elapsed(), code.len)
    });
    runs.min().unwrap()
}

#[test]
#[ignore = "a measurement"]
fn speed() {
    // Register numbers by a mask, because a division takes as long as encoding an instruction.
    let x = |i: usize, n: usize| Xmm((i & (n - 1)) as u8);
    let at = |i: usize| Mem::At { base: Gpr::RDI, disp: 8 * (i & 1023) as i32 };
    let mix = |shape: Shape, registers: usize| {
        move |asm: &mut Assembler, i: usize| {
            let (d, a, b) = (x(7 * i, registers), x(5 * i + 1, registers), x(3 * i + 2, registers));
            match i % 8 {
                0 => asm.load(shape, d, at(i)),
                1 => asm.arith(Arith::Mul, shape, d, a, at(i)),
                2 | 5 => asm.arith(Arith::Add, shape, d, a, b),
                3 => asm.fma(Fma::MulAdd, FmaOrder::O231, shape, d, a, b),
                4 | 6 => asm.arith(Arith::Mul, shape, d, a, b),
                _ => asm.store(shape, at(i), d),
            }
        }
    };
    let report = |name: &str, (time, bytes): (Duration, usize)| {
        let ns = time.as_secs_f64() * 1e9 / INSTRUCTIONS as f64;
        println!("{name}: {ns:.2} ns and {:.2} bytes per instruction", bytes as f64 / INSTRUCTIONS as f64);
    };
    report("one lane, AVX2", best(Level::Avx2, mix(Shape::One, 16)));
    report("one lane, AVX-512", best(Level::Avx512, mix(Shape::One, 32)));
    report("four lanes, AVX2", best(Level::Avx2, mix(Shape::Four, 16)));
    report("eight lanes, AVX-512", best(Level::Avx512, mix(Shape::Eight, 32)));
    let load = |asm: &mut Assembler, i: usize| asm.load(Shape::One, x(7 * i, 16), at(i));
    report("loads", best(Level::Avx2, load));
    let add = |asm: &mut Assembler, i: usize| {
        asm.arith(Arith::Add, Shape::One, x(7 * i, 16), x(5 * i + 1, 16), x(3 * i + 2, 16));
    };
    report("additions of registers", best(Level::Avx2, add));
    let same = |asm: &mut Assembler, i: usize| {
        let offset = asm.constant((i as u64 % 100) << 50);
        asm.arith(Arith::Add, Shape::Eight, x(i, 32), x(i, 32), Source::Broadcast(Mem::Constant(offset)));
    };
    report("additions of 100 constants", best(Level::Avx512, same));
    let many = |asm: &mut Assembler, i: usize| {
        let offset = asm.constant((i as f64).to_bits());
        asm.arith(Arith::Add, Shape::One, x(i, 32), x(i, 32), Mem::Constant(offset));
    };
    report("additions of different constants", best(Level::Avx512, many));
}
