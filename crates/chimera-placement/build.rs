//! Builds the C++ shim, and links it with the system's RocksDB.

use std::path::Path;
use std::process::ExitCode;

const SOURCES: [&str; 10] = [
    "allocator.cpp",
    "cache.cpp",
    "database.cpp",
    "factories.cpp",
    "guard.cpp",
    "memkind_allocator.cpp",
    "memtable.cpp",
    "node_arena.cpp",
    "skip_list.cpp",
    "tier.cpp",
];

/// Where the headers of RocksDB are, if not where `ROCKSDB_INCLUDE_DIR` says.
const INCLUDE: &str = "/usr/include";

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=shim");
    println!("cargo::rerun-if-changed=include");
    println!("cargo::rerun-if-env-changed=ROCKSDB_INCLUDE_DIR");
    let include = std::env::var("ROCKSDB_INCLUDE_DIR").unwrap_or_else(|_| INCLUDE.to_owned());
    if !Path::new(&include).join("rocksdb/memory_allocator.h").exists() {
        println!(
            "cargo::error=there are no headers of RocksDB in {include}; install Debian's librocksdb-dev \
             (scripts/placement does), or set ROCKSDB_INCLUDE_DIR"
        );
        return ExitCode::FAILURE;
    }
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").include("include").include(include);
    // Debian's RocksDB has no type information of its classes for those that are derived from them.
    build.flag("-fno-rtti").flag("-Wall").flag("-Wextra").warnings_into_errors(true);
    // A debug build of the shim would ask for checks that the library does not have.
    build.define("NDEBUG", None).opt_level(2);
    for source in SOURCES {
        build.file(format!("shim/{source}"));
    }
    let has_memkind = std::env::var_os("CARGO_FEATURE_MEMKIND").is_some();
    if has_memkind {
        build.define("CHIMERA_MEMKIND", None);
    }
    build.compile("chimera_placement_shim");
    println!("cargo::rustc-link-lib=rocksdb");
    if has_memkind {
        println!("cargo::rustc-link-lib=memkind");
    }
    ExitCode::SUCCESS
}
