//! `indexes`: kinds of indexes against each other (HiKV, Figure 1): bare ones in DRAM, and those of a store of `hikv`.

use chimera::{Db, EngineKind};

use super::benchmark::Benchmark;
use super::common::Common;
use super::given::{NOT_COUNTED, NOT_KEPT, Unused};
use crate::driver::backend::Backend;
use crate::driver::conclusion::conclude_volatile;
use crate::driver::dram_index::{BTree, DramIndex, HashTable, Index, SkipList, VALUE_BYTES};
use crate::driver::engine::EngineChoice;
use crate::driver::pass::{Pass, Plan, measures};
use crate::driver::phase::{Action, Phase};
use crate::driver::progress::Progress;
use crate::driver::setup::{OrderChoice, Setup, Sizing};
use crate::driver::store::Create;
use crate::driver::worker::Data;
use crate::driver::workspace::Workspace;
use crate::error::{BenchError, Result};
use crate::report::{Report, StoreRow};
use crate::results::series::Results;

/// Records of a scan.
const SCAN_RECORDS: usize = 100;
/// What is measured; scans last, because not all kinds have them.
const PHASES: [(&str, Action); 3] =
    [("insert", Action::Insert), ("get", Action::Get), ("scan", Action::Scan(SCAN_RECORDS))];

/// Arguments of `indexes`.
#[derive(Clone, Debug, clap::Args)]
pub struct IndexesArguments {
    /// What all subcommands have.
    #[command(flatten)]
    pub common: Common,
}

/// A kind of index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    HashTable,
    BTree,
    SkipList,
    /// The hash index of `hikv`, in persistent memory, with the items that it leads to.
    Hikv,
    /// The same with the tree in DRAM that scans read.
    HikvOrdered,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::HashTable, Self::BTree, Self::SkipList, Self::Hikv, Self::HikvOrdered];

    fn is_ordered(self) -> bool {
        !matches!(self, Self::HashTable | Self::Hikv)
    }
}

impl Benchmark for IndexesArguments {
    const UNUSED: &'static [Unused] = &[
        ("engine", "the kinds of indexes are given"),
        ("threads", "one thread does --operations"),
        ("duration", "one thread does --operations"),
        ("any-size", "the stores take any size anyway"),
        ("mixed-sizes", "bare indexes have keys of one size"),
        ("value-size", "bare indexes have values of 8 bytes"),
        NOT_COUNTED,
        NOT_KEPT,
    ];

    fn common(&self) -> &Common {
        &self.common
    }

    fn setups(&self) -> Result<Vec<Setup>> {
        let setup = self.common.setup((16, VALUE_BYTES as u32))?;
        if !matches!(setup.key_bytes, 8 | 16) {
            let what = "bare indexes have keys of 8 or 16 bytes";
            return Err(BenchError::Arguments(what.to_owned()));
        }
        if setup.order == OrderChoice::None {
            self.common.given.refuse_all(&["order"], "there is a store without order anyway")?;
        }
        let engine = EngineChoice::Store(EngineKind::Hikv);
        Ok(vec![Setup { engine, sizing: Sizing::Any, ..setup }])
    }

    fn measure<B: Backend>(&self, setups: &[Setup]) -> Result<(Report, Results)> {
        let setup = &setups[0];
        let workspace = Workspace::prepare(setup)?;
        let data = Data::new(setup);
        let passes = measures(setup.repetitions);
        let progress = Progress::new(passes.len() * Kind::ALL.len() * (PHASES.len() + 3));
        let (mut results, mut rows) = (Results::default(), [const { None }; Kind::ALL.len()]);
        for (number, measure) in passes.into_iter().enumerate() {
            for turn in 0..Kind::ALL.len() {
                // Each comes first in its turn.
                let at = (turn + number) % Kind::ALL.len();
                let pass = Pass { number, threads: 1, measure };
                let turn = Turn { setup, data: &data, pass, workspace: &workspace };
                rows[at] = Some(turn.of::<B>(Kind::ALL[at], &mut results, &progress)?);
            }
        }
        let rows: Vec<StoreRow> = rows.into_iter().flatten().collect();
        let names: Vec<_> = rows.iter().map(|row| row.facts.engine.clone()).collect();
        results.series.sort_by_key(|series| {
            (
                PHASES.iter().position(|(name, _)| *name == series.operation),
                names.iter().position(|name| *name == series.engine),
            )
        });
        Ok((Report::new("indexes", setup, rows, &results), results))
    }
}

/// One kind in one pass.
struct Turn<'a> {
    setup: &'a Setup,
    data: &'a Data,
    pass: Pass,
    workspace: &'a Workspace,
}

impl Turn<'_> {
    fn of<B: Backend>(
        self,
        kind: Kind,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<StoreRow> {
        let order = match (kind, self.setup.order) {
            (Kind::HikvOrdered, OrderChoice::None) => OrderChoice::Asynchronous,
            (Kind::HikvOrdered, order) => order,
            _ => OrderChoice::None,
        };
        let setup = &Setup { order, ..self.setup.clone() };
        let turn = Turn { setup, ..self };
        match kind {
            Kind::Hikv | Kind::HikvOrdered => turn.run::<Db<B>>(kind, results, progress),
            _ if setup.key_bytes == 8 => turn.bare::<8>(kind, results, progress),
            _ => turn.bare::<16>(kind, results, progress),
        }
    }

    /// An index in DRAM with keys of `K` bytes.
    fn bare<const K: usize>(
        self,
        kind: Kind,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<StoreRow> {
        match kind {
            Kind::HashTable => self.index::<HashTable<K>>(kind, results, progress),
            Kind::BTree => self.index::<BTree<K>>(kind, results, progress),
            _ => self.index::<SkipList<K>>(kind, results, progress),
        }
    }

    fn index<I: Index>(
        self,
        kind: Kind,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<StoreRow> {
        self.run::<DramIndex<I>>(kind, results, progress)
    }

    /// All phases that it has on one made anew, which is verified afterwards.
    fn run<S: Create>(
        self,
        kind: Kind,
        results: &mut Results,
        progress: &Progress,
    ) -> Result<StoreRow> {
        let phases = PHASES.iter().filter(|(name, _)| *name != "scan" || kind.is_ordered());
        let phases: Vec<_> = phases.map(|(name, action)| Phase::new(name, *action)).collect();
        let plan = Plan { setup: self.setup, data: self.data, load_name: None, phases: &phases };
        let path = self.workspace.store("index")?;
        let finished = plan.run::<S>(&path, self.pass, results, progress)?;
        let row = conclude_volatile(&plan, finished, progress)?.store;
        self.workspace.remove(&path)?;
        Ok(row)
    }
}
