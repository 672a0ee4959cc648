//! Clean-up of programs: steps that are equal up to sign are shared; copies, negations and unused steps are removed.
//!
//! In: a program of any strategy. Out: a program with the same results at every point in real arithmetic; the order of
//! factors and terms and the position of signs may change.

use crate::program::{Builder, Entry, Product, Program};
use crate::{Label, LabelId};
use chainrule_base::{Arena, Id};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A label of the cleaned-up program, and whether it is negated.
type Signed = (LabelId, bool);

/// Normal form of a step: sign and number of factors of each product, then the sorted factors.
type Key = SmallVec<[u32; 8]>;

impl Program {
    /// Returns the program without steps that no result needs. Linear.
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
                builder.add_product(Product { negative: product.negative, factors: &factors });
            }
            new.push(builder.close());
        }
        let results = self.results().iter().map(|e| Entry { label: new[e.label.index()], ..*e }).collect();
        builder.finish_with(results)
    }

    /// Returns the program with equal steps shared. No count of operations increases, except for the negation of a
    /// result. Linear, plus the sorting of factors and products in each step.
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
            new.push(self.clean_step(idx, &new, &mut made, &mut builder));
        }
        let mut negated: FxHashMap<LabelId, LabelId> = FxHashMap::default();
        let mut results = Vec::with_capacity(self.results().len());
        for entry in self.results() {
            let (label, negative) = new[entry.label.index()];
            let label = if negative {
                *negated.entry(label).or_insert_with(|| {
                    builder.add_product(Product { negative: true, factors: &[label] });
                    builder.close()
                })
            } else {
                label
            };
            results.push(Entry { label, ..*entry });
        }
        builder.finish_with(results)
    }

    /// Returns one label for all edges of label 1, and one for those of label -1.
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

    fn clean_step(
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
        // A step and its negation get one sign, so that they are found equal.
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
            builder.add_product(Product { negative: *product_negative, factors });
        }
        let label = builder.close();
        made.insert(key, label);
        (label, negative)
    }

    /// Returns, for each label, whether a result needs it.
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
