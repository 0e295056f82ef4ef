//! Time and memory over the size of a quarantine (Sareen and Blackburn 2022, §7).
