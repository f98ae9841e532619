//! Where the engine writes tables, and fences.

chimera_pmem::sites! {
    /// A MemTable that becomes a table of the first level.
    FLUSH = "chameleon.flush";
    /// A table of another level above the last one.
    UPPER = "chameleon.upper";
    /// A last table.
    LAST = "chameleon.last";
    /// A dumped bypass index.
    DUMP = "chameleon.dump";
    /// Tables, and the copy of the manifest that names them.
    TABLES = "chameleon.tables";
    /// The copy of the manifest that names a level for the first time.
    LEVEL = "chameleon.level";
    /// That all records of runs are in tables, before the write returns that had it done. Another session may have put the
    /// last of them into a table.
    MARKS = "chameleon.marks", may_be_clean;
}
