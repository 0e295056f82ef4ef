//! The papers' tables, as CSV: `studies/published`, part of the program, so that an installed heaptoll has them too.
