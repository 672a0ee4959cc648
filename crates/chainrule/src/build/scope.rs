//! Graphs of expressions, each shared by the expressions that were created in it.
//!
//! Without an explicit [`Scope`], variables are created in the thread's current graph, which lives as long as any of
//! its expressions: a program that drops its expressions releases their memory.

use super::{Expr, Matrix, Vector};
use chainrule_graph::{Graph, NodeId, Semantics};
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Graph with the nodes that were copied into it from others.
pub(crate) struct Session {
    graph: Mutex<Graph>,
    /// Copies of the nodes of each other graph, by its address. The graph is kept alive, so the address is not reused.
    adopted: Mutex<FxHashMap<usize, Adopted>>,
}

#[derive(Default)]
struct Adopted {
    /// Replacement of each input of the other graph, by its index.
    inputs: Vec<NodeId>,
    /// Earlier results.
    copies: FxHashMap<NodeId, NodeId>,
    origin: Option<Arc<Session>>,
}

impl Session {
    fn new(semantics: Semantics) -> Arc<Self> {
        Arc::new(Self { graph: Mutex::new(Graph::new(semantics)), adopted: Mutex::default() })
    }

    /// Returns the graph. A panic during a lock cannot have corrupted it: nodes are only added.
    pub(crate) fn graph(&self) -> MutexGuard<'_, Graph> {
        self.graph.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the node of this graph for `expr`: its own, or a copy with all its dependences. Linear in the
    /// dependences of `expr`, except for an expression of this graph or one that was copied before.
    pub(crate) fn adopt(self: &Arc<Self>, expr: &Expr) -> NodeId {
        if Arc::ptr_eq(self, &expr.session) {
            return expr.id;
        }
        let mut adopted = self.adopted.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = adopted.entry(Arc::as_ptr(&expr.session) as usize).or_default();
        entry.origin.get_or_insert_with(|| expr.session.clone());
        if let Some(copy) = entry.copies.get(&expr.id) {
            return *copy;
        }
        // Two graphs are never locked at once: the needed nodes are first copied out of the other one.
        let (other, roots) = expr.session.graph().extract(&[expr.id]);
        let mut graph = self.graph();
        for (name, _) in &other.inputs()[entry.inputs.len()..] {
            entry.inputs.push(graph.input(name.clone()));
        }
        let copy = graph.import(&other, &roots, &entry.inputs).expect("every input has its node")[0];
        entry.copies.insert(expr.id, copy);
        copy
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({} nodes)", self.graph().len())
    }
}

thread_local! {
    static CURRENT: RefCell<Weak<Session>> = const { RefCell::new(Weak::new()) };
}

fn current() -> Arc<Session> {
    CURRENT.with_borrow_mut(|current| {
        current.upgrade().unwrap_or_else(|| {
            let session = Session::new(Semantics::default());
            *current = Arc::downgrade(&session);
            session
        })
    })
}

/// Returns a variable of the thread's current graph.
///
/// ```
/// let x = chainrule::var("x");
/// assert_eq!((&x + 1.0).to_string(), "x + 1.0");
/// ```
#[must_use]
pub fn var(name: &str) -> Expr {
    Scope { session: current() }.var(name)
}

/// Returns a vector of `n` variables, `name[0]` to `name[n-1]`.
#[must_use]
pub fn vars(name: &str, n: usize) -> Vector {
    Scope { session: current() }.vars(name, n)
}

/// Returns a matrix of variables, `name[0][0]` and so on.
#[must_use]
pub fn matrix(name: &str, rows: usize, cols: usize) -> Matrix {
    Scope { session: current() }.matrix(name, rows, cols)
}

/// Separate graph, with its own semantics.
///
/// ```
/// use chainrule::{Scope, Semantics};
/// let scope = Scope::new(Semantics::Strict);
/// let x = scope.var("x");
/// assert_eq!((&x * 0.0).to_string(), "0.0 * x"); // x may be infinite or NaN
/// ```
#[derive(Clone, Debug)]
pub struct Scope {
    session: Arc<Session>,
}

impl Scope {
    /// Returns an empty graph.
    #[must_use]
    pub fn new(semantics: Semantics) -> Self {
        Self { session: Session::new(semantics) }
    }

    /// Returns a variable.
    #[must_use]
    pub fn var(&self, name: &str) -> Expr {
        let id = self.session.graph().input(name);
        Expr { session: self.session.clone(), id }
    }

    /// Returns a number.
    #[must_use]
    pub fn constant(&self, c: f64) -> Expr {
        let id = self.session.graph().constant(c);
        Expr { session: self.session.clone(), id }
    }

    /// Returns a vector of `n` variables.
    #[must_use]
    pub fn vars(&self, name: &str, n: usize) -> Vector {
        Vector::new((0..n).map(|i| self.var(&format!("{name}[{i}]"))).collect()).named(name)
    }

    /// Returns a matrix of variables.
    #[must_use]
    pub fn matrix(&self, name: &str, rows: usize, cols: usize) -> Matrix {
        let row = |i: usize| (0..cols).map(|j| self.var(&format!("{name}[{i}][{j}]"))).collect();
        Matrix::new((0..rows).map(row).collect()).named(name)
    }
}
