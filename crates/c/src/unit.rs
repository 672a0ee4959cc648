//! Names, parameters and codes of one kernel.
//!
//! In: a kernel, and the names that other kernels of the file have taken. Out: a [`Unit`], on which
//! signatures, documentation and statements agree.

use crate::facts::Facts;
use crate::names::{Scope, is_identifier, is_reserved};
use chainrule_base::{Diagnostic, Diagnostics, Poly};
use chainrule_kernel::{Class, Kernel, Reg, SizeSource};
use std::fmt::{self, Display};

/// A parameter of the C function.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Param {
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

/// Why a call fails, and its code.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Code {
    /// The name of its macro.
    pub name: String,
    /// What is said to people.
    pub message: String,
}

/// One kernel in a file.
pub(crate) struct Unit<'k> {
    pub kernel: &'k Kernel,
    /// The name of its function.
    pub name: String,
    /// The same in upper case, for macros.
    pub upper: String,
    /// Names of sizes, inputs, outputs; for a size that is the value of an input that input's name.
    pub sizes: Vec<String>,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    pub work: String,
    pub iwork: String,
    /// The workspace of each class beside the kernel's own: slots of values that cross cuts.
    pub n_slots: [usize; 2],
    /// Reasons to fail; the code of the first is 1.
    pub codes: Vec<Code>,
    /// The codes of the kernel's conditions and failures: indices into `codes`.
    pub condition_codes: Vec<usize>,
    pub failure_codes: Vec<usize>,
}

/// A name, to print polynomials with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Named<'a>(pub &'a str);

impl Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The names that the function `name` brings with it at file scope.
fn family(name: &str) -> [String; 6] {
    let upper = name.to_ascii_uppercase();
    [
        name.to_owned(),
        format!("{name}_error"),
        format!("{name}_work_size"),
        format!("{name}_iwork_size"),
        format!("{upper}_WORK_SIZE"),
        format!("{upper}_IWORK_SIZE"),
    ]
}

/// Takes a name for the function of `kernel`, in the scope of the file.
pub(crate) fn take_name(kernel: &Kernel, file: &mut Scope) -> String {
    let fits = |scope: &Scope, candidate: &str| {
        // `f` and `F` have the same macros.
        let family = family(candidate);
        !is_reserved(candidate) && family.iter().all(|name| scope.is_free(name))
    };
    let name = file.pick(&kernel.name, "", fits);
    family(&name).into_iter().for_each(|name| file.reserve(name));
    name
}

/// The declared C names of users' functions.
///
/// # Errors
/// A function without a name in C, or with one that cannot be.
pub(crate) fn externals(kernels: &[&Kernel]) -> Result<Vec<(String, usize)>, Diagnostics> {
    let mut found: Vec<(String, usize)> = Vec::new();
    let mut errors = Diagnostics::new();
    for external in kernels.iter().flat_map(|kernel| &kernel.externals) {
        let Some(name) = &external.c_name else {
            errors.push(
                Diagnostic::error(format!("the function `{}` has no name in C", external.name))
                    .with_reason("emitted code calls it, and only its author can say what it is called there")
                    .with_help("register it with the name of a C function of doubles that computes it"),
            );
            continue;
        };
        let refuse = |why: &str| {
            Diagnostic::error(format!("the function `{}` cannot be called `{name}` in C", external.name))
                .with_reason(why.to_owned())
                .with_help("give it another name")
        };
        match found.iter().find(|(other, _)| other.as_str() == name.as_str()) {
            _ if !is_identifier(name) => errors.push(refuse("that is not an identifier")),
            _ if is_reserved(name) => errors.push(refuse("that name has a meaning in C or in the emitted code")),
            Some((_, arity)) if *arity != external.arity => {
                let s = if *arity == 1 { "" } else { "s" };
                errors.push(refuse(&format!("another function of that name takes {arity} argument{s}")));
            }
            Some(_) => {}
            None => found.push((name.to_string(), external.arity)),
        }
    }
    errors.into_result(found)
}

impl<'k> Unit<'k> {
    /// Names for everything; `file` holds the names at file scope, those of this kernel included.
    pub fn new(kernel: &'k Kernel, name: String, file: &Scope, facts: &Facts, n_slots: [usize; 2]) -> Self {
        let upper = name.to_ascii_uppercase();
        let mut scope = file.clone();
        let mut names = vec![String::new(); kernel.sizes.len()];
        for (size, slot) in kernel.sizes.iter().zip(&mut names) {
            if let SizeSource::Extent { .. } = size.source {
                *slot = take(&mut scope, &size.name, "", &name);
            }
        }
        let inputs: Vec<String> = kernel.inputs.iter().map(|p| take(&mut scope, &p.name, "", &name)).collect();
        let outputs = kernel.outputs.iter().map(|p| take(&mut scope, &p.name, "_out", &name)).collect();
        for (size, slot) in kernel.sizes.iter().zip(&mut names) {
            if let SizeSource::Value { input } = size.source {
                slot.clone_from(&inputs[input]);
            }
        }
        let (work, iwork) = (take(&mut scope, "work", "", &name), take(&mut scope, "iwork", "", &name));
        let mut this = Self {
            kernel,
            name,
            upper,
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
        self.code("SIZE", &format!("a size is negative or above {limit}, or the arguments are too large"));
        self.code("OVERFLOW", "an integer does not fit into 64 bits");
        let mut k = 0;
        for condition in &self.kernel.requires {
            let relation = if condition.exactly_zero { "must be 0" } else { "must not be negative" };
            let message = format!("{}: {} {relation}", condition.message, self.formula(&condition.size));
            let idx = self.find(&message).unwrap_or_else(|| {
                k += 1;
                self.code(&format!("REQUIRE_{k}"), &message)
            });
            self.condition_codes.push(idx);
        }
        k = 0;
        for failure in &facts.failures {
            let message = &self.kernel.failures[*failure].0;
            self.failure_codes[*failure] = self.find(message).unwrap_or_else(|| {
                k += 1;
                self.code(&format!("CHECK_{k}"), message)
            });
        }
    }

    fn find(&self, message: &str) -> Option<usize> {
        self.codes.iter().position(|code| code.message == message)
    }

    fn code(&mut self, name: &str, message: &str) -> usize {
        self.codes.push(Code { name: format!("{}_E_{name}", self.upper), message: message.to_owned() });
        self.codes.len() - 1
    }

    /// `poly` over sizes, with their names.
    pub fn formula(&self, poly: &Poly<Reg>) -> String {
        let name = |r: Reg| self.kernel.sizes.iter().position(|s| s.reg == r).map_or("?", |i| self.sizes[i].as_str());
        poly.substitute(|r| Poly::var(Named(name(r)))).to_string()
    }

    /// How much workspace of a class is needed, slots included.
    pub fn workspace(&self, class: Class) -> Poly<Reg> {
        let (own, n_slots) = match class {
            Class::Real => (&self.kernel.workspace_reals, self.n_slots[0]),
            Class::Int => (&self.kernel.workspace_ints, self.n_slots[1]),
        };
        own.add(&Poly::constant(i64::try_from(n_slots).unwrap_or(i64::MAX)))
    }

    /// All parameters, in order.
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
    pub fn size_param(&self, size: usize) -> Param {
        match self.kernel.sizes[size].source {
            SizeSource::Extent { .. } => Param::Size(size),
            SizeSource::Value { input } => Param::Input(input),
        }
    }

    /// The name of a parameter.
    pub fn param_name(&self, param: Param) -> &str {
        match param {
            Param::Size(i) => &self.sizes[i],
            Param::Input(i) => &self.inputs[i],
            Param::Output(i) => &self.outputs[i],
            Param::Work => &self.work,
            Param::IntWork => &self.iwork,
        }
    }

    /// Its declaration; with `restrict` in definitions, without in headers, which C++ reads too.
    pub fn declaration(&self, param: Param, definition: bool) -> String {
        let kernel = self.kernel;
        let ty = |buffer| if kernel.buffers[buffer].class == Class::Real { "double" } else { "int64_t" };
        let name = self.param_name(param);
        let restrict = if definition { "restrict " } else { "" };
        match param {
            Param::Size(_) => format!("int64_t {name}"),
            Param::Input(i) => {
                let port = &kernel.inputs[i];
                let ty = ty(port.buffer);
                if port.shape.is_empty() { format!("{ty} {name}") } else { format!("const {ty} *{name}") }
            }
            Param::Output(i) => format!("{} *{restrict}{name}", ty(kernel.outputs[i].buffer)),
            Param::Work => format!("double *{restrict}{name}"),
            Param::IntWork => format!("int64_t *{restrict}{name}"),
        }
    }
}

fn take(scope: &mut Scope, name: &str, suffix: &str, function: &str) -> String {
    // The names of pieces and codes are made later: `f_part1`, `F_E_SIZE`.
    let upper = function.to_ascii_uppercase();
    let fits = |scope: &Scope, candidate: &str| {
        let rest = candidate.strip_prefix(function).and_then(|rest| rest.strip_prefix("_part"));
        scope.is_free(candidate) && rest.is_none() && !candidate.starts_with(&format!("{upper}_E_"))
    };
    let mut name = name.to_owned();
    if name.starts_with(&format!("{function}_part")) || name.starts_with(&format!("{upper}_E_")) {
        name.insert_str(0, "x_");
    }
    let identifier = scope.pick(&name, suffix, fits);
    scope.reserve(identifier.clone());
    identifier
}
