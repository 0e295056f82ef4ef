//! The commands that the README, the documents and the helps show: for the test that parses all of them and the one
//! that runs those of the README and of the page of all commands.

/// A command in a text.
#[derive(Debug, Clone)]
pub struct Shown {
    /// File, or the command whose help has it.
    pub place: String,
    /// Its words after `heaptoll`.
    pub words: Vec<String>,
}

/// Commands of a text in Markdown: whole lines in fences, and inline code.
pub fn of_markdown(place: &str, text: &str) -> Vec<Shown> {
    let text = text.replace("\\\n", " ");
    let (mut fenced, mut found, mut paragraph) = (false, Vec::new(), String::new());
    for line in text.lines().chain([""]) {
        let is_fence = line.trim_start().starts_with("```");
        if fenced && !is_fence {
            found.extend(command(place, line));
        } else if is_fence || line.trim().is_empty() {
            found.extend(inline(place, &std::mem::take(&mut paragraph)));
        } else {
            paragraph.push_str(line);
            paragraph.push('\n');
        }
        fenced ^= is_fence;
    }
    found
}

/// Commands in inline code, which may go on in the next line.
fn inline(place: &str, paragraph: &str) -> Vec<Shown> {
    let codes = paragraph.split('`').skip(1).step_by(2);
    codes.filter_map(|code| command(place, &code.split_whitespace().collect::<Vec<_>>().join(" "))).collect()
}

/// Commands of a help's examples.
#[allow(dead_code, reason = "the running test leaves helps out")]
pub fn of_help(place: &str, text: &str) -> Vec<Shown> {
    text.replace("\\\n", " ").lines().filter_map(|line| command(place, line)).collect()
}

/// A line that is a command, without the remark after it.
fn command(place: &str, line: &str) -> Option<Shown> {
    let line = line.trim();
    let rest = line.strip_prefix("target/release/").unwrap_or(line).strip_prefix("heaptoll ")?;
    // Cuts a pipe to another program, and a remark in brackets; in a pattern a quote comes before these.
    let rest = rest.split(" | ").next()?.split(" (").next()?;
    // Continued lines are indented; a remark comes after several spaces, too, and is no option.
    let mut kept = String::new();
    for part in rest.split("   ").map(str::trim).filter(|part| !part.is_empty()) {
        if !kept.is_empty() && !part.starts_with("--") {
            break;
        }
        kept.push_str(part);
        kept.push(' ');
    }
    let kept = kept.split("  ").next().unwrap_or_default().split(" # ").next().unwrap_or_default().to_owned();
    let mut words: Vec<String> = Vec::new();
    for word in shlex::split(&kept)? {
        // Of an option it is the value, otherwise more of the same.
        let value = words.last().is_some_and(|last| last.starts_with('-') && last != "--");
        match word.as_str() {
            "..." if value => words.push("NAME".into()),
            "..." => {}
            _ => words.push(word.replace("...", "")),
        }
    }
    // `heaptoll 0.1.0, ...` is the head of an output.
    let is_command = words.first().is_some_and(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    is_command.then(|| Shown { place: place.to_owned(), words })
}
