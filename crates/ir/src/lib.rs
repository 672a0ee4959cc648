//! Typed array IR: elaboration from F~, verifier, printer, reference evaluator
