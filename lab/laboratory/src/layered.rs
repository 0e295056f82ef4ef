//! Experiments on one layer in front of a manager, over a setting of the layer: each setting is compared with one that
//! does nothing, and that one with the manager alone, which is what the layer itself costs.

use heaptoll_experiment::manager::{self, Manager};
use heaptoll_experiment::stack::{Layer, LayerKind, layers};

use heaptoll_command::context::Context;
use heaptoll_command::failure::Failure;
use heaptoll_runs::preparation::stand_ins;
use heaptoll_runs::studied::without_repeats;

/// The managers to put a layer in front of, and what is done with each.
pub struct Stacks<'a> {
    /// The command.
    pub command: &'a str,
    /// Those requested.
    pub requested: &'a [String],
    /// Those taken without a request, where they are here.
    pub usual: &'a [&'a str],
}

impl Stacks<'_> {
    /// Each manager once without the layer, then the stacks that `words` gives.
    ///
    /// # Errors
    /// A manager is unknown, or has a layer already.
    pub fn all(
        &self,
        words: impl Fn(&Manager) -> Vec<String>,
        context: &Context,
    ) -> Result<Vec<Manager>, Failure> {
        let known = manager::known(context.places)?;
        let chosen = chosen(&known, self.requested, self.usual, context)?;
        if let Some(manager) = chosen.iter().find(|manager| !manager.layers.is_empty()) {
            return Err(Failure::Usage(format!(
                "-m {}: name the manager alone; `heaptoll {}` puts the layer in front of it",
                manager.name, self.command
            )));
        }
        let mut stacks = Vec::new();
        for manager in chosen {
            let layered: Result<Vec<Manager>, _> =
                words(&manager).iter().map(|word| manager::find(&known, word)).collect();
            stacks.push(manager);
            stacks.extend(layered?);
        }
        Ok(stacks)
    }
}

/// The requested managers, each once; without a request the usual ones that are here.
///
/// # Errors
/// A manager is unknown.
pub fn chosen(
    known: &[Manager],
    requested: &[String],
    usual: &[&str],
    context: &Context,
) -> Result<Vec<Manager>, Failure> {
    stand_ins::note(known, requested, context.messages);
    Ok(match requested {
        [] => usual.iter().filter_map(|name| manager::find(known, name).ok()).collect(),
        requested => without_repeats(manager::choose(known, requested.iter().map(String::as_str))?),
    })
}

/// A stack's manager, and the layer in front of it, if there is one. `None` for a stack with more layers, or another.
pub fn part(stack: &str, is: impl Fn(&LayerKind) -> bool) -> Option<(String, Option<Layer>)> {
    let (mut in_front, manager) = layers(stack).ok()?;
    let layer = in_front.pop();
    let is_only = in_front.is_empty() && layer.as_ref().is_none_or(|layer| is(layer.kind));
    is_only.then(|| (manager.into(), layer))
}
