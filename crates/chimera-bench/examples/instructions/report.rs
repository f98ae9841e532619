//! The table: goals that were missed come first.

use crate::estimate::Row;

/// Prints a table in Markdown.
pub(crate) fn print(rows: &[Row]) {
    println!("| operation | records | instructions | goal | of the goal |");
    println!("| --- | --- | --- | --- | --- |");
    let (mut missed, mut met): (Vec<_>, Vec<_>) = rows.iter().partition(|row| over(row) > 1.0);
    missed.sort_by(|a, b| over(b).total_cmp(&over(a)));
    met.sort_by(|a, b| over(b).total_cmp(&over(a)));
    for row in missed.into_iter().chain(met) {
        let Row { layout, operation, instructions, .. } = row;
        let goal = row.goal.unwrap_or_default();
        let verdict = if over(row) > 1.0 { "missed" } else { "met" };
        println!(
            "| {operation} | {layout} | {instructions:.0} | {goal:.0} | {:.2}, {verdict} |",
            over(row)
        );
    }
}

/// How many times the goal.
fn over(row: &Row) -> f64 {
    row.goal.map_or(0.0, |goal| row.instructions / goal)
}
