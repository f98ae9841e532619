//! Writing and acknowledging.

use std::sync::Arc;

use chimera::{Error, Session};
use chimera_pmem::Pmem;

use super::cut;
use super::outcome::Outcome;
use super::port::Port;
use crate::dax_guest::plan::{CUT_ME, Exact, Message, Plan};
use crate::dax_guest::workload::{Action, COUNTER_AT, Operation, State, key, value};

/// Every so many operations a value is read and compared.
const READ_EVERY: u64 = 8;

/// Does the operations after `state`, each acknowledged when its call has returned, until as many as
/// planned are done or the store is full.
pub(super) fn write<P: Pmem>(
    mut session: Session<P>,
    mut state: State,
    plan: &Plan,
    port: &Arc<Port>,
) -> Outcome<()> {
    let thread = state.thread();
    let from = state.done;
    let exact = plan.exact.filter(|exact| exact.thread == thread);
    while plan.operations.is_none_or(|most| state.done - from < most) {
        if let Some(Exact { operation, step, .. }) = exact
            && state.done - from >= operation
        {
            let port = port.clone();
            let operation = state.done - from;
            // The countdown goes on where an operation has fewer steps.
            cut::arm(step, operation, move |operation, step| {
                let step = step.to_owned();
                cut_power(&port, &Message::Cut { thread, operation, step });
            });
        }
        let operation = state.next();
        match act(&mut session, &state, operation) {
            Err(Error::PoolFull { .. }) => return Ok(()),
            done => done?,
        }
        state.advance();
        // One byte, after the call has returned: from here on the operation must survive.
        port.send(b'a' + thread as u8)?;
        if state.done.is_multiple_of(READ_EVERY) {
            compare(&mut session, &state, operation.key)?;
        }
    }
    Ok(())
}

/// One operation; what it returns must agree with the state before it.
pub(super) fn act<P: Pmem>(
    session: &mut Session<P>,
    state: &State,
    operation: Operation,
) -> Result<(), Error> {
    let Operation { key: number, action } = operation;
    let key = key(state.thread(), number);
    let new = value(state.thread(), number, state.done);
    let existed = match action {
        Action::Put => !session.put(key, &new)?,
        Action::Add(delta) => session.fetch_add_u64(key, COUNTER_AT, delta)?.is_some(),
        Action::Update => session.update(key, |old| old.copy_from_slice(&new))?,
        Action::Delete => session.delete(key)?,
    };
    assert_eq!(existed, state.holds(number), "{action:?} of key {number} of {}", state.thread());
    Ok(())
}

fn compare<P: Pmem>(session: &mut Session<P>, state: &State, number: u64) -> Outcome<()> {
    let found = session.get(key(state.thread(), number))?;
    if found == state.value(number) {
        return Ok(());
    }
    Err(format!("key {number} of thread {} reads as {found:?}", state.thread()).into())
}

/// Tells the host to cut the power, and does nothing any more.
fn cut_power(port: &Port, message: &Message) -> ! {
    // What cannot be said the host misses, and reports.
    let _ = port.say(message);
    let _ = port.send(CUT_ME);
    loop {
        std::thread::park();
    }
}
