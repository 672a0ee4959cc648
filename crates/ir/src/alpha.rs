//! Alpha equivalence: equality of functions up to the names of their variables.

use crate::{Block, EqualSizes, Expr, Function, Requirement, Size, StateLoop, Stmt, Type, VarId, WhileLoop};
use chainrule_base::{Arena, Id};

/// Returns whether `a` and `b` are equal up to names, numbers of variables, source spans, and the messages of
/// requirements. Reals are compared bit by bit; types of statements with one size for all that are required to be
/// equal. Linear.
#[must_use]
pub fn alpha_equal(a: &Function, b: &Function) -> bool {
    let equal = [EqualSizes::default(), EqualSizes::default()];
    let (to_b, to_a) = (Arena::filled(a.vars.len(), None), Arena::filled(b.vars.len(), None));
    let mut pairs = Pairs { a, b, to_b, to_a, equal };
    a.name == b.name && pairs.functions()
}

struct Pairs<'a> {
    a: &'a Function,
    b: &'a Function,
    to_b: Arena<VarId, Option<VarId>>,
    to_a: Arena<VarId, Option<VarId>>,
    // Of either function; none before its requirements are compared.
    equal: [EqualSizes; 2],
}

impl Pairs<'_> {
    fn functions(&mut self) -> bool {
        let (a, b) = (self.a, self.b);
        let same = self.bind_all(&a.sizes, &b.sizes)
            && self.bind_all(&a.params, &b.params)
            && a.params.iter().zip(&b.params).all(|(x, y)| self.types(*x, *y))
            && a.requires.len() == b.requires.len()
            && a.requires.iter().zip(&b.requires).all(|(x, y)| self.requirements(x, y));
        self.equal = [a.equal_sizes(), b.equal_sizes()];
        same && self.blocks(&a.body, &b.body)
    }

    fn bind(&mut self, x: VarId, y: VarId) -> bool {
        if x.index() >= self.to_b.len() || y.index() >= self.to_a.len() {
            return false;
        }
        if self.to_b[x].is_some() || self.to_a[y].is_some() {
            return false;
        }
        (self.to_b[x], self.to_a[y]) = (Some(y), Some(x));
        true
    }

    fn bind_all(&mut self, xs: &[VarId], ys: &[VarId]) -> bool {
        xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| self.bind(*x, *y))
    }

    fn same(&self, x: VarId, y: VarId) -> bool {
        self.to_b.get(x).is_some_and(|to| *to == Some(y))
    }

    fn all_same(&self, xs: &[VarId], ys: &[VarId]) -> bool {
        xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| self.same(*x, *y))
    }

    fn sizes(&self, x: &Size, y: &Size) -> bool {
        match (x.as_constant(), x.as_var()) {
            (Some(x), _) => return y.as_constant() == Some(x),
            (_, Some(x)) => return y.as_var().is_some_and(|y| self.same(x, y)),
            _ => {}
        }
        let bound = |v: &VarId| self.to_b.get(*v).copied().flatten().is_some();
        x.vars().iter().all(bound) && x.substitute(|v| Size::var(self.to_b[v].unwrap_or(v))) == *y
    }

    fn extents(&self, x: &Size, y: &Size) -> bool {
        let [of_a, of_b] = &self.equal;
        self.sizes(x, y) || !of_a.is_empty() && self.sizes(&of_a.canonical(x), &of_b.canonical(y))
    }

    fn types(&self, x: VarId, y: VarId) -> bool {
        fn go(pairs: &Pairs<'_>, x: &Type, y: &Type) -> bool {
            match (x, y) {
                (Type::Array(n, x), Type::Array(m, y)) => pairs.extents(n, m) && go(pairs, x, y),
                (Type::Tuple(xs, a), Type::Tuple(ys, b)) => {
                    a == b && xs.len() == ys.len() && xs.iter().zip(ys).all(|(x, y)| go(pairs, x, y))
                }
                _ => x == y,
            }
        }
        go(self, self.a.ty(x), self.b.ty(y))
    }

    fn requirements(&self, x: &Requirement, y: &Requirement) -> bool {
        x.exactly_zero == y.exactly_zero && self.sizes(&x.size, &y.size)
    }

    fn blocks(&mut self, x: &Block, y: &Block) -> bool {
        x.stmts.len() == y.stmts.len()
            && x.stmts.iter().zip(&y.stmts).all(|(x, y)| self.stmts(x, y))
            && self.same(x.result, y.result)
    }

    fn stmts(&mut self, x: &Stmt, y: &Stmt) -> bool {
        self.exprs(&x.expr, &y.expr) && self.bind(x.var, y.var) && self.types(x.var, y.var)
    }

    // Operands first, then binders, then blocks, which see them.
    fn exprs(&mut self, x: &Expr, y: &Expr) -> bool {
        let heads = match (x, y) {
            (Expr::Real(x), Expr::Real(y)) => x.to_bits() == y.to_bits(),
            (Expr::Bool(x), Expr::Bool(y)) => x == y,
            (Expr::Op(f, xs), Expr::Op(g, ys)) => f == g && self.all_same(xs, ys),
            (Expr::ToReal(x), Expr::ToReal(y)) | (Expr::ToInt(x), Expr::ToInt(y)) => self.same(*x, *y),
            (Expr::Size(x), Expr::Size(y))
            | (Expr::Build { size: x, .. }, Expr::Build { size: y, .. })
            | (Expr::Sum { count: x, .. }, Expr::Sum { count: y, .. }) => self.sizes(x, y),
            (Expr::Fold(StateLoop { count: m, init: x, .. }), Expr::Fold(StateLoop { count: n, init: y, .. }))
            | (Expr::Loop(StateLoop { count: m, init: x, .. }), Expr::Loop(StateLoop { count: n, init: y, .. }))
            | (Expr::While(WhileLoop { limit: m, init: x, .. }), Expr::While(WhileLoop { limit: n, init: y, .. })) => {
                self.sizes(m, n) && self.same(*x, *y)
            }
            (Expr::If { condition: x, .. }, Expr::If { condition: y, .. }) => self.same(*x, *y),
            (Expr::Get { array: a, index: i, proved: p }, Expr::Get { array: b, index: j, proved: q }) => {
                p == q && self.same(*a, *b) && self.same(*i, *j)
            }
            (Expr::OneHot { index: i, value: a, proved: p }, Expr::OneHot { index: j, value: b, proved: q }) => {
                p == q && self.same(*i, *j) && self.same(*a, *b)
            }
            (Expr::Zero, Expr::Zero) => true,
            (Expr::Plus(a, b), Expr::Plus(c, d)) => self.same(*a, *c) && self.same(*b, *d),
            (Expr::Array(xs), Expr::Array(ys)) | (Expr::Tuple(xs), Expr::Tuple(ys)) => self.all_same(xs, ys),
            (Expr::Component(x, i), Expr::Component(y, j)) => i == j && self.same(*x, *y),
            (Expr::Jvp { at: a, along: c, .. }, Expr::Jvp { at: b, along: d, .. }) => {
                self.all_same(a, b) && self.all_same(c, d)
            }
            (Expr::Vjp { at: a, cotangent: c, .. }, Expr::Vjp { at: b, cotangent: d, .. }) => {
                self.all_same(a, b) && self.same(*c, *d)
            }
            (Expr::Custom(a), Expr::Custom(b)) => a.promised == b.promised && self.same(a.at, b.at),
            (Expr::Again { me: f, at: a }, Expr::Again { me: g, at: b }) => self.same(*f, *g) && self.same(*a, *b),
            _ => false,
        };
        if x.is_leaf() {
            return heads;
        }
        let (bound_in_x, bound_in_y) = (x.binders(), y.binders());
        let (blocks_of_x, blocks_of_y) = (x.blocks(), y.blocks());
        heads
            && self.bind_all(&bound_in_x, &bound_in_y)
            && bound_in_x.iter().zip(&bound_in_y).all(|(x, y)| self.types(*x, *y))
            && blocks_of_x.len() == blocks_of_y.len()
            && blocks_of_x.into_iter().zip(blocks_of_y).all(|(x, y)| self.blocks(x, y))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;
    use chainrule_ops::Op;

    fn function(names: [&str; 2], constant: f64, op: Op, extra: bool) -> Function {
        let mut b = Builder::new("f");
        if extra {
            b.fresh(Type::Bool);
        }
        let n = b.size_param(names[0]);
        let n = b.size_of(n);
        let v = b.param(names[1], Type::array(n.clone(), Type::Double));
        let result = b.build(n, |b, i| {
            let (x, c) = (b.get(v, i), b.real(constant));
            b.op(op, &[x, c])
        });
        b.finish(result)
    }

    #[test]
    fn names_do_not_count_and_the_rest_does() {
        let f = function(["n", "v"], 0.0, Op::Add, false);
        assert!(alpha_equal(&f, &function(["m", "w"], 0.0, Op::Add, true)));
        assert!(!alpha_equal(&f, &function(["n", "v"], -0.0, Op::Add, false)));
        assert!(!alpha_equal(&f, &function(["n", "v"], 0.0, Op::Sub, false)));
        let nan = function(["n", "v"], f64::NAN, Op::Add, false);
        assert!(alpha_equal(&nan, &nan));
        let mut other = f.clone();
        let Expr::Build { body, .. } = &mut other.body.stmts[0].expr else { panic!("a build") };
        let Expr::Op(_, args) = &mut body.stmts[2].expr else { panic!("an operator") };
        args.swap(0, 1);
        assert!(!alpha_equal(&f, &other));
    }
}
