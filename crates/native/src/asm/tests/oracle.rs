//! Expected decodings, and random operands.

use crate::Level;
use crate::asm::{Assembler, Gpr, Mask, Mem, Shape, Source, Xmm};
use iced_x86::{CpuidFeature, Decoder, DecoderOptions, Encoder, EncodingKind, Instruction, Mnemonic, OpKind, Register};

/// An expected operand.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operand {
    Register(Register),
    /// Memory of this size, and whether it is broadcast.
    Memory(Mem, usize, bool),
    /// The address of memory, for `lea`.
    Address(Mem),
    Immediate(i64),
}

/// An expected instruction.
#[derive(Debug)]
pub(super) struct Expected {
    pub mnemonic: Mnemonic,
    pub operands: Vec<Operand>,
    pub mask: Option<Mask>,
    pub zeroing: bool,
    /// Whether the last two operands may be exchanged.
    pub commutes: bool,
}

impl Expected {
    pub(super) fn new(mnemonic: Mnemonic, operands: &[Operand]) -> Self {
        Self { mnemonic, operands: operands.to_vec(), mask: None, zeroing: false, commutes: false }
    }

    pub(super) fn merging(mut self, mask: Mask) -> Self {
        self.mask = Some(mask);
        self
    }

    pub(super) fn zeroing(mut self, mask: Mask) -> Self {
        self.mask = Some(mask);
        self.zeroing = true;
        self
    }

    pub(super) fn commutes(mut self, commutes: bool) -> Self {
        self.commutes = commutes;
        self
    }
}

pub(super) fn gpr(register: Gpr) -> Operand {
    Operand::Register(Register::RAX + u32::from(register.0))
}

pub(super) fn gpr32(register: Gpr) -> Operand {
    Operand::Register(Register::EAX + u32::from(register.0))
}

/// iced's list of byte registers contains the legacy high ones.
pub(super) fn gpr8(register: Gpr) -> Operand {
    Operand::Register(match register.0 {
        n @ 0..4 => Register::AL + u32::from(n),
        n => Register::SPL + u32::from(n - 4),
    })
}

pub(super) fn mask(register: Mask) -> Operand {
    Operand::Register(Register::K0 + u32::from(register.0))
}

pub(super) fn xmm(register: Xmm) -> Operand {
    Operand::Register(Register::XMM0 + u32::from(register.0))
}

/// Returns the register of a shape's width.
pub(super) fn vector(shape: Shape, register: Xmm) -> Operand {
    let first = match shape {
        Shape::One => Register::XMM0,
        Shape::Four => Register::YMM0,
        Shape::Eight => Register::ZMM0,
    };
    Operand::Register(first + u32::from(register.0))
}

/// Returns the size of a packed operand in bytes.
pub(super) fn bytes(shape: Shape) -> usize {
    match shape {
        Shape::One => 16,
        Shape::Four => 32,
        Shape::Eight => 64,
    }
}

pub(super) fn packed(shape: Shape, source: Source) -> Operand {
    match source {
        Source::Reg(register) => vector(shape, register),
        Source::Mem(mem) => Operand::Memory(mem, bytes(shape), false),
        Source::Broadcast(mem) => Operand::Memory(mem, 8, true),
    }
}

pub(super) fn scalar(source: Source) -> Operand {
    match source {
        Source::Reg(register) => xmm(register),
        Source::Mem(mem) | Source::Broadcast(mem) => Operand::Memory(mem, 8, false),
    }
}

/// Returns a scalar for [`Shape::One`], else a packed operand.
pub(super) fn source(shape: Shape, source: Source) -> Operand {
    if shape == Shape::One { scalar(source) } else { packed(shape, source) }
}

/// An assembler at the position of an instruction, and random operands for it.
pub(super) struct Case {
    pub asm: Assembler,
    state: u64,
}

impl Case {
    /// Returns a case at a random position in the code.
    pub(super) fn new(level: Level, seed: u64) -> Self {
        let mut case = Self { asm: Assembler::new(level), state: seed };
        for _ in 0..case.below(4) {
            case.asm.ret();
        }
        // Enough of them that the offset of one sometimes exceeds a byte.
        for _ in 0..case.pick(&[0, 1, 2, 40]) {
            let bits = case.random();
            case.asm.constant(bits);
        }
        case
    }

    /// SplitMix64 (Steele, Lea, Flood 2014).
    pub(super) fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ self.state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.random() % n
    }

    pub(super) fn flip(&mut self) -> bool {
        self.below(2) == 0
    }

    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len() as u64) as usize]
    }

    pub(super) fn is_avx512(&self) -> bool {
        self.asm.level() == Level::Avx512
    }

    /// Returns a shape of the level.
    pub(super) fn shape(&mut self) -> Shape {
        if self.is_avx512() { self.pick(&[Shape::One, Shape::Four, Shape::Eight]) } else { self.low_shape() }
    }

    /// Returns a shape of AVX2.
    pub(super) fn low_shape(&mut self) -> Shape {
        self.pick(&[Shape::One, Shape::Four])
    }

    /// Returns a shape of several lanes of the level.
    pub(super) fn wide_shape(&mut self) -> Shape {
        if self.is_avx512() { self.pick(&[Shape::Four, Shape::Eight]) } else { Shape::Four }
    }

    /// Returns a register of the level.
    pub(super) fn xmm(&mut self) -> Xmm {
        // Half of them low, because only instructions with only low registers have a VEX form.
        if self.is_avx512() && self.flip() { Xmm(self.below(32) as u8) } else { self.low_xmm() }
    }

    /// Returns a register of AVX2.
    pub(super) fn low_xmm(&mut self) -> Xmm {
        Xmm(self.below(16) as u8)
    }

    pub(super) fn gpr(&mut self) -> Gpr {
        Gpr(self.below(16) as u8)
    }

    pub(super) fn mask(&mut self) -> Mask {
        Mask(self.below(8) as u8)
    }

    /// Returns a mask that may be a write mask.
    pub(super) fn write_mask(&mut self) -> Mask {
        Mask(1 + self.below(7) as u8)
    }

    pub(super) fn displacement(&mut self) -> i32 {
        match self.below(4) {
            0 => self.pick(&[0, 1, -1, 127, 128, -127, -128, -129, 1016, 1024, -1024, -1032, i32::MAX, i32::MIN]),
            1 => self.pick(&[8, 16, 32, 64]) * (self.below(300) as i32 - 150),
            2 => self.below(300) as i32 - 150,
            _ => self.random() as i32,
        }
    }

    pub(super) fn mem(&mut self) -> Mem {
        match self.below(5) {
            0 | 1 => Mem::At { base: self.gpr(), disp: self.displacement() },
            2 | 3 => {
                let scale = self.pick(&[1, 2, 4, 8]);
                let base = self.gpr();
                let mut index = self.gpr();
                while index == Gpr::RSP && (scale != 1 || base == Gpr::RSP) {
                    index = self.gpr();
                }
                Mem::Indexed { base, index, scale, disp: self.displacement() }
            }
            _ => {
                let words = [self.random(), self.random(), self.random(), self.random()];
                let offset = if self.flip() { self.asm.constant(words[0]) } else { self.asm.constant_block(words) };
                Mem::Constant(offset)
            }
        }
    }

    /// Returns a source of the level.
    pub(super) fn source(&mut self) -> Source {
        match self.below(if self.is_avx512() { 3 } else { 2 }) {
            0 => Source::Reg(self.xmm()),
            1 => Source::Mem(self.mem()),
            _ => Source::Broadcast(self.mem()),
        }
    }

    /// Returns a source of AVX2.
    pub(super) fn low_source(&mut self) -> Source {
        if self.flip() { Source::Reg(self.low_xmm()) } else { Source::Mem(self.mem()) }
    }

    /// Checks that there is one instruction from `start` on, that it is the expected one, that it needs nothing beyond
    /// the level, and that it is as short as iced's encoding. Returns the kind of its prefix.
    pub(super) fn check(self, start: usize, expected: &Expected) -> EncodingKind {
        const IP: u64 = 0x10_0000;
        let level = self.asm.level();
        let code = self.asm.finish().unwrap();
        let bytes = &code.bytes()[start..code.instructions];
        let mut decoder = Decoder::with_ip(64, bytes, IP + start as u64, DecoderOptions::NONE);
        let decoded = decoder.decode();
        let context = || format!("{expected:?}\nfrom {bytes:02x?}\nis {decoded:?}");
        assert!(!decoded.is_invalid(), "no instruction: {}", context());
        assert_eq!(decoded.len(), bytes.len(), "length: {}", context());
        assert_eq!(decoded.mnemonic(), expected.mnemonic, "{}", context());

        let constants = IP + code.instructions.next_multiple_of(64) as u64;
        let count = decoded.op_count() as usize;
        assert_eq!(count, expected.operands.len(), "number of operands: {}", context());
        let agree = |order: &[usize]| {
            order.iter().zip(&expected.operands).all(|(&i, want)| is_operand(&decoded, i as u32, *want, constants))
        };
        let mut order: Vec<usize> = (0..count).collect();
        let mut right = agree(&order);
        if expected.commutes && !right {
            order.swap(count - 2, count - 1);
            right = agree(&order);
        }
        assert!(right, "operands: {}", context());

        let want_mask = expected.mask.map_or(Register::None, |mask| Register::K0 + u32::from(mask.0));
        assert_eq!(decoded.op_mask(), want_mask, "{}", context());
        assert_eq!(decoded.zeroing_masking(), expected.zeroing, "{}", context());

        for feature in decoded.cpuid_features() {
            assert!(is_of(level, *feature), "{feature:?} at {level:?}: {}", context());
        }
        if !decoded.is_ip_rel_memory_operand() {
            let mut encoder = Encoder::new(64);
            let theirs = encoder.encode(&decoded, decoded.ip()).unwrap();
            assert!(bytes.len() <= theirs, "iced takes {theirs} bytes: {}", context());
        }
        let kind = decoded.encoding();
        assert!(kind != EncodingKind::EVEX || takes_evex(&decoded), "EVEX without need: {}", context());
        kind
    }
}

fn is_operand(decoded: &Instruction, i: u32, want: Operand, constants: u64) -> bool {
    match want {
        Operand::Register(register) => decoded.op_kind(i) == OpKind::Register && decoded.op_register(i) == register,
        Operand::Immediate(value) => {
            let is_immediate = !matches!(decoded.op_kind(i), OpKind::Register | OpKind::Memory);
            is_immediate && decoded.immediate(i) as i64 == value
        }
        Operand::Memory(mem, size, broadcast) => {
            decoded.op_kind(i) == OpKind::Memory
                && decoded.memory_size().size() == size
                && decoded.is_broadcast() == broadcast
                && is_place(decoded, mem, constants)
        }
        Operand::Address(mem) => decoded.op_kind(i) == OpKind::Memory && is_place(decoded, mem, constants),
    }
}

fn is_place(decoded: &Instruction, mem: Mem, constants: u64) -> bool {
    let (base, index) = (decoded.memory_base(), decoded.memory_index());
    let name = |register: Gpr| Register::RAX + u32::from(register.0);
    let at = |want: i32| decoded.memory_displacement64() as i64 == i64::from(want);
    match mem {
        Mem::At { base: want, disp } => base == name(want) && index == Register::None && at(disp),
        Mem::Indexed { base: first, index: second, scale, disp } => {
            let same = (base, index) == (name(first), name(second));
            let exchanged = scale == 1 && (base, index) == (name(second), name(first));
            (same || exchanged) && decoded.memory_index_scale() == u32::from(scale) && at(disp)
        }
        Mem::Constant(offset) => {
            decoded.is_ip_rel_memory_operand() && decoded.ip_rel_memory_address() == constants + u64::from(offset)
        }
    }
}

fn is_of(level: Level, feature: CpuidFeature) -> bool {
    use CpuidFeature as F;
    match feature {
        F::INTEL8086 | F::INTEL186 | F::INTEL286 | F::INTEL386 | F::INTEL486 | F::X64 | F::CMOV => true,
        F::AVX | F::AVX2 | F::FMA => true,
        F::AVX512F | F::AVX512DQ | F::AVX512VL | F::AVX512BW => level == Level::Avx512,
        _ => false,
    }
}

/// Returns whether an instruction requires EVEX, or is longer without it.
fn takes_evex(decoded: &Instruction) -> bool {
    let registers: Vec<Register> = (0..decoded.op_count())
        .filter(|&i| decoded.op_kind(i) == OpKind::Register)
        .map(|i| decoded.op_register(i))
        .collect();
    let high = |register: &Register| register.is_vector_register() && register.number() > 15;
    let disp = decoded.memory_displacement64() as i64;
    let compressed = decoded.memory_displ_size() == 1 && i8::try_from(disp).is_err();
    let only_evex = [
        Mnemonic::Vpmovm2q,
        Mnemonic::Vpmovq2m,
        Mnemonic::Vpbroadcastq,
        Mnemonic::Vcvtqq2pd,
        Mnemonic::Vcvtpd2qq,
        Mnemonic::Vcvttpd2qq,
        Mnemonic::Vpsraq,
        Mnemonic::Vblendmpd,
    ];
    registers.iter().any(|register| high(register) || register.is_zmm() || register.is_k())
        || decoded.op_mask() != Register::None
        || decoded.is_broadcast()
        || compressed
        || only_evex.contains(&decoded.mnemonic())
}
