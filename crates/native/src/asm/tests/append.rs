//! Appended code: each part has its own jumps and constants, and faults are preserved.

use crate::Level;
use crate::asm::{Assembler, Condition, Gpr, Mem};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};

/// References of instructions in order: the words of loaded constants, and whether jumps lead to a `ret`.
#[derive(PartialEq, Debug)]
enum Refers {
    Word(u64),
    Jump(bool),
}

/// Returns a part that jumps over a `ret` back and forth, and loads constants numbered from `first`, one of them shared
/// by all parts, and vectors of them.
fn part(first: u64, n: u64) -> (Assembler, Vec<Refers>) {
    let mut asm = Assembler::new(Level::Avx2);
    let mut refers = Vec::new();
    let mut load = |asm: &mut Assembler, offset: u32, word: u64| {
        asm.mov_rm(Gpr::RAX, Mem::Constant(offset));
        refers.push(Refers::Word(word));
    };
    let shared = asm.constant(7);
    load(&mut asm, shared, 7);
    for word in first..first + n {
        let offset = if word % 2 == 0 { asm.constant(word) } else { asm.new_constant(word) };
        load(&mut asm, offset, word);
        if word % 5 == 0 {
            let block = asm.constant_block([word, 0, 1 << 40, word]);
            assert_eq!(block % 32, 0);
            load(&mut asm, block, word);
            load(&mut asm, block + 16, 1 << 40);
        }
    }
    let (back, on) = (asm.new_label(), asm.new_label());
    asm.jcc(Condition::Less, on);
    asm.bind(back);
    asm.ret();
    asm.jmp(back);
    asm.jmp(on);
    asm.bind(on);
    asm.ret();
    refers.extend([true, true, true].map(Refers::Jump));
    (asm, refers)
}

#[test]
fn each_part_refers_to_its_own() {
    for n_parts in 1..6u64 {
        let (mut all, mut wanted) = part(100, 3);
        for i in 1..n_parts {
            // One of them exceeds the space, some only have the shared constant.
            let (asm, refers) = part(1000 * i, [0, 13, 3000, 1][i as usize % 4]);
            all.append(asm);
            wanted.extend(refers);
        }
        let code = all.finish().unwrap();
        let bytes = code.bytes();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        let decoded = Decoder::with_ip(64, &bytes[..code.instructions], 0, DecoderOptions::NONE);
        let found = decoded.into_iter().filter_map(|instr| match instr.mnemonic() {
            Mnemonic::Ret => None,
            Mnemonic::Mov => Some(Refers::Word(word(instr.memory_displacement64() as usize))),
            _ => Some(Refers::Jump(bytes[instr.near_branch_target() as usize] == 0xC3)),
        });
        assert_eq!(found.collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn blocks_stay_on_multiples_of_their_length() {
    let mut all = Assembler::new(Level::Avx2);
    all.constant(1);
    let mut other = Assembler::new(Level::Avx2);
    let block = other.constant_block([1, 2, 3, 4, 5, 6, 7, 8]);
    other.mov_rm(Gpr::RAX, Mem::Constant(block));
    all.append(other);
    let code = all.finish().unwrap();
    let displacement = u32::from_le_bytes(code.bytes()[3..7].try_into().unwrap());
    assert_eq!((displacement + 7) % 64, 0);
}

#[test]
fn a_fault_in_a_chunk_is_reported() {
    let mut all = Assembler::new(Level::Avx2);
    let mut other = Assembler::new(Level::Avx2);
    let nowhere = other.new_label();
    other.jmp(nowhere);
    all.append(other);
    assert_eq!(all.finish().unwrap_err().reason.unwrap(), "a jump to a label that is not bound");

    let mut all = Assembler::new(Level::Avx2);
    let mut other = Assembler::new(Level::Avx2);
    other.mov_rm(Gpr::RSP, Mem::Indexed { base: Gpr::RAX, index: Gpr::RSP, scale: 8, disp: 0 });
    all.append(other);
    assert!(all.finish().is_err());
}

#[test]
fn where_a_part_has_no_memory_there_is_no_code() {
    let no_memory = || Assembler::with_room(Level::Avx2, usize::MAX / 4, 0);
    for missing in [1, 2, 3] {
        let [mut first, second] = [1, 2].map(|bit| match missing & bit {
            0 => part(0, 100).0,
            _ => no_memory(),
        });
        first.append(second);
        let code = first.finish().unwrap();
        assert!(!code.room.is_there());
    }
}
