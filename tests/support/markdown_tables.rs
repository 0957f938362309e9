//! Reads Markdown tables, to compare documents with the code.

/// The rows of all tables below `heading`, up to the next heading, without the header rows.
pub(crate) fn rows_below(page: &str, heading: &str) -> Vec<Vec<String>> {
    let lines: Vec<&str> = page.lines().skip_while(|line| line.trim() != heading).skip(1).collect();
    assert!(!lines.is_empty(), "there is no heading {heading:?}");
    let section = lines.into_iter().take_while(|line| !line.starts_with('#'));
    let rows = rows(&section.collect::<Vec<_>>());
    assert!(!rows.is_empty(), "there is no table below {heading:?}");
    rows
}

/// The rows of all tables among the lines.
fn rows(lines: &[&str]) -> Vec<Vec<String>> {
    let is_row = |line: &&str| line.starts_with('|');
    let is_rule = |line: &str| line.starts_with("| ---");
    let pairs = lines.iter().zip(lines.iter().skip(1).chain([&""]));
    pairs
        .filter(|(line, next)| is_row(line) && !is_rule(line) && !is_rule(next))
        .map(|(line, _)| cells(line))
        .collect()
}

fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    inner.split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The code spans of a cell, in order.
pub(crate) fn code(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}
