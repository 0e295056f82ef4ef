//! JSON that heaptoll wrote and that must be as it was written: its first members are the name and version of its
//! format, and one member is a digest of the others. Plans and descriptions of artifacts are such.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A document with a digest of itself.
pub trait Sealed: Clone + Serialize + DeserializeOwned {
    /// What the member `format` is.
    const FORMAT: &'static str;
    /// What the member `version` is.
    const VERSION: u64;

    /// The member `identity`: the SHA-256 of the document with this member empty and without spaces, hexadecimal.
    fn identity(&mut self) -> &mut String;
}

/// Why a text is not the document.
#[derive(Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It is something else; what does not fit.
    Other(String),
    /// It is of another version of the format.
    OtherVersion {
        /// Its version.
        found: u64,
        /// The version of heaptoll that wrote it; empty when unknown.
        written_by: String,
    },
    /// It has the format and version, and not the members that belong to them.
    Shape(String),
    /// Its digest is not that of its content.
    Changed,
}

/// What is read first: a later version may have anything else.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u64,
    #[serde(default)]
    heaptoll: String,
}

/// The document with its identity.
///
/// # Errors
/// It cannot be written as JSON.
pub fn seal<T: Sealed>(mut document: T) -> Result<T, serde_json::Error> {
    let digest = digest(&document)?;
    *document.identity() = digest;
    Ok(document)
}

/// Reads a document of this version, whole and as it was written.
///
/// # Errors
/// [`Unusable`].
pub fn read<T: Sealed>(text: &str) -> Result<T, Unusable> {
    let head: Head = serde_json::from_str(text).map_err(|error| Unusable::Other(error.to_string()))?;
    if head.format != T::FORMAT {
        return Err(Unusable::Other(format!("its format is `{}`", head.format)));
    }
    if head.version != T::VERSION {
        return Err(Unusable::OtherVersion { found: head.version, written_by: head.heaptoll });
    }
    let shape = |error: serde_json::Error| Unusable::Shape(error.to_string());
    let mut document: T = serde_json::from_str(text).map_err(shape)?;
    let computed = digest(&document).map_err(shape)?;
    if computed != *document.identity() {
        return Err(Unusable::Changed);
    }
    Ok(document)
}

fn digest<T: Sealed>(document: &T) -> Result<String, serde_json::Error> {
    let mut unnamed = document.clone();
    unnamed.identity().clear();
    Ok(format!("{:x}", Sha256::digest(serde_json::to_vec(&unnamed)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    struct Sample {
        format: String,
        version: u64,
        identity: String,
        content: u64,
    }

    impl Sealed for Sample {
        const FORMAT: &'static str = "sample";
        const VERSION: u64 = 3;

        fn identity(&mut self) -> &mut String {
            &mut self.identity
        }
    }

    fn text(version: u64) -> String {
        let sample = Sample { format: "sample".into(), version, identity: "overwritten".into(), content: 17 };
        serde_json::to_string(&seal(sample).expect("it is JSON")).expect("it is JSON")
    }

    #[test]
    fn a_document_is_read_as_it_was_sealed() {
        assert_eq!(read::<Sample>(&text(3)).expect("it is read").content, 17);
        let spaced = text(3).replace(',', " ,\n");
        assert_eq!(read::<Sample>(&spaced).expect("its layout does not count").content, 17);
    }

    #[test]
    fn another_version_other_text_a_lacking_member_and_a_change_are_distinguished() {
        let refused = |text: &str| read::<Sample>(text).expect_err("it is refused");
        assert_eq!(refused(&text(4)), Unusable::OtherVersion { found: 4, written_by: String::new() });
        assert_eq!(refused(&text(3).replace("17", "18")), Unusable::Changed);
        assert!(matches!(refused("{\"format\":\"sample\",\"version\":3}"), Unusable::Shape(_)));
        for other in ["", "{}", "[1]", "{\"format\":\"x\",\"version\":3}"] {
            assert!(matches!(refused(other), Unusable::Other(_)), "{other}");
        }
    }
}
