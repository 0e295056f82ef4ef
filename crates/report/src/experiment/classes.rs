//! One document of an experiment that several classes of machines measured: each class by itself, since an average of
//! unlike machines is of none.

use crate::document::Document;
use crate::format::and_list;

/// The documents of the classes, by their names, one after the other.
pub fn of_classes(classes: Vec<(String, Document)>) -> Document {
    let names: Vec<String> = classes.iter().map(|(name, _)| name.clone()).collect();
    let mut whole = Document::default();
    for (number, (class, document)) in classes.into_iter().enumerate() {
        let named = |text: String| {
            if text.is_empty() { class.clone() } else { format!("{class}: {text}") }
        };
        if number == 0 {
            let count = names.len();
            whole.title = format!("{} on {count} classes of machines", document.title);
            whole.subtitle = document.subtitle;
            whole.command = document.command;
            whole.palette = document.palette;
        }
        whole.warnings.extend(document.warnings.into_iter().map(&named));
        whole.facts.extend(document.facts.into_iter().map(|(name, fact)| (named(name), fact)));
        whole.sections.extend(document.sections.into_iter().map(|mut section| {
            section.title = named(section.title);
            section
        }));
    }
    if let Some(first) = whole.sections.first_mut() {
        let text =
            format!("Measured on {}. Each is shown by itself, and no ratio combines them.", and_list(&names));
        first.text.insert(0, text);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Section;

    #[test]
    fn each_class_is_named_where_it_is_shown() {
        let document = || Document {
            title: "x under 2 memory managers".into(),
            sections: vec![Section::default(), Section { title: "x".into(), ..Section::default() }],
            warnings: vec!["incomplete".into()],
            ..Document::default()
        };
        let whole = of_classes(vec![("zen3".into(), document()), ("icelake".into(), document())]);
        assert_eq!(whole.title, "x under 2 memory managers on 2 classes of machines");
        let titles: Vec<&str> = whole.sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["zen3", "zen3: x", "icelake", "icelake: x"]);
        assert_eq!(whole.warnings, ["zen3: incomplete", "icelake: incomplete"]);
        assert!(whole.sections[0].text[0].contains("zen3 and icelake"));
    }
}
