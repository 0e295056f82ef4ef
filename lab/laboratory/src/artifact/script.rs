//! The script that measures an artifact's experiment again: plain `sh`, so that who gets the folder can read what it does.

use heaptoll_experiment::experiment::Experiment;
use heaptoll_report::format::shell_command;

use super::description::PLAN;

/// What comes before the experiment's own commands.
const HEAD: &str = r#"#!/bin/sh
# Measures the experiment of this folder again and compares the verdicts.
#   ./replay [FILE]     FILE: the new experiment's, which must not exist; without it, replayed.db
# HEAPTOLL names another heaptoll than the one that is found. Exit status: 0 no verdict is contradicted; 1 one is, or one is
# missing; 2 the artifact is damaged, or it cannot be measured here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
heaptoll=${HEAPTOLL:-heaptoll}
out=${1:-replayed.db}
case $out in /*) ;; *) out=$PWD/$out ;; esac
# 1: something is missing here or differs, and was printed. 2: the artifact is damaged.
status=0
"$heaptoll" lab artifact --check "$here" || status=$?
[ "$status" -le 1 ] || exit "$status"
# 1: a manager failed, which is a row.
measured() { status=0; "$@" || status=$?; [ "$status" -le 1 ] || exit "$status"; }
"#;
/// What comes after them.
const TAIL: &str = "exec \"$heaptoll\" lab artifact --verdicts \"$here\" \"$out\"\n";

/// The script; `None` where nothing is known that would measure it again.
pub fn replay(experiment: &Experiment) -> Option<String> {
    let own = if experiment.settings.shards.is_empty() { of_run(experiment)? } else { of_plan(experiment) };
    Some(format!("{HEAD}{own}{TAIL}"))
}

/// In the folder that it was begun in, where there is one: names in its command are looked up there.
fn of_run(experiment: &Experiment) -> Option<String> {
    let words = &experiment.settings.repeat_command;
    if words.get(1).is_none_or(|command| command != "run") {
        return None;
    }
    let folder = &experiment.settings.directory;
    let enter = match folder.is_empty() {
        true => String::new(),
        false => format!("cd {}\n", shell_command(&["--".into(), folder.clone()])),
    };
    Some(format!("{enter}measured \"$heaptoll\" run --db \"$out\" {}\n", shell_command(&words[2..])))
}

fn of_plan(experiment: &Experiment) -> String {
    let numbers: Vec<String> =
        experiment.settings.shards.iter().map(|shard| shard.number.to_string()).collect();
    format!(
        "# Shards that are there are not measured again: this is how it is resumed.\nfor shard in {}; do\n    \
         measured \"$heaptoll\" lab shards work \"$here/{PLAN}\" --shard \"$shard\" -o \"$out.shards\"\ndone\n\
         measured \"$heaptoll\" lab shards merge \"$out\" \"$out.shards\"\n",
        numbers.join(" ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptoll_experiment::shards::Shard;
    use heaptoll_experiment::testing::programs::experiment;

    #[test]
    fn a_run_is_repeated_where_it_was_begun_with_its_words() {
        let mut made = experiment(&["prog"], &["glibc".into()], 3);
        assert_eq!(replay(&made), None, "nothing is known of it");
        made.settings.directory = "/a b".into();
        let words = ["heaptoll", "run", "--seed", "7", "--", "./it's", "$HOME"];
        made.settings.repeat_command = words.map(str::to_owned).to_vec();
        let script = replay(&made).expect("it can be repeated");
        assert!(script.contains("cd -- '/a b'\n"), "{script}");
        assert!(script.contains(r#"run --db "$out" --seed 7 -- "#) && !script.contains(" $HOME"), "{script}");
        made.settings.repeat_command[1] = "study".into();
        assert_eq!(replay(&made), None);
    }

    #[test]
    fn shards_are_measured_by_their_plan() {
        let mut made = experiment(&["prog"], &["glibc".into()], 3);
        made.settings.shards = [4, 7].map(|number| Shard { number, ..Shard::default() }).to_vec();
        let script = replay(&made).expect("it can be repeated");
        assert!(script.contains("for shard in 4 7; do\n") && script.contains("merge \"$out\""), "{script}");
    }
}
