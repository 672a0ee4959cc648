//! From a function to a kernel for execution or emission: the list of passes ([`passes`]), and the code that runs them.
//!
//! In: a function, and the request of the caller ([`Passes`]). Out: a kernel. [`CompileOptions`], [`COptions`] and
//! [`RustOptions`] are all read here, so that equal options make equal kernels, and equal kernels compute equal bits on
//! every backend.
//!
//! | module | owns |
//! | --- | --- |
//! | `graph` | passes over scalar graphs |
//! | `optimiser` | passes over array programs, and which are left out |
//! | `stop` | the pipeline up to a pass |
//! | `time` | time of passes |
//! | `trace` | the program after each pass |
//!
//! Sums of arrays are added in place during lowering, in another order unless strict; products of straight-line code
//! are fused with sums there if requested.

mod graph;
mod optimiser;
mod stop;
mod time;
mod trace;

use crate::function::{ArrayBody, Body, Port, ScalarBody};
use crate::{COptions, CompileOptions, Error, Function, Result, RustOptions};
use chainrule_accumulate::GraphPasses;
use chainrule_base::{Diagnostics, timing};
use chainrule_graph::Semantics;
use chainrule_kernel::passes::{self as kernel_passes, Plan, Rounding, Stage};
use chainrule_kernel::{GraphPort, Kernel, Products, lower_function_with, lower_graph_with};
use std::borrow::Cow;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) use graph::UNROLL;
pub use optimiser::Rewrite;
pub(crate) use optimiser::{DIFFERENTIATE, REGIONS};
pub(crate) use time::{BACKEND, CHECK, ELABORATE};
pub use time::{PassTimes, time_passes, time_run};
pub use trace::{Fault, Pass, PassLevel, Seed, Snapshot};
pub(crate) use trace::{Program, Watch};

/// Name of the pass that lowers programs to kernels.
const LOWER: &str = "lower";

/// Returns the passes between a checked function and the kernel that a backend takes, in order. Straight-line code has
/// the passes over graphs, other functions those over array programs. Passes of the optimiser of array programs repeat
/// until nothing changes; rules within them are listed by [`chainrule_rewrite::engine::names`].
#[must_use]
pub fn passes() -> Vec<Pass> {
    let array = |name, does, runs_under, optional| Pass { name, does, level: PassLevel::Array, runs_under, optional };
    let mut all = graph::passes().to_vec();
    all.extend([
        array(
            optimiser::REGIONS,
            "derivatives in small scalar regions are accumulated on a scalar graph",
            Semantics::Algebraic,
            true,
        ),
        array(DIFFERENTIATE, "derivatives are expanded by forward and reverse mode", Semantics::Strict, false),
    ]);
    let rewriting = chainrule_rewrite::engine::passes();
    all.extend(rewriting.map(|pass| array(pass.name, pass.does, Semantics::Strict, true)));
    all.push(array(
        chainrule_rewrite::engine::CHOOSE,
        "the cheaper of the programs with loops split and with loops kept whole",
        Semantics::Strict,
        false,
    ));
    all.push(array(
        optimiser::SCALARISE,
        "scalar regions are unrolled, numbered and factored",
        Semantics::Algebraic,
        true,
    ));
    all.push(Pass {
        name: LOWER,
        does: "the program becomes a kernel: loops, buffers, a memory plan",
        level: PassLevel::Kernel,
        runs_under: Semantics::Strict,
        optional: false,
    });
    all.extend(kernel_passes::PASSES.iter().map(|pass| Pass {
        name: pass.name,
        does: pass.does,
        level: PassLevel::Kernel,
        runs_under: match pass.rounding {
            Rounding::Exact | Rounding::Reorders => Semantics::Strict,
            Rounding::Inexact | Rounding::Fuses => Semantics::Algebraic,
        },
        optional: true,
    }));
    all
}

/// Options of the passes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Passes {
    /// Passes of the optimiser of array programs.
    pub rewrite: Rewrite,
    /// Number of checkpoints of loops in reverse mode, for derivatives in the text of the program.
    pub checkpoints: Option<u32>,
    /// Whether products are fused with sums; by default, if the semantics allow it.
    pub fuse: Option<bool>,
    /// Whether no loop runs in lanes.
    pub sequential: bool,
    /// Whether outermost loops are cut into parts.
    pub parts: bool,
}

impl From<&CompileOptions> for Passes {
    fn from(options: &CompileOptions) -> Self {
        let CompileOptions { rewrite, checkpoints, fuse, sequential, .. } = *options;
        Self { rewrite, checkpoints, fuse, sequential, parts: options.threads.is_some() }
    }
}

impl From<&COptions> for Passes {
    fn from(options: &COptions) -> Self {
        Self { parts: options.threads, ..Self::written(options.fuse, options.sequential) }
    }
}

impl From<&RustOptions> for Passes {
    fn from(options: &RustOptions) -> Self {
        Self::written(options.fuse, options.sequential)
    }
}

impl Passes {
    /// Returns the options for emitted text.
    fn written(fuse: bool, sequential: bool) -> Self {
        Self { rewrite: Rewrite::default(), checkpoints: None, fuse: Some(fuse), sequential, parts: false }
    }

    /// Returns the function to lower: the straight-line code of `function`, numbered and factored, if its loops are
    /// unrolled ([`crate::Unroll`]). If a pass over array programs or kernels is left out, loops are kept.
    pub(crate) fn form<'f>(&self, function: &'f Function) -> Result<Cow<'f, Function>> {
        let graph_passes = self.rewrite.graph_passes();
        let is_reduced = graph_passes != GraphPasses::default();
        let derivation = match &function.body {
            Body::Scalar(body) => body.derivation.as_deref().filter(|_| is_reduced).cloned(),
            Body::Array(_) if self.checkpoints.is_some() || !(self.rewrite == Rewrite::All || is_reduced) => None,
            Body::Array(_) => match function.decided()? {
                decided if matches!(decided.body, Body::Scalar(_)) => Some(decided.value()),
                _ => None,
            },
        };
        match derivation {
            Some(derivation) => {
                Ok(Cow::Owned(derivation.graph_passes(graph_passes).function()?.named(function.name())))
            }
            None => Ok(Cow::Borrowed(function)),
        }
    }

    /// Returns the kernel of `function`, which [`Self::form`] returned.
    pub(crate) fn kernel(&self, function: &Function) -> Result<Kernel> {
        let kernel = self.run(function, &mut Watch::default())?;
        kernel.ok_or_else(|| Error::Bug("a pipeline without an end has ended".to_owned()))
    }

    /// Shows `watch` the program after each pass of the compilation of `function`.
    pub(crate) fn watched(&self, function: &Function, watch: &mut Watch<'_>) -> Result<()> {
        let form = self.form(function)?;
        self.watch_graphs(function, &form, watch)?;
        if watch.is_at_end() { Ok(()) } else { self.run(&form, watch).map(drop) }
    }

    /// As [`Self::kernel`]; `watch` sees the program after each pass. Returns nothing if its end comes before the
    /// lowering to a kernel.
    fn run(&self, function: &Function, watch: &mut Watch<'_>) -> Result<Option<Kernel>> {
        let semantics = function.semantics();
        let fuse = self.fuse.unwrap_or(semantics == Semantics::Algebraic);
        let keeps_loops = matches!(function.body, Body::Array(_));
        let mut kernel = match &function.body {
            Body::Scalar(body) => {
                let products = if fuse { Products::Fused } else { Products::Rounded };
                lower_scalar(function.name(), body, products)?
            }
            Body::Array(body) => match lower(body, self.rewrite, self.checkpoints, watch)? {
                Some(kernel) => kernel,
                None => return Ok(None),
            },
        };
        let stages: Vec<Stage> = [
            (Stage::Loops, keeps_loops),
            (Stage::Threads, self.parts),
            (Stage::Lanes, !self.sequential),
            (Stage::Hoisting, true),
            (Stage::Fusion, fuse && keeps_loops),
        ]
        .into_iter()
        .filter_map(|(stage, is_requested)| is_requested.then_some(stage))
        .collect();
        let plan = Plan { stages: &stages, semantics, disabled: &self.rewrite.disabled() };
        watch.see(LOWER, Program::Kernel(&kernel));
        if watch.is_at_end() {
            return Ok(Some(kernel));
        }
        kernel_passes::run(&mut kernel, &plan, &mut |pass, kernel| {
            watch.see(pass.name, Program::Kernel(kernel));
            if watch.is_at_end() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        Ok(Some(kernel))
    }
}

fn lower_scalar(name: &str, body: &ScalarBody, products: Products) -> Result<Kernel> {
    let (inputs, outputs) = (of_kernel(&body.inputs), of_kernel(&body.outputs));
    let lower = || lower_graph_with(chainrule_base::Name::new(name), &body.graph, &inputs, &outputs, products);
    timing::time(LOWER, lower).map_err(bug)
}

/// Returns the kernel of an array program after loop canonicalisation, for its operation counts.
pub(crate) fn lower_array(body: &ArrayBody, rewrite: Rewrite) -> Result<Kernel> {
    let optimised = rewritten(body, rewrite, None, &mut Watch::default())?;
    let mut kernel = lower_optimised(body, &optimised)?;
    chainrule_kernel::streamline(&mut kernel);
    Ok(kernel)
}

/// Returns the kernel of an array program before the passes over kernels; nothing if `watch` is at its end before.
fn lower(
    body: &ArrayBody,
    rewrite: Rewrite,
    checkpoints: Option<u32>,
    watch: &mut Watch<'_>,
) -> Result<Option<Kernel>> {
    let optimised = rewritten(body, rewrite, checkpoints, watch)?;
    if watch.is_at_end() { Ok(None) } else { lower_optimised(body, &optimised).map(Some) }
}

/// Returns the program after the passes over array programs.
fn rewritten(
    body: &ArrayBody,
    rewrite: Rewrite,
    checkpoints: Option<u32>,
    watch: &mut Watch<'_>,
) -> Result<chainrule_ir::Function> {
    let expanded = rewrite.expand_watched(&body.function, checkpoints, body.semantics, watch);
    let expanded = expanded.map_err(|d| Error::program(d, &body.sources))?;
    Ok(if watch.is_at_end() { expanded } else { rewrite.optimise(expanded, body.semantics, watch) })
}

fn lower_optimised(body: &ArrayBody, optimised: &chainrule_ir::Function) -> Result<Kernel> {
    let lower = || lower_function_with(optimised, body.semantics);
    timing::time(LOWER, lower).map_err(|d| Error::program(d, &body.sources))
}

fn bug(diagnostics: Diagnostics) -> Error {
    Error::program(diagnostics, &Arc::default())
}

fn of_kernel(ports: &[Port]) -> Vec<GraphPort<'_>> {
    let of_kernel = ports.iter().map(|Port { name, shape, nodes, .. }| GraphPort {
        name: name.clone(),
        shape: shape.into(),
        nodes: nodes.into(),
    });
    of_kernel.collect()
}
