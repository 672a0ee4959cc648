//! Chainrule, a compiler for derivatives: the library
