//! Exploration: how a fabric becomes known.
