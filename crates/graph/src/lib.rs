//! Hash-consed scalar graph
