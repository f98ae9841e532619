//! What records of batches promise. Crashes are the crash lab's.
