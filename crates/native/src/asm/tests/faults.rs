//! Invalid requests are reported as bugs, never as code.

use crate::Level;
use crate::asm::{
    Arith, Assembler, Gpr, Label, Logic, Mask, Mem, Predicate, Rounding, Shape, Shift, Source, Xmm, displacement,
};
use chainrule_base::diagnostic::Kind;

fn fault(level: Level, call: impl FnOnce(&mut Assembler)) -> String {
    let mut asm = Assembler::new(level);
    asm.ret();
    call(&mut asm);
    asm.ret();
    let message = asm.finish().unwrap_err();
    assert_eq!(message.kind, Kind::Bug);
    message.reason.unwrap()
}

const AT: Mem = Mem::At { base: Gpr::RDI, disp: 8 };
const LOW: Xmm = Xmm(1);
const HIGH: Xmm = Xmm(17);

#[test]
fn avx512_at_a_lower_level() {
    let takes = "a register, a length, a mask or a broadcast that takes AVX-512, at a lower level";
    let calls: [fn(&mut Assembler); 10] = [
        |asm| asm.arith(Arith::Add, Shape::One, HIGH, LOW, LOW),
        |asm| asm.arith(Arith::Add, Shape::One, LOW, HIGH, LOW),
        |asm| asm.arith(Arith::Add, Shape::One, LOW, LOW, HIGH),
        |asm| asm.arith(Arith::Add, Shape::Eight, LOW, LOW, LOW),
        |asm| asm.arith(Arith::Add, Shape::Four, LOW, LOW, Source::Broadcast(AT)),
        |asm| asm.logic(Logic::And, Shape::One, LOW, LOW, Source::Broadcast(AT)),
        |asm| asm.compare_mask(Predicate::Less, Shape::Four, Mask(1), LOW, LOW),
        |asm| asm.mov_merging(Shape::Four, LOW, Mask(1), LOW),
        |asm| asm.round(Rounding::Floor, Shape::Four, HIGH, AT),
        |asm| asm.broadcast_gpr(Shape::Four, LOW, Gpr::RAX),
    ];
    for call in calls {
        assert_eq!(fault(Level::Avx2, call), takes);
    }
    assert_eq!(fault(Level::Avx2, |asm| asm.mask_not(Mask(1), Mask(2))), "a mask register at a level without them");
}

#[test]
fn operators_without_an_avx512_form() {
    let lacks = "a register, a length or a broadcast that an instruction of AVX2 does not take";
    let calls: [fn(&mut Assembler); 5] = [
        |asm| asm.compare(Predicate::Less, Shape::Eight, LOW, LOW, LOW),
        |asm| asm.compare(Predicate::Less, Shape::Four, HIGH, LOW, LOW),
        |asm| asm.blend(Shape::Four, LOW, HIGH, LOW, LOW),
        |asm| asm.blend(Shape::Four, LOW, LOW, Source::Broadcast(AT), LOW),
        |asm| asm.signs_to(Shape::Eight, Gpr::RAX, LOW),
    ];
    for call in calls {
        assert_eq!(fault(Level::Avx512, call), lacks);
    }
    let blend = |asm: &mut Assembler| asm.blend(Shape::Four, LOW, LOW, LOW, HIGH);
    assert_eq!(fault(Level::Avx512, blend), "a mask in a vector register after the 15th");
}

#[test]
fn registers_that_there_are_not() {
    let after = "a vector register after the 31st";
    assert_eq!(fault(Level::Avx512, |asm| asm.mov(Shape::One, Xmm(32), LOW)), after);
    assert_eq!(fault(Level::Avx512, |asm| asm.mov(Shape::One, LOW, Xmm(32))), after);
    assert_eq!(fault(Level::Avx512, |asm| asm.store(Shape::One, AT, Xmm(200))), after);
    let masks = "k0, or what is no mask register, as a mask";
    assert_eq!(fault(Level::Avx512, |asm| asm.mov_zeroing(Shape::Four, LOW, Mask(0), LOW)), masks);
    assert_eq!(fault(Level::Avx512, |asm| asm.blend_mask(Shape::Four, LOW, LOW, LOW, Mask(8))), masks);
}

#[test]
fn places_that_there_are_not() {
    let index = |scale| Mem::Indexed { base: Gpr::RAX, index: Gpr::RSP, scale, disp: 0 };
    assert_eq!(fault(Level::Avx2, |asm| asm.load(Shape::One, LOW, index(2))), "rsp as an index");
    let both = Mem::Indexed { base: Gpr::RSP, index: Gpr::RSP, scale: 1, disp: 0 };
    assert_eq!(fault(Level::Avx2, |asm| asm.mov_rm(Gpr::RAX, both)), "rsp as an index");
    let scaled = Mem::Indexed { base: Gpr::RAX, index: Gpr::RCX, scale: 3, disp: 0 };
    assert_eq!(fault(Level::Avx2, |asm| asm.lea(Gpr::RAX, scaled)), "a scale other than 1, 2, 4, 8");
    let constant = |asm: &mut Assembler| {
        let last = asm.constant(1);
        asm.load(Shape::One, LOW, Mem::Constant(last + 8));
    };
    assert_eq!(fault(Level::Avx2, constant), "a constant that was not made");
}

#[test]
fn labels_that_there_are_not() {
    let unbound = |asm: &mut Assembler| {
        let label = asm.new_label();
        asm.jmp(label);
    };
    assert_eq!(fault(Level::Avx2, unbound), "a jump to a label that is not bound");
    let twice = |asm: &mut Assembler| {
        let label = asm.new_label();
        asm.bind(label);
        asm.ret();
        asm.bind(label);
    };
    assert_eq!(fault(Level::Avx2, twice), "a label bound twice, or of another assembler");
    let mut other = Assembler::new(Level::Avx2);
    let foreign: Vec<Label> = (0..3).map(|_| other.new_label()).collect();
    assert_eq!(fault(Level::Avx2, |asm| asm.bind(foreign[2])), "a label bound twice, or of another assembler");
    assert_eq!(fault(Level::Avx2, |asm| asm.jmp(foreign[2])), "a jump to a label that is not bound");
}

#[test]
fn the_first_fault_is_told() {
    let two = |asm: &mut Assembler| {
        asm.shift_ri(Shift::Left, Gpr::RAX, 64);
        asm.mov(Shape::Eight, LOW, LOW);
    };
    assert_eq!(fault(Level::Avx2, two), "a shift by more than 63 bits");
}

#[test]
fn what_is_too_far_is_a_limitation() {
    assert_eq!(displacement(10, 5), Ok(-5));
    assert_eq!(displacement(10, 10 + 0x7FFF_FFFF), Ok(i32::MAX));
    assert_eq!(displacement(0x8000_0000, 0), Ok(i32::MIN));
    let message = displacement(10, 10 + 0x8000_0000).unwrap_err();
    assert_eq!(message.kind, Kind::Limitation);
    assert_eq!(
        message.to_string(),
        "limitation: the code is too long for this processor's jumps: something is 2147483648 bytes away, and \
         2147483647 is as far as an instruction reaches (help: cut the function into several, or take the \
         interpreter)"
    );
    assert!(displacement(0x8000_0001, 0).is_err());
}
