//! Selection of passes and rules, and the passes over array programs.

use super::trace::{Program, Watch};
use crate::{Error, Result};
use chainrule_base::{Diagnostics, timing};
use chainrule_graph::Semantics;
use chainrule_ir::Function;
use chainrule_rewrite::engine::CHOOSE;
use chainrule_scalarise::regions;

/// Selection of passes and of rules of the optimiser of array programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rewrite {
    /// All passes.
    #[default]
    All,
    /// No optimisation of array programs.
    Off,
    /// All passes except the pass, rule or step of this name: one of [`crate::passes()`] that is optional, or of
    /// [`chainrule_rewrite::engine::names`]. Compilation fails for any other name.
    Without(&'static str),
}

/// Name of the pass that accumulates derivatives of scalar regions.
pub(crate) const REGIONS: &str = "regions";

/// Name of the pass that expands derivatives.
pub(crate) const DIFFERENTIATE: &str = "differentiate";

/// Name of the pass that unrolls scalar regions.
pub(super) const SCALARISE: &str = "scalarise";

impl Rewrite {
    /// Fails for [`Self::Without`] with an unknown name.
    pub(crate) fn check(self) -> Result<()> {
        let Self::Without(name) = self else { return Ok(()) };
        let rules = chainrule_rewrite::engine::names().into_iter().map(|(name, _)| name);
        let optional = super::passes().into_iter().filter(|pass| pass.optional).map(|pass| pass.name);
        let mut known: Vec<&str> = rules.chain(optional).collect();
        known.sort_unstable();
        known.dedup();
        if known.contains(&name) {
            return Ok(());
        }
        let help = match chainrule_ir::nearest(name, &known) {
            Some(best) => format!("did you mean `{best}`?"),
            None => format!("take one of {}", known.join(", ")),
        };
        Err(Error::request(format!("the optimiser has no pass, rule or step `{name}`"), help))
    }

    /// Returns the names of the disabled passes.
    pub(super) fn disabled(self) -> Vec<String> {
        match self {
            Self::All | Self::Off => Vec::new(),
            Self::Without(name) => vec![name.to_owned()],
        }
    }

    /// Returns `function` with its derivatives expanded, those in scalar regions by accumulation, which changes the
    /// order of operations.
    pub(crate) fn expand(
        self,
        function: &Function,
        checkpoints: Option<u32>,
        semantics: Semantics,
    ) -> std::result::Result<Function, Diagnostics> {
        self.expand_watched(function, checkpoints, semantics, &mut Watch::default())
    }

    /// As [`Self::expand`]. The result is verified: later passes would confuse an undefined variable with another one.
    pub(super) fn expand_watched(
        self,
        function: &Function,
        checkpoints: Option<u32>,
        semantics: Semantics,
        watch: &mut Watch<'_>,
    ) -> std::result::Result<Function, Diagnostics> {
        let accumulated = self.accumulate(function, semantics).0;
        if self.runs(REGIONS, semantics) {
            watch.see(REGIONS, Program::Array(&accumulated));
        }
        if watch.is_at_end() {
            return Ok(accumulated);
        }
        let expanded = timing::time(DIFFERENTIATE, || chainrule_autodiff::expand_with(&accumulated, checkpoints))?;
        match chainrule_ir::verify(&expanded) {
            Ok(()) => {
                watch.see(DIFFERENTIATE, Program::Array(&expanded));
                Ok(expanded)
            }
            Err(mut faults) => Err(faults.swap_remove(0).into()),
        }
    }

    /// Returns `function` with the derivatives in its scalar regions accumulated, and a report of each region.
    pub(crate) fn accumulate(self, function: &Function, semantics: Semantics) -> (Function, Vec<regions::Accumulated>) {
        match self.runs(REGIONS, semantics) {
            true => timing::time(REGIONS, || regions::accumulate(function.clone())),
            false => (function.clone(), Vec::new()),
        }
    }

    /// Returns whether a pass over scalar regions runs. Scalar graphs simplify products with masks under either
    /// semantics, so that strict programs have no regions.
    fn runs(self, pass: &str, semantics: Semantics) -> bool {
        let is_enabled = match self {
            Self::All => true,
            Self::Off => false,
            Self::Without(name) => name != pass,
        };
        semantics == Semantics::Algebraic && is_enabled
    }

    /// Returns the optimised program of `function`, whose derivatives are expanded.
    pub(crate) fn apply(self, function: Function, semantics: Semantics) -> Function {
        self.optimise(function, semantics, &mut Watch::default())
    }

    /// As [`Self::apply`]. If the passes are watched, they run one after the other. The result is not optimised further
    /// once `watch` is at its end.
    pub(super) fn optimise(self, function: Function, semantics: Semantics, watch: &mut Watch<'_>) -> Function {
        if self == Self::Off {
            return function;
        }
        let until = watch.until.map(str::to_owned);
        let options = chainrule_rewrite::Options { until, ..self.options(semantics) };
        // A program whose sizes choose between two programs is optimised as these two, which are not watched.
        let is_watched = watch.callback.is_some() && chainrule_rewrite::engine::branches(&function).is_none();
        let optimised = if is_watched {
            let mut watch_pass = |name: &str, f: &Function| watch.see(name, Program::Array(f));
            chainrule_rewrite::optimise_watched(&function, &options, &mut watch_pass).0
        } else {
            let (optimised, report) = chainrule_rewrite::optimise(&function, &options);
            if let Some(last) = report.passes.last().filter(|last| watch.until == Some(last.name)) {
                watch.see(last.name, Program::Array(&optimised));
            }
            optimised
        };
        if watch.is_at_end() {
            return optimised;
        }
        watch.see(CHOOSE, Program::Array(&optimised));
        if watch.is_at_end() {
            return optimised;
        }
        let scalarised = self.scalarised(optimised, semantics);
        if self.runs(SCALARISE, semantics) {
            watch.see(SCALARISE, Program::Array(&scalarised));
        }
        scalarised
    }

    fn scalarised(self, function: Function, semantics: Semantics) -> Function {
        match self.runs(SCALARISE, semantics) {
            true => timing::time(SCALARISE, || {
                let is_valid = cfg!(debug_assertions) && chainrule_ir::verify(&function).is_ok();
                let scalarised = regions::scalarise(function);
                debug_assert!(!is_valid || chainrule_ir::verify(&scalarised).is_ok(), "invalid after {SCALARISE}");
                scalarised
            }),
            false => function,
        }
    }

    /// Returns the options of the optimiser of array programs.
    pub(crate) fn options(self, semantics: Semantics) -> chainrule_rewrite::Options {
        chainrule_rewrite::Options { semantics, disabled: self.disabled(), ..Default::default() }
    }
}
