//! Functions with arguments at which the reference evaluator has a value.

use crate::support::program;
use chainrule::{Function, Module, Semantics, Sources, Type, Value};
use chainrule_autodiff::{Mode, Part, Request, derive, expand};
use chainrule_backend_tests::{Array, Data, flatten};
use chainrule_ir::{self as ir, evaluate, generate};
use chainrule_ops::F64;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use rustc_hash::FxHashMap;
use std::path::{Path, PathBuf};

/// Function with arguments.
pub struct Sample {
    /// Description for messages.
    pub name: String,
    pub function: Function,
    /// Reference: the same with its derivatives expanded.
    pub ir: ir::Function,
    pub args: Vec<Value<f64>>,
    /// Its value by the reference evaluator.
    pub value: Value<f64>,
    /// Whether it is a derivative.
    pub is_derived: bool,
}

impl Sample {
    fn new(name: String, function: Function, ir: &ir::Function, args: &[Value<f64>]) -> Option<Self> {
        let ir = expand(ir).ok()?;
        let value = evaluate(&ir, &mut F64, args).ok()?;
        let is_derived = name.starts_with("Jacobian of ");
        Some(Self { name, function, ir, args: args.to_vec(), value, is_derived })
    }

    /// Returns the arguments, leaf by leaf.
    pub fn inputs(&self) -> Vec<Array> {
        let params = self.ir.params.iter().zip(&self.args);
        params.flat_map(|(p, arg)| flatten(self.ir.ty(*p), arg, &|size| self.extent(size))).collect()
    }

    /// Returns a value of the result, leaf by leaf.
    pub fn outputs(&self, value: &Value<f64>) -> Vec<Data> {
        let arrays = flatten(self.ir.result_type(), value, &|size| self.extent(size));
        arrays.into_iter().map(|array| array.data).collect()
    }

    fn extent(&self, size: &ir::Size) -> usize {
        let sizes = ir::bind_sizes(&self.ir, &self.args).unwrap();
        usize::try_from(sizes.eval(size).unwrap()).unwrap()
    }

    /// Returns the same as straight-line code, and its arguments, if it can be unrolled and has less than `most`
    /// operations.
    pub fn straight(&self, most: u64) -> Option<(Function, Vec<Array>)> {
        let bound = ir::bind_sizes(&self.ir, &self.args).ok()?;
        let ints = self.ir.params.iter().filter(|p| *self.ir.ty(**p) == Type::Int);
        let size = |v: &ir::VarId| Some((self.ir.vars[*v].name.as_deref()?, bound.get(*v)?));
        let sizes = self.ir.sizes.iter().chain(ints).map(size).collect::<Option<Vec<_>>>()?;
        let straight = self.function.unrolled(&sizes).ok()?;
        // Empty arrays can be unrolled for any element type.
        let is_real = |data: &Data| matches!(data, Data::Real(_));
        if !self.outputs(&self.value).iter().all(is_real) {
            return None;
        }
        let reals = self.inputs().into_iter().filter(|array| is_real(&array.data));
        (straight.counts()?.arithmetic() < most).then(|| (straight, reals.collect()))
    }
}

/// Returns the functions of all examples and of `tests/programs`, and the gradients of those that have one, with arrays
/// of so many elements; those in a few of the files if fewer random cases run.
pub fn examples(semantics: Semantics, sizes: &[i64]) -> Vec<Sample> {
    let mut samples = Vec::new();
    let step = if chainrule_cases::is_reduced() { 6 } else { 1 };
    for path in files().into_iter().step_by(step) {
        let module = Module::load(&path).unwrap().with_semantics(semantics);
        let program = load(&path);
        for definition in module.definitions().iter().filter(|d| d.is_function && d.is_first_order) {
            // Skips definitions that are not functions of free sizes.
            let (Ok(function), Ok(ir)) = (module.function(&definition.name), program.elaborate(&definition.name))
            else {
                continue;
            };
            for size in sizes {
                let Some(args) = arguments(&ir, *size) else { continue };
                let name = format!("{} in {}, {size}", definition.name, path.display());
                let Some(sample) = Sample::new(name.clone(), function.clone(), &ir, &args) else { continue };
                samples.push(sample);
                if *ir.result_type() == Type::Double
                    && let Ok(derived) = function.gradient().function()
                {
                    let ir = derive(&ir, &request(vec![Part::Gradient])).unwrap();
                    samples.extend(Sample::new(format!("gradient of {name}"), derived, &ir, &args));
                }
            }
        }
    }
    samples
}

/// Returns random programs, and their Jacobians if they exist.
pub fn random(semantics: Semantics, seed: u64, n: u32) -> Vec<Sample> {
    let config = ProptestConfig { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Default::default() };
    let mut runner = TestRunner::new(config);
    let bytes = proptest::collection::vec(any::<u8>(), 100..1200);
    let mut samples = Vec::new();
    for k in 0..chainrule_cases::cases(n) {
        let bytes = bytes.new_tree(&mut runner).unwrap().current();
        let options = if k % 2 == 0 { generate::Options::smooth() } else { generate::Options::default() };
        let Some(p) = program(&bytes, options).unwrap() else { continue };
        let module = Module::from_text("<random>", &p.text).unwrap().with_semantics(semantics);
        let function = module.function(&p.ir.name).unwrap();
        if p.ir.result_type().has_double()
            && let Ok(derived) = function.jacobian().function()
        {
            let ir = derive(&p.ir, &request(vec![Part::Jacobian])).unwrap();
            samples.extend(Sample::new(format!("Jacobian of {}", p.text), derived, &ir, &p.args));
        }
        samples.extend(Sample::new(p.text.clone(), function, &p.ir, &p.args));
    }
    // Programs beyond the limits of Chainrule have no code.
    samples.retain(|sample| match sample.function.compile() {
        Ok(_) => true,
        Err(e) => {
            assert!(crate::support::limited(&e), "{}: {e}", sample.name);
            false
        }
    });
    samples
}

fn request(parts: Vec<Part>) -> Request {
    Request { parts, by: vec![], mode: Mode::Auto, checkpoints: None }
}

fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("examples"), root.join("tests/programs")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "ft") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn load(path: &Path) -> ir::Program {
    let mut sources = Sources::new();
    let root = sources.add(path.display().to_string(), std::fs::read_to_string(path).unwrap());
    let read = |import: &str, importer: &str| {
        let path = Path::new(importer).parent().unwrap().join(import);
        Ok((path.display().to_string(), std::fs::read_to_string(&path).unwrap()))
    };
    ir::Program::load(&mut sources, root, read).unwrap()
}

/// Returns arguments for a function whose sizes and integer arguments are all `size`.
fn arguments(function: &ir::Function, size: i64) -> Option<Vec<Value<f64>>> {
    let ints = function.params.iter().filter(|p| *function.ty(**p) == Type::Int);
    let sizes: FxHashMap<ir::VarId, i64> = function.sizes.iter().chain(ints).map(|v| (*v, size)).collect();
    let mut numbers = Numbers { sizes: &sizes, k: 0 };
    let of = |p: &ir::VarId| match function.ty(*p) {
        Type::Int => Some(Value::Int(size)),
        ty => numbers.value(ty),
    };
    function.params.iter().map(of).collect()
}

struct Numbers<'a> {
    sizes: &'a FxHashMap<ir::VarId, i64>,
    k: u32,
}

impl Numbers<'_> {
    /// Returns distinct doubles between 0.2 and 1.7; integers are small.
    fn value(&mut self, ty: &Type) -> Option<Value<f64>> {
        self.k += 1;
        Some(match ty {
            Type::Double => Value::Real(0.2 + 1.5 * (f64::from(self.k) * 0.618_033_988_749_895).fract()),
            Type::Int => Value::Int(i64::from(self.k % 3)),
            Type::Bool => Value::Bool(self.k.is_multiple_of(2)),
            Type::Array(size, element) => {
                let n = size.eval(|v| self.sizes.get(&v).copied().unwrap_or(-1))?;
                Value::Array((0..n).map(|_| self.value(element)).collect::<Option<_>>()?)
            }
            Type::Tuple(fields, _) => Value::Tuple(fields.iter().map(|ty| self.value(ty)).collect::<Option<_>>()?),
        })
    }
}
