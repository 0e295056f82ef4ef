//! A study as its file defines it: what is run, what is shown, what is claimed. `docs/reference/study-format.md`
//! describes the file.

mod claim;
mod exhibit;
mod fault;
mod quantity;
mod step;
mod study;

pub use claim::{Claim, Estimand, Rule, Test};
pub use exhibit::{Divisor, Exhibit, Form, ListRow, MetricColumn, Published, Shown};
pub use fault::Fault;
pub use quantity::{Against, Quantity, Side};
pub use step::{Step, StepKind};
pub use study::{Names, Sentence, Study, filled};
