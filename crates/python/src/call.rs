//! `Caller`: the base class of functions and derivatives, with a fast path for repeated calls.
//!
//! In: the arguments of a Python call. Out: its result. A call that matches a [`Plan`] (kinds, ranks, extents that are
//! 1, known arguments, captured globals) is evaluated here: no Python code runs, and arrays are read in place. Python
//! code made the plan during an earlier call. Every other call goes to the method `_general` of the Python class, which
//! accepts all kinds of arguments and reports all mistakes.
//!
//! Invariant: a plan gives the result that `_general` would give. A plan reports no mistakes; `_general` does, after a
//! plan has failed, too.

use crate::errors::{Stage, detached, now};
use crate::function::Compiled;
use crate::numpy::{Array, Class, Numpy, ints, reals};
use crate::pattern::{Ints, Leaf, Pattern};
use chainrule::{Slice, SliceMut};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyString, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Maximum number of plans of a function: combinations of argument kinds that alternate.
const MAX_PLANS: usize = 4;

/// Maximum size of a workspace that is kept between calls, in bytes; larger ones are freed for other uses of memory.
/// Memory that is given back costs a page fault for each of its pages at the next call, which takes as long as the work
/// on them.
pub(crate) const MAX_KEPT_BYTES: usize = 256 << 20;

/// Duration of an evaluation above which later ones release the interpreter's lock. Releasing it costs a tenth of a
/// microsecond.
const SHORT: Duration = Duration::from_micros(20);

/// Global or cell that was read while a function was captured.
enum Dependency {
    /// `container[key]` of a dict.
    Item(Py<PyDict>, Py<PyAny>, Seen),
    /// The content of a cell.
    Attribute(Py<PyAny>, Py<PyString>, Seen),
}

/// Captured object; for a list also its elements.
struct Seen(Py<PyAny>, Option<Py<PyAny>>);

impl Seen {
    fn is(&self, now: &Bound<'_, PyAny>) -> bool {
        now.is(&self.0) && self.1.as_ref().is_none_or(|copy| now.eq(copy).unwrap_or(false))
    }
}

impl Dependency {
    /// From `(container, key, value, copy)`; the container is a dict or an object with the attribute `key`.
    fn new(parts: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let copy = parts.get_item(3)?;
        let seen = Seen(parts.get_item(2)?.unbind(), (!copy.is_none()).then(|| copy.unbind()));
        let (container, key) = (parts.get_item(0)?, parts.get_item(1)?);
        Ok(match container.cast::<PyDict>() {
            Ok(dict) => Self::Item(dict.clone().unbind(), key.unbind(), seen),
            Err(_) => Self::Attribute(container.clone().unbind(), key.cast_into::<PyString>()?.unbind(), seen),
        })
    }

    #[inline]
    fn holds(&self, py: Python<'_>) -> bool {
        match self {
            Self::Item(dict, key, seen) => {
                dict.bind(py).get_item(key).is_ok_and(|now| now.is_some_and(|now| seen.is(&now)))
            }
            Self::Attribute(object, name, seen) => object.bind(py).getattr(name).is_ok_and(|now| seen.is(&now)),
        }
    }

    fn visit(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        let seen = match self {
            Self::Item(dict, key, seen) => {
                visit.call(dict)?;
                visit.call(key)?;
                seen
            }
            Self::Attribute(object, _, seen) => {
                visit.call(object)?;
                seen
            }
        };
        visit.call(&seen.0)?;
        visit.call(&seen.1)
    }
}

/// Structure of results.
enum Template {
    Leaf(usize),
    Nothing,
    Tuple(Vec<Self>),
    List(Vec<Self>),
}

impl Template {
    fn new(value: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let all =
            |parts: Vec<Bound<'_, PyAny>>| -> PyResult<Option<Vec<Self>>> { parts.iter().map(Self::new).collect() };
        Ok(if value.is_none() {
            Some(Self::Nothing)
        } else if let Ok(tuple) = value.cast_exact::<PyTuple>() {
            all(tuple.iter().collect())?.map(Self::Tuple)
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            all(list.iter().collect())?.map(Self::List)
        } else {
            value.extract().ok().map(Self::Leaf)
        })
    }

    fn fill<'py>(&self, py: Python<'py>, leaves: &[Bound<'py, PyAny>]) -> PyResult<Bound<'py, PyAny>> {
        let all = |parts: &[Self]| parts.iter().map(|part| part.fill(py, leaves)).collect::<PyResult<Vec<_>>>();
        Ok(match self {
            Self::Leaf(k) => leaves.get(*k).cloned().unwrap_or_else(|| py.None().into_bound(py)),
            Self::Nothing => py.None().into_bound(py),
            Self::Tuple(parts) => PyTuple::new(py, all(parts)?)?.into_any(),
            Self::List(parts) => PyList::new(py, all(parts)?)?.into_any(),
        })
    }
}

/// A result: its class, and whether it is a number.
#[derive(Clone, Copy)]
struct Output {
    class: Class,
    is_number: bool,
}

/// Evaluation of calls that are like an earlier one.
struct Plan {
    /// Patterns of the arguments, then of the directions.
    arguments: Vec<Pattern>,
    n_before_constants: usize,
    constants: Vec<(Py<PyAny>, Pattern)>,
    dependencies: Vec<Dependency>,
    compiled: Arc<chainrule::Compiled>,
    outputs: Vec<Output>,
    /// Leaves of arguments that are written to: the last outputs are copied there.
    written: Vec<usize>,
    template: Template,
    /// Called with the arguments whenever their extents change; raises if they do not match their annotations.
    check: Option<Py<PyAny>>,
    /// Pairs of extents and integers, by position in [`State::made_for`], and whether they are equal.
    compared: Vec<(usize, usize, bool)>,
    /// [`State::made_for`] of all calls, where the code is for known sizes.
    made_for: Option<Vec<i64>>,
    state: Mutex<State>,
}

/// Memory of a plan, for one evaluation at a time.
#[derive(Default)]
struct State {
    workspace: Option<chainrule::Workspace>,
    /// Extents of all arrays, and all integers that are numbers, for which the workspace was made.
    made_for: Vec<i64>,
    /// Shape of each result that is an array.
    shapes: Vec<Option<Py<PyTuple>>>,
    /// Outputs that are copied to arguments.
    copies: Vec<Vec<u64>>,
    /// Arguments of truth values, as integers.
    truths: Vec<Vec<i64>>,
    /// Whether an evaluation took longer than [`SHORT`].
    is_long: bool,
}

/// The base class of functions and derivatives.
#[pyclass(subclass, frozen, module = "chainrule._core")]
pub(crate) struct Caller {
    interface: Mutex<Option<Arc<Interface>>>,
    plans: Mutex<Vec<Arc<Plan>>>,
}

/// Names and defaults of arguments.
struct Interface {
    names: Vec<Py<PyString>>,
    defaults: Vec<Option<Py<PyAny>>>,
    /// Number of arguments without names: directions or weights.
    n_extra: usize,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keys of arguments, with whether ints are taken for doubles, [`Plan::compared`] and [`Plan::made_for`].
type Arguments<'py> = (Vec<(Bound<'py, PyTuple>, bool)>, Vec<(usize, usize, bool)>, Option<Vec<i64>>);

/// Structure of results, and [`Plan::written`].
type Results<'py> = (Bound<'py, PyAny>, Vec<usize>);

#[pymethods]
impl Caller {
    #[new]
    #[pyo3(signature = (*_args, **_kwargs))]
    fn new(_args: &Bound<'_, PyTuple>, _kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        Self { interface: Mutex::default(), plans: Mutex::default() }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match slf.get().fast(args, kwargs) {
            Ok(Some(result)) => Ok(result),
            // A failure is reported there, or other code is right for these arguments.
            Ok(None) | Err(_) => slf.call_method1("_general", (args, kwargs)),
        }
    }

    /// Names and defaults (a list of tuples of none or one) of the arguments that may be given by position or name, and
    /// the number of arguments that follow them.
    fn _interface(&self, names: Vec<Py<PyString>>, defaults: Vec<Vec<Py<PyAny>>>, n_extra: usize) {
        let defaults = defaults.into_iter().map(|mut one| one.pop()).collect();
        *locked(&self.interface) = Some(Arc::new(Interface { names, defaults, n_extra }));
    }

    /// Adds a plan; `dependencies` as [`Dependency::new`] takes them; `check` is called with the arguments if their
    /// extents change.
    #[pyo3(signature = (arguments, constants, dependencies, compiled, results, check))]
    #[allow(clippy::too_many_arguments)]
    fn _plan(
        &self,
        py: Python<'_>,
        arguments: Arguments<'_>,
        constants: Vec<(Py<PyAny>, Bound<'_, PyTuple>)>,
        dependencies: Vec<Bound<'_, PyTuple>>,
        compiled: &Compiled,
        results: Results<'_>,
        check: Option<Py<PyAny>>,
    ) -> PyResult<()> {
        let ((arguments, compared, made_for), (template, written)) = (arguments, results);
        let compiled_now = compiled.shared();
        let is_same = |plan: &Arc<Plan>| Arc::ptr_eq(&plan.compiled, &compiled_now);
        let known = locked(&self.plans).iter().find(|plan| is_same(plan)).cloned();
        if known.is_some_and(|plan| plan.dependencies.iter().all(|dependency| dependency.holds(py))) {
            return Ok(());
        }
        let Some(interface) = locked(&self.interface).clone() else { return Ok(()) };
        let n_before_constants = interface.names.len();
        let patterns: PyResult<Option<Vec<Pattern>>> = arguments
            .iter()
            .map(|(key, takes_ints)| Pattern::new(key, if *takes_ints { Ints::Taken } else { Ints::Refused }))
            .collect();
        let constant = |(value, key): (Py<PyAny>, Bound<'_, PyTuple>)| -> PyResult<Option<(Py<PyAny>, Pattern)>> {
            Ok(Pattern::new(&key, Ints::Refused)?.map(|pattern| (value, pattern)))
        };
        let constants: Option<Vec<_>> = constants.into_iter().map(constant).collect::<PyResult<_>>()?;
        let (Some(arguments), Some(constants), Some(template)) = (patterns?, constants, Template::new(&template)?)
        else {
            return Ok(());
        };
        let dependencies = dependencies.iter().map(Dependency::new).collect::<PyResult<Vec<_>>>()?;
        let outputs = compiled.outputs().into_iter().map(|(_, kind, rank)| Output {
            class: match kind {
                "f" => Class::Real,
                "i" => Class::Int,
                _ => Class::Bool,
            },
            is_number: rank == 0,
        });
        let plan = Plan {
            arguments,
            n_before_constants,
            constants,
            dependencies,
            outputs: outputs.collect(),
            compiled: Arc::clone(&compiled_now),
            written,
            template,
            check,
            compared,
            made_for,
            state: Mutex::default(),
        };
        let mut plans = locked(&self.plans);
        let mut removed: Vec<Arc<Plan>> = plans.extract_if(.., |plan| is_same(plan)).collect();
        let n_kept = plans.len().min(MAX_PLANS - 1);
        removed.extend(plans.split_off(n_kept));
        plans.insert(0, Arc::new(plan));
        drop(plans);
        // Dropping objects may run code that calls this function.
        drop(removed);
        Ok(())
    }

    /// Forgets all plans.
    fn _forget(&self) {
        let forgotten = std::mem::take(&mut *locked(&self.plans));
        drop(forgotten);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        if let Ok(Some(interface)) = self.interface.try_lock().as_deref() {
            interface.defaults.iter().try_for_each(|default| visit.call(default))?;
        }
        let Ok(plans) = self.plans.try_lock() else { return Ok(()) };
        // A running plan has another owner.
        for plan in plans.iter().filter(|plan| Arc::strong_count(plan) == 1) {
            plan.arguments.iter().try_for_each(|pattern| pattern.visit(&visit))?;
            plan.constants.iter().try_for_each(|(value, _)| visit.call(value))?;
            plan.dependencies.iter().try_for_each(|dependency| dependency.visit(&visit))?;
            visit.call(&plan.check)?;
        }
        Ok(())
    }

    fn __clear__(&self) {
        self._forget();
        *locked(&self.interface) = None;
    }
}

impl Caller {
    /// Returns the result by a plan, if one matches.
    #[inline]
    fn fast<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = args.py();
        let plans = locked(&self.plans);
        if plans.is_empty() {
            return Ok(None);
        }
        let mut plan = plans[0].clone();
        let n_plans = plans.len();
        drop(plans);
        let Some(interface) = locked(&self.interface).clone() else { return Ok(None) };
        let numpy = Numpy::get(py)?;
        let Some((values, out)) = bind(&interface, args, kwargs)? else { return Ok(None) };
        for k in 0..n_plans {
            if k > 0 {
                match locked(&self.plans).get(k) {
                    Some(next) => plan = next.clone(),
                    None => return Ok(None),
                }
            }
            let mut leaves = Vec::with_capacity(values.len() + plan.constants.len());
            if plan.leaves(numpy, py, &values, &mut leaves).is_none() {
                continue;
            }
            if k > 0 {
                let mut plans = locked(&self.plans);
                if let Some(at) = plans.iter().position(|other| Arc::ptr_eq(other, &plan)) {
                    plans[..=at].rotate_right(1);
                }
            }
            if let Some(result) = plan.run(py, numpy, &values, &leaves, out.as_ref())? {
                return Ok(Some(result));
            }
        }
        Ok(None)
    }
}

type Values<'py> = (Vec<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// Returns the values of the arguments in order, and `out`.
#[inline]
fn bind<'py>(
    interface: &Interface,
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
) -> PyResult<Option<Values<'py>>> {
    let py = args.py();
    let n = interface.names.len();
    let given = args.len();
    let mut values: Vec<Bound<'py, PyAny>> = args.iter().collect();
    let mut out = None;
    if kwargs.is_none() && given == n + interface.n_extra {
        return Ok(Some((values, out)));
    }
    if interface.n_extra > 0 && given != n + interface.n_extra || given > n + interface.n_extra {
        return Ok(None);
    }
    let mut named: Vec<Option<Bound<'py, PyAny>>> = vec![None; n.saturating_sub(given)];
    for (key, value) in kwargs.into_iter().flatten() {
        let position = interface
            .names
            .iter()
            .position(|name| key.is(name))
            .or_else(|| interface.names.iter().position(|name| key.eq(name).unwrap_or(false)));
        match position {
            Some(k) if k >= given && named[k - given].is_none() => named[k - given] = Some(value),
            // An argument called `out` is also passed so.
            None if key.eq("out").unwrap_or(false) => out = (!value.is_none()).then_some(value),
            _ => return Ok(None),
        }
    }
    for (k, value) in named.into_iter().enumerate() {
        let default = || interface.defaults.get(given + k)?.as_ref().map(|default| default.bind(py).clone());
        match value.or_else(default) {
            Some(value) => values.push(value),
            None => return Ok(None),
        }
    }
    Ok(Some((values, out)))
}

impl Plan {
    /// Adds the leaves of the arguments if all dependencies are unchanged.
    #[inline]
    fn leaves<'a>(
        &'a self,
        numpy: &Numpy,
        py: Python<'a>,
        values: &'a [Bound<'_, PyAny>],
        leaves: &mut Vec<Leaf<'a>>,
    ) -> Option<()> {
        if values.len() != self.arguments.len() || !self.dependencies.iter().all(|dependency| dependency.holds(py)) {
            return None;
        }
        let mut pairs = self.arguments.iter().zip(values);
        for (pattern, value) in pairs.by_ref().take(self.n_before_constants) {
            pattern.take(numpy, value.as_borrowed(), leaves)?;
        }
        for (constant, pattern) in &self.constants {
            pattern.take(numpy, constant.bind_borrowed(py), leaves)?;
        }
        for (pattern, value) in pairs {
            pattern.take(numpy, value.as_borrowed(), leaves)?;
        }
        Some(())
    }

    /// Evaluates; `None` if the plan is in use, or `out` does not match.
    #[inline]
    fn run<'py>(
        &self,
        py: Python<'py>,
        numpy: &Numpy,
        values: &[Bound<'py, PyAny>],
        leaves: &[Leaf<'_>],
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(None),
        };
        let state = &mut *state;
        if !self.written.is_empty() && (out.is_some() || !self.may_write(leaves)) {
            return Ok(None);
        }
        if self.made_for.as_ref().is_some_and(|known| !are_sizes(known, leaves)) {
            return Ok(None);
        }
        // Numbers are stored here; arrays are used in place.
        let mut truths = std::mem::take(&mut state.truths);
        copy_truths(leaves, &mut truths);
        let inputs = inputs_of(leaves, &truths);
        let is_ready = state.workspace.is_some() && are_sizes(&state.made_for, leaves);
        if !is_ready && (!self.allows(py, values) || state.make(py, self, leaves, &inputs).is_err()) {
            // The general path reports the reason, or has other code for these extents.
            return Ok(None);
        }
        let State { workspace: Some(workspace), shapes, copies, is_long, .. } = state else { return Ok(None) };

        let mut numbers = vec![0_u64; self.outputs.len()];
        let arrays = match out {
            Some(out) => self.targets(numpy, out, leaves, shapes)?,
            None => Some(self.unwritten(py, numpy, shapes)?),
        };
        let Some(arrays) = arrays else { return Ok(None) };
        let mut views = arrays.iter();
        let mut outputs: Vec<SliceMut<'_>> = Vec::with_capacity(self.outputs.len());
        for (output, number) in self.results().iter().zip(&mut numbers) {
            if output.is_number && out.is_none() {
                outputs.push(output.class.slice_mut(std::slice::from_mut(number)));
                continue;
            }
            let view = views.next().and_then(|array| numpy.view(array.as_borrowed()));
            let Some(output) = view.and_then(|mut array| array.unshared()) else { return Ok(None) };
            outputs.push(output);
        }

        let written = &self.outputs[self.results().len()..];
        outputs.extend(written.iter().zip(&mut *copies).map(|(output, copy)| output.class.slice_mut(copy)));

        if *is_long {
            detached(py, Stage::Run, || self.compiled.run_into(&inputs, &mut outputs, workspace))?;
        } else {
            let start = Instant::now();
            now(py, Stage::Run, || self.compiled.run_into(&inputs, &mut outputs, workspace))?;
            *is_long = start.elapsed() > SHORT;
        }
        drop(outputs);
        drop(inputs);
        self.write(leaves, copies);
        let n_copied: usize = copies.iter().map(Vec::len).chain(truths.iter().map(Vec::len)).sum();
        if workspace.n_bytes() + size_of::<u64>() * n_copied > MAX_KEPT_BYTES {
            state.workspace = None;
            state.copies = Vec::new();
        } else {
            state.truths = truths;
        }
        if let Some(out) = out {
            return Ok(Some(out.clone()));
        }
        self.filled(py, numpy, arrays, &numbers)
    }

    /// Returns new arrays for the results that are arrays.
    #[inline]
    fn unwritten<'py>(
        &self,
        py: Python<'py>,
        numpy: &Numpy,
        shapes: &[Option<Py<PyTuple>>],
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let pairs = self.results().iter().zip(shapes);
        let arrays = pairs.filter_map(|(output, shape)| Some(numpy.empty(shape.as_ref()?.bind(py), output.class)));
        arrays.collect()
    }

    /// Returns the result made of the outputs: `arrays`, and `numbers` by number of the output.
    #[inline]
    fn filled<'py>(
        &self,
        py: Python<'py>,
        numpy: &Numpy,
        arrays: Vec<Bound<'py, PyAny>>,
        numbers: &[u64],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut arrays = arrays.into_iter();
        let mut results = Vec::with_capacity(self.outputs.len());
        for (output, number) in self.results().iter().zip(numbers) {
            results.push(if output.is_number {
                output.class.object(py, numpy, *number)?
            } else {
                let Some(array) = arrays.next() else { return Ok(None) };
                if output.class == Class::Bool { array.call_method1("astype", (&numpy.bool_,))? } else { array }
            });
        }
        if let (Template::Leaf(0), 1) = (&self.template, results.len()) {
            return Ok(results.pop());
        }
        self.template.fill(py, &results).map(Some)
    }

    /// Copies outputs to the arguments that are written to.
    fn write(&self, leaves: &[Leaf<'_>], copies: &mut [Vec<u64>]) {
        for (leaf, copy) in self.written.iter().zip(copies) {
            if let Some(Leaf::Array(mut array)) = leaves.get(*leaf).copied() {
                match array.unshared() {
                    Some(SliceMut::Real(x)) => x.copy_from_slice(reals(copy)),
                    Some(SliceMut::Int(x)) => x.copy_from_slice(ints(copy)),
                    None => {}
                }
            }
        }
    }

    /// Returns the outputs that are results.
    fn results(&self) -> &[Output] {
        &self.outputs[..self.outputs.len() - self.written.len()]
    }

    /// Returns whether the arguments that are written to may be: they are no truth values, and share no memory with
    /// others.
    fn may_write(&self, leaves: &[Leaf<'_>]) -> bool {
        self.written.iter().all(|k| {
            let Some(Leaf::Array(array)) = leaves.get(*k) else { return false };
            let shares = |(j, other): (usize, &Leaf<'_>)| matches!(other, Leaf::Array(other) if j != *k && other.overlaps(array));
            array.is_writeable() && array.class != Class::Bool && !leaves.iter().enumerate().any(shares)
        })
    }

    /// Returns whether the arguments match their annotations.
    fn allows(&self, py: Python<'_>, values: &[Bound<'_, PyAny>]) -> bool {
        let Some(check) = &self.check else { return true };
        PyTuple::new(py, values).is_ok_and(|values| check.call1(py, (values,)).is_ok())
    }

    /// Returns the arrays of `out` if results can be written to them.
    fn targets<'py>(
        &self,
        numpy: &Numpy,
        out: &Bound<'py, PyAny>,
        leaves: &[Leaf<'_>],
        shapes: &[Option<Py<PyTuple>>],
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let targets: Vec<Bound<'py, PyAny>> = if let Ok(tuple) = out.cast::<PyTuple>() {
            tuple.iter().collect()
        } else if let Ok(list) = out.cast::<PyList>() {
            list.iter().collect()
        } else {
            vec![out.clone()]
        };
        if targets.len() != self.outputs.len() {
            return Ok(None);
        }
        let py = out.py();
        let mut views: Vec<Array<'_>> = Vec::with_capacity(targets.len());
        for ((target, output), shape) in targets.iter().zip(&self.outputs).zip(shapes) {
            let Some(view) = numpy.view(target.as_borrowed()) else { return Ok(None) };
            let fits = match shape {
                None => view.extents.is_empty(),
                Some(shape) => {
                    let shape: Vec<isize> = shape.bind(py).extract()?;
                    view.extents == shape
                }
            };
            let shares = leaves.iter().any(|leaf| matches!(leaf, Leaf::Array(array) if array.overlaps(&view)))
                || views.iter().any(|other| other.overlaps(&view));
            if !fits || shares || view.class != output.class || output.class == Class::Bool || !view.is_writeable() {
                return Ok(None);
            }
            views.push(view);
        }
        Ok(Some(targets))
    }
}

/// Returns whether these are the extents of all arrays, and the integers, of `leaves`.
#[inline]
fn are_sizes(known: &[i64], leaves: &[Leaf<'_>]) -> bool {
    let mut known = known.iter();
    for leaf in leaves {
        match leaf {
            Leaf::Real(_) => {}
            Leaf::Int(x) => {
                if known.next() != Some(x) {
                    return false;
                }
            }
            Leaf::Array(array) => {
                if !array.extents.iter().all(|extent| known.next().is_some_and(|k| *k == *extent as i64)) {
                    return false;
                }
            }
        }
    }
    known.next().is_none()
}

/// Puts the arrays of truth values among `leaves` in place of `copies`.
#[inline]
fn copy_truths(leaves: &[Leaf<'_>], copies: &mut Vec<Vec<i64>>) {
    let arrays = leaves.iter().filter_map(|leaf| match leaf {
        Leaf::Array(array) if array.class == Class::Bool => Some(array),
        _ => None,
    });
    for (k, array) in arrays.enumerate() {
        if k == copies.len() {
            copies.push(Vec::new());
        }
        array.copy_truths(&mut copies[k]);
    }
}

/// Returns what compiled code reads: `truths` in place of arrays of truth values.
#[inline]
fn inputs_of<'a>(leaves: &'a [Leaf<'_>], truths: &'a [Vec<i64>]) -> Vec<Slice<'a>> {
    let mut truths = truths.iter();
    let input = |leaf: &'a Leaf<'_>| match leaf {
        Leaf::Real(x) => Slice::Real(std::slice::from_ref(x)),
        Leaf::Int(x) => Slice::Int(std::slice::from_ref(x)),
        Leaf::Array(array) => array.slice().unwrap_or_else(|| Slice::Int(truths.next().map_or(&[], Vec::as_slice))),
    };
    leaves.iter().map(input).collect()
}

impl State {
    #[cold]
    fn make(&mut self, py: Python<'_>, plan: &Plan, leaves: &[Leaf<'_>], inputs: &[Slice<'_>]) -> PyResult<()> {
        self.workspace = None;
        self.made_for.clear();
        let mut extents: Vec<Vec<usize>> = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            match leaf {
                Leaf::Real(_) => extents.push(Vec::new()),
                Leaf::Int(x) => {
                    self.made_for.push(*x);
                    extents.push(Vec::new());
                }
                Leaf::Array(array) => {
                    self.made_for.extend(array.extents.iter().map(|extent| *extent as i64));
                    extents.push(array.extents.iter().map(|extent| extent.unsigned_abs()).collect());
                }
            }
        }
        let is_as = |&(p, q, equal): &(usize, usize, bool)| (self.made_for.get(p) == self.made_for.get(q)) == equal;
        if !plan.compared.iter().all(is_as) {
            return Ok(()); // Other code is for these sizes.
        }
        let extents: Vec<&[usize]> = extents.iter().map(Vec::as_slice).collect();
        let workspace = detached(py, Stage::Entry, || plan.compiled.workspace_for(&extents, inputs))?;
        let shape = |(k, output): (usize, &Output)| -> PyResult<Option<Py<PyTuple>>> {
            if output.is_number {
                return Ok(None);
            }
            Ok(Some(PyTuple::new(py, workspace.output_shape(k))?.unbind()))
        };
        self.shapes = plan.outputs.iter().enumerate().map(shape).collect::<PyResult<_>>()?;
        let copied = plan.results().len()..plan.outputs.len();
        self.copies = copied.map(|k| vec![0; workspace.output_shape(k).iter().product()]).collect();
        self.workspace = Some(workspace);
        Ok(())
    }
}

impl Class {
    /// Returns numbers of this class, of eight bytes each.
    fn slice_mut(self, bits: &mut [u64]) -> SliceMut<'_> {
        match self {
            Self::Real => SliceMut::Real(reals(bits)),
            Self::Int | Self::Bool => SliceMut::Int(ints(bits)),
        }
    }

    /// Returns the number with these bits as a NumPy scalar.
    fn object<'py>(self, py: Python<'py>, numpy: &Numpy, bits: u64) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Real => numpy.float64.bind(py).call1((f64::from_bits(bits),)),
            Self::Int => numpy.int64.bind(py).call1((bits.cast_signed(),)),
            Self::Bool => numpy.bool_.bind(py).call1((PyBool::new(py, bits != 0),)),
        }
    }
}
