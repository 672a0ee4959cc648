//! Equality of sizes and ranges of indices: proved, refuted, required at entry, or left to be checked at run time.

use super::values::{Env, Value};
use super::{Elaborator, Stop};
use crate::check::core::{CoreFun, CoreSize, CoreSizeKind, CoreType, DefId};
use crate::range::Facts;
use crate::value::{named, named_type};
use crate::{Expr, Requirement, Size, Type, Var, VarId};
use chainrule_base::{Diagnostic, Id, Span, count};
use chainrule_syntax::tree::Infix;

/// Verdict about a polynomial that must be nonnegative.
enum Verdict {
    /// It holds.
    Proved,
    /// It does not hold, for this value of it.
    Refuted(Size),
    /// It holds if this holds, which only depends on the arguments.
    AtEntry(Size),
    /// Only known at run time.
    Unknown,
}

/// Title of messages about an index that is certainly out of range.
pub(super) const OUT_OF_RANGE: &str = "index out of range";

/// Role of a polynomial that must not be negative.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Extent of an array, whether or not its elements are reached.
    Extent,
    Other,
}

/// Requirement on a polynomial.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bound {
    NotNegative,
    Zero,
}

impl Elaborator<'_> {
    fn facts(&self) -> Facts<'_> {
        Facts { loops: &self.context.loops, natural: &self.at_entry.natural, known: &self.at_entry.known }
    }

    pub(super) fn show_size(&self, size: &Size) -> String {
        named(size, &self.b.vars)
    }

    /// Judges whether `size >= 0` whenever the current position is reached.
    fn judge(&self, size: &Size, role: Role) -> Verdict {
        let facts = self.facts();
        if facts.holds(size) {
            return Verdict::Proved;
        }
        let one = Size::constant(1);
        if self.context.conditional > 0 {
            return Verdict::Unknown;
        }
        if facts.holds(&size.neg().sub(&one)) {
            return Verdict::Refuted(size.clone());
        }
        let (least, corner) = facts.minimum(size);
        let outside = Facts { loops: &[], natural: &self.at_entry.natural, known: &self.at_entry.known };
        // Counts of the loops at the indices that minimise `size`.
        let counts: Vec<Size> = self
            .context
            .loops
            .iter()
            .map(|l| {
                corner.iter().fold(l.count.clone(), |count, (index, value)| {
                    count.substitute(|v| if v == *index { value.clone() } else { Size::var(v) })
                })
            })
            .collect();
        let runs = |count: &Size| outside.holds(&count.sub(&one));
        let reached = self.context.loops.iter().zip(&counts).all(|(l, count)| l.count == *count || runs(count));
        if outside.holds(&least.neg().sub(&one)) && !corner.is_empty() && reached {
            // At some index, unless a loop has no iterations.
            return Verdict::Refuted(least);
        }
        if !least.vars().iter().all(|v| self.at_entry.ints.contains(v)) {
            return Verdict::Unknown;
        }
        // If a loop does not run, nothing is required: then the requirement must hold separately.
        for count in &counts {
            let harmless = runs(count) || outside.holds_given(&least, &[count.neg()]);
            // Shapes must agree even if a dimension is 0: `m2` has the columns of `m1`. An integer argument is no
            // shape, and an element that an array lacks because the loop does not run is not read.
            let is_shape = |v: VarId| {
                let vars = least.vars();
                role == Role::Extent || (vars.iter().all(|v| self.at_entry.natural.contains(v)) && !vars.contains(&v))
            };
            let shape = count.as_var().is_some_and(|v| is_shape(v) && self.compares_shapes(&least, v));
            if !harmless && !shape {
                return Verdict::Unknown;
            }
        }
        Verdict::AtEntry(least)
    }

    /// Returns whether `size`, required in a loop of `count` iterations, is one dimension of an argument, or the
    /// difference of two.
    fn compares_shapes(&self, size: &Size, count: VarId) -> bool {
        let mut signs = Vec::new();
        for (vars, c) in size.terms() {
            match (vars, c) {
                ([v], 1 | -1) if self.at_entry.ints.contains(v) => signs.push(c),
                _ => return false,
            }
        }
        match signs.as_slice() {
            [1] => self.at_entry.ints.contains(&count),
            [1, -1] | [-1, 1] => self.at_entry.natural.contains(&count),
            _ => false,
        }
    }

    /// Records that `size` is nonnegative. Facts that follow from it by adding a constant are dropped: a program that
    /// reads a thousand elements has one fact about the length.
    pub(super) fn learn(&mut self, size: Size) {
        let apart = |known: &Size| size.sub(known).as_constant();
        if self.at_entry.known.iter().any(|known| apart(known).is_some_and(|more| more >= 0)) {
            return;
        }
        self.at_entry.known.retain(|known| apart(known).is_none());
        self.at_entry.known.push(size);
    }

    fn require(&mut self, size: Size, bound: Bound, message: String, span: Span) {
        self.learn(size.clone());
        let exactly_zero = bound == Bound::Zero;
        if exactly_zero {
            self.learn(size.neg());
        }
        self.b.require(Requirement { size, exactly_zero, message, span: Some(span) });
    }

    // Indices.

    /// Makes `array[index]`.
    pub(super) fn get(&mut self, array: VarId, index: VarId, span: Span) -> Result<VarId, Stop> {
        let Type::Array(size, element) = self.b.ty(array).clone() else {
            return self.bug(span, "an index of no array");
        };
        let at = self.b.size_of(index);
        let what = self.describe(array);
        let first = self.judge(&at, Role::Other);
        let room = size.sub(&Size::constant(1)).sub(&at);
        let last = self.judge(&room, Role::Other);
        if let Verdict::Refuted(least) = &first {
            let message = Diagnostic::error(OUT_OF_RANGE)
                .with_reason(format!("indices start at 0; this one reaches {}", self.show_size(least)));
            self.say(span, &format!("an index of {what}"), message);
        } else if let Verdict::Refuted(least) = &last {
            let reached = size.sub(&Size::constant(1)).sub(least);
            let message = Diagnostic::error(OUT_OF_RANGE).with_reason(format!(
                "{what} has {}, from 0; the index reaches {}",
                self.elements(&size),
                self.show_size(&reached)
            ));
            self.say(span, &format!("an index of {what}"), message);
        }
        let mut proved = true;
        for (verdict, is_first) in [(first, true), (last, false)] {
            match verdict {
                Verdict::Proved => {}
                Verdict::AtEntry(need) => {
                    let words = if is_first {
                        format!("an index of {what} is negative: it reaches {}", self.show_size(&need))
                    } else {
                        self.too_short(&what, &size, &need)
                    };
                    self.require(need, Bound::NotNegative, words, span);
                }
                Verdict::Refuted(_) | Verdict::Unknown => proved = false,
            }
        }
        let var = self.b.compute(Expr::Get { array, index, proved });
        if matches!(*element, Type::Array(..)) {
            self.descriptions.arrays.insert(var, format!("a row of {what}"));
        }
        Ok(var)
    }

    fn describe(&self, var: VarId) -> String {
        match (&self.b.vars[var].name, self.descriptions.arrays.get(&var)) {
            (Some(name), _) => format!("`{name}`"),
            (None, Some(words)) => words.clone(),
            (None, None) => "this array".to_owned(),
        }
    }

    /// Returns `3 elements`, `1 element`, `n + 1 elements`.
    fn elements(&self, size: &Size) -> String {
        match size.as_constant().and_then(|n| usize::try_from(n).ok()) {
            Some(n) => count(n, "element"),
            None => format!("{} elements", self.show_size(size)),
        }
    }

    /// Returns a message for an array of `size` elements if `size + (something) = need >= 0` does not hold.
    fn too_short(&self, what: &str, size: &Size, need: &Size) -> String {
        let wanted = size.sub(need);
        let owner = |size: &Size| size.as_var().and_then(|v| self.descriptions.sizes.get(&v));
        match (owner(size), owner(&wanted)) {
            (Some((a, x)), Some((b, y))) if x == y => format!("`{a}` has fewer {x} than `{b}`"),
            (Some((a, x)), Some((b, y))) => format!("`{a}` has fewer {x} than `{b}` has {y}"),
            (Some((a, x)), None) if wanted.as_constant() == Some(1) => format!("`{a}` has no {x}"),
            (Some((a, x)), None) => format!("`{a}` has fewer than {} {x}", self.show_size(&wanted)),
            (None, Some((b, y))) => format!("{what} has fewer elements than `{b}` has {y}"),
            (None, None) => {
                format!(
                    "{what} has {}, and element {} is read",
                    self.elements(size),
                    self.show_size(&wanted.sub(&Size::constant(1)))
                )
            }
        }
    }

    /// Requires that an array can have `size` elements.
    pub(super) fn natural_size(&mut self, size: &Size, span: Span) {
        match self.judge(size, Role::Extent) {
            Verdict::Proved | Verdict::Unknown => {}
            Verdict::Refuted(least) => {
                let message = Diagnostic::error("an array with a negative size")
                    .with_reason(format!("its size is {}", self.show_size(&least)));
                self.say(span, "made here", message);
            }
            Verdict::AtEntry(need) => {
                let shown = self.show_size(size);
                let words = match size.as_var() {
                    Some(_) => format!("`{shown}` is the size of an array and must not be negative"),
                    None => format!("an array would have {shown} elements, less than none"),
                };
                self.require(need, Bound::NotNegative, words, span);
            }
        }
    }

    // Equal sizes.

    /// Returns `var` with the type `wanted`, which may only differ in sizes that are equal but not the same polynomial:
    /// then the value is rebuilt at the sizes of `wanted`. `what` names both in messages.
    pub(super) fn fit(&mut self, var: VarId, wanted: &Type, what: (&str, &str), span: Span) -> Result<VarId, Stop> {
        if self.b.ty(var) == wanted {
            return Ok(var);
        }
        let found = self.b.ty(var).clone();
        if found == Type::Int && *wanted == Type::Double {
            return Ok(self.b.to_real(var));
        }
        for (a, b) in found.sizes().iter().zip(wanted.sizes()) {
            self.equal_sizes(a, &b, (what, &found, wanted), span)?;
        }
        self.rebuild(var, &found, wanted, span)
    }

    fn rebuild(&mut self, var: VarId, found: &Type, wanted: &Type, span: Span) -> Result<VarId, Stop> {
        match (found, wanted) {
            _ if found == wanted => Ok(var),
            (Type::Array(_, from), Type::Array(size, to)) => self.build(size.clone(), span, |this, i| {
                let item = this.b.get_proved(var, i);
                this.rebuild(item, from, to, span)
            }),
            (Type::Tuple(from, _), Type::Tuple(to, names)) if from.len() == to.len() => {
                let mut parts = Vec::with_capacity(to.len());
                for (k, (from, to)) in from.iter().zip(to).enumerate() {
                    let part = self.component(var, k);
                    parts.push(self.rebuild(part, from, to, span)?);
                }
                Ok(self.tuple(parts, names.clone()))
            }
            _ => self.bug(span, "two types that should be one"),
        }
    }

    /// Requires that `a` and `b` are equal: sizes of values named in messages, of whole types.
    fn equal_sizes(
        &mut self,
        a: &Size,
        b: &Size,
        ((what, other), found, wanted): ((&str, &str), &Type, &Type),
        span: Span,
    ) -> Result<(), Stop> {
        let difference = a.sub(b);
        if difference.is_zero() {
            return Ok(());
        }
        let facts = self.facts();
        let (up, down) = (facts.holds(&difference), facts.holds(&difference.neg()));
        if up && down {
            return Ok(());
        }
        let one = Size::constant(1);
        let differ = facts.holds(&difference.sub(&one)) || facts.holds(&difference.neg().sub(&one));
        let differ = differ || self.is_degenerate(&difference);
        let types = (named_type(found, &self.b.vars), named_type(wanted, &self.b.vars));
        if differ {
            let message = Diagnostic::error("sizes do not agree")
                .with_reason(format!("{what} is {}, {other} is {}", types.0, types.1));
            return self.stop(span, what, message);
        }
        let certain = !difference.is_too_large() && difference.vars().iter().all(|v| self.at_entry.ints.contains(v));
        if !certain {
            let (a, b) = (self.show_size(a), self.show_size(b));
            let message = Diagnostic::limitation("cannot see whether sizes agree")
                .with_reason(format!("{what} is {}, {other} is {}; are {a} and {b} equal?", types.0, types.1))
                .with_help("make both from one size, or annotate the parameters: `(v : [n]Double) (w : [n]Double)`");
            return self.stop(span, what, message);
        }
        let words = self.unequal(a, b, what, other);
        self.require(difference, Bound::Zero, words, span);
        Ok(())
    }

    /// Returns whether two sizes with this difference are only equal if a dimension is 0: `n + m` and `n`.
    fn is_degenerate(&self, difference: &Size) -> bool {
        let facts = Facts { loops: &self.context.loops, natural: &self.at_entry.natural, known: &[] };
        facts.holds(difference) || facts.holds(&difference.neg())
    }

    fn unequal(&self, a: &Size, b: &Size, what: &str, other: &str) -> String {
        let owner = |size: &Size| size.as_var().and_then(|v| self.descriptions.sizes.get(&v));
        match (owner(a), owner(b)) {
            (Some((a, x)), Some((b, y))) if x == y => format!("`{a}` has another number of {x} than `{b}`"),
            (Some((a, x)), Some((b, y))) => format!("`{a}` has another number of {x} than `{b}` has {y}"),
            _ => {
                format!("{what} has the size {}, {other} has the size {}", self.show_size(a), self.show_size(b))
            }
        }
    }

    /// Requires that no size in `ty` uses variables made after there were `outer`: these are inside a block that `ty`
    /// leaves.
    pub(super) fn must_not_escape(&mut self, ty: &Type, outer: usize, span: Span) -> Result<(), Stop> {
        let inner: Option<Size> = ty.sizes().into_iter().find(|s| s.vars().iter().any(|v| v.index() >= outer));
        let Some(size) = inner else { return Ok(()) };
        let by_index = size.vars().iter().any(|v| self.b.vars[*v].name.is_none() && v.index() == outer);
        let message = if by_index {
            Diagnostic::limitation("the elements of an array would differ in size")
                .with_reason("the size of an element depends on its own index; arrays are never ragged")
                .with_help("make all elements as large as the largest, and fill up with zeros")
        } else {
            Diagnostic::limitation("a size is not known before the value is computed")
                .with_reason("it depends on data that is computed inside this loop or branch")
                .with_help("compute the size outside, by `let`, before the loop or the `if`")
        };
        self.stop(span, "an array of such a size leaves this place", message)
    }

    /// Requires that every size fits into 64 bits, and that the sizes of the function's result are known at entry.
    pub(super) fn sizes_are_known(&mut self, def: DefId, result: VarId) -> Result<(), Stop> {
        let too_large = |var: &Var| var.ty.sizes().iter().any(Size::is_too_large);
        if let Some(var) = self.b.vars.as_slice().iter().find(|var| too_large(var)) {
            let span = var.span.unwrap_or(self.program.defs[def].span);
            let message = Diagnostic::limitation("the size of an array does not fit into 64 bits")
                .with_help("make the array smaller, or give its size as an argument");
            return self.stop(span, "an array of such a size", message);
        }
        let ty = self.b.ty(result);
        if ty.sizes().iter().flat_map(Size::vars).all(|var| self.at_entry.ints.contains(&var)) {
            return Ok(());
        }
        let span = self.b.vars[result].span.unwrap_or(self.program.defs[def].span);
        let message = Diagnostic::limitation("the size of the result is computed while the function runs")
            .with_reason("whoever calls the function provides the memory for its result beforehand")
            .with_help("make the result as long as it can become, a size known from the arguments");
        self.stop(span, "how long this is cannot be known at entry", message)
    }

    // Annotations.

    /// Binds the size variables of an inlined function and checks the sizes of its arguments.
    pub(super) fn check_params(&mut self, fun: &CoreFun, args: &[Option<VarId>], env: Env) -> Result<(), Stop> {
        for (param, arg) in fun.params.iter().zip(args) {
            if let (Some(annotation), Some(var)) = (&param.annotation, arg) {
                let ty = self.b.ty(*var).clone();
                self.bind_sizes(annotation, &ty, env);
            }
        }
        for (place, name, span) in &fun.sizes {
            let owner = self.owner(*place, env.frame);
            let slot = self.frames.get(owner).and_then(|f| f.values.get(place.slot as usize));
            if matches!(slot, Some(Value::Unbound)) {
                let message = Diagnostic::error(format!("the size `{name}` cannot be read off the arguments"))
                    .with_reason(format!("`{name}` is nowhere the whole size of a parameter"))
                    .with_help(format!("add a parameter: `({name} : Card)`"));
                return self.stop(*span, "it occurs here", message);
            }
        }
        for (param, arg) in fun.params.iter().zip(args) {
            if let (Some(annotation), Some(var)) = (&param.annotation, arg)
                && annotation.has_size()
            {
                let ty = self.b.ty(*var).clone();
                let call = self.context.calls.last().map_or(param.span, |(_, at)| *at);
                self.check_sizes(annotation, &ty, &ty.clone(), env, (call, "the argument"))?;
            }
        }
        Ok(())
    }

    /// Checks written sizes against the type of `var`.
    pub(super) fn check_annotation(
        &mut self,
        annotation: &CoreType,
        var: VarId,
        env: Env,
        span: Span,
    ) -> Result<(), Stop> {
        if !annotation.has_size() {
            return Ok(());
        }
        let ty = self.b.ty(var).clone();
        self.check_sizes(annotation, &ty, &ty.clone(), env, (span, "the value"))
    }

    fn bind_sizes(&mut self, annotation: &CoreType, ty: &Type, env: Env) {
        match (annotation, ty) {
            (CoreType::Array(size, inner), Type::Array(found, element)) => {
                if let Some(CoreSize { kind: CoreSizeKind::Local(place, _), .. }) = size {
                    let owner = self.owner(*place, env.frame);
                    let slot = place.slot as usize;
                    if matches!(self.frames.get(owner).and_then(|f| f.values.get(slot)), Some(Value::Unbound)) {
                        let var = self.b.size(found.clone());
                        self.frames[owner].values[slot] = Value::Data(var);
                    }
                }
                self.bind_sizes(inner, element, env);
            }
            (CoreType::Tuple(parts), Type::Tuple(fields, _)) => {
                for (part, field) in parts.iter().zip(fields) {
                    self.bind_sizes(part, field, env);
                }
            }
            _ => {}
        }
    }

    fn check_sizes(
        &mut self,
        annotation: &CoreType,
        ty: &Type,
        whole: &Type,
        env: Env,
        (span, what): (Span, &str),
    ) -> Result<(), Stop> {
        match (annotation, ty) {
            (CoreType::Array(size, inner), Type::Array(found, element)) => {
                if let Some(written) = size {
                    let wanted = self.written_size(written, env)?;
                    self.annotated_size(found, &wanted, written, whole, (span, what))?;
                }
                self.check_sizes(inner, element, whole, env, (span, what))
            }
            (CoreType::Tuple(parts), Type::Tuple(fields, _)) => {
                for (part, field) in parts.iter().zip(fields) {
                    self.check_sizes(part, field, whole, env, (span, what))?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn annotated_size(
        &mut self,
        found: &Size,
        wanted: &Size,
        written: &CoreSize,
        whole: &Type,
        (span, what): (Span, &str),
    ) -> Result<(), Stop> {
        let difference = found.sub(wanted);
        if difference.is_zero() {
            return Ok(());
        }
        let facts = self.facts();
        if facts.holds(&difference) && facts.holds(&difference.neg()) {
            return Ok(());
        }
        let one = Size::constant(1);
        let differ = facts.holds(&difference.sub(&one)) || facts.holds(&difference.neg().sub(&one));
        let differ = differ || self.is_degenerate(&difference);
        let shown = (self.show_size(found), self.show_size(wanted), named_type(whole, &self.b.vars));
        let asked = match &written.kind {
            CoreSizeKind::Local(_, name) if **name != *shown.1 => format!("`{name}` is {} here", shown.1),
            _ => format!("the annotation asks for {}", shown.1),
        };
        if differ {
            let message = Diagnostic::error("sizes do not agree")
                .with_label(written.span, asked)
                .with_reason(format!("{what} is {}: {} is not {}", shown.2, shown.0, shown.1));
            return self.stop(span, &format!("{what} has the size {}", shown.0), message);
        }
        let certain = difference.vars().iter().all(|v| self.at_entry.ints.contains(v));
        if !certain {
            let message = Diagnostic::limitation("cannot see whether sizes agree")
                .with_label(written.span, asked)
                .with_reason(format!("{what} is {}: are {} and {} equal?", shown.2, shown.0, shown.1))
                .with_help("annotate the parameters of the function around it with the same size");
            return self.stop(span, &format!("{what} has the size {}", shown.0), message);
        }
        let words = self.unequal(found, wanted, what, "its annotation");
        self.require(difference, Bound::Zero, words, span);
        Ok(())
    }

    /// Evaluates a written size.
    pub(super) fn written_size(&mut self, size: &CoreSize, env: Env) -> Result<Size, Stop> {
        Ok(match &size.kind {
            CoreSizeKind::Number(n) => Size::constant(*n),
            CoreSizeKind::Local(place, name) => {
                let owner = self.owner(*place, env.frame);
                match self.frames.get(owner).and_then(|f| f.values.get(place.slot as usize)) {
                    Some(Value::Data(var)) => self.b.size_of(*var),
                    _ => {
                        let message = Diagnostic::error(format!("the size `{name}` cannot be read off the arguments"))
                            .with_reason(format!("`{name}` is nowhere the whole size of a parameter"))
                            .with_help(format!("add a parameter: `({name} : Card)`"));
                        return self.stop(size.span, "it occurs here", message);
                    }
                }
            }
            CoreSizeKind::Global(def, inst) => {
                let value = self.global(*def, inst, env)?;
                let var = self.as_data(&value, size.span)?;
                self.b.size_of(var)
            }
            CoreSizeKind::Infix(infix, a, b) => {
                let (a, b) = (self.written_size(a, env)?, self.written_size(b, env)?);
                match infix {
                    Infix::Add => a.add(&b),
                    Infix::Sub => a.sub(&b),
                    Infix::Mul => a.mul(&b),
                    _ => return self.bug(size.span, "a size with an operator that sizes do not have"),
                }
            }
        })
    }
}
