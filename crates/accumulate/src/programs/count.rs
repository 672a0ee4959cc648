//! Operation counts of programs, without building expressions.

use crate::program::{Product, Program, is_unit};
use crate::{Label, LabelId};
use chainrule_ops::{Counts, Op};

/// Operations that count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counting {
    /// Every product of two labels is a multiplication, as in the literature.
    Plain,
    /// Multiplications by 1 and -1 are free.
    UnitFree,
    /// Arithmetic on constants is free as well, as in generated code.
    Folded,
}

impl Program {
    /// Returns the operation counts, without those that compute the labels of edges. Linear in the program.
    #[must_use]
    pub fn count(&self, counting: Counting) -> Counts {
        let mut counts = Counts::default();
        for idx in 0..self.n_steps() {
            self.count_step(idx, counting, &mut counts);
        }
        counts
    }

    fn count_step(&self, idx: usize, counting: Counting, counts: &mut Counts) {
        if counting == Counting::Folded && self.kind(self.step_label(idx)) != Label::Var {
            return;
        }
        let mut n_products = 0;
        let mut all_negative = true;
        let mut only_units = true;
        let mut has_constant_product = false;
        for product in self.step(idx) {
            let factors = self.paid_factors(&product, counting);
            counts.record_many(Op::Mul, factors.saturating_sub(1));
            let constant = product.factors.iter().all(|f| self.kind(*f) != Label::Var);
            let folds = counting == Counting::Folded && constant && has_constant_product;
            has_constant_product |= constant;
            n_products += u64::from(!folds);
            all_negative &= self.is_negative(&product);
            only_units &= product.factors.iter().all(|f| is_unit(self.kind(*f)));
        }
        counts.record_many(Op::Add, n_products - 1);
        if counting != Counting::Plain && all_negative && !only_units {
            counts.record(Op::Neg);
        }
    }

    /// Returns the number of factors that cost a multiplication.
    fn paid_factors(&self, product: &Product<'_>, counting: Counting) -> u64 {
        let is_const = |f: &&LabelId| self.kind(**f) == Label::Const;
        let n = match counting {
            Counting::Plain => product.factors.len(),
            Counting::UnitFree => product.factors.iter().filter(|f| !is_unit(self.kind(**f))).count(),
            Counting::Folded => {
                let n_var = product.factors.iter().filter(|f| self.kind(**f) == Label::Var).count();
                n_var + usize::from(product.factors.iter().any(|f| is_const(&f)))
            }
        };
        n as u64
    }
}
