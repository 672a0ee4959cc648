//! Facts about the variables of the new function.

use super::{Kind, Rebuild, Slice};
use crate::cost;
use crate::walk;
use chainrule_base::Id;
use chainrule_ir::{Block, Expr, Size, StateLoop, Type, VarId, size_of};
use chainrule_ops::{self as ops, Op};
use std::rc::Rc;

/// Maximum nesting of minima and maxima in an index.
const MAX_EXTREMES: u32 = 4;

impl Rebuild<'_> {
    /// Returns the expression of `var`; `None` for parameters, indices and states.
    pub(crate) fn def(&self, var: VarId) -> Option<Rc<Expr>> {
        self.defs.get(var.index())?.expr.clone()
    }

    /// Returns the number of `var`, if it is a literal.
    pub(crate) fn real_of(&self, var: VarId) -> Option<f64> {
        match self.defs.get(var.index())?.expr.as_deref() {
            Some(Expr::Real(value)) => Some(*value),
            _ => None,
        }
    }

    /// Returns the truth value of `var`, if it is known: a literal, or decided by an enclosing branch.
    pub(crate) fn truth(&self, var: VarId) -> Option<bool> {
        match self.defs.get(var.index())?.expr.as_deref() {
            Some(Expr::Bool(value)) => Some(*value),
            _ => self.mode.known.iter().rev().find(|(known, _)| *known == var).map(|(_, value)| *value),
        }
    }

    /// Returns the `Int` `var` as a size.
    pub(crate) fn size_of(&self, var: VarId) -> Size {
        size_of(&self.vars, var)
    }

    pub(crate) fn ty(&self, var: VarId) -> &Type {
        &self.vars[var].ty
    }

    /// Returns the cost of an element of the build `var`.
    pub(crate) fn element_cost(&self, var: VarId) -> f64 {
        self.defs.get(var.index()).map_or(f64::INFINITY, |def| def.element_cost)
    }

    /// Returns integers that are nonnegative where the operator `op` of `args` is `value`; none if it compares no
    /// integers.
    pub(crate) fn learned(&self, op: Op, args: &[VarId], value: bool) -> Vec<Size> {
        match args {
            &[x, y] if *self.ty(x) == Type::Int => self.ranges.learned(op, [x, y].map(|arg| self.size_of(arg)), value),
            _ => Vec::new(),
        }
    }

    /// Returns the integer that all elements of `array` are, if it is a literal. Programs read such arrays to check an
    /// index.
    pub(crate) fn same_in_all_elements(&self, array: VarId) -> Option<i64> {
        match self.def(array).as_deref() {
            Some(Expr::Build { body, .. }) => self.vars[body.result].value.as_ref()?.as_constant(),
            _ => None,
        }
    }

    /// Returns the cost of computing `expr`, an expression of the new function.
    pub(crate) fn expr_cost(&self, expr: &Expr) -> f64 {
        cost::expr(expr, &|var: VarId| &self.vars[var].ty)
    }

    /// Returns whether every variable of `size` is in scope and bound outside `block`, its statements and its
    /// `binders`.
    pub(crate) fn is_outside(&self, size: &Size, block: &Block, binders: &[VarId]) -> bool {
        size.vars().iter().all(|v| !binders.contains(v) && self.bound_in(block, *v).is_none())
    }

    /// Returns the number of loops between the binding of `var` and here.
    pub(crate) fn loops_since(&self, var: VarId) -> usize {
        let level = self.defs.get(var.index()).map_or(0, |def| def.level);
        self.open.iter().skip(level + 1).filter(|open| open.is_loop()).count()
    }

    /// Returns whether the integer `index`, which may be a minimum, a maximum or quotients of others, is proved to be
    /// in range of an array of `size` elements.
    pub(crate) fn in_range(&self, mut index: VarId, size: &Size) -> bool {
        // `div x d < n` where `x < n * d`.
        let mut size = size.clone();
        while let Some((dividend, divisor)) = self.quotient(index) {
            index = dividend;
            size = size.mul(&divisor);
        }
        let is_natural = |size: &Size| self.ranges.not_negative(size);
        let is_below = |index: &Size| self.ranges.not_negative(&size.sub(index).sub(&Size::constant(1)));
        self.extremes(index, Op::Max, MAX_EXTREMES, &is_natural)
            && self.extremes(index, Op::Min, MAX_EXTREMES, &is_below)
    }

    // The operands of `index`, if it is a quotient by a positive number.
    fn quotient(&self, index: VarId) -> Option<(VarId, Size)> {
        let def = self.def(index)?;
        let Expr::Op(Op::Quot, args) = &*def else { return None };
        let &[dividend, divisor] = args.as_slice() else { return None };
        let divisor = self.size_of(divisor);
        (*self.ty(index) == Type::Int && self.ranges.not_negative(&divisor.sub(&Size::constant(1))))
            .then_some((dividend, divisor))
    }

    /// Returns whether `holds` for the integer `var`: for one operand of an operator `one`, for both of its opposite.
    // Recursive on `left`.
    fn extremes(&self, var: VarId, one: Op, left: u32, holds: &dyn Fn(&Size) -> bool) -> bool {
        let inner = |var: VarId| self.extremes(var, one, left - 1, holds);
        match self.def(var).as_deref() {
            Some(Expr::Op(op @ (Op::Max | Op::Min), args)) if left > 0 && *self.ty(var) == Type::Int => {
                if *op == one {
                    inner(args[0]) || inner(args[1])
                } else {
                    inner(args[0]) && inner(args[1])
                }
            }
            _ => holds(&self.size_of(var)),
        }
    }

    /// Returns `x` if `count` is `max x 0`, or that of a smaller literal.
    pub(crate) fn clamped(&self, count: &Size) -> Option<Size> {
        let def = self.def(count.as_var()?)?;
        let Expr::Op(Op::Max, args) = &*def else { return None };
        let (a, b) = (self.size_of(args[0]), self.size_of(args[1]));
        let is_low = |size: &Size| size.as_constant().is_some_and(|c| c <= 0);
        if is_low(&b) { Some(a) } else { is_low(&a).then_some(b) }
    }

    /// Returns whether `var`, which is in scope, is the index of a loop.
    pub(crate) fn is_index(&self, var: VarId) -> bool {
        self.defs.get(var.index()).is_some_and(|def| def.expr.is_none() && def.indices != 0)
    }

    /// Returns whether `var`, which is in scope, is the state of a loop.
    pub(crate) fn is_state(&self, var: VarId) -> bool {
        self.defs.get(var.index()).is_some_and(|def| def.expr.is_none() && def.states != 0)
    }

    /// Returns whether the current `get` of `array` is to be fused.
    pub(crate) fn is_planned(&mut self, array: VarId) -> bool {
        self.current.fuse.take().is_some_and(|loops| loops == self.loops_since(array))
    }

    /// Returns whether the current sum is the only use of `x` and `y`, in the loop that binds them.
    pub(crate) fn is_only_use(&mut self, x: VarId, y: VarId) -> bool {
        std::mem::take(&mut self.current.factor) && self.loops_since(x) == 0 && self.loops_since(y) == 0
    }

    /// Returns whether computing `expr`, of type `ty`, may fail outside all but the first `loops` of the open loops;
    /// `more` are counts of enclosing loops that move with it. An index proved to be in range because a loop runs is
    /// not in range if the loop does not run.
    pub(super) fn may_fail(&self, expr: &Expr, ty: &Type, loops: usize, more: &mut Vec<VarId>) -> bool {
        // An index may have been proved by an enclosing loop that would not run.
        let is_outside = |array: &Type, index: VarId, more: &[VarId]| match array {
            Type::Array(size, _) => !self.ranges.in_range_outside(&self.size_of(index), size, loops, more),
            _ => true,
        };
        let itself = match expr {
            Expr::Op(op, args) => {
                op.row().result == ops::Type::Num
                    && args.first().is_some_and(|v| self.vars[*v].ty == Type::Int)
                    && !self.is_total(*op, args, loops, more)
            }
            Expr::Build { size, .. } | Expr::Loop(StateLoop { count: size, .. }) => {
                !self.ranges.not_negative_outside(size, loops, more)
            }
            Expr::While(_) => true,
            Expr::Get { array, index, .. } => is_outside(&self.vars[*array].ty, *index, more),
            Expr::OneHot { index, .. } => is_outside(ty, *index, more),
            _ => false,
        };
        let count = match expr {
            Expr::Build { size: count, .. }
            | Expr::Sum { count, .. }
            | Expr::Fold(StateLoop { count, .. })
            | Expr::Loop(StateLoop { count, .. }) => count.as_var(),
            _ => None,
        };
        more.extend(count);
        let inside = || expr.blocks().into_iter().flat_map(|block| &block.stmts);
        let fails = itself || inside().any(|stmt| self.may_fail(&stmt.expr, &self.vars[stmt.var].ty, loops, more));
        if count.is_some() {
            more.pop();
        }
        fails
    }

    /// Returns whether computing `expr`, which is in a closed loop, may fail outside it.
    pub(crate) fn may_fail_outside(&self, expr: &Expr, ty: &Type) -> bool {
        self.may_fail(expr, ty, self.loops_around(), &mut Vec::new())
    }

    /// Returns the number of loops around.
    pub(crate) fn loops_around(&self) -> usize {
        self.open.iter().filter(|open| open.is_loop()).count()
    }

    /// Returns the number of loops between the innermost branch and here.
    pub(crate) fn loops_in_branch(&self) -> usize {
        self.open.iter().rev().take_while(|open| open.is_loop()).count()
    }

    /// Returns the ratio by which executions of a loop over `count` decrease if it is moved out of the enclosing loops
    /// that it may leave; the iterations of one of these are the statements `kept` of `block`, from `inits`.
    pub(crate) fn steps_left(&self, count: &Size, block: &Block, kept: &Slice, inits: &[VarId]) -> f64 {
        let n_open = self.open.len();
        let mut needed = 0;
        let mut see = |var: VarId| {
            let level = self.defs.get(var.index()).map_or(0, |def| def.level);
            needed = if level < n_open { level.max(needed) } else { needed };
        };
        inits.iter().copied().chain(count.vars()).for_each(&mut see);
        for stmt in kept.stmts(block) {
            walk::mentioned(&stmt.expr, &mut see);
            self.ty(stmt.var).sizes().into_iter().flat_map(|size| size.vars()).for_each(&mut see);
        }
        let mut times = 1.0;
        for level in (needed + 1..n_open).rev() {
            let (Kind::Loop { runs }, Some((_, steps))) = (self.open[level].kind, &self.open[level].counted) else {
                break;
            };
            let loops = self.open[..level].iter().filter(|open| open.is_loop()).count();
            let mut more: Vec<VarId> = count.as_var().into_iter().collect();
            let mut fails =
                || kept.stmts(block).any(|stmt| self.may_fail(&stmt.expr, self.ty(stmt.var), loops, &mut more));
            if !self.settings.hoist || (!runs && fails()) {
                break;
            }
            times *= cost::estimate(steps);
        }
        times
    }

    /// Returns whether an index is known to lie outside of an array. Reading there fails, and has no value: what would
    /// follow from one must not make the read superfluous.
    pub(super) fn cannot_be_read(&self, array: VarId, index: VarId) -> bool {
        let Type::Array(size, _) = self.ty(array) else { return false };
        let index = self.size_of(index);
        self.ranges.less(&index, &Size::zero()) == Some(true) || self.ranges.less(&index, size) == Some(false)
    }

    // Minimum and maximum of integers are total; remainders and quotients by a positive number are too.
    fn is_total(&self, op: ops::Op, args: &[VarId], loops: usize, more: &[VarId]) -> bool {
        match (op, args) {
            (ops::Op::Min | ops::Op::Max, _) => true,
            (ops::Op::Quot | ops::Op::Mod, [_, divisor]) => {
                let less = self.size_of(*divisor).sub(&Size::constant(1));
                self.ranges.not_negative_outside(&less, loops, more)
            }
            _ => false,
        }
    }

    // The second of two operands, if it is a positive constant.
    fn divisor(&self, args: &[VarId]) -> Option<i64> {
        args.get(1).and_then(|v| self.size_of(*v).as_constant()).filter(|c| *c > 0)
    }

    /// Records the range of the `Int` `var`, bound to `op` of integers in the open block `level`.
    pub(super) fn integer(&mut self, var: VarId, op: ops::Op, args: &[VarId], level: usize) {
        let is_natural = |arg: &VarId| self.ranges.not_negative_outside(&self.size_of(*arg), 0, &[]);
        let is_positive = |arg: &VarId| {
            let loops = self.open.iter().take(level + 1).filter(|open| open.is_loop()).count();
            let less = self.size_of(*arg).sub(&Size::constant(1));
            self.ranges.not_negative_outside(&less, loops, &[])
        };
        match (op, self.divisor(args)) {
            (ops::Op::Mod, Some(c)) => self.ranges.natural(var, Some(Size::constant(c))),
            // A remainder by 0 fails. Its success must prove nothing: a statement proved by it could be computed before
            // it, or without it.
            (ops::Op::Mod, None) if args.get(1).is_some_and(is_positive) => {
                self.ranges.natural(var, args.get(1).map(|divisor| self.size_of(*divisor)));
            }
            (ops::Op::Quot, _) if args.first().is_some_and(is_natural) && args.get(1).is_some_and(is_positive) => {
                self.ranges.natural(var, None);
            }
            (ops::Op::Min, _) if args.iter().all(is_natural) => self.ranges.natural(var, None),
            (ops::Op::Max, _) if args.iter().any(is_natural) => self.ranges.natural(var, None),
            _ => {}
        }
    }
}
