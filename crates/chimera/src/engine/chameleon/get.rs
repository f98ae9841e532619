//! Gets, timed now and then for the [Get-Protect Mode](super::modes).

use chimera_pmem::Pmem;

use super::store::{Chameleon, ChameleonClient};
use crate::types::error::Result;

impl<P: Pmem> Chameleon<P> {
    /// As [`get_in_turn`](Self::get_in_turn). One in so many looks at the clock, for the Get-Protect Mode.
    #[inline(always)]
    pub(super) fn get_or_time(
        &self,
        client: &mut ChameleonClient,
        hash: u64,
        key: &[u8],
    ) -> Result<bool> {
        if client.sampler.is_turn() {
            return self.get_timed(client, hash, key);
        }
        self.get_in_turn(client, hash, key)
    }

    /// Reads the value of `key` into the client's buffer, and verifies its sum if it is this get's turn. `false` when
    /// there is none.
    #[inline]
    fn get_in_turn(&self, client: &mut ChameleonClient, hash: u64, key: &[u8]) -> Result<bool> {
        let sum = self.index().core().verify_reads.is_turn(&mut client.shared.gets_left);
        self.index().read_value(&mut client.shared, hash, key, sum)
    }

    /// As [`get_in_turn`](Self::get_in_turn), and looks at the clock.
    #[cold]
    fn get_timed(&self, client: &mut ChameleonClient, hash: u64, key: &[u8]) -> Result<bool> {
        let environment = &**self.index().core().environment();
        let began_ns = environment.now_ns();
        let found = self.get_in_turn(client, hash, key);
        let now_ns = environment.now_ns();
        let took_ns = now_ns.saturating_sub(began_ns);
        self.flusher().modes().note(&mut client.sampler, took_ns, now_ns);
        found
    }
}
