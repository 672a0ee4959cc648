//! Operators as Cranelift instructions, for doubles and integers.
//!
//! They agree with the operators' rows bit for bit: `min(a, b)` is `b < a ? b : a`, comparisons with NaN are false.
//! Truth values are integers; every nonzero one is true. Operators without an instruction are calls: of our own
//! elementary functions, of the rows for all others.

use crate::code::bug;
use crate::frame::Frame;
use crate::lower::{Callee, Result, Writer};
use crate::support;
use chainrule_base::Poly;
use chainrule_kernel::{BufferId, Reg, Signs};
use chainrule_mathfun::Form;
use chainrule_ops::{Op, Type};
use chainrule_runtime::{Overflow, Site};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::immediates::Ieee64;
use cranelift_codegen::ir::{InstBuilder, Value, types};

impl Writer<'_, '_> {
    pub fn real(&mut self, value: f64) -> Value {
        self.b.ins().f64const(Ieee64::with_bits(value.to_bits()))
    }

    /// Returns a flag as integer 0 or 1.
    fn truth(&mut self, flag: Value) -> Value {
        self.b.ins().uextend(types::I64, flag)
    }

    /// Returns whether an integer is true.
    fn is_true(&mut self, value: Value) -> Value {
        self.b.ins().icmp_imm_s(IntCC::NotEqual, value, 0)
    }

    /// Emits an operator on doubles and truth values.
    pub fn op(&mut self, op: Op, args: &[Reg]) -> Result<Value> {
        let values: Vec<Value> = args.iter().map(|r| self.value(*r)).collect::<Result<_>>()?;
        let compare = |this: &mut Self, condition: FloatCC| {
            let flag = this.b.ins().fcmp(condition, values[0], values[1]);
            this.truth(flag)
        };
        Ok(match (op, values.as_slice()) {
            (Op::Add, [a, b]) => self.b.ins().fadd(*a, *b),
            (Op::Sub, [a, b]) => self.b.ins().fsub(*a, *b),
            (Op::Mul, [a, b]) => self.b.ins().fmul(*a, *b),
            (Op::Div, [a, b]) => self.b.ins().fdiv(*a, *b),
            (Op::Neg, [a]) => self.b.ins().fneg(*a),
            (Op::Abs, [a]) => self.b.ins().fabs(*a),
            (Op::Sqrt, [a]) => self.b.ins().sqrt(*a),
            (Op::Floor, [a]) => self.b.ins().floor(*a),
            (Op::Ceil, [a]) => self.b.ins().ceil(*a),
            (Op::Lt, [_, _]) => compare(self, FloatCC::LessThan),
            (Op::Le, [_, _]) => compare(self, FloatCC::LessThanOrEqual),
            (Op::Eq, [_, _]) => compare(self, FloatCC::Equal),
            (Op::Min, [a, b]) => {
                let less = self.b.ins().fcmp(FloatCC::LessThan, *b, *a);
                self.b.ins().select(less, *b, *a)
            }
            (Op::Max, [a, b]) => {
                let less = self.b.ins().fcmp(FloatCC::LessThan, *a, *b);
                self.b.ins().select(less, *b, *a)
            }
            (Op::And, [a, b]) => {
                let (a, b) = (self.is_true(*a), self.is_true(*b));
                let both = self.b.ins().band(a, b);
                self.truth(both)
            }
            (Op::Or, [a, b]) => {
                let any = self.b.ins().bor(*a, *b);
                let any = self.is_true(any);
                self.truth(any)
            }
            (Op::Not, [a]) => {
                let zero = self.b.ins().icmp_imm_s(IntCC::Equal, *a, 0);
                self.truth(zero)
            }
            (Op::Select, [condition, a, b]) => {
                let condition = self.is_true(*condition);
                self.b.ins().select(condition, *a, *b)
            }
            _ => return self.call_op(op, &values),
        })
    }

    /// Emits a call of an operator: of our own function, or by its row.
    fn call_op(&mut self, op: Op, values: &[Value]) -> Result<Value> {
        let row = op.row();
        if let Some(entry) = row.elementary.and_then(|function| function.entry(Form::One)) {
            return Ok(self.call(entry, Callee::Elementary, values, types::F64));
        }
        let mut args = vec![self.integer(op as i64)];
        for (value, ty) in values.iter().zip(row.args) {
            args.push(match ty {
                Type::Num => *value,
                Type::Bool => {
                    let flag = self.is_true(*value);
                    let truth = self.truth(flag);
                    self.b.ins().fcvt_from_sint(types::F64, truth)
                }
            });
        }
        let address = match values.len() {
            1 => support::call1 as *const (),
            2 => support::call2 as *const (),
            3 => support::call3 as *const (),
            _ => return Err(bug("an operator of more than three arguments")),
        };
        let value = self.call(address, Callee::Support, &args, types::F64);
        if row.result == Type::Num {
            return Ok(value);
        }
        let zero = self.real(0.0);
        let flag = self.b.ins().fcmp(FloatCC::NotEqual, value, zero);
        Ok(self.truth(flag))
    }

    /// Emits a conversion to an integer, rounded towards zero: the least integer for NaN and beyond 64 bits.
    pub fn truncated(&mut self, x: Value) -> Value {
        let saturated = self.b.ins().fcvt_to_sint_sat(types::I64, x);
        let limit = self.real(9_223_372_036_854_775_808.0);
        let fits = self.b.ins().fcmp(FloatCC::LessThan, x, limit);
        let least = self.integer(i64::MIN);
        self.b.ins().select(fits, saturated, least)
    }

    /// Emits a fused multiply-add.
    pub fn mul_add(&mut self, signs: Signs, args: &[Reg; 3]) -> Result<Value> {
        let (mut a, b, mut c) = (self.value(args[0])?, self.value(args[1])?, self.value(args[2])?);
        match signs {
            Signs::Plus => {}
            Signs::MinusSummand => c = self.b.ins().fneg(c),
            Signs::MinusProduct => a = self.b.ins().fneg(a),
        }
        Ok(self.b.ins().fma(a, b, c))
    }

    /// Emits a call of a user function.
    pub fn external(&mut self, function: usize, args: &[Reg]) -> Result<Value> {
        let first = self.frame.arguments();
        for (i, r) in args.iter().enumerate() {
            let value = self.value(*r)?;
            self.set_word(first + i, value);
        }
        let calls = self.word(Frame::CALLS);
        let function = self.integer(function as i64);
        let arguments = self.address_of(first);
        let there =
            self.call(support::call_external as *const (), Callee::Support, &[calls, function, arguments], types::I64);
        self.fail_if_zero(there, Site::Panic, &[]);
        Ok(self.real_word(first))
    }

    /// Emits an integer operator.
    pub fn int_op(&mut self, op: Op, args: &[Reg], failure: usize) -> Result<Value> {
        let values: Vec<Value> = args.iter().map(|r| self.value(*r)).collect::<Result<_>>()?;
        let site = Site::NoResult { failure, op };
        let compare = |this: &mut Self, condition: IntCC| {
            let flag = this.b.ins().icmp(condition, values[0], values[1]);
            this.truth(flag)
        };
        Ok(match (op, values.as_slice()) {
            (Op::Add, [a, b]) => {
                let (sum, over) = self.checked_add(*a, *b);
                self.fail_if_negative(over, site, &values);
                sum
            }
            (Op::Sub, [a, b]) => {
                let difference = self.b.ins().isub(*a, *b);
                // The signs of a and b differ, and those of a and the difference do.
                let (other, moved) = (self.b.ins().bxor(*a, *b), self.b.ins().bxor(*a, difference));
                let over = self.b.ins().band(other, moved);
                self.fail_if_negative(over, site, &values);
                difference
            }
            (Op::Mul, [a, b]) => {
                let (product, over) = self.checked_mul(*a, *b);
                let over = self.is_true(over);
                self.fail_if(over, site, &values);
                product
            }
            (Op::Neg, [a]) => {
                let least = self.b.ins().icmp_imm_s(IntCC::Equal, *a, i64::MIN);
                self.fail_if(least, site, &values);
                self.b.ins().ineg(*a)
            }
            (Op::Lt, [_, _]) => compare(self, IntCC::SignedLessThan),
            (Op::Le, [_, _]) => compare(self, IntCC::SignedLessThanOrEqual),
            (Op::Eq, [_, _]) => compare(self, IntCC::Equal),
            (Op::Min, [a, b]) => {
                let less = self.b.ins().icmp(IntCC::SignedLessThan, *b, *a);
                self.b.ins().select(less, *b, *a)
            }
            (Op::Max, [a, b]) => {
                let less = self.b.ins().icmp(IntCC::SignedLessThan, *a, *b);
                self.b.ins().select(less, *b, *a)
            }
            _ => {
                for (i, value) in values.iter().enumerate() {
                    self.set_word(Frame::NUMBERS + i, *value);
                }
                let (row, arity) = (self.integer(op as i64), self.integer(values.len() as i64));
                let (numbers, result) = (self.address_of(Frame::NUMBERS), self.address_of(Frame::RESULT));
                let there = self.call(
                    support::call_int as *const (),
                    Callee::Support,
                    &[row, arity, numbers, result],
                    types::I64,
                );
                self.fail_if_zero(there, site, &values);
                self.word(Frame::RESULT)
            }
        })
    }

    fn fail_if_negative(&mut self, value: Value, site: Site, numbers: &[Value]) {
        let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, value, 0);
        self.fail_if(negative, site, numbers);
    }

    /// Emits a wrapping sum, and a number that is negative on overflow.
    fn checked_add(&mut self, a: Value, b: Value) -> (Value, Value) {
        let sum = self.b.ins().iadd(a, b);
        // The sign of the sum differs from those of a and b.
        let (from_a, from_b) = (self.b.ins().bxor(a, sum), self.b.ins().bxor(b, sum));
        (sum, self.b.ins().band(from_a, from_b))
    }

    /// Emits a wrapping product, and a number that is not 0 on overflow.
    fn checked_mul(&mut self, a: Value, b: Value) -> (Value, Value) {
        let (low, high) = (self.b.ins().imul(a, b), self.b.ins().smulhi(a, b));
        let sign = self.b.ins().sshr_imm_u(low, 63);
        (low, self.b.ins().bxor(high, sign))
    }

    /// Emits a polynomial, in the steps of [`Poly::eval`].
    pub fn poly(&mut self, poly: &Poly<Reg>, overflow: Overflow) -> Result<Value> {
        if let Some(value) = poly.as_constant() {
            return Ok(self.integer(value));
        }
        let (mut sum, mut over): (Option<Value>, Option<Value>) = (None, None);
        // All steps precede one check: they have no side effects.
        let mut learn = |this: &mut Self, flag: Value| {
            over = Some(match over {
                Some(before) => this.b.ins().bor(before, flag),
                None => flag,
            });
        };
        for (monomial, c) in poly.terms() {
            let mut product = (c != 1 || monomial.is_empty()).then(|| self.integer(c));
            for r in monomial {
                let factor = self.value(*r)?;
                product = Some(match product {
                    None => factor,
                    Some(before) if overflow == Overflow::Fails => {
                        let (next, lost) = self.checked_mul(before, factor);
                        let flag = self.is_true(lost);
                        learn(self, flag);
                        next
                    }
                    Some(before) => self.b.ins().imul(before, factor),
                });
            }
            let Some(product) = product else { continue };
            sum = Some(match sum {
                None => product,
                Some(before) if overflow == Overflow::Fails => {
                    let (next, lost) = self.checked_add(before, product);
                    let flag = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, lost, 0);
                    learn(self, flag);
                    next
                }
                Some(before) => self.b.ins().iadd(before, product),
            });
        }
        if let Some(over) = over {
            self.fail_if(over, Site::Overflow(self.computing), &[]);
        }
        match sum {
            Some(sum) => Ok(sum),
            None => Ok(self.integer(0)),
        }
    }

    pub fn copy(&mut self, to: &(BufferId, Poly<Reg>), from: &(BufferId, Poly<Reg>), len: &Poly<Reg>) -> Result<()> {
        for (i, poly) in [&to.1, &from.1, len].into_iter().enumerate() {
            let value = self.poly(poly, Overflow::Fails)?;
            self.set_word(Frame::NUMBERS + i, value);
        }
        let args = [
            self.word(self.frame.pointer(to.0)),
            self.word(self.frame.pointer(from.0)),
            self.address_of(Frame::NUMBERS),
            self.word(self.frame.length(to.0)),
            self.word(self.frame.length(from.0)),
        ];
        let inside = self.call(support::copy as *const (), Callee::Support, &args, types::I64);
        self.fail_if_zero(inside, Site::Outside, &[]);
        Ok(())
    }
}
