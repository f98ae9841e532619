//! The sites of Viper's own.

chimera_pmem::sites! {
    /// A block that recovery read, written back once more.
    FOUND = "viper.found", may_be_clean;
}
