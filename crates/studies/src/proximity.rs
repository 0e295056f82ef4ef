//! A request's time over its distance to the last collection (Sareen and Blackburn 2022, §6).
