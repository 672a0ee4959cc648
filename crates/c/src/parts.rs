//! Parallel loops, distributed over threads by OpenMP.
//!
//! In: a kernel with parallel loops ([`chainrule_kernel::parts`]). Out: a function for each of its pieces, and one that
//! calls them in order, parallel ones once for each chunk in a loop that OpenMP runs. Without OpenMP the same code runs
//! on one thread; the results are equal bit for bit.
//!
//! Private workspace exists once for each chunk, so that the size of the workspace does not depend on the number of
//! threads. Each chunk returns a code, and the first nonzero one is returned.

use crate::Options;
use crate::language::{C, Needs};
use chainrule_base::Poly;
use chainrule_kernel::parts::split;
use chainrule_kernel::{Event, Instr, Kernel, PARTS, Place, Reg, Stmt, events};
use chainrule_text::{Facts, Param, Pieces, Scope, Unit, Writer, Written, language};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A kernel in pieces.
pub(crate) struct Cut {
    /// The kernel itself, with the workspace that its pieces need.
    pub whole: Kernel,
    pieces: Vec<Piece>,
}

struct Piece {
    kernel: Kernel,
    in_parts: bool,
}

impl Cut {
    /// Returns the pieces of `kernel`; `None` if it has no parallel loop.
    pub fn new(kernel: &Kernel) -> Option<Self> {
        let split = split(kernel)?;
        let mut pieces: Vec<Piece> = Vec::new();
        let mut totals = [kernel.workspace_reals.clone(), kernel.workspace_ints.clone()];
        for (total, n) in totals.iter_mut().zip([split.n_reals, split.n_ints]) {
            *total = total.add(&Poly::constant(i64::try_from(n).unwrap_or(i64::MAX)));
        }
        for piece in split.pieces {
            let mut kernel = piece.kernel;
            // The calling loop provides the number of the chunk, which needs no check.
            if piece.in_parts
                && kernel.failures.pop().is_some()
                && let Some(Stmt::Straight(code)) = kernel.body.first_mut()
            {
                let n = kernel.failures.len();
                code.retain(|instr| !matches!(instr, Instr::CheckIndex { failure, .. } if *failure == n));
            }
            let part = kernel.sizes.last().map(|size| size.reg);
            let mut own = [Poly::zero(), Poly::zero()];
            let mut places: BTreeMap<(usize, Poly<Reg>, Poly<Reg>), Poly<Reg>> = BTreeMap::new();
            for b in &piece.private {
                let buffer = &kernel.buffers[*b];
                let (space, len) = (language::space(buffer.class), buffer.len.clone());
                let Place::Workspace(at) = &buffer.place else { continue };
                // Buffers that share memory still do; an empty one is placed at the start of the next one.
                places.entry((space, at.clone(), len.clone())).or_insert_with(|| {
                    let at = own[space].clone();
                    own[space] = at.add(&len);
                    at
                });
            }
            let part = part.map_or_else(Poly::zero, Poly::var);
            for b in &piece.private {
                let buffer = &mut kernel.buffers[*b];
                let (space, len) = (language::space(buffer.class), buffer.len.clone());
                let Place::Workspace(at) = &mut buffer.place else { continue };
                let Some(local) = places.get(&(space, at.clone(), len)) else { continue };
                *at = totals[space].add(&own[space].mul(&part)).add(local);
            }
            for (total, own) in totals.iter_mut().zip(&own) {
                *total = total.add(&own.scale(PARTS));
            }
            pieces.push(Piece { kernel, in_parts: piece.in_parts });
        }
        let [reals, ints] = totals;
        let mut whole = kernel.clone();
        for kernel in pieces.iter_mut().map(|piece| &mut piece.kernel).chain([&mut whole]) {
            (kernel.workspace_reals, kernel.workspace_ints) = (reals.clone(), ints.clone());
        }
        Some(Self { whole, pieces })
    }

    /// Adds possible failures of the pieces to `facts` of the whole kernel.
    pub fn join_failures(&self, facts: &mut Facts) {
        for piece in &self.pieces {
            facts.failures.extend(Facts::new(&piece.kernel, &events(&piece.kernel.body)).failures);
        }
        facts.failures.sort_unstable();
        facts.failures.dedup();
    }

    /// Writes the functions of the pieces, and the one that calls them.
    pub fn write(&self, unit: &Unit<'_>, file: &Scope, options: &Options, needs: &mut Needs) -> Written {
        let mut all = Written { text: String::new(), used_codes: vec![false; unit.codes.len()] };
        let mut calls = String::new();
        for (k, piece) in self.pieces.iter().enumerate() {
            let kernel = &piece.kernel;
            let events: Vec<Event<'_>> = events(&kernel.body);
            let facts = Facts::new(kernel, &events);
            let space = |r: Reg| language::space(kernel.regs[r]);
            // If split, it would keep values in slots of the workspace that chunks would share.
            let whole = Pieces::new(kernel, &events, &facts, usize::MAX, space);
            let mut own = Unit::new::<C<'_>>(kernel, unit.name.clone(), file, &facts, whole.n_slots);
            own.codes.clone_from(&unit.codes);
            own.condition_codes.clone_from(&unit.condition_codes);
            own.failure_codes.clone_from(&unit.failure_codes);
            let mut language = C { needs, precision: options.precision, own_functions: options.inline_math };
            let written = Writer::new(&own, &facts, &whole, &mut language).write(&events);
            let name = format!("{}_part{k}", unit.name);
            let text = written.text.replacen(&format!("int {}(", unit.name), &format!("static int {name}("), 1);
            all.text.push_str(&text);
            for (all, used) in all.used_codes.iter_mut().zip(written.used_codes) {
                *all |= used;
            }
            let n_inputs = unit.inputs.len();
            let argument = |param: &Param, part: &str| match param {
                Param::Input(i) if *i == n_inputs => part.to_owned(),
                other => unit.param_name(*other).to_owned(),
            };
            let arguments = |part: &str| own.params().iter().map(|p| argument(p, part)).collect::<Vec<_>>().join(", ");
            if piece.in_parts {
                let _ = write!(
                    calls,
                    "    {{\n        int cr_codes[{PARTS}];\n#ifdef _OPENMP\n#pragma omp parallel for schedule(static, 1)\n#endif\n        \
                     for (int cr_p = 0; cr_p < {PARTS}; cr_p++) cr_codes[cr_p] = {name}({});\n        \
                     for (int cr_p = 0; cr_p < {PARTS}; cr_p++) if (cr_codes[cr_p] != 0) return cr_codes[cr_p];\n    }}\n",
                    arguments("cr_p")
                );
            } else {
                let _ = write!(
                    calls,
                    "    {{\n        const int cr_code = {name}({});\n        if (cr_code != 0) return cr_code;\n    }}\n",
                    arguments("0")
                );
            }
        }
        let language = C { needs, precision: options.precision, own_functions: options.inline_math };
        let params = language.parameters(unit, unit.params());
        let _ = write!(all.text, "int {}({params})\n{{\n{calls}    return 0;\n}}\n\n", unit.name);
        all
    }
}
