//! Native code, where the processor has a backend of its own.

#[cfg(all(target_arch = "x86_64", unix))]
mod present {
    use crate::{CompileOptions, Level};
    use chainrule_base::Diagnostic;
    use chainrule_native::Options;
    use chainrule_runtime::Layout;
    use std::sync::Arc;

    pub(crate) use chainrule_native::{Bound, Program};

    pub(crate) fn compile(layout: Arc<Layout>, options: &CompileOptions) -> Result<Program, Diagnostic> {
        let level = options.level.map(|level| match level {
            Level::Avx2 => chainrule_native::Level::Avx2,
            Level::Avx512 => chainrule_native::Level::Avx512,
        });
        let CompileOptions { perf_map, deny_executable, .. } = *options;
        let (in_range, writers) = (options.in_range(), options.threads.map(crate::batch::n_threads));
        let options = Options { level, perf_map, deny_executable, in_range, writers, ..Options::default() };
        Program::with_layout(layout, &options)
    }
}

#[cfg(not(all(target_arch = "x86_64", unix)))]
mod present {
    use crate::CompileOptions;
    use chainrule_base::Diagnostic;
    use chainrule_runtime::Layout;
    use std::sync::Arc;

    pub(crate) use crate::engine::absent::{Bound, Program};

    pub(crate) fn compile(_: Arc<Layout>, _: &CompileOptions) -> Result<Program, Diagnostic> {
        Err(Diagnostic::limitation("there is no native code for this processor yet")
            .with_help("the interpreter runs everywhere; emitted C and Rust run at full speed"))
    }
}

pub(crate) use present::{Bound, Program, compile};
