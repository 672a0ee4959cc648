//! Jumps, forward and back, near and far.

use super::oracle::Case;
use crate::Level;
use crate::asm::{Assembler, Condition, Label};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

const JCC: [Mnemonic; 16] = {
    use Mnemonic::*;
    [Jo, Jno, Jb, Jae, Je, Jne, Jbe, Ja, Js, Jns, Jp, Jnp, Jl, Jge, Jle, Jg]
};

fn decode(bytes: &[u8]) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).into_iter().collect()
}

#[test]
fn random_jumps_go_to_their_labels() {
    for seed in 0..200 {
        // The numbers come from a separate case, so that the code only has these instructions.
        let mut numbers = Case::new(Level::Avx2, seed);
        let mut asm = Assembler::new(Level::Avx2);
        let labels: Vec<Label> = (0..10).map(|_| asm.new_label()).collect();
        let mut unbound = labels.clone();
        let mut wanted = Vec::new();
        let distance = 1 + numbers.below(60);
        while !unbound.is_empty() {
            for _ in 0..numbers.below(distance) {
                asm.ret();
            }
            if numbers.below(4) == 0 {
                let label = unbound.swap_remove(numbers.below(unbound.len() as u64) as usize);
                asm.bind(label);
            }
            let label = numbers.pick(&labels);
            let at = asm.position();
            match numbers.below(3) {
                0 => {
                    asm.jmp(label);
                    wanted.push((at, Mnemonic::Jmp, label));
                }
                1 => {
                    let condition = numbers.below(16) as usize;
                    asm.jcc(Condition::ALL[condition], label);
                    wanted.push((at, JCC[condition], label));
                }
                _ => {
                    asm.call_label(label);
                    wanted.push((at, Mnemonic::Call, label));
                }
            }
        }
        let places: Vec<usize> = labels.iter().map(|&label| asm.place(label).unwrap()).collect();
        let code = asm.finish().unwrap();
        let decoded = decode(code.bytes());
        let jumps = decoded.iter().filter(|i| i.mnemonic() != Mnemonic::Ret);
        let mut n = 0;
        for (jump, (at, name, label)) in jumps.zip(&wanted) {
            let target = places[labels.iter().position(|l| l == label).unwrap()];
            let is = (jump.ip() as usize, jump.mnemonic(), jump.near_branch_target() as usize);
            assert_eq!(is, (*at, *name, target));
            n += 1;
        }
        assert_eq!(n, wanted.len());
    }
}

#[test]
fn near_jumps_back_are_short() {
    for (between, jmp_len, jcc_len) in [(0, 2, 2), (126, 2, 2), (127, 5, 6), (1000, 5, 6)] {
        for conditional in [false, true] {
            let mut asm = Assembler::new(Level::Avx2);
            let label = asm.new_label();
            asm.bind(label);
            for _ in 0..between {
                asm.ret();
            }
            if conditional {
                asm.jcc(Condition::Less, label);
            } else {
                asm.jmp(label);
            }
            let code = asm.finish().unwrap();
            let jump = *decode(code.bytes()).last().unwrap();
            assert_eq!(jump.len(), if conditional { jcc_len } else { jmp_len });
            assert_eq!(jump.near_branch_target(), 0);
        }
    }
}

#[test]
fn a_negated_condition_holds_when_the_other_does_not() {
    assert_eq!(Condition::Less.negated(), Condition::GreaterEqual);
    assert_eq!(Condition::NoParity.negated(), Condition::Parity);
    for (i, condition) in Condition::ALL.into_iter().enumerate() {
        assert_eq!(condition as usize, i);
        assert_eq!(condition.negated().negated(), condition);
    }
}
