//! Blocks that nest deeper than a thread's stack.
//!
//! Lowering follows the nesting of blocks by recursion. Where a program nests deeper than people do by
//! hand (generated code with a thousand branches in each other), it runs on a stack as large as needed.

use chainrule_base::Diagnostic;
use chainrule_ir::Block;

/// So deep is safe on any thread.
const SHALLOW: usize = 100;
/// What one level may need: measured, with a wide margin.
const BYTES_PER_LEVEL: usize = 64 << 10;

/// How deep blocks nest in `block`.
fn depth(block: &Block) -> usize {
    let mut deepest = 0;
    let mut open = vec![(block, 1)];
    while let Some((block, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(block.stmts.iter().flat_map(|stmt| stmt.expr.blocks()).map(|inner| (inner, depth + 1)));
    }
    deepest
}

/// `work()` with room to recurse as deep as `block` nests.
pub(super) fn with_room_for<T: Send>(block: &Block, work: impl FnOnce() -> T + Send) -> Result<T, Diagnostic> {
    let depth = depth(block);
    if depth <= SHALLOW {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(depth.saturating_mul(BYTES_PER_LEVEL));
        match thread.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(_)) => Err(Diagnostic::bug("lowering broke off")),
            Err(why) => Err(Diagnostic::limitation(format!("blocks nest {depth} deep, and there is no room for that"))
                .with_reason(why.to_string())
                .with_help("nest branches and loops less deep")),
        }
    })
}
