//! The C backend: a kernel as a self-contained .c and .h
