//! `heaptoll trace stat` of a trace with pointers.

use std::io::Read;
use std::path::Path;

use heaptoll_report::document::{Axis, Chart, Column, Document, Form, Section, Series, Table};
use heaptoll_report::format::{NONE, printable, shell_command};
use heaptoll_trace::Memory;
use heaptoll_trace::graph::{Batch, Reader};
use heaptoll_trace_analysis::graph::{EACH_OBJECT, GraphFigures, GraphHeap, RootPoint};
use heaptoll_trace_analysis::stacks::CallSites;
use heaptoll_units::{figure, mib, number, part, percent, whole_bytes};

use super::document::lines;
use super::request::StatRequest;
use heaptoll_command::failure::Failure;
use heaptoll_command::trace_source;

pub use heaptoll_trace_analysis::graph::GraphFigures as Figures;

/// Root points in the table.
const SHOWN: usize = 12;
/// Call sites in the table.
const SITES_SHOWN: usize = 12;

/// Sums up a trace with pointers. Damage is a warning among the figures.
///
/// # Errors
/// It cannot be read, or needs more memory.
pub fn measure(mut reader: Reader<impl Read>, request: StatRequest) -> Result<GraphFigures, Failure> {
    reader.limit(Memory { limit_bytes: request.memory_limit_bytes, each_object_bytes: EACH_OBJECT });
    let (mut heap, mut batch, mut events) = (GraphHeap::new(), Batch::default(), 0);
    while reader.read(&mut batch).map_err(trace_source::refused)? {
        heap.events(&batch.events, batch.next_event);
        events += batch.events.len() as u64;
    }
    let plain_bytes = reader.plain_bytes();
    let tables = reader.into_tables();
    let warnings = tables.incomplete();
    let is_damaged = !(tables.warnings.is_empty() && tables.gaps.is_empty());
    let sites = tables.sites.unwrap_or_default();
    let mut call_sites = CallSites::new(&sites, request.frames);
    Ok(GraphFigures {
        command: tables.header.command,
        manager: tables.header.manager,
        references: tables.header.graph.is_some_and(|graph| graph.references),
        ended: tables.ending.map(|ending| ending.how),
        is_damaged,
        events,
        plain_bytes,
        warnings,
        ..heap.figures(&mut call_sites)
    })
}

/// The document that shows it.
pub fn document(figures: &GraphFigures, trace: &Path) -> Document {
    let program = figures.command.first().map(String::as_str).unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or(program);
    Document {
        title: format!("Pointers between objects in {}", printable(name)),
        subtitle: subtitle(figures),
        warnings: figures.warnings.clone(),
        sections: [Some(overview(figures)), points(figures), Some(bounds(figures)), sites(figures)]
            .into_iter()
            .flatten()
            .collect(),
        facts: vec![
            ("trace".into(), trace.display().to_string()),
            ("ended".into(), figures.ended.clone().unwrap_or_else(|| "unknown: the trace is cut off".into())),
        ],
        command: shell_command(&["heaptoll", "trace", "stat", &trace.display().to_string()]),
        ..Document::default()
    }
}

fn subtitle(figures: &GraphFigures) -> String {
    let ended = figures.ended.as_ref().map_or_else(|| "the trace is cut off".into(), |how| printable(how));
    format!("under {}, {} events ({ended})", printable(&figures.manager), number(figures.events))
}

fn overview(figures: &GraphFigures) -> Section {
    let roots = &figures.roots;
    let all = roots.register + roots.stack + roots.in_static + roots.mapping;
    let count = figures.points.len() as u64;
    let each = |of: u64| if count == 0 { NONE.to_owned() } else { figure(of as f64 / count as f64) };
    let row = |name: &'static str, value: String| (name, value, String::new());
    let mut rows = vec![
        (
            "objects",
            number(figures.objects),
            format!("{}; each realloc makes another", whole_bytes(figures.bytes)),
        ),
        row("most bytes alive", whole_bytes(figures.max_live_bytes)),
        row("edges stored", number(figures.edges_stored)),
        row("edges overwritten by a non-pointer", number(figures.edges_cleared)),
        (
            "most edges at a time",
            number(figures.max_edges),
            format!(
                "their words are {} of the live bytes then",
                part(8 * figures.max_edges, figures.bytes_at_max_edges)
            ),
        ),
        ("root points", number(count), format!("{} roots each", each(all))),
        row("  in registers", each(roots.register)),
        row("  on stacks", each(roots.stack)),
        row("  in static data", each(roots.in_static)),
        row("  in other mappings", each(roots.mapping)),
        (
            "objects reachable only by hidden pointers",
            number(figures.hidden.objects),
            format!(
                "{}, {} times at a root point",
                whole_bytes(figures.hidden.bytes),
                number(figures.hidden.at_points)
            ),
        ),
        row(
            "bytes an event, before compression",
            figure(figures.plain_bytes as f64 / figures.events.max(1) as f64),
        ),
    ];
    if figures.references {
        let stores = format!("{} of them stores", part(figures.stores, figures.accesses));
        rows.push(("loads and stores", number(figures.accesses), stores));
        let within = format!(
            "{} of the loads and stores happen in them",
            part(figures.request_accesses, figures.accesses)
        );
        let within = if figures.requests > 0 { within } else { String::new() };
        rows.push(("requests", number(figures.requests), within));
    }
    Section::default().with(lines(rows).note(
        "Hidden pointers: objects that were unreachable at a root point, but that the program touched later.",
    ))
}

/// What is live, reachable and still used at root points.
fn points(figures: &GraphFigures) -> Option<Section> {
    let all = &figures.points;
    if all.is_empty() {
        return None;
    }
    let step = all.len().div_ceil(SHOWN);
    let rows = all.iter().enumerate().filter(|(at, _)| at % step == step - 1 || at + 1 == all.len());
    let caption =
        if step > 1 { format!("one in {step} of {} root points", all.len()) } else { String::new() };
    let table = Table::of(rows.map(|(_, point)| point))
        .caption(caption)
        .text("bytes allocated", |point| whole_bytes(point.clock_bytes))
        .figure("not freed", |point| whole_bytes(point.live_bytes))
        .figure("reachable", |point| whole_bytes(point.reachable_bytes))
        .figure("of that", |point| part(point.reachable_bytes, point.live_bytes))
        .figure("used later", |point| whole_bytes(point.used_bytes))
        .figure("of that", |point| part(point.used_bytes, point.live_bytes));
    let series = |name: &str, bytes: fn(&RootPoint) -> u64| Series {
        name: name.to_owned(),
        points: all.iter().map(|point| (mib(point.clock_bytes), mib(bytes(point)))).collect(),
        ..Series::default()
    };
    let chart = Chart {
        title: "Live, reachable and used bytes".to_owned(),
        caption: String::new(),
        form: Form::Steps,
        x: Axis::even("bytes allocated, MiB"),
        y: Axis::even("MiB"),
        series: vec![
            series("not freed", |point| point.live_bytes),
            series("reachable", |point| point.reachable_bytes),
            series("used later", |point| point.used_bytes),
        ],
    };
    Some(Section::new("Root points").with(table).with(chart))
}

/// Who allocates, and whose objects are held by hidden pointers, when the trace has call stacks.
fn sites(figures: &GraphFigures) -> Option<Section> {
    let table = Table::of(figures.call_sites.iter().take(SITES_SHOWN))
        .caption("by bytes allocated")
        .sites("site", |site| site.name.clone())
        .figure("objects", |site| number(site.objects))
        .figure("bytes", |site| whole_bytes(site.bytes))
        .figure("of all", |site| part(site.bytes, figures.bytes))
        .figure("hidden", |site| number(site.hidden_objects))
        .figure("their bytes", |site| whole_bytes(site.hidden_bytes));
    Some(Section::new("Call sites").with(table.if_any()?))
}

/// How far the bounds of bounds are apart.
fn bounds(figures: &GraphFigures) -> Section {
    let bounds = &figures.bounds;
    let share = |area: u128| {
        if bounds.lifetime == 0 { NONE.to_owned() } else { percent(area as f64 / bounds.lifetime as f64) }
    };
    let row = |name: &str, objects: u64, bytes: String, area: String| {
        [name.to_owned(), number(objects), part(objects, bounds.objects), bytes, area]
    };
    let rows = [
        row("freed", bounds.objects, whole_bytes(bounds.bytes), share(bounds.lifetime)),
        row("after the last touch", bounds.objects, String::new(), share(bounds.unused)),
        row(
            "unreachable before the free",
            bounds.unreachable_before_free,
            whole_bytes(bounds.unreachable_before_free_bytes),
            share(bounds.unreachable),
        ),
        row(
            "reachable until the free, or after it",
            bounds.reachable_at_last_point,
            whole_bytes(bounds.reachable_at_last_point_bytes),
            String::new(),
        ),
        row("between two root points", bounds.between_points, String::new(), String::new()),
    ];
    let columns = Column::headings(["objects", "objects", "of all", "bytes", "of their space-time"]);
    let text = "An object dies between its last touch and its free. It became unreachable before the free if no \
    pointer led to it at an earlier root point. Otherwise it stayed reachable until the free or longer.";
    Section::new("Bounds of lifetimes").state(text).with(Table::listed(columns, rows))
}
