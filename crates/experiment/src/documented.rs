//! Structs of the JSON file: the comments of their fields are the field's line in `docs/reference/json-schema.md`, too, and a
//! test compares the two.

/// Declares a struct whose fields are documented in `docs/reference/json-schema.md`.
macro_rules! documented {
    ($(#[$attribute:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])? pub $field:ident: $kind:ty,)+
    }) => {
        $(#[$attribute])*
        pub struct $name {
            $($(#[doc = $doc])+ $(#[serde($($serde)+)])? pub $field: $kind,)+
        }

        #[cfg(test)]
        impl $crate::documented::Documented for $name {
            fn json_type() -> String {
                "object".into()
            }

            fn fields() -> Vec<$crate::documented::Field> {
                vec![$($crate::documented::Field::of::<$kind>(
                    documented!(@key $field $($($serde)+)?),
                    concat!($($doc),+),
                ),)+]
            }
        }
    };
    (@key $field:ident rename = $key:literal) => { $key };
    (@key $field:ident $(default)?) => { stringify!($field) };
}

pub(crate) use documented;

#[cfg(test)]
pub(crate) use table::{Documented, Field};

#[cfg(test)]
mod table {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use crate::observation::{Observation, Outcome, Phase};

    /// Where the rows are in the document.
    const ROWS: &str = "experiment.observations[]";

    /// What a field can be.
    pub trait Documented {
        /// Between the keys of the field and of its parts.
        const ELEMENTS: &str = "";

        /// Its type in JSON.
        fn json_type() -> String;

        /// Its parts.
        fn fields() -> Vec<Field> {
            Vec::new()
        }
    }

    /// A field and all its parts.
    pub struct Field {
        key: &'static str,
        json_type: String,
        doc: &'static str,
        elements: &'static str,
        fields: Vec<Field>,
    }

    impl Field {
        /// The field of this key and type.
        pub fn of<T: Documented>(key: &'static str, doc: &'static str) -> Field {
            Field { key, json_type: T::json_type(), doc, elements: T::ELEMENTS, fields: T::fields() }
        }

        /// Its line of the table and those of its parts.
        fn lines(&self, above: &str) -> Vec<String> {
            let path = format!("{above}.{}", self.key);
            let doc = phrase(self.doc);
            let mut lines = vec![format!("| `{path}` | {} | {doc} |", self.json_type)];
            let inside = format!("{path}{}", self.elements);
            lines.extend(self.fields.iter().flat_map(|field| field.lines(&inside)));
            lines
        }
    }

    /// A comment as a cell of a table: no capital, except in a name, and no full stop.
    fn phrase(comment: &str) -> String {
        let comment = comment.trim().trim_end_matches('.');
        let mut letters = comment.chars();
        match (letters.next(), letters.next()) {
            (Some(first), Some(second)) if !second.is_uppercase() => {
                first.to_lowercase().chain(comment.chars().skip(1)).collect()
            }
            _ => comment.to_owned(),
        }
    }

    macro_rules! plain {
        ($($kind:ty: $name:literal),+) => {$(
            impl Documented for $kind {
                fn json_type() -> String {
                    $name.into()
                }
            }
        )+};
    }

    plain!(u32: "integer", u64: "integer", f64: "number", bool: "boolean", String: "text", Phase: "text");

    impl<T: Documented> Documented for Option<T> {
        const ELEMENTS: &str = T::ELEMENTS;

        fn json_type() -> String {
            T::json_type() + " or null"
        }

        fn fields() -> Vec<Field> {
            T::fields()
        }
    }

    impl<T: Documented> Documented for Vec<T> {
        const ELEMENTS: &str = "[]";

        fn json_type() -> String {
            "list".into()
        }

        fn fields() -> Vec<Field> {
            T::fields()
        }
    }

    impl<T: Documented> Documented for BTreeMap<String, T> {
        fn json_type() -> String {
            "map".into()
        }

        fn fields() -> Vec<Field> {
            vec![Field::of::<T>("*", "One figure, in its unit.")]
        }
    }

    /// `kind` and `detail`, which are no fields in Rust.
    impl Documented for Outcome {
        fn json_type() -> String {
            "object".into()
        }

        fn fields() -> Vec<Field> {
            let kinds = "`ok`, `exit`, `signal`, `timeout`, `interrupted`, `not_started`, `wrong_output`, \
                         `serve_failed`";
            let detail =
                "the status, the signal, the limit in seconds, or the message; absent for the other kinds";
            let detail = Field {
                json_type: "integer, number or text".into(),
                ..Field::of::<String>("detail", detail)
            };
            vec![Field::of::<String>("kind", kinds), detail]
        }
    }

    #[test]
    fn the_table_of_rows_is_that_of_the_fields() {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json-schema.md");
        let text = std::fs::read_to_string(&path).expect("reads the document");
        let first = format!("| `{ROWS}.");
        let from = text.find(&first).expect("the table of rows");
        let length = text[from..].find("\n\n").expect("its end") + 1;
        let table: String = Observation::fields()
            .iter()
            .flat_map(|field| field.lines(ROWS))
            .map(|line| line + "\n")
            .collect();
        if std::env::var_os("WRITE_DOCS").is_some() {
            std::fs::write(&path, [&text[..from], &table, &text[from + length..]].concat()).expect("writes");
            return;
        }
        for (found, expected) in text[from..from + length].lines().zip(table.lines()) {
            assert_eq!(
                found, expected,
                "docs/reference/json-schema.md; WRITE_DOCS=1 writes its table from the fields"
            );
        }
        assert_eq!(text[from..from + length].lines().count(), table.lines().count(), "run with WRITE_DOCS=1");
    }
}
