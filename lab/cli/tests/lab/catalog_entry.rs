//! Programs that a test puts into a catalog of its own.

use crate::fixture::Fixture;

impl Fixture {
    /// Makes this program's path an entry of a catalog; returns the catalog's folder.
    pub fn entry(&self, name: &str, program: &str) -> String {
        let entry = format!(
            "name = \"{name}\"\nabout = \"made for a test\"\ncommand = [\"{program}\"]\n[sizes.quick]\nparameters = {{}}\n"
        );
        std::fs::create_dir_all(self.path("catalog")).expect("makes");
        std::fs::write(self.path(&format!("catalog/{name}.toml")), entry).expect("writes");
        self.at("catalog")
    }
}
