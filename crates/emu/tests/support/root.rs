//! What the root namespace has.
