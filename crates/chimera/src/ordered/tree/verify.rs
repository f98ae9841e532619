//! Whether a tree that nobody changes is as it should be, for tests.

use std::collections::HashSet;
use std::sync::Arc;

use super::Tree;
use super::format::{Header, Place, common};
use super::node::Node;
use super::shape::{HEADER_UNITS, SLOT_UNITS, UNIT};

type Fence = Option<Arc<[u8]>>;

/// What was found on the way.
#[derive(Default)]
struct Found {
    nodes: HashSet<u32>,
    inner: u64,
    keys: u64,
    long_keys: HashSet<u32>,
}

macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

impl Tree {
    /// Checks order, fences, prefixes, counts and levels; and that each node is either reached once or free.
    ///
    /// # Errors
    /// Says what is wrong.
    pub(crate) fn verify(&self) -> Result<(), String> {
        let mut found = Found::default();
        if let Some(root) = self.nodes.root() {
            let level = root.header().level;
            self.verify_node(root, level, &[None, None], &mut found)?;
        }
        let free = self.nodes.free();
        for id in &free {
            ensure!(found.nodes.insert(*id), "node {id} is free twice, or used");
        }
        let counts = self.nodes.counts();
        let (nodes, given) = (found.nodes.len(), counts.given);
        ensure!(nodes == given as usize, "{nodes} nodes are used or free, of {given}");
        let figures = self.figures();
        ensure!(figures.keys == found.keys, "{figures:?}: {} keys", found.keys);
        ensure!(figures.inner_nodes == found.inner, "{figures:?}: {} inner nodes", found.inner);
        let long_keys = found.long_keys.len() as u64;
        ensure!(figures.long_keys == long_keys, "{figures:?}: {long_keys} long keys");
        Ok(())
    }

    fn verify_node(
        &self,
        node: Node<'_>,
        level: u32,
        fences: &[Fence; 2],
        found: &mut Found,
    ) -> Result<(), String> {
        let (id, header) = (node.id, node.header());
        ensure!(found.nodes.insert(id), "node {id} is reached twice");
        ensure!(header.level == level, "node {id}: {header:?} on level {level}");
        ensure!(node.lock_word().read_begin().is_some(), "node {id} is locked");
        ensure!(node.whole_fences() == *fences, "node {id}: fences {fences:?}");
        let prefix = match fences {
            [Some(low), Some(high)] => common(low, high).min(node.layout().prefix_max as usize),
            _ => 0,
        };
        ensure!(header.prefix as usize == prefix, "node {id}: {header:?}, prefix {prefix}");
        verify_space(node, header)?;
        let mut twice = None;
        node.for_each_long_key(|number| {
            if !found.long_keys.insert(number) {
                twice = Some(number);
            }
        });
        ensure!(twice.is_none(), "node {id}: long key {twice:?} is used twice");
        let keys = keys(node, header);
        ensure!(keys.is_sorted_by(|one, other| one < other), "node {id}: order of {keys:?}");
        let [low, high] = fences;
        let first = if level > 0 { keys.get(1) } else { keys.first() };
        let is_inside = |key: &Vec<u8>| {
            let above = low
                .as_ref()
                .is_none_or(|low| key[..] > low[..] || level == 0 && key[..] == low[..]);
            above && high.as_ref().is_none_or(|high| key[..] < high[..])
        };
        ensure!(first.is_none_or(is_inside), "node {id}: {first:?} outside of {fences:?}");
        let last = keys.last().filter(|_| level == 0 || keys.len() > 1);
        ensure!(last.is_none_or(is_inside), "node {id}: {last:?} outside of {fences:?}");
        if level == 0 {
            found.keys += keys.len() as u64;
            return Ok(());
        }
        found.inner += 1;
        ensure!(header.count > 0, "node {id} has no child");
        let border = |at: u32| match at {
            0 => low.clone(),
            at if at == header.count => high.clone(),
            at => Some(Arc::from(&*keys[at as usize])),
        };
        for at in 0..header.count {
            let child = self.nodes.get(node.child(at)).ok_or("a child that is no node")?;
            self.verify_node(child, level - 1, &[border(at), border(at + 1)], found)?;
        }
        Ok(())
    }
}

/// The whole keys of a node; of an inner one the first is only the prefix.
fn keys(node: Node<'_>, header: Header) -> Vec<Vec<u8>> {
    let key = |at| {
        let mut key = Vec::new();
        node.append_key(header, node.slot(at), &mut key);
        key
    };
    (0..header.count).map(key).collect()
}

/// What is in the heap, and garbage, is all of it.
fn verify_space(node: Node<'_>, header: Header) -> Result<(), String> {
    let layout = node.layout();
    let entries =
        (0..header.count).map(|at| node.units_of(header.level, node.slot(at)) - SLOT_UNITS);
    let fence = |place: Place| {
        let length = place.length().unwrap_or(u32::MAX);
        if place.is_absent() { 0 } else { layout.fence_units(length) }
    };
    let fences = node.fences().map(fence).iter().sum::<u32>();
    let used = header.prefix.div_ceil(UNIT) + fences + entries.sum::<u32>();
    let id = node.id;
    ensure!(header.heap >= HEADER_UNITS + SLOT_UNITS * header.count, "node {id}: {header:?}");
    ensure!(
        used + header.garbage + header.heap == layout.units(),
        "node {id}: {header:?}, {used} used"
    );
    Ok(())
}
