//! What a trace says: counts, lifetimes, bounds.
