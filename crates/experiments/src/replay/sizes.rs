//! Sizes as a replay shows them.

/// Bytes with their unit.
pub fn bytes(value: f64) -> String {
    match value.abs() {
        ..1024.0 => format!("{value:.0} B"),
        ..1_048_576.0 => format!("{:.1} KiB", value / 1024.0),
        ..1_073_741_824.0 => format!("{:.1} MiB", value / 1_048_576.0),
        _ => format!("{:.2} GiB", value / 1_073_741_824.0),
    }
}
