//! Random F~ programs as people write them, as text, with arguments that fit: definitions used several times, loops of
//! all kinds, arrays read at shifted, reversed and given indices, the library's linear algebra, nested derivatives.
//!
//! Numbers stay moderate: loop-carried values are halved at each step, inverted matrices are far from singular. A
//! program has a value unless an index is out of range.
//!
//! | module | content |
//! | --- | --- |
//! | `terms` | numbers, conditions, indices |
//! | `arrays` | vectors, matrices, arrays of pairs, records |
//! | `loops` | values of loops |
//! | `derivatives` | derivatives inside programs |
//! | `stated` | functions with their own derivative |
//!
//! Written terms are atoms, so that they can occur anywhere. When the source runs out they are as simple as possible.

mod arrays;
mod derivatives;
mod loops;
mod stated;
mod terms;

use crate::Value;
use arbitrary::{Result, Unstructured};
use std::fmt::Write;

/// Options of random programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Maximum size of an argument.
    pub longest: i64,
    /// Whether the result is a number.
    pub scalar: bool,
    /// Whether programs have derivatives of any order wherever they have values: nothing branches on a number.
    pub smooth: bool,
    /// Whether arrays of indices are among the arguments.
    pub indices: bool,
    /// Maximum nesting of derivatives.
    pub orders: u32,
    /// Approximate maximum number of terms of the main function; its definitions have fewer.
    pub fuel: u32,
    /// Maximum work of nested loops: 1 for a loop over a few elements, 2 for one over a size.
    pub work: u32,
    /// Whether every other size is 0: then many programs have no value, and reads are inside loops that do not run.
    pub empty: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { longest: 19, scalar: false, smooth: false, indices: true, orders: 2, fuel: 90, work: 6, empty: false }
    }
}

/// A program, with arguments for its function `f`.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// Its text.
    pub text: String,
    /// Arguments, as many as `f` has parameters.
    pub args: Vec<Value<f64>>,
}

/// A size, or the count of a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Extent {
    /// A size parameter.
    Named(&'static str),
    /// One less than a size parameter.
    Before(&'static str),
    Constant(i64),
    /// Half a size parameter, rounded down; only for loops.
    Half(&'static str),
    /// Up to the index of an outer loop of this extent, inclusive or not. Only for loops.
    UpTo(String, Box<Extent>, bool),
}

impl Extent {
    /// Returns it as an argument.
    fn text(&self) -> String {
        match self {
            Self::Named(name) => (*name).to_owned(),
            Self::Before(name) => format!("({name} - 1)"),
            Self::Constant(number) => number.to_string(),
            Self::Half(name) => format!("(div {name} 2)"),
            Self::UpTo(index, _, true) => format!("({index} + 1)"),
            Self::UpTo(index, _, false) => index.clone(),
        }
    }

    /// Returns it as a dimension of a type.
    fn dimension(&self) -> String {
        format!("[{}]", self.text().trim_matches(['(', ')']))
    }

    /// Returns the work of a loop over it.
    fn work(&self) -> u32 {
        if matches!(self, Self::Constant(_)) { 1 } else { 2 }
    }
}

/// Kind of a name.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    Number,
    Vector(Extent),
    /// Rows, columns.
    Matrix(Extent, Extent),
    /// An array of pairs.
    Pairs(Extent),
    /// `{ a : Double, w : [n]Double }`.
    Record(Extent),
    /// An array of this length of indices into arrays of the second extent.
    Indices(Extent, Extent),
}

impl Kind {
    fn ty(&self) -> String {
        match self {
            Self::Number => "Double".to_owned(),
            Self::Vector(n) => format!("{}Double", n.dimension()),
            Self::Matrix(r, c) => format!("{}{}Double", r.dimension(), c.dimension()),
            Self::Pairs(n) => format!("{}(Double, Double)", n.dimension()),
            Self::Record(n) => format!("{{ a : Double, w : {}Double }}", n.dimension()),
            Self::Indices(n, _) => format!("{}Int", n.dimension()),
        }
    }

    /// Returns the work of a loop over a value of it.
    fn work(&self) -> u32 {
        match self {
            Self::Number => 0,
            Self::Vector(n) | Self::Pairs(n) | Self::Record(n) | Self::Indices(n, _) => n.work(),
            Self::Matrix(r, c) => r.work() + c.work(),
        }
    }

    /// Returns the kind with another extent in place of the size of a definition.
    fn at(&self, other: &Extent) -> Self {
        let at = |n: &Extent| if *n == Extent::Named(DEFINED) { other.clone() } else { n.clone() };
        match self {
            Self::Number => Self::Number,
            Self::Vector(n) => Self::Vector(at(n)),
            Self::Matrix(r, c) => Self::Matrix(at(r), at(c)),
            Self::Pairs(n) => Self::Pairs(at(n)),
            Self::Record(n) => Self::Record(at(n)),
            Self::Indices(n, of) => Self::Indices(at(n), at(of)),
        }
    }
}

/// Size parameter of definitions, which has another value at each use.
const DEFINED: &str = "p";

/// A function defined by the program.
#[derive(Clone, Debug)]
struct Definition {
    name: String,
    params: Vec<Kind>,
    result: Kind,
    work: u32,
}

struct Writer<'a, 'u> {
    u: &'a mut Unstructured<'u>,
    options: Options,
    fuel: u32,
    /// Names in scope.
    scope: Vec<(String, Kind)>,
    /// Loop indices in scope, with their extents.
    indices: Vec<(String, Extent)>,
    /// Sizes in scope.
    sizes: Vec<&'static str>,
    definitions: Vec<Definition>,
    /// Number of generated names.
    names: u32,
    /// Work of the enclosing loops.
    work: u32,
    /// Maximum of `work` so far.
    most: u32,
    /// Number of enclosing derivatives.
    orders: u32,
    /// Whether [`CONDITIONED`] is used.
    conditioned: bool,
}

const CONDITIONED: &str = "let conditioned = fun (a : [n][n]Double) ->
  build n (fun i -> build n (fun j -> (if i == j then 3.0 else 0.0) + 0.1 * tanh a[i][j]))
";

/// Returns a random program.
///
/// # Errors
/// Fails if `u` runs out.
pub fn program(u: &mut Unstructured<'_>, options: Options) -> Result<Written> {
    let mut w = Writer {
        u,
        options,
        fuel: options.fuel,
        scope: Vec::new(),
        indices: Vec::new(),
        sizes: Vec::new(),
        definitions: Vec::new(),
        names: 0,
        work: 0,
        most: 0,
        orders: 0,
        conditioned: false,
    };
    let mut definitions = String::new();
    for _ in 0..w.u.int_in_range(0..=2)? {
        definitions += &w.definition()?;
    }
    let (params, body) = w.main()?;
    let args = w.arguments(&params)?;
    let conditioned = if w.conditioned { CONDITIONED } else { "" };
    Ok(Written { text: format!("{conditioned}{definitions}{body}"), args })
}

/// Returns the parameters of a function, as text.
fn signature(params: &[(String, Kind)]) -> String {
    params.iter().map(|(name, kind)| format!("({name} : {})", kind.ty())).collect::<Vec<_>>().join(" ")
}

impl Writer<'_, '_> {
    fn dry(&self) -> bool {
        self.fuel == 0 || self.u.is_empty()
    }

    fn fresh(&mut self, letter: &str) -> String {
        self.names += 1;
        format!("{letter}{}", self.names)
    }

    fn choose<T: Clone>(&mut self, items: &[T]) -> Result<T> {
        self.u.choose(items).cloned()
    }

    /// Returns one of the items, mostly a late one.
    fn late<T: Clone>(&mut self, items: &[T]) -> Result<T> {
        let back = if self.u.ratio(3, 4)? { 2 } else { items.len() };
        Ok(items[items.len() - 1 - self.u.int_in_range(0..=back.min(items.len()) - 1)?].clone())
    }

    /// Returns the result of `make`; restores the scope.
    fn block<T>(&mut self, make: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let (scope, indices) = (self.scope.len(), self.indices.len());
        let made = make(self);
        self.scope.truncate(scope);
        self.indices.truncate(indices);
        made
    }

    /// Returns whether so much more work is permitted.
    fn room(&self, work: u32) -> bool {
        self.work + work <= self.options.work
    }

    /// Returns the result of `make` inside so much work.
    fn inside<T>(&mut self, work: u32, make: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.work += work;
        self.most = self.most.max(self.work);
        let made = self.block(make);
        self.work -= work;
        made
    }

    /// Returns the result of `make` in a loop over an index, with the name of the index.
    fn over<T>(&mut self, extent: &Extent, make: impl FnOnce(&mut Self) -> Result<T>) -> Result<(String, T)> {
        let index = self.fresh("i");
        let made = self.inside(extent.work(), |w| {
            w.indices.push((index.clone(), extent.clone()));
            make(w)
        })?;
        Ok((index, made))
    }

    /// Returns the size of an array.
    fn extent(&mut self) -> Result<Extent> {
        let sizes = self.sizes.clone();
        Ok(match self.u.int_in_range(0..=9)? {
            0..=6 => Extent::Named(self.choose(&sizes)?),
            7 => Extent::Before(self.choose(&sizes)?),
            _ => Extent::Constant(self.u.int_in_range(1..=4)?),
        })
    }

    /// Returns the count of a loop that makes no array.
    fn count(&mut self) -> Result<Extent> {
        let (sizes, indices) = (self.sizes.clone(), self.indices.clone());
        Ok(match self.u.int_in_range(0..=9)? {
            0 => Extent::Half(self.choose(&sizes)?),
            1 if !indices.is_empty() => {
                let (index, of) = self.choose(&indices)?;
                Extent::UpTo(index, Box::new(of), self.u.arbitrary()?)
            }
            _ => self.extent()?,
        })
    }

    /// Returns the kind of a statement.
    fn kind(&mut self) -> Result<Kind> {
        Ok(match self.u.int_in_range(0..=11)? {
            0..=3 => Kind::Number,
            4..=7 => Kind::Vector(self.extent()?),
            8 | 9 => Kind::Matrix(self.extent()?, self.extent()?),
            10 => Kind::Pairs(self.extent()?),
            _ => Kind::Record(self.extent()?),
        })
    }

    /// Returns any term of a kind.
    fn term(&mut self, kind: &Kind, depth: u32) -> Result<String> {
        match kind {
            Kind::Number => self.number(depth),
            Kind::Vector(n) => self.vector(n, depth),
            Kind::Matrix(r, c) => self.matrix(r, c, depth),
            Kind::Pairs(n) => self.pairs(n, depth),
            Kind::Record(n) => self.record(n, depth),
            Kind::Indices(n, of) => {
                let (index, element) = self.over(n, |w| w.index(of))?;
                Ok(format!("(build {} (fun {index} -> {element}))", n.text()))
            }
        }
    }

    /// Returns named statements, as lines.
    fn statements(&mut self, least: u32, most: u32) -> Result<String> {
        let mut lines = String::new();
        let count = self.u.int_in_range(least..=most)?;
        let share = self.fuel / (count + 1);
        for _ in 0..count {
            let kind = self.kind()?;
            self.fuel = share;
            let name = self.fresh("v");
            let made = self.term(&kind, 4)?;
            let _ = writeln!(lines, "  let {name} = {}", bare(&made));
            self.scope.push((name, kind));
        }
        self.fuel = share;
        Ok(lines)
    }

    /// Returns a definition: a function of a vector of any size, and of another value.
    fn definition(&mut self) -> Result<String> {
        let p = Extent::Named(DEFINED);
        let (name, u, t) = (self.fresh("g"), self.fresh("u"), self.fresh("t"));
        let second = self.choose(&[Kind::Number, Kind::Vector(p.clone()), Kind::Matrix(p.clone(), p.clone())])?;
        let params = [(u, Kind::Vector(p.clone())), (t, second)];
        let result = self.choose(&[Kind::Number, Kind::Number, Kind::Vector(p.clone())])?;
        self.sizes = vec![DEFINED];
        self.fuel = self.options.fuel / 3;
        self.most = 0;
        let (lines, value) = self.block(|w| {
            w.scope.extend(params.clone());
            Ok((w.statements(0, 1)?, w.term(&result, 3)?))
        })?;
        let text = format!("let {name} = fun {} ->\n{lines}  {}\n", signature(&params), bare(&value));
        let params = params.into_iter().map(|(_, kind)| kind).collect();
        self.definitions.push(Definition { name, params, result, work: self.most });
        Ok(text)
    }

    /// Returns a use of a definition with a result of this kind, if there is one.
    fn call(&mut self, kind: &Kind, depth: u32) -> Result<Option<String>> {
        let extent = match kind {
            Kind::Vector(n) => n.clone(),
            _ => self.extent()?,
        };
        // With one element, an array with one less is empty, which may be reported at compile time.
        if extent == Extent::Constant(1) {
            return Ok(None);
        }
        let fits = |d: &&Definition| d.result.at(&extent) == *kind && self.work + d.work <= self.options.work;
        let fitting: Vec<Definition> = self.definitions.iter().filter(fits).cloned().collect();
        if fitting.is_empty() {
            return Ok(None);
        }
        let definition = self.choose(&fitting)?;
        let mut text = format!("({}", definition.name);
        for param in &definition.params {
            let _ = write!(text, " {}", self.term(&param.at(&extent), depth)?);
        }
        self.most = self.most.max(self.work + definition.work);
        Ok(Some(text + ")"))
    }

    /// Returns the parameters and the text of the main function.
    fn main(&mut self) -> Result<(Vec<(String, Kind)>, String)> {
        let (n, m) = (Extent::Named("n"), Extent::Named("m"));
        self.sizes = vec!["n", "m"];
        self.fuel = self.options.fuel;
        self.most = 0;
        let mut params = vec![("x".to_owned(), Kind::Vector(n.clone())), ("y".to_owned(), Kind::Vector(m.clone()))];
        let more = [
            ("s", Kind::Number),
            ("a", Kind::Matrix(n.clone(), m.clone())),
            ("b", Kind::Matrix(n.clone(), n.clone())),
            ("q", Kind::Pairs(n.clone())),
            ("r", Kind::Record(m.clone())),
            ("at", Kind::Indices(m.clone(), n.clone())),
            ("to", Kind::Indices(n, m)),
        ];
        for (name, kind) in more {
            let left_out = matches!(kind, Kind::Indices(..)) && !self.options.indices;
            if !left_out && !self.u.is_empty() && self.u.ratio(1, 3)? {
                params.push((name.to_owned(), kind));
            }
        }
        self.scope.extend(params.clone());
        let lines = self.statements(1, 5)?;
        let made: Vec<(String, Kind)> = self.scope[params.len()..].to_vec();
        let mut parts = Vec::new();
        for _ in 0..self.u.int_in_range(1..=2)? {
            let (name, kind) = self.late(&made)?;
            parts.push(if self.options.scalar { self.total(&name, &kind)? } else { name });
        }
        let result = match parts.as_slice() {
            [one] => one.clone(),
            _ if self.options.scalar => parts.join(" + "),
            _ => format!("({})", parts.join(", ")),
        };
        let text = format!("let f = fun {} ->\n{lines}  {result}\n", signature(&params));
        Ok((params, text))
    }

    /// Returns a number that depends on all numbers of a name.
    fn total(&mut self, name: &str, kind: &Kind) -> Result<String> {
        Ok(match kind {
            Kind::Number => name.to_owned(),
            Kind::Vector(_) => self.choose(&["vectorSum", "vectorNorm2"])?.to_owned() + " " + name,
            Kind::Matrix(..) => self.choose(&["matrixSum", "matrixNorm2"])?.to_owned() + " " + name,
            Kind::Pairs(n) => format!("sum {} (fun i -> fst {name}[i] * snd {name}[i])", n.text()),
            Kind::Record(_) => format!("{name}.a * vectorSum {name}.w"),
            Kind::Indices(n, _) => format!("sum {} (fun i -> 0.1 * {name}[i])", n.text()),
        })
    }

    fn arguments(&mut self, params: &[(String, Kind)]) -> Result<Vec<Value<f64>>> {
        let longest = self.options.longest;
        // Zero, one, and multiples and non-multiples of the lanes are more frequent than others.
        let is_empty = self.options.empty;
        let mut size = |least: i64| {
            if is_empty && self.u.arbitrary()? {
                return Ok(0);
            }
            let size =
                if self.u.ratio(1, 3)? { self.u.int_in_range(0..=5)? } else { self.u.int_in_range(0..=longest)? };
            Ok(if size == 0 && self.u.ratio(2, 3)? { 3.min(longest) } else { size.clamp(least, longest) })
        };
        let (n, m) = (size(0)?, size(1)?);
        let mut next = super::numbers(self.u.arbitrary()?);
        let size = |extent: &Extent| if *extent == Extent::Named("n") { n } else { m };
        Ok(params.iter().map(|(_, kind)| argument(kind, &size, &mut next)).collect())
    }
}

fn argument(kind: &Kind, size: &impl Fn(&Extent) -> i64, next: &mut impl FnMut(i64) -> i64) -> Value<f64> {
    // Never at a point without a derivative.
    let number = |next: &mut dyn FnMut(i64) -> i64| Value::Real(((next(4001) - 2000) as f64 + 0.25) / 1733.0);
    let vector = |n: i64, each: &mut dyn FnMut() -> Value<f64>| Value::Array((0..n).map(|_| each()).collect());
    match kind {
        Kind::Number => number(next),
        Kind::Vector(n) => vector(size(n), &mut || number(next)),
        Kind::Matrix(r, c) => vector(size(r), &mut || vector(size(c), &mut || number(next))),
        Kind::Pairs(n) => vector(size(n), &mut || Value::Tuple(vec![number(next), number(next)])),
        Kind::Record(n) => Value::Tuple(vec![number(next), vector(size(n), &mut || number(next))]),
        Kind::Indices(n, of) => vector(size(n), &mut || Value::Int(next(size(of).max(1)))),
    }
}

/// Returns the text without outer parentheses.
fn bare(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(').and_then(|t| t.strip_suffix(')')) else { return text };
    let mut open = 0;
    for c in inner.chars() {
        match c {
            '(' | '[' | '{' => open += 1,
            // Two parts, or a pair.
            ')' | ',' if open == 0 => return text,
            ')' | ']' | '}' => open -= 1,
            _ => {}
        }
    }
    inner
}
