//! Differentiation of the array IR: IR in, IR out
