//! The study on one page that needs nothing else.

use std::fmt::Write;

use chimera_primitives::operation::Experiment;

use super::profile::profile;
use super::svg::{escape, figure};
use super::table::{COLUMNS, cells, entries, summary};
use crate::results::study::Study;

const STYLE: &str = "
:root{color-scheme:light dark;--ground:#fff;--text:#1f2328;--soft:#59636e;--line:#d1d9e0;--raised:#f6f8fa;--yes:#1a7f37;--no:#bc4c00}
@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--text:#e6edf3;--soft:#9198a1;--line:#3d444d;--raised:#151b23;--yes:#3fb950;--no:#f0883e}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:1200px;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .4rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
p{max-width:75ch}p.soft,figcaption{color:var(--soft)}
nav{display:flex;flex-wrap:wrap;gap:.3rem .9rem;margin:.8rem 0}a{color:inherit}
svg{display:block;width:100%;height:auto}svg text{fill:var(--text);font:12px system-ui,sans-serif}
figure{margin:.6rem 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th{background:var(--raised);font-weight:600}td.text,th.text{text-align:left}
details{margin:.4rem 0}summary{cursor:pointer;color:var(--soft)}
code{background:var(--raised);padding:.1rem .3rem;border-radius:4px}
.yes{color:var(--yes)}.no{color:var(--no);font-weight:600}
";

/// Columns whose values are text.
fn is_text(column: usize) -> bool {
    matches!(column, 1 | 2)
}

/// The page.
pub(crate) fn page(study: &Study) -> String {
    let mut out = String::new();
    let done = write(&mut out, study);
    debug_assert!(done.is_ok(), "a string takes everything");
    out
}

fn write(out: &mut String, study: &Study) -> std::fmt::Result {
    let modelled = if study.modelled { " (modelled)" } else { "" };
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Primitives on {}{modelled}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Primitives of trees in persistent memory</h1>\n<p class=\"soft\">{}</p>\n<p><code>{}</code></p>",
        escape(&study.profile),
        escape(&summary(study)),
        escape(&study.command)
    )?;
    let measured: Vec<Experiment> = Experiment::ALL
        .into_iter()
        .filter(|one| study.rows.iter().any(|row| row.experiment == one.to_string()))
        .collect();
    out.push_str("<nav>");
    for experiment in &measured {
        write!(out, "<a href=\"#{experiment}\">{experiment} {}</a>", escape(experiment.title()))?;
    }
    out.push_str("</nav>\n");
    if let Some(chart) = profile(study, false) {
        writeln!(out, "<h2 id=\"profile\">Profile of each layout</h2>\n<figure>{chart}</figure>")?;
    }
    write_findings(out, study)?;
    write_entries(out)?;
    for experiment in measured {
        write_experiment(out, study, experiment)?;
    }
    out.push_str("</body>\n</html>\n");
    Ok(())
}

fn write_findings(out: &mut String, study: &Study) -> std::fmt::Result {
    if study.findings.is_empty() {
        return Ok(());
    }
    out.push_str(
        "<h2 id=\"findings\">What the paper says, and what came out</h2>\n<div class=\"scroll\"><table>\
         <tr><th class=\"text\">where</th><th class=\"text\">what</th><th class=\"text\">published</th>\
         <th class=\"text\">counts as that</th><th>measured</th><th class=\"text\">holds</th></tr>\n",
    );
    for finding in &study.findings {
        let (class, holds) = if finding.holds { ("yes", "yes") } else { ("no", "no") };
        writeln!(
            out,
            "<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"text\">{}</td>\
             <td class=\"text\">{}</td><td>{:.1} {}</td>\
             <td class=\"text {class}\">{holds}</td></tr>",
            escape(&finding.source),
            escape(&finding.what),
            escape(&finding.published),
            escape(&finding.bounds()),
            finding.measured,
            escape(&finding.unit)
        )?;
    }
    out.push_str("</table></div>\n");
    Ok(())
}

fn write_entries(out: &mut String) -> std::fmt::Result {
    out.push_str(
        "<h2 id=\"entries\">Entries of a node</h2>\n<p>Keys of 8 and values of 16 bytes (Table 4). At 2 KiB a bit for each \
         entry would leave room for 80; bitmaps of whole words leave room for 79, as in the table.</p>\n\
         <div class=\"scroll\"><table><tr><th></th><th>256 B</th><th>512 B</th><th>1 KiB</th><th>2 KiB</th><th>4 KiB</th></tr>\n",
    );
    for (what, values) in entries() {
        write!(out, "<tr><td class=\"text\">{}</td>", escape(what))?;
        for value in values {
            write!(out, "<td>{}</td>", escape(&value))?;
        }
        writeln!(out, "</tr>")?;
    }
    out.push_str("</table></div>\n");
    Ok(())
}

fn write_experiment(out: &mut String, study: &Study, experiment: Experiment) -> std::fmt::Result {
    writeln!(out, "<h2 id=\"{experiment}\">{experiment}: {}</h2>", escape(experiment.title()))?;
    if let Some(drawn) = figure(study, experiment, false) {
        writeln!(
            out,
            "<figure>{drawn}<figcaption>Times of one {}.</figcaption></figure>",
            experiment.unit()
        )?;
    }
    out.push_str("<details><summary>All figures</summary><div class=\"scroll\"><table><tr>");
    for (column, name) in COLUMNS.iter().enumerate() {
        let class = if is_text(column) { " class=\"text\"" } else { "" };
        write!(out, "<th{class}>{name}</th>")?;
    }
    out.push_str("</tr>\n");
    let name = experiment.to_string();
    for row in study.rows.iter().filter(|row| row.experiment == name) {
        out.push_str("<tr>");
        for (column, value) in cells(row).iter().enumerate() {
            let class = if is_text(column) { " class=\"text\"" } else { "" };
            write!(out, "<td{class}>{}</td>", escape(value))?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div></details>\n");
    Ok(())
}
