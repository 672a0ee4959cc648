//! Lowering of a scalar graph to one scheduled straight-line block.
//!
//! In: a graph, and the nodes that are the elements of each input and output. Out: a kernel without loops, sizes or
//! workspace that computes exactly the nodes which the outputs need.
//!
//! **Schedule.** Depth first from the outputs in order. Of several arguments, the one whose tree needs most registers
//! comes first (Sethi and Ullman, 1970: optimal for trees, good for graphs). An input is loaded just before its first
//! use. An output is stored as soon as it is computed or, if that is soon, together with the adjacent element
//! (`beside`). The sine and the cosine of one argument are adjacent, so that a backend can compute them together.
//! Outputs that are structurally zero need no instructions ([`Zeros`]). Constants come before everything else, except
//! those that are outputs, so that a walk through the code predicts its branches better. Everything is linear in the
//! graph, and nothing recurses.
//!
//! **Products** are fused into sums during lowering, if requested (`fuse`).
//!
//! **Truth values.** Values of type `Bool` of the operator table live in `Int` registers. A number used as a truth
//! value means `x != 0`; a truth value used as a number is 0 or 1.

mod beside;
mod code;
mod fuse;
mod look;

use crate::contract::contract;
use crate::kernel::{Buffer, BufferId, Class, External, Instr, Kernel, Place, Port, Reg, Stmt};
use crate::steps;
use crate::verify::class_of;
use crate::zeros::Zeros;
use chainrule_base::{Arena, Diagnostic, Diagnostics, Id, Name, Poly};
use chainrule_graph::{ExternalId, Graph, Node, NodeId};
use chainrule_ops::Op;
use code::{Code, Load};
use look::{Fetched, NONE, Seen, State, look, pairs};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Nodes that form one argument or one result of the kernel, as an array.
#[derive(Clone, PartialEq, Debug)]
pub struct GraphPort<'a> {
    /// Its name.
    pub name: Name,
    /// Its extents, outermost first; empty for a scalar.
    pub shape: Cow<'a, [usize]>,
    /// Its elements in row-major order; as many as the extents say. For an input, inputs of the graph.
    pub nodes: Cow<'a, [NodeId]>,
}

/// Returns the kernel named `name` (a C identifier) that computes `outputs` from `inputs`. Linear in the size of the
/// graph.
///
/// # Errors
/// Bug diagnostics if the ports do not fit the graph, or a needed node has no value as a number.
pub fn lower_graph(
    name: impl Into<Name>,
    graph: &Graph,
    inputs: &[GraphPort<'_>],
    outputs: &[GraphPort<'_>],
) -> Result<Kernel, Diagnostics> {
    lower_graph_with(name.into(), graph, inputs, outputs, Products::Rounded)
}

/// Rounding of the products in sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Products {
    /// Each product is rounded.
    Rounded,
    /// Products are fused into sums. The kernel is that of [`Self::Rounded`] followed by
    /// [`contract`](crate::contract()), up to the numbers of registers, in a third of the time.
    Fused,
}

/// As [`lower_graph`], with products rounded or fused.
///
/// # Errors
/// Those of [`lower_graph`].
pub fn lower_graph_with(
    name: Name,
    graph: &Graph,
    inputs: &[GraphPort<'_>],
    outputs: &[GraphPort<'_>],
    products: Products,
) -> Result<Kernel, Diagnostics> {
    let fuse = products == Products::Fused;
    // Composite operators are expanded before products are fused.
    let at_once = fuse && graph.len() <= fuse::MOST_NODES && !graph.has_steps();
    let mut lowering = Lowering::new(graph, inputs, outputs, at_once)?;
    for port in outputs {
        for node in &*port.nodes {
            lowering.emit_tree(*node);
        }
    }
    lowering.errors.clone().into_result(())?;
    let (regs, code) = lowering.code.finish();
    let (externals, zeros, body) = (lowering.externals, lowering.zeros, vec![Stmt::Straight(code)]);
    let mut kernel = Kernel { regs: regs.into(), externals, zeros, body, ..Kernel::empty(name) };
    for (idx, port) in inputs.iter().enumerate() {
        let port = make_port(port, Place::Input(idx), &mut kernel.buffers);
        kernel.inputs.push(port);
    }
    for (idx, port) in outputs.iter().enumerate() {
        let port = make_port(port, Place::Output(idx), &mut kernel.buffers);
        kernel.outputs.push(port);
    }
    if graph.has_steps() {
        steps::expand(&mut kernel);
    }
    if fuse && !at_once {
        contract(&mut kernel);
    }
    Ok(kernel)
}

fn make_port(port: &GraphPort<'_>, place: Place, buffers: &mut Arena<BufferId, Buffer>) -> Port {
    // Checked above to fit.
    let len = Poly::constant(port.nodes.len() as i64);
    let buffer = buffers.push(Buffer { class: Class::Real, len, place });
    Port { name: port.name.clone(), shape: port.shape.iter().map(|n| Poly::constant(*n as i64)).collect(), buffer }
}

/// Initial capacity of lists of unknown length.
const FEW: usize = 64;

struct Lowering<'a> {
    graph: &'a Graph,
    state: Arena<NodeId, State>,
    /// Registers that the tree of each node needs (Sethi-Ullman number); 0 for inputs, constants and computed nodes.
    /// Kept in an array of its own, since it is read for each argument before the argument's state.
    need: Arena<NodeId, u16>,
    /// Parts of `state` and `need` that are prefetched.
    fetched: Fetched,
    /// Registers of values as truth values.
    truth: FxHashMap<NodeId, Reg>,
    /// Sine and cosine of one argument, each mapped to the other, if an output needs both.
    partner: FxHashMap<NodeId, NodeId>,
    /// Nodes whose arguments are being computed.
    stack: Vec<NodeId>,
    /// Buffer and element of each input of the graph.
    loads: Vec<Option<Load>>,
    /// See [`fuse`].
    sums: fuse::Sums,
    code: Code,
    /// Output elements that are the constant +0.
    zeros: Vec<Zeros>,
    /// External functions that are called, and the index of each function of the graph among them.
    externals: Vec<External>,
    external_idx: Vec<Option<usize>>,
    errors: Diagnostics,
}

impl<'a> Lowering<'a> {
    fn new(
        graph: &'a Graph,
        inputs: &[GraphPort<'_>],
        outputs: &[GraphPort<'_>],
        fuse: bool,
    ) -> Result<Self, Diagnostics> {
        // Allocate long-lived data first, so that freed data leaves no hole below it.
        let n_stores = outputs.iter().map(|port| port.nodes.len()).sum::<usize>();
        let code = Code::with_room(graph.len(), n_stores);
        let Seen { state, need, trigonometric } = look(graph, fuse);
        let mut this = Self {
            graph,
            state,
            need,
            fetched: Fetched::none(graph.len()),
            truth: FxHashMap::default(),
            partner: FxHashMap::default(),
            stack: Vec::with_capacity(FEW),
            loads: vec![None; graph.inputs().len()],
            sums: fuse::Sums::default(),
            code,
            zeros: Vec::new(),
            externals: Vec::new(),
            external_idx: vec![None; graph.external_functions().len()],
            errors: Diagnostics::new(),
        };
        for (idx, port) in inputs.iter().enumerate() {
            this.check_port(port);
            for (at, node) in (0..).zip(&*port.nodes) {
                match (node.index() < graph.len()).then(|| graph.node(*node)) {
                    Some(Node::Input(input)) => this.loads[input.index()] = Some((BufferId::new(idx), at)),
                    _ => this.wrong(format!("element {at} of the argument `{}` is not an input", port.name)),
                }
            }
        }
        for (idx, port) in outputs.iter().enumerate() {
            this.check_port(port);
            for (at, node) in (0..).zip(&*port.nodes) {
                if node.index() >= graph.len() {
                    this.wrong(format!("element {at} of the result `{}` is no node", port.name));
                    continue;
                }
                let (state, buffer) = (&mut this.state[*node], BufferId::new(inputs.len() + idx));
                if state.as_const().is_some_and(|value| value.to_bits() == 0) {
                    Zeros::add(&mut this.zeros, buffer, at);
                    continue;
                }
                state.flags |= State::STORED;
                state.real = this.code.note_store(buffer, at, state.real);
            }
        }
        std::mem::take(&mut this.errors).into_result(())?;
        let pairs = pairs(&trigonometric);
        this.find_needed(fuse);
        for (a, b) in pairs {
            if [a, b].iter().all(|id| this.state[*id].flags & (State::NEEDED | State::STORED) != 0) {
                this.partner.insert(a, b);
                this.partner.insert(b, a);
            }
        }
        Ok(this)
    }

    fn wrong(&mut self, what: String) {
        self.errors.push(Diagnostic::bug("a scalar graph cannot be lowered").with_reason(what));
    }

    fn check_port(&mut self, port: &GraphPort<'_>) {
        let len = port.shape.iter().try_fold(1i64, |len, n| len.checked_mul(i64::try_from(*n).ok()?));
        if len != i64::try_from(port.nodes.len()).ok() {
            self.wrong(format!("`{}` has {} elements, which is not what its shape says", port.name, port.nodes.len()));
        }
    }

    /// Computes `root` and everything it needs, arguments first.
    fn emit_tree(&mut self, root: NodeId) {
        let mut next = Some(root);
        while let Some(id) = next.and_then(|id| self.emit_plain(id)) {
            let state = self.state[id];
            if state.is(State::BINARY) {
                // All arguments that need a register are computed; a node of two numbers is handled by `emit_plain`.
                state.args.iter().for_each(|arg| self.emit_leaf(*arg));
                for arg in state.args {
                    self.real(arg);
                }
                next = Some(id);
                continue;
            }
            next = match (!state.is(State::OPEN)).then(|| self.push_args(id)).flatten() {
                Some(first) => {
                    self.state[id].flags |= State::OPEN;
                    Some(first)
                }
                None => {
                    self.emit(id);
                    self.stack.pop()
                }
            };
        }
    }

    /// Computes and stores `id` and the nodes on the stack as long as they are operators of two numbers whose arguments
    /// are computed, or inputs and constants that are not outputs. Returns the first other node, whose binary arguments
    /// are computed.
    ///
    /// While the arguments of a node are computed, the node waits on the stack, below all but the first of its
    /// arguments that need a register. The argument that needs most registers comes first; the left one if they are
    /// equal.
    #[inline(never)]
    fn emit_plain(&mut self, mut id: NodeId) -> Option<NodeId> {
        let (state, need) = (self.state.as_mut_slice(), self.need.as_mut_slice());
        loop {
            let node = state[id.index()];
            if !node.is(State::DONE) {
                if !node.is(State::BINARY) {
                    return Some(id);
                }
                let [a, b] = node.args;
                if !node.is(State::OPEN) {
                    self.fetched.fetch(id, state, need);
                    let (need_a, need_b) = (need[a.index()], need[b.index()]);
                    if need_a | need_b != 0 {
                        state[id.index()].flags |= State::OPEN;
                        self.stack.push(id);
                        let (first, last) = if need_b > need_a { (b, a) } else { (a, b) };
                        if need_a.min(need_b) > 0 {
                            self.stack.push(last);
                        }
                        id = first;
                        continue;
                    }
                }
                let (x, y) = (&state[a.index()], &state[b.index()]);
                let is_done = x.flags & y.flags & State::DONE != 0;
                let (mut x, mut y) = (x.real, y.real);
                if !is_done | (x == NONE) | (y == NONE) {
                    for (arg, real) in [(a, &mut x), (b, &mut y)] {
                        let state = &mut state[arg.index()];
                        *real = match (state.is(State::DONE), state.is(State::STORED)) {
                            (true, _) => state.real,
                            (false, true) => NONE,
                            (false, false) => self.code.load(state, &self.loads),
                        };
                        if *real == NONE {
                            return Some(id);
                        }
                    }
                }
                need[id.index()] = 0;
                let is_free = node.flags & (State::KEPT | State::STORED) == 0;
                if node.op == Op::Mul && is_free && self.sums.fuse(state, id, node) {
                    id = self.stack.pop()?;
                    continue;
                }
                let args = [x, y].map(|real| Reg::new(real as usize));
                let dst = self.code.define(|dst| fuse::computed(state, dst, node, args));
                state[id.index()] = State { real: dst.index() as u32, flags: State::DONE, ..node };
                if node.is(State::STORED) {
                    self.code.store(dst, node.real, Some(self.sums.n_fused));
                }
            }
            id = self.stack.pop()?;
        }
    }

    /// Pushes `id` and then its arguments that need registers, except the first, which is returned; `None` if there is
    /// none.
    fn push_args(&mut self, id: NodeId) -> Option<NodeId> {
        let waiting = self.stack.len() + 1;
        self.stack.push(id);
        let (need, args) = (&self.need, self.graph.args(id));
        self.stack.extend(args.iter().rev().filter(|arg| need[**arg] > 0));
        if let several @ [_, _, ..] = &mut self.stack[waiting..] {
            several.sort_by_key(|arg| need[*arg]);
        }
        // The first argument, or `id` if there is none.
        self.stack.pop().filter(|first| *first != id)
    }

    /// Computes `arg`, an input or a constant, unless it is computed already.
    fn emit_leaf(&mut self, arg: NodeId) {
        if !self.state[arg].is(State::DONE) {
            self.emit_one(arg);
        }
    }

    /// Computes `id`, whose arguments that need a register are computed, and stores it if it is an output. If `id` is a
    /// sine, the cosine of the same argument follows, and vice versa.
    fn emit(&mut self, id: NodeId) {
        let graph = self.graph;
        graph.args(id).iter().for_each(|arg| self.emit_leaf(*arg));
        self.emit_one(id);
        if let Some(partner) = self.partner.get(&id).copied()
            && !self.state[partner].is(State::DONE)
        {
            self.emit_one(partner);
        }
    }

    /// Computes `id`, whose arguments are computed, and stores it if it is an output.
    fn emit_one(&mut self, id: NodeId) {
        let state = &mut self.state[id];
        self.need[id] = 0;
        let mut store = NONE;
        if state.is(State::STORED) {
            store = std::mem::replace(&mut state.real, NONE);
        }
        match self.graph.node(id) {
            // The first use of a constant determines its class.
            Node::Const(_) => {}
            Node::Input(input) => {
                if self.code.load(state, &self.loads) == NONE {
                    let name = &self.graph.inputs()[input.index()].0;
                    self.wrong(format!("the input `{name}` is needed, but no argument holds it"));
                    let dst = self.code.reg(Class::Real);
                    self.set_real(id, dst);
                }
            }
            Node::Apply(op, nodes) if op.is_numeric() => {
                let args = match op.arity() {
                    0 | 1 => [self.real(nodes[0]); 3],
                    2 => {
                        let (a, b) = (self.real(nodes[0]), self.real(nodes[1]));
                        [a, b, a]
                    }
                    _ => [self.real(nodes[0]), self.real(nodes[1]), self.real(nodes[2])],
                };
                let dst = self.code.define(|dst| Instr::Op { dst, op, args });
                self.set_real(id, dst);
            }
            Node::Apply(op, nodes) => {
                let row = op.row();
                let mut args = [None; 3];
                for (arg, (node, ty)) in args.iter_mut().zip(nodes.iter().zip(row.args)) {
                    *arg = Some(self.value(*node, class_of(*ty)));
                }
                let first = args[0].unwrap_or_else(|| Reg::new(0));
                let args = args.map(|arg| arg.unwrap_or(first));
                match class_of(row.result) {
                    Class::Real => {
                        let dst = self.code.define(|dst| Instr::Op { dst, op, args });
                        self.set_real(id, dst);
                    }
                    Class::Int => {
                        let dst = self.code.define_int(|dst| Instr::Op { dst, op, args });
                        self.truth.insert(id, dst);
                    }
                }
            }
            Node::External(function, _) => {
                let args = self.graph.args(id).iter().map(|arg| self.real(*arg)).collect();
                let function = self.external(function);
                let dst = self.code.define(|dst| Instr::External { dst, function, args });
                self.set_real(id, dst);
            }
            Node::Derivative(_) => {
                self.wrong("a derivative in it was not worked out".to_owned());
                let dst = self.code.reg(Class::Real);
                self.set_real(id, dst);
            }
        }
        self.state[id].flags |= State::DONE;
        if store != NONE {
            let value = self.real(id);
            // Stores of a constant stay together.
            let n_fused = self.state[id].as_const().is_none().then_some(self.sums.n_fused);
            self.code.store(value, store, n_fused);
        }
    }

    fn set_real(&mut self, id: NodeId, reg: Reg) {
        self.state[id].real = reg.index() as u32;
    }

    /// Returns the register that holds the computed `id` as a number.
    #[inline]
    fn real(&mut self, id: NodeId) -> Reg {
        match self.state[id].real {
            NONE => self.value(id, Class::Real),
            reg => Reg::new(reg as usize),
        }
    }

    /// Returns the index of an external function among those that are called.
    fn external(&mut self, id: ExternalId) -> usize {
        let next = self.externals.len();
        let Some(function) = self.graph.external_function(id) else {
            self.wrong(format!("the function {id} is not registered"));
            return next;
        };
        let idx = *self.external_idx[id.index()].get_or_insert(next);
        if idx == next {
            self.externals.push(External {
                name: function.name().clone(),
                arity: function.arity(),
                call: Some(function.value_fn()),
                c_name: function.c_name().cloned(),
            });
        }
        idx
    }

    /// Returns the register that holds the computed `id` as `class`.
    fn value(&mut self, id: NodeId, class: Class) -> Reg {
        let real = Some(self.state[id].real).filter(|reg| *reg != NONE).map(|reg| Reg::new(reg as usize));
        let truth = self.truth.get(&id).copied();
        match (class, real, truth) {
            (Class::Real, Some(reg), _) | (Class::Int, _, Some(reg)) => reg,
            (Class::Real, None, Some(src)) => {
                let dst = self.code.define(|dst| Instr::ToReal { dst, src });
                self.set_real(id, dst);
                dst
            }
            (Class::Real, None, None) => {
                let value = self.state[id].as_const().unwrap_or(f64::NAN);
                let dst = self.code.define(|dst| Instr::Const { dst, value });
                self.set_real(id, dst);
                dst
            }
            (Class::Int, _, None) => {
                let dst = if let Some(c) = self.state[id].as_const() {
                    let value = Poly::constant(i64::from(c != 0.0));
                    self.code.define_int(|dst| Instr::Int { dst, value })
                } else {
                    let x = self.real(id);
                    let zero = self.code.define(|dst| Instr::Const { dst, value: 0.0 });
                    let is_zero = self.code.define_int(|dst| Instr::Op { dst, op: Op::Eq, args: [x, zero, x] });
                    self.code.define_int(|dst| Instr::Op { dst, op: Op::Not, args: [is_zero; 3] })
                };
                self.truth.insert(id, dst);
                dst
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;
    use chainrule_graph::Semantics;

    fn port<'a>(name: &str, nodes: &'a [NodeId]) -> GraphPort<'a> {
        GraphPort { name: name.into(), shape: vec![nodes.len()].into(), nodes: nodes.into() }
    }

    #[test]
    fn sine_and_cosine_are_neighbours_and_outputs_are_stored_at_once() {
        let mut g = Graph::new(Semantics::Strict);
        let (x, y) = (g.input("x"), g.input("y"));
        let s = g.raw(Op::Sin, &[x]);
        let e = g.raw(Op::Exp, &[y]);
        let c = g.raw(Op::Cos, &[x]);
        let p = g.raw(Op::Mul, &[s, e]);
        let q = g.raw(Op::Add, &[p, c]);
        let unused = g.raw(Op::Log, &[y]);
        assert_ne!(unused, q);
        let k = lower_graph("f", &g, &[port("in", &[x, y])], &[port("out", &[p, q, x, s])]).unwrap();
        assert_eq!(verify(&k), Ok(()));
        insta::assert_snapshot!(k, @r"
        kernel f
        input in: real[2] in b0
        output out: real[4] in b1
        r0 = load b0[0]
        r1 = sin r0
        store b1[2] = r0
        store b1[3] = r1
        r2 = cos r0
        r3 = load b0[1]
        r4 = exp r3
        r5 = mul r1, r4
        r6 = add r5, r2
        store b1[0] = r5
        store b1[1] = r6
        ");
    }

    #[test]
    fn a_cosine_is_computed_with_a_sine_only_if_an_output_needs_it() {
        let mut g = Graph::new(Semantics::Strict);
        let (x, y) = (g.input("x"), g.input("y"));
        let of = |g: &mut Graph, op, x| g.raw(op, &[x]);
        let [sx, cx, sy, cy] =
            [(Op::Sin, x), (Op::Cos, x), (Op::Sin, y), (Op::Cos, y)].map(|(op, x)| of(&mut g, op, x));
        // A sum needs the first; nothing needs the second.
        let sum = g.raw(Op::Add, &[sx, sy]);
        let far = g.raw(Op::Mul, &[sum, cx]);
        let unused = g.raw(Op::Mul, &[sum, cy]);
        assert_ne!(unused, far);
        let k = lower_graph("f", &g, &[port("in", &[x, y])], &[port("out", &[far])]).unwrap();
        assert_eq!(verify(&k), Ok(()));
        insta::assert_snapshot!(k, @r"
        kernel f
        input in: real[2] in b0
        output out: real[1] in b1
        r0 = load b0[0]
        r1 = sin r0
        r2 = cos r0
        r3 = load b0[1]
        r4 = sin r3
        r5 = add r1, r4
        r6 = mul r5, r2
        store b1[0] = r6
        ");
    }

    #[test]
    fn truth_values_and_numbers_are_converted_where_they_meet() {
        let mut g = Graph::new(Semantics::Strict);
        let (x, y, one) = (g.input("x"), g.input("y"), g.constant(1.0));
        let less = g.raw(Op::Lt, &[x, y]);
        let sum = g.raw(Op::Add, &[less, one]);
        let both = g.raw(Op::And, &[x, less]);
        let chosen = g.raw(Op::Select, &[both, sum, y]);
        let k = lower_graph("f", &g, &[port("in", &[x, y])], &[port("out", &[chosen, less])]).unwrap();
        assert_eq!(verify(&k), Ok(()));
        insta::assert_snapshot!(k, @r"
        kernel f
        input in: real[2] in b0
        output out: real[2] in b1
        r0 = 1.0
        r1 = load b0[0]
        r2 = load b0[1]
        r3 = lt r1, r2
        r4 = real r3
        store b1[1] = r4
        r5 = 0.0
        r6 = eq r1, r5
        r7 = not r6
        r8 = and r7, r3
        r9 = add r4, r0
        r10 = select r8, r9, r2
        store b1[0] = r10
        ");
    }

    #[test]
    fn ports_that_do_not_fit_are_bugs_not_panics() {
        let mut g = Graph::new(Semantics::Strict);
        let (x, y) = (g.input("x"), g.input("y"));
        let sum = g.raw(Op::Add, &[x, y]);
        let errors = lower_graph("f", &g, &[port("in", &[x])], &[port("out", &[sum])]).unwrap_err();
        insta::assert_snapshot!(errors, @r"bug in Chainrule: a scalar graph cannot be lowered: the input `y` is needed, but no argument holds it");
        let nodes = [x, sum];
        let wrong = GraphPort { shape: vec![3].into(), ..port("in", &nodes) };
        let errors = lower_graph("f", &g, &[wrong], &[port("out", &[NodeId::new(99)])]).unwrap_err();
        insta::assert_snapshot!(errors, @r"
        bug in Chainrule: a scalar graph cannot be lowered: `in` has 2 elements, which is not what its shape says
        bug in Chainrule: a scalar graph cannot be lowered: element 1 of the argument `in` is not an input
        bug in Chainrule: a scalar graph cannot be lowered: element 0 of the result `out` is no node
        ");
        // No elements, but an extent beyond 63 bits.
        let huge = GraphPort { shape: vec![usize::MAX, 0].into(), ..port("in", &[]) };
        let errors = lower_graph("f", &g, &[huge], &[]).unwrap_err();
        insta::assert_snapshot!(errors, @"bug in Chainrule: a scalar graph cannot be lowered: `in` has 0 elements, which is not what its shape says");
    }

    #[test]
    fn a_million_nodes_in_a_chain_lower() {
        let mut g = Graph::new(Semantics::Strict);
        let x = g.input("x");
        let mut last = x;
        for i in 0..1_000_000 {
            last = if i % 2 == 0 { g.raw(Op::Sin, &[last]) } else { g.raw(Op::Add, &[x, last]) };
        }
        let k = lower_graph("f", &g, &[port("in", &[x])], &[port("out", &[last])]).unwrap();
        assert_eq!(verify(&k), Ok(()));
        let [Stmt::Straight(code)] = k.body.as_slice() else { panic!("one block") };
        assert_eq!(code.len(), 1_000_002);
    }
}
