//! An experiment as a data set in Parquet: a file a shard, in folders named for the experiment, the class of machines and
//! the node, which DuckDB, Spark and pandas read as columns.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::Experiment;
use heaptoll_experiment::observation::Observation;
use heaptoll_experiment::shards::{Part, Shard, ShardIndex, named_for, short};
use heaptoll_experiment::store::{Reader, StoreError};
use heaptoll_report::flat_table::FlatTable;
use heaptoll_report::{ReportError, files, parquet};

use heaptoll_command::failure::Failure;

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Files.
    pub files: usize,
    /// Rows in them.
    pub rows: usize,
}

/// Writes the file of an experiment (merged, of one shard, or measured in one place) to the folder of a data set, to which
/// further ones are added. A file that is there already, of an earlier export, is replaced.
///
/// # Errors
/// The experiment cannot be read, or a file not be written.
pub fn write(experiment: &Path, folder: &Path) -> Result<Written, Failure> {
    let reader = Reader::open(experiment)?;
    let mut described = reader.description()?;
    described.tracks.clear();
    let names: Vec<String> = described.programs.iter().map(|program| program.name.clone()).collect();
    // Of ten thousand shards each file would have a copy.
    let mut bare = described.clone();
    bare.settings.shards.clear();
    let mut written = Written::default();
    for program in &names {
        let mut files: BTreeMap<PathBuf, (Option<&Shard>, Vec<Observation>)> = BTreeMap::new();
        let index = ShardIndex::new(&described);
        for row in reader.rows_of(program)? {
            let shard = index.of_row(&row);
            let path = match shard {
                Some(shard) => place(short(&shard.plan), &shard.part, &shard.node, shard.number),
                None if described.settings.shards.is_empty() => {
                    let stem = experiment.file_stem().unwrap_or_default().to_string_lossy();
                    let class = named_for(&described.machine.cpu);
                    let part = Part { class, ..Part::default() };
                    folder_of(&stem, &part, "unknown").join(format!("{}.parquet", safe(program)))
                }
                None => {
                    let reason = "a row belongs to none of its shards".to_owned();
                    return Err(StoreError::Damaged { path: experiment.into(), reason }.into());
                }
            };
            files.entry(path).or_insert((shard, vec![])).1.push(row);
        }
        for (path, (shard, rows)) in files {
            written.files += 1;
            written.rows += rows.len();
            let experiment = Experiment { observations: rows, ..bare.clone() };
            write_file(&folder.join(path), shard, experiment)?;
        }
    }
    Ok(written)
}

/// `experiment=.../class=.../node=.../shard-00003.parquet`.
fn place(experiment: &str, part: &Part, node: &str, number: u32) -> PathBuf {
    folder_of(experiment, part, node).join(format!("shard-{number:05}.parquet"))
}

fn folder_of(experiment: &str, part: &Part, node: &str) -> PathBuf {
    let level = |key: &str, value: &str| format!("{key}={}", safe(value));
    PathBuf::from(level("experiment", experiment)).join(level("class", &part.class)).join(level("node", node))
}

/// A name without characters that mean something in a path or in a partition's name.
fn safe(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name: String = name.chars().map(safe).collect();
    if name.trim_matches('.').is_empty() { "unknown".into() } else { name }
}

/// Writes the rows of one shard, whose file describes no other.
fn write_file(path: &Path, own: Option<&Shard>, mut experiment: Experiment) -> Result<(), Failure> {
    experiment.settings.shards = own.into_iter().cloned().collect();
    if let Some(shard) = own {
        experiment.machine = shard.machine.clone();
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|source| ReportError::file(path, source))?;
    }
    Ok(files::write_atomically(path, |out| parquet::write(FlatTable::of_runs(&experiment), out))?)
}
