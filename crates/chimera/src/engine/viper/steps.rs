//! Comparisons and steps of recovery that a tool can leave out.

chimera_pmem::steps! {
    /// That the record with the higher version stays.
    VERSION_ORDER = "viper.step.version_order";
    /// That a new record has a higher version than the one it replaces.
    OUTBID = "viper.step.outbid";
    /// Clearing the bits of records that lost.
    CLEAR_LOSERS = "viper.step.clear_losers";
    /// Updating a word in place only if the checksum leaves it out.
    UNCHECKED_WORD = "viper.step.unchecked_word";
    /// Writing a record anew, to update a word, only if its value is as it was written.
    ANEW_CHECK = "viper.step.anew_check";
    /// Looking at the index again after reading a record.
    LEADS_TO = "viper.step.leads_to";
    /// Keeping blocks with chunks from others until their record is live.
    HOLD_BLOCKS = "viper.step.hold_blocks";
    /// Taking the mark off a free block that is used again.
    CLEAR_FREE = "viper.step.clear_free";
    /// Moving a record only if the index leads to it.
    MOVE_CURRENT = "viper.step.move_current";
    /// Moving a value only if it is as it was written.
    MOVE_CHECK = "viper.step.move_check";
}
