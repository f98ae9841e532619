//! The `chimera-bench` command: benchmarks, and the study of node layouts. `chimera bench` and `chimera primitives` run it.
#![forbid(unsafe_code)]

use std::io::{ErrorKind, Write, stderr};
use std::process::ExitCode;

use chimera_bench::BenchError;
use chimera_bench::command::{self, BenchCommand, PrimitivesCommand};
use clap::Parser;

const EXAMPLES_AND_EXIT_CODES: &str = "\
Examples:
  chimera-bench ycsb                     a new store in the working directory, verified and removed
  chimera-bench core --engine viper,hikv
  chimera-bench primitives run --quick --report primitives

Exit codes:
  0  done
  2  the command line is wrong
  3  anything else: no room, a store in the way, a wrong record, ...
  130  interrupted by Ctrl-C: what the benchmark made is removed, unless --keep is given

Errors go to standard error; with --json as {\"error\": {\"kind\": .., \"message\": ..}}.";

/// Measures Chimera: throughput, latency and what the memory does.
#[derive(Debug, Parser)]
#[command(name = "chimera-bench", version, after_help = EXAMPLES_AND_EXIT_CODES, max_term_width = 100)]
struct Cli {
    /// Print one JSON object instead of text; errors, too
    #[arg(long, global = true)]
    json: bool,
    /// Say more on standard error; twice for even more
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    #[command(flatten)]
    Bench(Box<BenchCommand>),
    /// Measure node layouts of trees in persistent memory, on this machine or a modelled one
    Primitives {
        #[command(subcommand)]
        command: Box<PrimitivesCommand>,
    },
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    start_logging(cli.verbose);
    if let Err(error) = chimera_pmem::bus_error::install() {
        eprintln!("chimera-bench: warning: a SIGBUS will not be explained: {error}");
    }
    chimera_pmem::file_size_signal::ignore();
    let json = cli.json;
    chimera_bench::interrupt::install(move |how| {
        say("interrupted", &format!("interrupted: {how}"), json);
    });
    let outcome = match &cli.command {
        Command::Bench(command) => command::run(command, cli.json),
        Command::Primitives { command } => command::run_primitives(command, cli.json),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads the output any more.
        Err(BenchError::Output(source)) if source.kind() == ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            report(&error, cli.json);
            ExitCode::from(if matches!(error, BenchError::Arguments(_)) { 2 } else { 3 })
        }
    }
}

/// Says on standard error what went wrong.
fn report(error: &BenchError, json: bool) {
    let kind = match error {
        BenchError::Arguments(_) => "usage",
        BenchError::Store(_) => "store",
        _ => "bench",
    };
    say(kind, &error.to_string(), json);
}

/// Says something on standard error.
fn say(kind: &str, message: &str, json: bool) {
    let text = if json {
        let error = serde_json::json!({ "kind": kind, "message": message });
        serde_json::json!({ "error": error }).to_string()
    } else {
        format!("chimera-bench: {message}")
    };
    // There is nowhere left to complain to.
    let _ = writeln!(stderr(), "{text}");
}

/// Sends the libraries' messages to standard error: warnings always, more with `-v` and `-vv`, or as the variable `RUST_LOG`
/// says.
fn start_logging(verbose: u8) {
    let level = ["warn", "info", "debug"][usize::from(verbose.min(2))];
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or(level))
        .format(|buffer, record| {
            let level = record.level().as_str().to_lowercase();
            writeln!(buffer, "chimera-bench: {level}: {}", record.args())
        })
        .init();
}
