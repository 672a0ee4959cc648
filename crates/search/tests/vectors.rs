//! Vector graphs: the costs of section 2.5, and programs on matrices against the equivalent scalar graph.
#![allow(clippy::unwrap_used)]

#[path = "../../accumulate/tests/support/mod.rs"]
mod support;

use arbitrary::Unstructured;
use chainrule_accumulate::edge::{Direction, EdgeElimination, Step};
use chainrule_accumulate::edge_greedy::{self, Ways};
use chainrule_accumulate::greedy::{self, Ties};
use chainrule_accumulate::vertex::Elimination;
use chainrule_accumulate::{Budget, Counting, Label, Label::Var, LinearGraph, Program, Score, VertexId};
use chainrule_accumulate::{oracle, vertex};
use chainrule_base::Id;
use chainrule_ops::{Algebra, Op};
use chainrule_search::Objective;
use chainrule_search::annealing;
use chainrule_search::vector::{self, VectorGraph};
use proptest::prelude::*;

const PRIME: u64 = 1_000_003;
const COUNTINGS: [Counting; 3] = [Counting::Plain, Counting::UnitFree, Counting::Folded];

/// Matrices over a prime field; a product of labels along a path is the later matrix times the earlier.
struct Matrices;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    /// A multiple of the identity of any size.
    Identity(u64),
    /// Rows.
    Matrix(Vec<Vec<u64>>),
}

impl Value {
    fn rows(&self, n: usize) -> Vec<Vec<u64>> {
        match self {
            Self::Identity(c) => (0..n).map(|r| (0..n).map(|k| if r == k { *c } else { 0 }).collect()).collect(),
            Self::Matrix(rows) => rows.clone(),
        }
    }
}

impl Algebra for Matrices {
    type Value = Value;
    fn constant(&mut self, c: f64) -> Value {
        Value::Identity(if c < 0.0 { PRIME - (-c) as u64 } else { c as u64 })
    }
    fn apply(&mut self, op: Op, args: &[Value]) -> Value {
        let scaled = |value: &Value, factor: u64| match value {
            Value::Identity(c) => Value::Identity(c * factor % PRIME),
            Value::Matrix(rows) => {
                Value::Matrix(rows.iter().map(|row| row.iter().map(|x| x * factor % PRIME).collect()).collect())
            }
        };
        let sum = |a: &Value, b: &Value| match (a, b) {
            (Value::Identity(a), Value::Identity(b)) => Value::Identity((a + b) % PRIME),
            _ => {
                let n = |value: &Value| if let Value::Matrix(rows) = value { rows.len() } else { 0 };
                let n = n(a).max(n(b));
                let rows = a.rows(n).into_iter().zip(b.rows(n));
                Value::Matrix(rows.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a + b) % PRIME).collect()).collect())
            }
        };
        match (op, args) {
            (Op::Add, [a, b]) => sum(a, b),
            (Op::Sub, [a, b]) => sum(a, &scaled(b, PRIME - 1)),
            (Op::Neg, [a]) => scaled(a, PRIME - 1),
            (Op::Mul, [Value::Identity(c), b] | [b, Value::Identity(c)]) => scaled(b, *c),
            (Op::Mul, [Value::Matrix(first), Value::Matrix(then)]) => {
                assert_eq!(then[0].len(), first.len(), "shapes along a path fit");
                let entry =
                    |row: &Vec<u64>, c: usize| row.iter().zip(first).map(|(x, f)| x * f[c]).sum::<u64>() % PRIME;
                Value::Matrix(then.iter().map(|row| (0..first[0].len()).map(|c| entry(row, c)).collect()).collect())
            }
            _ => unreachable!("programs add and multiply only"),
        }
    }
}

/// Returns a number for an entry of a label.
fn number(edge: usize, r: usize, c: usize) -> u64 {
    ((edge as u64 + 3) * 7919 + (r as u64 + 1) * 104_729 + (c as u64 + 1) * 1_299_709) % PRIME
}

fn matrices(graph: &VectorGraph) -> Vec<Value> {
    let size = |v: VertexId| graph.sizes()[v.index()] as usize;
    let values = graph.linear().edges().map(|(e, edge)| match edge.label {
        Label::One => Value::Identity(1),
        Label::MinusOne => Value::Identity(PRIME - 1),
        Label::Const | Label::Var => {
            let row = |r| (0..size(edge.source)).map(|c| number(e.index(), r, c)).collect();
            Value::Matrix((0..size(edge.target)).map(row).collect())
        }
    });
    values.collect()
}

/// Returns the numbers of the scalar graph's edges, which are sorted by target; edges with equal targets are in the
/// given order.
fn scalars(graph: &VectorGraph) -> Vec<Value> {
    let mut values: Vec<(VertexId, usize, Value)> = Vec::new();
    for (e, edge) in graph.linear().edges() {
        for r in 0..graph.sizes()[edge.target.index()] as usize {
            for c in 0..graph.sizes()[edge.source.index()] as usize {
                let value = match edge.label {
                    Label::One => 1,
                    Label::MinusOne => PRIME - 1,
                    Label::Const | Label::Var => number(e.index(), r, c),
                };
                if r == c || matches!(edge.label, Label::Const | Label::Var) {
                    values.push((edge.target, r, Value::Identity(value)));
                }
            }
        }
    }
    values.sort_by_key(|(target, r, _)| (*target, *r));
    values.into_iter().map(|(_, _, value)| value).collect()
}

/// Returns the full Jacobian of a program on matrices.
fn jacobian(graph: &VectorGraph, program: &Program) -> Vec<Vec<u64>> {
    let linear = graph.linear();
    let firsts = |ends: &[VertexId]| {
        let mut firsts = vec![0];
        ends.iter().for_each(|v| firsts.push(firsts[firsts.len() - 1] + graph.sizes()[v.index()] as usize));
        firsts
    };
    let (rows, columns) = (firsts(linear.rows()), firsts(linear.columns()));
    let mut jacobian = vec![vec![0; columns[linear.columns().len()]]; rows[linear.rows().len()]];
    for (entry, value) in program.results().iter().zip(program.evaluate(&matrices(graph), &mut Matrices)) {
        for (r, row) in value.rows(rows[entry.row + 1] - rows[entry.row]).iter().enumerate() {
            jacobian[rows[entry.row] + r][columns[entry.column]..columns[entry.column + 1]].copy_from_slice(row);
        }
    }
    jacobian
}

fn expected(graph: &VectorGraph) -> Vec<Vec<u64>> {
    let scalar = graph.scalars().unwrap();
    let budget = Budget { paths: u64::MAX, ..Budget::default() };
    let program = oracle::run(&scalar, &budget).program.unwrap();
    let mut jacobian = vec![vec![0; scalar.columns().len()]; scalar.rows().len()];
    for (entry, value) in program.results().iter().zip(program.evaluate(&scalars(graph), &mut Matrices)) {
        jacobian[entry.row][entry.column] = value.rows(1)[0][0];
    }
    jacobian
}

/// Returns a graph with sizes of 1 to 3; units join equal sizes only.
fn vector_graph(u: &mut Unstructured<'_>) -> VectorGraph {
    let linear = support::linear(u).unwrap();
    let sizes: Vec<u64> = (0..linear.n_vertices()).map(|_| u.int_in_range(1..=3).unwrap()).collect();
    let edges: Vec<(usize, usize, Label)> = linear
        .edges()
        .map(|(_, edge)| {
            let (i, k) = (edge.source.index(), edge.target.index());
            let unit = matches!(edge.label, Label::One | Label::MinusOne);
            (i, k, if unit && sizes[i] != sizes[k] { Label::Const } else { edge.label })
        })
        .collect();
    let (n_sources, n_sinks) = (linear.sources().len(), linear.sinks().len());
    let linear = LinearGraph::from_edges(n_sources, linear.intermediates().len(), n_sinks, &edges).unwrap();
    VectorGraph::new(linear, &sizes).unwrap()
}

proptest! {
    #![proptest_config(support::config(300, 6))]

    #[test]
    fn programs_compute_the_jacobian_of_the_scalar_graph(bytes in proptest::collection::vec(any::<u8>(), 0..90), choice in any::<usize>()) {
        let graph = vector_graph(&mut Unstructured::new(&bytes));
        prop_assume!(graph.scalars().unwrap().n_edges() < 120);
        let expected = expected(&graph);
        let budget = Budget { evaluations: 500, ..Budget::default() };
        let counting = COUNTINGS[choice % 3];
        let score = Score::ALL[choice % 8];
        let order = vector::order(&graph, &budget, &greedy::Options { counting, ..greedy::Options::new(score) }).unwrap();
        let vertices = vector::run(&graph, &budget, &order).program.unwrap();
        prop_assert_eq!(jacobian(&graph, &vertices), expected.clone());
        let ways = [Ways::Front, Ways::Back, Ways::Mixed][choice / 8 % 3];
        let edge_score =
            [edge_greedy::Score::Markowitz, edge_greedy::Score::FillIn, edge_greedy::Score::Vertex][choice / 32 % 3];
        let options = edge_greedy::Options { ways, score: edge_score, ties: Ties::Lowest, counting };
        let history = vector::history(&graph, &budget, &options).unwrap();
        let edges = vector::run_edges(&graph, &budget, &history).program.unwrap();
        prop_assert_eq!(jacobian(&graph, &edges), expected);
    }

    /// The costs of single steps add up to those of the program.
    #[test]
    fn costs_add_up(bytes in proptest::collection::vec(any::<u8>(), 0..120), seed in any::<u64>()) {
        let graph = vector_graph(&mut Unstructured::new(&bytes));
        let budget = Budget { evaluations: 300, ..Budget::default() };
        for counting in COUNTINGS {
            let options = annealing::Options { counting, objective: Objective::Multiplications, seed };
            let search = vector::anneal(&graph, &budget, &options);
            let mut elimination = Elimination::with_sizes(graph.linear(), graph.sizes());
            let mut sum = 0;
            for &v in &search.order {
                sum += elimination.cost(v, counting);
                elimination.eliminate(v);
            }
            let program = vector::run(&graph, &budget, &search.order).program.unwrap();
            prop_assert_eq!(graph.count(&program, counting).mul, sum);
            prop_assert_eq!(search.cost, Some(sum));
            let parallel = graph.linear().n_edges() - support::merged(graph.linear()).n_edges();
            if parallel == 0 {
                let options = annealing::Options { counting, objective: Objective::Operations, seed };
                let search = vector::anneal(&graph, &budget, &options);
                let counts = graph.count(&vector::run(&graph, &budget, &search.order).program.unwrap(), counting);
                prop_assert_eq!(search.cost, Some(counts.mul + counts.add));
            }
            // By edges: all in-edges of the first vertex backward, the rest forward.
            let mut elimination = EdgeElimination::with_sizes(graph.linear(), graph.sizes());
            let (mut sum, mut history) = (0, Vec::new());
            for (idx, &v) in search.order.iter().enumerate() {
                let steps: Vec<Step> = if idx == 0 {
                    elimination.predecessors(v).map(|i| Step::Edge(i, v, Direction::Back)).collect()
                } else {
                    elimination.successors(v).map(|k| Step::Edge(v, k, Direction::Front)).collect()
                };
                for step in steps {
                    if let Step::Edge(i, j, direction) = step {
                        sum += elimination.cost(i, j, direction, counting);
                    }
                    elimination.step(step);
                    history.push(step);
                }
            }
            let program = vector::run_edges(&graph, &budget, &history).program.unwrap();
            prop_assert_eq!(graph.count(&program, counting).mul, sum);
        }
    }

    /// Scalar graphs are the case of size 1.
    #[test]
    fn size_one_is_a_scalar_graph(bytes in proptest::collection::vec(any::<u8>(), 0..120), choice in any::<usize>()) {
        let linear = support::linear(&mut Unstructured::new(&bytes)).unwrap();
        let graph = VectorGraph::new(linear.clone(), &vec![1; linear.n_vertices()]).unwrap();
        let budget = Budget { evaluations: 300, ..Budget::default() };
        let options = greedy::Options::new(Score::ALL[choice % 8]);
        let order = vector::order(&graph, &budget, &options).unwrap();
        prop_assert_eq!(&order, &greedy::order(&linear, &budget, &options).unwrap());
        let program = vector::run(&graph, &budget, &order).program.unwrap();
        prop_assert_eq!(&program, &vertex::run(&linear, &budget, &order).program.unwrap());
        for counting in COUNTINGS {
            let (vector, scalar) = (graph.count(&program, counting), program.count(counting));
            prop_assert_eq!((vector.mul, vector.add), (scalar.mul, scalar.add));
        }
        let search = vector::anneal(&graph, &budget, &annealing::Options::plain(1));
        prop_assert_eq!(search.order, annealing::order(&linear, &budget, &annealing::Options::plain(1)).order);
    }
}

/// Section 2.5's formulas on a vertex with two arguments and two results, and the order by sizes: a chain of matrices
/// whose middle one is best eliminated last.
#[test]
fn costs_of_section_2_5() {
    let edges = [(0, 2, Var), (1, 2, Var), (2, 3, Var), (2, 4, Var)];
    let graph = VectorGraph::new(LinearGraph::from_edges(2, 1, 2, &edges).unwrap(), &[2, 3, 5, 7, 11]).unwrap();
    let vertices = Elimination::with_sizes(graph.linear(), graph.sizes());
    let edges = EdgeElimination::with_sizes(graph.linear(), graph.sizes());
    let [x, _, v, y, _] = [0, 1, 2, 3, 4].map(VertexId::new);
    assert_eq!(vertices.cost(v, Counting::Plain), 5 * (2 + 3) * (7 + 11));
    assert_eq!(edges.cost(v, y, Direction::Front, Counting::Plain), 7 * 5 * (2 + 3));
    assert_eq!(edges.cost(x, v, Direction::Back, Counting::Plain), 2 * 5 * (7 + 11));

    let chain = LinearGraph::from_edges(1, 2, 1, &[(0, 1, Var), (1, 2, Var), (2, 3, Var)]).unwrap();
    let graph = VectorGraph::new(chain, &[10, 100, 5, 50]).unwrap();
    let count = |order: &[usize]| {
        let order: Vec<VertexId> = order.iter().map(|v| VertexId::new(*v)).collect();
        graph.count(&vector::run(&graph, &Budget::default(), &order).program.unwrap(), Counting::Plain).mul
    };
    assert_eq!((count(&[1, 2]), count(&[2, 1])), (7500, 75_000));
    let search = vector::anneal(&graph, &Budget::default(), &annealing::Options::plain(1));
    assert_eq!(search.cost, Some(7500));
}

#[test]
fn wrong_sizes_are_the_users_errors() {
    let chain = || LinearGraph::from_edges(1, 1, 1, &[(0, 1, Var), (1, 2, Label::One)]).unwrap();
    for sizes in [&[1, 1][..], &[1, 0, 1], &[1, 2, 3], &[1 << 20, 1, 1], &[u64::MAX, 1, 1]] {
        assert!(VectorGraph::new(chain(), sizes).is_err(), "{sizes:?}");
    }
    assert!(VectorGraph::new(chain(), &[1, 2, 2]).is_ok());
}
