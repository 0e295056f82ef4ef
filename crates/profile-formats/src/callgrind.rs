//! Callgrind's text: functions with what each allocated itself, by line, and calls with all that was allocated below.
//!
//! A recursive call is counted once a stack, so that no function has more than the whole.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};

use heaptoll_profiles::{Measure, Profile, Stack};

use crate::format::{Instant, four};
use crate::line::one_line;

/// Events of the file, in the order of [`four`].
const EVENTS: [(&str, &str); 4] = [
    ("AllocObjects", "objects allocated"),
    ("AllocBytes", "bytes allocated"),
    ("LiveObjects", "objects live"),
    ("LiveBytes", "bytes live"),
];

type Costs = [u64; 4];

/// What a function has, by line.
#[derive(Default)]
struct Costly {
    own: BTreeMap<u32, Costs>,
    /// By line and called function.
    calls: BTreeMap<(u32, usize), Costs>,
}

/// Functions, which are distinguished by object, file and name.
#[derive(Default)]
struct Functions<'a> {
    names: Vec<(&'a str, &'a str, String)>,
    /// By frame: its function.
    of_frame: Vec<usize>,
    costs: Vec<Costly>,
}

pub fn write(profile: &Profile, instant: Instant, out: &mut dyn Write) -> io::Result<()> {
    let measures = four(instant);
    let mut functions = Functions::of(profile);
    let columns = measures.map(|measure| profile.column(measure));
    for stack in profile.stacks() {
        functions.add(profile, &stack, columns.map(|column| column.map_or(0, |column| stack.values[column])));
    }
    head(profile, measures, out)?;
    let mut written = Names::default();
    for (at, costly) in functions.costs.iter().enumerate() {
        functions.write(at, costly, &mut written, out)?;
    }
    Ok(())
}

fn head(profile: &Profile, measures: [Measure; 4], out: &mut dyn Write) -> io::Result<()> {
    let subject = &profile.subject;
    writeln!(out, "# callgrind format\nversion: 1\ncreator: heaptoll\npid: {}", subject.pid)?;
    writeln!(out, "cmd: {}", one_line(&subject.command.join(" ")))?;
    writeln!(
        out,
        "desc: Live objects: {}",
        match measures[2] {
            Measure::PeakObjects => "the peak",
            _ => "the end",
        }
    )?;
    writeln!(out, "positions: line")?;
    for (name, title) in EVENTS {
        writeln!(out, "event: {name} : {title}")?;
    }
    writeln!(out, "events: {}", EVENTS.map(|(name, _)| name).join(" "))?;
    writeln!(out, "summary: {}", shown(&measures.map(|measure| profile.total(measure))))
}

fn shown(costs: &Costs) -> String {
    costs.map(|cost| cost.to_string()).join(" ")
}

fn sum(into: &mut Costs, costs: &Costs) {
    for (sum, cost) in into.iter_mut().zip(costs) {
        *sum = sum.saturating_add(*cost);
    }
}

impl<'a> Functions<'a> {
    fn of(profile: &'a Profile) -> Functions<'a> {
        let mut functions = Functions::default();
        let mut numbers: HashMap<(&str, &str, String), usize> = HashMap::new();
        for frame in profile.frames() {
            let name = (frame.object.as_str(), frame.file.as_str(), one_line(&frame.name()).into_owned());
            let next = numbers.len();
            let number = *numbers.entry(name.clone()).or_insert(next);
            if number == next {
                functions.names.push(name);
                functions.costs.push(Costly::default());
            }
            functions.of_frame.push(number);
        }
        functions
    }

    fn add(&mut self, profile: &Profile, stack: &Stack<'_>, costs: Costs) {
        let mut seen = HashSet::new();
        let mut called = None;
        for call in profile.path(stack.call) {
            let frame = profile.calls()[call as usize].frame;
            let (function, line) = (self.of_frame[frame as usize], profile.frames()[frame as usize].line);
            match called {
                None => sum(self.costs[function].own.entry(line).or_default(), &costs),
                Some(called) if seen.insert((function, line, called)) => {
                    sum(self.costs[function].calls.entry((line, called)).or_default(), &costs);
                }
                Some(_) => {}
            }
            called = Some(function);
        }
    }

    fn write(&self, at: usize, costly: &Costly, names: &mut Names, out: &mut dyn Write) -> io::Result<()> {
        let (object, file, name) = &self.names[at];
        writeln!(out, "\nob={}", names.objects.shown(object))?;
        writeln!(out, "fl={}", names.files.shown(file))?;
        writeln!(out, "fn={}", names.functions.shown(name))?;
        for (line, costs) in &costly.own {
            writeln!(out, "{line} {}", shown(costs))?;
        }
        for ((line, called), costs) in &costly.calls {
            let (called_object, called_file, name) = &self.names[*called];
            // As callgrind writes them: what is not named is that of the caller.
            if called_object != object {
                writeln!(out, "cob={}", names.objects.shown(called_object))?;
            }
            if called_file != file {
                writeln!(out, "cfi={}", names.files.shown(called_file))?;
            }
            writeln!(out, "cfn={}", names.functions.shown(name))?;
            let first_line = self.costs[*called].first_line();
            writeln!(out, "calls={} {first_line}\n{line} {}", costs[0], shown(costs))?;
        }
        Ok(())
    }
}

impl Costly {
    fn first_line(&self) -> u32 {
        let calls = self.calls.keys().map(|(line, _)| *line);
        self.own.keys().copied().chain(calls).min().unwrap_or(0)
    }
}

/// Names are written once, with a number for the next time.
#[derive(Default)]
struct Names {
    objects: Numbers,
    files: Numbers,
    functions: Numbers,
}

#[derive(Default)]
struct Numbers(HashMap<String, usize>);

impl Numbers {
    fn shown(&mut self, name: &str) -> String {
        let name = if name.is_empty() { "???" } else { name };
        let next = self.0.len() + 1;
        match self.0.get(name) {
            Some(number) => format!("({number})"),
            None => {
                self.0.insert(name.to_owned(), next);
                format!("({next}) {}", one_line(name))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use heaptoll_callgrind::profile::calls;
    use heaptoll_profiles::{Builder, Frame, Measure};

    use crate::Format;
    use crate::testing::{CHOICE, hostile, small, text};

    #[test]
    fn functions_have_their_own_costs_and_calls_all_below() {
        let file = text(Format::Callgrind, &small(), CHOICE);
        assert!(file.starts_with("# callgrind format\nversion: 1\n"), "{file}");
        assert!(
            file.contains("\nevents: AllocObjects AllocBytes LiveObjects LiveBytes\nsummary: 4 144 1 64\n")
        );
        assert!(file.contains("fl=(1) /src/x.c\nfn=(1) xmalloc\n7 2 96 1 64\n"), "{file}");
        let found: Vec<_> = calls(&file)
            .iter()
            .map(|call| (call.from, call.function, call.count, call.instructions))
            .collect();
        // The reader takes the first cost for instructions: here it is objects.
        for call in [
            ("parse", "xmalloc", 2, 2),
            ("main", "parse", 2, 2),
            ("main", "grow", 1, 1),
            ("grow", "xmalloc", 1, 1),
        ] {
            assert!(found.contains(&call), "{call:?} in {found:?}");
        }
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn a_recursive_call_is_counted_once_a_stack() {
        let mut builder = Builder::new(vec![Measure::AllocatedObjects, Measure::AllocatedBytes]);
        let f = builder.frame(Frame { function: "f".into(), line: 1, ..Frame::default() });
        let main = builder.frame(Frame { function: "main".into(), line: 9, ..Frame::default() });
        builder.stack(&[f, f, f, main], &[1, 10]);
        builder.stack(&[f, main], &[1, 5]);
        let file = text(Format::Callgrind, &builder.finish(), CHOICE);
        let found: Vec<_> = calls(&file).iter().map(|call| (call.from, call.function, call.count)).collect();
        assert_eq!(found, [("f", "f", 1), ("main", "f", 2)]);
    }

    #[test]
    fn every_name_stays_on_its_line() {
        let file = text(Format::Callgrind, &hostile(), CHOICE);
        assert!(
            file.contains("fn=(4) new line\n") && file.contains("ob=(1) /opt/new folder/bin\n"),
            "{file}"
        );
        assert!(file.contains("cmd: a b c;d\n"));
    }
}
