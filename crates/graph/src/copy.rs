//! Copies of nodes: extraction of the needed ones, import from another graph, substitution.

use crate::graph::{ExternalId, Graph, Node, NodeId};
use chainrule_base::{Arena, Diagnostic, Id};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

type Args = SmallVec<[NodeId; 4]>;

impl Graph {
    /// Returns a graph of only the nodes that `roots` need, and the roots in it.
    ///
    /// All inputs keep their order, and users' functions and origins are unchanged. The other nodes follow in
    /// depth-first order from the first root on, arguments from left to right: an order that depends on the structure
    /// only, not on other nodes of this graph or on the time of their construction.
    #[must_use]
    pub fn extract(&self, roots: &[NodeId]) -> (Graph, Vec<NodeId>) {
        let mut out = Graph::new(self.semantics());
        out.externals = self.externals.clone();
        if self.tracks_origins() {
            out.track_origins(Vec::new());
        }
        let mut copies: Vec<Option<NodeId>> = vec![None; self.len()];
        for (name, id) in self.inputs() {
            copies[id.index()] = Some(out.input(name.clone()));
        }
        let mut stack: Vec<NodeId> = roots.iter().rev().copied().collect();
        let mut args = Args::new();
        while let Some(&id) = stack.last() {
            if copies[id.index()].is_some() {
                stack.pop();
                continue;
            }
            args.clear();
            args.extend(self.args(id).iter().filter_map(|a| copies[a.index()]));
            if args.len() < self.args(id).len() {
                stack.extend(self.args(id).iter().rev().copied().filter(|a| copies[a.index()].is_none()));
                continue;
            }
            stack.pop();
            let copy = match self.node(id) {
                Node::Apply(op, _) => out.raw(op, &args),
                Node::External(function, _) => out.external(function, &args),
                Node::Derivative(_) => out.with_list(&args, Node::Derivative),
                Node::Const(c) => out.constant(c),
                Node::Input(_) => unreachable!("all inputs were copied first"),
            };
            out.set_origin(copy, self.origin(id));
            copies[id.index()] = Some(copy);
        }
        // The loop ends only when every root has its copy.
        let roots = roots.iter().filter_map(|r| copies[r.index()]).collect();
        (out, roots)
    }

    /// Copies `roots` of `other` into this graph, simplified by this graph's semantics; `inputs[i]` replaces input `i`
    /// of `other`. Users' functions that are not registered here are registered.
    ///
    /// # Errors
    /// Fails if a needed input has no node in `inputs`, or if an unexpanded derivative depends on an input that is
    /// replaced by a node that is not an input.
    pub fn import(&mut self, other: &Graph, roots: &[NodeId], inputs: &[NodeId]) -> Result<Vec<NodeId>, Diagnostic> {
        let mut functions: Arena<ExternalId, Option<ExternalId>> = Arena::filled(other.externals.len(), None);
        let mut copies: Vec<Option<NodeId>> = vec![None; other.len()];
        // Whether an input below was replaced by a node that is not an input.
        let mut bound = vec![false; other.len()];
        let mut taken: FxHashMap<NodeId, usize> = FxHashMap::default();
        for id in other.reachable(roots).iter() {
            let args: Args = other.args(id).iter().filter_map(|a| copies[a.index()]).collect();
            bound[id.index()] = other.args(id).iter().any(|a| bound[a.index()]);
            copies[id.index()] = Some(match other.node(id) {
                Node::Const(c) => self.constant(c),
                Node::Input(input) => {
                    let node = *inputs.get(input.index()).ok_or_else(|| {
                        let name = &other.inputs()[input.index()].0;
                        Diagnostic::error(format!("nothing stands for the input `{name}`"))
                    })?;
                    let shared = *taken.entry(node).or_insert(input.index()) != input.index();
                    bound[id.index()] = shared || !matches!(self.node(node), Node::Input(_));
                    node
                }
                Node::Apply(op, _) => self.apply(op, &args),
                Node::External(function, _) => {
                    let function = self.import_function(other, function, &mut functions)?;
                    self.external(function, &args)
                }
                Node::Derivative(_) if bound[id.index()] => return Err(bound_variable()),
                Node::Derivative(_) => self.derivative(args[0], &args[1..])?,
            });
        }
        Ok(roots.iter().filter_map(|r| copies[r.index()]).collect())
    }

    /// Imports a function together with its partials, to which it refers by id.
    fn import_function(
        &mut self,
        other: &Graph,
        function: ExternalId,
        known: &mut Arena<ExternalId, Option<ExternalId>>,
    ) -> Result<ExternalId, Diagnostic> {
        let mut needed = vec![function];
        let mut seen = 0;
        while let Some(&id) = needed.get(seen) {
            seen += 1;
            let f = other
                .external_function(id)
                .ok_or_else(|| Diagnostic::error(format!("the function {id} is not registered in its graph")))?;
            for partial in f.partial_functions() {
                if !needed.contains(partial) {
                    needed.push(*partial);
                }
            }
        }
        // First assigns an id to each, then sets their references to each other.
        let mut registered = Vec::new();
        for id in needed {
            let Some(f) = other.external_function(id) else { continue };
            if known[id].is_none() {
                let here = self.external_functions().find(|(_, g)| g.is_same(f)).map(|(here, _)| here);
                known[id] = Some(here.unwrap_or_else(|| {
                    let here = self.register(f.clone());
                    registered.push(here);
                    here
                }));
            }
        }
        for here in registered {
            self.externals[here].rename_partials(|p| known.get(p).copied().flatten().unwrap_or(p));
        }
        known[function].ok_or_else(|| Diagnostic::bug(format!("the function {function} was not imported")))
    }

    /// Copies `roots` with the keys of `map` replaced by their values, simultaneously, and simplified. Nodes inside the
    /// replacements are not replaced again.
    ///
    /// # Errors
    /// Fails if an unexpanded derivative depends on a replaced input: the derivative refers to the expression before
    /// the replacement, so it must be expanded first.
    pub fn substitute(&mut self, roots: &[NodeId], map: &FxHashMap<NodeId, NodeId>) -> Result<Vec<NodeId>, Diagnostic> {
        let mut copies: Vec<Option<NodeId>> = vec![None; self.len()];
        let mut bound = vec![false; self.len()];
        for id in self.reachable_above(roots, map).iter() {
            if let Some(replacement) = map.get(&id) {
                bound[id.index()] = matches!(self.node(id), Node::Input(_)) && *replacement != id;
                copies[id.index()] = Some(*replacement);
                continue;
            }
            let old: Args = self.args(id).into();
            bound[id.index()] = old.iter().any(|a| bound[a.index()]);
            let args: Args = old.iter().filter_map(|a| copies[a.index()]).collect();
            copies[id.index()] = Some(match self.node(id) {
                _ if args == old => id,
                Node::Const(_) | Node::Input(_) => id,
                Node::Apply(op, _) => self.apply(op, &args),
                Node::External(function, _) => self.external(function, &args),
                Node::Derivative(_) if bound[id.index()] => return Err(bound_variable()),
                Node::Derivative(_) => self.derivative(args[0], &args[1..])?,
            });
        }
        Ok(roots.iter().filter_map(|r| copies[r.index()]).collect())
    }

    /// Returns the nodes below the roots, without descending below keys of `map`.
    fn reachable_above(&self, roots: &[NodeId], map: &FxHashMap<NodeId, NodeId>) -> crate::NodeSet {
        let mut set: crate::NodeSet = roots.iter().copied().collect();
        for id in self.ids().rev() {
            if set.contains(id) && !map.contains_key(&id) {
                for arg in self.args(id) {
                    set.insert(*arg);
                }
            }
        }
        set
    }
}

fn bound_variable() -> Diagnostic {
    Diagnostic::limitation("a derivative that has not been made yet cannot have its variables replaced")
        .with_reason("the derivative is meant before the replacement")
        .with_help("resolve derivatives first")
}
