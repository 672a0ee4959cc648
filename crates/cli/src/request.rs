//! Options that several commands share: file, function and derivative.

use crate::data::{Program, read_program, shown};
use crate::explain;
use chainrule::{CompileOptions, Derivation, Derived, Function, Module, Semantics, SparsePrograms, Unroll};
use clap::builder::{BoolValueParser, TypedValueParser};
use clap::{ArgAction, Args, ValueEnum};
use std::path::PathBuf;

/// Function to work on.
#[derive(Args)]
pub struct Which {
    /// Program in F~, the array language of Chainrule
    pub file: PathBuf,
    /// Function to use (default: the last one in the file)
    #[arg(long, short)]
    pub function: Option<String>,
    /// Value of a size or of an integer argument: `--size n=10`
    #[arg(long = "size", value_name = "NAME=NUMBER", value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// Unrolling of loops into straight-line code
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = Unrolling::Auto)]
    pub unroll: Unrolling,
    /// Keep every operation of the program: sums in their order, no fused products, only rewriting rules that are exact
    /// for doubles
    #[arg(id = "strict", long, action = ArgAction::SetTrue, value_parser = semantics())]
    pub semantics: Semantics,
}

/// Returns the parser of `--strict`.
fn semantics() -> impl TypedValueParser<Value = Semantics> {
    BoolValueParser::new().map(|is_given| if is_given { Semantics::Strict } else { Semantics::default() })
}

/// Condition for unrolling loops.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unrolling {
    /// If all sizes are known, and straight-line code is estimated to take no more time
    Auto,
    /// Always, however long the code is
    Always,
    /// Never
    Never,
}

/// Order and rounding of the operations of compiled code.
#[derive(Args, Clone, Copy)]
pub struct Arithmetic {
    /// Round every product, instead of fusing products with sums
    #[arg(long)]
    no_fuse: bool,
    /// Run loops one iteration after the other, without vectorisation, and add sums in that order
    #[arg(long)]
    sequential: bool,
}

impl Arithmetic {
    /// Returns the given options.
    pub fn given(self) -> [(&'static str, bool); 2] {
        [("--no-fuse", self.no_fuse), ("--sequential", self.sequential)]
    }

    /// Returns compile options, with defaults for the others.
    pub fn settings(self) -> CompileOptions {
        let fuse = self.no_fuse.then_some(false);
        CompileOptions { fuse, sequential: self.sequential, ..CompileOptions::default() }
    }
}

/// Requested derivatives.
#[derive(Args, Clone)]
pub struct Derivative {
    /// Derivative to compute; repeat it for several results
    #[arg(long, short, value_enum)]
    pub what: Vec<What>,
    /// Order of `--what derivatives`
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    pub order: usize,
    /// Arguments to differentiate by, or parts of them such as `x[0]`, `x[0..3]` and `p.a` (default: all)
    #[arg(long, value_name = "ARGUMENT", value_delimiter = ',')]
    pub by: Vec<String>,
    /// Results to differentiate, or parts of them such as `result[0]` and `result.a` (default: all)
    #[arg(long, value_name = "RESULT", value_delimiter = ',')]
    pub of: Vec<String>,
    /// Strategy of accumulation: auto, forward, reverse, markowitz, ... In functions that keep their loops, forward and
    /// reverse select the mode of loops, and others apply to straight-line code inside of them
    #[arg(long, default_value = "auto")]
    pub strategy: String,
    /// Leave derivatives of straight-line code as they were accumulated, without value numbering and factoring
    #[arg(long)]
    pub no_optimise: bool,
    /// Time spent on a search for fewer operations, in derivatives of straight-line code
    #[arg(long, value_name = "EFFORT", value_enum, default_value_t = SearchEffort::Thorough)]
    pub effort: SearchEffort,
    /// Sparse Jacobians and Hessians: only the elements that are not structurally zero, with their pattern
    #[arg(long)]
    pub sparse: bool,
    /// Triangle of sparse matrices, with the diagonal; implies --sparse
    #[arg(long, value_name = "WHICH", value_enum)]
    pub triangle: Option<Half>,
    /// Maximum number of states of a loop that reverse mode saves; the others are recomputed. Only for functions that
    /// keep their loops
    #[arg(long, value_name = "NUMBER")]
    pub checkpoints: Option<u32>,
}

/// Effort of the search for derivatives with few operations.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SearchEffort {
    /// A few times the compile time
    Quick,
    /// Several times as much
    Thorough,
}

/// Triangle of a matrix.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Half {
    /// Entries on the diagonal and below.
    Lower,
    /// Entries on the diagonal and above.
    Upper,
}

/// A derivative.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// The function itself.
    Value,
    /// The gradient of a scalar result.
    Gradient,
    /// The Jacobian.
    Jacobian,
    /// The Hessian of a scalar result.
    Hessian,
    /// The diagonal of the Hessian of a scalar result, shaped like the arguments.
    HessianDiagonal,
    /// The Jacobian times a direction, which becomes arguments `x_tan`.
    Jvp,
    /// A direction times the Jacobian, which becomes arguments `result_adj`.
    Vjp,
    /// The Hessian times a direction, which becomes arguments `x_tan`.
    Hvp,
    /// All derivatives of the order `--order`: the Jacobian of the Jacobian, and so on.
    Derivatives,
}

impl What {
    /// Returns whether the result can be a sparse matrix.
    pub fn is_matrix(self) -> bool {
        matches!(self, Self::Jacobian | Self::Gradient | Self::Hessian)
    }
}

fn size(text: &str) -> Result<(String, i64), String> {
    let (name, number) = text.split_once('=').ok_or("write it as NAME=NUMBER, such as n=10")?;
    let number = number.trim().parse().map_err(|_| format!("`{number}` is not a whole number of 64 bits"))?;
    Ok((name.trim().to_string(), number))
}

/// Loads and checks a file; prints warnings.
pub fn load(file: &std::path::Path) -> Result<Module, String> {
    match read_program(file)? {
        Program::Text(text) => check(file, &text),
        Program::Saved(_) => Err(format!(
            "error: {} is compiled already\n  help: run it with chainrule run, or give the F~ file that it was made from",
            shown(file)
        )),
    }
}

/// Checks the text of `file`.
fn check(file: &std::path::Path, text: &str) -> Result<Module, String> {
    let module = Module::from_text(&file.display().to_string(), text).map_err(|e| explain(&e))?;
    let warnings = module.render_warnings();
    if !warnings.is_empty() {
        crate::tell(&warnings);
    }
    Ok(module)
}

impl Which {
    /// Returns the function at the given sizes.
    pub fn load(&self) -> Result<Function, String> {
        self.choose(load(&self.file)?)
    }

    /// Returns the text of the file.
    pub fn text(&self) -> Result<String, String> {
        match read_program(&self.file)? {
            Program::Text(text) => Ok(text),
            Program::Saved(_) => Err(format!("error: {} is compiled already", shown(&self.file))),
        }
    }

    /// As [`Self::load_text`], without warnings.
    pub fn load_text_quietly(&self, text: &str) -> Result<Function, String> {
        let module = Module::from_text(&self.file.display().to_string(), text).map_err(|e| explain(&e))?;
        self.choose(module)
    }

    /// Returns the function in the text of its file.
    pub fn load_text(&self, text: &str) -> Result<Function, String> {
        self.choose(check(&self.file, text)?)
    }

    fn choose(&self, module: Module) -> Result<Function, String> {
        let module = module.with_semantics(self.semantics);
        let name = match &self.function {
            Some(name) => name.clone(),
            None => {
                module.definitions().into_iter().rev().find(|d| d.is_function).map(|d| d.name).ok_or_else(|| {
                    let help = "define one, such as let f = fun (x : Double) -> x * x";
                    format!("error: {} defines no function\n  help: {help}", shown(&self.file))
                })?
            }
        };
        let function = module.function(&name).map_err(|e| explain(&e))?;
        let function = function.unroll(match self.unroll {
            Unrolling::Auto => Unroll::Auto,
            Unrolling::Always => Unroll::Always,
            Unrolling::Never => Unroll::Never,
        });
        for (i, (name, _)) in self.sizes.iter().enumerate() {
            if self.sizes[..i].iter().any(|(other, _)| other == name) {
                return Err(format!("error: the size `{name}` is given twice\n  help: give it once"));
            }
        }
        let sizes: Vec<(&str, i64)> = self.sizes.iter().map(|(n, k)| (n.as_str(), *k)).collect();
        let function = function.at_sizes(&sizes).map_err(|e| explain(&e))?;
        match self.unroll {
            // A function that cannot be unrolled is reported first.
            Unrolling::Always => function.unrolled(&[]).map_err(|e| explain(&e)),
            Unrolling::Auto | Unrolling::Never => Ok(function),
        }
    }
}

impl Derivative {
    /// Returns the request on `function`; `None` if only the function itself is requested.
    pub fn on(&self, function: &Function) -> Option<Derivation> {
        let one = |what: &What| match what {
            What::Value => function.value(),
            What::Gradient => function.gradient(),
            What::Jacobian => function.jacobian(),
            What::Hessian => function.hessian(),
            What::HessianDiagonal => function.hessian_diagonal(),
            What::Jvp => function.jvp(),
            What::Vjp => function.vjp(),
            What::Hvp => function.hvp(),
            What::Derivatives => function.derivatives(self.order),
        };
        let (first, rest) = self.what.split_first()?;
        if self.what == [What::Value] && self.of.is_empty() {
            return None;
        }
        let mut derivation = rest.iter().fold(one(first), |all, what| all.and(&one(what)));
        if !self.by.is_empty() {
            derivation = derivation.by(&self.by.iter().map(String::as_str).collect::<Vec<_>>());
        }
        if !self.of.is_empty() {
            derivation = derivation.of(&self.of.iter().map(String::as_str).collect::<Vec<_>>());
        }
        if self.effort == SearchEffort::Quick {
            derivation = derivation.quick();
        }
        if self.no_optimise {
            derivation = derivation.without_optimisation();
        }
        if self.sparse {
            derivation = derivation.sparse();
        }
        derivation = match self.triangle {
            Some(Half::Lower) => derivation.lower(),
            Some(Half::Upper) => derivation.upper(),
            None => derivation,
        };
        if let Some(n) = self.checkpoints {
            derivation = derivation.checkpoints(n);
        }
        Some(derivation.strategy(&self.strategy))
    }

    /// Returns the programs of a sparse derivative of a function that keeps its loops; `None` if none is requested, and
    /// for straight-line code.
    pub fn sparse_loops(&self, function: &Function) -> Result<Option<SparsePrograms>, String> {
        match self.on(function).filter(|_| self.is_sparse() && self.what.iter().any(|what| what.is_matrix())) {
            // Straight-line code has several parts in one function.
            Some(derivation) if self.what.len() == 1 || function.keeps_loops() => {
                derivation.sparse_programs().map_err(|e| explain(&e))
            }
            _ => Ok(None),
        }
    }

    /// Returns whether matrices are sparse.
    pub fn is_sparse(&self) -> bool {
        self.sparse || self.triangle.is_some()
    }

    /// Returns the same request for these parts.
    pub fn of_parts(&self, what: Vec<What>) -> Self {
        Self { what, ..self.clone() }
    }

    /// Returns the derived function, or the function itself without a request.
    pub fn derive(&self, function: &Function) -> Result<Function, String> {
        match self.on(function) {
            None => Ok(function.clone()),
            Some(derivation) => derivation.function().map_err(|e| explain(&e)),
        }
    }

    /// Returns the requested programs: the derived function, or the pattern and the values of a sparse matrix of a
    /// function that keeps its loops.
    pub fn programs(&self, function: &Function) -> Result<Vec<Function>, String> {
        match self.sparse_loops(function)? {
            Some(sparse) => Ok(vec![sparse.pattern_program(), sparse.values_program()]),
            None => self.derive(function).map(|derived| vec![derived]),
        }
    }

    /// Does the same as [`Self::derive`], and returns the report of the derivation.
    pub fn explain(&self, function: &Function) -> Result<Derived, String> {
        match self.on(function) {
            None => Ok(Derived::itself(function)),
            Some(derivation) => derivation.explain().map_err(|e| explain(&e)),
        }
    }
}
