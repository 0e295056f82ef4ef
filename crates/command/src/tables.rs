//! Tables of figures, for documents.

use heaptoll_report::document::{Column, Item, Table};

/// A table. The first column is text, the others are figures.
pub fn table(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let column = |(index, title): (usize, &&str)| Column {
        title: (*title).to_owned(),
        figures: index > 0,
        ..Column::default()
    };
    Table {
        caption: caption.to_owned(),
        columns: columns.iter().enumerate().map(column).collect(),
        rows,
        notes: Vec::new(),
    }
}

/// A table of call sites, whose names are in the first column; nothing when it has no rows.
pub fn site_table(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Option<Item> {
    let mut table = table(caption, columns, rows);
    if let Some(first) = table.columns.first_mut() {
        *first = Column::sites(&first.title);
    }
    (!table.rows.is_empty()).then_some(Item::Table(table))
}

/// The same as an item; nothing when it has no rows.
pub fn table_item(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Option<Item> {
    (!rows.is_empty()).then(|| Item::Table(table(caption, columns, rows)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_rows_is_none() {
        assert!(table_item("c", &["a", "b"], vec![]).is_none());
        let table = table("c", &["a", "b"], vec![vec!["x".into(), "1".into()]]);
        assert_eq!(table.columns.iter().map(|column| column.figures).collect::<Vec<_>>(), [false, true]);
    }
}
