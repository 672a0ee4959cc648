//! From a function to the kernel that runs or is written: the one list of passes.
//!
//! In: a function, and what its caller asks for ([`Passes`]). Out: a kernel. [`CompileOptions`], [`COptions`] and
//! [`RustOptions`] are all read here, so that equal options make equal kernels, and equal kernels compute equal bits, whatever runs
//! them.
//!
//! | pass | when | changes last digits |
//! | --- | --- | --- |
//! | derivatives in scalar regions accumulated | array programs, not strict | yes |
//! | derivatives expanded | array programs | |
//! | the optimiser of array programs | array programs; of rules that hold for real numbers none where strict | unless strict |
//! | scalar regions unrolled | array programs, not strict | yes |
//! | lowering; products fused with sums there | `fuse`, straight-line code | if fused |
//! | lowering; sums of arrays added in place, unless strict | array programs | unless strict |
//! | loops made plain | array programs | no |
//! | loops in parts | `parts`; those that only add, unless strict | sums in loops that only add |
//! | loops in lanes | unless `sequential`; those that only add, unless strict | sums in loops that only add |
//! | hoisting | always | no |
//! | products fused with sums | `fuse`, array programs | yes |

use crate::function::{ArrayBody, Body, Port};
use crate::{COptions, CompileOptions, Error, Function, Result, Rewrite, RustOptions};
use chainrule_base::Diagnostics;
use chainrule_graph::Semantics;
use chainrule_kernel::{
    GraphPort, Kernel, contract, hoist, lower_function_with, lower_graph, lower_graph_fused, parallelise, streamline,
    vectorise,
};
use std::sync::Arc;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passes {
    /// What the optimiser of array programs does.
    pub rewrite: Rewrite,
    /// How many checkpoints loops have in reverse mode, of derivatives that stand in the text of the program.
    pub checkpoints: Option<u32>,
    /// Whether products are fused with sums; where nothing is said, where the semantics allow it.
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
    /// What text is made with.
    fn written(fuse: bool, sequential: bool) -> Self {
        Self { rewrite: Rewrite::default(), checkpoints: None, fuse: Some(fuse), sequential, parts: false }
    }

    /// The kernel of `function`.
    pub(crate) fn kernel(&self, function: &Function) -> Result<Kernel> {
        let may_reorder = function.semantics() == Semantics::Algebraic;
        let fuse = self.fuse.unwrap_or(may_reorder);
        let mut kernel = match &function.body {
            Body::Scalar(body) => {
                let lower = if fuse { lower_graph_fused } else { lower_graph };
                let (inputs, outputs) = (of_kernel(&body.inputs), of_kernel(&body.outputs));
                lower(function.name().clone(), &body.graph, &inputs, &outputs).map_err(bug)?
            }
            Body::Array(body) => lower_array(body, self.rewrite, self.checkpoints)?,
        };
        if self.parts {
            parallelise(&mut kernel, may_reorder);
        }
        if !self.sequential {
            vectorise(&mut kernel, may_reorder);
        }
        hoist(&mut kernel);
        if fuse && function.keeps_loops() {
            contract(&mut kernel);
        }
        Ok(kernel)
    }
}

/// The kernel of an array program: loops, buffers and straight-line blocks.
pub(crate) fn lower_array(body: &ArrayBody, rewrite: Rewrite, checkpoints: Option<u32>) -> Result<Kernel> {
    let fail = |d: Diagnostics| Error::program(d, &body.sources);
    let expanded = rewrite.expand(&body.function, checkpoints, body.semantics).map_err(fail)?;
    let optimised = rewrite.apply(expanded, body.semantics);
    let mut kernel = lower_function_with(&optimised, body.semantics == Semantics::Algebraic).map_err(fail)?;
    streamline(&mut kernel);
    Ok(kernel)
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
