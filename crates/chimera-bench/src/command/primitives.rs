//! `chimera primitives`: the study of node layouts on this machine, or on a modelled one.

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::time::Instant;

use chimera_pmem::instrumented::Profile;
use chimera_pmem::{Hardware, Instrumented};
use chimera_primitives::layout::LayoutKind;
use chimera_primitives::operation::{Cell, Experiment, Measured, cells};

use crate::driver::backend::Backend;
use crate::driver::progress::Progress;
use crate::driver::study::{Plan, arrays, load_ns, measure};
use crate::error::{BenchError, Result};
use crate::report::study::{figure, findings, page, profile, text};
use crate::results::machine::{Machine, last_level_cache_bytes};
use crate::results::study::{Study, StudyRow};

/// Batches, and operations of a batch.
const FULL: (usize, u64) = (7, 2000);
/// The same with `--quick`.
const QUICK: (usize, u64) = (3, 400);
/// An array where the cache is unknown.
const ARRAY_BYTES: u64 = 64 << 20;
/// The least array of `--quick`.
const MIB: u64 = 1 << 20;

/// What to do with the primitives.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum PrimitivesCommand {
    /// Measure operations on nodes, runs and allocators: time, bytes modified, flushes, fences, lines, media accesses
    Run(RunArguments),
}

/// Arguments of `primitives run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArguments {
    /// All experiments
    #[arg(long, conflicts_with = "experiment", required_unless_present = "experiment")]
    pub all: bool,
    /// Experiments, separated by commas: E1 to E11, A1
    #[arg(long, value_delimiter = ',', value_name = "E")]
    pub experiment: Vec<Experiment>,
    /// Layouts, separated by commas: sorted, unsorted, indirection, hashing, bitmap, hashing-counted [default: all]
    #[arg(long, value_delimiter = ',')]
    pub layout: Vec<LayoutKind>,
    /// Sizes, separated by commas: bytes of a node, of a run in E6 and E7, inner levels in E2 [default: all]
    #[arg(long, value_delimiter = ',', value_name = "SIZE")]
    pub node: Vec<u32>,
    /// Persistent memory to imitate: `dram` (none), `optane-100[:<DIMMs>]`, `cxl-nvcmm`,
    /// `hikv-nvm[:<persist ns>[:<read ns>]]`; timings are then modelled (docs/DEVICE-MODEL.md)
    #[arg(long, default_value = "dram")]
    pub profile: Profile,
    /// Directory for the report: index.html, a figure of each experiment, report.json, report.txt
    #[arg(long, value_name = "DIRECTORY")]
    pub report: Option<PathBuf>,
    /// Fewer and smaller batches: within a minute
    #[arg(long)]
    pub quick: bool,
    /// Batches, of which the median is told [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub repetitions: Option<u16>,
    /// Most memory for all arrays together, in MiB. Each is twice the last-level cache, or less where that is too much
    #[arg(long, value_name = "MIB", default_value_t = 4096, value_parser = clap::value_parser!(u64).range(64..))]
    pub memory: u64,
    /// Everything random follows from it
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
}

/// Runs the study and prints its result on the standard output: tables, or with `json` one JSON object.
///
/// # Errors
/// When nothing is to be measured, or the report cannot be written.
pub fn run_primitives(command: &PrimitivesCommand, json: bool) -> Result<()> {
    let PrimitivesCommand::Run(arguments) = command;
    let study = arguments.study()?;
    let text = if json { to_json(&study)? } else { text(&study) };
    if let Some(directory) = &arguments.report {
        write_report(&study, directory)?;
    }
    stdout().write_all(text.as_bytes()).map_err(BenchError::Output)
}

fn to_json(study: &Study) -> Result<String> {
    let text = serde_json::to_string_pretty(study);
    Ok(text.map_err(|error| BenchError::Output(error.into()))? + "\n")
}

/// Writes the page, its figures and what they were made of.
fn write_report(study: &Study, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(BenchError::io("create", directory))?;
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::write(&path, text).map_err(BenchError::io("write", &path))
    };
    for experiment in Experiment::ALL {
        if let Some(figure) = figure(study, experiment, true) {
            write(&format!("{experiment}.svg"), &figure)?;
        }
    }
    if let Some(chart) = profile(study, true) {
        write("profile.svg", &chart)?;
    }
    write("report.json", &to_json(study)?)?;
    write("report.txt", &text(study))?;
    write("index.html", &page(study))
}

impl RunArguments {
    /// Measures everything that was asked for.
    pub(crate) fn study(&self) -> Result<Study> {
        let figures = self.figures()?;
        if self.profile == Profile::Dram {
            self.study_on::<Hardware>(&figures)
        } else {
            self.study_on::<Instrumented<Hardware>>(&figures)
        }
    }

    /// The cells that were asked for: those of one figure, size and position together, since they take turns.
    fn figures(&self) -> Result<Vec<Vec<Cell>>> {
        let experiments = if self.all { Experiment::ALL.to_vec() } else { self.experiment.clone() };
        let is_wanted = |cell: &Cell| {
            let layout = cell.contender.layout();
            let is_layout =
                self.layout.is_empty() || layout.is_some_and(|kind| self.layout.contains(&kind));
            is_layout && (self.node.is_empty() || self.node.contains(&cell.size))
        };
        let mut figures: Vec<Vec<Cell>> = Vec::new();
        for cell in experiments.into_iter().flat_map(cells).filter(is_wanted) {
            let alike = |other: &Cell| {
                (other.experiment, other.size, other.position)
                    == (cell.experiment, cell.size, cell.position)
            };
            match figures.last_mut().filter(|figure| alike(&figure[0])) {
                Some(figure) => figure.push(cell),
                None => figures.push(vec![cell]),
            }
        }
        if figures.is_empty() {
            let what = "no experiment has this layout and this size: leave --layout or --node out";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        Ok(figures)
    }

    fn study_on<B: Backend + Measured>(&self, figures: &[Vec<Cell>]) -> Result<Study> {
        let started = Instant::now();
        let contenders = figures.iter().map(Vec::len).max().unwrap_or(1);
        let cache_bytes = last_level_cache_bytes();
        let wanted = if cache_bytes == 0 { ARRAY_BYTES } else { 2 * cache_bytes };
        let room = (self.memory << 20) / contenders as u64;
        let array_bytes = wanted.next_multiple_of(MIB).min(room / MIB * MIB).max(4 * MIB);
        let (repetitions, operations) = if self.quick { QUICK } else { FULL };
        let repetitions = self.repetitions.map_or(repetitions, usize::from);
        let plan =
            Plan { profile: self.profile, repetitions, operations, array_bytes, seed: self.seed };
        let progress = Progress::new(figures.len() + 1);
        progress.step("making arrays");
        let pmem: B = arrays(&plan, contenders)?;
        let mut rows: Vec<StudyRow> = Vec::new();
        for figure in figures {
            let Cell { experiment, size, position, .. } = figure[0];
            progress.step(&format!("{experiment}, {size} {}", position.name()));
            rows.extend(measure(&plan, &pmem, figure)?);
        }
        let load_ns = load_ns(&plan, &pmem);
        let mut study = Study {
            machine: Machine::here(pmem.hardware().flush_instruction().to_string()),
            medium: pmem.medium().to_string(),
            profile: self.profile.to_string(),
            modelled: self.profile != Profile::Dram,
            seed: self.seed,
            cache_bytes,
            array_bytes,
            exceeds_cache: array_bytes >= 2 * cache_bytes,
            load_ns,
            repetitions,
            operations,
            command: self.command(),
            seconds: started.elapsed().as_secs_f64(),
            rows,
            findings: Vec::new(),
        };
        study.findings = findings(&study);
        Ok(study)
    }

    /// The command line that does this again.
    fn command(&self) -> String {
        let mut line = "chimera primitives run".to_owned();
        let list = |values: Vec<String>| values.join(",");
        let mut add = |text: String| {
            line.push(' ');
            line.push_str(&text);
        };
        if self.all {
            add("--all".to_owned());
        } else {
            add(format!(
                "--experiment {}",
                list(self.experiment.iter().map(Experiment::to_string).collect())
            ));
        }
        if !self.layout.is_empty() {
            add(format!(
                "--layout {}",
                list(self.layout.iter().map(LayoutKind::to_string).collect())
            ));
        }
        if !self.node.is_empty() {
            add(format!("--node {}", list(self.node.iter().map(u32::to_string).collect())));
        }
        if self.profile != Profile::Dram {
            add(format!("--profile {}", self.profile));
        }
        if self.quick {
            add("--quick".to_owned());
        }
        if let Some(repetitions) = self.repetitions {
            add(format!("--repetitions {repetitions}"));
        }
        add(format!("--seed {}", self.seed));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments() -> RunArguments {
        RunArguments {
            all: false,
            experiment: vec![Experiment::E4, Experiment::E1],
            layout: vec![LayoutKind::Sorted, LayoutKind::Hashing],
            node: vec![256],
            profile: Profile::Dram,
            report: None,
            quick: true,
            repetitions: Some(1),
            memory: 64,
            seed: 7,
        }
    }

    #[test]
    fn what_is_asked_for_is_measured_and_counted() {
        let study = arguments().study().expect("it runs");
        // Three positions of two layouts, one of which is searched in four ways in E1.
        assert_eq!(study.rows.len(), 3 * 2 + 3 * 5);
        for row in &study.rows {
            assert!(row.uncached.median_ns > 0.0 && row.cached.median_ns > 0.0, "{row:?}");
            assert!(row.counters.lines_read > 0.0, "{row:?}");
            assert_eq!(row.counters.bytes_modified > 0.0, row.experiment == "E4", "{row:?}");
        }
        let expected = "chimera primitives run --experiment E4,E1 --layout sorted,hashing --node 256 \
                        --quick --repetitions 1 --seed 7";
        assert_eq!(study.command, expected);
        let again: Study = serde_json::from_str(&to_json(&study).expect("JSON")).expect("the same");
        assert_eq!(again.rows.len(), study.rows.len());
    }

    #[test]
    fn a_profile_is_modelled_and_its_counts_are_its_own() {
        let profile = Profile::OPTANE_100;
        let arguments = RunArguments { profile, experiment: vec![Experiment::E8], ..arguments() };
        let study = arguments.study().expect("it runs");
        assert!(study.modelled && study.command.contains("--profile optane-100"));
        assert!(study.rows.iter().all(|row| row.counters.media_writes > 0.0));
        assert!(study.load_ns > 0.0);
        assert!(text(&study).contains("by the model of the device"));
    }

    #[test]
    fn a_report_has_a_page_and_figures() {
        let directory = tempfile::tempdir().expect("a directory");
        // The profile is that of nodes of 1 KiB.
        let arguments = RunArguments { node: vec![1024], ..arguments() };
        let study = arguments.study().expect("it runs");
        write_report(&study, &directory.path().join("new")).expect("it writes");
        for name in ["index.html", "report.json", "report.txt", "E1.svg", "E4.svg", "profile.svg"] {
            assert!(directory.path().join("new").join(name).exists(), "{name}");
        }
        assert!(!directory.path().join("new/E2.svg").exists());
    }

    #[test]
    fn what_no_experiment_has_is_refused() {
        let arguments = RunArguments { node: vec![300], ..arguments() };
        let error = arguments.study().expect_err("no such node");
        assert!(error.to_string().contains("--node"), "{error}");
    }
}
