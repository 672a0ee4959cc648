//! The program after each pass, as text and executable: for finding the pass that breaks a program.

use super::Passes;
use crate::compiled::Compiled;
use crate::function::{Body, ScalarBody};
use crate::guard::guard;
use crate::{Backend, CompileOptions, Error, Function, Result};
use chainrule_graph::Semantics;
use chainrule_ir::{self as ir, Value};
use chainrule_kernel::{Kernel, Products};
use chainrule_ops::F64;
use std::sync::Arc;

/// Pass of the compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pass {
    /// Name, unique.
    pub name: &'static str,
    /// Description, one line.
    pub does: &'static str,
    /// Form of the program that it leaves.
    pub level: PassLevel,
    /// Strictest semantics under which it runs.
    pub runs_under: Semantics,
    /// Whether it can be left out ([`crate::Rewrite::Without`]).
    pub optional: bool,
}

/// Form of a program between passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PassLevel {
    /// Array program.
    Array,
    /// Scalar graph: straight-line code.
    Graph,
    /// Linearised graph.
    Linear,
    /// Accumulation program.
    Accumulation,
    /// Kernel.
    Kernel,
}

/// Program between passes.
#[derive(Clone, Copy)]
pub(crate) enum Program<'p> {
    Array(&'p ir::Function),
    Graph(&'p ScalarBody),
    Linear(&'p str),
    Accumulation(&'p str),
    Kernel(&'p Kernel),
}

/// Callback that sees the program after each pass, with the name of the pass.
type Callback<'a> = &'a mut dyn FnMut(&str, Program<'_>);

/// Observation of the passes.
#[derive(Default)]
pub(crate) struct Watch<'a> {
    /// Observer, if there is one.
    pub callback: Option<Callback<'a>>,
    /// Pass after whose first run the pipeline ends, if not after the last one.
    pub until: Option<&'static str>,
    /// Program after that run.
    pub listing: Option<String>,
}

impl Watch<'_> {
    pub fn see(&mut self, pass: &str, program: Program<'_>) {
        if let Some(watch) = &mut self.callback {
            watch(pass, program);
        }
        if self.until == Some(pass) && !self.is_at_end() {
            self.listing = Some(program.listing());
        }
    }

    /// Returns whether the pipeline ends here.
    pub fn is_at_end(&self) -> bool {
        self.listing.is_some()
    }
}

impl Program<'_> {
    fn listing(self) -> String {
        match self {
            Program::Array(function) => ir::print(function),
            Program::Graph(body) => body.graph.listing(&body.roots()),
            Program::Linear(listing) | Program::Accumulation(listing) => listing.to_owned(),
            Program::Kernel(kernel) => kernel.to_string(),
        }
    }
}

/// Program after a pass.
pub struct Snapshot<'p> {
    /// Name of the pass; `""` for the array program before all passes.
    pub pass: &'p str,
    program: Program<'p>,
    function: &'p Function,
}

impl Snapshot<'_> {
    /// Returns the form of the program.
    #[must_use]
    pub fn level(&self) -> PassLevel {
        match self.program {
            Program::Array(_) => PassLevel::Array,
            Program::Graph(_) => PassLevel::Graph,
            Program::Linear(_) => PassLevel::Linear,
            Program::Accumulation(_) => PassLevel::Accumulation,
            Program::Kernel(_) => PassLevel::Kernel,
        }
    }

    /// Returns whether the program computes the results of the function. A linearised graph and an accumulation program
    /// only compute derivatives from partial derivatives.
    #[must_use]
    pub fn has_results(&self) -> bool {
        !matches!(self.program, Program::Linear(_) | Program::Accumulation(_))
    }

    /// Returns the program as text: F~, or the listing of the graph, the accumulation program or the kernel.
    #[must_use]
    pub fn listing(&self) -> String {
        self.program.listing()
    }

    /// Runs the program: an array program by the reference evaluator, a graph or a kernel by the interpreter. Returns
    /// the results, one for each of the function.
    ///
    /// # Errors
    /// Fails if the arguments do not match, if the program fails, or if it has no results ([`Self::has_results`]).
    pub fn call(&self, args: &[Value<f64>]) -> Result<Vec<Value<f64>>> {
        guard(|| match self.program {
            Program::Array(function) => {
                let value = ir::evaluate(function, &mut F64, args);
                let value = value.map_err(|failure| Error::request(failure.to_string(), "change the arguments"))?;
                Ok(match value {
                    Value::Tuple(items) if self.function.signature().results.len() > 1 => items,
                    value => vec![value],
                })
            }
            Program::Graph(body) => self.interpret(super::lower_scalar("f", body, Products::Rounded)?, args),
            Program::Linear(_) | Program::Accumulation(_) => {
                Err(Error::request("this program has no results", "call the program after another pass"))
            }
            Program::Kernel(kernel) => self.interpret(kernel.clone(), args),
        })
    }

    fn interpret(&self, kernel: Kernel, args: &[Value<f64>]) -> Result<Vec<Value<f64>>> {
        let options = CompileOptions { backend: Backend::Interpreter, ..CompileOptions::default() };
        let body = match &self.function.body {
            Body::Array(body) => Some(Arc::clone(body)),
            Body::Scalar(_) => None,
        };
        Compiled::from_parts(kernel, self.function.signature().clone(), body, &options)?.call(args)
    }
}

/// For tests: a wrong pass. Its fault is planted after another pass and remains after later ones.
#[derive(Clone, Copy, Debug)]
pub struct Seed {
    /// Name of the pass.
    pub after: &'static str,
    /// The fault.
    pub fault: Fault,
}

/// Change of a program that makes it wrong.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Change of an array program.
    Array(fn(&mut ir::Function)),
    /// Change of a kernel.
    Kernel(fn(&mut Kernel)),
}

impl Seed {
    /// Calls `watch` with the program that has the fault, if it has the form that the fault changes.
    fn plant(self, program: Program<'_>, watch: &mut dyn FnMut(Program<'_>)) {
        match (self.fault, program) {
            (Fault::Array(change), Program::Array(function)) => {
                let mut function = function.clone();
                change(&mut function);
                watch(Program::Array(&function));
            }
            (Fault::Kernel(change), Program::Kernel(kernel)) => {
                let mut kernel = kernel.clone();
                change(&mut kernel);
                watch(Program::Kernel(&kernel));
            }
            (Fault::Array(_) | Fault::Kernel(_), program) => watch(program),
        }
    }
}

impl Function {
    /// Runs the passes of compilation; `watch` sees the program before the first and after each ([`crate::passes()`]).
    /// Passes of the optimiser of array programs that run on several candidates in parallel run one after the other.
    ///
    /// ```
    /// use chainrule::{CompileOptions, Module};
    /// let text = "let f = fun (v : [n]Double) -> vectorSum (build n (fun i -> v[i] * v[i]))";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// let mut passes = Vec::new();
    /// f.trace(&CompileOptions::default(), &mut |snapshot| passes.push(snapshot.pass.to_owned()))?;
    /// assert_eq!(passes.last().map(String::as_str), Some("contract"));
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Function::compile_with`].
    pub fn trace(&self, options: &CompileOptions, watch: &mut dyn FnMut(&Snapshot<'_>)) -> Result<()> {
        self.trace_seeded(options, None, watch)
    }

    /// As [`Self::trace`], with a planted fault.
    pub(crate) fn trace_seeded(
        &self,
        options: &CompileOptions,
        seed: Option<Seed>,
        watch: &mut dyn FnMut(&Snapshot<'_>),
    ) -> Result<()> {
        options.rewrite.check()?;
        guard(|| {
            let passes = Passes::from(options);
            if let Body::Array(body) = &self.body {
                watch(&Snapshot { pass: "", program: Program::Array(&body.function), function: self });
            }
            let mut is_wrong = false;
            let mut see = |pass: &str, program: Program<'_>| {
                let mut watch = |program: Program<'_>| watch(&Snapshot { pass, program, function: self });
                is_wrong |= seed.is_some_and(|seed| seed.after == pass);
                match seed.filter(|_| is_wrong) {
                    Some(seed) => seed.plant(program, &mut watch),
                    None => watch(program),
                }
            };
            passes.watched(self, &mut Watch { callback: Some(&mut see), ..Watch::default() })
        })
    }
}
