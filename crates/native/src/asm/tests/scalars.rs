//! Fast scalar encodings have the bytes of the general ones.

use crate::Level;
use crate::asm::{Arith, Assembler, Fma, FmaOrder, Gpr, Mem, Scalar, Shape, Source, Xmm};

/// Returns the bytes of several instructions, including constants; `None` if they have a fault.
fn bytes(level: Level, call: impl FnOnce(&mut Assembler)) -> Option<Vec<u8>> {
    let mut asm = Assembler::new(level);
    let _ = [asm.new_constant(1), asm.new_constant(2)];
    call(&mut asm);
    asm.finish().ok().map(|code| code.bytes().to_vec())
}

/// Returns last operands in both forms: registers, constants, and memory by each base at displacements around all
/// limits.
fn operands() -> Vec<(Source, Scalar)> {
    let mut all: Vec<(Source, Scalar)> = (0..34).map(|x| (Source::Reg(Xmm(x)), Xmm(x).into())).collect();
    all.extend([0, 8].map(|at| (Source::Mem(Mem::Constant(at)), Scalar::constant(at))));
    let disps = [0, 8, 4, 127, 128, -128, -129, -136, 1016, 1017, 1024, -1024, -1032, 1 << 20, i32::MAX, i32::MIN];
    for base in (0..16).map(Gpr) {
        all.extend(disps.map(|disp| (Source::Mem(Mem::At { base, disp }), Scalar::at(base, disp))));
    }
    all
}

#[test]
fn scalars_have_the_bytes_of_the_general_form() {
    for level in Level::ALL {
        for (source, scalar) in operands() {
            for (d, a) in [(0, 0), (7, 8), (8, 7), (15, 15), (16, 1), (1, 16), (31, 31), (32, 0), (0, 40)] {
                let (d, a) = (Xmm(d), Xmm(a));
                for op in [Arith::Add, Arith::Sub, Arith::Mul, Arith::Div, Arith::Min, Arith::Max] {
                    let long = bytes(level, |asm| asm.arith(op, Shape::One, d, a, source));
                    assert_eq!(
                        bytes(level, |asm| asm.arith_scalar(op, d, a, scalar)),
                        long,
                        "{op:?} {d:?} {a:?} {source:?}"
                    );
                }
                for op in [Fma::MulAdd, Fma::MulSub, Fma::NegMulAdd] {
                    for order in [FmaOrder::O132, FmaOrder::O213, FmaOrder::O231] {
                        let long = bytes(level, |asm| asm.fma(op, order, Shape::One, d, a, source));
                        let short = bytes(level, |asm| asm.fma_scalar(op, order, d, a, scalar));
                        assert_eq!(short, long, "{op:?} {order:?} {d:?} {a:?} {source:?}");
                    }
                }
                if let Source::Mem(mem) = source {
                    let load = |asm: &mut Assembler| asm.load_scalar(d, scalar);
                    assert_eq!(bytes(level, load), bytes(level, |asm| asm.load(Shape::One, d, mem)));
                    let store = |asm: &mut Assembler| asm.store_scalar(scalar, d);
                    assert_eq!(bytes(level, store), bytes(level, |asm| asm.store(Shape::One, mem, d)));
                }
            }
        }
    }
}
