//! The type table of inference: types without sizes, with unification variables.
//!
//! Types are nodes with shared parts. A variable is bound by linking its node to another one. Variables have the
//! nesting of the generalised `let` in which they arose (their level, after Rémy), a [`Class`], and their pending
//! constraints. Every traversal is bounded by [`MAX_TYPE_NODES`] and [`MAX_TYPE_DEPTH`], because shared parts can
//! represent exponentially large types.

use chainrule_base::{Arena, Name, define_id};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt::Write;
use std::sync::Arc;

define_id! {
    /// A type in a [`Table`].
    pub struct TyId = "t";
}

/// Maximum number of nodes of an expanded type that inference traverses.
pub const MAX_TYPE_NODES: u32 = 20_000;
/// Maximum depth of a type that inference traverses.
pub const MAX_TYPE_DEPTH: u32 = 300;

/// Class of the types that a variable may be; each is stricter than the previous one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Any type, including functions.
    Any,
    /// Any type except functions: elements of arrays and tuples.
    Data,
    /// `Int` or `Double`.
    Num,
}

/// Whether a variable is the type of a number literal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Literal {
    /// Not known: the position of an argument.
    Open,
    /// Not a literal.
    No,
    /// A number literal is among the values of the type: the start of a sum, a branch of an `if`.
    Mixed,
    /// Only number literals, which take the type of their context.
    Pure,
}

/// A node.
#[derive(Clone, Debug)]
pub enum Node {
    /// A bound variable.
    Link(TyId),
    /// A variable.
    Var(Variable),
    /// `Double`
    Double,
    /// `Int`
    Int,
    /// `Bool`
    Bool,
    /// `[]element`
    Array(TyId),
    /// A tuple, or a record if it has names.
    Tuple(Arc<[TyId]>, Option<Arc<[Name]>>),
    /// A function.
    Fun(TyId, TyId),
    /// The type of a reported error; equal to every type.
    Error,
}

/// An unbound variable.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Class.
    pub class: Class,
    /// Whether it is the type of number literals.
    pub literal: Literal,
    /// Number of enclosing generalised `let`s; `u32::MAX` once it is generalised itself.
    pub level: u32,
    /// Constraints to examine when it is bound.
    pub watchers: Vec<usize>,
    /// Upper bound of the length of links that lead here, for union by rank.
    pub rank: u8,
}

/// Reason why two types are not equal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// They differ.
    Different,
    /// One would contain itself.
    Occurs,
    /// A function in place of data.
    FunctionInData,
    /// Another type in place of a number.
    NotNumber,
    /// They are too large to be traversed.
    TooLarge,
}

/// All types of a program.
#[derive(Clone, Debug)]
pub struct Table {
    nodes: Arena<TyId, Node>,
    /// `Double`
    pub double: TyId,
    /// `Int`
    pub int: TyId,
    /// `Bool`
    pub bool: TyId,
    /// Type of errors.
    pub error: TyId,
    /// Level of new variables.
    pub level: u32,
    /// Constraints with newly bound variables.
    pub woken: Vec<usize>,
}

impl Default for Table {
    fn default() -> Self {
        let mut nodes = Arena::new();
        let double = nodes.push(Node::Double);
        let int = nodes.push(Node::Int);
        let bool = nodes.push(Node::Bool);
        let error = nodes.push(Node::Error);
        Self { nodes, double, int, bool, error, level: 0, woken: Vec::new() }
    }
}

/// Slot of a type in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// A function type is in parentheses.
    Atom,
    Any,
}

impl Table {
    /// Returns the number of nodes.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Adds a variable.
    pub fn var(&mut self, class: Class) -> TyId {
        self.var_of(class, Literal::No)
    }

    /// Adds a variable with this literal state.
    pub fn var_of(&mut self, class: Class, literal: Literal) -> TyId {
        let level = self.level;
        self.nodes.push(Node::Var(Variable { class, literal, level, watchers: Vec::new(), rank: 0 }))
    }

    /// Adds `[]element`; the caller ensures that `element` is data.
    pub fn array(&mut self, element: TyId) -> TyId {
        self.nodes.push(Node::Array(element))
    }

    /// Adds a tuple or a record.
    pub fn tuple(&mut self, fields: Vec<TyId>, names: Option<Arc<[Name]>>) -> TyId {
        self.nodes.push(Node::Tuple(fields.into(), names))
    }

    /// Adds `param => result`.
    pub fn fun(&mut self, param: TyId, result: TyId) -> TyId {
        self.nodes.push(Node::Fun(param, result))
    }

    /// Adds `params[0] => params[1] => ... => result`.
    pub fn funs(&mut self, params: &[TyId], result: TyId) -> TyId {
        params.iter().rev().fold(result, |result, param| self.fun(*param, result))
    }

    /// Returns the representative of `ty`, with path compression.
    pub fn find(&mut self, ty: TyId) -> TyId {
        let root = self.root(ty);
        let mut at = ty;
        while let Node::Link(next) = self.nodes[at] {
            self.nodes[at] = Node::Link(root);
            at = next;
        }
        root
    }

    /// As [`Self::find`], without path compression.
    #[must_use]
    pub fn root(&self, mut ty: TyId) -> TyId {
        while let Node::Link(next) = self.nodes[ty] {
            ty = next;
        }
        ty
    }

    /// Returns the node of `ty`.
    #[must_use]
    pub fn node(&self, ty: TyId) -> &Node {
        &self.nodes[self.root(ty)]
    }

    /// Returns the variable of `ty`, if it is one.
    #[must_use]
    pub fn as_var(&self, ty: TyId) -> Option<&Variable> {
        match self.node(ty) {
            Node::Var(variable) => Some(variable),
            _ => None,
        }
    }

    /// Returns the variable of `ty` for modification, if it is one.
    pub fn as_var_mut(&mut self, ty: TyId) -> Option<&mut Variable> {
        let root = self.find(ty);
        match &mut self.nodes[root] {
            Node::Var(variable) => Some(variable),
            _ => None,
        }
    }

    /// Returns whether `ty` is the node `other`, such as `Double`.
    #[must_use]
    pub fn is(&self, ty: TyId, other: TyId) -> bool {
        self.root(ty) == self.root(other)
            || matches!(
                (self.node(ty), self.node(other)),
                (Node::Double, Node::Double) | (Node::Int, Node::Int) | (Node::Bool, Node::Bool)
            )
    }

    /// Requires `ty` to be of `class`.
    pub fn restrict(&mut self, ty: TyId, class: Class) -> Result<(), Mismatch> {
        let root = self.find(ty);
        match (&mut self.nodes[root], class) {
            (Node::Var(variable), _) => {
                if variable.class < class {
                    variable.class = class;
                    self.woken.extend(&variable.watchers);
                }
                Ok(())
            }
            (Node::Fun(..), Class::Data) => Err(Mismatch::FunctionInData),
            (_, Class::Any | Class::Data) | (Node::Double | Node::Int | Node::Error, Class::Num) => Ok(()),
            (_, Class::Num) => Err(Mismatch::NotNumber),
        }
    }

    /// Unifies `a` and `b`.
    pub fn unify(&mut self, a: TyId, b: TyId) -> Result<(), Mismatch> {
        let mut fuel = MAX_TYPE_NODES;
        self.unify_within(a, b, &mut fuel, 0)
    }

    fn unify_within(&mut self, a: TyId, b: TyId, fuel: &mut u32, depth: u32) -> Result<(), Mismatch> {
        let (a, b) = (self.find(a), self.find(b));
        if a == b {
            return Ok(());
        }
        *fuel = fuel.checked_sub(1).ok_or(Mismatch::TooLarge)?;
        if depth > MAX_TYPE_DEPTH {
            return Err(Mismatch::TooLarge);
        }
        let is_var = |node: &Node| matches!(node, Node::Var(_));
        match (is_var(&self.nodes[a]), is_var(&self.nodes[b])) {
            (true, true) => {
                self.merge(a, b);
                return Ok(());
            }
            (true, false) if !matches!(self.nodes[b], Node::Error) => return self.bind(a, b),
            (false, true) if !matches!(self.nodes[a], Node::Error) => return self.bind(b, a),
            _ => {}
        }
        match (self.nodes[a].clone(), self.nodes[b].clone()) {
            (Node::Error, _) | (_, Node::Error) => Ok(()),
            (Node::Double, Node::Double) | (Node::Int, Node::Int) | (Node::Bool, Node::Bool) => Ok(()),
            (Node::Array(x), Node::Array(y)) => self.unify_within(x, y, fuel, depth + 1),
            (Node::Tuple(xs, xn), Node::Tuple(ys, yn)) if xs.len() == ys.len() && xn == yn => {
                for (x, y) in xs.iter().zip(ys.iter()) {
                    self.unify_within(*x, *y, fuel, depth + 1)?;
                }
                Ok(())
            }
            (Node::Fun(p, r), Node::Fun(q, s)) => {
                self.unify_within(p, q, fuel, depth + 1)?;
                self.unify_within(r, s, fuel, depth + 1)
            }
            _ => Err(Mismatch::Different),
        }
    }

    /// Merges two variables. A constraint on both is in both lists of watchers, so that waking the shorter one
    /// suffices, unless the merged variable is stricter, or becomes a number literal.
    fn merge(&mut self, a: TyId, b: TyId) {
        let take = |node: &mut Node| match std::mem::replace(node, Node::Error) {
            Node::Var(variable) => variable,
            _ => Variable { class: Class::Any, literal: Literal::No, level: 0, watchers: Vec::new(), rank: 0 },
        };
        let (va, vb) = (take(&mut self.nodes[a]), take(&mut self.nodes[b]));
        let (a, b) = if va.rank >= vb.rank { (a, b) } else { (b, a) };
        let rank = va.rank.max(vb.rank).saturating_add(u8::from(va.rank == vb.rank));
        let (mut long, mut short) = if va.watchers.len() >= vb.watchers.len() { (va, vb) } else { (vb, va) };
        // Woken constraints register themselves again; duplicates are removed, or the lists would grow exponentially.
        short.watchers.sort_unstable();
        short.watchers.dedup();
        self.woken.append(&mut short.watchers);
        let literal = match (long.literal, short.literal) {
            (Literal::Open, other) | (other, Literal::Open) => other,
            (x, y) if x == y => x,
            _ => Literal::Mixed,
        };
        if long.class < short.class || long.literal != literal {
            self.woken.extend(&long.watchers);
        }
        long.literal = literal;
        long.class = long.class.max(short.class);
        long.level = long.level.min(short.level);
        long.rank = rank;
        self.nodes[b] = Node::Link(a);
        self.nodes[a] = Node::Var(long);
    }

    fn bind(&mut self, var: TyId, ty: TyId) -> Result<(), Mismatch> {
        let Some((class, level)) = self.as_var(var).map(|v| (v.class, v.level)) else { return Ok(()) };
        self.restrict(ty, class)?;
        let mut fuel = MAX_TYPE_NODES;
        self.adjust(var, level, ty, &mut fuel, 0)?;
        if let Node::Var(mut variable) = std::mem::replace(&mut self.nodes[var], Node::Link(ty)) {
            variable.watchers.sort_unstable();
            variable.watchers.dedup();
            self.woken.append(&mut variable.watchers);
        }
        Ok(())
    }

    /// Checks that `var` does not occur in `ty`, and lowers the levels of the variables of `ty` to at most `level`.
    fn adjust(&mut self, var: TyId, level: u32, ty: TyId, fuel: &mut u32, depth: u32) -> Result<(), Mismatch> {
        let ty = self.find(ty);
        *fuel = fuel.checked_sub(1).ok_or(Mismatch::TooLarge)?;
        if depth > MAX_TYPE_DEPTH {
            return Err(Mismatch::TooLarge);
        }
        if ty == var {
            return Err(Mismatch::Occurs);
        }
        match &mut self.nodes[ty] {
            Node::Var(variable) => {
                variable.level = variable.level.min(level);
                Ok(())
            }
            Node::Array(element) => {
                let element = *element;
                self.adjust(var, level, element, fuel, depth + 1)
            }
            Node::Tuple(fields, _) => {
                let fields = fields.clone();
                fields.iter().try_for_each(|f| self.adjust(var, level, *f, fuel, depth + 1))
            }
            Node::Fun(param, result) => {
                let (param, result) = (*param, *result);
                self.adjust(var, level, param, fuel, depth + 1)?;
                self.adjust(var, level, result, fuel, depth + 1)
            }
            _ => Ok(()),
        }
    }

    /// Returns the variables in `ty`, in the order of the type's text; `None` if it is too large.
    #[must_use]
    pub fn vars_of(&self, ty: TyId) -> Option<Vec<TyId>> {
        let (mut vars, mut stack, mut fuel) = (Vec::new(), vec![ty], MAX_TYPE_NODES);
        while let Some(ty) = stack.pop() {
            fuel = fuel.checked_sub(1)?;
            let root = self.root(ty);
            match &self.nodes[root] {
                Node::Var(_) if !vars.contains(&root) => vars.push(root),
                Node::Array(element) => stack.push(*element),
                Node::Tuple(fields, _) => stack.extend(fields.iter().rev()),
                Node::Fun(param, result) => stack.extend([*result, *param]),
                _ => {}
            }
        }
        Some(vars)
    }

    /// Returns `ty` with each variable in `map` replaced; `Err` if it is too large.
    pub fn substitute(&mut self, ty: TyId, map: &impl Fn(TyId) -> Option<TyId>) -> Result<TyId, Mismatch> {
        let mut fuel = MAX_TYPE_NODES;
        self.substitute_within(ty, map, &mut fuel, 0)
    }

    fn substitute_within(
        &mut self,
        ty: TyId,
        map: &impl Fn(TyId) -> Option<TyId>,
        fuel: &mut u32,
        depth: u32,
    ) -> Result<TyId, Mismatch> {
        let ty = self.find(ty);
        *fuel = fuel.checked_sub(1).ok_or(Mismatch::TooLarge)?;
        if depth > MAX_TYPE_DEPTH {
            return Err(Mismatch::TooLarge);
        }
        match self.nodes[ty].clone() {
            Node::Var(_) => Ok(map(ty).unwrap_or(ty)),
            Node::Array(element) => {
                let new = self.substitute_within(element, map, fuel, depth + 1)?;
                Ok(if new == element { ty } else { self.array(new) })
            }
            Node::Tuple(fields, names) => {
                let new: Vec<TyId> = fields
                    .iter()
                    .map(|f| self.substitute_within(*f, map, fuel, depth + 1))
                    .collect::<Result<_, _>>()?;
                Ok(if new[..] == fields[..] { ty } else { self.tuple(new, names) })
            }
            Node::Fun(param, result) => {
                let (p, r) = (
                    self.substitute_within(param, map, fuel, depth + 1)?,
                    self.substitute_within(result, map, fuel, depth + 1)?,
                );
                Ok(if (p, r) == (param, result) { ty } else { self.fun(p, r) })
            }
            _ => Ok(ty),
        }
    }

    /// Returns whether `ty` is a function.
    #[must_use]
    pub fn is_function(&self, ty: TyId) -> bool {
        matches!(self.nodes[self.root(ty)], Node::Fun(..))
    }

    /// Returns whether neither the arguments of `ty` nor its data contain functions.
    #[must_use]
    pub fn is_first_order(&self, mut ty: TyId) -> bool {
        let mut stack = Vec::new();
        while let Node::Fun(param, result) = &self.nodes[self.root(ty)] {
            stack.push(*param);
            ty = *result;
        }
        stack.push(ty);
        // Types share parts.
        let mut seen = FxHashSet::default();
        while let Some(ty) = stack.pop() {
            let root = self.root(ty);
            match &self.nodes[root] {
                Node::Fun(..) => return false,
                _ if !seen.insert(root) => {}
                Node::Array(element) => stack.push(*element),
                Node::Tuple(fields, _) => stack.extend(fields.iter()),
                _ => {}
            }
        }
        true
    }

    /// Returns the type in the syntax of F~; variables are called `a`, `b`, ... in the order of `names`.
    pub fn show(&self, ty: TyId, names: &mut TypeNames) -> String {
        let mut out = String::new();
        let mut fuel = 200;
        self.show_within(ty, names, Slot::Any, &mut fuel, 0, &mut out);
        out
    }

    fn show_within(&self, ty: TyId, names: &mut TypeNames, slot: Slot, fuel: &mut u32, depth: u32, out: &mut String) {
        let root = self.root(ty);
        if *fuel == 0 || depth > 60 {
            out.push_str("...");
            return;
        }
        *fuel -= 1;
        match &self.nodes[root] {
            Node::Link(_) => {}
            Node::Var(_) => out.push_str(&names.name(root)),
            Node::Double => out.push_str("Double"),
            Node::Int => out.push_str("Int"),
            Node::Bool => out.push_str("Bool"),
            Node::Error => out.push('?'),
            Node::Array(element) => {
                out.push_str("[]");
                self.show_within(*element, names, Slot::Atom, fuel, depth + 1, out);
            }
            Node::Tuple(fields, field_names) => {
                out.push_str(if field_names.is_some() { "{ " } else { "(" });
                for (k, field) in fields.iter().enumerate() {
                    if k > 0 {
                        out.push_str(", ");
                    }
                    if let Some(name) = field_names.as_ref().and_then(|n| n.get(k)) {
                        let _ = write!(out, "{name} : ");
                    }
                    self.show_within(*field, names, Slot::Any, fuel, depth + 1, out);
                }
                out.push_str(if field_names.is_some() { " }" } else { ")" });
            }
            Node::Fun(param, result) => {
                if slot == Slot::Atom {
                    out.push('(');
                }
                self.show_within(*param, names, Slot::Atom, fuel, depth + 1, out);
                out.push_str(" => ");
                self.show_within(*result, names, Slot::Any, fuel, depth + 1, out);
                if slot == Slot::Atom {
                    out.push(')');
                }
            }
        }
    }
}

/// Names of type variables in one message or one printed type.
#[derive(Default)]
pub struct TypeNames {
    given: FxHashMap<TyId, usize>,
    order: Vec<TyId>,
}

impl TypeNames {
    fn name(&mut self, var: TyId) -> String {
        let order = &mut self.order;
        let k = *self.given.entry(var).or_insert_with(|| {
            order.push(var);
            order.len() - 1
        });
        let letter = char::from(b'a' + u8::try_from(k % 26).unwrap_or(0));
        if k < 26 { letter.to_string() } else { format!("{letter}{}", k / 26) }
    }

    /// Returns the variables named so far, in the order of their names, with their names.
    pub fn named(&self) -> impl Iterator<Item = (TyId, String)> {
        self.order.iter().enumerate().map(|(k, var)| {
            let letter = char::from(b'a' + u8::try_from(k % 26).unwrap_or(0));
            (*var, if k < 26 { letter.to_string() } else { format!("{letter}{}", k / 26) })
        })
    }
}
