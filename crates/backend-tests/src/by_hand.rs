//! Builder of hand-written kernels with loops: registers and buffers one by one, then the statements.

use crate::data::{Array, reals};
use chainrule_base::{Name, Poly};
use chainrule_kernel::kernel::{SizeParam, SizeSource};
use chainrule_kernel::{Buffer, BufferId, Class, Instr, Kernel, Order, Place, Port, Reg, Stmt};
use chainrule_ops::Op;

/// A kernel without a body yet. Its arrays have one dimension.
#[derive(Debug)]
pub struct ByHand {
    kernel: Kernel,
    /// Instructions of the current block.
    pub code: Vec<Instr>,
}

impl ByHand {
    /// Returns an empty kernel.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { kernel: Kernel::empty(Name::new(name)), code: vec![] }
    }

    /// Adds a register.
    pub fn reg(&mut self, class: Class) -> Reg {
        self.kernel.regs.push(class)
    }

    /// Adds a number.
    pub fn real(&mut self) -> Reg {
        self.reg(Class::Real)
    }

    /// Adds a number computed from two.
    pub fn op(&mut self, op: Op, a: Reg, b: Reg) -> Reg {
        let dst = self.real();
        self.code.push(Instr::Op { dst, op, args: [a, b, a] });
        dst
    }

    /// Adds an address that is computed before it is used.
    pub fn in_register(&mut self, value: Poly<Reg>) -> Poly<Reg> {
        let dst = self.reg(Class::Int);
        self.code.push(Instr::Int { dst, value });
        Poly::var(dst)
    }

    /// Returns the current block and starts another one.
    pub fn straight(&mut self) -> Stmt {
        Stmt::Straight(std::mem::take(&mut self.code))
    }

    /// Adds a size, with an array of that size.
    pub fn size(&mut self, class: Class) -> (Reg, BufferId) {
        let (reg, input) = (self.reg(Class::Int), self.kernel.inputs.len());
        let name = Name::new(&format!("n{input}"));
        self.kernel.sizes.push(SizeParam { name, reg, source: SizeSource::Extent { input, dim: 0 } });
        (reg, self.input(class, &Poly::var(reg)))
    }

    /// Adds an input array.
    pub fn input(&mut self, class: Class, len: &Poly<Reg>) -> BufferId {
        let n = self.kernel.inputs.len();
        let port = self.port("x", n, class, len, Place::Input(n));
        self.kernel.inputs.push(port.clone());
        port.buffer
    }

    /// Adds an output array of doubles.
    pub fn output(&mut self, len: &Poly<Reg>) -> BufferId {
        let n = self.kernel.outputs.len();
        let port = self.port("y", n, Class::Real, len, Place::Output(n));
        self.kernel.outputs.push(port.clone());
        port.buffer
    }

    /// Adds workspace for doubles.
    pub fn memory(&mut self, len: &Poly<Reg>) -> BufferId {
        self.kernel.memory(len.clone())
    }

    fn port(&mut self, name: &str, n: usize, class: Class, len: &Poly<Reg>, place: Place) -> Port {
        let buffer = self.kernel.buffers.push(Buffer { class, len: len.clone(), place });
        Port { name: Name::new(&format!("{name}{n}")), shape: vec![len.clone()], buffer }
    }

    /// Returns the finished kernel.
    #[must_use]
    pub fn with_body(mut self, body: Vec<Stmt>) -> Kernel {
        self.kernel.body = body;
        self.kernel
    }
}

/// Returns a loop without carried values.
#[must_use]
pub fn each(index: Reg, count: Poly<Reg>, body: Vec<Stmt>) -> Stmt {
    Stmt::For { index, count, carried: vec![], order: Order::InOrder, body }
}

/// Returns integers from -3 to 3 for the arrays of a kernel with these sizes.
///
/// # Panics
/// Panics if an array has a negative length.
#[must_use]
pub fn small_integers(kernel: &Kernel, sizes: &[usize]) -> Vec<Array> {
    let size = |r: Reg| kernel.sizes.iter().position(|size| size.reg == r).map_or(0, |at| sizes[at] as i64);
    let len = |port: &Port| usize::try_from(port.shape[0].eval(size).unwrap()).unwrap();
    let number = |seed: usize, i: usize| ((i * 37 + seed * 11) % 7) as f64 - 3.0;
    let array = |(seed, len): (usize, usize)| reals(&(0..len).map(|i| number(seed, i)).collect::<Vec<_>>());
    kernel.inputs.iter().map(len).enumerate().map(array).collect()
}
