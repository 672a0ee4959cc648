//! Array programs whose loops are kept.

mod flat;
mod in_place;
mod layouts;
mod nests;
mod overwritten;
mod parts;
mod regions;
mod skewed;
mod steps;
mod values;
mod within;
