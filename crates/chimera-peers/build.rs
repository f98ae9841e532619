//! Links the system's RocksDB, and tells the crate the versions of all stores.

use std::process::ExitCode;

/// Where the headers of RocksDB are, if not where `ROCKSDB_INCLUDE_DIR` says.
const INCLUDE: &str = "/usr/include";

fn main() -> ExitCode {
    println!("cargo::rerun-if-env-changed=ROCKSDB_INCLUDE_DIR");
    println!("cargo::rerun-if-changed=Cargo.lock");
    let include = std::env::var("ROCKSDB_INCLUDE_DIR").unwrap_or_else(|_| INCLUDE.to_owned());
    let Ok(header) = std::fs::read_to_string(format!("{include}/rocksdb/version.h")) else {
        println!(
            "cargo::error=there are no headers of RocksDB in {include}; install Debian's librocksdb-dev \
             (scripts/peers does), or set ROCKSDB_INCLUDE_DIR"
        );
        return ExitCode::FAILURE;
    };
    let part = |name| {
        let line = header.lines().find_map(|line| line.strip_prefix(&format!("#define {name} ")));
        line.unwrap_or("?").trim()
    };
    let parts = ["ROCKSDB_MAJOR", "ROCKSDB_MINOR", "ROCKSDB_PATCH"].map(part);
    println!("cargo::rustc-env=ROCKSDB_VERSION={}", parts.join("."));
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    for name in ["heed", "redb", "fjall"] {
        let after = lock.split_once(&format!("name = \"{name}\"\nversion = \"")).unzip().1;
        let version = after.and_then(|after| after.split('"').next()).unwrap_or("?");
        println!("cargo::rustc-env={}_VERSION={version}", name.to_uppercase());
    }
    println!("cargo::rustc-link-lib=rocksdb");
    ExitCode::SUCCESS
}
