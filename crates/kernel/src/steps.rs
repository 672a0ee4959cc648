//! Expansion of composite operators ([`Row::steps`](chainrule_ops::Row)) into their steps.
//!
//! In: a kernel as lowering makes it. Out: the same kernel without composite operators, which no backend knows. Steps
//! that composite operators of one block share are computed once.

use crate::kernel::{Class, Instr, Kernel, Reg, Stmt};
use crate::registers::Registers;
use chainrule_base::Id;
use chainrule_ops::{Formula, Op};
use rustc_hash::FxHashMap;

/// Replaces composite operators in `kernel` by their steps. Linear in its size.
pub(crate) fn expand(kernel: &mut Kernel) {
    let mut open: Vec<&mut Stmt> = kernel.body.iter_mut().collect();
    while let Some(stmt) = open.pop() {
        match stmt {
            Stmt::Straight(code) => block(code, &mut kernel.regs),
            Stmt::For { body, .. } => open.extend(body),
            Stmt::While { condition, body, .. } => open.extend(condition.iter_mut().chain(body)),
            Stmt::If { then, otherwise, .. } => open.extend(then.iter_mut().chain(otherwise)),
            Stmt::Copy { .. } => {}
        }
    }
}

fn block(code: &mut Vec<Instr>, regs: &mut Registers) {
    if !code.iter().any(|instr| matches!(instr, Instr::Op { op, .. } if op.has_steps())) {
        return;
    }
    let old = std::mem::take(code);
    code.reserve(2 * old.len());
    let mut writer = Writer { code, regs, constants: FxHashMap::default(), known: FxHashMap::default() };
    for instr in old {
        match instr {
            Instr::Op { dst, op, args } => match op.row().steps {
                Some(Formula::Apply(last, inner)) => {
                    let operands = writer.operands(inner, args);
                    writer.code.push(Instr::Op { dst, op: last, args: operands });
                }
                _ => writer.code.push(Instr::Op { dst, op, args }),
            },
            other => writer.code.push(other),
        }
    }
}

struct Writer<'a> {
    code: &'a mut Vec<Instr>,
    regs: &'a mut Registers,
    /// Constants of steps in this block, by their bits.
    constants: FxHashMap<u64, Reg>,
    /// Steps in this block.
    known: FxHashMap<(Op, [Reg; 3]), Reg>,
}

impl Writer<'_> {
    fn operands(&mut self, formulas: &[Formula], args: [Reg; 3]) -> [Reg; 3] {
        let mut all = [Reg::new(0); 3];
        for (i, formula) in formulas.iter().enumerate() {
            let operand = self.formula(formula, args);
            // Unused places repeat the first.
            if i == 0 { all = [operand; 3] } else { all[i] = operand }
        }
        all
    }

    // Recursive on the depth of a formula of the table.
    fn formula(&mut self, formula: &Formula, args: [Reg; 3]) -> Reg {
        match *formula {
            Formula::Arg(i) => args[i],
            // Steps compute the value, they have none to refer to: a test of the table.
            Formula::Value => args[0],
            Formula::Const(value) => {
                let (code, regs) = (&mut *self.code, &mut *self.regs);
                *self.constants.entry(value.to_bits()).or_insert_with(|| {
                    let dst = regs.push(Class::Real);
                    code.push(Instr::Const { dst, value });
                    dst
                })
            }
            Formula::Apply(op, inner) => {
                let mut operands = self.operands(inner, args);
                // Where the larger of two is asked for and one is NaN, so is the result of the composite operator.
                if (op.is_commutative() || op == Op::Max) && operands[1] < operands[0] {
                    operands = [operands[1], operands[0], operands[1]];
                }
                if let Some(known) = self.known.get(&(op, operands)) {
                    return *known;
                }
                let dst = self.regs.push(if op.gives_truth() { Class::Int } else { Class::Real });
                self.code.push(Instr::Op { dst, op, args: operands });
                self.known.insert((op, operands), dst);
                dst
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{GraphPort, Products, lower_graph, lower_graph_with, verify};
    use chainrule_graph::{Graph, Semantics};
    use chainrule_ops::Op;

    #[test]
    fn common_steps_are_computed_once() {
        let mut g = Graph::new(Semantics::Algebraic);
        let (y, x) = (g.input("y"), g.input("x"));
        let (a, b) = (g.apply(Op::AngleRate, &[y, x]), g.apply(Op::AngleRate, &[x, y]));
        let port = |name: &str, nodes: &[chainrule_graph::NodeId]| GraphPort {
            name: name.into(),
            shape: vec![nodes.len()].into(),
            nodes: nodes.to_vec().into(),
        };
        let kernel = lower_graph("f", &g, &[port("in", &[y, x])], &[port("out", &[a, b])]).unwrap();
        assert_eq!(verify(&kernel), Ok(()));
        let crate::Stmt::Straight(code) = &kernel.body[0] else { panic!("one block") };
        let count = |wanted| code.iter().filter(|i| matches!(i, crate::Instr::Op { op, .. } if *op == wanted)).count();
        assert_eq!([Op::Abs, Op::Max, Op::Div, Op::Mul, Op::Add].map(count), [2, 1, 6, 2, 1]);
        let fused =
            lower_graph_with("f".into(), &g, &[port("in", &[y, x])], &[port("out", &[a, b])], Products::Fused).unwrap();
        assert_eq!(verify(&fused), Ok(()));
    }
}
