//! The pipeline up to a pass.

use super::Passes;
use super::trace::{Pass, Watch};
use crate::guard::guard;
use crate::{CompileOptions, Error, Function, Result};

impl Pass {
    /// Returns the pass of this name.
    ///
    /// # Errors
    /// Fails if there is none.
    pub fn by_name(name: &str) -> Result<Self> {
        let passes = super::passes();
        let names: Vec<&str> = passes.iter().map(|pass| pass.name).collect();
        let found = passes.iter().find(|pass| pass.name == name).cloned();
        found.ok_or_else(|| {
            let help = match chainrule_ir::nearest(name, &names) {
                Some(best) => format!("did you mean `{best}`?"),
                None => format!("the passes are {}", names.join(", ")),
            };
            Error::request(format!("there is no pass `{name}`"), help)
        })
    }
}

impl Function {
    /// Runs the passes of compilation until the first run of `pass` has ended, and returns the program that it leaves:
    /// F~, or the listing of a graph, an accumulation program or a kernel. Later passes do not run, so that the listing
    /// can be had if one of them fails; except that the choice between loops and straight-line code, and the derivation
    /// of straight-line code, come before.
    ///
    /// ```
    /// use chainrule::{CompileOptions, Module};
    /// let text = "let f = fun (v : [n]Double) -> vectorSum (build n (fun i -> v[i] * v[i]))";
    /// let f = Module::from_text("f.ft", text)?.function("f")?;
    /// let kernel = f.stop_after("lower", &CompileOptions::default())?;
    /// assert!(kernel.starts_with("kernel f\n"), "{kernel}");
    /// # Ok::<(), chainrule::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails if there is no such pass, or if it does not run on this function with these options; and with the errors
    /// of the passes before it.
    pub fn stop_after(&self, pass: &str, options: &CompileOptions) -> Result<String> {
        options.rewrite.check()?;
        let Pass { name, .. } = Pass::by_name(pass)?;
        guard(|| {
            let mut watch = Watch { until: Some(name), ..Watch::default() };
            Passes::from(options).watched(self, &mut watch)?;
            watch.listing.ok_or_else(|| {
                let title = format!("the pass `{name}` does not run on `{}` with these options", self.name());
                Error::request(title, "`chainrule passes` lists the passes that run")
            })
        })
    }
}
