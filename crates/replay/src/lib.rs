//! Driving any manager with a trace.
