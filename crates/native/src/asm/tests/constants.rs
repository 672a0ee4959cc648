//! The constant pool: each constant once, blocks aligned to their lengths.

use crate::Level;
use crate::asm::{Assembler, Gpr, Mem};

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn a_constant_has_one_place() {
    let mut asm = Assembler::new(Level::Avx2);
    let first = asm.constant(7);
    assert_eq!(asm.constant(7), first);
    assert_ne!(asm.constant((0.0f64).to_bits()), asm.constant((-0.0f64).to_bits()));
    let block = asm.constant_block([1, 2, 3, 4]);
    assert_eq!(asm.constant_block([1, 2, 3, 4]), block);
    assert_eq!(asm.constant(3), block + 16, "a word of a block is a constant");
    assert_ne!(asm.constant_block([1, 2]), block, "blocks of other lengths are others");
    assert_ne!(asm.constant_block([1, 2, 0, 0]), block);
}

#[test]
fn constants_stand_aligned_behind_the_code() {
    let mut asm = Assembler::new(Level::Avx2);
    let mut wanted: Vec<(u32, Vec<u64>)> = Vec::new();
    let mut next = 0;
    let mut words = |n: usize| {
        next += n as u64;
        (next - n as u64..next).map(|word| word << 40 | 1).collect::<Vec<u64>>()
    };
    for n in [1, 2, 8, 1, 4, 1, 1, 8, 1, 2, 1, 1, 1, 1, 4, 8, 1, 1] {
        let block = words(n);
        let offset = match *block.as_slice() {
            [a] => asm.constant(a),
            [a, b] => asm.constant_block([a, b]),
            [a, b, c, d] => asm.constant_block([a, b, c, d]),
            _ => asm.constant_block::<8>(block.clone().try_into().unwrap()),
        };
        assert_eq!(offset as usize % (8 * n), 0, "{n} words at {offset}");
        wanted.push((offset, block));
    }
    for _ in 0..100 {
        asm.ret();
    }
    let code = asm.finish().unwrap();
    assert_eq!(code.instructions, 100);
    for (offset, block) in wanted {
        for (i, want) in block.into_iter().enumerate() {
            assert_eq!(word(code.bytes(), 128 + offset as usize + 8 * i), want);
        }
    }
    // 46 words; the gaps before blocks contain the single ones made later.
    assert_eq!(code.len, 128 + 8 * 48);
}

#[test]
fn code_without_constants_has_no_room_for_them() {
    let mut asm = Assembler::new(Level::Avx2);
    asm.ret();
    let code = asm.finish().unwrap();
    assert_eq!((code.bytes(), code.instructions), ([0xC3].as_slice(), 1));
}

#[test]
fn a_constant_before_an_immediate_counts_from_the_end_of_the_instruction() {
    let mut asm = Assembler::new(Level::Avx2);
    let offset = asm.constant(9);
    asm.alu_mi(crate::asm::Alu::Cmp, Mem::Constant(offset), 0x1234_5678);
    asm.mov_rm(Gpr::RAX, Mem::Constant(offset));
    let code = asm.finish().unwrap();
    // `48 81 3D disp32 imm32; 48 8B 05 disp32`.
    assert_eq!(code.bytes()[3..7], (64u32 - 11).to_le_bytes());
    assert_eq!(code.bytes()[14..18], (64u32 - 18).to_le_bytes());
}
