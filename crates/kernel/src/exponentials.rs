//! Shared exponentials: a hyperbolic tangent is computed from the exponential of its slope, if both are wanted.
//!
//! In: a kernel with tanh x and, in the same block, e = exp(-2 |x|), which the slope 4 e / (1 + e)^2 takes. Out: the
//! kernel without that tanh. Value and slope then cost one elementary function.
//!
//! ```text
//! tanh x = x (1 + z p(z)), z = x^2     where |x| < 0.32
//!          sign x (1 - e) / (1 + e)    elsewhere
//! ```
//!
//! The difference 1 - e loses at most one digit there. The error is at most 2 ulp.

use crate::kernel::{Class, Instr, Kernel, Reg};
use crate::rebuild::each_block;
use crate::registers::Registers;
use chainrule_ops::Op;
use rustc_hash::{FxHashMap, FxHashSet};

/// Bound of the arguments of the polynomial.
const NEAR: f64 = 0.32;

/// (tanh(x) / x - 1) / z by powers of z = x^2, with an error of 0.1 ulp of tanh: interpolated at the zeros of the
/// Chebyshev polynomial of degree 8.
const POLYNOMIAL: [f64; 8] = [
    -0.333_333_333_333_333_26,
    0.133_333_333_333_239_66,
    -0.053_968_253_949_011_04,
    0.021_869_487_027_968_676,
    -0.008_863_177_356_351_552,
    0.003_590_905_245_019_022_6,
    -0.001_441_498_439_765_568,
    0.000_501_042_008_675_749_7,
];

/// Shares the exponentials of `kernel`. Linear in its size.
pub(crate) fn share_exponentials(kernel: &mut Kernel) {
    let Kernel { body, regs, .. } = kernel;
    let mut doublings = FxHashSet::default();
    let mut has_tangent = false;
    each_block(body, |code| {
        for instr in &*code {
            match instr {
                Instr::Const { dst, value: -2.0 } => _ = doublings.insert(*dst),
                Instr::Op { op: Op::Tanh, .. } => has_tangent = true,
                _ => {}
            }
        }
    });
    if has_tangent && !doublings.is_empty() {
        each_block(body, |code| block(code, regs, &doublings));
    }
}

/// The code of exp(-2 |x|).
#[derive(Clone, Copy)]
struct Power {
    /// |x|.
    size: Reg,
    value: Reg,
    /// Instructions that compute |x|, the product with -2 and its exponential, by their numbers in the block.
    code: [usize; 3],
}

/// Returns the powers exp(-2 |x|) of a block by x; `doublings` are the registers that are -2.
fn powers(code: &[Instr], doublings: &FxHashSet<Reg>) -> FxHashMap<Reg, Power> {
    let (mut sizes, mut products, mut powers) = (FxHashMap::default(), FxHashMap::default(), FxHashMap::default());
    for (at, instr) in code.iter().enumerate() {
        let Instr::Op { dst, op, args: [a, b, _] } = instr else { continue };
        match op {
            Op::Abs => _ = sizes.insert(*dst, (*a, at)),
            Op::Mul => {
                let size = if doublings.contains(a) { b } else { a };
                let is_doubled = doublings.contains(a) || doublings.contains(b);
                if let Some((x, of_size)) = sizes.get(size).filter(|_| is_doubled) {
                    products.insert(*dst, (*x, *size, [*of_size, at]));
                }
            }
            Op::Exp => {
                if let Some((x, size, [first, second])) = products.get(a) {
                    let power = Power { size: *size, value: *dst, code: [*first, *second, at] };
                    powers.entry(*x).or_insert(power);
                }
            }
            _ => {}
        }
    }
    powers
}

/// Replaces the tangents of a block whose exponential it computes.
fn block(code: &mut Vec<Instr>, regs: &mut Registers, doublings: &FxHashSet<Reg>) {
    let is_tangent = |instr: &Instr| matches!(instr, Instr::Op { op: Op::Tanh, .. });
    if !code.iter().any(is_tangent) {
        return;
    }
    let powers = powers(code, doublings);
    if powers.is_empty() {
        return;
    }
    let old = std::mem::take(code);
    let mut is_done = vec![false; old.len()];
    let mut writer = Writer { code, regs, constants: FxHashMap::default() };
    for (at, instr) in old.iter().enumerate() {
        let power = match instr {
            Instr::Op { op: Op::Tanh, args: [x, ..], .. } => powers.get(x),
            _ => None,
        };
        match (instr, power) {
            (Instr::Op { dst, args: [x, ..], .. }, Some(power)) => {
                writer.exponential(&old, at, power, &mut is_done);
                writer.tangent(*dst, *x, power);
            }
            _ if is_done[at] => {}
            _ => writer.code.push(instr.clone()),
        }
    }
}

struct Writer<'a> {
    code: &'a mut Vec<Instr>,
    regs: &'a mut Registers,
    /// Constants of this block, by their bits.
    constants: FxHashMap<u64, Reg>,
}

impl Writer<'_> {
    fn constant(&mut self, value: f64) -> Reg {
        let (code, regs) = (&mut *self.code, &mut *self.regs);
        *self.constants.entry(value.to_bits()).or_insert_with(|| {
            let dst = regs.push(Class::Real);
            code.push(Instr::Const { dst, value });
            dst
        })
    }

    fn op(&mut self, op: Op, a: Reg, b: Reg) -> Reg {
        let dst = self.regs.push(if op.gives_truth() { Class::Int } else { Class::Real });
        self.code.push(Instr::Op { dst, op, args: [a, b, a] });
        dst
    }

    /// Emits the instructions of `power` in `old` that come after `at`, and notes that they are done.
    fn exponential(&mut self, old: &[Instr], at: usize, power: &Power, is_done: &mut [bool]) {
        for later in power.code.into_iter().filter(|later| *later > at) {
            if is_done[later] {
                continue;
            }
            is_done[later] = true;
            let mut instr = old[later].clone();
            if let Instr::Op { op: Op::Mul, args, .. } = &mut instr {
                // The constant may come later too.
                let doubling = self.constant(-2.0);
                *args = [doubling, power.size, doubling];
            }
            self.code.push(instr);
        }
    }

    /// Emits tanh x.
    fn tangent(&mut self, dst: Reg, x: Reg, &Power { size, value: power, .. }: &Power) {
        let [one, zero, bound] = [1.0, 0.0, NEAR].map(|value| self.constant(value));
        let z = self.op(Op::Mul, x, x);
        let [lower @ .., last] = POLYNOMIAL;
        let mut p = self.constant(last);
        for coefficient in lower.into_iter().rev() {
            let (product, coefficient) = (self.op(Op::Mul, p, z), self.constant(coefficient));
            p = self.op(Op::Add, product, coefficient);
        }
        let rest = self.op(Op::Mul, z, p);
        let factor = self.op(Op::Add, one, rest);
        // Keeps the sign of 0.
        let near = self.op(Op::Mul, x, factor);
        let (below, above) = (self.op(Op::Sub, one, power), self.op(Op::Add, one, power));
        let far = self.op(Op::Div, below, above);
        let minus = self.op(Op::Neg, far, far);
        let [is_negative, is_near] = [(x, zero), (size, bound)].map(|(a, b)| self.op(Op::Lt, a, b));
        let signed = self.regs.push(Class::Real);
        self.code.extend([
            Instr::Op { dst: signed, op: Op::Select, args: [is_negative, minus, far] },
            Instr::Op { dst, op: Op::Select, args: [is_near, near, signed] },
        ]);
    }
}
