//! Conversion of a scalar graph to statements of the array IR.
//!
//! In: a graph whose inputs are elements of variables, and its roots. Out: statements, each a scalar, arguments before
//! users; arrays and tuples are built from scalars at the end.

use crate::unroll::{Tree, Truth};
use chainrule_base::Arena;
use chainrule_graph::{Graph, Node, NodeId};
use chainrule_ir::{Expr, Operands, Size, Stmt, Type, Var, VarId};
use chainrule_ops::{Op, Type as OpType};
use rustc_hash::FxHashMap;

/// Variable and element of each input of a graph.
pub(super) type Sources = FxHashMap<NodeId, (VarId, Vec<usize>)>;

/// Writer of a graph as statements.
pub(super) struct Writer<'a> {
    pub(super) vars: &'a mut Arena<VarId, Var>,
    graph: &'a Graph,
    /// Variable and element of each input.
    sources: &'a Sources,
    pub(super) out: Vec<Stmt>,
    of: FxHashMap<NodeId, VarId>,
    /// Parts of variables that were accessed already.
    parts: FxHashMap<(VarId, usize), VarId>,
    zero: Option<VarId>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(vars: &'a mut Arena<VarId, Var>, graph: &'a Graph, sources: &'a Sources) -> Self {
        let (of, parts) = (FxHashMap::default(), FxHashMap::default());
        Self { vars, graph, sources, out: Vec::new(), of, parts, zero: None }
    }

    fn push(&mut self, ty: Type, expr: Expr) -> VarId {
        let value = match &expr {
            Expr::Size(size) => Some(size.clone()),
            _ => None,
        };
        let var = self.vars.push(Var { ty, name: None, span: None, value });
        self.out.push(Stmt { var, expr, span: None });
        var
    }

    fn int(&mut self, value: i64) -> VarId {
        self.push(Type::Int, Expr::Size(Size::constant(value)))
    }

    /// Emits all nodes below the roots, arguments first.
    pub(super) fn graph(&mut self, roots: &[NodeId]) -> Option<()> {
        let reachable = self.graph.reachable(roots);
        for id in reachable.iter() {
            let var = match self.graph.node(id) {
                Node::Const(c) => self.push(Type::Double, Expr::Real(c)),
                Node::Input(_) => self.element(id)?,
                Node::Apply(op, args) => {
                    let row = op.row();
                    let mut vars = Operands::new();
                    for (arg, ty) in args.iter().zip(row.args).take(op.arity()) {
                        vars.push(self.argument(*arg, *ty)?);
                    }
                    let ty = if op.gives_truth() { Type::Bool } else { Type::Double };
                    self.push(ty, Expr::Op(op, vars))
                }
                Node::External(..) | Node::Derivative(_) => return None,
            };
            self.of.insert(id, var);
        }
        Some(())
    }

    /// Returns the variable of a node as a number or as a truth value.
    fn argument(&mut self, node: NodeId, wanted: OpType) -> Option<VarId> {
        let var = *self.of.get(&node)?;
        let is_truth = self.vars[var].ty == Type::Bool;
        Some(match (is_truth, wanted) {
            (true, OpType::Num) => {
                let (one, zero) = (self.push(Type::Double, Expr::Real(1.0)), self.zero());
                self.push(Type::Double, Expr::op(Op::Select, &[var, one, zero]))
            }
            (false, OpType::Bool) => {
                let zero = self.zero();
                let is_zero = self.push(Type::Bool, Expr::op(Op::Eq, &[var, zero]));
                self.push(Type::Bool, Expr::op(Op::Not, &[is_zero]))
            }
            _ => var,
        })
    }

    fn zero(&mut self) -> VarId {
        match self.zero {
            Some(zero) => zero,
            None => {
                let zero = self.push(Type::Double, Expr::Real(0.0));
                self.zero = Some(zero);
                zero
            }
        }
    }

    /// Emits the access to the element of a variable for an input.
    fn element(&mut self, node: NodeId) -> Option<VarId> {
        let (var, path) = self.sources.get(&node)?;
        let mut at = *var;
        for i in path {
            at = match self.parts.get(&(at, *i)) {
                Some(part) => *part,
                None => {
                    let part = match self.vars[at].ty.clone() {
                        Type::Array(_, element) => {
                            let index = self.int(*i as i64);
                            self.push(*element, Expr::Get { array: at, index, proved: true })
                        }
                        Type::Tuple(fields, _) => self.push(fields.get(*i)?.clone(), Expr::Component(at, *i)),
                        _ => return None,
                    };
                    self.parts.insert((at, *i), part);
                    part
                }
            };
        }
        Some(at)
    }

    /// Builds the value of type `ty` from `tree`.
    pub(super) fn value(&mut self, tree: &Tree, ty: &Type, new: &FxHashMap<NodeId, NodeId>) -> Option<VarId> {
        Some(match (tree, ty) {
            (Tree::Real(node), Type::Double) => self.argument(*new.get(node)?, OpType::Num)?,
            (Tree::Bool(Truth::Open(node)), Type::Bool) => self.argument(*new.get(node)?, OpType::Bool)?,
            (Tree::Bool(Truth::Known(b)), Type::Bool) => self.push(Type::Bool, Expr::Bool(*b)),
            (Tree::Int(i), Type::Int) => self.int(*i),
            (Tree::Many(parts), Type::Array(_, element)) => {
                let vars = parts.iter().map(|p| self.value(p, element, new)).collect::<Option<Vec<_>>>()?;
                self.push(ty.clone(), Expr::Array(vars))
            }
            (Tree::Many(parts), Type::Tuple(fields, _)) => {
                let vars = parts.iter().zip(fields).map(|(p, f)| self.value(p, f, new)).collect::<Option<Vec<_>>>()?;
                self.push(ty.clone(), Expr::Tuple(vars))
            }
            _ => return None,
        })
    }
}
