//! Blocks, offers, and statements without blocks of their own.

use super::Lowering;
use super::layout::{self, Leaf, Value, leaves};
use super::offers::{Offers, Target};
use crate::kernel::{Class, Instr, Reg};
use chainrule_base::{Arena, Id, Poly, Span};
use chainrule_ir::bound::range_of_op;
use chainrule_ir::{Block, Expr, Stmt, Type, VarId};
use chainrule_ops::Op;

impl Lowering<'_> {
    /// Opens a frame and lowers `block` in it; returns its value. What of it lies at an offered place
    /// is written there; the rest is the caller's to settle before closing the frame.
    pub(super) fn open_block(&mut self, block: &Block, offers: Offers) -> Value {
        self.b.open_frame();
        self.spread(block, offers);
        for (idx, stmt) in block.stmts.iter().enumerate() {
            self.b.start_of_stmt(idx);
            self.save_before(stmt.var);
            if !self.live.needed[stmt.var] {
                continue;
            }
            let value = self.stmt(stmt);
            self.keep(stmt.var, &value);
            self.values[stmt.var] = Some(value);
            self.made(stmt.var);
            self.b.end_of_stmt(idx);
        }
        self.b.start_of_stmt(usize::MAX);
        self.value(block.result)
    }

    /// Keeps the arrays of `value`, which is that of `var`, as long as something uses them.
    fn keep(&mut self, var: VarId, value: &Value) {
        let function = self.function;
        let mut element = function.ty(var);
        while let Type::Array(_, inner) = element {
            element = inner;
        }
        let fields: &[Type] = if let Type::Tuple(fields, _) = element { fields } else { std::slice::from_ref(element) };
        let mut leaves = value.iter();
        for (k, field) in fields.iter().enumerate() {
            for leaf in leaves.by_ref().take(field.n_leaves()) {
                if let (Leaf::Array(view), Some(last)) = (leaf, self.live.last_use(var, k)) {
                    self.b.keep(view.buffer, last);
                }
            }
        }
    }

    /// Returns the value of `var`.
    pub(super) fn value(&mut self, var: VarId) -> Value {
        if let Some(value) = &self.values[var] {
            self.b.origin = self.function.vars[var].span.or(self.b.origin);
            return value.clone();
        }
        self.b.bug("a variable is used before it is bound");
        Value::new()
    }

    /// Returns the register of a scalar variable.
    pub(super) fn scalar(&mut self, var: VarId) -> Reg {
        match self.values[var].as_deref() {
            Some([leaf]) => {
                let leaf = leaf.clone();
                self.b.origin = self.function.vars[var].span.or(self.b.origin);
                self.b.scalar(&leaf)
            }
            _ => {
                self.b.bug("a tuple stands where a number belongs");
                self.b.reg(Class::Real)
            }
        }
    }

    /// Returns component `idx` of a tuple.
    pub(super) fn component(&mut self, tuple: VarId, idx: usize) -> Value {
        let leaves = self.component_leaves(tuple, idx);
        self.value(tuple).get(leaves).map(<[Leaf]>::to_vec).unwrap_or_default()
    }

    /// Returns the range of leaves of component `idx` of a tuple.
    pub(super) fn component_leaves(&mut self, tuple: VarId, idx: usize) -> std::ops::Range<usize> {
        let Type::Tuple(fields, _) = self.function.ty(tuple) else {
            self.b.bug("a component is taken of what is not a tuple");
            return 0..0;
        };
        let start: usize = fields.iter().take(idx).map(Type::n_leaves).sum();
        start..start + fields.get(idx).map_or(0, Type::n_leaves)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Value {
        if let Some(size) = &self.function.vars[stmt.var].value {
            return vec![Leaf::Int(self.size(size))];
        }
        let span = self.span(stmt.var, stmt.span);
        self.b.origin = span;
        match &stmt.expr {
            Expr::Real(value) => vec![Leaf::Reg(self.b.constant(*value))],
            Expr::Bool(value) => {
                let dst = self.b.reg(Class::Int);
                self.b.instr(Instr::Int { dst, value: Poly::constant(i64::from(*value)) });
                vec![Leaf::Reg(dst)]
            }
            Expr::Size(size) => vec![Leaf::Int(self.size(size))],
            Expr::Op(Op::Select, args) if self.chosen(args).is_some() => {
                let chosen = self.chosen(args).unwrap_or(stmt.var);
                self.value(chosen)
            }
            Expr::Op(op, args) => vec![self.op(*op, args, self.function.ty(stmt.var), span)],
            Expr::ToReal(var) => {
                let src = self.scalar(*var);
                let dst = self.b.reg(Class::Real);
                self.b.instr(Instr::ToReal { dst, src });
                vec![Leaf::Reg(dst)]
            }
            Expr::ToInt(var) => {
                let src = self.scalar(*var);
                let dst = self.b.reg(Class::Int);
                self.b.instr(Instr::ToInt { dst, src });
                vec![Leaf::Int(Poly::var(dst))]
            }
            Expr::Get { array, index, proved } => self.get(*array, *index, *proved, span),
            Expr::Array(args) => {
                let targets = self.targets(stmt.var, span);
                for (idx, arg) in (0..).zip(args) {
                    let row = self.value(*arg);
                    for (leaf, target) in row.iter().zip(&targets) {
                        self.b.bring(leaf, &target.row(&Poly::constant(idx)));
                    }
                }
                targets.iter().filter_map(Target::leaf).collect()
            }
            Expr::Tuple(args) => args.iter().flat_map(|arg| self.value(*arg)).collect(),
            Expr::Component(tuple, idx) => self.component(*tuple, *idx),
            Expr::Build { size, index, body } => self.build(stmt.var, size, *index, body, span),
            Expr::Fold(steps) => self.fold(stmt.var, steps, span),
            Expr::Sum { count, index, body } => self.sum(stmt.var, count, *index, body, span),
            Expr::Loop(steps) => self.general(stmt.var, steps, span),
            Expr::Zero => self.zero(stmt.var, span),
            Expr::OneHot { index, value, proved } => self.one_hot(stmt.var, *index, *value, *proved, span),
            Expr::Plus(a, b) => self.plus(stmt.var, *a, *b, span),
            Expr::While(steps) => self.while_loop(stmt.var, steps, span),
            Expr::If { condition, then, otherwise } => self.branch(stmt.var, *condition, then, otherwise, span),
            Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_) | Expr::Again { .. } => {
                self.b.bug("a derivative in it was not worked out");
                Value::new()
            }
        }
    }

    /// Returns the taken operand of a select whose condition is known.
    fn chosen(&self, args: &[VarId]) -> Option<VarId> {
        let [condition, then, otherwise] = args else { return None };
        self.known.get(condition).map(|holds| if *holds { *then } else { *otherwise })
    }

    fn op(&mut self, op: Op, vars: &[VarId], result: &Type, span: Option<Span>) -> Leaf {
        let row = op.row();
        if vars.len() != row.args.len() {
            self.b.bug("an operator has too few or too many arguments");
        }
        let integer = vars
            .iter()
            .zip(row.args)
            .any(|(var, ty)| *ty == chainrule_ops::Type::Num && *self.function.ty(*var) != Type::Double);
        let regs: Vec<Reg> = vars.iter().map(|var| self.scalar(*var)).collect();
        let first = regs.first().copied().unwrap_or_else(|| Reg::new(0));
        let mut args = [first; 3];
        args.iter_mut().zip(&regs).for_each(|(arg, reg)| *arg = *reg);
        if integer {
            let dst = self.integer_result(op, vars);
            let symbol = row.symbol.unwrap_or(row.name);
            let failure = match op {
                Op::Quot | Op::Mod => format!("`{symbol}` by zero, or its result does not fit into 64 bits"),
                _ => format!("the result of `{symbol}` does not fit into 64 bits"),
            };
            let failure = self.b.failure(failure, span);
            self.b.instr(Instr::IntOp { dst, op, args, failure });
            return if *result == Type::Int { Leaf::Int(Poly::var(dst)) } else { Leaf::Reg(dst) };
        }
        let dst = self.b.reg(crate::verify::class_of(row.result));
        self.b.instr(Instr::Op { dst, op, args });
        Leaf::Reg(dst)
    }

    /// Returns the register for the result of an integer operator, with its known range.
    fn integer_result(&mut self, op: Op, vars: &[VarId]) -> Reg {
        let operand = |var: &VarId| match self.values[*var].as_deref() {
            Some([Leaf::Int(poly)]) => Some(poly),
            _ => None,
        };
        let range = match vars {
            [a, b] => operand(a).zip(operand(b)).map(|(a, b)| range_of_op(op, [a, b], |reg| self.b.range(reg))),
            _ => None,
        };
        self.b.ranged(range.unwrap_or_default())
    }

    fn get(&mut self, array: VarId, index: VarId, proved: bool, span: Option<Span>) -> Value {
        let mut at = match self.values[index].as_deref() {
            Some([Leaf::Int(at)]) => at.clone(),
            _ => Poly::var(self.scalar(index)),
        };
        let Type::Array(size, element) = self.function.ty(array) else {
            self.b.bug("an element is taken of what is not an array");
            return Value::new();
        };
        if !proved {
            let len = self.size(size);
            let (index, array) = (self.called(index, "index"), self.called(array, "array"));
            let failure = self.b.failure(format!("{index} lies outside of {array}"), span);
            at = self.b.checked(at, len, failure);
        }
        if let Some(value) = self.same_element(array) {
            return value;
        }
        let types = leaves(element);
        let rows = self.value(array);
        let element = |(leaf, ty): (Leaf, &layout::LeafType)| match leaf {
            Leaf::Array(view) if ty.dims.is_empty() => {
                let reg = self.b.load(&view.row(&at));
                if ty.scalar == layout::Scalar::Int { Leaf::Int(Poly::var(reg)) } else { Leaf::Reg(reg) }
            }
            Leaf::Array(view) => Leaf::Array(view.row(&at)),
            other => other,
        };
        rows.into_iter().zip(&types).map(element).collect()
    }

    /// Returns the number that all elements of an array are, if it is built of one from outside, or has only that: to
    /// read it only checks the index.
    fn same_element(&self, array: VarId) -> Option<Value> {
        let element = match self.defs[array]? {
            Expr::Build { index, body, .. } if body.stmts.is_empty() && body.result != *index => body.result,
            Expr::Array(elements) if elements.len() == 1 => elements[0],
            _ => return None,
        };
        let value = self.values[element].clone()?;
        matches!(value[..], [Leaf::Int(_) | Leaf::Reg(_)]).then_some(value)
    }

    /// Loads the scalars among the parameters, which until then are views of their ports.
    pub(super) fn load_parameters(&mut self) {
        let values: &mut Arena<VarId, Option<Value>> = &mut self.values;
        for param in &self.function.params {
            for leaf in values[*param].iter_mut().flatten() {
                if let Leaf::Array(view) = leaf
                    && view.dims.is_empty()
                {
                    *leaf = Leaf::Reg(self.b.load(view));
                }
            }
        }
    }
}
