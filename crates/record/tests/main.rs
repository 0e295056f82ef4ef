//! One binary of all these tests: linking one takes the time of many tests.

mod layer_support;

mod heaptrack;
mod layer_calls;
mod layer_early;
mod layer_limits;
mod layer_modes;
mod layer_null;
mod layer_tool_dies;
mod sites_names;
