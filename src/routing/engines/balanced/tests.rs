//! All engines of this module against what is right by definition.
