//! What the sections of a [`Document`](crate::document::Document) hold, as HTML: each kind of item has a template.

use askama::Template;

use super::chart_registry::ChartRegistry;
use super::drawing::{self, ChartView};
use super::flame;
use super::mosaic;
use super::table;
use super::views::{class, encode, links, texts};
use crate::ReportError;
use crate::document::{Item, Part, Share};
use crate::format::printable;

/// Level of the deepest heading.
const DEEPEST: usize = 6;

#[derive(Template)]
#[template(path = "items/part.html")]
struct PartView {
    id: String,
    title: String,
    level: usize,
    text: Vec<String>,
    folded: bool,
}

/// What comes after the items of a part.
#[derive(Template)]
#[template(path = "items/part_end.html")]
struct PartEnd {
    see: Vec<(String, String)>,
    folded: bool,
}

#[derive(Template)]
#[template(path = "items/warnings.html")]
struct WarningsView {
    warnings: Vec<String>,
}

#[derive(Template)]
#[template(path = "items/tally.html")]
struct TallyView {
    shares: Vec<ShareView>,
}

struct ShareView {
    name: String,
    count: usize,
    class: &'static str,
}

#[derive(Template)]
#[template(path = "items/commands.html")]
struct CommandsView {
    commands: Vec<String>,
}

/// Adds each item to the page; headings of parts have this level.
///
/// # Errors
/// `Encode` when a template cannot be filled.
pub(super) fn write(
    items: &[Item],
    level: usize,
    registry: &mut ChartRegistry,
    out: &mut String,
) -> Result<(), ReportError> {
    let is_chart = |item: &Item| matches!(item, Item::Chart(_));
    for run in items.chunk_by(|one, next| is_chart(one) && is_chart(next)) {
        match run {
            [Item::Chart(_), ..] => write_charts(run, registry, out)?,
            others => others.iter().try_for_each(|item| write_item(item, level, registry, out))?,
        }
    }
    Ok(())
}

fn write_item(
    item: &Item,
    level: usize,
    registry: &mut ChartRegistry,
    out: &mut String,
) -> Result<(), ReportError> {
    let written = match item {
        Item::Table(table) => table::view(table, &registry.palette).render_into(out),
        Item::Chart(_) => return write_charts(std::slice::from_ref(item), registry, out),
        Item::Flame(flame) => return flame::write(flame, registry.flame(), out),
        Item::Mosaic(mosaic) => return mosaic::write(mosaic, registry.mosaic(), out),
        Item::Tally(shares) => tally_view(shares).render_into(out),
        Item::Commands(commands) => CommandsView { commands: texts(commands) }.render_into(out),
        Item::Warnings(warnings) => WarningsView { warnings: texts(warnings) }.render_into(out),
        Item::Part(part) => return write_part(part, level, registry, out),
    };
    written.map_err(encode)
}

/// Charts that follow each other; in twos where the page has a legend of their names. One without a point that can be
/// shown is left out.
fn write_charts(items: &[Item], registry: &mut ChartRegistry, out: &mut String) -> Result<(), ReportError> {
    let has_legend = !registry.palette.is_empty();
    let charts = items.iter().filter_map(|item| match item {
        Item::Chart(chart) => Some(chart),
        _ => None,
    });
    let views = charts.filter_map(|chart| drawing::add_chart(chart, registry).transpose());
    let views: Vec<ChartView> = views.collect::<Result<_, _>>()?;
    let (count, in_twos) = (views.len(), has_legend && views.len() > 1);
    *out += if in_twos { "<div class=\"charts\">\n" } else { "" };
    for (at, view) in views.into_iter().enumerate() {
        let class = match in_twos {
            true if at + 1 == count && at % 2 == 0 => "wide",
            true => "two",
            false => view.class,
        };
        ChartView { class, ..view }.render_into(out).map_err(encode)?;
    }
    *out += if in_twos { "</div>\n" } else { "" };
    Ok(())
}

fn write_part(
    part: &Part,
    level: usize,
    registry: &mut ChartRegistry,
    out: &mut String,
) -> Result<(), ReportError> {
    let start = PartView {
        id: part.id.clone(),
        title: printable(&part.title),
        level,
        text: texts(&part.text),
        folded: part.folded,
    };
    start.render_into(out).map_err(encode)?;
    write(&part.items, (level + 1).min(DEEPEST), registry, out)?;
    PartEnd { see: links(&part.see), folded: part.folded }.render_into(out).map_err(encode)
}

fn tally_view(shares: &[Share]) -> TallyView {
    let some = shares.iter().filter(|share| share.count > 0);
    let view = |share: &Share| ShareView {
        name: printable(&share.name),
        count: share.count,
        class: class(share.tone),
    };
    TallyView { shares: some.map(view).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::palette::Palette;
    use super::*;
    use crate::document::{Chart, Form, Series};

    fn html(items: &[Item], palette: Palette) -> String {
        let mut out = String::new();
        write(items, 3, &mut ChartRegistry::new(palette), &mut out).expect("HTML");
        out
    }

    #[test]
    fn a_folded_part_is_unfolded_on_demand_and_holds_its_items() {
        let inner = Part { title: "Inner".into(), ..Part::default() };
        let commands = Item::Commands(vec!["heaptoll run <x>".into()]);
        let part = Part {
            id: "one".into(),
            title: "Outer".into(),
            items: vec![Item::Part(inner), commands],
            folded: true,
            ..Part::default()
        };
        let html = html(&[Item::Part(part)], Palette::default());
        for text in [
            "<details class=\"unfold\" id=\"one\">",
            "<h4><bdi>Inner</bdi></h4>",
            "<pre>heaptoll run &#60;x&#62;</pre>",
        ] {
            assert!(html.contains(text), "{text} in {html}");
        }
    }

    #[test]
    fn charts_stand_in_twos_where_the_page_has_their_legend() {
        let series = ["glibc", "bump"].map(|name| Series {
            name: name.into(),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
            ..Series::default()
        });
        let chart = Chart {
            title: "Memory".into(),
            caption: String::new(),
            form: Form::Lines,
            x: Default::default(),
            y: Default::default(),
            series: series.into(),
        };
        let items = vec![Item::Chart(chart); 3];
        let with = html(&items, Palette::new(["glibc", "bump"].into_iter()));
        assert_eq!(with.matches("<figure class=\"two\">").count(), 2, "{with}");
        assert_eq!(with.matches("<figure class=\"wide\">").count(), 1, "{with}");
        assert!(!with.contains("class=\"legend\""), "{with}");
        let without = html(&items, Palette::default());
        assert_eq!(without.matches("<figure class=\"alone\">").count(), 3, "{without}");
        assert_eq!(without.matches("class=\"legend\"").count(), 3, "{without}");
    }
}
