//! Every example runs to its end; each asserts what it shows.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::Path;

macro_rules! examples {
    ($($name:ident in $file:literal),+ $(,)?) => {
        $(
            #[path = $file]
            mod $name;

            #[test]
            fn $name() -> Result<(), Box<dyn Error>> {
                $name::main()
            }
        )+

        /// The files of all examples that are run.
        const FILES: &[&str] = &[$($file),+];
    };
}

examples! {
    embed in "../examples/embed.rs",
    counters in "../examples/counters.rs",
    threads in "../examples/threads.rs",
    typed in "../examples/typed.rs",
    backup in "../examples/backup.rs",
    service in "../examples/service.rs",
    operations in "../examples/operations.rs",
    workers in "../examples/workers.rs",
}

#[test]
fn no_example_is_left_out() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let entries = fs::read_dir(directory).expect("a directory of examples");
    let found = entries.map(|entry| entry.expect("an entry").file_name());
    let found: BTreeSet<_> = found.map(|name| name.to_string_lossy().into_owned()).collect();
    let names = FILES.iter().filter_map(|file| Path::new(file).file_name());
    let run: BTreeSet<_> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(found, run);
}
