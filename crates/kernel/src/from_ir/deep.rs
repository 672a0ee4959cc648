//! Stack space for deeply nested blocks.
//!
//! Lowering recurses on the nesting of blocks. A program that nests deeper than code written by hand, such as generated
//! code with a thousand nested branches, is lowered on a stack as large as needed.

use chainrule_base::Diagnostic;
use chainrule_ir::Block;

/// Nesting that is safe on any thread.
const SHALLOW: usize = 100;
/// Stack space of one level, in bytes: measured, with a wide margin.
const BYTES_PER_LEVEL: usize = 64 << 10;

/// Returns the maximum nesting of blocks in `block`.
fn depth(block: &Block) -> usize {
    let mut deepest = 0;
    let mut open = vec![(block, 1)];
    while let Some((block, depth)) = open.pop() {
        deepest = deepest.max(depth);
        open.extend(block.stmts.iter().flat_map(|stmt| stmt.expr.blocks()).map(|inner| (inner, depth + 1)));
    }
    deepest
}

/// Runs `work` with stack space to recurse as deep as `block` nests.
pub(super) fn with_room_for<T: Send>(block: &Block, work: impl FnOnce() -> T + Send) -> Result<T, Diagnostic> {
    let depth = depth(block);
    if depth <= SHALLOW {
        return Ok(work());
    }
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("chainrule".to_owned()).stack_size(depth.saturating_mul(BYTES_PER_LEVEL));
        match thread.spawn_scoped(scope, work).map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => Ok(result),
            // A panic goes on in the thread that waits, where somebody may turn it into a message.
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(why) => Err(Diagnostic::limitation(format!("blocks nest {depth} deep, and there is no room for that"))
                .with_reason(why.to_string())
                .with_help("nest branches and loops less deep")),
        }
    })
}
