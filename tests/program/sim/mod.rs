//! Tests of `mapper sim`, and of the fabrics that it simulates.

mod command;
mod each_fault;
mod fault_search;
mod hostile;
mod non_clos;
mod recabling;
mod refusals;
mod standard_output;
mod too_deep;
mod traces;
mod traffic;
