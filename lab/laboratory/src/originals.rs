//! `heaptoll programs add`: programs of others that heaptoll may not bring.

use std::path::{Path, PathBuf};

use heaptoll_command::context::Messages;
use heaptoll_command::failure::Failure;
use heaptoll_experiment::places::Places;
use heaptoll_originals::{Added, GivenJar, JarRecipe, Recipe, add, spec};
use heaptoll_report::format::shell_path;

/// What is to be added.
#[derive(Debug, Clone)]
pub struct OriginalsRequest {
    /// The name of a recipe, or the path of a folder with one.
    pub recipe: String,
    /// Where the sources are; the recipe's repository without one.
    pub from: Option<String>,
    /// The digest that a jar which is given must have.
    pub sha256: Option<String>,
}

/// What became of it.
#[derive(Debug)]
pub struct Report {
    /// The folder with the programs.
    pub folder: PathBuf,
    /// Each program.
    pub programs: Vec<Added>,
    /// Programs that were left out, as messages.
    pub left_out: usize,
}

impl Report {
    /// Whether all programs are there, in all forms.
    pub fn is_whole(&self) -> bool {
        self.left_out == 0 && self.programs.iter().all(Added::is_whole)
    }

    /// Whether not one form could be added.
    pub fn is_empty(&self) -> bool {
        !self.programs.iter().any(|added| added.is_there() || added.is_whole())
    }
}

/// Fetches, checks, builds and proves programs, and reports each to `messages`.
///
/// # Errors
/// No such recipe, or nothing can be fetched, compiled or written.
pub fn fetch_and_build(
    request: &OriginalsRequest,
    places: &Places,
    messages: &dyn Messages,
) -> Result<Report, Failure> {
    if request.recipe == spec::NAME {
        return add_spec(request, messages);
    }
    let from = folder(&request.recipe, places)?;
    if GivenJar::is_in(&from) {
        return add_given(&from, request, messages);
    }
    if request.sha256.is_some() {
        return Err(Failure::Usage("--sha256 is for a jar that you have: dacapo, renaissance".into()));
    }
    if JarRecipe::is_in(&from) {
        return add_jars(&from, request, messages);
    }
    let recipe = Recipe::load(&from).map_err(refused)?;
    let into = Places::added();
    let progress = messages.progress(None);
    let layer = places.count_layer();
    let wanted = heaptoll_originals::Request {
        recipe: &recipe,
        from: request.from.as_deref(),
        into: &into,
        count_layer: &layer,
    };
    let programs = add(&wanted, &|text| progress.set_text(text)).map_err(refused)?;
    drop(progress);
    programs.iter().for_each(|program| report(program, messages));
    Ok(Report { folder: into.join(recipe.name()), programs, left_out: 0 })
}

/// Adds a program in Java. It is whole or an error.
fn add_jars(folder: &Path, request: &OriginalsRequest, messages: &dyn Messages) -> Result<Report, Failure> {
    let recipe = JarRecipe::load(folder).map_err(refused)?;
    let progress = messages.progress(None);
    let from = request.from.as_deref().map(Path::new);
    let folder = recipe.add(from, &Places::added(), &|text| progress.set_text(text)).map_err(refused)?;
    drop(progress);
    messages.note(&format!("{}: {}", recipe.name(), recipe.licence()));
    let (program, licence) = (recipe.name().to_owned(), recipe.licence().to_owned());
    Ok(Report { folder, programs: vec![Added { program, licence, forms: Ok(vec![]) }], left_out: 0 })
}

/// Makes entries of the benchmarks of an installed SPEC CPU 2017.
fn add_spec(request: &OriginalsRequest, messages: &dyn Messages) -> Result<Report, Failure> {
    let from = request.from.as_deref().ok_or_else(|| {
        Failure::Usage(format!(
            "{} cannot be downloaded: name the folder of your installation (--from)",
            spec::NAME
        ))
    })?;
    let (folder, found) = spec::add(Path::new(from), &Places::added()).map_err(refused)?;
    let mut report = Report { folder, programs: vec![], left_out: 0 };
    for program in found {
        match program.entry {
            Ok((name, workloads)) => {
                messages.note(&format!("{name}: {} ({})", program.benchmark, workloads.join(", ")));
                let licence = "as you have licensed it from SPEC".to_owned();
                report.programs.push(Added { program: name, licence, forms: Ok(vec![]) });
            }
            Err(why) => {
                messages.error(&format!("{}: {why}", program.benchmark));
                report.left_out += 1;
            }
        }
    }
    if let Some(first) = report.programs.first() {
        let folder = shell_path(&report.folder);
        messages.note(&format!("measure them with: heaptoll run --catalog {folder} -p {}", first.program));
    }
    Ok(report)
}

/// The virtual machine, as entries of the catalog start it.
const JAVA: &str = "/usr/bin/java";

/// Records a jar that the user has. It is whole or an error.
fn add_given(folder: &Path, request: &OriginalsRequest, messages: &dyn Messages) -> Result<Report, Failure> {
    let recipe = GivenJar::load(folder).map_err(refused)?;
    let progress = messages.progress(None);
    progress.set_text("reading the jar");
    let from = request.from.as_deref().map(Path::new);
    let added = recipe.add(from, request.sha256.as_deref(), &Places::added(), Path::new(JAVA));
    drop(progress);
    let (folder, digest) = added.map_err(refused)?;
    messages.note(&format!("{}: SHA-256 {digest}; {}", recipe.name(), recipe.licence()));
    let (program, licence) = (recipe.name().to_owned(), recipe.licence().to_owned());
    Ok(Report { folder, programs: vec![Added { program, licence, forms: Ok(vec![]) }], left_out: 0 })
}

/// What cannot be added.
pub(crate) fn refused(error: impl std::error::Error + 'static) -> Failure {
    Failure::Refused(Box::new(error))
}

/// The folder of a recipe: a path has a slash in it.
fn folder(recipe: &str, places: &Places) -> Result<PathBuf, Failure> {
    if recipe.contains('/') {
        return Ok(Path::new(recipe).to_owned());
    }
    let folder = places.recipe(recipe);
    folder.is_dir().then_some(folder).ok_or_else(|| {
        Failure::Usage(format!(
            "no programs to add are called `{recipe}`; there are: malloc-bench, mimalloc-bench, lucene, h2, \
             dacapo, renaissance, spec2017"
        ))
    })
}

/// What became of a program, a line a form.
fn report(added: &Added, messages: &dyn Messages) {
    messages.note(&format!("{}: licence: {}", added.program, added.licence));
    match &added.forms {
        Err(refusal) => messages.error(&format!("{}: {refusal}", added.program)),
        Ok(forms) => {
            for form in forms {
                let name = format!("{}:{}", added.program, form.form);
                match &form.outcome {
                    Ok(counts) => messages.note(&format!(
                        "{name}: {} objects, {} resizes, {} bytes",
                        counts.objects, counts.resizes, counts.bytes
                    )),
                    Err(refusal) => messages.error(&format!("{name}: {refusal}")),
                }
            }
        }
    }
}
