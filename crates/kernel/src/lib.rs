//! Kernel IR: loops, buffers, straight-line blocks; lowering, memory plan, verifier
