//! The messages of pprof's `profile.proto`, package `perftools.profiles`, as far as they are written: names and numbers
//! of fields are the format. Texts are indices into `string_table`, whose first entry is empty.

use crate::wire::messages;

messages! {
    struct Profile {
        1 => sample_type: Vec<ValueType>,
        2 => sample: Vec<Sample>,
        3 => mapping: Vec<Mapping>,
        4 => location: Vec<Location>,
        5 => function: Vec<Function>,
        6 => string_table: Vec<String>,
        /// Unix ns.
        9 => time_nanos: i64,
        10 => duration_nanos: i64,
        11 => period_type: Option<ValueType>,
        12 => period: i64,
        13 => comment: Vec<i64>,
        14 => default_sample_type: i64,
    }

    #[derive(Copy)]
    struct ValueType {
        1 => r#type: i64,
        2 => unit: i64,
    }

    struct Sample {
        /// Innermost first.
        1 => location_id: Vec<u64>,
        2 => value: Vec<i64>,
    }

    struct Mapping {
        1 => id: u64,
        2 => memory_start: u64,
        3 => memory_limit: u64,
        4 => file_offset: u64,
        5 => filename: i64,
        6 => build_id: i64,
        7 => has_functions: bool,
        8 => has_filenames: bool,
        9 => has_line_numbers: bool,
        10 => has_inline_frames: bool,
    }

    struct Location {
        1 => id: u64,
        2 => mapping_id: u64,
        3 => address: u64,
        /// Inlined functions first, the function that they are inlined into last.
        4 => line: Vec<Line>,
    }

    #[derive(Copy)]
    struct Line {
        1 => function_id: u64,
        2 => line: i64,
    }

    #[derive(Copy)]
    struct Function {
        1 => id: u64,
        2 => name: i64,
        3 => system_name: i64,
        4 => filename: i64,
    }
}
