//! Reuse of elementary functions: what a loop has computed from the elements of an array is kept for later loops.
//!
//! In: a kernel in which a loop goes through all elements of a buffer and computes an elementary function of each, and
//! later loops compute the same function of these elements again, as reverse mode does. Out: the first loop stores the
//! numbers, and later ones load them.
//!
//! ```text
//! for i in 0..n                     for i in 0..n
//!   x = load z[i]                     x = load z[i]
//!   t = tanh x                        t = tanh x
//!                                     store kept[i] = t
//! for j in 0..m                     for j in 0..m
//!   y = load z[f(j)]                  u = load kept[f(j)]
//!   u = tanh y
//! ```
//!
//! The argument may be computed from elements of several arrays at one index, from constants, and from numbers that
//! both loops see. An element is known by the load of it, or by a store in the same block.
//!
//! **Slopes of tanh** take exp(-2 |x|). Where the first loop computes tanh x, it computes the power too, since both
//! together cost one elementary function ([`exponentials`](crate::exponentials)).
//!
//! **In a branch.** Where the first loop computes the function on one side of a branch, as sums under a mask do, and
//! later loops compute it for all elements, its code moves before the branch.
//!
//! Conditions: the later loop loads the elements after the first loop, in the same iteration of all loops around that,
//! and on the same side of all branches; nothing writes to the arrays from the first loop on, but a store that makes an
//! element known. Then every element that is loaded has its number. Invariant: the same operators of the same numbers.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Order, Reg, Stmt};
use crate::lanes::rewrite::{Copier, Copies};
use crate::prune::prune;
use crate::rebuild::each_statement;
use chainrule_base::Poly;
use chainrule_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of arrays that are kept.
const MAX_KEPT: usize = 32;

/// Maximum number of operators of a function.
const MAX_OPERATORS: usize = 16;

/// Number of a [`Node`].
type NodeId = usize;

/// A number, as an operator's argument.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Part {
    Node(NodeId),
    Constant(u64),
    /// A register that is no function of elements.
    Register(Reg),
}

/// A function of elements at one index.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Node {
    Element(BufferId),
    Apply(Op, [Part; 2]),
}

/// Value of a register: a function, and its elements.
#[derive(Clone)]
struct Value {
    node: NodeId,
    at: Poly<Reg>,
    /// Buffers of the elements, with the event of the store by which one is known, unless it is loaded.
    elements: Vec<(BufferId, Option<usize>)>,
    /// First event at which an element is loaded.
    loaded: usize,
    /// Event with which the innermost statement around its code, or its side, begins.
    inside: Option<usize>,
    n_operators: usize,
}

/// A statement around an event.
struct Open {
    /// Event with which it, or its side, begins.
    begin: usize,
    of: Kind,
}

enum Kind {
    /// Loop in order: index and trip count.
    Counted(Reg, Poly<Reg>),
    /// Branch, by its first result, unless it has none.
    Branch(Option<Reg>),
    Lanes,
    Other,
}

/// A branch whose side is the block of a function.
#[derive(Clone)]
struct Side {
    /// First result of the branch.
    of: Reg,
    /// Event with which the side begins.
    begin: usize,
    /// Events of the block.
    block: (usize, usize),
}

/// An elementary function in a block.
struct Site {
    dst: Reg,
    argument: Reg,
    value: Value,
}

/// Function that loops over all elements compute.
#[derive(Clone)]
struct Provider {
    /// Event with which the outermost of these loops ends.
    end: usize,
    /// Statements around it, by the events with which they or their sides begin.
    around: Vec<usize>,
    /// Result in the loop, and argument.
    dst: Reg,
    argument: Reg,
    at: Poly<Reg>,
    /// Buffers of elements through which the loops go.
    through: Vec<BufferId>,
    /// Branch around it in the innermost loop.
    side: Option<Side>,
    kept: Option<BufferId>,
}

/// Change at an instruction, by the register that it defines, and before a branch, by its first result.
#[derive(Default)]
struct Changes {
    after: BTreeMap<Reg, Vec<Instr>>,
    instead: BTreeMap<Reg, Instr>,
    before: BTreeMap<Reg, Vec<Instr>>,
}

impl Changes {
    /// Writes an instruction, changed, and what follows it.
    fn write(&mut self, instr: Instr, out: &mut Vec<Instr>) {
        // What follows an instruction may be followed itself.
        let mut next = vec![instr];
        while let Some(instr) = next.pop() {
            let dst = instr.dst();
            out.push(dst.and_then(|dst| self.instead.remove(&dst)).unwrap_or(instr));
            next.extend(
                dst.and_then(|dst| self.after.remove(&dst)).into_iter().flat_map(|after| after.into_iter().rev()),
            );
        }
    }
}

/// Keeps elementary functions of elements for later loops of `kernel`. Linear in its size for each level of nesting.
pub(crate) fn reuse_functions(kernel: &mut Kernel) {
    let mut changes = changes(kernel);
    if changes.instead.is_empty() {
        return;
    }
    each_statement(&mut kernel.body, |mut stmt, done| {
        if let Stmt::Straight(code) = &mut stmt {
            let old = std::mem::replace(code, Vec::with_capacity(code.len()));
            old.into_iter().for_each(|instr| changes.write(instr, code));
        }
        if let Stmt::If { choices, .. } = &stmt {
            let before = choices.first().and_then(|choice| changes.before.remove(&choice.var));
            done.extend(before.map(Stmt::Straight));
        }
        done.push(stmt);
    });
    prune(&mut kernel.body, kernel.regs.len(), &kernel.buffers);
}

fn changes(kernel: &mut Kernel) -> Changes {
    let mut changes = Changes::default();
    let body = std::mem::take(&mut kernel.body);
    let events = events(&body);
    let is_function = |event: &Event<'_>| matches!(event, Event::Instr(Instr::Op { op, .. }) if is_elementary(*op));
    if events.iter().filter(|event| is_function(event)).nth(1).is_some() {
        Finder::new(&events).find(kernel, &mut changes);
    }
    kernel.body = body;
    changes
}

/// Returns whether an operator costs much more than a load.
fn is_elementary(op: Op) -> bool {
    op.row().elementary.is_some() && op.arity() == 1
}

/// Walk over the events.
struct Finder<'e, 'k> {
    events: &'e [Event<'k>],
    /// Events that write to a buffer.
    writes: FxHashMap<BufferId, Vec<usize>>,
    /// Closing event of each opening one.
    ends: FxHashMap<usize, usize>,
    /// First result of each branch, by the event with which it begins.
    results: FxHashMap<usize, Reg>,
    constants: FxHashMap<Reg, u64>,
    /// Registers that loops carry, which have another value after the loop.
    carried: FxHashSet<Reg>,
    open: Vec<Open>,
}

impl<'e, 'k> Finder<'e, 'k> {
    fn new(events: &'e [Event<'k>]) -> Self {
        let mut this = Self {
            events,
            writes: FxHashMap::default(),
            ends: FxHashMap::default(),
            results: FxHashMap::default(),
            constants: FxHashMap::default(),
            carried: FxHashSet::default(),
            open: Vec::new(),
        };
        let mut open = Vec::new();
        for (at, event) in events.iter().enumerate() {
            event.for_each_access(|buffer, writes| {
                if writes {
                    this.writes.entry(buffer).or_default().push(at);
                }
            });
            if let Event::For { carried, .. } | Event::While { carried, .. } = event {
                this.carried.extend(carried.iter().map(|c| c.var));
            }
            match event {
                Event::Instr(Instr::Const { dst, value }) => _ = this.constants.insert(*dst, value.to_bits()),
                Event::For { .. } | Event::While { .. } | Event::If { .. } => open.push(at),
                Event::Else { choices } => {
                    this.results.extend(open.last().zip(choices.first()).map(|(begin, choice)| (*begin, choice.var)));
                }
                Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => {
                    if let Some(begin) = open.pop() {
                        this.ends.insert(begin, at);
                    }
                }
                _ => {}
            }
        }
        this
    }

    fn find(mut self, kernel: &mut Kernel, changes: &mut Changes) {
        let mut known = Known::default();
        let mut at = 0;
        while at < self.events.len() {
            if matches!(self.events[at], Event::Instr(_)) {
                let end = self.events[at..].iter().position(|event| !matches!(event, Event::Instr(_)));
                let end = end.map_or(self.events.len(), |n| at + n);
                self.block(kernel, (at, end), &mut known, changes);
                at = end;
            } else {
                self.walk(at);
                at += 1;
            }
        }
    }

    /// Follows the statements around events.
    fn walk(&mut self, at: usize) {
        match &self.events[at] {
            Event::For { index, count, order, .. } => {
                let of = match order {
                    Order::InOrder => Kind::Counted(*index, (*count).clone()),
                    Order::Lanes => Kind::Lanes,
                    Order::Parts => Kind::Other,
                };
                self.open.push(Open { begin: at, of });
            }
            Event::While { .. } => self.open.push(Open { begin: at, of: Kind::Other }),
            Event::If { .. } => {
                self.open.push(Open { begin: at, of: Kind::Branch(self.results.get(&at).copied()) });
            }
            // Another side, or the body.
            Event::Else { .. } | Event::Test { .. } => {
                if let Some(open) = self.open.last_mut() {
                    open.begin = at;
                }
            }
            Event::EndFor { .. } | Event::EndWhile { .. } | Event::EndIf { .. } => drop(self.open.pop()),
            Event::Instr(_) | Event::Copy { .. } => {}
        }
    }

    /// Reads the instructions of a block: its functions are loaded where they are kept, and are kept for later blocks.
    fn block(&self, kernel: &mut Kernel, (begin, end): (usize, usize), known: &mut Known, changes: &mut Changes) {
        for Site { dst, argument, value } in self.sites(kernel, (begin, end), known) {
            if known.n_kept < MAX_KEPT
                && !known.providers.contains_key(&value.node)
                && let Some(tangent) = known.tangent_beside(value.node)
                && known.providers[&tangent].side.is_none()
                && self.provides(&known.providers[&tangent], &value)
            {
                known.add_power(kernel, tangent, value.node, changes);
            }
            match known.providers.get_mut(&value.node) {
                Some(provider) if self.provides(provider, &value) => {
                    if provider.kept.is_none() && known.n_kept < MAX_KEPT {
                        provider.kept = self.keep(kernel, provider, changes);
                        known.n_kept += usize::from(provider.kept.is_some());
                    }
                    let load = |buffer| Instr::Load { dst, buffer, at: value.at.clone() };
                    changes.instead.extend(provider.kept.map(|kept| (dst, load(kept))));
                }
                _ => {}
            }
            match known.providers.get(&value.node) {
                // A side whose code has not moved serves nobody.
                Some(provider) if provider.side.is_none() || provider.kept.is_some() => {}
                _ => {
                    let provider = self.provider(kernel, &value, (argument, dst), (begin, end));
                    known.providers.extend(provider.map(|provider| (value.node, provider)));
                }
            }
        }
    }

    /// Returns the elementary functions of elements in a block.
    fn sites(&self, kernel: &Kernel, (begin, end): (usize, usize), known: &mut Known) -> Vec<Site> {
        let mut sites = Vec::new();
        let code = (begin..end).zip(&self.events[begin..end]).filter_map(|(event, of)| match of {
            Event::Instr(instr) => Some((event, *instr)),
            _ => None,
        });
        let is_real = |buffer: BufferId| kernel.buffers[buffer].class == Class::Real;
        let mut stored: FxHashMap<Reg, Value> = FxHashMap::default();
        let inside = self.open.last().map(|open| open.begin);
        for (event, instr) in code.clone() {
            if let Instr::Store { buffer, at, value } = instr
                && is_real(*buffer)
            {
                let element = known.element((*buffer, Some(event)), at, event, inside);
                stored.entry(*value).or_insert(element);
            }
        }
        for (event, instr) in code {
            match instr {
                Instr::Load { dst, buffer, at } if is_real(*buffer) => {
                    let element = known.element((*buffer, None), at, event, inside);
                    known.values.insert(*dst, element);
                }
                Instr::Op { dst, op, args } => {
                    let args = &args[..op.arity()];
                    let is_numeric = !op.gives_truth() && args.iter().all(|r| kernel.regs[*r] == Class::Real);
                    let is_fixed = |r: &Reg| stored.contains_key(r) || !self.carried.contains(r);
                    if !is_numeric || !args.iter().all(is_fixed) {
                        continue;
                    }
                    // Others are the same numbers for all elements.
                    let here = |r: &Reg| known.values.get(r).filter(|value| value.inside == inside);
                    let loaded = |r: &Reg| here(r).filter(|value| value.n_operators == 0);
                    let value_of = |r: &Reg| loaded(r).or_else(|| stored.get(r)).or_else(|| here(r)).cloned();
                    let values: Vec<Option<Value>> = args.iter().map(value_of).collect();
                    let part = |(r, value): (&Reg, &Option<Value>)| match (value, self.constants.get(r)) {
                        (Some(value), _) => Part::Node(value.node),
                        (None, Some(bits)) => Part::Constant(*bits),
                        (None, None) => Part::Register(*r),
                    };
                    let parts: Vec<Part> = args.iter().zip(&values).map(part).collect();
                    let Some(value) = known.apply(*op, &parts, values) else { continue };
                    if is_elementary(*op) {
                        sites.push(Site { dst: *dst, argument: args[0], value: value.clone() });
                    }
                    known.values.insert(*dst, value);
                }
                _ => {}
            }
        }
        sites
    }

    /// Lets the loops of `provider` store what they compute; returns the array.
    fn keep(&self, kernel: &mut Kernel, provider: &Provider, changes: &mut Changes) -> Option<BufferId> {
        let Provider { dst, at, through, side, .. } = provider;
        let moved = match side {
            Some(side) => Some((side.of, self.moved(kernel, provider, side)?)),
            None => None,
        };
        let buffer = kernel.memory(kernel.buffers[*through.first()?].len.clone());
        let store = |value: Reg| Instr::Store { buffer, at: at.clone(), value };
        match moved {
            Some((branch, (mut code, value))) => {
                code.push(store(value));
                changes.before.entry(branch).or_default().extend(code);
                changes.instead.insert(*dst, Instr::Load { dst: *dst, buffer, at: at.clone() });
            }
            None => changes.after.entry(*dst).or_default().push(store(*dst)),
        }
        Some(buffer)
    }

    /// Returns the code of a function in a side, for use before the branch, and its result.
    fn moved(&self, kernel: &mut Kernel, provider: &Provider, side: &Side) -> Option<(Vec<Instr>, Reg)> {
        let Provider { dst: result, at: index, through, .. } = provider;
        let mut wanted = BTreeSet::from([*result]);
        let mut code = Vec::new();
        for event in self.events[side.block.0..side.block.1].iter().rev() {
            let Event::Instr(instr) = event else { return None };
            if !instr.dst().is_some_and(|dst| wanted.remove(&dst)) {
                continue;
            }
            match instr {
                Instr::Const { .. } => {}
                Instr::Op { op, args, .. } => wanted.extend(&args[..op.arity()]),
                Instr::Load { buffer, at, .. } if at == index && through.contains(buffer) => {}
                _ => return None,
            }
            code.push(*instr);
        }
        let mut is_of_side = false;
        for event in &self.events[side.begin..side.block.0] {
            event.for_each_def(|dst| is_of_side |= wanted.contains(&dst));
        }
        if is_of_side {
            return None;
        }
        // A copy in the same iteration: no index changes.
        let (map, buffers, by) = (BTreeMap::new(), BTreeMap::new(), Poly::var(*result));
        let regs = &mut kernel.regs;
        let mut copier = Copier { regs, map, index: *result, by, fresh: true, lane: None, buffers: &buffers };
        let moved = code.into_iter().rev().map(|instr| copier.instr(instr)).collect();
        Some((moved, copier.of(*result)))
    }

    /// Returns the innermost loops that go through all elements of a buffer, with the function `dst` of `argument` in
    /// `block`.
    fn provider(
        &self,
        kernel: &Kernel,
        value: &Value,
        (argument, dst): (Reg, Reg),
        block: (usize, usize),
    ) -> Option<Provider> {
        if self.open.iter().any(|open| matches!(open.of, Kind::Lanes)) {
            return None;
        }
        let (mut rest, mut stride) = (value.at.clone(), Poly::constant(1));
        let mut loops = self.open.iter().enumerate().rev().peekable();
        let mut side = None;
        if let Some((_, Open { of: Kind::Branch(of), begin })) = loops.peek().filter(|_| !rest.is_zero()) {
            side = Some(Side { of: (*of)?, begin: *begin, block });
            loops.next();
        }
        let (depth, through) = loop {
            let is_all = |buffer: &BufferId| kernel.buffers[*buffer].len == stride;
            let through = value.elements.iter().map(|(buffer, _)| *buffer).filter(is_all);
            let through: Vec<BufferId> = if rest.is_zero() { through.collect() } else { Vec::new() };
            if !through.is_empty() {
                break (loops.next().map_or(0, |(depth, _)| depth + 1), through);
            }
            let (_, Open { of: Kind::Counted(index, count), .. }) = loops.next()? else { return None };
            let (slope, others) = rest.split_linear(*index)?;
            if slope != stride {
                return None;
            }
            (rest, stride) = (others, stride.mul(count));
        };
        let begin = self.open.get(depth)?.begin;
        let end = *self.ends.get(&begin)?;
        let stays = |(buffer, store): &(BufferId, Option<usize>)| {
            let writes = self.writes.get(buffer).map_or(&[][..], Vec::as_slice);
            writes.iter().rev().take_while(|at| **at >= begin).all(|at| *store == Some(*at))
        };
        let around = self.open[..depth].iter().map(|open| open.begin).collect();
        let at = value.at.clone();
        // A side stores for few elements.
        let is_loaded = |(_, store): &(BufferId, Option<usize>)| side.is_none() || store.is_none();
        let is_fit = value.elements.iter().all(|element| stays(element) && is_loaded(element));
        is_fit.then_some(Provider { end, around, dst, argument, at, through, side, kept: None })
    }

    /// Returns whether a loop has computed its function of the elements of a value, which are loaded after it.
    fn provides(&self, provider: &Provider, value: &Value) -> bool {
        let Provider { end, around, side, .. } = provider;
        let is_inside =
            around.len() <= self.open.len() && around.iter().zip(&self.open).all(|(begin, open)| *begin == open.begin);
        let is_branch = |open: &Open| matches!(open.of, Kind::Branch(_));
        // A side may run for few elements, but the code before it runs for all.
        let is_for_all = side.is_none() || !self.open.iter().skip(around.len()).any(is_branch);
        value.elements.iter().all(|(_, store)| store.is_none()) && *end < value.loaded && is_inside && is_for_all
    }
}

/// Numbers and functions so far.
#[derive(Default)]
struct Known {
    nodes: Vec<Node>,
    ids: FxHashMap<Node, NodeId>,
    values: FxHashMap<Reg, Value>,
    /// Functions that loops compute.
    providers: FxHashMap<NodeId, Provider>,
    n_kept: usize,
}

impl Known {
    fn node(&mut self, node: Node) -> NodeId {
        *self.ids.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() - 1
        })
    }

    fn element(
        &mut self,
        element: (BufferId, Option<usize>),
        at: &Poly<Reg>,
        loaded: usize,
        inside: Option<usize>,
    ) -> Value {
        let node = self.node(Node::Element(element.0));
        Value { node, at: at.clone(), elements: vec![element], loaded, inside, n_operators: 0 }
    }

    /// Returns the value of an operator, if its arguments are functions of elements at one index.
    fn apply(&mut self, op: Op, parts: &[Part], values: Vec<Option<Value>>) -> Option<Value> {
        let mut parts = match *parts {
            [a] => [a, a],
            [a, b] => [a, b],
            _ => return None,
        };
        if op.is_commutative() {
            parts.sort_unstable();
        }
        let mut values = values.into_iter().flatten();
        let mut all = values.next()?;
        for value in values {
            if value.at != all.at {
                return None;
            }
            all.elements.extend(value.elements);
            all.loaded = all.loaded.min(value.loaded);
            all.n_operators += value.n_operators;
        }
        let n_operators = all.n_operators + 1;
        (n_operators <= MAX_OPERATORS).then(|| Value { node: self.node(Node::Apply(op, parts)), n_operators, ..all })
    }

    /// Returns tanh x, if a node is exp(-2 |x|) and loops compute the tangent.
    fn tangent_beside(&self, power: NodeId) -> Option<NodeId> {
        let doubling = Part::Constant((-2.0f64).to_bits());
        let Node::Apply(Op::Exp, [Part::Node(product), _]) = self.nodes[power] else { return None };
        let size = match self.nodes[product] {
            Node::Apply(Op::Mul, [Part::Node(size), other] | [other, Part::Node(size)]) if other == doubling => size,
            _ => return None,
        };
        let Node::Apply(Op::Abs, [x, _]) = self.nodes[size] else { return None };
        self.ids.get(&Node::Apply(Op::Tanh, [x, x])).copied().filter(|tangent| self.providers.contains_key(tangent))
    }

    /// Lets the loop that computes tanh x compute the power exp(-2 |x|) too.
    fn add_power(&mut self, kernel: &mut Kernel, tangent: NodeId, power: NodeId, changes: &mut Changes) {
        let Some(tangent) = self.providers.get(&tangent) else { return };
        let [size, factor, product, dst] = [(); 4].map(|()| kernel.regs.push(Class::Real));
        changes.after.entry(tangent.dst).or_default().extend([
            Instr::Op { dst: size, op: Op::Abs, args: [tangent.argument; 3] },
            Instr::Const { dst: factor, value: -2.0 },
            Instr::Op { dst: product, op: Op::Mul, args: [factor, size, factor] },
            Instr::Op { dst, op: Op::Exp, args: [product; 3] },
        ]);
        let provider = Provider { dst, kept: None, ..tangent.clone() };
        self.providers.insert(power, provider);
    }
}
