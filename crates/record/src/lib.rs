//! Recording: runs a program with the recording layer and writes its traces.
