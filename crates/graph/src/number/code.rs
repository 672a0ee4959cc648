//! Straight-line code over multiples of classes, an intermediate step from classes back to nodes.
//!
//! In: instructions, appended by `scale.rs`. Out: their weight, and nodes.
//!
//! Instructions refer to earlier ones. They are replayed without simplification: the normal form of [`Graph::apply`]
//! would move constants out of products to places where they are not shared. Calls are simplified, since that cannot
//! undo the optimisation.

use super::class::ClassId;
use super::real::Double2;
use crate::graph::{Graph, Node, NodeId};
use chainrule_base::{Arena, define_id};
use chainrule_ops::{Counts, Op};
use smallvec::SmallVec;

define_id! {
    /// Id of an instruction.
    pub(super) struct InstrId = "i";
}

/// Instruction.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Instr {
    /// Number.
    Const(Double2),
    /// Constant factor times a value.
    Scaled(Double2, InstrId),
    /// Arithmetic operator.
    Arithmetic(Op, InstrId, InstrId),
    /// Copy of a node with these arguments.
    Call(NodeId, SmallVec<[InstrId; 3]>),
}

/// Multiple of a class: the class, the factor of its unit, and the instruction that computes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Multiple {
    pub(super) class: ClassId,
    pub(super) scale: Double2,
}

/// Instructions with the multiples that they compute.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    pub(super) instrs: Arena<InstrId, Instr>,
    pub(super) computes: Arena<InstrId, Multiple>,
    pub(super) roots: Vec<InstrId>,
}

/// Calls in emitted nodes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Calls {
    /// As written.
    Kept,
    /// Simplified, such as those of numbers.
    Simplified,
}

impl Code {
    pub(super) fn push(&mut self, instr: Instr, class: ClassId, scale: Double2) -> InstrId {
        self.instrs.push(instr);
        self.computes.push(Multiple { class, scale })
    }

    /// Returns the number of uses of each instruction, roots included.
    pub(super) fn uses(&self) -> Arena<InstrId, u32> {
        let mut uses = Arena::filled(self.instrs.len(), 0);
        for root in &self.roots {
            uses[*root] += 1;
        }
        for (id, instr) in self.instrs.iter().rev() {
            if uses[id] == 0 {
                continue;
            }
            for arg in instr.args() {
                uses[arg] += 1;
            }
        }
        uses
    }

    /// Returns whether all scales are moderate numbers, so that they cause no overflow or underflow.
    pub(super) fn is_moderate(&self) -> bool {
        let moderate = |c: Double2| (1e-100..1e100).contains(&c.high.abs());
        self.instrs.iter().all(|(id, instr)| match instr {
            Instr::Scaled(factor, _) => moderate(*factor) && moderate(self.computes[id].scale),
            Instr::Arithmetic(..) => moderate(self.computes[id].scale),
            Instr::Const(_) | Instr::Call(..) => true,
        })
    }

    /// Returns the weight of the instructions that the roots need.
    pub(super) fn weight(&self, graph: &Graph) -> u64 {
        let mut counts = Counts::default();
        let uses = self.uses();
        for (id, instr) in self.instrs.iter() {
            if uses[id] == 0 {
                continue;
            }
            match instr {
                Instr::Const(_) => {}
                Instr::Scaled(factor, _) => counts.record(if factor.high == -1.0 { Op::Neg } else { Op::Mul }),
                Instr::Arithmetic(op, ..) => counts.record(*op),
                Instr::Call(node, _) => match graph.node(*node) {
                    Node::Apply(op, _) => counts.record(op),
                    Node::External(..) => counts.record(Op::Sin),
                    Node::Const(_) | Node::Input(_) | Node::Derivative(_) => {}
                },
            }
        }
        counts.weight
    }

    /// Emits the nodes of the roots.
    pub(super) fn replay(&self, graph: &mut Graph, calls: Calls) -> Vec<NodeId> {
        let uses = self.uses();
        let mut nodes: Arena<InstrId, Option<NodeId>> = Arena::filled(self.instrs.len(), None);
        for (id, instr) in self.instrs.iter() {
            if uses[id] == 0 {
                continue;
            }
            let args: SmallVec<[NodeId; 3]> = instr.args().iter().filter_map(|a| nodes[*a]).collect();
            nodes[id] = Some(match instr {
                Instr::Const(c) => graph.constant(c.high),
                Instr::Scaled(factor, _) if factor.high == -1.0 => graph.raw(Op::Neg, &args),
                Instr::Scaled(factor, _) => {
                    let factor = graph.constant(factor.high);
                    graph.raw(Op::Mul, &[factor, args[0]])
                }
                Instr::Arithmetic(op, ..) => graph.raw(*op, &args),
                Instr::Call(node, _) if args.as_slice() == graph.args(*node) => *node,
                Instr::Call(node, _) => match graph.node(*node) {
                    Node::Apply(op, _) if calls == Calls::Simplified => graph.apply(op, &args),
                    Node::Apply(op, _) => graph.raw(op, &args),
                    Node::External(function, _) => graph.external(function, &args),
                    Node::Const(_) | Node::Input(_) | Node::Derivative(_) => *node,
                },
            });
        }
        self.roots.iter().filter_map(|r| nodes[*r]).collect()
    }
}

impl Instr {
    pub(super) fn args(&self) -> SmallVec<[InstrId; 3]> {
        match self {
            Self::Const(_) => SmallVec::new(),
            Self::Scaled(_, a) => SmallVec::from_slice(&[*a]),
            Self::Arithmetic(_, a, b) => SmallVec::from_slice(&[*a, *b]),
            Self::Call(_, args) => args.clone(),
        }
    }
}
