//! One binary of all these tests: linking one takes the time of many tests.

mod browser;
mod driven;

mod flame_in_browser;
mod full_disk;
mod mosaic_in_browser;
mod page_in_browser;
