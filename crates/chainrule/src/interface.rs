//! Interface of a function: names and types as in its program, and their arrays in memory.
//!
//! Fixed when the function is built, and shared by its compiled forms.

use crate::function::{ArrayBody, Port, ScalarBody};
use chainrule_base::Name;
use chainrule_ir::{Size, Type, VarId};
use chainrule_scalarise::leaves::{Leaf, leaves};

/// Arguments and results as in the program.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Names and types of the arguments.
    pub params: Vec<(Name, Type)>,
    /// Names and types of the results; a single `result` for an F~ function.
    pub results: Vec<(Name, Type)>,
}

/// Name and extents of an argument or a result. An extent that is not fixed is `None`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Name; for a component of a tuple or record its path, such as `camera.focal`.
    pub name: Name,
    /// Extents, outermost first; none for a scalar.
    pub extents: Vec<Option<usize>>,
}

/// Arguments and results.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) signature: Signature,
    /// One per leaf of the arguments.
    pub(crate) inputs: Vec<Shape>,
    /// One per leaf of the results.
    pub(crate) outputs: Vec<Shape>,
}

impl From<Signature> for Interface {
    fn from(signature: Signature) -> Self {
        let shapes = |ports: &[(Name, Type)]| ports.iter().flat_map(|(name, ty)| shapes(ty, name)).collect();
        Self { inputs: shapes(&signature.params), outputs: shapes(&signature.results), signature }
    }
}

impl From<&ScalarBody> for Interface {
    fn from(body: &ScalarBody) -> Self {
        match &body.program {
            Some(signature) => signature.clone().into(),
            None => Signature { params: entries(&body.inputs), results: entries(&body.outputs) }.into(),
        }
    }
}

/// Returns each port as an argument or a result.
pub(crate) fn entries(ports: &[Port]) -> Vec<(Name, Type)> {
    ports.iter().map(|port| (port.name.clone(), array_of(&port.shape))).collect()
}

/// Returns the type of an array of doubles of these extents; a double for none.
pub(crate) fn array_of(shape: &[usize]) -> Type {
    let size = |n: &usize| Size::constant(i64::try_from(*n).unwrap_or(i64::MAX));
    shape.iter().rev().fold(Type::Double, |ty, n| Type::array(size(n), ty))
}

impl From<&ArrayBody> for Interface {
    fn from(body: &ArrayBody) -> Self {
        let f = &body.function;
        let param = |p: &VarId| (f.vars[*p].name.clone().unwrap_or_else(|| Name::new("arg")), f.ty(*p).clone());
        let results = vec![(Name::new("result"), f.result_type().clone())];
        Signature { params: f.params.iter().map(param).collect(), results }.into()
    }
}

/// Returns the name and the extents of each leaf of a value; an extent that is not fixed is `None`.
fn shapes(ty: &Type, name: &str) -> Vec<Shape> {
    let fixed = |size: &Size| size.as_constant().and_then(|n| usize::try_from(n).ok());
    let describe = |leaf: Leaf| Shape { name: leaf.name, extents: leaf.extents.iter().map(fixed).collect() };
    leaves(ty, name).into_iter().map(describe).collect()
}
