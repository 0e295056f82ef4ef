//! What `compare` finds: ratios to the baseline with simultaneous intervals, and a verdict in words. Values only;
//! the report crate formats them.

mod exact;
mod figure;
mod heaps;
mod lower_bound;
mod nodes;
mod ratios;
mod row;
mod table;
mod tables;
mod varied;

pub use exact::{CacheCounted, Counted, ExactRow, ExactTable};
pub use figure::{Figure, Metric};
pub use heaps::{Costs, HeapCurve, HeapCurves, HeapPoint, ProgramHeaps};
pub use lower_bound::{Attributed, BoundRow, Bounds, LowerBounds, OverallBound, ProgramBounds};
pub use nodes::NodeRatio;
pub use ratios::Ratios;
pub use row::{CollectionFigures, Row};
pub use table::{CompanyEffect, ProgramTable};
pub use tables::{Comparison, OverallRow};
pub use varied::{VariedCurve, VariedPoint};
