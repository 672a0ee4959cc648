//! Analyses of a kernel before its text is written.
//!
//! In: a kernel and its events. Out: [`Facts`]: origins of registers, needed registers, ranges of integers, possible
//! failures.
//!
//! A register is **needed** if a store, a check, a loop or a branch uses it, directly or through needed registers.
//! Nothing else is written, so that the text has no unused variables.

use chainrule_base::{Arena, Diagnostic, Id, Poly};
use chainrule_kernel::{BufferId, Event, Instr, Kernel, Place, Reg, SizeParam, SizeSource};
use chainrule_ops::{Op, Type};

/// Maximum extent of an argument. Sums of products of one extent with small numbers then never overflow; an array of
/// this many doubles takes 8 TiB.
pub const MAX_EXTENT: i64 = 1 << 40;

/// Returns whether `op` has no value for some integers, by evaluating its row at the ends of the range.
#[must_use]
pub fn can_fail(op: Op) -> bool {
    const ENDS: [i64; 4] = [i64::MIN, -1, 0, i64::MAX];
    let Some(int) = op.row().int else { return false };
    let fails = |args: &[i64]| int(args).is_none();
    match op.arity() {
        1 => ENDS.iter().any(|a| fails(&[*a])),
        2 => ENDS.iter().any(|a| ENDS.iter().any(|b| fails(&[*a, *b]))),
        _ => true,
    }
}

/// Origin of a register's value.
#[derive(Clone, Debug)]
pub enum Origin {
    /// Computed by an instruction.
    Computed,
    /// A constant.
    Const(f64),
    /// Parameter of this index among the sizes.
    Size(usize),
    /// Scalar input of this index.
    Scalar(usize),
    /// Element of an input at a constant address; it can be loaded again anywhere.
    Element(BufferId, i64),
}

/// Operands of a register's definition.
#[derive(Clone, Copy)]
enum Feed {
    Nothing,
    Instr(usize),
    Two(Reg, Reg),
}

/// Inclusive bounds of an integer.
pub type Range = Option<(i128, i128)>;

/// Facts of a kernel.
pub struct Facts {
    /// Origin of each register's value.
    pub origin: Arena<Reg, Origin>,
    /// Whether each register's value has an effect.
    pub needed: Arena<Reg, bool>,
    /// Bounds of each `Int` register, if known.
    pub range: Arena<Reg, Range>,
    /// Possible failures: indices into [`Kernel::failures`], ascending.
    pub failures: Vec<usize>,
}

/// Calls `visit` for each register that `event` uses. `needed` tells which loop-carried and result registers exist.
pub fn for_each_use(event: &Event<'_>, needed: impl Fn(Reg) -> bool, mut visit: impl FnMut(Reg)) {
    let vars = |poly: &Poly<Reg>, visit: &mut dyn FnMut(Reg)| poly.terms().flat_map(|(m, _)| m).for_each(|r| visit(*r));
    match event {
        Event::Instr(instr) => instr.for_each_use(visit),
        Event::Copy { to, from, len, .. } => [&to.1, &from.1, *len].into_iter().for_each(|poly| vars(poly, &mut visit)),
        Event::For { count: poly, carried, .. } | Event::While { limit: poly, carried } => {
            vars(poly, &mut visit);
            carried.iter().filter(|c| needed(c.var)).for_each(|c| visit(c.init));
        }
        Event::EndFor { carried, .. } | Event::EndWhile { carried } => {
            carried.iter().filter(|c| needed(c.var)).for_each(|c| visit(c.next));
        }
        Event::Test { holds: reg, .. } | Event::If { condition: reg } => visit(*reg),
        Event::Else { choices } => choices.iter().filter(|c| needed(c.var)).for_each(|c| visit(c.then)),
        Event::EndIf { choices } => choices.iter().filter(|c| needed(c.var)).for_each(|c| visit(c.otherwise)),
    }
}

/// Checks that all references of the kernel are valid.
///
/// # Errors
/// A bug with the missing item.
pub fn check(kernel: &Kernel, events: &[Event<'_>]) -> Result<(), Diagnostic> {
    let wrong = |what| Diagnostic::bug(format!("the kernel `{}` is malformed", kernel.name)).with_reason(what);
    check_head(kernel).and_then(|()| check_events(kernel, events)).map_err(wrong)
}

/// Checks inputs, outputs, buffers and sizes; returns the fault of the first that is wrong.
fn check_head(kernel: &Kernel) -> Result<(), String> {
    let mut head: Vec<&Poly<Reg>> = vec![&kernel.workspace_reals, &kernel.workspace_ints];
    for buffer in kernel.buffers.as_slice() {
        head.push(&buffer.len);
        match &buffer.place {
            Place::Workspace(offset) => head.push(offset),
            Place::Input(idx) if *idx < kernel.inputs.len() => {}
            Place::Output(idx) if *idx < kernel.outputs.len() => {}
            Place::Input(_) | Place::Output(_) => return Err("a buffer belongs to no argument".to_owned()),
        }
    }
    for port in kernel.inputs.iter().chain(&kernel.outputs) {
        head.extend(&port.shape);
        if kernel.buffers.get(port.buffer).is_none() {
            return Err(format!("`{}` has no buffer", port.name));
        }
    }
    head.extend(kernel.requires.iter().map(|condition| &condition.size));
    head.extend(kernel.sizes.iter().filter_map(SizeParam::natural));
    for r in head.into_iter().flat_map(Poly::vars) {
        if kernel.sizes.iter().all(|size| size.reg != r) {
            return Err(format!("{r} is used as a size, but is none"));
        }
    }
    for size in &kernel.sizes {
        if let SizeSource::Extent { input, .. } | SizeSource::Value { input } = &size.source
            && *input >= kernel.inputs.len()
        {
            return Err(format!("the size `{}` comes from an input that is not there", size.name));
        }
    }
    Ok(())
}

/// Checks registers, buffers, failures and functions; returns the fault of the first that is wrong.
fn check_events(kernel: &Kernel, events: &[Event<'_>]) -> Result<(), String> {
    let mut missing = None;
    let mut reg = |r: Reg| {
        if kernel.regs.get(r).is_none() {
            missing = Some(r);
        }
    };
    kernel.sizes.iter().for_each(|size| reg(size.reg));
    for event in events {
        for_each_use(event, |_| true, &mut reg);
        let (buffers, failure) = match event {
            Event::Instr(instr) => {
                instr.dst().into_iter().for_each(&mut reg);
                match instr {
                    Instr::Load { buffer, .. } | Instr::Store { buffer, .. } => ([Some(*buffer), None], None),
                    Instr::IntOp { failure, .. } | Instr::CheckIndex { failure, .. } => ([None; 2], Some(*failure)),
                    Instr::External { function, args, .. } => {
                        if kernel.externals.get(*function).is_none_or(|e| e.arity != args.len()) {
                            return Err(format!("external {function} does not exist, or takes other arguments"));
                        }
                        ([None; 2], None)
                    }
                    _ => ([None; 2], None),
                }
            }
            Event::Copy { to, from, .. } => ([Some(to.0), Some(from.0)], None),
            Event::For { index, carried, .. } => {
                reg(*index);
                carried.iter().for_each(|c| reg(c.var));
                ([None; 2], None)
            }
            Event::While { carried, .. } => {
                carried.iter().for_each(|c| reg(c.var));
                ([None; 2], None)
            }
            Event::Test { failure, .. } => ([None; 2], Some(*failure)),
            Event::EndIf { choices } => {
                choices.iter().for_each(|c| reg(c.var));
                ([None; 2], None)
            }
            _ => ([None; 2], None),
        };
        if buffers.into_iter().flatten().any(|b| kernel.buffers.get(b).is_none()) {
            return Err("it names a buffer that does not exist".to_owned());
        }
        if failure.is_some_and(|f| f >= kernel.failures.len()) {
            return Err("a failure has no message".to_owned());
        }
    }
    match missing {
        Some(r) => Err(format!("{r} does not exist")),
        None => Ok(()),
    }
}

impl Facts {
    /// Computes the facts. Linear in the kernel.
    pub fn new(kernel: &Kernel, events: &[Event<'_>]) -> Self {
        let n = kernel.regs.len();
        let mut this = Self {
            origin: Arena::filled(n, Origin::Computed),
            needed: Arena::filled(n, false),
            range: Arena::filled(n, None),
            failures: Vec::new(),
        };
        for (idx, size) in kernel.sizes.iter().enumerate() {
            this.origin[size.reg] = Origin::Size(idx);
            this.range[size.reg] = match size.source {
                SizeSource::Extent { .. } => Some((0, i128::from(MAX_EXTENT))),
                SizeSource::Natural { .. } => Some((0, i128::from(i64::MAX))),
                SizeSource::Value { .. } => None,
            };
        }
        for event in events {
            this.learn(kernel, event);
        }
        this.failures.sort_unstable();
        this.failures.dedup();
        this.mark_needed(n, events);
        this
    }

    fn learn(&mut self, kernel: &Kernel, event: &Event<'_>) {
        match event {
            Event::Instr(instr) => match instr {
                Instr::Const { dst, value } => self.origin[*dst] = Origin::Const(*value),
                Instr::Int { dst, value } => {
                    let range = self.poly(value).filter(|(lo, hi)| fits(*lo) && fits(*hi));
                    self.range[*dst] = range;
                }
                Instr::Op { dst, op, .. } if op.row().result == Type::Bool => self.range[*dst] = Some((0, 1)),
                Instr::IntOp { dst, op, failure, .. } => {
                    if op.row().result == Type::Bool {
                        self.range[*dst] = Some((0, 1));
                    }
                    if can_fail(*op) {
                        self.failures.push(*failure);
                    }
                }
                Instr::CheckIndex { failure, .. } => self.failures.push(*failure),
                Instr::Load { dst, buffer, at } => {
                    if let (Place::Input(input), Some(at)) = (&kernel.buffers[*buffer].place, at.as_constant()) {
                        let scalar = kernel.inputs[*input].shape.is_empty();
                        self.origin[*dst] = if scalar { Origin::Scalar(*input) } else { Origin::Element(*buffer, at) };
                    }
                }
                _ => {}
            },
            Event::For { index, count, .. } => {
                let last = self.poly(count).map_or(i128::from(i64::MAX), |(_, hi)| hi) - 1;
                self.range[*index] = Some((0, last.clamp(0, i128::from(i64::MAX))));
            }
            Event::Test { failure, .. } => self.failures.push(*failure),
            Event::EndIf { choices } => {
                for c in *choices {
                    if let (Some(a), Some(b)) = (self.range[c.then], self.range[c.otherwise]) {
                        self.range[c.var] = Some((a.0.min(b.0), a.1.max(b.1)));
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns bounds of `poly` if all intermediate results fit into 64 bits.
    pub fn poly(&self, poly: &Poly<Reg>) -> Range {
        let mut sum = (0i128, 0i128);
        for (monomial, c) in poly.terms() {
            let mut product = (i128::from(c), i128::from(c));
            for reg in monomial {
                let (lo, hi) = self.range[*reg].unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)));
                let ends = [product.0 * lo, product.0 * hi, product.1 * lo, product.1 * hi];
                product = (ends.into_iter().min()?, ends.into_iter().max()?);
                if monomial.len() + usize::from(c != 1) > 1 && !(fits(product.0) && fits(product.1)) {
                    return None;
                }
            }
            sum = (sum.0 + product.0, sum.1 + product.1);
            if poly.terms().len() > 1 && !(fits(sum.0) && fits(sum.1)) {
                return None;
            }
        }
        // The literal of the minimum integer cannot be written with a minus sign.
        let writable = poly.terms().all(|(_, c)| c != i64::MIN);
        writable.then_some(sum)
    }

    /// Returns whether computing `poly` may overflow.
    pub fn may_overflow(&self, poly: &Poly<Reg>) -> bool {
        self.poly(poly).is_none()
    }

    fn mark_needed(&mut self, n: usize, events: &[Event<'_>]) {
        let mut feeds: Arena<Reg, Feed> = Arena::filled(n, Feed::Nothing);
        let mut todo: Vec<Reg> = Vec::new();
        for (idx, event) in events.iter().enumerate() {
            match event {
                Event::Instr(instr) => match instr.dst() {
                    Some(dst) if !self.can_fail(instr) => feeds[dst] = Feed::Instr(idx),
                    _ => for_each_use(event, |_| false, |r| todo.push(r)),
                },
                _ => for_each_use(event, |_| false, |r| todo.push(r)),
            }
            match event {
                Event::For { carried, .. } | Event::While { carried, .. } => {
                    carried.iter().for_each(|c| feeds[c.var] = Feed::Two(c.init, c.next));
                }
                Event::EndIf { choices } => {
                    choices.iter().for_each(|c| feeds[c.var] = Feed::Two(c.then, c.otherwise));
                }
                _ => {}
            }
        }
        while let Some(reg) = todo.pop() {
            if std::mem::replace(&mut self.needed[reg], true) {
                continue;
            }
            match feeds[reg] {
                Feed::Nothing => {}
                Feed::Instr(idx) => for_each_use(&events[idx], |_| false, |r| todo.push(r)),
                Feed::Two(a, b) => todo.extend([a, b]),
            }
        }
    }

    fn can_fail(&self, instr: &Instr) -> bool {
        match instr {
            Instr::Int { value, .. } => self.may_overflow(value),
            Instr::IntOp { op, .. } => can_fail(*op),
            _ => false,
        }
    }

    /// Returns whether `event` is written at all.
    pub fn is_written(&self, event: &Event<'_>) -> bool {
        match event {
            Event::Instr(instr) => match instr.dst() {
                Some(dst) if self.needed[dst] => {
                    !matches!(self.origin[dst], Origin::Const(_) | Origin::Scalar(_) | Origin::Size(_))
                }
                Some(_) => self.can_fail(instr),
                None => true,
            },
            _ => true,
        }
    }
}

fn fits(value: i128) -> bool {
    i64::try_from(value).is_ok()
}

/// Returns the number of a register in its name.
pub fn number(reg: Reg) -> usize {
    reg.index()
}
