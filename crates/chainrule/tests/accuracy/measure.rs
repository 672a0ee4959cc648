//! Results of compiled code for an operator: value, first and second partial derivatives at many points.

use super::sweep::{self, Of, results};
use chainrule::{Backend, CompileOptions, Expr, Function, Module, Result, Rewrite, Semantics, Value, vars};
use chainrule_ops::Op;

/// Compilation settings.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Its name.
    pub name: &'static str,
    /// Whether derivatives are taken in loops that are kept, otherwise in straight-line code.
    pub loops: bool,
    /// Semantics, which decide whether formulas may be rewritten as of real numbers.
    pub semantics: Semantics,
    /// Options of the compiler.
    pub options: CompileOptions,
}

/// Returns the swept settings.
pub fn ways() -> Vec<Way> {
    let native = CompileOptions::default();
    let interpreter = CompileOptions { backend: Backend::Interpreter, ..native };
    let unchanged = CompileOptions { rewrite: Rewrite::Off, ..native };
    let way = |name, loops, semantics, options| Way { name, loops, semantics, options };
    vec![
        way("native", false, Semantics::Algebraic, native),
        way("interpreter", false, Semantics::Algebraic, interpreter),
        way("loops, strict", true, Semantics::Strict, native),
        way("loops", true, Semantics::Algebraic, native),
        way("loops, interpreter", true, Semantics::Algebraic, interpreter),
        way("loops, not optimised", true, Semantics::Algebraic, unchanged),
    ]
}

/// Swept function: an operator, with constants for some arguments.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// The operator.
    pub op: Op,
    /// Constant for its first argument.
    pub first: Option<f64>,
    /// Constant for its second argument.
    pub second: Option<f64>,
}

/// Exponents of powers that are swept as constants.
const EXPONENTS: [f64; 13] = [-2.5, -2.0, -1.5, -1.0, -0.5, 0.1, 0.3, 0.5, 1.5, 2.0, 3.0, 4.7, 7.0];

/// Returns all swept functions: each operator, those with an order as first argument for a few orders, powers with
/// constants too.
pub fn subjects() -> Vec<Subject> {
    let mut all = Vec::new();
    for op in sweep::swept() {
        match op {
            Op::Polygamma => all.extend((0..6).map(|n| Subject { op, first: Some(f64::from(n)), second: None })),
            _ => all.push(Subject { op, first: None, second: None }),
        }
    }
    all.extend(EXPONENTS.map(|e| Subject { op: Op::Pow, first: None, second: Some(e) }));
    all
}

impl Subject {
    /// Returns `many` points, with the constants in their places.
    pub fn points(&self, many: usize) -> Vec<Vec<f64>> {
        let mut points = sweep::points(self.op, many);
        for point in &mut points {
            for (x, constant) in point.iter_mut().zip([self.first, self.second]) {
                *x = constant.unwrap_or(*x);
            }
        }
        points.retain(|point| sweep::inside(self.op, point));
        points
    }

    /// Returns its free arguments.
    fn free(&self) -> Vec<usize> {
        (0..self.op.arity()).filter(|i| [self.first, self.second].get(*i).copied().flatten().is_none()).collect()
    }

    /// Returns the results that are derivatives by free arguments.
    pub fn results(&self) -> Vec<Of> {
        let free = self.free();
        let is_free = |of: &Of| match of {
            Of::Value => true,
            Of::First(i) => free.contains(i),
            Of::Second(i, j) => free.contains(i) && free.contains(j),
        };
        results(self.op).into_iter().filter(is_free).collect()
    }

    /// Returns F~ text, with arguments of these names.
    fn text(&self, names: [&str; 2]) -> String {
        let constant = |c: f64| if c < 0.0 { format!("({c:?})") } else { format!("{c:?}") };
        let args =
            [self.first.map_or(names[0].to_owned(), constant), self.second.map_or(names[1].to_owned(), constant)];
        match (self.op.row().symbol, self.op.arity()) {
            (Some(symbol), 2) => format!("{} {symbol} {}", args[0], args[1]),
            (Some(symbol), _) => format!("{symbol}{}", args[0]),
            (None, arity) => format!("{} {}", self.op.name(), args[..arity].join(" ")),
        }
    }
}

/// Computes a result at all points with these settings.
///
/// # Errors
/// Fails if the function does not compile or fails.
pub fn computed(subject: Subject, of: Of, way: Way, points: &[Vec<f64>]) -> Result<Vec<f64>> {
    if way.loops { in_loops(subject, of, way, points) } else { in_lines(subject, of, way, points) }
}

fn in_lines(subject: Subject, of: Of, way: Way, points: &[Vec<f64>]) -> Result<Vec<f64>> {
    let free = subject.free();
    let x = vars("x", free.len());
    let args: Vec<Expr> = (0..subject.op.arity())
        .map(|i| match free.iter().position(|k| *k == i) {
            Some(k) => x[k].clone(),
            None => x[0].constant_like([subject.first, subject.second][i].unwrap_or(0.0)),
        })
        .collect();
    let value = Expr::apply(subject.op, &args.iter().collect::<Vec<_>>());
    let f = Function::new("f", &x, &value)?;
    let place = |i: usize| free.iter().position(|k| *k == i).unwrap_or(0);
    let (function, len, at) = match of {
        Of::Value => (f.value().function()?, 1, 0),
        Of::First(i) => (f.gradient().function()?, free.len(), place(i)),
        Of::Second(i, j) => (f.hessian().function()?, free.len() * free.len(), place(i) * free.len() + place(j)),
    };
    let code = function.compile_with(&way.options)?;
    let inputs: Vec<f64> = points.iter().flat_map(|p| free.iter().map(|i| p[*i])).collect();
    let mut outputs = vec![0.0; points.len() * len];
    let mut workspace = code.workspace(&[&[free.len()]])?;
    code.eval_batch(points.len(), &[&inputs], &mut [&mut outputs], &mut workspace)?;
    Ok(outputs.chunks(len).map(|chunk| chunk[at]).collect())
}

fn in_loops(subject: Subject, of: Of, way: Way, points: &[Vec<f64>]) -> Result<Vec<f64>> {
    let inner = |of: &str| format!("let f = fun (x : [n]Double) (y : [n]Double) -> {of}");
    let text = match of {
        Of::Value => inner(&format!("build n (fun i -> {})", subject.text(["x[i]", "y[i]"]))),
        Of::First(_) => inner(&format!("sum n (fun i -> {})", subject.text(["x[i]", "y[i]"]))),
        Of::Second(i, j) => {
            let (mut outer, at) = (["x[i]", "y[i]"], ["x[i]", "y[i]"]);
            outer[j] = "s";
            let mut all = outer;
            all[i] = "t";
            let slope = format!("derivative (fun t -> {}) {}", subject.text(all), outer[i]);
            inner(&format!("build n (fun i -> derivative (fun s -> {slope}) {})", at[j]))
        }
    };
    let function = Module::from_text("sweep.ft", &text)?.with_semantics(way.semantics).function("f")?;
    let column = |i: usize| Value::Array(points.iter().map(|p| Value::Real(*p.get(i).unwrap_or(&0.0))).collect());
    let args = [column(0), column(1)];
    let function = match of {
        Of::First(i) => function.gradient().by(&[["x", "y"][i]]).function()?,
        _ => function,
    };
    let found = function.compile_with(&way.options)?.call(&args)?;
    Ok(found[0].reals().into_iter().copied().collect())
}
