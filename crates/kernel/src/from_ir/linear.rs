//! Lowering of statements on additive values: zeros, one-hot arrays, sums of two.

use super::Lowering;
use super::layout::{Leaf, LeafType, Value, View, leaves};
use super::offers::Target;
use crate::kernel::{Class, Instr, Order, Reg, Stmt};
use chainrule_base::{Id, Poly, Span};
use chainrule_ir::{Size, Type, VarId};
use chainrule_ops::{Op, Semantics};

impl Lowering<'_> {
    pub(super) fn zero(&mut self, var: VarId, span: Option<Span>) -> Value {
        let n_before = self.b.buffers.len();
        let targets = self.targets(var, span);
        targets
            .iter()
            .map(|target| match target {
                Target::Write(view) => {
                    self.b.fill(view);
                    // An offered destination may be added to later; a new array stays zero.
                    if view.buffer.index() >= n_before {
                        self.b.zeros.insert(view.buffer);
                    }
                    Leaf::Array(view.clone())
                }
                Target::Add(_) => Leaf::Delivered,
                Target::Scalar => Leaf::Reg(self.b.constant(0.0)),
            })
            .collect()
    }

    pub(super) fn one_hot(
        &mut self,
        var: VarId,
        index: VarId,
        value: VarId,
        proved: bool,
        span: Option<Span>,
    ) -> Value {
        let Type::Array(size, _) = self.function.ty(var) else {
            self.b.bug("a one-hot array is no array");
            return Value::new();
        };
        let at = self.index_value(index, (!proved).then_some((size, span)));
        let targets = self.targets(var, span);
        let value = self.value(value);
        for (target, leaf) in targets.iter().zip(&value) {
            match target {
                Target::Write(view) => {
                    self.b.fill(view);
                    self.b.settle(leaf, &view.row(&at));
                }
                Target::Add(view) => self.b.deliver(leaf, &view.row(&at)),
                Target::Scalar => self.b.bug("an array has no place"),
            }
        }
        targets.iter().filter_map(Target::leaf).collect()
    }

    pub(super) fn plus(&mut self, var: VarId, a: VarId, b: VarId, span: Option<Span>) -> Value {
        let types = leaves(self.function.ty(var));
        let targets = self.targets(var, span);
        let (a, b) = (self.value(a), self.value(b));
        let mut value = Value::new();
        for (((ty, target), a), b) in types.iter().zip(&targets).zip(&a).zip(&b) {
            value.push(self.plus_leaf(ty, target, a, b));
        }
        value
    }

    fn plus_leaf(&mut self, ty: &LeafType, target: &Target, a: &Leaf, b: &Leaf) -> Leaf {
        match target {
            Target::Add(view) => {
                self.b.deliver(a, view);
                self.b.deliver(b, view);
                Leaf::Delivered
            }
            Target::Write(view) => {
                let here = Leaf::Array(view.clone());
                match (a, b) {
                    // The operand made later was added to the one made first.
                    (Leaf::Delivered, other) | (other, Leaf::Delivered) if *other == here => {}
                    (Leaf::Array(a), Leaf::Array(b)) if a != b && (*a == *view || *b == *view) => {
                        let other = if a == view { b } else { a };
                        // Adding +0 changes the sign of -0.
                        match self.semantics {
                            Semantics::Algebraic => self.b.deliver(&Leaf::Array(other.clone()), view),
                            Semantics::Strict => self.b.elementwise(view, view, other),
                        }
                    }
                    (Leaf::Array(a), Leaf::Array(b)) => self.b.elementwise(view, a, b),
                    _ => self.b.bug("what is added is no array"),
                }
                here
            }
            Target::Scalar => {
                let (a, b) = (self.b.scalar(a), self.b.scalar(b));
                let dst = self.b.reg(ty.scalar.class());
                self.b.instr(Instr::Op { dst, op: Op::Add, args: [a, b, a] });
                Leaf::Reg(dst)
            }
        }
    }

    /// Returns the value of an index, checked against a size if requested.
    pub(super) fn index_value(&mut self, index: VarId, check: Option<(&Size, Option<Span>)>) -> Poly<Reg> {
        let at = match self.values[index].as_deref() {
            Some([Leaf::Int(at)]) => at.clone(),
            _ => Poly::var(self.scalar(index)),
        };
        if let Some((size, span)) = check {
            let len = self.size(size);
            let message = format!("{} lies outside of an array", self.called(index, "index"));
            let failure = self.b.failure(message, span);
            return self.b.checked(at, len, failure);
        }
        at
    }
}

impl super::builder::Builder {
    /// Returns a register with a constant double.
    pub fn constant(&mut self, value: f64) -> Reg {
        let dst = self.reg(Class::Real);
        self.instr(Instr::Const { dst, value });
        if value == 0.0 {
            self.zero_numbers.insert(dst);
        }
        dst
    }

    /// Fills `view` with zeros.
    pub fn fill(&mut self, view: &View) {
        let zero = self.constant(0.0);
        self.for_each(&view.len(), |b, at| {
            b.instr(Instr::Store { buffer: view.buffer, at: view.offset.add(at), value: zero });
        });
    }

    /// Moves `leaf` to its target, unless it is there already. A scalar stays in its register.
    pub fn bring(&mut self, leaf: &Leaf, target: &Target) {
        match target {
            Target::Write(view) => self.settle(leaf, view),
            Target::Add(view) => self.deliver(leaf, view),
            Target::Scalar => {}
        }
    }

    /// Adds `leaf` to `to`, unless it is delivered already.
    pub fn deliver(&mut self, leaf: &Leaf, to: &View) {
        match leaf {
            Leaf::Delivered => {}
            Leaf::Array(from) if self.zeros.contains(&from.buffer) => {}
            Leaf::Reg(term) if self.zero_numbers.contains(term) => {}
            Leaf::Array(from) => self.elementwise(to, to, from),
            Leaf::Reg(_) | Leaf::Int(_) => {
                let (before, term) = (self.load(to), self.scalar(leaf));
                let value = self.reg(Class::Real);
                self.instr(Instr::Op { dst: value, op: Op::Add, args: [before, term, before] });
                self.instr(Instr::Store { buffer: to.buffer, at: to.offset.clone(), value });
            }
        }
    }

    /// Writes the elementwise sum of `a` and `b` to `to`; all have the same extents.
    pub fn elementwise(&mut self, to: &View, a: &View, b: &View) {
        self.for_each(&to.len(), |this, at| {
            let [x, y] = [a, b].map(|view| {
                let dst = this.reg(Class::Real);
                this.instr(Instr::Load { dst, buffer: view.buffer, at: view.offset.add(at) });
                dst
            });
            let value = this.reg(Class::Real);
            this.instr(Instr::Op { dst: value, op: Op::Add, args: [x, y, x] });
            this.instr(Instr::Store { buffer: to.buffer, at: to.offset.add(at), value });
        });
    }

    /// Emits `body` for each of `count` elements; without a loop if there is one.
    fn for_each(&mut self, count: &Poly<Reg>, body: impl FnOnce(&mut Self, &Poly<Reg>)) {
        if count.as_constant() == Some(1) {
            body(self, &Poly::zero());
            return;
        }
        let index = self.index(count);
        self.open_loop(index);
        body(self, &Poly::var(index));
        let body = self.close_code();
        self.stmt(Stmt::For { index, count: count.clone(), carried: Vec::new(), order: Order::InOrder, body });
    }
}
