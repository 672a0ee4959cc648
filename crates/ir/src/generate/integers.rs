//! Random arithmetic on large integers, near the limits of the representations that code may use by mistake: 31, 32 and
//! 53 bits, and near those of 64 bits, where arithmetic fails.

use super::Generator;
use crate::VarId;
use arbitrary::Result;
use chainrule_ops::{self as ops, Op, Row};

impl Generator<'_, '_> {
    /// Adds an integer near plus or minus 2^31, 2^32, 2^53, 2^62 or 2^63.
    fn large_constant(&mut self) -> Result<VarId> {
        let exponent: u32 = self.choose(&[62, 31, 32, 53, 63])?;
        let near = self.u.int_in_range(-2..=2)?;
        let value = (1i128 << exponent) + near;
        let value = if self.u.arbitrary()? { -value } else { value };
        Ok(self.b.int(i64::try_from(value).unwrap_or(if value > 0 { i64::MAX } else { i64::MIN })))
    }

    /// Adds arithmetic on a large constant, at most `depth` operators. Its value may be large, or fail.
    pub(super) fn large(&mut self, depth: u32) -> Result<VarId> {
        if depth == 0 {
            return self.large_constant();
        }
        let large = self.large(depth - 1)?;
        let rows: Vec<&'static Row> = ops::ROWS
            .iter()
            .filter(|row| row.int.is_some() && row.result == ops::Type::Num && !row.args.contains(&ops::Type::Bool))
            .collect();
        let op = self.u.choose(&rows)?.op;
        let mut args = vec![large];
        let divides = matches!(op, Op::Quot | Op::Mod);
        while args.len() < op.arity() {
            // Products and quotients of two large numbers fail, or are small.
            let both = !matches!(op, Op::Mul | Op::Quot) && self.u.ratio(1, 2)?;
            args.push(if both {
                self.large_constant()?
            } else if divides {
                let divisor = self.choose(&[3, 7, -2])?;
                self.b.int(divisor)
            } else {
                self.leaf(&crate::Type::Int)?
            });
        }
        if !divides && self.u.arbitrary()? {
            args.reverse();
        }
        Ok(self.b.op(op, &args))
    }

    /// Returns `int` modulo a small number.
    pub(super) fn reduced(&mut self, int: VarId) -> Result<VarId> {
        let modulus = self.choose(&[5, 2, 11])?;
        let modulus = self.b.int(modulus);
        Ok(self.b.op(Op::Mod, &[int, modulus]))
    }
}
