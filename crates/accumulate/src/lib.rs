//! Jacobian accumulation on the linearised graph
