//! Checker of a kernel's memory plan, for given sizes.
//!
//! In: a kernel and values for its sizes. Out: success, or one bug diagnostic for each buffer outside its workspace and
//! for each pair of buffers that are live at the same time and overlap. The checker reads the finished kernel only and
//! is independent of the planner.

use crate::events::{Event, events};
use crate::kernel::{BufferId, Class, Instr, Kernel, Place, Reg};
use chainrule_base::{Arena, Diagnostic};

/// Checks the memory plan for these values of the sizes (in the order of [`Kernel::sizes`]): every workspace buffer
/// lies inside the workspace, and buffers that are live at the same time do not overlap.
///
/// A buffer is live from its first mention to its last, and during the whole of a loop if it is mentioned both inside
/// and outside the loop. (An iteration never reads data that an earlier iteration wrote into a buffer mentioned in that
/// loop only: the initial state of a carried buffer is written before the loop.)
///
/// # Errors
/// One bug diagnostic for each buffer outside, for each pair that overlaps, and for each pair that begins at different
/// offsets and overlaps at any time.
///
/// # Panics
/// Panics if there are fewer values than sizes.
pub fn check_layout(kernel: &Kernel, sizes: &[i64]) -> Result<(), Vec<Diagnostic>> {
    let value = |reg: Reg| kernel.sizes.iter().position(|s| s.reg == reg).map_or(0, |idx| sizes[idx]);
    let mut errors = Vec::new();
    let mut wrong = |what: String| {
        errors.push(Diagnostic::bug(format!("the memory plan of `{}` is wrong", kernel.name)).with_reason(what));
    };
    let live = Liveness::ranges(kernel);

    // Workspace ranges by first mention: (class, start, end, first element, one past the last, id).
    let mut placed: Vec<(Class, usize, usize, i64, i64, BufferId)> = Vec::new();
    for (id, buffer) in kernel.buffers.iter() {
        let Place::Workspace(offset) = &buffer.place else { continue };
        let total = if buffer.class == Class::Real { &kernel.workspace_reals } else { &kernel.workspace_ints };
        let (Some(offset), Some(len), Some(total)) = (offset.eval(value), buffer.len.eval(value), total.eval(value))
        else {
            wrong(format!("the place of {id} overflows"));
            continue;
        };
        if len < 0 || offset < 0 || offset.checked_add(len).is_none_or(|end| end > total) {
            wrong(format!("{id} at {offset}, {len} long, does not lie inside the {total} of its workspace"));
        } else if let (Some((start, end)), true) = (live[id], len > 0) {
            placed.push((buffer.class, start, end, offset, offset + len, id));
        }
    }
    // A buffer that replaces another one begins at the same offset, so that overlap is visible without arithmetic.
    placed.sort_by_key(|p| (p.0 == Class::Real, p.3, p.5));
    let mut widest: Option<(Class, i64, BufferId)> = None;
    for (class, _, _, from, to, id) in &placed {
        if let Some((_, _, other)) = widest.filter(|(c, end, _)| c == class && from < end)
            && kernel.buffers[other].place != kernel.buffers[*id].place
        {
            wrong(format!("{other} and {id} overlap, and do not begin at one place"));
        }
        widest = widest.filter(|(c, end, _)| c == class && end >= to).or(Some((*class, *to, *id)));
    }
    placed.sort_by_key(|p| p.1);
    let mut active: Vec<usize> = Vec::new();
    for (i, p) in placed.iter().enumerate() {
        active.retain(|j| placed[*j].2 >= p.1);
        for q in active.iter().map(|j| &placed[*j]) {
            if p.0 == q.0 && p.3 < q.4 && q.3 < p.4 {
                wrong(format!("{} at {}..{} and {} at {}..{} are live at one time", q.5, q.3, q.4, p.5, p.3, p.4));
            }
        }
        active.push(i);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Live ranges of all buffers, in positions of the kernel's events.
#[derive(Default)]
struct Liveness {
    now: usize,
    /// Loops by first and last position.
    loops: Vec<(usize, usize)>,
    /// Loops around the current position, outermost first.
    stack: Vec<usize>,
}

/// Live range of one buffer.
#[derive(Clone)]
struct Live {
    start: usize,
    end: usize,
    /// Loops around all mentions so far.
    around: Vec<usize>,
    /// Loops that contain some mentions but not all: the buffer lives until their ends.
    until: Vec<usize>,
}

impl Liveness {
    fn ranges(kernel: &Kernel) -> Arena<BufferId, Option<(usize, usize)>> {
        let mut this = Self::default();
        let mut live: Arena<BufferId, Option<Live>> = Arena::filled(kernel.buffers.len(), None);
        for event in events(&kernel.body) {
            this.now += 1;
            match event {
                Event::Instr(Instr::Load { buffer, .. } | Instr::Store { buffer, .. }) => {
                    this.mention(*buffer, &mut live);
                }
                Event::Copy { to, from, .. } => {
                    this.mention(from.0, &mut live);
                    this.mention(to.0, &mut live);
                }
                Event::For { .. } | Event::While { .. } => {
                    this.stack.push(this.loops.len());
                    this.loops.push((this.now, this.now));
                }
                Event::EndFor { .. } | Event::EndWhile { .. } => {
                    if let Some(id) = this.stack.pop() {
                        this.loops[id].1 = this.now;
                    }
                }
                Event::Instr(_) | Event::Test { .. } | Event::If { .. } | Event::Else { .. } | Event::EndIf { .. } => {}
            }
        }
        let end = |l: &Live| l.until.iter().map(|id| this.loops[*id].1).fold(l.end, usize::max);
        live.as_slice().iter().map(|l| l.as_ref().map(|l| (l.start, end(l)))).collect()
    }

    fn mention(&self, id: BufferId, live: &mut Arena<BufferId, Option<Live>>) {
        if live.get(id).is_none() {
            return;
        }
        let now = self.now;
        let l =
            live[id].get_or_insert_with(|| Live { start: now, end: now, around: self.stack.clone(), until: vec![] });
        let common = l.around.iter().zip(&self.stack).take_while(|(a, b)| a == b).count();
        if let Some(left) = l.around.get(common) {
            l.start = l.start.min(self.loops[*left].0);
            l.around.truncate(common);
        }
        if let Some(entered) = self.stack.get(common).filter(|entered| l.until.last() != Some(*entered)) {
            l.until.push(*entered);
        }
        l.end = now;
    }
}
