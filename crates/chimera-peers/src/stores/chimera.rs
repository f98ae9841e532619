//! [`Chimera`]: the store of this project, with each of its engines.

use chimera::{Db, EngineKind, Options};
use chimera_bench::measure::{Footprint, Store};
use chimera_bench::report::Facts;
use chimera_pmem::Hardware;

use super::{ALL, Guarantee, Peer};
use crate::Result;
use crate::job::{Durability, Job, StoreKind, WINDOW};

/// Blocks of which so much is free are rewritten by a compaction: the default of `chimera compact`.
const FREE_PERCENT: u32 = 10;

/// A store of this project.
pub struct Chimera(Db<Hardware>);

fn engine(store: StoreKind) -> EngineKind {
    match store {
        StoreKind::Hikv | StoreKind::HikvOrdered => EngineKind::Hikv,
        StoreKind::Chameleon | StoreKind::ChameleonOrdered => EngineKind::Chameleon,
        _ => EngineKind::Viper,
    }
}

fn durability(of: Durability) -> chimera::Durability {
    match of {
        Durability::Operation => chimera::Durability::Immediate,
        Durability::Window => chimera::Durability::Group { max_delay: WINDOW },
        Durability::Process => chimera::Durability::Process,
    }
}

impl Peer for Chimera {
    const PUTS_KNOW: bool = true;
    const BATCH: &str = "multi_put: one wait for all, not all or nothing";

    fn open(job: &Job) -> Result<Self> {
        // Whatever is not named here is the default, as in the README.
        let options = Options::new()
            .engine(engine(job.store))
            .ordered(job.store.is_ordered())
            .durability(durability(job.durability));
        Ok(Self(Db::open(&job.path, &options)?))
    }

    fn compact(self, _: &Job) -> Result<Self> {
        self.0.compact(FREE_PERCENT, None)?;
        Ok(self)
    }

    fn version() -> String {
        env!("CARGO_PKG_VERSION").to_owned()
    }

    fn configuration(job: &Job) -> Vec<String> {
        let order = if job.store.is_ordered() { "kept" } else { "not kept" };
        vec![
            format!("engine {}, order of keys {order}, all else by default", engine(job.store)),
            format!("durability {}", durability(job.durability)),
        ]
    }

    fn guarantee(durability: Durability) -> Guarantee {
        match durability {
            Durability::Operation => Guarantee::new(ALL, ALL),
            Durability::Window => Guarantee::new(
                ALL,
                "all but the writes since the last sync began; writers wait when a whole window is behind",
            ),
            Durability::Process => Guarantee::new(ALL, "nothing: the store refuses to open"),
        }
    }
}

impl Store for Chimera {
    type Session = <Db<Hardware> as Store>::Session;

    fn session(&self) -> Self::Session {
        Store::session(&self.0)
    }

    fn for_each(&self, take: impl FnMut(&[u8], &[u8])) -> Result<()> {
        Store::for_each(&self.0, take)
    }

    fn sync(&self) -> Result<()> {
        Store::sync(&self.0)
    }

    fn close(self) -> Result<()> {
        Store::close(self.0)
    }

    fn facts(&self) -> Facts {
        Store::facts(&self.0)
    }

    fn footprint(&self) -> Footprint {
        Store::footprint(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL_BUT_WINDOW;
    use super::*;

    #[test]
    fn the_window_is_that_of_the_guarantee() {
        let said = durability(Durability::Window).to_string();
        assert_eq!(said, "group (50 ms)");
        assert!(
            Chimera::guarantee(Durability::Window).after_power_loss.starts_with(ALL_BUT_WINDOW)
        );
    }
}
