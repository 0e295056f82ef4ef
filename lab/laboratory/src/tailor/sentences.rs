//! What a trace taught, in sentences: of the document, and of the comment at the top of the source.

use heaptoll_units::{number, part, whole_bytes};

use super::figures::TailorFigures;

/// The sentences, the most important first. They have no spaces or signs that C source would have to escape.
pub fn learned(figures: &TailorFigures) -> Vec<String> {
    let plain = |text: String| text.replace('\u{202f}', ",");
    [requests(figures), others(figures), lives(figures), peak(figures), threads(figures)].map(plain).into()
}

fn requests(figures: &TailorFigures) -> String {
    let classes = figures.classes.len() as u64;
    if classes == 0 {
        return format!(
            "None of the {} requests is small and frequent enough for a class.",
            number(figures.requests)
        );
    }
    format!(
        "{} of the {} requests are for {} {}, each with its own class.",
        part(figures.exact_requests, figures.requests),
        number(figures.requests),
        number(classes),
        if classes == 1 { "size" } else { "sizes" },
    )
}

fn others(figures: &TailorFigures) -> String {
    let near = figures.class_requests - figures.exact_requests;
    format!(
        "Of the others, {} go to the next larger class, {} to the general heap, and {} get their own mapping ({} and \
         more).",
        number(near),
        number(figures.general_requests),
        number(figures.mapped_requests),
        whole_bytes(figures.map_from_bytes)
    )
}

fn lives(figures: &TailorFigures) -> String {
    format!(
        "{} of the blocks in classes are freed before 32 KiB are allocated after them.",
        part(figures.short_lives, figures.exact_requests)
    )
}

fn peak(figures: &TailorFigures) -> String {
    format!(
        "At the peak {} are live, {} as blocks; the largest request is {}.",
        whole_bytes(figures.peak_requested_bytes),
        whole_bytes(figures.peak_bytes),
        whole_bytes(figures.largest_bytes)
    )
}

fn threads(figures: &TailorFigures) -> String {
    match figures.threads {
        1 => "One thread allocates.".to_owned(),
        threads => format!("{threads} threads allocate."),
    }
}
