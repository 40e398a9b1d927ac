//! minhop, updn, dnup and dor, balanced over the whole fabric.

pub(super) mod ranks;
