//! Output of graphs: listings, short expressions, drawings. No function prints a tree of unbounded size: a listing has
//! one line per node, an expression has a budget.

use crate::graph::{Graph, Node, NodeId};
use chainrule_base::Id;
use std::fmt::Write as _;

/// Approximate maximum length of an expression that [`Graph::short`] prints, in characters.
const SHORT: usize = 60;

impl Graph {
    /// Returns a description of `id` without the nodes below: `mul n3 n4`, `const 2`, `input x`.
    #[must_use]
    pub fn describe(&self, id: NodeId) -> String {
        let head = match self.node(id) {
            Node::Const(c) => return format!("const {c:?}"),
            Node::Input(x) => return format!("input {}", self.inputs()[x.index()].0),
            Node::Derivative(_) => "derivative".to_owned(),
            _ => self.head(id),
        };
        self.args(id).iter().fold(head, |line, a| format!("{line} {a}"))
    }

    /// Returns one line per node below `roots`, `n5 = mul n3 n4`, then the roots.
    #[must_use]
    pub fn listing(&self, roots: &[NodeId]) -> String {
        let mut out = String::new();
        for id in self.reachable(roots).iter() {
            let _ = writeln!(out, "{id} = {}", self.describe(id));
        }
        let roots: Vec<String> = roots.iter().map(NodeId::to_string).collect();
        let _ = writeln!(out, "roots {}", roots.join(" "));
        out
    }

    /// Returns `id` as an expression of about 60 characters; subexpressions beyond that are shown by id.
    #[must_use]
    pub fn short(&self, id: NodeId) -> String {
        self.expression(id, SHORT)
    }

    /// Returns `id` as an expression of about `budget` characters; subexpressions beyond that are shown by id. Outer
    /// operators come first.
    #[must_use]
    pub fn expression(&self, id: NodeId, budget: usize) -> String {
        // Breadth-first selection of the nodes that are written out, so that the budget goes to the outermost.
        let mut spelt = vec![id];
        let (mut cost, mut next) = (0, 0);
        let mut children: Vec<std::ops::Range<usize>> = Vec::new();
        while next < spelt.len() {
            let args = self.args(spelt[next]);
            let text = self.head(spelt[next]).len() + 4 * args.len();
            let start = spelt.len();
            if !args.is_empty() && cost + text <= budget {
                cost += text;
                spelt.extend_from_slice(args);
            }
            children.push(start..spelt.len());
            next += 1;
        }
        // Children come after their parents, so texts are completed from the back.
        let mut texts: Vec<(String, u8)> = vec![(String::new(), 0); spelt.len()];
        for i in (0..spelt.len()).rev() {
            let args: Vec<(String, u8)> = texts[children[i].clone()].to_vec();
            texts[i] = self.compose(spelt[i], &args);
        }
        texts.swap_remove(0).0
    }

    fn head(&self, id: NodeId) -> String {
        match self.node(id) {
            Node::Const(c) => format!("{c:?}"),
            Node::Input(x) => self.inputs()[x.index()].0.to_string(),
            Node::Apply(op, _) => op.name().to_owned(),
            Node::External(f, _) => self.external_function(f).map_or_else(|| f.to_string(), |g| g.name().to_string()),
            Node::Derivative(_) => "d".to_owned(),
        }
    }

    /// Returns the text of a node and its precedence: 3 an atom, 2 a prefix, 1 an infix operator.
    fn compose(&self, id: NodeId, args: &[(String, u8)]) -> (String, u8) {
        let tight = |(text, binding): &(String, u8)| if *binding < 2 { format!("({text})") } else { text.clone() };
        if args.is_empty() {
            let is_leaf = self.args(id).is_empty();
            return (if is_leaf { self.head(id) } else { id.to_string() }, 3);
        }
        let symbol = if let Node::Apply(op, _) = self.node(id) { op.row().symbol } else { None };
        match (symbol, args) {
            (Some(symbol), [a]) => (format!("{symbol}{}", tight(a)), 2),
            (Some(symbol), [a, b]) => (format!("{} {symbol} {}", tight(a), tight(b)), 1),
            _ => {
                let texts: Vec<&str> = args.iter().map(|(text, _)| text.as_str()).collect();
                let args = if let (Node::Derivative(_), [of, by @ ..]) = (self.node(id), texts.as_slice()) {
                    format!("{of}, [{}]", by.join(", "))
                } else {
                    texts.join(", ")
                };
                (format!("{}({args})", self.head(id)), 3)
            }
        }
    }

    /// Returns a drawing in Graphviz's language, for small graphs. Roots have a double border.
    #[must_use]
    pub fn dot(&self, roots: &[NodeId]) -> String {
        let mut out = String::from("digraph graph_ {\n  rankdir=BT;\n");
        for id in self.reachable(roots).iter() {
            let shape = if self.args(id).is_empty() { "box" } else { "ellipse" };
            let border = if roots.contains(&id) { 2 } else { 1 };
            let label = self.head(id).replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(out, "  {id} [label=\"{label}\", shape={shape}, peripheries={border}];");
            for (i, arg) in self.args(id).iter().enumerate() {
                let _ = writeln!(out, "  {arg} -> {id} [label=\"{i}\"];");
            }
        }
        out.push_str("}\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Semantics;
    use chainrule_ops::Op;

    #[test]
    fn expressions_keep_their_budget() {
        let mut g = Graph::new(Semantics::Algebraic);
        let (x, y) = (g.input("x"), g.input("y"));
        let s = g.add(x, y);
        let m = g.mul(s, x);
        let root = g.apply(Op::Atan2, &[m, y]);
        assert_eq!(g.short(root), "atan2((x + y) * x, y)");
        assert_eq!(g.expression(root, 13), format!("atan2({m}, y)"));
        assert_eq!(g.expression(root, 0), root.to_string());
        let n = g.neg(s);
        assert_eq!(g.short(n), "-(x + y)");
        let d = g.derivative(m, &[y, x]).unwrap();
        assert_eq!(g.short(d), "d((x + y) * x, [x, y])");
        let mut deep = x;
        for _ in 0..100_000 {
            deep = g.apply(Op::Sin, &[deep]);
        }
        assert!(g.short(deep).len() < 200);
    }

    #[test]
    fn a_listing_has_a_line_a_node() {
        let mut g = Graph::new(Semantics::Algebraic);
        let x = g.input("x");
        let two = g.constant(2.0);
        let m = g.mul(two, x);
        let s = g.apply(Op::Sin, &[m]);
        assert_eq!(g.listing(&[s, x]), "n0 = input x\nn1 = const 2.0\nn2 = mul n1 n0\nn3 = sin n2\nroots n3 n0\n");
        assert_eq!(g.dot(&[s]).lines().count(), 3 + 4 + 3);
    }
}
