//! Cranelift's code, if the library is built with it.

#[cfg(feature = "cranelift")]
mod present {
    use crate::CompileOptions;
    use chainrule_base::Diagnostic;
    use chainrule_cranelift::Options;
    use chainrule_runtime::Layout;
    use std::sync::Arc;

    pub(crate) use chainrule_cranelift::Program;

    pub(crate) fn compile(layout: Arc<Layout>, options: &CompileOptions) -> Result<Program, Diagnostic> {
        let options = Options { deny_executable: options.deny_executable, in_range: options.in_range() };
        Program::with_layout(layout, &options)
    }
}

#[cfg(not(feature = "cranelift"))]
mod present {
    use crate::CompileOptions;
    use chainrule_base::Diagnostic;
    use chainrule_runtime::Layout;
    use std::sync::Arc;

    pub(crate) use crate::engine::absent::Program;

    pub(crate) fn compile(_: Arc<Layout>, _: &CompileOptions) -> Result<Program, Diagnostic> {
        Err(Diagnostic::limitation("this build of Chainrule has no Cranelift")
            .with_help("build it with the feature `cranelift`, or let `Backend::Auto` choose"))
    }
}

pub(crate) use present::{Program, compile};
