//! Names, parameters and codes of one kernel.
//!
//! In: a kernel, and the names that other kernels of the file have taken. Out: a [`Unit`], on which
//! signatures, documentation and statements agree.

use crate::facts::Facts;
use crate::language::{Language, space};
use crate::names::Scope;
use chainrule_base::Poly;
use chainrule_kernel::{Class, Kernel, Reg, SizeSource};
use std::fmt::{self, Display};

/// A parameter of the function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Param {
    /// A size that is an extent: index into the kernel's sizes.
    Size(usize),
    /// Index into the kernel's inputs.
    Input(usize),
    /// Index into the kernel's outputs.
    Output(usize),
    /// The workspace of a class.
    Work,
    /// The workspace of integers.
    IntWork,
}

/// Why a call fails.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The sizes cannot be.
    Size,
    /// An integer does not fit.
    Overflow,
    /// A condition at entry; the number of the message among those of its kind, from 1.
    Require(usize),
    /// A check while it runs; the number of the message among those of its kind, from 1.
    Check(usize),
}

/// A reason to fail, and what is said to people.
#[derive(Clone, PartialEq, Debug)]
pub struct Code {
    /// The kind.
    pub reason: Reason,
    /// What is said.
    pub message: String,
}

/// One kernel in a file.
pub struct Unit<'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
    /// The name of its function.
    pub name: String,
    /// The name of each size; for a size that is the value of an input that input's name.
    pub sizes: Vec<String>,
    /// The name of each input.
    pub inputs: Vec<String>,
    /// The name of each output.
    pub outputs: Vec<String>,
    /// The name of the workspace of numbers.
    pub work: String,
    /// The name of the workspace of integers.
    pub iwork: String,
    /// The workspace of each class beside the kernel's own: slots of values that cross cuts.
    pub n_slots: [usize; 2],
    /// Reasons to fail; the code of the first is 1.
    pub codes: Vec<Code>,
    /// The codes of the kernel's conditions: indices into `codes`.
    pub condition_codes: Vec<usize>,
    /// The codes of the kernel's failures.
    pub failure_codes: Vec<usize>,
}

/// A name, to print polynomials with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Named<'a>(
    /// The name.
    pub &'a str,
);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Takes a name for the function of `kernel`, in the scope of the file.
pub fn take_name<L: Language>(kernel: &Kernel, file: &mut Scope) -> String {
    let fits = |scope: &Scope, candidate: &str| {
        // In C, `f` and `F` have the same macros.
        !L::is_reserved(candidate)
            && !L::is_linked(candidate)
            && L::family(candidate).iter().all(|name| scope.is_free(name))
            && scope.functions().iter().all(|other| L::may_stand_beside(candidate, other))
            && is_underived::<L>(scope, candidate)
    };
    let name = file.pick(&kernel.name, "", fits);
    L::family(&name).into_iter().for_each(|name| file.reserve(name));
    file.add_function(name.clone());
    name
}

impl<'k> Unit<'k> {
    /// Names for everything; `file` holds the names at file scope, those of this kernel included.
    #[must_use]
    pub fn new<L: Language>(
        kernel: &'k Kernel,
        name: String,
        file: &Scope,
        facts: &Facts,
        n_slots: [usize; 2],
    ) -> Self {
        let mut scope = file.clone();
        let mut names = vec![String::new(); kernel.sizes.len()];
        for (size, slot) in kernel.sizes.iter().zip(&mut names) {
            if let SizeSource::Extent { .. } = size.source {
                *slot = take::<L>(&mut scope, &size.name, "");
            }
        }
        let inputs: Vec<String> = kernel.inputs.iter().map(|p| take::<L>(&mut scope, &p.name, "")).collect();
        let outputs = kernel.outputs.iter().map(|p| take::<L>(&mut scope, &p.name, "_out")).collect();
        for (size, slot) in kernel.sizes.iter().zip(&mut names) {
            if let SizeSource::Value { input } = size.source {
                slot.clone_from(&inputs[input]);
            }
        }
        let (work, iwork) = (take::<L>(&mut scope, "work", ""), take::<L>(&mut scope, "iwork", ""));
        let mut this = Self {
            kernel,
            name,
            sizes: names,
            inputs,
            outputs,
            work,
            iwork,
            n_slots,
            codes: Vec::new(),
            condition_codes: Vec::new(),
            failure_codes: vec![0; kernel.failures.len()],
        };
        this.make_codes(facts);
        this
    }

    /// Two codes that are always there, then one for each message.
    fn make_codes(&mut self, facts: &Facts) {
        let limit = crate::facts::MAX_EXTENT;
        self.code(Reason::Size, &format!("a size is negative or above {limit}, or the arguments are too large"));
        self.code(Reason::Overflow, "an integer does not fit into 64 bits");
        let mut k = 0;
        for condition in &self.kernel.requires {
            let relation = if condition.exactly_zero { "must be 0" } else { "must not be negative" };
            let message = format!("{}: {} {relation}", condition.message, self.formula(&condition.size));
            let idx = self.find(&message).unwrap_or_else(|| {
                k += 1;
                self.code(Reason::Require(k), &message)
            });
            self.condition_codes.push(idx);
        }
        k = 0;
        for failure in &facts.failures {
            let message = &self.kernel.failures[*failure].0;
            self.failure_codes[*failure] = self.find(message).unwrap_or_else(|| {
                k += 1;
                self.code(Reason::Check(k), message)
            });
        }
    }

    fn find(&self, message: &str) -> Option<usize> {
        self.codes.iter().position(|code| code.message == message)
    }

    fn code(&mut self, reason: Reason, message: &str) -> usize {
        self.codes.push(Code { reason, message: message.to_owned() });
        self.codes.len() - 1
    }

    /// `poly` over sizes, with their names.
    #[must_use]
    pub fn formula(&self, poly: &Poly<Reg>) -> String {
        let name = |r: Reg| self.kernel.sizes.iter().position(|s| s.reg == r).map_or("?", |i| self.sizes[i].as_str());
        poly.substitute(|r| Poly::var(Named(name(r)))).to_string()
    }

    /// How much of the workspace of a class are slots, which lie at its beginning.
    #[must_use]
    pub fn slots(&self, class: Class) -> Poly<Reg> {
        Poly::constant(i64::try_from(self.n_slots[space(class)]).unwrap_or(i64::MAX))
    }

    /// How much workspace of a class is needed, slots included.
    #[must_use]
    pub fn workspace(&self, class: Class) -> Poly<Reg> {
        match class {
            Class::Real => self.kernel.workspace_reals.add(&self.slots(class)),
            Class::Int => self.kernel.workspace_ints.add(&self.slots(class)),
        }
    }

    /// All parameters, in order.
    #[must_use]
    pub fn params(&self) -> Vec<Param> {
        let sizes = self.kernel.sizes.iter().enumerate().filter_map(|(i, size)| match size.source {
            SizeSource::Extent { .. } => Some(Param::Size(i)),
            SizeSource::Value { .. } => None,
        });
        let mut params: Vec<Param> = sizes.collect();
        params.extend((0..self.inputs.len()).map(Param::Input));
        params.extend((0..self.outputs.len()).map(Param::Output));
        if !self.workspace(Class::Real).is_zero() {
            params.push(Param::Work);
        }
        if !self.workspace(Class::Int).is_zero() {
            params.push(Param::IntWork);
        }
        params
    }

    /// The parameter that holds a size.
    #[must_use]
    pub fn size_param(&self, size: usize) -> Param {
        match self.kernel.sizes[size].source {
            SizeSource::Extent { .. } => Param::Size(size),
            SizeSource::Value { input } => Param::Input(input),
        }
    }

    /// The name of a parameter.
    #[must_use]
    pub fn param_name(&self, param: Param) -> &str {
        match param {
            Param::Size(i) => &self.sizes[i],
            Param::Input(i) => &self.inputs[i],
            Param::Output(i) => &self.outputs[i],
            Param::Work => &self.work,
            Param::IntWork => &self.iwork,
        }
    }
}

/// Whether no function of the file has a name from which the name `candidate` is derived.
fn is_underived<L: Language>(scope: &Scope, candidate: &str) -> bool {
    scope.functions().iter().all(|function| L::may_stand_beside(function, candidate))
}

fn take<L: Language>(scope: &mut Scope, name: &str, suffix: &str) -> String {
    let fits = |scope: &Scope, candidate: &str| scope.is_free(candidate) && is_underived::<L>(scope, candidate);
    let mut name = name.to_owned();
    if !is_underived::<L>(scope, &name) {
        name.insert_str(0, "x_");
    }
    let identifier = scope.pick(&name, suffix, fits);
    scope.reserve(identifier.clone());
    identifier
}
