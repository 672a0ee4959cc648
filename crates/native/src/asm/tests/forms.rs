//! Every instruction of the encoder, with random operands, and its expected decoding. One row for each method.

use super::oracle::{Case, Expected, Operand, bytes, gpr, gpr8, gpr32, mask, packed, scalar, source, vector, xmm};
use crate::asm::{
    Alu, Arith, Condition, Fma, FmaOrder, Gpr, Half, Integer, IntegerPredicate, LaneShift, Logic, MaskLogic, Mem,
    Predicate, Rounding, Shape, Shift, Source, Xmm,
};
use iced_x86::{Mnemonic, Register};

/// A method of the assembler: its name, whether it belongs to AVX-512, and a call of it with random operands.
pub(super) struct Row {
    pub method: &'static str,
    pub avx512: bool,
    pub call: fn(&mut Case) -> Expected,
}

const fn row(method: &'static str, call: fn(&mut Case) -> Expected) -> Row {
    Row { method, avx512: false, call }
}

const fn row512(method: &'static str, call: fn(&mut Case) -> Expected) -> Row {
    Row { method, avx512: true, call }
}

/// Returns the upper or the lower half.
fn half(upper: bool) -> Half {
    if upper { Half::Upper } else { Half::Lower }
}

fn by_shape(shape: Shape, one: Mnemonic, packed: Mnemonic) -> Mnemonic {
    if shape == Shape::One { one } else { packed }
}

fn imm(value: u8) -> Operand {
    Operand::Immediate(i64::from(value))
}

/// Predicates by the manual's table.
const PREDICATES: [(Predicate, u8); 15] = [
    (Predicate::Equal, 0),
    (Predicate::Unordered, 3),
    (Predicate::NotEqual, 4),
    (Predicate::Ordered, 7),
    (Predicate::False, 11),
    (Predicate::OrderedNotEqual, 12),
    (Predicate::True, 15),
    (Predicate::Less, 17),
    (Predicate::LessEqual, 18),
    (Predicate::NotLess, 21),
    (Predicate::NotLessEqual, 22),
    (Predicate::NotGreaterEqual, 25),
    (Predicate::NotGreater, 26),
    (Predicate::GreaterEqual, 29),
    (Predicate::Greater, 30),
];

pub(super) const ROWS: &[Row] = &[
    row("arith", |c| {
        use Mnemonic::*;
        let (op, one, many) = c.pick(&[
            (Arith::Add, Vaddsd, Vaddpd),
            (Arith::Sub, Vsubsd, Vsubpd),
            (Arith::Mul, Vmulsd, Vmulpd),
            (Arith::Div, Vdivsd, Vdivpd),
            (Arith::Min, Vminsd, Vminpd),
            (Arith::Max, Vmaxsd, Vmaxpd),
        ]);
        let (s, d, a, b) = (c.shape(), c.xmm(), c.xmm(), c.source());
        c.asm.arith(op, s, d, a, b);
        Expected::new(by_shape(s, one, many), &[vector(s, d), vector(s, a), source(s, b)])
            .commutes(matches!(op, Arith::Add | Arith::Mul))
    }),
    row("logic", |c| {
        use Mnemonic::*;
        let (op, m) =
            c.pick(&[(Logic::And, Vandpd), (Logic::AndNot, Vandnpd), (Logic::Or, Vorpd), (Logic::Xor, Vxorpd)]);
        let (s, d, a, b) = (c.shape(), c.xmm(), c.xmm(), c.source());
        c.asm.logic(op, s, d, a, b);
        Expected::new(m, &[vector(s, d), vector(s, a), packed(s, b)]).commutes(op != Logic::AndNot)
    }),
    row("fma", |c| {
        use Mnemonic::*;
        let rows = [
            (Fma::MulAdd, FmaOrder::O132, Vfmadd132sd, Vfmadd132pd),
            (Fma::MulAdd, FmaOrder::O213, Vfmadd213sd, Vfmadd213pd),
            (Fma::MulAdd, FmaOrder::O231, Vfmadd231sd, Vfmadd231pd),
            (Fma::MulSub, FmaOrder::O132, Vfmsub132sd, Vfmsub132pd),
            (Fma::MulSub, FmaOrder::O213, Vfmsub213sd, Vfmsub213pd),
            (Fma::MulSub, FmaOrder::O231, Vfmsub231sd, Vfmsub231pd),
            (Fma::NegMulAdd, FmaOrder::O132, Vfnmadd132sd, Vfnmadd132pd),
            (Fma::NegMulAdd, FmaOrder::O213, Vfnmadd213sd, Vfnmadd213pd),
            (Fma::NegMulAdd, FmaOrder::O231, Vfnmadd231sd, Vfnmadd231pd),
            (Fma::NegMulSub, FmaOrder::O132, Vfnmsub132sd, Vfnmsub132pd),
            (Fma::NegMulSub, FmaOrder::O213, Vfnmsub213sd, Vfnmsub213pd),
            (Fma::NegMulSub, FmaOrder::O231, Vfnmsub231sd, Vfnmsub231pd),
        ];
        let (op, order, one, many) = c.pick(&rows);
        let (s, d, a, b) = (c.shape(), c.xmm(), c.xmm(), c.source());
        c.asm.fma(op, order, s, d, a, b);
        Expected::new(by_shape(s, one, many), &[vector(s, d), vector(s, a), source(s, b)])
    }),
    row("sqrt", |c| {
        let (s, d, b) = (c.shape(), c.xmm(), c.source());
        c.asm.sqrt(s, d, b);
        one_source(s, d, b, Mnemonic::Vsqrtsd, Mnemonic::Vsqrtpd, &[])
    }),
    row("round", |c| {
        let modes = [(Rounding::Nearest, 8), (Rounding::Floor, 9), (Rounding::Ceil, 10), (Rounding::Trunc, 11)];
        let (mode, value) = c.pick(&modes);
        let (s, d, b) = (c.shape(), c.xmm(), c.source());
        c.asm.round(mode, s, d, b);
        let evex = is_evex(c, s, &[d], b);
        let one = if evex { Mnemonic::Vrndscalesd } else { Mnemonic::Vroundsd };
        let many = if evex { Mnemonic::Vrndscalepd } else { Mnemonic::Vroundpd };
        one_source(s, d, b, one, many, &[imm(value)])
    }),
    row("compare", |c| {
        let (predicate, value) = c.pick(&PREDICATES);
        let (s, d, a, b) = (c.low_shape(), c.low_xmm(), c.low_xmm(), c.low_source());
        c.asm.compare(predicate, s, d, a, b);
        let m = by_shape(s, Mnemonic::Vcmpsd, Mnemonic::Vcmppd);
        Expected::new(m, &[vector(s, d), vector(s, a), source(s, b), imm(value)])
    }),
    row512("compare_mask", |c| {
        let (predicate, value) = c.pick(&PREDICATES);
        let (s, d, a, b) = (c.shape(), c.mask(), c.xmm(), c.source());
        c.asm.compare_mask(predicate, s, d, a, b);
        let m = by_shape(s, Mnemonic::Vcmpsd, Mnemonic::Vcmppd);
        Expected::new(m, &[mask(d), vector(s, a), source(s, b), imm(value)])
    }),
    row("compare_flags", |c| {
        let (a, b) = (c.xmm(), c.source());
        c.asm.compare_flags(a, b);
        Expected::new(Mnemonic::Vucomisd, &[xmm(a), scalar(b)])
    }),
    row("blend", |c| {
        let (s, d, a, b, k) = (c.low_shape(), c.low_xmm(), c.low_xmm(), c.low_source(), c.low_xmm());
        c.asm.blend(s, d, a, b, k);
        Expected::new(Mnemonic::Vblendvpd, &[vector(s, d), vector(s, a), packed(s, b), vector(s, k)])
    }),
    row512("blend_mask", |c| {
        let (s, d, a, b, k) = (c.shape(), c.xmm(), c.xmm(), c.source(), c.write_mask());
        c.asm.blend_mask(s, d, a, b, k);
        let b = match b {
            Source::Mem(mem) if s == Shape::One => Source::Broadcast(mem),
            b => b,
        };
        Expected::new(Mnemonic::Vblendmpd, &[vector(s, d), vector(s, a), packed(s, b)]).merging(k)
    }),
    row("test_signs", |c| {
        let (s, a, b) = (c.low_shape(), c.low_xmm(), c.low_source());
        c.asm.test_signs(s, a, b);
        Expected::new(Mnemonic::Vtestpd, &[vector(s, a), packed(s, b)])
    }),
    row("mov", |c| {
        let (s, d, a) = (c.shape(), c.xmm(), c.xmm());
        c.asm.mov(s, d, a);
        Expected::new(Mnemonic::Vmovapd, &[vector(s, d), vector(s, a)])
    }),
    row("load", |c| {
        let (s, d, m) = (c.shape(), c.xmm(), c.mem());
        c.asm.load(s, d, m);
        Expected::new(by_shape(s, Mnemonic::Vmovsd, Mnemonic::Vmovupd), &[vector(s, d), source(s, m.into())])
    }),
    row("store", |c| {
        let (s, d, m) = (c.shape(), c.xmm(), c.mem());
        c.asm.store(s, m, d);
        Expected::new(by_shape(s, Mnemonic::Vmovsd, Mnemonic::Vmovupd), &[source(s, m.into()), vector(s, d)])
    }),
    row("load_pair", |c| {
        let (d, m) = (c.xmm(), c.mem());
        c.asm.load_pair(d, m);
        Expected::new(Mnemonic::Vmovupd, &[xmm(d), Operand::Memory(m, 16, false)])
    }),
    row("store_pair", |c| {
        let (d, m) = (c.xmm(), c.mem());
        c.asm.store_pair(m, d);
        Expected::new(Mnemonic::Vmovupd, &[Operand::Memory(m, 16, false), xmm(d)])
    }),
    row512("mov_merging", |c| {
        let (s, d, k, a) = (c.shape(), c.xmm(), c.write_mask(), c.xmm());
        c.asm.mov_merging(s, d, k, a);
        Expected::new(Mnemonic::Vmovapd, &[vector(s, d), vector(s, a)]).merging(k)
    }),
    row512("mov_zeroing", |c| {
        let (s, d, k, a) = (c.shape(), c.xmm(), c.write_mask(), c.xmm());
        c.asm.mov_zeroing(s, d, k, a);
        Expected::new(Mnemonic::Vmovapd, &[vector(s, d), vector(s, a)]).zeroing(k)
    }),
    row512("load_merging", |c| {
        let (s, d, k, m) = (c.shape(), c.xmm(), c.write_mask(), c.mem());
        c.asm.load_merging(s, d, k, m);
        let name = by_shape(s, Mnemonic::Vmovsd, Mnemonic::Vmovupd);
        Expected::new(name, &[vector(s, d), source(s, m.into())]).merging(k)
    }),
    row512("load_zeroing", |c| {
        let (s, d, k, m) = (c.shape(), c.xmm(), c.write_mask(), c.mem());
        c.asm.load_zeroing(s, d, k, m);
        let name = by_shape(s, Mnemonic::Vmovsd, Mnemonic::Vmovupd);
        Expected::new(name, &[vector(s, d), source(s, m.into())]).zeroing(k)
    }),
    row512("store_masked", |c| {
        let (s, d, k, m) = (c.shape(), c.xmm(), c.write_mask(), c.mem());
        c.asm.store_masked(s, m, k, d);
        let name = by_shape(s, Mnemonic::Vmovsd, Mnemonic::Vmovupd);
        Expected::new(name, &[source(s, m.into()), vector(s, d)]).merging(k)
    }),
    row("load_where", |c| {
        let (s, d, k, m) = (c.low_shape(), c.low_xmm(), c.low_xmm(), c.mem());
        c.asm.load_where(s, d, k, m);
        Expected::new(Mnemonic::Vmaskmovpd, &[vector(s, d), vector(s, k), packed(s, m.into())])
    }),
    row("store_where", |c| {
        let (s, d, k, m) = (c.low_shape(), c.low_xmm(), c.low_xmm(), c.mem());
        c.asm.store_where(s, m, k, d);
        Expected::new(Mnemonic::Vmaskmovpd, &[packed(s, m.into()), vector(s, k), vector(s, d)])
    }),
    row("broadcast", |c| {
        let (s, d, b) = (c.shape(), c.xmm(), c.source());
        c.asm.broadcast(s, d, b);
        let name = match (s, b) {
            (Shape::One, Source::Reg(_)) => Mnemonic::Vmovapd,
            (Shape::One, _) => Mnemonic::Vmovsd,
            _ => Mnemonic::Vbroadcastsd,
        };
        Expected::new(name, &[vector(s, d), scalar(b)])
    }),
    row512("broadcast_gpr", |c| {
        let (s, d, a) = (c.shape(), c.xmm(), c.gpr());
        c.asm.broadcast_gpr(s, d, a);
        Expected::new(by_shape(s, Mnemonic::Vmovq, Mnemonic::Vpbroadcastq), &[vector(s, d), gpr(a)])
    }),
    row("zero", |c| {
        let d = c.xmm();
        c.asm.zero(d);
        Expected::new(if d.0 < 16 { Mnemonic::Vxorps } else { Mnemonic::Vpxord }, &[xmm(d), xmm(d), xmm(d)])
    }),
    row("movq_from", |c| {
        let (d, a) = (c.xmm(), c.gpr());
        c.asm.movq_from(d, a);
        Expected::new(Mnemonic::Vmovq, &[xmm(d), gpr(a)])
    }),
    row("movq_to", |c| {
        let (d, a) = (c.gpr(), c.xmm());
        c.asm.movq_to(d, a);
        Expected::new(Mnemonic::Vmovq, &[gpr(d), xmm(a)])
    }),
    row("signs_to", |c| {
        let (s, d, a) = (c.low_shape(), c.gpr(), c.low_xmm());
        c.asm.signs_to(s, d, a);
        Expected::new(Mnemonic::Vmovmskpd, &[gpr32(d), vector(s, a)])
    }),
    row("cvtsi2sd", |c| {
        let (d, a, b) = (c.xmm(), c.xmm(), c.gpr());
        c.asm.cvtsi2sd(d, a, b);
        Expected::new(Mnemonic::Vcvtsi2sd, &[xmm(d), xmm(a), gpr(b)])
    }),
    row("cvtsi2sd_load", |c| {
        let (d, a, m) = (c.xmm(), c.xmm(), c.mem());
        c.asm.cvtsi2sd_load(d, a, m);
        Expected::new(Mnemonic::Vcvtsi2sd, &[xmm(d), xmm(a), Operand::Memory(m, 8, false)])
    }),
    row("cvttsd2si", |c| {
        let (d, b) = (c.gpr(), c.source());
        c.asm.cvttsd2si(d, b);
        Expected::new(Mnemonic::Vcvttsd2si, &[gpr(d), scalar(b)])
    }),
    row("cvtsd2si", |c| {
        let (d, b) = (c.gpr(), c.source());
        c.asm.cvtsd2si(d, b);
        Expected::new(Mnemonic::Vcvtsd2si, &[gpr(d), scalar(b)])
    }),
    row512("cvtqq2pd", |c| {
        let (s, d, b) = (c.shape(), c.xmm(), c.source());
        c.asm.cvtqq2pd(s, d, b);
        Expected::new(Mnemonic::Vcvtqq2pd, &[vector(s, d), packed(s, b)])
    }),
    row512("cvtpd2qq", |c| {
        let (s, d, b) = (c.shape(), c.xmm(), c.source());
        c.asm.cvtpd2qq(s, d, b);
        Expected::new(Mnemonic::Vcvtpd2qq, &[vector(s, d), packed(s, b)])
    }),
    row512("cvttpd2qq", |c| {
        let (s, d, b) = (c.shape(), c.xmm(), c.source());
        c.asm.cvttpd2qq(s, d, b);
        Expected::new(Mnemonic::Vcvttpd2qq, &[vector(s, d), packed(s, b)])
    }),
    row("half", |c| {
        let (s, d, a, upper) = (c.wide_shape(), c.xmm(), c.xmm(), c.flip());
        c.asm.half(s, d, a, half(upper));
        let evex = is_evex(c, s, &[d, a], Source::Reg(a));
        let (name, to) = match (s, evex) {
            (Shape::Eight, _) => (Mnemonic::Vextractf64x4, vector(Shape::Four, d)),
            (_, true) => (Mnemonic::Vextractf64x2, xmm(d)),
            (_, false) => (Mnemonic::Vextractf128, xmm(d)),
        };
        Expected::new(name, &[to, vector(s, a), imm(upper.into())])
    }),
    row("insert_half", |c| {
        let (s, d, a, upper) = (c.wide_shape(), c.xmm(), c.xmm(), c.flip());
        let b = if c.flip() { Source::Reg(c.xmm()) } else { Source::Mem(c.mem()) };
        c.asm.insert_half(s, d, a, b, half(upper));
        // Its memory operand is half as long, and so is the unit of its scaled displacement.
        let part = if s == Shape::Eight { Shape::Four } else { Shape::One };
        let evex = is_evex_of(c, s, &[d, a], b, bytes(part));
        let name = match (s, evex) {
            (Shape::Eight, _) => Mnemonic::Vinsertf64x4,
            (_, true) => Mnemonic::Vinsertf64x2,
            (_, false) => Mnemonic::Vinsertf128,
        };
        Expected::new(name, &[vector(s, d), vector(s, a), packed(part, b), imm(upper.into())])
    }),
    row("halves_of_fours", |c| {
        let (s, d, a, b, upper) = (c.wide_shape(), c.xmm(), c.xmm(), c.xmm(), c.flip());
        c.asm.halves_of_fours(s, d, a, b, half(upper));
        let is_high = [d, a, b].iter().any(|x| x.0 > 15);
        let (name, choice) = match (s, is_high, upper) {
            (Shape::Eight, _, false) => (Mnemonic::Vshuff64x2, 0b10_00_10_00),
            (Shape::Eight, _, true) => (Mnemonic::Vshuff64x2, 0b11_01_11_01),
            (_, true, false) => (Mnemonic::Vshuff64x2, 0b00),
            (_, true, true) => (Mnemonic::Vshuff64x2, 0b11),
            (_, false, false) => (Mnemonic::Vperm2f128, 0x20),
            (_, false, true) => (Mnemonic::Vperm2f128, 0x31),
        };
        Expected::new(name, &[vector(s, d), vector(s, a), vector(s, b), imm(choice)])
    }),
    row("unpack_low", |c| {
        let (s, d, a, b) = (c.shape(), c.xmm(), c.xmm(), c.source());
        c.asm.unpack_low(s, d, a, b);
        Expected::new(Mnemonic::Vunpcklpd, &[vector(s, d), vector(s, a), packed(s, b)])
    }),
    row("unpack_high", |c| {
        let (s, d, a, b) = (c.shape(), c.xmm(), c.xmm(), c.source());
        c.asm.unpack_high(s, d, a, b);
        Expected::new(Mnemonic::Vunpckhpd, &[vector(s, d), vector(s, a), packed(s, b)])
    }),
    row("permute_pairs", |c| {
        let (s, d, b, choice) = (c.shape(), c.xmm(), c.source(), c.random() as u8);
        c.asm.permute_pairs(s, d, b, choice);
        Expected::new(Mnemonic::Vpermilpd, &[vector(s, d), packed(s, b), imm(choice)])
    }),
    row("permute_fours", |c| {
        let (s, d, b, choice) = (c.wide_shape(), c.xmm(), c.source(), c.random() as u8);
        c.asm.permute_fours(s, d, b, choice);
        Expected::new(Mnemonic::Vpermpd, &[vector(s, d), packed(s, b), imm(choice)])
    }),
    row("vzeroupper", |c| {
        c.asm.vzeroupper();
        Expected::new(Mnemonic::Vzeroupper, &[])
    }),
    row512("mask_logic", |c| {
        use Mnemonic::*;
        let (op, name) = c.pick(&[
            (MaskLogic::And, Kandb),
            (MaskLogic::AndNot, Kandnb),
            (MaskLogic::Or, Korb),
            (MaskLogic::Xor, Kxorb),
            (MaskLogic::XorNot, Kxnorb),
        ]);
        let (d, a, b) = (c.mask(), c.mask(), c.mask());
        c.asm.mask_logic(op, d, a, b);
        Expected::new(name, &[mask(d), mask(a), mask(b)])
    }),
    row512("mask_not", |c| {
        let (d, a) = (c.mask(), c.mask());
        c.asm.mask_not(d, a);
        Expected::new(Mnemonic::Knotb, &[mask(d), mask(a)])
    }),
    row512("mask_mov", |c| {
        let (d, a) = (c.mask(), c.mask());
        c.asm.mask_mov(d, a);
        Expected::new(Mnemonic::Kmovb, &[mask(d), mask(a)])
    }),
    row512("mask_from", |c| {
        let (d, a) = (c.mask(), c.gpr());
        c.asm.mask_from(d, a);
        Expected::new(Mnemonic::Kmovb, &[mask(d), gpr32(a)])
    }),
    row512("mask_to", |c| {
        let (d, a) = (c.gpr(), c.mask());
        c.asm.mask_to(d, a);
        Expected::new(Mnemonic::Kmovb, &[gpr32(d), mask(a)])
    }),
    row512("mask_test", |c| {
        let (a, b) = (c.mask(), c.mask());
        c.asm.mask_test(a, b);
        Expected::new(Mnemonic::Kortestb, &[mask(a), mask(b)])
    }),
    row512("mask_spread", |c| {
        let (s, d, a) = (c.shape(), c.xmm(), c.mask());
        c.asm.mask_spread(s, d, a);
        Expected::new(Mnemonic::Vpmovm2q, &[vector(s, d), mask(a)])
    }),
    row512("mask_of_signs", |c| {
        let (s, d, a) = (c.shape(), c.mask(), c.xmm());
        c.asm.mask_of_signs(s, d, a);
        Expected::new(Mnemonic::Vpmovq2m, &[mask(d), vector(s, a)])
    }),
    row("integer", |c| {
        use Mnemonic::*;
        let (op, vex, evex) = c.pick(&[
            (Integer::Add, Vpaddq, Vpaddq),
            (Integer::Sub, Vpsubq, Vpsubq),
            (Integer::And, Vpand, Vpandq),
            (Integer::AndNot, Vpandn, Vpandnq),
            (Integer::Or, Vpor, Vporq),
            (Integer::Xor, Vpxor, Vpxorq),
        ]);
        let (s, d, a, b) = (c.shape(), c.xmm(), c.xmm(), c.source());
        c.asm.integer(op, s, d, a, b);
        let name = if is_evex_of(c, s, &[d, a], b, bytes(s)) { evex } else { vex };
        Expected::new(name, &[vector(s, d), vector(s, a), packed(s, b)])
            .commutes(!matches!(op, Integer::Sub | Integer::AndNot))
    }),
    row("integer_compare", |c| {
        let (op, name) =
            c.pick(&[(IntegerPredicate::Equal, Mnemonic::Vpcmpeqq), (IntegerPredicate::Greater, Mnemonic::Vpcmpgtq)]);
        let (s, d, a, b) = (c.low_shape(), c.low_xmm(), c.low_xmm(), c.low_source());
        c.asm.integer_compare(op, s, d, a, b);
        Expected::new(name, &[vector(s, d), vector(s, a), packed(s, b)])
    }),
    row512("integer_compare_mask", |c| {
        let (op, name) =
            c.pick(&[(IntegerPredicate::Equal, Mnemonic::Vpcmpeqq), (IntegerPredicate::Greater, Mnemonic::Vpcmpgtq)]);
        let (s, d, a, b) = (c.shape(), c.mask(), c.xmm(), c.source());
        c.asm.integer_compare_mask(op, s, d, a, b);
        Expected::new(name, &[mask(d), vector(s, a), packed(s, b)])
    }),
    row512("at_most_mask", |c| {
        let (s, d, a, b) = (c.shape(), c.mask(), c.xmm(), c.source());
        c.asm.at_most_mask(s, d, a, b);
        Expected::new(Mnemonic::Vpcmpuq, &[mask(d), vector(s, a), packed(s, b), imm(2)])
    }),
    row("integer_shift", |c| {
        let shifts = [
            (LaneShift::Left, Mnemonic::Vpsllq),
            (LaneShift::Right, Mnemonic::Vpsrlq),
            (LaneShift::RightSigned, Mnemonic::Vpsraq),
        ];
        let (op, name) = if c.is_avx512() { c.pick(&shifts) } else { c.pick(&shifts[..2]) };
        let (s, d, a, n) = (c.shape(), c.xmm(), c.xmm(), c.below(64) as u8);
        c.asm.integer_shift(op, s, d, a, n);
        Expected::new(name, &[vector(s, d), vector(s, a), imm(n)])
    }),
    row("mov_rr", |c| {
        let (d, a) = (c.gpr(), c.gpr());
        c.asm.mov_rr(d, a);
        Expected::new(Mnemonic::Mov, &[gpr(d), gpr(a)])
    }),
    row("mov_ri", |c| {
        let (d, value) = (c.gpr(), number(c));
        c.asm.mov_ri(d, value);
        if value == 0 { Expected::new(Mnemonic::Xor, &[gpr32(d), gpr32(d)]) } else { number_into(d, value) }
    }),
    row("mov_ri_keeping_flags", |c| {
        let (d, value) = (c.gpr(), number(c));
        c.asm.mov_ri_keeping_flags(d, value);
        number_into(d, value)
    }),
    row("mov_rm", |c| {
        let (d, m) = (c.gpr(), c.mem());
        c.asm.mov_rm(d, m);
        Expected::new(Mnemonic::Mov, &[gpr(d), word(m)])
    }),
    row("mov_mr", |c| {
        let (m, a) = (c.mem(), c.gpr());
        c.asm.mov_mr(m, a);
        Expected::new(Mnemonic::Mov, &[word(m), gpr(a)])
    }),
    row("mov_mi", |c| {
        let (m, value) = (c.mem(), c.displacement());
        c.asm.mov_mi(m, value);
        Expected::new(Mnemonic::Mov, &[word(m), Operand::Immediate(value.into())])
    }),
    row("lea", |c| {
        let (d, m) = (c.gpr(), c.mem());
        c.asm.lea(d, m);
        Expected::new(Mnemonic::Lea, &[gpr(d), Operand::Address(m)])
    }),
    row("alu_rr", |c| {
        let ((op, name), d, a) = (c.pick(&ALU), c.gpr(), c.gpr());
        c.asm.alu_rr(op, d, a);
        Expected::new(name, &[gpr(d), gpr(a)])
    }),
    row("alu_ri", |c| {
        let ((op, name), d, value) = (c.pick(&ALU), c.gpr(), c.displacement());
        c.asm.alu_ri(op, d, value);
        Expected::new(name, &[gpr(d), Operand::Immediate(value.into())])
    }),
    row("alu_rm", |c| {
        let ((op, name), d, m) = (c.pick(&ALU), c.gpr(), c.mem());
        c.asm.alu_rm(op, d, m);
        Expected::new(name, &[gpr(d), word(m)])
    }),
    row("alu_mr", |c| {
        let ((op, name), m, a) = (c.pick(&ALU), c.mem(), c.gpr());
        c.asm.alu_mr(op, m, a);
        Expected::new(name, &[word(m), gpr(a)])
    }),
    row("alu_mi", |c| {
        let ((op, name), m, value) = (c.pick(&ALU), c.mem(), c.displacement());
        c.asm.alu_mi(op, m, value);
        Expected::new(name, &[word(m), Operand::Immediate(value.into())])
    }),
    row("imul_rr", |c| {
        let (d, a) = (c.gpr(), c.gpr());
        c.asm.imul_rr(d, a);
        Expected::new(Mnemonic::Imul, &[gpr(d), gpr(a)])
    }),
    row("imul_rm", |c| {
        let (d, m) = (c.gpr(), c.mem());
        c.asm.imul_rm(d, m);
        Expected::new(Mnemonic::Imul, &[gpr(d), word(m)])
    }),
    row("imul_rri", |c| {
        let (d, a, value) = (c.gpr(), c.gpr(), c.displacement());
        c.asm.imul_rri(d, a, value);
        Expected::new(Mnemonic::Imul, &[gpr(d), gpr(a), Operand::Immediate(value.into())])
    }),
    row("imul_rmi", |c| {
        let (d, m, value) = (c.gpr(), c.mem(), c.displacement());
        c.asm.imul_rmi(d, m, value);
        Expected::new(Mnemonic::Imul, &[gpr(d), word(m), Operand::Immediate(value.into())])
    }),
    row("neg", |c| {
        let d = c.gpr();
        c.asm.neg(d);
        Expected::new(Mnemonic::Neg, &[gpr(d)])
    }),
    row("not", |c| {
        let d = c.gpr();
        c.asm.not(d);
        Expected::new(Mnemonic::Not, &[gpr(d)])
    }),
    row("test_rr", |c| {
        let (a, b) = (c.gpr(), c.gpr());
        c.asm.test_rr(a, b);
        Expected::new(Mnemonic::Test, &[gpr(a), gpr(b)])
    }),
    row("inc", |c| {
        let d = c.gpr();
        c.asm.inc(d);
        Expected::new(Mnemonic::Inc, &[gpr(d)])
    }),
    row("dec", |c| {
        let d = c.gpr();
        c.asm.dec(d);
        Expected::new(Mnemonic::Dec, &[gpr(d)])
    }),
    row("cqo", |c| {
        c.asm.cqo();
        Expected::new(Mnemonic::Cqo, &[])
    }),
    row("idiv", |c| {
        let a = c.gpr();
        c.asm.idiv(a);
        Expected::new(Mnemonic::Idiv, &[gpr(a)])
    }),
    row("shift_ri", |c| {
        let shifts = [(Shift::Left, Mnemonic::Shl), (Shift::Right, Mnemonic::Shr), (Shift::RightSigned, Mnemonic::Sar)];
        let ((op, name), d, n) = (c.pick(&shifts), c.gpr(), c.below(64) as u8);
        c.asm.shift_ri(op, d, n);
        Expected::new(name, &[gpr(d), imm(n)])
    }),
    row("shift_left_by_rcx", |c| {
        let d = c.gpr();
        c.asm.shift_left_by_rcx(d);
        Expected::new(Mnemonic::Shl, &[gpr(d), Operand::Register(Register::CL)])
    }),
    row("setcc", |c| {
        use Mnemonic::*;
        let names =
            [Seto, Setno, Setb, Setae, Sete, Setne, Setbe, Seta, Sets, Setns, Setp, Setnp, Setl, Setge, Setle, Setg];
        let (i, d) = (c.below(16) as usize, c.gpr());
        c.asm.setcc(Condition::ALL[i], d);
        Expected::new(names[i], &[gpr8(d)])
    }),
    row("movzx_byte", |c| {
        let (d, a) = (c.gpr(), c.gpr());
        c.asm.movzx_byte(d, a);
        Expected::new(Mnemonic::Movzx, &[gpr32(d), gpr8(a)])
    }),
    row("cmov_rr", |c| {
        let (i, d, a) = (c.below(16) as usize, c.gpr(), c.gpr());
        c.asm.cmov_rr(Condition::ALL[i], d, a);
        Expected::new(CMOV[i], &[gpr(d), gpr(a)])
    }),
    row("cmov_rm", |c| {
        let (i, d, m) = (c.below(16) as usize, c.gpr(), c.mem());
        c.asm.cmov_rm(Condition::ALL[i], d, m);
        Expected::new(CMOV[i], &[gpr(d), word(m)])
    }),
    row("call_r", |c| {
        let a = c.gpr();
        c.asm.call_r(a);
        Expected::new(Mnemonic::Call, &[gpr(a)])
    }),
    row("call_m", |c| {
        let m = c.mem();
        c.asm.call_m(m);
        Expected::new(Mnemonic::Call, &[word(m)])
    }),
    row("push", |c| {
        let a = c.gpr();
        c.asm.push(a);
        Expected::new(Mnemonic::Push, &[gpr(a)])
    }),
    row("pop", |c| {
        let a = c.gpr();
        c.asm.pop(a);
        Expected::new(Mnemonic::Pop, &[gpr(a)])
    }),
    row("ret", |c| {
        c.asm.ret();
        Expected::new(Mnemonic::Ret, &[])
    }),
];

const ALU: [(Alu, Mnemonic); 6] = [
    (Alu::Add, Mnemonic::Add),
    (Alu::Or, Mnemonic::Or),
    (Alu::And, Mnemonic::And),
    (Alu::Sub, Mnemonic::Sub),
    (Alu::Xor, Mnemonic::Xor),
    (Alu::Cmp, Mnemonic::Cmp),
];

const CMOV: [Mnemonic; 16] = {
    use Mnemonic::*;
    [
        Cmovo, Cmovno, Cmovb, Cmovae, Cmove, Cmovne, Cmovbe, Cmova, Cmovs, Cmovns, Cmovp, Cmovnp, Cmovl, Cmovge,
        Cmovle, Cmovg,
    ]
};

fn word(mem: Mem) -> Operand {
    Operand::Memory(mem, 8, false)
}

/// Returns the expectation of a scalar of one source, which names three registers; the middle one is the source or the
/// destination.
fn one_source(s: Shape, d: Xmm, b: Source, one: Mnemonic, many: Mnemonic, last: &[Operand]) -> Expected {
    let mut operands = vec![vector(s, d)];
    match (s, b) {
        (Shape::One, Source::Reg(b)) => operands.extend([xmm(b), xmm(b)]),
        (Shape::One, b) => operands.extend([xmm(d), scalar(b)]),
        (_, b) => operands.push(packed(s, b)),
    }
    operands.extend(last);
    Expected::new(by_shape(s, one, many), &operands)
}

fn number(c: &mut Case) -> i64 {
    match c.below(5) {
        0 => c.pick(&[0, 1, -1, i64::MAX, i64::MIN, 1 << 31, (1 << 32) - 1, 1 << 32, -(1 << 31), -(1 << 31) - 1]),
        1 => i64::from(c.random() as i32),
        2 => i64::from(c.random() as u32),
        3 => c.below(256) as i64 - 128,
        _ => c.random() as i64,
    }
}

/// Returns the expectation of `mov` in its three lengths.
fn number_into(d: Gpr, value: i64) -> Expected {
    let to = if u32::try_from(value).is_ok() { gpr32(d) } else { gpr(d) };
    Expected::new(Mnemonic::Mov, &[to, Operand::Immediate(value)])
}

fn is_evex(c: &Case, s: Shape, registers: &[Xmm], b: Source) -> bool {
    is_evex_of(c, s, registers, b, if s == Shape::One { 8 } else { bytes(s) })
}

/// Returns whether EVEX is expected: if required, or if a displacement in units of `unit` bytes is shorter.
fn is_evex_of(c: &Case, s: Shape, registers: &[Xmm], b: Source, unit: usize) -> bool {
    let high = |register: &Xmm| register.0 > 15;
    let scaled = match b {
        Source::Mem(Mem::At { disp, .. } | Mem::Indexed { disp, .. }) => {
            let (disp, unit) = (i64::from(disp), unit as i64);
            i8::try_from(disp).is_err() && disp % unit == 0 && i8::try_from(disp / unit).is_ok()
        }
        // A broadcast to one lane is a load, except for the packed form, which only EVEX has.
        Source::Broadcast(Mem::At { disp, .. } | Mem::Indexed { disp, .. }) if s == Shape::One && unit == 8 => {
            let disp = i64::from(disp);
            i8::try_from(disp).is_err() && disp % 8 == 0 && i8::try_from(disp / 8).is_ok()
        }
        Source::Broadcast(_) => !(s == Shape::One && unit == 8),
        _ => false,
    };
    let last = matches!(&b, Source::Reg(b) if high(b));
    c.is_avx512() && (s == Shape::Eight || registers.iter().any(high) || last || scaled)
}

/// Names of [`Register`], in rows that name one by hand.
#[test]
fn byte_registers_are_named_as_in_the_decoder() {
    assert!(matches!(gpr8(Gpr::RSP), Operand::Register(Register::SPL)));
    assert!(matches!(gpr8(Gpr::RDI), Operand::Register(Register::DIL)));
    assert!(matches!(gpr8(Gpr::R8), Operand::Register(Register::R8L)));
    assert!(matches!(gpr8(Gpr::RBX), Operand::Register(Register::BL)));
}
