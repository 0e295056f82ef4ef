//! Generators of inputs: each turns a seed and a few counts into the same bytes on every machine.
//!
//! Nothing here uses floating point, the time, or a hash map's order, and the random stream is ChaCha8 with our own
//! reduction to a range, so that a new version of a random-number crate cannot change an input under a digest.

mod access_log;
mod c_source;
mod channels;
mod cnf;
mod commits;
mod dice;
mod digraph;
mod figure;
mod genome;
mod go_game;
mod input;
mod json;
mod linear_program;
mod makefile;
mod markdown;
mod ninja;
mod objects;
mod pascal;
mod pdf;
mod pla;
mod postscript;
mod protein;
mod proto;
mod python_source;
mod smt;
mod sql;
mod svg;
mod text;
mod verilog;
mod vocabulary;
mod xml;

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Deserialize;

use crate::entry::Parameter;
use input::Generate;

/// A generator with its parameters: all that determines an input's bytes.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "generator", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Generator {
    /// The places of reads of a genome.
    Alignments(genome::Alignments),
    /// A question for a SAT solver.
    Cnf(cnf::Cnf),
    /// The history of a project, for git.
    Commits(commits::Commits),
    /// A directed graph in Graphviz's language.
    Digraph(digraph::Digraph),
    /// Sequences of bases.
    Genome(genome::Genome),
    /// A linear program in CPLEX's format.
    LinearProgram(linear_program::LinearProgram),
    /// A text in Markdown.
    Markdown(markdown::Markdown),
    /// A build file for Ninja.
    Ninja(ninja::Ninja),
    /// A document in PDF.
    Pdf(pdf::Pdf),
    /// Descriptions of messages.
    Proto(proto::Proto),
    /// A program in Python with types.
    PythonSource(python_source::PythonSource),
    /// Reads of a genome.
    Reads(genome::Reads),
    /// A drawing in SVG.
    Svg(svg::Svg),
    /// A circuit in Verilog.
    Verilog(verilog::Verilog),
    /// Lines of a web server's log.
    AccessLog(access_log::AccessLog),
    /// A C program.
    CSource(c_source::CSource),
    /// A drawing in Xfig's format.
    Figure(figure::Figure),
    /// A session in the Go text protocol.
    GoGame(go_game::GoGame),
    /// Channels of a circuit, to be routed.
    Channels(channels::Channels),
    /// A JSON document of nested records.
    Json(json::Json),
    /// A Makefile of many modules.
    Makefile(makefile::Makefile),
    /// An archive of object files.
    Objects(objects::Objects),
    /// A Pascal program.
    Pascal(pascal::Pascal),
    /// A Boolean function as a Berkeley PLA.
    Pla(pla::Pla),
    /// A PostScript document of vector drawings and text.
    Postscript(postscript::Postscript),
    /// The profile of a family of proteins.
    Profile(protein::Profile),
    /// Sequences of proteins, some of them of a family.
    Proteins(protein::Proteins),
    /// Problems for a solver in SMT-LIB 2.
    Smt(smt::Smt),
    /// An SQL script that fills and queries tables.
    Sql(sql::Sql),
    /// Running text whose words are distributed as in natural language.
    Text(text::Text),
    /// An XML document of nested records.
    Xml(xml::Xml),
}

impl Generator {
    /// Reads the generator of an entry's `[inputs.NAME]`, where a value `"{lines}"` stands for the parameter `lines`.
    pub(crate) fn from_table(
        table: &toml::Table,
        parameters: &BTreeMap<String, Parameter>,
    ) -> Result<Self, String> {
        let mut filled = toml::Table::new();
        for (key, value) in table {
            filled.insert(key.clone(), fill(value, parameters)?);
        }
        filled.try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }

    /// A text that differs whenever the bytes may differ.
    pub(crate) fn identity(&self) -> String {
        let version = match self {
            Generator::Alignments(_) => genome::Alignments::VERSION,
            Generator::Cnf(_) => cnf::Cnf::VERSION,
            Generator::Commits(_) => commits::Commits::VERSION,
            Generator::Digraph(_) => digraph::Digraph::VERSION,
            Generator::Genome(_) => genome::Genome::VERSION,
            Generator::LinearProgram(_) => linear_program::LinearProgram::VERSION,
            Generator::Markdown(_) => markdown::Markdown::VERSION,
            Generator::Ninja(_) => ninja::Ninja::VERSION,
            Generator::Pdf(_) => pdf::Pdf::VERSION,
            Generator::Proto(_) => proto::Proto::VERSION,
            Generator::PythonSource(_) => python_source::PythonSource::VERSION,
            Generator::Reads(_) => genome::Reads::VERSION,
            Generator::Svg(_) => svg::Svg::VERSION,
            Generator::Verilog(_) => verilog::Verilog::VERSION,
            Generator::AccessLog(_) => access_log::AccessLog::VERSION,
            Generator::CSource(_) => c_source::CSource::VERSION,
            Generator::Figure(_) => figure::Figure::VERSION,
            Generator::GoGame(_) => go_game::GoGame::VERSION,
            Generator::Channels(_) => channels::Channels::VERSION,
            Generator::Json(_) => json::Json::VERSION,
            Generator::Makefile(_) => makefile::Makefile::VERSION,
            Generator::Objects(_) => objects::Objects::VERSION,
            Generator::Pascal(_) => pascal::Pascal::VERSION,
            Generator::Pla(_) => pla::Pla::VERSION,
            Generator::Postscript(_) => postscript::Postscript::VERSION,
            Generator::Profile(_) => protein::Profile::VERSION,
            Generator::Proteins(_) => protein::Proteins::VERSION,
            Generator::Smt(_) => smt::Smt::VERSION,
            Generator::Sql(_) => sql::Sql::VERSION,
            Generator::Text(_) => text::Text::VERSION,
            Generator::Xml(_) => xml::Xml::VERSION,
        };
        format!("{self:?} version {version}")
    }

    /// Writes the input.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Generator::Alignments(input) => input.generate(out)?,
            Generator::Cnf(input) => input.generate(out)?,
            Generator::Commits(input) => input.generate(out)?,
            Generator::Digraph(input) => input.generate(out)?,
            Generator::Genome(input) => input.generate(out)?,
            Generator::LinearProgram(input) => input.generate(out)?,
            Generator::Markdown(input) => input.generate(out)?,
            Generator::Ninja(input) => input.generate(out)?,
            Generator::Pdf(input) => input.generate(out)?,
            Generator::Proto(input) => input.generate(out)?,
            Generator::PythonSource(input) => input.generate(out)?,
            Generator::Reads(input) => input.generate(out)?,
            Generator::Svg(input) => input.generate(out)?,
            Generator::Verilog(input) => input.generate(out)?,
            Generator::AccessLog(input) => input.generate(out)?,
            Generator::CSource(input) => input.generate(out)?,
            Generator::Figure(input) => input.generate(out)?,
            Generator::GoGame(input) => input.generate(out)?,
            Generator::Channels(input) => input.generate(out)?,
            Generator::Json(input) => input.generate(out)?,
            Generator::Makefile(input) => input.generate(out)?,
            Generator::Objects(input) => input.generate(out)?,
            Generator::Pascal(input) => input.generate(out)?,
            Generator::Pla(input) => input.generate(out)?,
            Generator::Postscript(input) => input.generate(out)?,
            Generator::Profile(input) => input.generate(out)?,
            Generator::Proteins(input) => input.generate(out)?,
            Generator::Smt(input) => input.generate(out)?,
            Generator::Sql(input) => input.generate(out)?,
            Generator::Text(input) => input.generate(out)?,
            Generator::Xml(input) => input.generate(out)?,
        }
        out.flush()
    }
}

fn fill(value: &toml::Value, parameters: &BTreeMap<String, Parameter>) -> Result<toml::Value, String> {
    let toml::Value::String(text) = value else { return Ok(value.clone()) };
    let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) else {
        return Ok(value.clone());
    };
    match parameters.get(name) {
        Some(Parameter::Integer(number)) => Ok(toml::Value::Integer(*number)),
        Some(Parameter::Text(text)) => Ok(toml::Value::String(text.clone())),
        None => Err(format!("there is no parameter `{name}`")),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs::File;
    use std::io::BufWriter;

    use proptest::prelude::*;
    use sha2::{Digest, Sha256};

    use super::*;

    /// Every generator at a small size, as it stands in an entry, but for the seed.
    const SMALL: [(&str, &str); 31] = [
        ("alignments", "contigs = 2\nlength = 400\nreads = 4"),
        ("cnf", "variables = 6\nclauses = 9"),
        ("commits", "commits = 3\nfiles = 2"),
        ("digraph", "nodes = 9"),
        ("genome", "contigs = 2\nlength = 400"),
        ("linear-program", "rows = 4\ncolumns = 9"),
        ("markdown", "sections = 3"),
        ("ninja", "modules = 2\nsources = 2"),
        ("pdf", "pages = 2\nlines = 3"),
        ("proto", "messages = 3\nfields = 4"),
        ("python-source", "classes = 2\nmethods = 2"),
        ("reads", "contigs = 2\nlength = 400\nreads = 4"),
        ("svg", "groups = 2\nshapes = 3"),
        ("verilog", "modules = 2\nregisters = 3\ncycles = 9"),
        ("access-log", "lines = 20\nclients = 5\npages = 9"),
        ("c-source", "functions = 6\nstructures = 2"),
        ("figure", "groups = 2\nobjects = 9"),
        ("go-game", "games = 1\nboard = 9\nmoves = 2"),
        ("channels", "channels = 2\nwidth = 20\npercent = 80"),
        ("json", "records = 8"),
        ("makefile", "modules = 3\nsources = 4\nheaders = 9"),
        ("objects", "files = 2\nfunctions = 3"),
        ("pascal", "modules = 2\nroutines = 3"),
        ("pla", "inputs = 6\noutputs = 2\nterms = 10"),
        ("postscript", "pages = 2\nshapes = 5"),
        ("profile", "length = 20"),
        ("proteins", "length = 20\nsequences = 3\nrelatives = 2"),
        ("smt", "rounds = 3\nvariables = 5\nconstraints = 4"),
        ("sql", "customers = 6\norders = 20\nrounds = 2"),
        ("text", "words = 40\nvocabulary = 30"),
        ("xml", "records = 3"),
    ];

    fn seeded(name: &str, settings: &str, seed: u64) -> Generator {
        let table = format!("generator = \"{name}\"\nseed = {seed}\n{settings}").parse().unwrap();
        Generator::from_table(&table, &BTreeMap::new()).unwrap()
    }

    pub(crate) fn small(wanted: &str) -> Generator {
        let (name, settings) = SMALL.iter().find(|(name, _)| *name == wanted).unwrap();
        seeded(name, settings, 1)
    }

    fn bytes(generator: &Generator) -> Vec<u8> {
        let mut out = Vec::new();
        generator.write(&mut out).unwrap();
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn the_same_seed_gives_the_same_bytes_and_another_seed_others(seed in 0..i64::MAX as u64, other in 0..i64::MAX as u64) {
            for (name, settings) in SMALL {
                let first = seeded(name, settings, seed);
                prop_assert_eq!(bytes(&first), bytes(&seeded(name, settings, seed)));
                if other != seed {
                    let second = seeded(name, settings, other);
                    prop_assert_ne!(bytes(&first), bytes(&second), "{}", name);
                    prop_assert_ne!(first.identity(), second.identity());
                }
            }
        }
    }

    /// A change to a generator raises its `VERSION` and brings the new digest here.
    #[test]
    fn the_bytes_of_this_version_have_not_changed() {
        let found: Vec<String> = SMALL
            .iter()
            .map(|(name, _)| {
                let generator = small(name);
                let digest = Sha256::digest(bytes(&generator));
                let identity = generator.identity();
                let version = identity.rsplit(' ').next().unwrap();
                format!(
                    "{name} {version} {:02x}{:02x}{:02x}{:02x}",
                    digest[0], digest[1], digest[2], digest[3]
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                "alignments 1 408da545",
                "cnf 1 78f3cdad",
                "commits 1 c2178740",
                "digraph 1 057261ac",
                "genome 1 f898874d",
                "linear-program 1 f0ff8540",
                "markdown 1 7ae4ec5f",
                "ninja 1 07938e52",
                "pdf 1 cdbcfe09",
                "proto 1 5f6d149b",
                "python-source 1 eeecad44",
                "reads 1 80c1e27a",
                "svg 1 e65ae564",
                "verilog 1 22282bf3",
                "access-log 1 e7e5fda8",
                "c-source 1 08b9c821",
                "figure 1 71e5e294",
                "go-game 1 36e3b590",
                "channels 1 935acc8d",
                "json 1 4e2b07fd",
                "makefile 1 a252f8ed",
                "objects 1 d059fd1c",
                "pascal 1 06589ffa",
                "pla 1 6f93dd15",
                "postscript 1 9c2677f8",
                "profile 1 318599d0",
                "proteins 1 f2123b8f",
                "smt 1 00c8d86d",
                "sql 1 27bdc6db",
                "text 1 d6bcb8ff",
                "xml 1 4f67f0ae",
            ]
        );
    }

    #[test]
    fn parameters_fill_a_table() {
        let table = "generator = \"text\"\nseed = 1\nwords = \"{w}\"\nvocabulary = 9".parse().unwrap();
        let parameters = BTreeMap::from([("w".to_owned(), Parameter::Integer(7))]);
        let filled = Generator::from_table(&table, &parameters).unwrap();
        assert!(filled.identity().contains("words: 7"), "{}", filled.identity());
        let error = Generator::from_table(&table, &BTreeMap::new()).unwrap_err();
        assert!(error.contains("no parameter `w`"), "{error}");
    }

    #[test]
    fn unknown_generators_and_parameters_and_zeros_are_refused() {
        for (table, problem) in [
            ("generator = \"poem\"\nseed = 1", "unknown variant `poem`"),
            (
                "generator = \"text\"\nseed = 1\nwords = 3\nvocabulary = 3\ncolour = 1",
                "unknown field `colour`",
            ),
            ("generator = \"text\"\nseed = 1\nvocabulary = 3", "missing field `words`"),
            ("generator = \"text\"\nseed = 1\nwords = 0\nvocabulary = 3", "nonzero"),
            ("seed = 1", "missing field `generator`"),
        ] {
            let error = Generator::from_table(&table.parse().unwrap(), &BTreeMap::new()).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_full_disk_stops_every_generator_with_its_reason() {
        for (name, _) in SMALL {
            let full = File::options().write(true).open("/dev/full").unwrap();
            let error = small(name).write(&mut BufWriter::new(full)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{name}");
        }
    }
}
