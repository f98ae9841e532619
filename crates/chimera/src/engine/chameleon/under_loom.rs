//! Under `--cfg loom`, what of the engine has models. The rest needs parts that `loom` has nothing for.

mod shard;
