//! Stand-in for a backend that this build lacks: a type without values, so that the engine has the same variants
//! everywhere, and the compiler removes those that cannot occur.

use chainrule_runtime::{Backend, Elements, Layout, RunError, Sizes, Slice, SliceMut};
use std::marker::PhantomData;
use std::sync::Arc;

/// Program of a backend that is absent.
#[derive(Debug)]
pub(crate) enum Program {}

/// Workspace of a backend that is absent.
#[derive(Debug)]
pub(crate) enum Workspace {}

/// Bound program of a backend that is absent.
#[derive(Debug)]
pub(crate) struct Bound<'p>(Workspace, PhantomData<&'p Program>);

impl Backend for Program {
    type Workspace = Workspace;

    const BLOCK: usize = 1;

    fn layout(&self) -> &Arc<Layout> {
        match *self {}
    }

    fn workspace(&self, _: &Sizes, _: usize) -> Workspace {
        match *self {}
    }

    fn batch_workspace(&self, _: &Sizes) -> Workspace {
        match *self {}
    }

    fn is_own(&self, _: &Workspace) -> bool {
        match *self {}
    }

    fn is_large_enough(&self, _: &Workspace, _: &Sizes) -> bool {
        match *self {}
    }

    fn run(&self, _: &Sizes, _: &[Slice<'_>], _: &mut [SliceMut<'_>], _: &mut Workspace) -> Result<(), RunError> {
        match *self {}
    }
}

#[allow(dead_code, reason = "only native code is bound")]
impl Program {
    pub(crate) fn bound(&self, _: Sizes, _: Vec<Elements>, _: Workspace) -> Result<Bound<'_>, RunError> {
        match *self {}
    }
}

#[allow(dead_code, reason = "only native code runs on threads")]
impl Workspace {
    pub(crate) fn threads(&self) -> usize {
        match *self {}
    }
}

#[allow(dead_code, reason = "only native code is bound")]
impl Bound<'_> {
    pub(crate) fn run(&mut self) -> Result<(), RunError> {
        match self.0 {}
    }

    pub(crate) fn sizes(&self) -> &Sizes {
        match self.0 {}
    }

    pub(crate) fn input_mut(&mut self, _: usize) -> &mut [f64] {
        match self.0 {}
    }

    pub(crate) fn inputs(&self) -> &[Elements] {
        match self.0 {}
    }

    pub(crate) fn outputs(&self) -> &[Elements] {
        match self.0 {}
    }
}
