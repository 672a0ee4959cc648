//! Congruent leaves: doubles and truth values in tuples, arrays and loop-carried states that are always equal.
//!
//! A dual number of a dual number has four leaves, of which two are the first derivative if both directions are the
//! same. A derivative of order k therefore has 2^k leaves, of which k + 1 differ. Straight-line code shares equal
//! computations; here the same holds for leaves that pass through an array or a state.
//!
//! Source: Alpern, Wegman and Zadeck, *Detecting equality of variables in programs* (1988): leaves of a state whose
//! initial values are equal are assumed equal, and are split until the assumption reproduces itself.
//!
//! In: a block. Out: a [`Value`] for each variable that is bound in it. Holds: two leaves of one class are computed by
//! the same operations from equal operands, so they are equal bit for bit.

use chainrule_base::{Arena, Id};
use chainrule_ir::{Block, Expr, Operands, Size, StateLoop, Type, Var, VarId, WhileLoop};
use chainrule_ops::Op;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Class of equal leaves. That of a leaf inside of an array stands for the array of these leaves.
pub(crate) type Class = u32;

/// Classes of the leaves of a variable, in the shape of its type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Value {
    /// Number or truth value.
    Leaf(Class),
    /// Array: the classes of its elements.
    Array(Rc<Self>),
    /// Tuple: the classes of its components.
    Tuple(Rc<[Self]>),
}

/// Maximum number of passes over a loop to find the congruent leaves of its state. Beyond it, no two are congruent.
const MAX_PASSES: usize = 64;

/// Operation that computes a leaf.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Head {
    Real(u64),
    Size(Size),
    /// Zero of an array with these extents, of the outermost dimension first.
    Zero(Vec<Size>),
    Op(Op),
    ToReal,
    ToInt,
    Get(bool),
    Plus,
    OneHot(bool),
    If,
    Array,
    Build(Size),
    Sum(Size),
    /// A loop with a state and this number of steps, from the leaves of its initial state, of its condition if it has
    /// one, and of its state after a step.
    Steps(Size),
    /// Leaf of the last state of a loop.
    Last,
    /// Leaf of the elements that a loop makes.
    Elements,
    /// Leaf of the sum that a loop makes.
    Terms,
    /// Index of a loop in so many others.
    Index(usize),
    /// This leaf of the state of a loop in so many others.
    State(usize, usize),
    /// This leaf of a variable about which nothing is known.
    Leaf(VarId, usize),
}

/// Known facts about a class.
#[derive(Clone, Default)]
struct Fact {
    /// Number of loops, outermost first, on whose indices and states the leaf may depend.
    depth: usize,
    /// Length of the array of these leaves.
    length: Option<Size>,
    /// Class of every element of the array of these leaves, if that is one.
    element: Option<Class>,
    /// Array and index, if the leaf is an element.
    read: Option<(Class, Class)>,
}

/// Classes of the leaves of the variables of one block.
#[derive(Default)]
pub(crate) struct Values {
    of: FxHashMap<VarId, Value>,
    classes: FxHashMap<(Head, Operands), Class>,
    facts: Vec<Fact>,
    /// First integer of each class, which stands for the others in sizes.
    integers: FxHashMap<Class, VarId>,
    /// Number of loops around the statement that is visited.
    depth: usize,
}

impl Values {
    /// Finds the classes of all variables bound in `block`.
    pub(crate) fn of(vars: &Arena<VarId, Var>, block: &Block) -> Self {
        let mut values = Self::default();
        values.block(vars, block);
        values
    }

    /// Returns the value of a variable that is bound in the block.
    pub(crate) fn get(&self, var: VarId) -> Option<&Value> {
        self.of.get(&var)
    }

    /// Returns the class of leaves that are computed by `head`, and depend on nothing but `operands` and the indices
    /// and states of `depth` loops.
    fn class(&mut self, head: Head, operands: &[Class], depth: usize) -> Class {
        let facts = &mut self.facts;
        let operands: Operands = operands.iter().map(|class| VarId::new(*class as usize)).collect();
        let fresh = Class::try_from(facts.len()).unwrap_or(Class::MAX);
        *self.classes.entry((head, operands)).or_insert_with(|| {
            facts.push(Fact { depth, ..Fact::default() });
            fresh
        })
    }

    /// Returns the class of leaves that `head` computes from `operands` in the block that is visited.
    fn computed(&mut self, head: Head, operands: &[Class]) -> Class {
        let inner = operands.iter().map(|class| self.fact(*class).depth).max().unwrap_or(0);
        let has_sizes = matches!(head, Head::Size(_) | Head::Zero(_) | Head::Build(_) | Head::Sum(_) | Head::Steps(_));
        self.class(head, operands, if has_sizes { self.depth } else { inner.min(self.depth) })
    }

    fn fact(&self, class: Class) -> &Fact {
        const NONE: &Fact = &Fact { depth: usize::MAX, length: None, element: None, read: None };
        self.facts.get(class as usize).unwrap_or(NONE)
    }

    /// Returns the class of the array of `size` elements of class `element`. A copy of an array is that array.
    fn array(&mut self, size: &Size, element: Class, index: Class) -> Class {
        let fact = self.fact(element);
        if let Some((array, at)) = fact.read
            && at == index
            && self.fact(array).depth <= self.depth
            && self.fact(array).length.as_ref() == Some(size)
        {
            return array;
        }
        let is_same = fact.depth <= self.depth;
        let class = self.computed(Head::Build(size.clone()), &[element]);
        if let Some(fact) = self.facts.get_mut(class as usize) {
            fact.length = Some(size.clone());
            fact.element = is_same.then_some(element);
        }
        class
    }

    /// Returns the class of the element at `index` of arrays of class `array`.
    fn element(&mut self, array: Class, index: Class, proved: bool) -> Class {
        if let Some(element) = self.fact(array).element.filter(|_| proved) {
            return element;
        }
        let class = self.computed(Head::Get(proved), &[array, index]);
        if let Some(fact) = self.facts.get_mut(class as usize) {
            fact.read = proved.then_some((array, index));
        }
        class
    }

    /// Returns `size` over the first variables of their classes.
    fn size(&mut self, vars: &Arena<VarId, Var>, size: &Size) -> Size {
        if size.as_constant().is_some() {
            return size.clone();
        }
        let mut firsts = FxHashMap::default();
        for var in size.vars() {
            let class = self.operand(vars, var).leaf();
            firsts.insert(var, *self.integers.entry(class).or_insert(var));
        }
        size.substitute(|var| Size::var(firsts.get(&var).copied().unwrap_or(var)))
    }

    /// Returns the value of an operand.
    fn operand(&mut self, vars: &Arena<VarId, Var>, var: VarId) -> Value {
        if let Some(value) = self.of.get(&var) {
            return value.clone();
        }
        let value = self.opaque(vars, var);
        self.of.insert(var, value.clone());
        value
    }

    /// Returns a value whose leaves are equal to no others.
    fn opaque(&mut self, vars: &Arena<VarId, Var>, var: VarId) -> Value {
        let ty = &vars[var].ty;
        let length = if let Type::Array(size, _) = ty { Some(self.size(vars, size)) } else { None };
        let mut leaves = Vec::new();
        let value = Value::of_type(ty, &mut |k| {
            let class = self.class(Head::Leaf(var, k), &[], self.depth);
            leaves.push(class);
            class
        });
        for class in leaves {
            if let Some(fact) = self.facts.get_mut(class as usize) {
                fact.length.clone_from(&length);
            }
        }
        value
    }

    // Recursive on the depth of a type.
    fn zero(&mut self, vars: &Arena<VarId, Var>, ty: &Type, extents: &mut Vec<Size>) -> Value {
        match ty {
            Type::Array(size, element) => {
                extents.push(self.size(vars, size));
                let element = self.zero(vars, element, extents);
                extents.pop();
                Value::Array(Rc::new(element))
            }
            Type::Tuple(fields, _) => {
                Value::Tuple(fields.iter().map(|field| self.zero(vars, field, extents)).collect())
            }
            Type::Double | Type::Int | Type::Bool => {
                let head = if extents.is_empty() { Head::Real(0) } else { Head::Zero(extents.clone()) };
                let class = self.computed(head, &[]);
                if let Some(fact) = self.facts.get_mut(class as usize) {
                    fact.length = extents.first().cloned();
                }
                Value::Leaf(class)
            }
        }
    }

    /// Returns the value whose leaves are computed by `head` from the leaves of `of` in the same place, and `others`.
    fn leafwise(&mut self, head: &Head, of: &[&Value], others: &[Class]) -> Value {
        let head = |this: &mut Self, leaves: &[Class]| {
            let operands: Vec<Class> = leaves.iter().chain(others).copied().collect();
            this.computed(head.clone(), &operands)
        };
        Value::map(of, &mut |leaves| head(self, leaves))
    }

    // Recursive on the nesting of blocks, as is every function here.
    fn block(&mut self, vars: &Arena<VarId, Var>, block: &Block) -> Value {
        for stmt in &block.stmts {
            let value = self.expr(vars, stmt.var, &stmt.expr);
            self.of.insert(stmt.var, value);
        }
        self.operand(vars, block.result)
    }

    fn expr(&mut self, vars: &Arena<VarId, Var>, var: VarId, expr: &Expr) -> Value {
        match expr {
            Expr::Real(value) => Value::Leaf(self.computed(Head::Real(value.to_bits()), &[])),
            Expr::Size(size) => match size.as_var() {
                Some(var) => self.operand(vars, var),
                None => {
                    let size = self.size(vars, size);
                    Value::Leaf(self.computed(Head::Size(size), &[]))
                }
            },
            Expr::Zero => self.zero(vars, &vars[var].ty, &mut Vec::new()),
            Expr::Op(op, args) => {
                let mut args: Vec<Class> = args.iter().map(|arg| self.operand(vars, *arg).leaf()).collect();
                if op.is_commutative() {
                    args.sort_unstable();
                }
                Value::Leaf(self.computed(Head::Op(*op), &args))
            }
            Expr::ToReal(arg) | Expr::ToInt(arg) => {
                let arg = self.operand(vars, *arg).leaf();
                let head = if matches!(expr, Expr::ToReal(_)) { Head::ToReal } else { Head::ToInt };
                Value::Leaf(self.computed(head, &[arg]))
            }
            Expr::Build { size, index, body } => {
                let body = self.inner(vars, *index, body);
                let (size, index) = (self.size(vars, size), self.operand(vars, *index).leaf());
                Value::Array(Rc::new(Value::map(&[&body], &mut |leaves| self.array(&size, leaves[0], index))))
            }
            Expr::Sum { count, index, body } => {
                let body = self.inner(vars, *index, body);
                let count = self.size(vars, count);
                self.leafwise(&Head::Sum(count), &[&body], &[])
            }
            Expr::Fold(StateLoop { count, index, state, init, body }) => {
                self.steps(vars, count, (*state, *init), Steps { index: Some(*index), condition: None, body }).0
            }
            Expr::While(WhileLoop { limit, state, init, condition, body }) => {
                self.steps(vars, limit, (*state, *init), Steps { index: None, condition: Some(condition), body }).0
            }
            Expr::Loop(StateLoop { count, index, state, init, body }) => {
                let steps = Steps { index: Some(*index), condition: None, body };
                let (last, whole, triple) = self.steps(vars, count, (*state, *init), steps);
                let elements = self.leafwise(&Head::Elements, &[triple.component(1)], &[whole]);
                let terms = self.leafwise(&Head::Terms, &[triple.component(2)], &[whole]);
                Value::Tuple([last, Value::Array(Rc::new(elements)), terms].into())
            }
            Expr::OneHot { index, value, proved } => {
                let (index, value) = (self.operand(vars, *index).leaf(), self.operand(vars, *value));
                Value::Array(Rc::new(self.leafwise(&Head::OneHot(*proved), &[&value], &[index])))
            }
            Expr::Plus(a, b) => {
                let (a, b) = (self.operand(vars, *a), self.operand(vars, *b));
                self.leafwise(&Head::Plus, &[&a, &b], &[])
            }
            Expr::If { condition, then, otherwise } => {
                let condition = self.operand(vars, *condition).leaf();
                let (then, otherwise) = (self.block(vars, then), self.block(vars, otherwise));
                self.leafwise(&Head::If, &[&then, &otherwise], &[condition])
            }
            Expr::Get { array, index, proved } => {
                let (array, index) = (self.operand(vars, *array), self.operand(vars, *index).leaf());
                Value::map(&[array.element()], &mut |leaves| self.element(leaves[0], index, *proved))
            }
            Expr::Array(elements) => {
                let elements: Vec<Value> = elements.iter().map(|element| self.operand(vars, *element)).collect();
                let elements: Vec<&Value> = elements.iter().collect();
                Value::Array(Rc::new(self.leafwise(&Head::Array, &elements, &[])))
            }
            Expr::Tuple(fields) => Value::Tuple(fields.iter().map(|field| self.operand(vars, *field)).collect()),
            Expr::Component(tuple, k) => self.operand(vars, *tuple).component(*k).clone(),
            Expr::Bool(_) | Expr::Jvp { .. } | Expr::Vjp { .. } | Expr::Custom(_) | Expr::Again { .. } => {
                self.opaque(vars, var)
            }
        }
    }

    /// Returns the value of the body of a loop without a state.
    fn inner(&mut self, vars: &Arena<VarId, Var>, index: VarId, body: &Block) -> Value {
        let class = self.class(Head::Index(self.depth), &[], self.depth + 1);
        self.of.insert(index, Value::Leaf(class));
        self.depth += 1;
        let value = self.block(vars, body);
        self.depth -= 1;
        value
    }

    /// Finds the classes of the variables of a loop with a state; returns the value of its last state, the class of
    /// the whole loop, and the value of its body.
    fn steps(
        &mut self,
        vars: &Arena<VarId, Var>,
        count: &Size,
        (state, init): (VarId, VarId),
        Steps { index, condition, body }: Steps,
    ) -> (Value, Class, Value) {
        let init = self.operand(vars, init);
        let initial = init.leaves();
        let state_leaf = |k| self.class(Head::State(self.depth, k), &[], self.depth + 1);
        let leaves: Vec<Class> = (0..initial.len()).map(state_leaf).collect();
        if let Some(index) = index {
            let class = self.class(Head::Index(self.depth), &[], self.depth + 1);
            self.of.insert(index, Value::Leaf(class));
        }
        // For each leaf of the state the first one that is congruent.
        let mut first = firsts(&initial, &vec![0; leaves.len()]);
        let mut pass = 0;
        loop {
            if pass == MAX_PASSES {
                first = (0..leaves.len()).collect();
            }
            let classes: Vec<Class> = first.iter().map(|k| leaves[*k]).collect();
            let value = init.with_leaves(&mut classes.iter().copied());
            self.of.insert(state, value.clone());
            self.depth += 1;
            let condition = condition.map(|condition| self.block(vars, condition).leaf());
            let result = self.block(vars, body);
            self.depth -= 1;
            let is_general = vars[body.result].ty != vars[state].ty;
            let next = if is_general { result.component(0).leaves() } else { result.leaves() };
            let refined = firsts(&next, &first);
            if refined == first || pass == MAX_PASSES {
                let operands: Vec<Class> = initial.into_iter().chain(condition).chain(next).collect();
                let count = self.size(vars, count);
                let whole = self.computed(Head::Steps(count), &operands);
                return (self.leafwise(&Head::Last, &[&value], &[whole]), whole, result);
            }
            first = refined;
            pass += 1;
        }
    }
}

/// Blocks of a loop with a state.
struct Steps<'a> {
    index: Option<VarId>,
    condition: Option<&'a Block>,
    body: &'a Block,
}

/// Returns for each leaf the first one of the same class and the same group.
fn firsts(classes: &[Class], groups: &[usize]) -> Vec<usize> {
    let mut first = FxHashMap::default();
    classes.iter().zip(groups).enumerate().map(|(k, key)| *first.entry(key).or_insert(k)).collect()
}

impl Value {
    pub(crate) fn component(&self, k: usize) -> &Self {
        match self {
            Self::Tuple(fields) => fields.get(k).unwrap_or(self),
            _ => self,
        }
    }

    fn element(&self) -> &Self {
        match self {
            Self::Array(element) => element,
            _ => self,
        }
    }

    /// Returns the class of a number or truth value.
    pub(crate) fn leaf(&self) -> Class {
        match self {
            Self::Leaf(class) => *class,
            // Only for ill-typed programs.
            _ => Class::MAX,
        }
    }

    /// Returns the classes of all leaves, in order.
    fn leaves(&self) -> Vec<Class> {
        let mut leaves = Vec::new();
        let mut open = vec![self];
        while let Some(value) = open.pop() {
            match value {
                Self::Leaf(class) => leaves.push(*class),
                Self::Array(element) => open.push(element),
                Self::Tuple(fields) => open.extend(fields.iter().rev()),
            }
        }
        leaves
    }

    /// Returns a value of the same shape with these leaves.
    fn with_leaves(&self, leaves: &mut impl Iterator<Item = Class>) -> Self {
        Self::map(&[self], &mut |of| leaves.next().unwrap_or(of[0]))
    }

    /// Returns the value whose leaves are made by `leaf` from those of `of` in the same place.
    // Recursive on the depth of a type.
    fn map(of: &[&Self], leaf: &mut dyn FnMut(&[Class]) -> Class) -> Self {
        match of.first() {
            Some(Self::Array(_)) => {
                let elements: Vec<&Self> = of.iter().map(|value| value.element()).collect();
                Self::Array(Rc::new(Self::map(&elements, leaf)))
            }
            Some(Self::Tuple(fields)) => {
                let parts = |k| of.iter().map(|value| value.component(k)).collect::<Vec<&Self>>();
                Self::Tuple((0..fields.len()).map(|k| Self::map(&parts(k), leaf)).collect())
            }
            _ => Self::Leaf(leaf(&of.iter().map(|value| value.leaf()).collect::<Vec<Class>>())),
        }
    }

    /// Returns the value of a type, with the class `leaf` makes for each leaf's number.
    fn of_type(ty: &Type, leaf: &mut dyn FnMut(usize) -> Class) -> Self {
        // Recursive on the depth of a type.
        fn numbered(ty: &Type, n_leaves: &mut usize, leaf: &mut dyn FnMut(usize) -> Class) -> Value {
            match ty {
                Type::Array(_, element) => Value::Array(Rc::new(numbered(element, n_leaves, leaf))),
                Type::Tuple(fields, _) => {
                    Value::Tuple(fields.iter().map(|field| numbered(field, n_leaves, leaf)).collect())
                }
                Type::Double | Type::Int | Type::Bool => {
                    *n_leaves += 1;
                    Value::Leaf(leaf(*n_leaves - 1))
                }
            }
        }
        numbered(ty, &mut 0, leaf)
    }
}
