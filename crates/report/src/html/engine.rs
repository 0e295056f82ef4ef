//! The charting library inside the page.
//!
//! The page must open years from now without a network, so plotly.js travels in it: compressed, since that is a third
//! of its size, and unpacked by the page's own script, so that what is in sight is drawn before the page counts as
//! loaded. Where that fails the page shows a note, and its tables carry the same figures.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::ReportError;

/// What unpacks plotly.js and draws, and sorts tables.
pub(super) const SCRIPT: &str = concat!(
    include_str!("../../templates/inflate.js"),
    include_str!("../../templates/page.js"),
    include_str!("../../templates/tables.js")
);

/// plotly.js, gzip in base64.
pub(super) fn packed() -> Result<String, ReportError> {
    let failed = |detail: String| ReportError::Encode { form: "HTML", detail };
    let sources = plotly::Plot::offline_js_sources();
    let script =
        first_script(&sources).ok_or_else(|| failed("plotly brings its script in another form".into()))?;
    // Level 6 is within 1 % of level 9 here and takes a third of the time.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    let bytes = encoder.write_all(script.as_bytes()).and_then(|()| encoder.finish());
    bytes.map(|bytes| STANDARD.encode(bytes)).map_err(|error| failed(error.to_string()))
}

/// The library comes as two script elements, plotly.js and a typesetter for formulas that no chart of ours needs.
fn first_script(sources: &str) -> Option<&str> {
    let inner = sources.trim_start().strip_prefix("<script type=\"text/javascript\">")?;
    let (script, rest) = inner.split_once("</script>\n")?;
    rest.trim_start().starts_with("<script").then_some(script)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn unpacks_to_plotly_alone() {
        let bytes = STANDARD.decode(packed().unwrap()).unwrap();
        let mut script = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut script).unwrap();
        assert!(script.starts_with("/**\n* plotly.js v"), "{}", &script[..40]);
        // With the typesetter it would be half as long again.
        assert!((1_000_000..5_500_000).contains(&script.len()) && bytes.len() < 2_000_000, "{}", bytes.len());
    }
}
