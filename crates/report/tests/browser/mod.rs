//! Chromium for tests of pages.

use std::path::PathBuf;

fn chromium() -> Option<PathBuf> {
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).chain([PathBuf::from("/usr/bin")]).collect();
    names
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}

/// Chromium, or a note that nothing was inspected; in continuous integration it must be there.
pub fn chromium_or_note() -> Option<PathBuf> {
    let browser = chromium();
    if browser.is_none() {
        assert!(std::env::var_os("CI").is_none(), "no Chromium: install the package `chromium`");
        eprintln!(
            "NOTE: the page was NOT inspected, there is no Chromium here: install the package `chromium`"
        );
    }
    browser
}
