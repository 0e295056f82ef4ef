//! What of a program's output differs from run to run: a time that it took, a rate that it reached. The rest must be the
//! same under each manager, so that a program that prints both can be proved all the same.

use regex_lite::Regex;
use sha2::{Digest, Sha256};

/// The matches of a pattern in what a program prints.
#[derive(Debug, Clone)]
pub struct Varying(Regex);

impl Varying {
    /// Reads the pattern, a regular expression as `regex-lite` has it.
    ///
    /// # Errors
    /// It is no regular expression; the text is what is wrong with it.
    pub fn new(pattern: &str) -> Result<Varying, String> {
        Regex::new(pattern).map(Varying).map_err(|error| error.to_string())
    }

    /// SHA-256, in lower-case hexadecimal, of the output without the matches.
    pub fn digest(&self, output: &[u8]) -> String {
        let text = String::from_utf8_lossy(output);
        let steady = self.0.replace_all(&text, "");
        Sha256::digest(steady.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_varies_does_not_count_and_all_else_does() {
        let times = Varying::new("[0-9.]+ s").expect("a pattern");
        assert_eq!(times.digest(b"12 done in 1.5 s\n"), times.digest(b"12 done in 27.25 s\n"));
        assert_ne!(times.digest(b"12 done in 1.5 s\n"), times.digest(b"13 done in 1.5 s\n"));
        let nothing = Varying::new("never").expect("a pattern");
        assert!(nothing.digest(b"").starts_with("e3b0c44298fc1c14"), "the digest of nothing");
        assert!(nothing.digest(b"\xff").len() == 64, "bytes that are no text are digested too");
        assert!(Varying::new("(").is_err());
    }
}
