//! Tidying a program: steps that are equal up to sign are made once, steps that only copy or negate
//! are taken out, and so are steps that no result needs.
//!
//! In: a program of any strategy. Out: a program with the same results at every point (real
//! arithmetic; only the order of factors and terms and the place of signs change).

use crate::program::{Builder, Entry, Program};
use crate::{Label, LabelId};
use chainrule_base::{Arena, Id};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A label of the tidied program, and whether it is negated.
type Signed = (LabelId, bool);

/// A step in one normal form: for each product its sign and number of factors, then the factors, sorted.
type Key = SmallVec<[u32; 8]>;

impl Program {
    /// The program without steps that no result needs. Linear.
    #[must_use]
    pub fn pruned(&self) -> Self {
        let needed = self.needed();
        let mut builder = self.fresh();
        let mut new: Vec<LabelId> = (0..self.n_edges()).map(LabelId::new).collect();
        for idx in 0..self.n_steps() {
            if !needed[self.step_label(idx).index()] {
                new.push(LabelId::new(0));
                continue;
            }
            for product in self.step(idx) {
                let factors: Vec<LabelId> = product.factors.iter().map(|f| new[f.index()]).collect();
                builder.add_signed(product.negative, &factors);
            }
            new.push(builder.close());
        }
        let results = self.results().iter().map(|e| Entry { label: new[e.label.index()], ..*e }).collect();
        builder.finish_with(results)
    }

    /// The program with equal steps shared; never more operations than before in any counting but
    /// for the negation of a result. Linear but for the sorting of factors and products in each step.
    #[must_use]
    pub fn tidied(&self) -> Self {
        let needed = self.needed();
        let mut builder = self.fresh();
        let mut made: FxHashMap<Key, LabelId> = FxHashMap::default();
        let mut new: Vec<Signed> = self.edge_labels();
        for idx in 0..self.n_steps() {
            if !needed[self.step_label(idx).index()] {
                new.push((LabelId::new(0), false));
                continue;
            }
            new.push(self.tidy_step(idx, &new, &mut made, &mut builder));
        }
        let mut negated: FxHashMap<LabelId, LabelId> = FxHashMap::default();
        let mut results = Vec::with_capacity(self.results().len());
        for entry in self.results() {
            let (label, negative) = new[entry.label.index()];
            let label = if negative {
                *negated.entry(label).or_insert_with(|| {
                    builder.add_signed(true, &[label]);
                    builder.close()
                })
            } else {
                label
            };
            results.push(Entry { label, ..*entry });
        }
        builder.finish_with(results)
    }

    /// Edges of label 1, and those of label -1, are one label each.
    fn edge_labels(&self) -> Vec<Signed> {
        let mut first: [Option<LabelId>; 2] = [None; 2];
        (0..self.n_edges())
            .map(|idx| {
                let label = LabelId::new(idx);
                match self.kind(label) {
                    Label::One => (*first[0].get_or_insert(label), false),
                    Label::MinusOne => (*first[1].get_or_insert(label), false),
                    Label::Const | Label::Var => (label, false),
                }
            })
            .collect()
    }

    fn tidy_step(
        &self,
        idx: usize,
        new: &[Signed],
        made: &mut FxHashMap<Key, LabelId>,
        builder: &mut Builder,
    ) -> Signed {
        let mut products: SmallVec<[(bool, SmallVec<[LabelId; 4]>); 4]> = self
            .step(idx)
            .map(|product| {
                let mut negative = product.negative;
                let mut factors = SmallVec::new();
                for factor in product.factors {
                    let (label, label_negative) = new[factor.index()];
                    negative ^= label_negative;
                    match builder.kind(label) {
                        Label::One => {}
                        Label::MinusOne => negative = !negative,
                        Label::Const | Label::Var => factors.push(label),
                    }
                }
                factors.sort_unstable();
                (negative, factors)
            })
            .collect();
        products.sort_unstable_by(|a, b| a.1.cmp(&b.1).then(a.0.cmp(&b.0)));
        // One sign for a step and its negation, so that they are found to be equal.
        let negative = products[0].0;
        if negative {
            for product in &mut products {
                product.0 = !product.0;
            }
        }
        if let [(false, factors)] = products.as_slice()
            && let [label] = factors.as_slice()
        {
            return (*label, negative);
        }
        let mut key = Key::new();
        for (product_negative, factors) in &products {
            key.push(2 * factors.len() as u32 + u32::from(*product_negative));
            key.extend(factors.iter().map(|f| f.index() as u32));
        }
        if let Some(label) = made.get(&key) {
            return (*label, negative);
        }
        for (product_negative, factors) in &products {
            builder.add_signed(*product_negative, factors);
        }
        let label = builder.close();
        made.insert(key, label);
        (label, negative)
    }

    /// By label, whether a result needs it.
    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.n_labels()];
        for entry in self.results() {
            needed[entry.label.index()] = true;
        }
        for idx in (0..self.n_steps()).rev() {
            if needed[self.step_label(idx).index()] {
                for factor in self.step(idx).flat_map(|p| p.factors) {
                    needed[factor.index()] = true;
                }
            }
        }
        needed
    }

    fn fresh(&self) -> Builder {
        let (n_rows, n_columns) = self.shape();
        let kinds: Arena<LabelId, Label> = (0..self.n_edges()).map(|idx| self.kind(LabelId::new(idx))).collect();
        Builder::with_kinds(n_rows, n_columns, kinds)
    }
}
