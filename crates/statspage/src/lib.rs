//! layout to follow
