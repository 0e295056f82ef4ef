//! `heaptoll programs add`: programs of others that heaptoll may not bring.

use std::path::{Path, PathBuf};

use heaptoll_experiment::places::Places;
use heaptoll_originals::{Added, JarError, JarRecipe, OriginalsError, Recipe, add};

use crate::context::Messages;
use crate::failure::Failure;

/// What is to be added.
#[derive(Debug, Clone)]
pub struct Request {
    /// The name of a recipe, or the path of a folder with one.
    pub recipe: String,
    /// Where the sources are; the recipe's repository without one.
    pub from: Option<String>,
}

/// What became of it.
#[derive(Debug)]
pub struct Report {
    /// The folder with the programs.
    pub folder: PathBuf,
    /// Each program.
    pub programs: Vec<Added>,
}

impl Report {
    /// Whether all programs are there, in all forms.
    pub fn is_whole(&self) -> bool {
        self.programs.iter().all(Added::is_whole)
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
    request: &Request,
    places: &Places,
    messages: &dyn Messages,
) -> Result<Report, Failure> {
    let refused = |error: OriginalsError| Failure::Refused(Box::new(error));
    let from = folder(&request.recipe, places)?;
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
    Ok(Report { folder: into.join(recipe.name()), programs })
}

/// Adds a program in Java. It is whole or an error.
fn add_jars(folder: &Path, request: &Request, messages: &dyn Messages) -> Result<Report, Failure> {
    let refused = |error: JarError| Failure::Refused(Box::new(error));
    let recipe = JarRecipe::load(folder).map_err(refused)?;
    let progress = messages.progress(None);
    let from = request.from.as_deref().map(Path::new);
    let folder = recipe.add(from, &Places::added(), &|text| progress.set_text(text)).map_err(refused)?;
    drop(progress);
    messages.note(&format!("{}: {}", recipe.name(), recipe.licence()));
    let (program, licence) = (recipe.name().to_owned(), recipe.licence().to_owned());
    Ok(Report { folder, programs: vec![Added { program, licence, forms: Ok(vec![]) }] })
}

/// The folder of a recipe: a path has a slash in it.
fn folder(recipe: &str, places: &Places) -> Result<PathBuf, Failure> {
    if recipe.contains('/') {
        return Ok(Path::new(recipe).to_owned());
    }
    let folder = places.recipe(recipe);
    folder.is_dir().then_some(folder).ok_or_else(|| {
        Failure::Usage(format!(
            "no programs to be added are called `{recipe}`; there are: malloc-bench, mimalloc-bench, lucene, h2"
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
