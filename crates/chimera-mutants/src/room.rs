//! Rooms: which files are mutated, and which tests may notice.

use std::path::{Path, PathBuf};

/// A part of the source whose mutants are in one build.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    pub(crate) name: &'static str,
    /// The directory of its package, in the repository.
    pub(crate) home: &'static str,
    /// Its directory in the package.
    pub(crate) source: &'static str,
    /// Arguments of cargo for its own tests.
    pub(crate) narrow: Tests,
    /// Arguments of cargo for tests of whole stores.
    pub(crate) wide: Tests,
}

/// Tests that are built at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tests {
    /// The package that they are tests of, and its directory in the repository.
    pub(crate) package: &'static str,
    pub(crate) home: &'static str,
    pub(crate) arguments: &'static [&'static str],
}

/// Those of [`Tests`] that are asked.
pub(crate) struct Asked<'a> {
    pub(crate) package: &'a str,
    pub(crate) home: &'a str,
    pub(crate) arguments: Vec<&'a str>,
}

impl Asked<'_> {
    /// Binaries that are asked for by their names.
    pub(crate) fn targets(&self) -> usize {
        self.arguments.iter().filter(|argument| argument.starts_with("--test=")).count()
    }
}

impl Tests {
    /// All of them, or only those in binaries of these names. What is in no binary of its own is asked always.
    pub(crate) fn asked(&self, targets: &[String]) -> Asked<'_> {
        let is_asked = |argument: &&str| {
            let target = argument.strip_prefix("--test=");
            target.is_none_or(|name| targets.is_empty() || targets.iter().any(|it| it == name))
        };
        let arguments = self.arguments.iter().copied().filter(is_asked).collect();
        Asked { package: self.package, home: self.home, arguments }
    }
}

/// Targets whose harness takes a single filter: `libtest-mimic`.
pub(crate) const ONE_FILTER: [&str; 1] = ["conformance"];

const CHIMERA: &str = "crates/chimera";
const PMEM: &str = "crates/chimera-pmem";

const UNIT_TESTS: Tests = Tests {
    package: "chimera",
    home: CHIMERA,
    arguments: &["--features", "teaching-engine", "--lib"],
};

const WHOLE_STORES: Tests = Tests {
    package: "chimera",
    home: CHIMERA,
    arguments: &[
        "--features",
        "teaching-engine",
        "--test=conformance",
        "--test=bad_input",
        "--test=model",
        "--test=counters",
        "--test=plain_file",
        "--test=variable",
        "--test=outside",
        "--test=destroy",
        "--test=device",
        "--test=capacity",
        "--test=holes",
        "--test=rebuild",
        "--test=reclaim",
        "--test=transfer",
        "--test=dump",
        "--test=processes",
        "--test=api",
        "--test=metrics",
    ],
};

const fn of_chimera(name: &'static str, source: &'static str) -> Room {
    Room { name, home: CHIMERA, source, narrow: UNIT_TESTS, wide: WHOLE_STORES }
}

/// All rooms.
pub(crate) const ROOMS: [Room; 6] = [
    Room {
        name: "journal",
        home: PMEM,
        source: "src/journal",
        narrow: Tests { package: "chimera-pmem", home: PMEM, arguments: &["--lib"] },
        wide: WHOLE_STORES,
    },
    of_chimera("pool", "src/pool"),
    of_chimera("records", "src/records"),
    of_chimera("index", "src/index"),
    of_chimera("engine", "src/engine"),
    of_chimera("ordered", "src/ordered"),
];

impl Room {
    /// The room of this name.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        ROOMS.into_iter().find(|room| room.name == name).ok_or_else(|| {
            let names: Vec<_> = ROOMS.iter().map(|room| room.name).collect();
            format!("one of {}", names.join(", "))
        })
    }

    /// The root of the crate that it is a part of.
    pub(crate) fn crate_root(&self, tree: &Path) -> PathBuf {
        tree.join(self.home).join("src/lib.rs")
    }
}
