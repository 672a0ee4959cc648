//! Contraction of products and sums into fused multiply-adds: `a * b + c` rounded once.
//!
//! In: a kernel. Out: the kernel with [`Instr::MulAdd`] in place of products and sums. Values change in their last
//! digits, usually for the better, so the caller must request it. Every backend computes the same fused values.
//!
//! A product is fused if all its uses are sums and differences in its own block, each of which takes one product. The
//! product itself is then removed, which saves one operation. If both operands of a sum are products, the first is
//! fused and the second stays as the summand.

use crate::kernel::{Instr, Kernel, Reg, Signs, Stmt};
use chainrule_base::Id;
use chainrule_ops::Op;

/// Fuses products in `kernel` and returns the number of operations saved. Linear in its size.
pub fn contract(kernel: &mut Kernel) -> usize {
    // In a kernel of one block, only its own instructions use registers; these are counted on the way.
    let alone = matches!(kernel.body.as_slice(), [Stmt::Straight(_)]);
    let mut uses = Vec::new();
    if !alone {
        uses = vec![0; kernel.regs.len()];
        count_uses(&kernel.body, &mut uses);
    }
    let mut pass = Pass { product: vec![0; kernel.regs.len()], uses, products: Vec::new(), sums: Vec::new() };
    let mut saved = 0;
    let mut open: Vec<&mut Stmt> = kernel.body.iter_mut().collect();
    while let Some(stmt) = open.pop() {
        match stmt {
            Stmt::Straight(code) => {
                saved += if alone { pass.block::<true>(code) } else { pass.block::<false>(code) };
            }
            Stmt::For { body, .. } => open.extend(body),
            Stmt::While { condition, body, .. } => open.extend(condition.iter_mut().chain(body)),
            Stmt::If { then, otherwise, .. } => open.extend(then.iter_mut().chain(otherwise)),
            Stmt::Copy { .. } => {}
        }
    }
    saved
}

/// Counts the uses of real registers, by instructions and by results of loops and branches.
fn count_uses(body: &[Stmt], uses: &mut [u32]) {
    let mut open: Vec<&Stmt> = body.iter().collect();
    while let Some(stmt) = open.pop() {
        let mut read = |r: Reg| uses[r.index()] += 1;
        match stmt {
            Stmt::Straight(code) => code.iter().for_each(|instr| instr.for_each_use(&mut read)),
            Stmt::For { body, carried, .. } => {
                carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut read));
                open.extend(body);
            }
            Stmt::While { condition, body, carried, holds, .. } => {
                read(*holds);
                carried.iter().for_each(|c| [c.init, c.next].into_iter().for_each(&mut read));
                open.extend(condition.iter().chain(body));
            }
            Stmt::If { condition, then, otherwise, choices } => {
                read(*condition);
                choices.iter().for_each(|c| [c.then, c.otherwise].into_iter().for_each(&mut read));
                open.extend(then.iter().chain(otherwise));
            }
            Stmt::Copy { .. } => {}
        }
    }
}

struct Pass {
    /// Index of each register's product in [`Self::products`], or 0.
    product: Vec<u32>,
    /// Number of uses of each register, if counted.
    uses: Vec<u32>,
    /// Products of the block, in order; the first entry stands for no product.
    products: Vec<Product>,
    /// Linked lists of sums that use a product: the sum, and one more than the index of the next entry, or 0.
    sums: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Product {
    /// Position in the block.
    at: u32,
    /// Number of uses, if counted on the way.
    uses: u32,
    /// One more than the index in [`Pass::sums`] of the first sum that uses the product, or 0.
    sum: u32,
    /// Number of sums that use the product.
    n_sums: u32,
}

impl Product {
    fn new(at: u32) -> Self {
        Self { at, uses: 0, sum: 0, n_sums: 0 }
    }
}

impl Pass {
    /// Fuses products in one block. `COUNT`: uses are counted here.
    fn block<const COUNT: bool>(&mut self, code: &mut Vec<Instr>) -> usize {
        self.look::<COUNT>(code);
        // In order, so that a product comes before its uses.
        let mut gone: Vec<u32> = Vec::new();
        for product in &self.products[1..] {
            let Instr::Op { dst, args: [a, b, _], .. } = code[product.at as usize] else { continue };
            self.product[dst.index()] = 0;
            let uses = if COUNT { product.uses } else { self.uses[dst.index()] };
            // Unused products are removed too.
            if !self.sums.is_empty()
                && uses == product.n_sums
                && (uses == 0 || fuse(code, &self.sums, dst, [a, b], product))
            {
                gone.push(product.at);
            }
        }
        let saved = gone.len();
        if saved > 0 {
            gone.push(u32::MAX);
            let (mut at, mut next) = (0, 0);
            code.retain(|_| {
                let stays = gone[next] != at;
                next += usize::from(!stays);
                at += 1;
                stays
            });
        }
        saved
    }

    /// Finds the products of a block and the sums that use them.
    fn look<const COUNT: bool>(&mut self, code: &[Instr]) {
        let (product, products) = (self.product.as_mut_slice(), &mut self.products);
        products.clear();
        products.reserve(code.len() / 2);
        products.push(Product::new(0));
        self.sums.clear();
        for (at, instr) in (0u32..).zip(code) {
            match instr {
                Instr::Op { dst, op: op @ (Op::Mul | Op::Add | Op::Sub), args: [a, b, _] } => {
                    let [p, q] = [a, b].map(|r| product[r.index()]);
                    if COUNT {
                        products[p as usize].uses += 1;
                        products[q as usize].uses += 1;
                    }
                    if *op == Op::Mul {
                        product[dst.index()] = products.len() as u32;
                        products.push(Product::new(at));
                    } else if p | q != 0 && a != b {
                        // `p + p` and `p - p` use the product twice.
                        for p in [p, q].into_iter().filter(|p| *p != 0) {
                            let product = &mut products[p as usize];
                            self.sums.push((at, product.sum));
                            product.sum = self.sums.len() as u32;
                            product.n_sums += 1;
                        }
                    }
                }
                // Only real operands count; addresses have none.
                Instr::Const { .. } | Instr::Load { .. } => {}
                Instr::Store { value, .. } if COUNT => products[product[value.index()] as usize].uses += 1,
                instr if COUNT => instr.for_each_use(|r| products[product[r.index()] as usize].uses += 1),
                _ => {}
            }
        }
    }
}

/// Fuses the product `dst` into the sums that use it, unless one of them has taken another product. The sums come
/// later.
fn fuse(code: &mut [Instr], sums: &[(u32, u32)], dst: Reg, [a, b]: [Reg; 2], product: &Product) -> bool {
    let free = |i: u32| matches!(code[i as usize], Instr::Op { op: Op::Add | Op::Sub, .. });
    if !sums_from(sums, product.sum).all(free) {
        return false;
    }
    for i in sums_from(sums, product.sum) {
        let Instr::Op { dst: sum, op, args: [x, y, _] } = code[i as usize] else { continue };
        let (signs, c) = match (op, x == dst) {
            (Op::Add, true) => (Signs::Plus, y),
            (Op::Add, false) => (Signs::Plus, x),
            (_, true) => (Signs::MinusSummand, y),
            (_, false) => (Signs::MinusProduct, x),
        };
        code[i as usize] = Instr::MulAdd { dst: sum, signs, args: [a, b, c] };
    }
    true
}

/// Iterates over the list of sums that begins at `first`.
fn sums_from(sums: &[(u32, u32)], first: u32) -> impl Iterator<Item = u32> {
    let mut next = first;
    std::iter::from_fn(move || {
        let (sum, after) = *sums.get((next as usize).checked_sub(1)?)?;
        next = after;
        Some(sum)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphPort, lower_graph, verify};
    use chainrule_graph::{Graph, NodeId, Semantics};

    fn kernel(graph: &Graph, inputs: &[NodeId], outputs: &[NodeId]) -> Kernel {
        let port = |name: &str, nodes: &[NodeId]| GraphPort {
            name: name.into(),
            shape: vec![nodes.len()].into(),
            nodes: nodes.to_vec().into(),
        };
        lower_graph("f", graph, &[port("in", inputs)], &[port("out", outputs)]).unwrap()
    }

    #[test]
    fn products_go_into_the_sums_that_take_them() {
        let mut g = Graph::new(Semantics::Strict);
        let (x, y, z) = (g.input("x"), g.input("y"), g.input("z"));
        let p = g.raw(Op::Mul, &[x, y]);
        let (plus, minus, from) = (g.raw(Op::Add, &[p, z]), g.raw(Op::Sub, &[p, x]), g.raw(Op::Sub, &[z, p]));
        let q = g.raw(Op::Mul, &[x, z]);
        let r = g.raw(Op::Mul, &[y, z]);
        let both = g.raw(Op::Add, &[q, r]);
        let kept = g.raw(Op::Mul, &[z, z]);
        let sum = g.raw(Op::Add, &[kept, x]);
        let twice = g.raw(Op::Add, &[kept, kept]);
        let mut k = kernel(&g, &[x, y, z], &[plus, minus, from, both, sum, twice]);
        assert_eq!(contract(&mut k), 2);
        assert_eq!(verify(&k), Ok(()));
        insta::assert_snapshot!(k, @r"
        kernel f
        input in: real[3] in b0
        output out: real[6] in b1
        r0 = load b0[0]
        r1 = load b0[1]
        r3 = load b0[2]
        r4 = mul_add r0, r1, r3
        r5 = mul_sub r0, r1, r0
        store b1[0] = r4
        store b1[1] = r5
        r6 = neg_mul_add r0, r1, r3
        r8 = mul r1, r3
        r9 = mul_add r0, r3, r8
        store b1[2] = r6
        store b1[3] = r9
        r10 = mul r3, r3
        r11 = add r10, r0
        r12 = add r10, r10
        store b1[4] = r11
        store b1[5] = r12
        ");
    }

    #[test]
    fn signs_compute_what_their_names_say() {
        assert_eq!(Signs::Plus.value(2.0, 3.0, 5.0), 11.0);
        assert_eq!(Signs::MinusSummand.value(2.0, 3.0, 5.0), 1.0);
        assert_eq!(Signs::MinusProduct.value(2.0, 3.0, 5.0), -1.0);
        let tiny = f64::EPSILON;
        assert_eq!(Signs::Plus.value(1.0 + tiny, 1.0 - tiny, -1.0), -tiny * tiny, "rounded once");
    }
}
