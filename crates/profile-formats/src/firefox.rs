//! The Firefox Profiler's JSON. Allocations are its "native allocations": each has a time, an address and a size, and a
//! free has the same address. So its retained view, of whatever stretch of time its user selects, works.
//!
//! A trace may have a thousand million objects. So an allocation here stands for all objects of one stack that were
//! allocated within one interval and freed within another ([`Lives`](heaptoll_profiles::Lives)); its address is a number
//! of its own. Bytes are exact, times are to the interval.

use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use fxprof_processed_profile::{
    CategoryHandle, Frame, FrameFlags, FrameInfo, Profile as Firefox, ReferenceTimestamp, SamplingInterval,
    StackHandle, ThreadHandle, Timestamp,
};
use heaptoll_profiles::{Life, Profile, Tracks, Unit};

/// Synthetic addresses are multiples of this.
const ADDRESS_STEP: u64 = 16;

pub fn write(profile: &Profile, tracks: &Tracks, out: &mut dyn Write) -> io::Result<()> {
    let subject = &profile.subject;
    let interval_ns = profile.lives.as_ref().map_or(1_000_000, |lives| lives.interval_ns);
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(subject.started_unix_s);
    let mut firefox = Firefox::new(
        subject.program(),
        ReferenceTimestamp::from(started),
        SamplingInterval::from_nanos(interval_ns),
    );
    firefox.set_symbolicated(true);
    let start = at(subject.from_ns);
    let pid = u32::try_from(subject.pid).unwrap_or(0);
    let process = firefox.add_process(subject.program(), pid, start);
    firefox.set_process_end_time(process, at(subject.to_ns));
    let thread = firefox.add_thread(process, pid, start, true);
    firefox.set_thread_end_time(thread, at(subject.to_ns));
    let stacks = stacks(profile, thread, &mut firefox);
    if let Some(lives) = &profile.lives {
        let of_stack: Vec<Option<StackHandle>> =
            profile.stacks().map(|stack| stack.call.map(|call| stacks[call as usize])).collect();
        for event in events(&lives.lives, lives.interval_ns, subject.from_ns, subject.to_ns) {
            let stack = of_stack.get(event.stack as usize).copied().flatten();
            firefox.add_allocation_sample(thread, at(event.time_ns), stack, event.address, event.bytes);
        }
    }
    let bytes = tracks.counters.iter().filter(|counter| counter.unit == Unit::Bytes);
    // A counter shows the sum of its changes.
    for counter in bytes.take(1) {
        let handle = firefox.add_counter(process, "malloc", "Memory", &counter.name);
        let mut before = 0;
        for &(time_ns, value) in &counter.points {
            firefox.add_counter_sample(handle, at(time_ns), value as f64 - before as f64, 0);
            before = value;
        }
    }
    serde_json::to_writer(&mut *out, &firefox)?;
    out.write_all(b"\n")
}

fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

/// A stack of the file for each call.
fn stacks(profile: &Profile, thread: ThreadHandle, firefox: &mut Firefox) -> Vec<StackHandle> {
    let frames: Vec<_> = profile
        .frames()
        .iter()
        .map(|frame| {
            let label = firefox.intern_string(&frame.name());
            let frame = Frame::Label(label);
            let flags = FrameFlags::empty();
            firefox
                .intern_frame(thread, FrameInfo { frame, category_pair: CategoryHandle::OTHER.into(), flags })
        })
        .collect();
    let mut stacks: Vec<StackHandle> = Vec::with_capacity(profile.calls().len());
    for call in profile.calls() {
        let caller = call.caller.map(|caller| stacks[caller as usize]);
        stacks.push(firefox.intern_stack(thread, caller, frames[call.frame as usize]));
    }
    stacks
}

/// An allocation, or a free: negative bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event {
    time_ns: u64,
    stack: u32,
    address: u64,
    bytes: i64,
}

/// Allocations and frees in order of time, within the given bounds. What is freed within the interval of its allocation
/// is freed at its end, so that it has been there.
fn events(lives: &[Life], interval_ns: u64, from_ns: u64, to_ns: u64) -> Vec<Event> {
    let mut events = Vec::with_capacity(2 * lives.len());
    let within = |ns: u64| ns.clamp(from_ns, to_ns.max(from_ns));
    for (number, life) in (1_u64..).zip(lives) {
        let address = number * ADDRESS_STEP;
        let bytes = i64::try_from(life.bytes).unwrap_or(i64::MAX);
        let born_ns = u64::from(life.born).saturating_mul(interval_ns);
        events.push(Event { time_ns: within(born_ns), stack: life.stack, address, bytes });
        if let Some(died) = life.died {
            let end = u64::from(died) + u64::from(died == life.born);
            let time_ns = within(end.saturating_mul(interval_ns));
            events.push(Event { time_ns, stack: life.stack, address, bytes: -bytes });
        }
    }
    // An allocation before its own free: the sort keeps the order of equals.
    events.sort_by_key(|event| event.time_ns);
    events
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use heaptoll_profiles::Measure;
    use serde_json::Value;

    use crate::Format;
    use crate::testing::{CHOICE, hostile, small, text};

    fn read(text: &str) -> Value {
        serde_json::from_str(text).expect("JSON")
    }

    fn numbers(column: &Value) -> Vec<i64> {
        column.as_array().expect("a column").iter().map(|value| value.as_i64().unwrap_or(-1)).collect()
    }

    #[test]
    fn what_is_allocated_and_not_freed_is_what_lives_at_the_end() {
        let file = read(&text(Format::Firefox, &small(), CHOICE));
        assert!(file["meta"]["version"].is_u64() && file["meta"]["preprocessedProfileVersion"].is_u64());
        assert_eq!(file["meta"]["product"], "prog");
        let thread = &file["threads"][0];
        let allocations = &thread["nativeAllocations"];
        let (weights, addresses) = (numbers(&allocations["weight"]), numbers(&allocations["memoryAddress"]));
        assert_eq!(allocations["weightType"], "bytes");
        assert_eq!(allocations["length"], weights.len());
        let all: i64 = weights.iter().filter(|bytes| **bytes > 0).sum();
        assert_eq!(all as u64, small().total(Measure::AllocatedBytes));
        let mut live: HashMap<i64, i64> = HashMap::new();
        for (address, bytes) in addresses.into_iter().zip(weights) {
            let left = live.entry(address).or_default();
            *left += bytes;
            assert!(*left >= 0, "a free comes after its allocation");
        }
        assert_eq!(live.values().sum::<i64>() as u64, small().total(Measure::EndBytes));
        let times: Vec<f64> =
            allocations["time"].as_array().expect("times").iter().filter_map(Value::as_f64).collect();
        assert!(times.is_sorted() && times.iter().all(|ms| (0.0..=3.0).contains(ms)), "{times:?}");
        assert_eq!(file["counters"][0]["category"], "Memory");
    }

    #[test]
    fn stacks_lead_from_the_outermost_function_to_the_innermost() {
        let file = read(&text(Format::Firefox, &small(), CHOICE));
        let thread = &file["threads"][0];
        let name = |frame: i64| {
            let function = numbers(&thread["frameTable"]["func"])[frame as usize];
            let text = numbers(&thread["funcTable"]["name"])[function as usize];
            thread["stringArray"][text as usize].as_str().expect("text").to_owned()
        };
        let (prefixes, frames) =
            (numbers(&thread["stackTable"]["prefix"]), numbers(&thread["stackTable"]["frame"]));
        let mut stack = numbers(&thread["nativeAllocations"]["stack"])[0];
        let mut path = Vec::new();
        while stack >= 0 {
            path.push(name(frames[stack as usize]));
            stack = prefixes[stack as usize];
        }
        assert_eq!(path, ["xmalloc", "parse", "main"]);
    }

    #[test]
    fn hostile_names_stay_text() {
        let file = read(&text(Format::Firefox, &hostile(), CHOICE));
        let texts = file["threads"][0]["stringArray"].as_array().expect("texts");
        for name in ["a;b", "new\nline", "<script>alert(1)</script>"] {
            assert!(texts.iter().any(|text| text == name), "{name}");
        }
    }
}
