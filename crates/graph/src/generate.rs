//! Random scalar programs, and large graphs for scale: shared by tests, fuzz targets and benchmarks.
//!
//! A [`Recipe`] is a list of steps, so that one program can be built with and without simplification, in either
//! semantics.

use crate::Semantics;
use crate::graph::{Graph, NodeId};
use arbitrary::{Result, Unstructured};
use chainrule_ops::{CostClass, Op, ROWS, Type};

/// Distribution of the numbers in a random program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Numbers {
    /// Small numbers such as 2, -0.5 and 3.
    Tame,
    /// NaN, infinities, zeros of both signs, the ends of the range, and tame numbers.
    Special,
}

impl Numbers {
    /// Draws one of them.
    ///
    /// # Errors
    /// Those of `u`.
    pub fn pick(self, u: &mut Unstructured<'_>) -> Result<f64> {
        const TAME: [f64; 14] = [0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.0, -0.5, 4.0, 0.25, -3.0, 1.5, 5.0, 0.75];
        const SPECIAL: [f64; 14] = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            0.0,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            -f64::MIN_POSITIVE,
            5e-324,
            -5e-324,
            1e200,
            -1e-200,
            1e-308,
        ];
        if self == Self::Special && u.ratio(1, 2)? { u.choose(&SPECIAL).copied() } else { u.choose(&TAME).copied() }
    }
}

/// Options of random programs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Number of inputs, at least 1.
    pub n_inputs: usize,
    /// Maximum number of steps.
    pub max_steps: usize,
    /// Maximum number of roots, at least 1.
    pub max_roots: usize,
    /// Operators with their weights.
    pub operators: Vec<(Op, u32)>,
    /// Numbers in the program and at the inputs.
    pub numbers: Numbers,
    /// Number of the last places of its type from which an argument is drawn.
    pub reach: usize,
    /// Whether arguments of operators should be inside their domains, and values below a million, at the recipe's
    /// point; a step is retried a few times, then replaced by a sum.
    pub in_domain: bool,
}

impl Options {
    /// Returns options for programs of about `max_steps` steps over all operators, arithmetic more often than
    /// functions, inside their domains, with tame numbers.
    #[must_use]
    pub fn new(max_steps: usize) -> Self {
        let weight = |class| match class {
            CostClass::Add | CostClass::Mul => 12,
            CostClass::Div | CostClass::Neg => 6,
            CostClass::Logic => 2,
            CostClass::Call => 1,
        };
        let operators = ROWS.iter().map(|row| (row.op, weight(row.cost))).collect();
        Self {
            n_inputs: 4,
            max_steps,
            max_roots: 3,
            operators,
            numbers: Numbers::Tame,
            reach: usize::MAX,
            in_domain: true,
        }
    }

    /// Removes these operators.
    #[must_use]
    pub fn without(mut self, operators: &[Op]) -> Self {
        self.operators.retain(|(op, _)| !operators.contains(op));
        self
    }

    /// Removes operators with truth values as arguments or results, or in their steps.
    #[must_use]
    pub fn of_numbers(mut self) -> Self {
        let selects = |op: Op| op.row().steps.as_ref().is_some_and(|steps| steps.operators().contains(&Op::Select));
        self.operators.retain(|(op, _)| op.is_numeric() && !selects(*op));
        self
    }
}

/// Step of a [`Recipe`]; places count inputs first, then steps.
#[derive(Clone, Debug)]
pub enum Step {
    /// Number.
    Const(f64),
    /// Operator applied to the values of earlier places.
    Apply(Op, Vec<usize>),
}

/// Scalar program as a list of steps.
#[derive(Clone, Debug, Default)]
pub struct Recipe {
    /// Value for each input.
    pub point: Vec<f64>,
    /// Steps.
    pub steps: Vec<Step>,
    /// Places of the roots.
    pub roots: Vec<usize>,
}

impl Recipe {
    /// Draws a random program.
    ///
    /// # Errors
    /// Those of `u`.
    pub fn random(u: &mut Unstructured<'_>, options: &Options) -> Result<Self> {
        let mut maker = Maker { recipe: Self::default(), values: Vec::new(), numbers: vec![], truths: vec![], options };
        for _ in 0..options.n_inputs.max(1) {
            let x = match options.numbers {
                Numbers::Tame => f64::from(u.int_in_range(-4096i32..=4096)?) / 1024.0,
                Numbers::Special => options.numbers.pick(u)?,
            };
            maker.recipe.point.push(x);
            maker.place(x, Type::Num);
        }
        while maker.recipe.steps.len() < options.max_steps && !u.is_empty() {
            maker.step(u)?;
        }
        let n_roots = u.int_in_range(1..=options.max_roots.max(1))?;
        let n = maker.values.len();
        // Late places depend on many others.
        maker.recipe.roots =
            (0..n_roots).map(|_| Ok(n - 1 - u.int_in_range(0..=(n - 1).min(4))?)).collect::<Result<Vec<usize>>>()?;
        Ok(maker.recipe)
    }

    /// Returns a random program of `options.max_steps` steps, all of which its roots need; deterministic for a seed.
    ///
    /// # Errors
    /// As [`random`](Self::random).
    pub fn whole(options: &Options, seed: u64) -> Result<Self> {
        // Words per step, more than a step consumes: if its source is exhausted, a program ends.
        const WORDS: usize = 8;
        let mut state = seed;
        let words = WORDS * (options.n_inputs + options.max_steps + 1);
        let bytes: Vec<u8> = (0..words).flat_map(|_| split_mix(&mut state).to_le_bytes()).collect();
        let mut recipe = Self::random(&mut Unstructured::new(&bytes), options)?;
        recipe.roots = recipe.unused();
        Ok(recipe)
    }

    /// Returns the places that no step uses as an argument, without constants: with these as roots, all steps are
    /// needed.
    #[must_use]
    pub fn unused(&self) -> Vec<usize> {
        let n_inputs = self.point.len();
        let mut used = vec![false; n_inputs + self.steps.len()];
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Const(_) => used[n_inputs + at] = true,
                Step::Apply(_, args) => args.iter().for_each(|arg| used[*arg] = true),
            }
        }
        (n_inputs..used.len()).filter(|place| !used[*place]).collect()
    }

    /// Builds the graph with simplification; returns it with its roots.
    #[must_use]
    pub fn simplified(&self, semantics: Semantics) -> (Graph, Vec<NodeId>) {
        self.make(semantics, Graph::apply)
    }

    /// Builds the graph without simplification; returns it with its roots.
    #[must_use]
    pub fn raw(&self, semantics: Semantics) -> (Graph, Vec<NodeId>) {
        self.make(semantics, Graph::raw)
    }

    /// Builds the graph with each operator applied by `apply`; returns it with its roots.
    pub fn make(
        &self,
        semantics: Semantics,
        mut apply: impl FnMut(&mut Graph, Op, &[NodeId]) -> NodeId,
    ) -> (Graph, Vec<NodeId>) {
        let mut graph = Graph::new(semantics);
        let mut places: Vec<NodeId> = (0..self.point.len()).map(|i| graph.input(format!("x{i}"))).collect();
        for step in &self.steps {
            places.push(match step {
                Step::Const(c) => graph.constant(*c),
                Step::Apply(op, args) => {
                    let args: Vec<NodeId> = args.iter().map(|a| places[*a]).collect();
                    apply(&mut graph, *op, &args)
                }
            });
        }
        let roots = self.roots.iter().map(|r| places[*r]).collect();
        (graph, roots)
    }
}

struct Maker<'a> {
    recipe: Recipe,
    /// Value of each place at the recipe's point.
    values: Vec<f64>,
    /// Places of numbers, in order.
    numbers: Vec<usize>,
    /// Places of truth values.
    truths: Vec<usize>,
    options: &'a Options,
}

impl Maker<'_> {
    /// Number of other operators or arguments that are tried before a sum.
    const ATTEMPTS: usize = 6;

    fn step(&mut self, u: &mut Unstructured<'_>) -> Result<()> {
        if u.ratio(1, 8)? {
            let c = self.options.numbers.pick(u)?;
            self.push(Step::Const(c), c, Type::Num);
            return Ok(());
        }
        let total: u32 = self.options.operators.iter().map(|(_, weight)| weight).sum();
        for _ in 0..Self::ATTEMPTS {
            let mut ticket = u.int_in_range(0..=total.max(1) - 1)?;
            let chosen = self.options.operators.iter().find(|(_, weight)| {
                let here = ticket < *weight;
                ticket = ticket.saturating_sub(*weight);
                here
            });
            let Some((op, _)) = chosen else { return Ok(()) };
            if self.apply(u, *op)? {
                return Ok(());
            }
        }
        self.apply(u, Op::Add).map(|_| ())
    }

    /// Returns whether the step was added.
    fn apply(&mut self, u: &mut Unstructured<'_>, op: Op) -> Result<bool> {
        let row = op.row();
        let mut args = Vec::new();
        for ty in row.args {
            let fitting = match ty {
                Type::Num => &self.numbers,
                Type::Bool => &self.truths,
            };
            if fitting.is_empty() {
                return Ok(false);
            }
            // Recent places more often, so that programs are deep.
            let furthest = fitting.len().min(self.options.reach.max(1)) - 1;
            let back = u.int_in_range(0..=furthest)?.min(u.int_in_range(0..=furthest)?);
            args.push(fitting[fitting.len() - 1 - back]);
        }
        let values: Vec<f64> = args.iter().map(|a| self.values[*a]).collect();
        let value = op.value(&values);
        let tame = (row.domain.contains)(&values) && value.abs() < 1e6;
        if self.options.in_domain && !tame && op != Op::Add {
            return Ok(false);
        }
        self.push(Step::Apply(op, args), value, row.result);
        Ok(true)
    }

    fn push(&mut self, step: Step, value: f64, ty: Type) {
        self.recipe.steps.push(step);
        self.place(value, ty);
    }

    fn place(&mut self, value: f64, ty: Type) {
        match ty {
            Type::Num => self.numbers.push(self.values.len()),
            Type::Bool => self.truths.push(self.values.len()),
        }
        self.values.push(value);
    }
}

/// Returns a chain: about `n` nodes above one input, each an argument of the next. Values stay below 3.
#[must_use]
pub fn chain(semantics: Semantics, n: usize) -> (Graph, NodeId) {
    let mut graph = Graph::new(semantics);
    let x = graph.input("x");
    let mut top = x;
    while graph.len() < n {
        top = graph.apply(Op::Sin, &[top]);
        top = graph.mul(top, x);
        top = graph.apply(Op::Cos, &[top]);
        top = graph.add(top, x);
    }
    (graph, top)
}

/// Returns a random graph of about `n` nodes over `n_inputs` inputs (at least 1), and `n_roots` roots; deterministic
/// for the same arguments. Each node takes its arguments from the last thousand or so. Values stay below 2.
#[must_use]
pub fn layered(semantics: Semantics, n: usize, n_inputs: usize, n_roots: usize, seed: u64) -> (Graph, Vec<NodeId>) {
    const REACH: u64 = 1000;
    let mut graph = Graph::new(semantics);
    let mut state = seed;
    let mut pool: Vec<NodeId> = (0..n_inputs.max(1)).map(|i| graph.input(format!("x{i}"))).collect();
    while graph.len() < n {
        let mut pick = || {
            let back = split_mix(&mut state) % REACH.min(pool.len() as u64);
            pool[pool.len() - 1 - back as usize]
        };
        let (a, b) = (pick(), pick());
        let choice = split_mix(&mut state);
        let inner = graph.apply([Op::Add, Op::Sub, Op::Mul][(choice % 3) as usize], &[a, b]);
        let outer = [Op::Sin, Op::Cos][(choice >> 32 & 1) as usize];
        let bounded = if choice >> 33 & 1 == 0 { graph.apply(outer, &[inner]) } else { graph.mul(a, b) };
        if graph.as_const(bounded).is_none() {
            pool.push(bounded);
        }
    }
    let roots = pool.iter().rev().take(n_roots).copied().collect();
    (graph, roots)
}

/// Returns a pseudorandom number: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014).
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
