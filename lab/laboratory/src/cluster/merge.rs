//! Shards made one experiment: checked against each other, each cell taken once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use heaptoll_experiment::experiment::{Experiment, Machine, Protocol};
use heaptoll_experiment::shards::{Shard, short};
use heaptoll_experiment::store::Store;
use heaptoll_experiment::store::merging::Merging;

use super::error::ClusterError;

/// What to merge.
#[derive(Debug, Clone)]
pub struct MergeRequest {
    /// The file to write.
    pub output: PathBuf,
    /// Files of shards, and folders of them.
    pub shards: Vec<PathBuf>,
    /// The class of machines to take alone; all without one.
    pub class: Option<String>,
}

/// A merged experiment.
#[derive(Debug)]
pub struct Merged {
    /// Its description; no rows.
    pub experiment: Experiment,
    /// Rows in the file.
    pub rows: u64,
    /// Shards that were there more than once: number, the file that was taken, the one that was not.
    pub twice: Vec<(u32, PathBuf, PathBuf)>,
    /// Files of shards of other classes, where one was requested.
    pub left_out: usize,
}

/// A shard's file and what is in it.
struct Found {
    path: PathBuf,
    shard: Shard,
}

/// Merges shards into a new file, which is there whole or not at all.
///
/// # Errors
/// A shard is half written, of another experiment, described otherwise, or damaged; a file cannot be read or written.
pub fn merge(request: &MergeRequest) -> Result<Merged, ClusterError> {
    let (mut described, found, twice) = read(&files(&request.shards)?)?;
    let (taken, others): (Vec<Found>, Vec<Found>) = found
        .into_values()
        .partition(|found| request.class.as_ref().is_none_or(|class| *class == found.shard.part.class));
    let Some(first) = taken.first() else { return Err(ClusterError::NothingToMerge) };
    (described.machine, described.own_cost) = (first.shard.machine.clone(), first.shard.own_cost);
    described.settings.shards = taken.iter().map(|found| found.shard.clone()).collect();
    // Of one class the others are no part of it.
    described.complete = described.missing_shards().is_empty() || !others.is_empty();
    let folder = match request.output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let written = |cause| ClusterError::Write { path: request.output.clone(), cause };
    let scratch = tempfile::Builder::new().prefix(".heaptoll-merge-").tempdir_in(folder).map_err(written)?;
    let whole = scratch.path().join("merged.db");
    let mut merging = Merging::create(&whole)?;
    let warmup = described.settings.warmup;
    for Found { path, shard } in &taken {
        let turns = described.turns(&shard.part.program);
        merging.add(path, &shard.part, turns, warmup)?.map_err(|why| ClusterError::OtherRows {
            path: path.clone(),
            number: shard.number,
            why,
        })?;
    }
    let rows = merging.finish(&described)?;
    // A link does not take the place of a file that is there, as a rename would.
    std::fs::hard_link(&whole, &request.output)
        .or_else(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Err(error),
            _ if request.output.exists() => Err(std::io::ErrorKind::AlreadyExists.into()),
            _ => std::fs::rename(&whole, &request.output),
        })
        .map_err(written)?;
    Ok(Merged { experiment: described, rows, twice, left_out: others.len() })
}

/// The files to merge, in order: those that were named, and of a folder all that end in `.db`.
fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, ClusterError> {
    let mut files = Vec::new();
    for path in named {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let error = |cause| ClusterError::Read { path: path.clone(), cause };
        for entry in std::fs::read_dir(path).map_err(error)? {
            let entry = entry.map_err(error)?.path();
            let is_hidden = entry.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if entry.extension().is_some_and(|end| end == "db") && !is_hidden {
                files.push(entry);
            }
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// The shards by number, checked against the first; and those that are there more than once.
type Read = (Experiment, BTreeMap<u32, Found>, Vec<(u32, PathBuf, PathBuf)>);

fn read(files: &[PathBuf]) -> Result<Read, ClusterError> {
    let mut first: Option<(PathBuf, String, Experiment)> = None;
    let (mut found, mut twice): (BTreeMap<u32, Found>, _) = (BTreeMap::new(), Vec::new());
    for path in files {
        let described = Store::read_description(path)?;
        let [shard] = described.settings.shards.as_slice() else {
            return Err(ClusterError::NoShardFile { path: path.clone() });
        };
        let shard = shard.clone();
        if !described.complete {
            return Err(ClusterError::HalfShard { path: path.clone() });
        }
        let described = without_shard(described);
        match &first {
            None => first = Some((path.clone(), shard.plan.clone(), described)),
            Some((first, expected, _)) if *expected != shard.plan => {
                return Err(ClusterError::OtherExperiment {
                    path: path.clone(),
                    found: short(&shard.plan).into(),
                    first: first.clone(),
                    expected: short(expected).into(),
                });
            }
            Some((first, _, expected)) => {
                if let Some(what) = difference(expected, &described) {
                    let (path, first) = (path.clone(), first.clone());
                    return Err(ClusterError::OtherDescription { path, first, what: what.into() });
                }
            }
        }
        match found.get(&shard.number) {
            Some(kept) => twice.push((shard.number, kept.path.clone(), path.clone())),
            None => drop(found.insert(shard.number, Found { path: path.clone(), shard })),
        }
    }
    let (_, _, described) = first.ok_or(ClusterError::NothingToMerge)?;
    Ok((described, found, twice))
}

/// What all shards of a plan have in common.
fn without_shard(described: Experiment) -> Experiment {
    Experiment {
        settings: Protocol { shards: vec![], ..described.settings },
        machine: Machine::default(),
        own_cost: None,
        ..described
    }
}

/// The first part in which two descriptions differ.
fn difference(one: &Experiment, other: &Experiment) -> Option<&'static str> {
    let parts = [
        ("the version of heaptoll", one.heaptoll_version == other.heaptoll_version),
        ("when it was planned", one.created_unix_s == other.created_unix_s),
        ("settings", one.settings == other.settings),
        ("programs", one.programs == other.programs),
        ("managers", one.stacks == other.stacks && one.baseline == other.baseline),
        ("refusals", one.refused == other.refused && one.exact_notes == other.exact_notes),
    ];
    parts.into_iter().find(|(_, are_equal)| !are_equal).map(|(what, _)| what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::shards::Part;
    use heaptoll_experiment::testing::programs::{experiment, row};

    /// A shard of one repetition, in a file of its own.
    fn shard(folder: &Path, name: &str, number: u32, change: impl Fn(&mut Experiment)) -> PathBuf {
        let mut made = experiment(&["prog"], &["glibc".into()], 3);
        let (program, row) = ("prog".to_owned(), row("prog", "glibc", number, 1.0, 1));
        let part = Part { program, class: "a".into(), first: number, repetitions: 1, ..Part::default() };
        let part = Part { first_warmup: number, ..part };
        let node = format!("n{number}");
        let plan = "f".repeat(64);
        let shard = Shard { plan, number, of: 3, part, node, ..Shard::default() };
        made.settings.shards = vec![shard];
        change(&mut made);
        let path = folder.join(name);
        let store = Store::create(&path, &made).expect("creates");
        store.append(&row).expect("appends");
        path
    }

    fn merged(folder: &Path, shards: Vec<PathBuf>) -> Result<Merged, ClusterError> {
        merge(&MergeRequest { output: folder.join("out.merged"), shards, class: None })
    }

    #[test]
    fn shards_of_a_folder_become_one_experiment() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = folder.path();
        shard(at, "b.db", 0, |_| ());
        shard(at, "a.db", 2, |_| ());
        std::fs::write(at.join(".c.db-1.part"), "half").expect("writes");
        let made = merged(at, vec![at.into()]).expect("they are merged");
        assert_eq!((made.rows, made.experiment.missing_shards()), (2, vec![1]));
        let read = Store::read(&at.join("out.merged")).expect("reads");
        assert!(!read.complete);
        assert_eq!(read.observations.iter().map(|row| row.repetition).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(read.nodes(), ["n0", "n2"]);
        let names = std::fs::read_dir(at).expect("a folder").count();
        assert_eq!(names, 4, "nothing else is left");
        let again = merged(at, vec![at.into()]);
        assert!(matches!(again, Err(ClusterError::Write { .. })), "it is never replaced: {again:?}");
    }

    #[test]
    fn of_a_shard_that_is_there_twice_one_is_taken() {
        let folder = tempfile::tempdir().expect("a folder");
        let (first, second) =
            (shard(folder.path(), "a.db", 1, |_| ()), shard(folder.path(), "b.db", 1, |_| ()));
        let made = merged(folder.path(), vec![second.clone(), first.clone()]).expect("they are merged");
        assert_eq!((made.rows, made.twice), (1, vec![(1, first, second)]));
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let good = shard(folder.path(), "a.db", 0, |_| ());
        let refused = |name: &str, change: &dyn Fn(&mut Experiment)| {
            let other = shard(folder.path(), name, 1, change);
            merged(folder.path(), vec![good.clone(), other]).expect_err("is refused")
        };
        let error = refused("b.db", &|made| made.settings.shards[0].plan = "0".repeat(64));
        assert!(matches!(error, ClusterError::OtherExperiment { .. }), "{error}");
        let error = refused("c.db", &|made| made.complete = false);
        assert!(matches!(error, ClusterError::HalfShard { .. }), "{error}");
        let error = refused("d.db", &|made| made.settings.shards.clear());
        assert!(matches!(error, ClusterError::NoShardFile { .. }), "{error}");
        let error = refused("e.db", &|made| made.heaptoll_version = "another".into());
        assert!(error.to_string().contains("the version of heaptoll"), "{error}");
        let error = refused("f.db", &|made| made.stacks[0].preload.push("/x.so".into()));
        assert!(error.to_string().contains("managers"), "{error}");
        let error = refused("g.db", &|made| made.settings.shards[0].part.first = 5);
        assert!(matches!(error, ClusterError::OtherRows { .. }), "{error}");
        let cut = folder.path().join("h.db");
        let bytes = std::fs::read(&good).expect("reads");
        std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("writes");
        let error = merged(folder.path(), vec![good.clone(), cut]).expect_err("is refused");
        assert!(matches!(error, ClusterError::Store(_)), "{error}");
        assert!(matches!(merged(folder.path(), vec![]), Err(ClusterError::NothingToMerge)));
        assert!(!folder.path().join("out.merged").exists());
    }
}
