//! The tables of a pprof profile: texts, functions, locations and mappings, each entry once.

use std::collections::HashMap;

use heaptoll_profiles::{Frame, Profile};

use super::schema::{self, Function, Line, Location, Mapping};

/// Mappings begin at multiples of this: addresses of a trace count from the beginning of their file, and each file needs
/// a range of its own.
const MAPPING_STEP: u64 = 1 << 32;

pub struct Tables<'a> {
    profile: &'a Profile,
    texts: HashMap<String, i64>,
    functions: HashMap<(i64, i64), u64>,
    /// By the frames of a location, innermost first.
    locations: HashMap<Vec<u32>, u64>,
    mappings: HashMap<&'a str, u64>,
    tables: schema::Profile,
}

impl<'a> Tables<'a> {
    pub fn new(profile: &'a Profile) -> Tables<'a> {
        let mut tables = Tables {
            profile,
            texts: HashMap::new(),
            functions: HashMap::new(),
            locations: HashMap::new(),
            mappings: HashMap::new(),
            tables: schema::Profile::default(),
        };
        tables.text("");
        // Readers take the first mapping for the program.
        if !profile.subject.exe.is_empty() {
            tables.mapping(&profile.subject.exe);
        }
        tables
    }

    /// The index of a text.
    pub fn text(&mut self, text: &str) -> i64 {
        if let Some(&index) = self.texts.get(text) {
            return index;
        }
        let index = self.tables.string_table.len() as i64;
        self.tables.string_table.push(text.to_owned());
        self.texts.insert(text.to_owned(), index);
        index
    }

    /// The locations of a stack, innermost first: inlined functions and the one they are inlined into are one.
    pub fn locations(&mut self, call: Option<u32>) -> Vec<u64> {
        let profile = self.profile;
        let mut locations = Vec::new();
        let mut group = Vec::new();
        for call in profile.path(call) {
            let frame = profile.calls()[call as usize].frame;
            group.push(frame);
            if !profile.frames()[frame as usize].inlined {
                locations.push(self.location(&group));
                group.clear();
            }
        }
        if !group.is_empty() {
            locations.push(self.location(&group));
        }
        locations
    }

    fn location(&mut self, group: &[u32]) -> u64 {
        if let Some(&id) = self.locations.get(group) {
            return id;
        }
        let profile = self.profile;
        let frames = group.iter().map(|&frame| &profile.frames()[frame as usize]);
        let line: Vec<Line> = frames
            .map(|frame| Line { function_id: self.function(frame), line: i64::from(frame.line) })
            .collect();
        let (mapping_id, address) =
            group.last().map_or((0, 0), |&frame| self.place(&profile.frames()[frame as usize]));
        let id = self.tables.location.len() as u64 + 1;
        self.tables.location.push(Location { id, mapping_id, address, line });
        self.locations.insert(group.to_vec(), id);
        id
    }

    /// The mapping of a frame and its address in memory, as if files were mapped one after the other.
    fn place(&mut self, frame: &'a Frame) -> (u64, u64) {
        if frame.object.is_empty() {
            return (0, frame.call_address());
        }
        let id = self.mapping(&frame.object);
        let mapping = &mut self.tables.mapping[id as usize - 1];
        let inside = frame.call_address().min(MAPPING_STEP - 1);
        mapping.memory_limit = mapping.memory_limit.max(mapping.memory_start + inside + 1);
        mapping.has_inline_frames |= frame.line > 0;
        mapping.has_filenames |= !frame.file.is_empty();
        mapping.has_line_numbers |= frame.line > 0;
        (id, mapping.memory_start + inside)
    }

    fn mapping(&mut self, object: &'a str) -> u64 {
        if let Some(&id) = self.mappings.get(object) {
            return id;
        }
        let id = self.tables.mapping.len() as u64 + 1;
        let memory_start = id * MAPPING_STEP;
        let filename = self.text(object);
        // Names are resolved when a trace is recorded: a reader need not look for the file.
        self.tables.mapping.push(Mapping {
            id,
            memory_start,
            memory_limit: memory_start + 1,
            filename,
            has_functions: true,
            ..Mapping::default()
        });
        self.mappings.insert(object, id);
        id
    }

    fn function(&mut self, frame: &Frame) -> u64 {
        let name = self.text(&frame.name());
        let filename = self.text(&frame.file);
        let id = self.tables.function.len() as u64 + 1;
        let known = *self.functions.entry((name, filename)).or_insert(id);
        if known == id {
            self.tables.function.push(Function { id, name, system_name: name, filename });
        }
        known
    }

    /// All tables.
    pub fn finish(self) -> schema::Profile {
        self.tables
    }
}
