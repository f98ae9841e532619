//! The study on one page that needs nothing else.

use std::fmt::Write;

use super::chart::escape;
use super::figures::figures;
use super::table::{COLUMNS, cells, dram_of, notes, part_title};
use crate::study::{Part, Row, Study};

const STYLE: &str = "
:root{color-scheme:light dark;--ground:#fff;--text:#1f2328;--soft:#59636e;--line:#d1d9e0;--raised:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--ground:#0d1117;--text:#e6edf3;--soft:#9198a1;--line:#3d444d;--raised:#151b23}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:1200px;background:var(--ground);color:var(--text);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:.2rem 0}h2{font-size:1.2rem;margin:2rem 0 .4rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
p,li{max-width:95ch}p.soft{color:var(--soft)}
svg{display:block;width:100%;height:auto}svg text{fill:var(--text);font:12px system-ui,sans-serif}
figure{margin:.8rem 0}
.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums;white-space:nowrap}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th{background:var(--raised);font-weight:600}td.text,th.text{text-align:left}td.wide{white-space:normal;min-width:24rem}
details{margin:.4rem 0}summary{cursor:pointer;color:var(--soft)}
code{background:var(--raised);padding:.1rem .3rem;border-radius:4px}
";

/// The page.
pub fn page(study: &Study) -> String {
    let mut out = String::new();
    let done = write(&mut out, study);
    debug_assert!(done.is_ok(), "a string takes everything");
    out
}

fn write(out: &mut String, study: &Study) -> std::fmt::Result {
    let modelled = if study.settings.is_modelled { " (modelled)" } else { "" };
    writeln!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>RocksDB on persistent memory{modelled}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>RocksDB's block cache and memtables on persistent memory{modelled}</h1>"
    )?;
    for note in notes(&study.settings) {
        writeln!(out, "<p class=\"soft\">{}</p>", escape(&note))?;
    }
    writeln!(out, "<p><code>{}</code></p>", escape(&study.settings.command))?;
    write_findings(out, study)?;
    for part in [Part::Published, Part::Shares, Part::Ycsb, Part::Hits] {
        write_part(out, study, part)?;
    }
    out.push_str("<h2>Readings of the paper</h2>\n<ul>\n");
    for reading in &study.readings {
        writeln!(out, "<li>{}</li>", escape(reading))?;
    }
    out.push_str("</ul>\n</body>\n</html>\n");
    Ok(())
}

fn write_findings(out: &mut String, study: &Study) -> std::fmt::Result {
    if study.findings.iter().all(|finding| finding.measured.is_none()) {
        return Ok(());
    }
    out.push_str(
        "<h2>Published, and measured here</h2>\n<div class=\"scroll\"><table>\
         <tr><th class=\"text\">where</th><th class=\"text\">what</th><th>published</th><th>here</th><th class=\"text\">unit</th>\
         <th class=\"text\">the paper's words</th><th class=\"text\">reading</th></tr>\n",
    );
    for finding in &study.findings {
        let measured = finding.measured.map_or("not run".to_owned(), |value| format!("{value:.2}"));
        writeln!(
            out,
            "<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td>{}</td><td>{measured}</td><td class=\"text\">{}</td>\
             <td class=\"text wide\">{}</td><td class=\"text wide\">{}</td></tr>",
            escape(&finding.figure),
            escape(&finding.what),
            finding.published,
            escape(&finding.unit),
            escape(&finding.quote),
            escape(&finding.reading)
        )?;
    }
    out.push_str("</table></div>\n");
    Ok(())
}

fn write_part(out: &mut String, study: &Study, part: Part) -> std::fmt::Result {
    let rows: Vec<&Row> = study.rows.iter().filter(|row| row.key.part == part).collect();
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "<h2>{}</h2>", part_title(part))?;
    for drawn in figures(study, part).iter().filter_map(super::chart::Chart::draw) {
        writeln!(out, "<figure>{drawn}</figure>")?;
    }
    out.push_str("<details open><summary>All figures</summary><div class=\"scroll\"><table><tr>");
    let class = |is_text| if is_text { " class=\"text\"" } else { "" };
    for (name, is_text) in COLUMNS {
        write!(out, "<th{}>{name}</th>", class(is_text))?;
    }
    out.push_str("</tr>\n");
    for row in rows {
        out.push_str("<tr>");
        for (cell, (_, is_text)) in cells(row, dram_of(study, row)).iter().zip(COLUMNS) {
            write!(out, "<td{}>{}</td>", class(is_text), escape(cell))?;
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div></details>\n");
    Ok(())
}
