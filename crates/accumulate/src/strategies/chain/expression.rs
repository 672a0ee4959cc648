//! An accumulation program as a set of algebraic expressions connected by reference variables (the
//! notes, section 4): `e1(e3e7e11+e4s1)`.
//!
//! In: a program, names of edges, and the labels that are references. Out: text, for people and for tests.
//!
//! A step that is a single product is written without parentheses inside a product, because products associate.

use crate::{LabelId, Program};
use chainrule_base::Id;

/// Returns the labels that more than one product or result uses, in their order: the candidates for references.
#[must_use]
pub fn shared(program: &Program) -> Vec<LabelId> {
    let mut uses = vec![0u32; program.n_labels()];
    for step in 0..program.n_steps() {
        for factor in program.step(step).flat_map(|p| p.factors) {
            uses[factor.index()] += 1;
        }
    }
    for entry in program.results() {
        uses[entry.label.index()] += 1;
    }
    (0..program.n_steps()).map(|step| program.step_label(step)).filter(|label| uses[label.index()] > 1).collect()
}

/// Maximum length of an expression.
pub const MAX_LENGTH: usize = 10_000;

/// Returns the expression of a label. Edges are named by `edge`; other labels among `references` (ascending) are s1,
/// s2, ... in their order. `None` if it is longer than [`MAX_LENGTH`].
#[must_use]
pub fn of(
    program: &Program,
    label: LabelId,
    references: &[LabelId],
    edge: impl Fn(LabelId) -> String,
) -> Option<String> {
    // Text, and whether it is a sum; steps only use earlier labels.
    let mut texts: Vec<Option<(String, bool)>> = Vec::with_capacity(label.index() + 1);
    for idx in 0..=label.index() {
        let at = LabelId::new(idx);
        if idx < program.n_edges() {
            texts.push(Some((edge(at), false)));
            continue;
        }
        let reference = references.binary_search(&at);
        if let Ok(number) = reference
            && at != label
        {
            texts.push(Some((format!("s{}", number + 1), false)));
            continue;
        }
        texts.push(sum(program, idx - program.n_edges(), &texts));
    }
    texts.pop().flatten().map(|(text, _)| text)
}

fn sum(program: &Program, step: usize, texts: &[Option<(String, bool)>]) -> Option<(String, bool)> {
    let mut text = String::new();
    let mut n_terms = 0;
    for product in program.step(step) {
        // A sum that is the only factor of a product needs no parentheses unless it is subtracted.
        let alone = product.factors.len() == 1 && !product.negative;
        if product.negative {
            text.push('-');
        } else if n_terms > 0 {
            text.push('+');
        }
        for factor in product.factors {
            let (factor, is_sum) = texts[factor.index()].as_ref()?;
            if *is_sum && !alone {
                text.push('(');
                text.push_str(factor);
                text.push(')');
            } else {
                n_terms += usize::from(*is_sum);
                text.push_str(factor);
            }
        }
        n_terms += 1;
        if text.len() > MAX_LENGTH {
            return None;
        }
    }
    Some((text, n_terms > 1))
}
