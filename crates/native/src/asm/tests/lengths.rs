//! The shortest encodings, by hand. For random instructions it is also checked that none is longer than iced's
//! encoding, and that EVEX is only used if it is required or shorter.

use crate::Level;
use crate::asm::{
    Alu, Arith, Assembler, Fma, FmaOrder, Gpr, Integer, Logic, Mask, Mem, Predicate, Shape, Shift, Source, Xmm,
};

fn bytes(level: Level, call: impl FnOnce(&mut Assembler)) -> Vec<u8> {
    let mut asm = Assembler::new(level);
    call(&mut asm);
    let code = asm.finish().unwrap();
    code.bytes()[..code.instructions].to_vec()
}

fn at(base: Gpr, disp: i32) -> Mem {
    Mem::At { base, disp }
}

#[test]
fn vex_takes_two_bytes_where_it_can() {
    let add = |d, a, b| bytes(Level::Avx2, |asm| asm.arith(Arith::Add, Shape::One, Xmm(d), Xmm(a), Xmm(b)));
    assert_eq!(add(1, 2, 3), [0xC5, 0xEB, 0x58, 0xCB]);
    assert_eq!(add(9, 2, 3), [0xC5, 0x6B, 0x58, 0xCB]);
    // The sources are exchanged: the second one's high bit does not fit the short prefix.
    assert_eq!(add(1, 2, 11), [0xC5, 0xA3, 0x58, 0xCA]);
    assert_eq!(add(1, 10, 11), [0xC4, 0xC1, 0x2B, 0x58, 0xCB]);
    let len = |call: fn(&mut Assembler)| bytes(Level::Avx512, call).len();
    let (x1, x2, x11) = (Xmm(1), Xmm(2), Xmm(11));
    assert_eq!(len(|asm| asm.arith(Arith::Mul, Shape::Four, Xmm(1), Xmm(2), Xmm(11))), 4);
    assert_eq!(len(|asm| asm.logic(Logic::Xor, Shape::Four, Xmm(1), Xmm(2), Xmm(11))), 4);
    assert_eq!(len(|asm| asm.integer(Integer::Add, Shape::Four, Xmm(1), Xmm(2), Xmm(11))), 4);
    // These do not commute.
    for op in [Arith::Sub, Arith::Div, Arith::Min, Arith::Max] {
        assert_eq!(bytes(Level::Avx2, |asm| asm.arith(op, Shape::Four, x1, x2, x11)).len(), 5);
    }
    assert_eq!(len(|asm| asm.logic(Logic::AndNot, Shape::Four, Xmm(1), Xmm(2), Xmm(11))), 5);
    // A move has a form for each direction.
    assert_eq!(len(|asm| asm.mov(Shape::Four, Xmm(1), Xmm(11))), 4);
    assert_eq!(len(|asm| asm.mov(Shape::Four, Xmm(11), Xmm(1))), 4);
    assert_eq!(len(|asm| asm.mov(Shape::Four, Xmm(11), Xmm(12))), 5);
    assert_eq!(len(|asm| asm.zero(Xmm(1))), 4);
    assert_eq!(len(Assembler::vzeroupper), 3);
    assert_eq!(len(|asm| asm.mask_test(Mask(1), Mask(1))), 4);
    assert_eq!(len(|asm| asm.fma(Fma::MulAdd, FmaOrder::O231, Shape::One, Xmm(1), Xmm(2), Xmm(3))), 5);
    assert_eq!(len(|asm| asm.compare(Predicate::Less, Shape::Four, Xmm(1), Xmm(2), Xmm(3))), 5);
}

#[test]
fn displacements_take_a_byte_where_they_can() {
    let load = |level, shape, base, disp| bytes(level, |asm| asm.load(shape, Xmm(1), at(base, disp))).len();
    for level in Level::ALL {
        assert_eq!(load(level, Shape::One, Gpr::RDI, 0), 4);
        assert_eq!(load(level, Shape::One, Gpr::RDI, 127), 5);
        assert_eq!(load(level, Shape::One, Gpr::RDI, -128), 5);
        assert_eq!(load(level, Shape::One, Gpr::RDI, 129), 8);
        assert_eq!(load(level, Shape::One, Gpr::RBP, 0), 5);
        assert_eq!(load(level, Shape::One, Gpr::RSP, 0), 5);
        assert_eq!(load(level, Shape::One, Gpr::R12, 0), 6);
        assert_eq!(load(level, Shape::One, Gpr::R13, 0), 6);
    }
    // EVEX counts in units of the operand's size, which saves more than its prefix costs.
    assert_eq!(load(Level::Avx2, Shape::One, Gpr::RDI, 128), 8);
    assert_eq!(load(Level::Avx512, Shape::One, Gpr::RDI, 128), 7);
    assert_eq!(load(Level::Avx512, Shape::One, Gpr::RDI, 1016), 7);
    assert_eq!(load(Level::Avx512, Shape::One, Gpr::RDI, 1024), 8);
    assert_eq!(load(Level::Avx512, Shape::Four, Gpr::RSP, 4064), 8);
    assert_eq!(load(Level::Avx512, Shape::Four, Gpr::RSP, 4096), 9);
    assert_eq!(load(Level::Avx512, Shape::Eight, Gpr::RDI, 64 * 127), 7);
    assert_eq!(load(Level::Avx512, Shape::Eight, Gpr::RDI, 64 * -128), 7);
    assert_eq!(load(Level::Avx512, Shape::Eight, Gpr::RDI, 8), 10);
    let add = |source| bytes(Level::Avx512, |asm| asm.arith(Arith::Add, Shape::Eight, Xmm(1), Xmm(2), source));
    assert_eq!(add(Source::Broadcast(at(Gpr::RDI, 8))).len(), 7);
    assert_eq!(add(Source::Broadcast(at(Gpr::RDI, 1016))).len(), 7);
    assert_eq!(add(Source::Broadcast(at(Gpr::RDI, 1024))).len(), 10);
}

#[test]
fn a_sum_of_two_registers_has_the_better_one_as_its_base() {
    let load = |base, index, scale| {
        let mem = Mem::Indexed { base, index, scale, disp: 0 };
        bytes(Level::Avx2, |asm| asm.mov_rm(Gpr::RAX, mem)).len()
    };
    assert_eq!(load(Gpr::RBP, Gpr::RCX, 1), 4);
    assert_eq!(load(Gpr::R13, Gpr::RCX, 1), 4);
    assert_eq!(load(Gpr::R13, Gpr::RCX, 2), 5);
    assert_eq!(load(Gpr::RBP, Gpr::R13, 1), 5);
    assert_eq!(load(Gpr::RCX, Gpr::RSP, 1), 4);
}

#[test]
fn numbers_take_their_fewest_bytes() {
    let mov = |dst, value| bytes(Level::Avx2, |asm| asm.mov_ri(dst, value)).len();
    assert_eq!(mov(Gpr::RAX, 0), 2);
    assert_eq!(mov(Gpr::R9, 0), 3);
    assert_eq!(mov(Gpr::RAX, 1), 5);
    assert_eq!(mov(Gpr::R9, 0xFFFF_FFFF), 6);
    assert_eq!(mov(Gpr::RAX, -1), 7);
    assert_eq!(mov(Gpr::R9, 1 << 32), 10);
    let add = |dst, value| bytes(Level::Avx2, |asm| asm.alu_ri(Alu::Add, dst, value)).len();
    assert_eq!(add(Gpr::RCX, 127), 4);
    assert_eq!(add(Gpr::RCX, -128), 4);
    assert_eq!(add(Gpr::RCX, 128), 7);
    assert_eq!(add(Gpr::RAX, 128), 6);
    assert_eq!(bytes(Level::Avx2, |asm| asm.imul_rri(Gpr::RCX, Gpr::RDX, 100)).len(), 4);
    assert_eq!(bytes(Level::Avx2, |asm| asm.imul_rri(Gpr::RCX, Gpr::RDX, 1000)).len(), 7);
    assert_eq!(bytes(Level::Avx2, |asm| asm.shift_ri(Shift::Left, Gpr::RCX, 1)).len(), 3);
    assert_eq!(bytes(Level::Avx2, |asm| asm.shift_ri(Shift::Left, Gpr::RCX, 2)).len(), 4);
    assert_eq!(bytes(Level::Avx2, |asm| asm.push(Gpr::RBX)).len(), 1);
    assert_eq!(bytes(Level::Avx2, |asm| asm.push(Gpr::R12)).len(), 2);
    assert_eq!(bytes(Level::Avx2, |asm| asm.call_r(Gpr::RAX)).len(), 2);
    assert_eq!(bytes(Level::Avx2, |asm| asm.inc(Gpr::RAX)).len(), 3);
}
