//! Values, and checks against the parameters of a function.
//!
//! [`bind_sizes`] checks a caller's data: it finds the size parameters from the shapes of the arguments, and reports
//! arguments that do not fit.

use crate::{Function, Size, Type, Var, VarId};
use chainrule_base::{Arena, Diagnostic, Id, count};
use rustc_hash::FxHashMap;

/// A value of a [`Type`] whose doubles are numbers `S`: `f64`, extended precision, ...
#[derive(Clone, PartialEq, Debug)]
pub enum Value<S> {
    /// Value of type `Double`.
    Real(S),
    /// Value of type `Int`.
    Int(i64),
    /// Value of type `Bool`.
    Bool(bool),
    /// Value of an array type.
    Array(Vec<Self>),
    /// Value of a tuple or record type.
    Tuple(Vec<Self>),
}

impl From<f64> for Value<f64> {
    fn from(x: f64) -> Self {
        Self::Real(x)
    }
}

impl<S> From<i64> for Value<S> {
    fn from(i: i64) -> Self {
        Self::Int(i)
    }
}

impl<S> From<bool> for Value<S> {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

/// Nested vectors are nested arrays.
impl<S, T: Into<Self>> From<Vec<T>> for Value<S> {
    fn from(elements: Vec<T>) -> Self {
        Self::Array(elements.into_iter().map(Into::into).collect())
    }
}

impl<S> Value<S> {
    /// Returns its doubles, first to last.
    #[must_use]
    pub fn reals(&self) -> Vec<&S> {
        let mut reals = Vec::new();
        self.for_each_real(&mut |x| reals.push(x));
        reals
    }

    fn for_each_real<'a>(&'a self, f: &mut impl FnMut(&'a S)) {
        match self {
            Self::Real(x) => f(x),
            Self::Int(_) | Self::Bool(_) => {}
            Self::Array(items) | Self::Tuple(items) => items.iter().for_each(|item| item.for_each_real(f)),
        }
    }

    /// Returns the value with each double replaced by `f` of it.
    pub fn map<T>(&self, f: &mut impl FnMut(&S) -> T) -> Value<T> {
        match self {
            Self::Real(x) => Value::Real(f(x)),
            Self::Int(i) => Value::Int(*i),
            Self::Bool(b) => Value::Bool(*b),
            Self::Array(items) => Value::Array(items.iter().map(|item| item.map(f)).collect()),
            Self::Tuple(items) => Value::Tuple(items.iter().map(|item| item.map(f)).collect()),
        }
    }

    /// Returns the value of type `ty` whose doubles are taken from `reals`, first to last; `Int`s are 0 and `Bool`s
    /// false. `None` if a size is negative or unknown.
    pub fn from_reals(ty: &Type, sizes: &Sizes, reals: &mut impl FnMut() -> S) -> Option<Self> {
        Some(match ty {
            Type::Double => Self::Real(reals()),
            Type::Int => Self::Int(0),
            Type::Bool => Self::Bool(false),
            Type::Array(size, element) => {
                let n = sizes.eval(size)?;
                if n < 0 {
                    return None;
                }
                Self::Array((0..n).map(|_| Self::from_reals(element, sizes, reals)).collect::<Option<_>>()?)
            }
            Type::Tuple(fields, _) => {
                Self::Tuple(fields.iter().map(|f| Self::from_reals(f, sizes, reals)).collect::<Option<_>>()?)
            }
        })
    }

    /// Returns its kind in a word, for messages.
    fn kind(&self) -> String {
        match self {
            Self::Real(_) => "a number".to_owned(),
            Self::Int(_) => "an integer".to_owned(),
            Self::Bool(_) => "a truth value".to_owned(),
            Self::Array(items) => format!("an array of {}", items.len()),
            Self::Tuple(items) => format!("a tuple of {}", items.len()),
        }
    }
}

impl<S: Clone> Value<S> {
    /// Returns the value of type [`Type::dual`] with this value and `tangent`, which has its shape (`Int` and `Bool` in
    /// `tangent` are ignored); `None` if it has another shape.
    #[must_use]
    pub fn zip_dual(&self, tangent: &Self) -> Option<Self> {
        let zip = |a: &[Self], b: &[Self]| -> Option<Vec<Self>> {
            (a.len() == b.len()).then_some(())?;
            a.iter().zip(b).map(|(a, b)| a.zip_dual(b)).collect()
        };
        Some(match (self, tangent) {
            (Self::Real(_), Self::Real(_)) => Self::Tuple(vec![self.clone(), tangent.clone()]),
            (Self::Int(_), Self::Int(_)) | (Self::Bool(_), Self::Bool(_)) => self.clone(),
            (Self::Array(a), Self::Array(b)) => Self::Array(zip(a, b)?),
            (Self::Tuple(a), Self::Tuple(b)) => Self::Tuple(zip(a, b)?),
            _ => return None,
        })
    }

    /// Returns value and tangent of a value whose type is the [`Type::dual`] of `ty`; both contain `Int` and `Bool`.
    /// `None` if it is not of that type.
    #[must_use]
    pub fn unzip_dual(&self, ty: &Type) -> Option<(Self, Self)> {
        let unzip = |pairs: Vec<(Self, Self)>| -> (Vec<Self>, Vec<Self>) { pairs.into_iter().unzip() };
        match (ty, self) {
            (Type::Double, Self::Tuple(pair)) => match pair.as_slice() {
                [primal @ Self::Real(_), tangent @ Self::Real(_)] => Some((primal.clone(), tangent.clone())),
                _ => None,
            },
            (Type::Int, Self::Int(_)) | (Type::Bool, Self::Bool(_)) => Some((self.clone(), self.clone())),
            (Type::Array(_, element), Self::Array(items)) => {
                let (a, b) = unzip(items.iter().map(|item| item.unzip_dual(element)).collect::<Option<_>>()?);
                Some((Self::Array(a), Self::Array(b)))
            }
            (Type::Tuple(fields, _), Self::Tuple(items)) if fields.len() == items.len() => {
                let pairs = items.iter().zip(fields).map(|(item, field)| item.unzip_dual(field));
                let (a, b) = unzip(pairs.collect::<Option<_>>()?);
                Some((Self::Tuple(a), Self::Tuple(b)))
            }
            _ => None,
        }
    }
}

/// Values of the size parameters and `Int` parameters of a function in one call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sizes {
    map: FxHashMap<VarId, i64>,
}

impl Sizes {
    /// Returns the value of `var`.
    #[must_use]
    pub fn get(&self, var: VarId) -> Option<i64> {
        self.map.get(&var).copied()
    }

    /// Sets the value of `var`.
    pub fn insert(&mut self, var: VarId, value: i64) {
        self.map.insert(var, value);
    }

    /// Returns the value of `size`; `None` if it overflows or a variable is unknown.
    #[must_use]
    pub fn eval(&self, size: &Size) -> Option<i64> {
        if size.vars().iter().any(|v| !self.map.contains_key(v)) {
            return None;
        }
        size.eval(|v| self.map[&v])
    }
}

// One array dimension of an argument.
struct Dimension {
    param: usize,
    // From 1, outermost first; arrays in different fields continue the count.
    number: usize,
    // `None` if the array is inside an array without elements.
    extent: Option<i64>,
    size: Size,
}

/// Returns the size parameters of `function` when it is called with `args`, after checking that the arguments have the
/// types of the parameters, and the requirements in [`Function::requires`]. A size that is only determined by arrays
/// inside empty arrays is 0.
///
/// # Errors
/// The first fault of the arguments.
pub fn bind_sizes<S>(function: &Function, args: &[Value<S>]) -> Result<Sizes, Diagnostic> {
    if args.len() != function.params.len() {
        let names: Vec<String> = (0..function.params.len()).map(|i| param_name(function, i)).collect();
        return Err(Diagnostic::error(format!(
            "`{}` takes {} and is given {}",
            function.name,
            count(names.len(), "argument"),
            args.len()
        ))
        .with_reason(format!("its parameters are: {}", names.join(", "))));
    }
    let mut sizes = Sizes::default();
    let mut dimensions = Vec::new();
    for (i, (param, arg)) in function.params.iter().zip(args).enumerate() {
        let ty = function.ty(*param);
        if let (Type::Int, Value::Int(value)) = (ty, arg) {
            sizes.insert(*param, *value);
        }
        let first = dimensions.len();
        for (k, size) in ty.sizes().into_iter().enumerate() {
            dimensions.push(Dimension { param: i, number: k + 1, extent: None, size });
        }
        let path = param_name(function, i);
        measure(arg, ty, &function.vars, &path, &mut dimensions[first..])
            .map_err(|diagnostic| at_param(diagnostic, function, i))?;
    }
    let mut bound_by: FxHashMap<VarId, usize> = FxHashMap::default();
    for (k, dimension) in dimensions.iter().enumerate() {
        if let (Some(var), Some(extent)) = (dimension.size.as_var(), dimension.extent)
            && function.sizes.contains(&var)
            && sizes.get(var).is_none()
        {
            sizes.insert(var, extent);
            bound_by.insert(var, k);
        }
    }
    for var in &function.sizes {
        if sizes.get(*var).is_none() {
            sizes.insert(*var, 0);
        }
    }
    for dimension in &dimensions {
        let wanted = sizes.eval(&dimension.size).ok_or_else(|| too_large(function, dimension))?;
        if dimension.extent.is_some_and(|extent| extent != wanted) {
            return Err(misfit(function, &dimensions, dimension, wanted, &sizes, &bound_by));
        }
    }
    for requirement in &function.requires {
        let value = sizes.eval(&requirement.size);
        let holds = value.is_some_and(|v| if requirement.exactly_zero { v == 0 } else { v >= 0 });
        if !holds {
            let relation = if requirement.exactly_zero { "= 0" } else { ">= 0" };
            let facts = facts(function, &requirement.size, &sizes, &bound_by, &dimensions);
            let mut diagnostic = Diagnostic::error(requirement.message.clone())
                .with_reason(format!("{} {relation} must hold, and {facts}", named(&requirement.size, &function.vars)));
            if let Some(span) = requirement.span {
                diagnostic = diagnostic.with_label(span, "this asks for it");
            }
            return Err(diagnostic);
        }
    }
    Ok(sizes)
}

// Checks the kinds in `value`, and finds the extent of each array dimension of `ty`; those of one dimension are equal.
// `dimensions` are those of `ty`, outermost first, fields from left to right.
fn measure<S>(
    value: &Value<S>,
    ty: &Type,
    vars: &Arena<VarId, Var>,
    path: &str,
    dimensions: &mut [Dimension],
) -> Result<(), Diagnostic> {
    match (ty, value) {
        (Type::Double, Value::Real(_)) | (Type::Int, Value::Int(_)) | (Type::Bool, Value::Bool(_)) => Ok(()),
        (Type::Array(_, element), Value::Array(items)) => {
            let Some((outer, inner)) = dimensions.split_first_mut() else {
                return Err(Diagnostic::bug("the dimensions of an argument do not fit its type"));
            };
            let extent = i64::try_from(items.len()).unwrap_or(i64::MAX);
            match outer.extent {
                Some(other) if other != extent => {
                    return Err(Diagnostic::error(format!(
                        "`{path}` has {} where the arrays beside it have {other}",
                        count(items.len(), "element")
                    ))
                    .with_reason("arrays inside an array must all have the same length")
                    .with_help("make the rows equally long, or pass separate arrays"));
                }
                _ => outer.extent = Some(extent),
            }
            items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| measure(item, element, vars, &format!("{path}[{i}]"), inner))
        }
        (Type::Tuple(fields, names), Value::Tuple(items)) if fields.len() == items.len() => {
            let mut rest = dimensions;
            for (i, (field, item)) in fields.iter().zip(items).enumerate() {
                let (own, others) = rest.split_at_mut(field.sizes().len());
                let path = match names {
                    Some(names) => format!("{path}.{}", names[i]),
                    None => format!("{path}.{i}"),
                };
                measure(item, field, vars, &path, own)?;
                rest = others;
            }
            Ok(())
        }
        _ => Err(Diagnostic::error(format!("`{path}` is {} where {} is needed", value.kind(), named_type(ty, vars)))),
    }
}

fn misfit(
    function: &Function,
    dimensions: &[Dimension],
    dimension: &Dimension,
    wanted: i64,
    sizes: &Sizes,
    bound_by: &FxHashMap<VarId, usize>,
) -> Diagnostic {
    let extent = dimension.extent.unwrap_or(0);
    let ty = function.ty(function.params[dimension.param]);
    let place = if ty.sizes().len() == 1 { String::new() } else { format!(" in dimension {}", dimension.number) };
    let facts = facts(function, &dimension.size, sizes, bound_by, dimensions);
    let diagnostic = Diagnostic::error(format!(
        "argument `{}` has {}{place} where {wanted} {} needed",
        param_name(function, dimension.param),
        count(usize::try_from(extent).unwrap_or(0), "element"),
        if wanted == 1 { "is" } else { "are" },
    ));
    let its_type = format!("its type is {}", named_type(ty, &function.vars));
    let diagnostic =
        diagnostic.with_reason(if facts.is_empty() { its_type } else { format!("{its_type}, and {facts}") });
    at_param(diagnostic, function, dimension.param)
}

// Returns the values of the variables of `size`, with their origins.
fn facts(
    function: &Function,
    size: &Size,
    sizes: &Sizes,
    bound_by: &FxHashMap<VarId, usize>,
    dimensions: &[Dimension],
) -> String {
    let facts = size.vars().into_iter().map(|var| {
        let name = var_name(&function.vars, var);
        let value = sizes.get(var).unwrap_or(0);
        match bound_by.get(&var).and_then(|k| dimensions.get(*k)) {
            Some(dimension) => format!(
                "{name} is {value} from dimension {} of argument `{}`",
                dimension.number,
                param_name(function, dimension.param)
            ),
            None => format!("{name} is {value}"),
        }
    });
    facts.collect::<Vec<_>>().join(", ")
}

fn too_large(function: &Function, dimension: &Dimension) -> Diagnostic {
    Diagnostic::error(format!("argument `{}` is too large", param_name(function, dimension.param)))
        .with_reason(format!("the size {} overflows", named(&dimension.size, &function.vars)))
}

fn at_param(diagnostic: Diagnostic, function: &Function, idx: usize) -> Diagnostic {
    match function.vars[function.params[idx]].span {
        Some(span) => diagnostic.with_label(span, "the parameter"),
        None => diagnostic,
    }
}

fn param_name(function: &Function, idx: usize) -> String {
    function.vars[function.params[idx]].name.as_ref().map_or_else(|| format!("#{idx}"), ToString::to_string)
}

fn var_name(vars: &Arena<VarId, Var>, var: VarId) -> String {
    vars[var].name.as_ref().map_or_else(|| var.to_string(), ToString::to_string)
}

/// Returns `size` with the names of the program: `2*n + 1`.
#[must_use]
pub fn named(size: &Size, vars: &Arena<VarId, Var>) -> String {
    // Names may repeat in a function, so variables are compared by id.
    #[derive(Clone, Copy)]
    struct Named<'a>(VarId, &'a Arena<VarId, Var>);
    impl PartialEq for Named<'_> {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    impl Eq for Named<'_> {}
    impl PartialOrd for Named<'_> {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }
    impl Ord for Named<'_> {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            self.0.cmp(&other.0)
        }
    }
    impl std::fmt::Display for Named<'_> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            if self.0.index() < self.1.len() { f.write_str(&var_name(self.1, self.0)) } else { write!(f, "{}", self.0) }
        }
    }
    size.substitute(|v| chainrule_base::Poly::var(Named(v, vars))).to_string()
}

/// Returns `ty` with the names of the program: `[n][m + 1]Double`.
#[must_use]
pub fn named_type(ty: &Type, vars: &Arena<VarId, Var>) -> String {
    crate::typing::describe_with(ty, &mut |size| named(size, vars))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Requirement};

    fn function() -> Function {
        // fun (a : [n][m]Double) (x : [m]Double) (k : Int) (y : [n + k]Double) -> 0.0
        let mut b = Builder::new("f");
        let (n, m) = (b.size_param("n"), b.size_param("m"));
        let (n, m) = (b.size_of(n), b.size_of(m));
        b.param("a", Type::array(n.clone(), Type::array(m.clone(), Type::Double)));
        b.param("x", Type::array(m.clone(), Type::Double));
        let k = b.param("k", Type::Int);
        let k = b.size_of(k);
        b.param("y", Type::array(n.add(&k), Type::Double));
        b.require(Requirement {
            size: m.sub(&Size::constant(1)),
            exactly_zero: false,
            message: "`a` has no column".to_owned(),
            span: None,
        });
        let zero = b.real(0.0);
        b.finish(zero)
    }

    fn bind(a: Vec<Vec<f64>>, x: Vec<f64>, k: i64, y: Vec<f64>) -> Result<Vec<i64>, String> {
        let f = function();
        let sizes = bind_sizes::<f64>(&f, &[a.into(), x.into(), k.into(), y.into()]).map_err(|d| d.to_string())?;
        Ok(f.sizes.iter().map(|v| sizes.get(*v).unwrap()).collect())
    }

    #[test]
    fn shapes_bind_sizes() {
        assert_eq!(bind(vec![vec![1.0, 2.0]; 3], vec![0.0; 2], -1, vec![0.0; 2]), Ok(vec![3, 2]));
        // No row determines the length of rows; `x` does.
        assert_eq!(bind(vec![], vec![0.0; 2], 1, vec![0.0]), Ok(vec![0, 2]));
    }

    #[test]
    fn mismatches_are_reported_with_names_and_numbers() {
        let error = |a, x, k, y| bind(a, x, k, y).unwrap_err();
        assert_eq!(
            error(vec![vec![1.0, 2.0]; 3], vec![0.0; 3], 0, vec![0.0; 3]),
            "error: argument `x` has 3 elements where 2 are needed: its type is [m]Double, and m is 2 from \
             dimension 2 of argument `a`"
        );
        assert_eq!(
            error(vec![vec![1.0, 2.0]; 3], vec![0.0; 2], 1, vec![0.0; 3]),
            "error: argument `y` has 3 elements where 4 are needed: its type is [n + k]Double, and n is 3 from \
             dimension 1 of argument `a`, k is 1"
        );
        assert_eq!(
            error(vec![vec![1.0, 2.0], vec![1.0]], vec![0.0; 2], 0, vec![0.0; 2]),
            "error: `a[1]` has 1 element where the arrays beside it have 2: arrays inside an array must all have the \
             same length (help: make the rows equally long, or pass separate arrays)"
        );
        assert_eq!(
            error(vec![vec![]; 2], vec![], 0, vec![0.0; 2]),
            "error: `a` has no column: m - 1 >= 0 must hold, and m is 0 from dimension 2 of argument `a`"
        );
        let f = function();
        let message = |args: &[Value<f64>]| bind_sizes(&f, args).unwrap_err().to_string();
        assert_eq!(message(&[]), "error: `f` takes 4 arguments and is given 0: its parameters are: a, x, k, y");
        assert_eq!(
            message(&[1.0.into(), 1.0.into(), 1.0.into(), 1.0.into()]),
            "error: `a` is a number where [n][m]Double is needed"
        );
        assert_eq!(
            message(&[vec![vec![1.0]].into(), vec![Value::from(true)].into(), 1.into(), vec![1.0].into()]),
            "error: `x[0]` is a truth value where Double is needed"
        );
    }

    #[test]
    fn duals_zip_and_unzip() {
        let ty = Type::tuple(vec![Type::array(Size::constant(2), Type::Double), Type::Int]);
        let primal = Value::Tuple(vec![vec![1.0, 2.0].into(), 7.into()]);
        let tangent = Value::Tuple(vec![vec![3.0, 4.0].into(), 0.into()]);
        let dual = primal.zip_dual(&tangent).unwrap();
        let pair = |a: f64, b: f64| Value::Tuple(vec![a.into(), b.into()]);
        assert_eq!(dual, Value::Tuple(vec![Value::Array(vec![pair(1.0, 3.0), pair(2.0, 4.0)]), 7.into()]));
        let (p, t) = dual.unzip_dual(&ty).unwrap();
        assert_eq!((&p, t.reals()), (&primal, tangent.reals()));
        assert_eq!(primal.zip_dual(&1.into()), None);
        assert_eq!(primal.unzip_dual(&ty), None);
    }
}
