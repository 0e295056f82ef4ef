//! Tables for a terminal.
use heaptoll_lab::comparison::{Comparison, Interval};
use heaptoll_lab::experiment::Experiment;

/// What the terminal can do; the caller finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour (green: claims cheaper; red: claims dearer; dim: no difference seen).
    pub color: bool,
    /// Columns; `None` never wraps, as for a file or a pipe.
    pub width: Option<u16>,
    /// Whether it shows more than ASCII.
    pub unicode: bool,
}

/// One manager of `heaptoll managers`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagerRow {
    /// Name for `-m`.
    pub name: String,
    /// Version, as far as known.
    pub version: String,
    /// Crate, package or path.
    pub origin: String,
    /// What the preflight said, in words.
    pub status: String,
    /// Whether it can be used; `None` when it was not tried.
    pub usable: Option<bool>,
}

/// One program of `heaptoll programs`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgramRow {
    /// Name for `--program`.
    pub name: String,
    /// One line: what it is.
    pub about: String,
    /// `bundled`, or the Debian package it comes from.
    pub package: String,
    /// Whether it can be run now.
    pub installed: bool,
    /// Names of its variants.
    pub variants: Vec<String>,
}

/// One line of `heaptoll compare A B`.
#[derive(Debug, Clone, PartialEq)]
pub struct PairRow {
    /// Program.
    pub program: String,
    /// Stack.
    pub stack: String,
    /// Label with its unit, e.g. `CPU s`, `peak RSS MiB`.
    pub metric: String,
    /// Median in A, in the label's unit; `None` where A has no good row.
    pub a_median: Option<f64>,
    /// Median in B.
    pub b_median: Option<f64>,
    /// B over A; `None` when there are too few rows.
    pub ratio: Option<Interval>,
    /// The verdict in words.
    pub verdict: String,
}

/// The whole experiment as text: one table a program, then the geometric means.
pub fn render(_experiment: &Experiment, _comparison: &Comparison, _style: &Style) -> String {
    todo!()
}
/// `heaptoll managers`.
pub fn managers_table(_rows: &[ManagerRow], _style: &Style) -> String {
    todo!()
}
/// `heaptoll programs`.
pub fn programs_table(_rows: &[ProgramRow], _style: &Style) -> String {
    todo!()
}
/// `heaptoll compare A B`; `a` and `b` are how the two files are called in the heads of the columns.
pub fn render_pair(_a: &str, _b: &str, _rows: &[PairRow], _style: &Style) -> String {
    todo!()
}
