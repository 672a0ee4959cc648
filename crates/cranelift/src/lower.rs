//! Lowering of a kernel's events to Cranelift instructions.
//!
//! In: a verified kernel. Out: a function from the frame to 0, or to the number of the failed site, from 1. Registers
//! are in single assignment form in both, so each is looked up in a table; loop-carried values and results of branches
//! are block parameters.
//!
//! | kernel | Cranelift |
//! | --- | --- |
//! | `for` | a header with the index and the carried values; the body; the exit |
//! | `while` | a header with the counter and the carried values; the test of the limit; the body; the exit |
//! | `if` | two blocks; a join block whose parameters are the results |
//! | a check | a jump to a cold block, which stores the numbers and returns |

use crate::code::bug;
use crate::frame::Frame;
use chainrule_base::{Diagnostic, Id, Poly};
use chainrule_kernel::{BufferId, Carried, Class, Event, Instr, Kernel, Reg, with_late_constants, with_stored_zeros};
use chainrule_runtime::{InRange, Overflow, Site};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::immediates::Offset32;
use cranelift_codegen::ir::{
    AbiParam, Block, BlockArg, Function, InstBuilder, MemFlagsData, SigRef, Signature, Type, UserFuncName, Value, types,
};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::collections::HashMap;

pub(crate) type Result<T> = std::result::Result<T, Diagnostic>;

/// Result of lowering.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub frame: Frame,
    /// Failure of each site number, from 1.
    pub sites: Vec<Site>,
}

/// An open loop.
enum Loop {
    For { head: Block, exit: Block },
    While { head: Block, exit: Block, counter: Value, limit: Value, next: Option<Value> },
}

/// Lowers `kernel` into `function`. Linear in its size.
///
/// # Errors
/// A bug if the kernel violates its invariants.
pub(crate) fn lower(
    kernel: &Kernel,
    in_range: Option<InRange>,
    config: TargetFrontendConfig,
    function: &mut Function,
    context: &mut FunctionBuilderContext,
) -> Result<Lowered> {
    let kernel = &*with_stored_zeros(kernel);
    let frame = Frame::new(kernel);
    if frame.len > i32::MAX as usize / 8 {
        return Err(Diagnostic::limitation("the kernel has too many arguments and buffers for Cranelift"));
    }
    function.name = UserFuncName::user(0, 0);
    function.signature = signature(config.default_call_conv, &[types::I64], types::I64);
    let mut builder = FunctionBuilder::new(function, context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let base = builder.block_params(entry)[0];
    let mut writer = Writer {
        kernel,
        in_range,
        frame,
        convention: config.default_call_conv,
        base,
        values: vec![None; kernel.regs.len()],
        loops: Vec::new(),
        branches: Vec::new(),
        sites: Vec::new(),
        computing: None,
        shared: Vec::new(),
        shared_idx: HashMap::new(),
        signatures: Vec::new(),
        b: builder,
    };
    for (i, size) in kernel.sizes.iter().enumerate() {
        let value = writer.word(writer.frame.size(i));
        writer.define(size.reg, value);
    }
    for event in with_late_constants(&kernel.body, kernel.regs.len()) {
        writer.event(&event)?;
    }
    let success = writer.integer(0);
    writer.b.ins().return_(&[success]);
    writer.shared_failures();
    let Writer { frame, sites, mut b, .. } = writer;
    b.seal_all_blocks();
    b.finalize(config);
    Ok(Lowered { frame, sites })
}

fn signature(convention: CallConv, params: &[Type], result: Type) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params.extend(params.iter().map(|ty| AbiParam::new(*ty)));
    signature.returns.push(AbiParam::new(result));
    signature
}

/// Kind of a called function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    /// Elementary function of `mathfun`, which has the System V convention on x86-64.
    Elementary,
    /// Function of module `support`.
    Support,
}

/// Signature of a call: kind of the callee, arguments, result.
type Called = (Callee, Vec<Type>, Type);

pub(crate) struct Writer<'f, 'k> {
    pub kernel: &'k Kernel,
    in_range: Option<InRange>,
    pub frame: Frame,
    convention: CallConv,
    /// Address of the frame.
    base: Value,
    values: Vec<Option<Value>>,
    loops: Vec<Loop>,
    /// Else block and join block of each open branch.
    branches: Vec<(Block, Block)>,
    sites: Vec<Site>,
    /// Integer that is computed.
    pub computing: Option<Reg>,
    /// Failure blocks without numbers, written at the end.
    shared: Vec<(usize, Block)>,
    /// Index of each of them.
    shared_idx: HashMap<Site, usize>,
    /// Signatures of calls: few in any kernel.
    signatures: Vec<(Called, SigRef)>,
    pub b: FunctionBuilder<'f>,
}

impl Writer<'_, '_> {
    pub fn integer(&mut self, value: i64) -> Value {
        self.b.ins().iconst(types::I64, value)
    }

    /// Returns the offset of a word of the frame.
    fn place(word: usize) -> Offset32 {
        Offset32::new(8 * word as i32)
    }

    /// Loads a word of the frame.
    pub fn word(&mut self, word: usize) -> Value {
        let place = Self::place(word);
        self.b.ins().load(types::I64, MemFlagsData::trusted(), self.base, place)
    }

    pub fn set_word(&mut self, word: usize, value: Value) {
        let place = Self::place(word);
        self.b.ins().store(MemFlagsData::trusted(), value, self.base, place);
    }

    /// Loads a double of the frame.
    pub fn real_word(&mut self, word: usize) -> Value {
        let place = Self::place(word);
        self.b.ins().load(types::F64, MemFlagsData::trusted(), self.base, place)
    }

    /// Returns the address of a word of the frame.
    pub fn address_of(&mut self, word: usize) -> Value {
        self.b.ins().iadd_imm_s(self.base, 8 * word as i64)
    }

    pub fn define(&mut self, r: Reg, value: Value) {
        self.values[r.index()] = Some(value);
    }

    pub fn value(&self, r: Reg) -> Result<Value> {
        self.values
            .get(r.index())
            .copied()
            .flatten()
            .ok_or_else(|| bug(&format!("{r} is used where it is not defined")))
    }

    fn type_of(&self, r: Reg) -> Type {
        if self.kernel.regs[r] == Class::Real { types::F64 } else { types::I64 }
    }

    /// Emits a call of `address`.
    pub fn call(&mut self, address: *const (), callee: Callee, args: &[Value], result: Type) -> Value {
        let params: Vec<Type> = args.iter().map(|arg| self.b.func.dfg.value_type(*arg)).collect();
        let key = (callee, params, result);
        let signature = match self.signatures.iter().find(|(known, _)| *known == key) {
            Some((_, signature)) => *signature,
            None => {
                let own = if cfg!(target_arch = "x86_64") { CallConv::SystemV } else { self.convention };
                let convention = if callee == Callee::Elementary { own } else { self.convention };
                let made = self.b.import_signature(signature(convention, &key.1, result));
                self.signatures.push((key, made));
                made
            }
        };
        let callee = self.integer(address as usize as i64);
        let call = self.b.ins().call_indirect(signature, callee, args);
        self.b.inst_results(call)[0]
    }

    /// Fails if `condition` is not 0.
    pub fn fail_if(&mut self, condition: Value, site: Site, numbers: &[Value]) {
        let next = self.b.create_block();
        if numbers.is_empty() {
            let idx = *self.shared_idx.entry(site).or_insert(self.shared.len());
            if idx == self.shared.len() {
                let block = self.b.create_block();
                self.b.set_cold_block(block);
                self.shared.push((self.sites.len(), block));
                self.sites.push(site);
            }
            let failed = self.shared[idx].1;
            self.b.ins().brif(condition, failed, [], next, []);
            self.b.switch_to_block(next);
            return;
        }
        let failed = self.b.create_block();
        self.b.set_cold_block(failed);
        self.b.ins().brif(condition, failed, [], next, []);
        self.b.switch_to_block(failed);
        for (i, number) in numbers.iter().enumerate() {
            self.set_word(Frame::NUMBERS + i, *number);
        }
        self.sites.push(site);
        let number = self.integer(self.sites.len() as i64);
        self.b.ins().return_(&[number]);
        self.b.switch_to_block(next);
    }

    /// Fails if `value` is 0.
    pub fn fail_if_zero(&mut self, value: Value, site: Site, numbers: &[Value]) {
        let zero = self.b.ins().icmp_imm_s(IntCC::Equal, value, 0);
        self.fail_if(zero, site, numbers);
    }

    fn shared_failures(&mut self) {
        for (site, block) in std::mem::take(&mut self.shared) {
            self.b.switch_to_block(block);
            let number = self.integer(site as i64 + 1);
            self.b.ins().return_(&[number]);
        }
    }

    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        self.computing = event.integer();
        match event {
            Event::Instr(instr) => self.instr(instr),
            Event::Copy { to, from, len, .. } => self.copy(to, from, len),
            Event::For { index, count, carried, .. } => {
                let count = self.poly(count, Overflow::Fails)?;
                let zero = self.integer(0);
                let head = self.open(carried, zero)?;
                let (body, exit) = (self.b.create_block(), self.b.create_block());
                let at = self.b.block_params(head)[0];
                let goes_on = self.b.ins().icmp(IntCC::SignedLessThan, at, count);
                self.b.ins().brif(goes_on, body, [], exit, []);
                self.b.switch_to_block(body);
                self.define(*index, at);
                self.loops.push(Loop::For { head, exit });
                Ok(())
            }
            Event::EndFor { index, carried } => {
                let Some(Loop::For { head, exit }) = self.loops.pop() else { return Err(unbalanced()) };
                let at = self.value(*index)?;
                let next = self.b.ins().iadd_imm_s(at, 1);
                self.close(head, exit, next, carried)
            }
            Event::While { carried, limit } => {
                let limit = self.poly(limit, Overflow::Fails)?;
                let zero = self.integer(0);
                let head = self.open(carried, zero)?;
                let exit = self.b.create_block();
                let counter = self.b.block_params(head)[0];
                self.loops.push(Loop::While { head, exit, counter, limit, next: None });
                Ok(())
            }
            Event::Test { holds, failure } => {
                let holds = self.value(*holds)?;
                let Some(Loop::While { exit, counter, limit, .. }) = self.loops.last() else {
                    return Err(unbalanced());
                };
                let (exit, counter, limit) = (*exit, *counter, *limit);
                let body = self.b.create_block();
                self.b.ins().brif(holds, body, [], exit, []);
                self.b.switch_to_block(body);
                let over = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, counter, limit);
                self.fail_if(over, Site::Limit { failure: *failure }, &[limit]);
                let after = self.b.ins().iadd_imm_s(counter, 1);
                if let Some(Loop::While { next, .. }) = self.loops.last_mut() {
                    *next = Some(after);
                }
                Ok(())
            }
            Event::EndWhile { carried } => {
                let Some(Loop::While { head, exit, next: Some(next), .. }) = self.loops.pop() else {
                    return Err(unbalanced());
                };
                self.close(head, exit, next, carried)
            }
            Event::If { condition } => {
                let condition = self.value(*condition)?;
                let [then, otherwise, after] = [(); 3].map(|()| self.b.create_block());
                self.b.ins().brif(condition, then, [], otherwise, []);
                self.b.switch_to_block(then);
                self.branches.push((otherwise, after));
                Ok(())
            }
            Event::Else { choices } => {
                let Some((otherwise, after)) = self.branches.last().copied() else { return Err(unbalanced()) };
                let values: Vec<BlockArg> =
                    choices.iter().map(|c| self.value(c.then).map(BlockArg::Value)).collect::<Result<_>>()?;
                self.b.ins().jump(after, &values);
                self.b.switch_to_block(otherwise);
                Ok(())
            }
            Event::EndIf { choices } => {
                let Some((_, after)) = self.branches.pop() else { return Err(unbalanced()) };
                let values: Vec<BlockArg> =
                    choices.iter().map(|c| self.value(c.otherwise).map(BlockArg::Value)).collect::<Result<_>>()?;
                self.b.ins().jump(after, &values);
                for c in *choices {
                    let ty = self.type_of(c.var);
                    let value = self.b.append_block_param(after, ty);
                    self.define(c.var, value);
                }
                self.b.switch_to_block(after);
                Ok(())
            }
        }
    }

    /// Opens the header of a loop, whose parameters are a counter and the carried values, and enters it with the
    /// initial values.
    fn open(&mut self, carried: &[Carried], counter: Value) -> Result<Block> {
        let head = self.b.create_block();
        self.b.append_block_param(head, types::I64);
        let mut first = vec![BlockArg::Value(counter)];
        for c in carried {
            first.push(BlockArg::Value(self.value(c.init)?));
        }
        self.b.ins().jump(head, &first);
        for c in carried {
            let ty = self.type_of(c.var);
            let value = self.b.append_block_param(head, ty);
            self.define(c.var, value);
        }
        self.b.switch_to_block(head);
        Ok(head)
    }

    /// Jumps back to the header of a loop; continues at its exit.
    fn close(&mut self, head: Block, exit: Block, counter: Value, carried: &[Carried]) -> Result<()> {
        let mut next = vec![BlockArg::Value(counter)];
        for c in carried {
            next.push(BlockArg::Value(self.value(c.next)?));
        }
        self.b.ins().jump(head, &next);
        self.b.switch_to_block(exit);
        Ok(())
    }

    fn instr(&mut self, instr: &Instr) -> Result<()> {
        let (dst, value) = match instr {
            Instr::Const { dst, value } => (*dst, self.real(*value)),
            Instr::Int { dst, value } => (*dst, self.poly(value, Overflow::Fails)?),
            Instr::Op { dst, op, args } => (*dst, self.op(*op, &args[..op.arity()])?),
            Instr::MulAdd { dst, signs, args } => (*dst, self.mul_add(*signs, args)?),
            Instr::IntOp { dst, op, args, failure } => (*dst, self.int_op(*op, &args[..op.arity()], *failure)?),
            Instr::ToReal { dst, src } => {
                let from = self.value(*src)?;
                (*dst, self.b.ins().fcvt_from_sint(types::F64, from))
            }
            Instr::ToInt { dst, src } => {
                let from = self.value(*src)?;
                (*dst, self.truncated(from))
            }
            Instr::External { dst, function, args } => (*dst, self.external(*function, args)?),
            Instr::Load { dst, buffer, at } => {
                let (address, offset) = self.element(*buffer, at)?;
                let ty = self.type_of(*dst);
                (*dst, self.b.ins().load(ty, MemFlagsData::trusted(), address, offset))
            }
            Instr::Store { buffer, at, value } => {
                let value = self.value(*value)?;
                let (address, offset) = self.element(*buffer, at)?;
                self.b.ins().store(MemFlagsData::trusted(), value, address, offset);
                return Ok(());
            }
            Instr::CheckIndex { index, len, failure } => {
                let len = self.poly(len, Overflow::Fails)?;
                let index = self.value(*index)?;
                let negative = self.b.ins().icmp_imm_s(IntCC::SignedLessThan, index, 0);
                let beyond = self.b.ins().icmp(IntCC::SignedGreaterThanOrEqual, index, len);
                let outside = self.b.ins().bor(negative, beyond);
                self.fail_if(outside, Site::Index { failure: *failure }, &[index, len]);
                return Ok(());
            }
        };
        self.define(dst, value);
        Ok(())
    }

    /// Returns the location of an element: an address and an offset in bytes. Emits a check that it is inside the
    /// buffer, unless that is promised.
    fn element(&mut self, buffer: BufferId, at: &Poly<Reg>) -> Result<(Value, Offset32)> {
        let pointer = self.word(self.frame.pointer(buffer));
        let len = self.kernel.buffers[buffer].len.as_constant();
        if let (Some(at), Some(len)) = (at.as_constant(), len) {
            if !(0..len).contains(&at) {
                return Err(bug("an element outside of its buffer"));
            }
            if let Some(offset) = at.checked_mul(8).and_then(|bytes| i32::try_from(bytes).ok()) {
                return Ok((pointer, Offset32::new(offset)));
            }
        }
        let at = self.poly(at, Overflow::Wraps)?;
        if self.in_range.is_none() {
            // The length computed by the caller, which is never negative.
            let len = self.word(self.frame.length(buffer));
            let outside = self.b.ins().icmp(IntCC::UnsignedGreaterThanOrEqual, at, len);
            self.fail_if(outside, Site::Outside, &[]);
        }
        let bytes = self.b.ins().ishl_imm_u(at, 3);
        Ok((self.b.ins().iadd(pointer, bytes), Offset32::new(0)))
    }
}

fn unbalanced() -> Diagnostic {
    bug("the events of a kernel do not close what they open")
}
