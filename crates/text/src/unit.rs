//! Names, parameters and failure codes of one kernel.
//!
//! In: a kernel, and the used names of the file. Out: a [`Unit`], shared by signatures, documentation and statements.

use crate::facts::Facts;
use crate::language::{Language, space};
use crate::names::Scope;
use chainrule_base::Poly;
use chainrule_kernel::{Class, Kernel, Reg, SizeParam, SizeSource};
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

/// Reason for a failure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Invalid sizes.
    Size,
    /// An integer overflow.
    Overflow,
    /// A condition at entry, with the number of the message among those of its kind, from 1.
    Require(usize),
    /// A check at run time, with the number of the message among those of its kind, from 1.
    Check(usize),
}

/// A failure code: its reason and message.
#[derive(Clone, PartialEq, Debug)]
pub struct Code {
    /// Reason.
    pub reason: Reason,
    /// Message.
    pub message: String,
}

/// One kernel in a file.
pub struct Unit<'k> {
    /// The kernel.
    pub kernel: &'k Kernel,
    /// Name of its function.
    pub name: String,
    /// Name of each size; the input's name for a size that is the value of an input.
    pub sizes: Vec<String>,
    /// The name of each input.
    pub inputs: Vec<String>,
    /// The name of each output.
    pub outputs: Vec<String>,
    /// Name of the workspace of numbers.
    pub work: String,
    /// Name of the workspace of integers.
    pub iwork: String,
    /// Slots of values that live across splits, for each class; added to the kernel's own workspace.
    pub n_slots: [usize; 2],
    /// Failure codes; the first has number 1.
    pub codes: Vec<Code>,
    /// Codes of the kernel's conditions: indices into `codes`.
    pub condition_codes: Vec<usize>,
    /// Codes of the kernel's failures.
    pub failure_codes: Vec<usize>,
}

/// A name, for printing polynomials.
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

/// Reserves a name for the function of `kernel` in the scope of the file.
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
    /// Chooses all names; `file` holds the names at file scope, including those of this kernel.
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
        for (i, size) in kernel.sizes.iter().enumerate() {
            match &size.source {
                SizeSource::Extent { .. } => {}
                SizeSource::Value { input } => names[i].clone_from(&inputs[*input]),
                SizeSource::Natural { of } => names[i] = L::natural(&formula(kernel, &names, of)),
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

    /// Adds the two codes that always exist, then one for each message.
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

    /// Returns `poly` over sizes as text, with the names of the sizes.
    #[must_use]
    pub fn formula(&self, poly: &Poly<Reg>) -> String {
        formula(self.kernel, &self.sizes, poly)
    }

    /// Returns the sizes that are arguments on which `poly` depends.
    #[must_use]
    pub fn given(&self, poly: &Poly<Reg>) -> Vec<usize> {
        let mut given = Vec::new();
        let mut open = poly.vars();
        while let Some(r) = open.pop() {
            let Some(i) = self.kernel.sizes.iter().position(|s| s.reg == r) else { continue };
            match &self.kernel.sizes[i].source {
                SizeSource::Natural { of } => open.extend(of.vars()),
                _ => given.push(i),
            }
        }
        given.sort_unstable();
        given.dedup();
        given
    }

    /// Returns the polynomials of the sizes in `poly` that are the larger of a polynomial and 0.
    #[must_use]
    pub fn naturals_in(&self, poly: &Poly<Reg>) -> Vec<&'k Poly<Reg>> {
        let vars = poly.vars();
        let sizes = self.kernel.sizes.iter().filter(|size| vars.contains(&size.reg));
        sizes.filter_map(|size| size.natural()).collect()
    }

    /// Returns the polynomials of all sizes that are the larger of a polynomial and 0.
    pub fn naturals(&self) -> impl Iterator<Item = &'k Poly<Reg>> {
        self.kernel.sizes.iter().filter_map(SizeParam::natural)
    }

    /// Returns the total size of the slots at the beginning of the workspace of a class.
    #[must_use]
    pub fn slots(&self, class: Class) -> Poly<Reg> {
        Poly::constant(i64::try_from(self.n_slots[space(class)]).unwrap_or(i64::MAX))
    }

    /// Returns the required workspace of a class, including slots.
    #[must_use]
    pub fn workspace(&self, class: Class) -> Poly<Reg> {
        match class {
            Class::Real => self.kernel.workspace_reals.add(&self.slots(class)),
            Class::Int => self.kernel.workspace_ints.add(&self.slots(class)),
        }
    }

    /// Returns all parameters, in order.
    #[must_use]
    pub fn params(&self) -> Vec<Param> {
        let sizes = self.kernel.sizes.iter().enumerate().filter_map(|(i, size)| match size.source {
            SizeSource::Extent { .. } => Some(Param::Size(i)),
            SizeSource::Value { .. } | SizeSource::Natural { .. } => None,
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

    /// Returns the parameters from which a size is computed.
    pub fn size_params(&self, size: Reg) -> impl Iterator<Item = Param> {
        let given = self.given(&Poly::var(size)).into_iter();
        given.map(|i| match &self.kernel.sizes[i].source {
            SizeSource::Value { input } => Param::Input(*input),
            _ => Param::Size(i),
        })
    }

    /// Returns the name of a parameter.
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

/// Returns `poly` over the sizes of `kernel` as text, with these names.
fn formula(kernel: &Kernel, names: &[String], poly: &Poly<Reg>) -> String {
    let name = |r: Reg| kernel.sizes.iter().position(|s| s.reg == r).map_or("?", |i| names[i].as_str());
    poly.substitute(|r| Poly::var(Named(name(r)))).to_string()
}

/// Returns whether no function of the file has a name from which `candidate` would be derived.
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
