//! The rules, each broken and kept by a hand-made trace.

use chimera_pmem::{Extent, Operation, Site};

use super::{Lint, Linter};
use crate::media::Media;
use crate::simulated::{Event, Machine, Mark, Order};

const SITE: Site = Site::new("test");
const BYTES: u64 = 256;

fn store(word: u32, value: u64, thread: u8) -> Event {
    Event::Store { word, value, order: Order::Ordered, thread, site: SITE }
}

fn flush(line: u32, thread: u8) -> Event {
    Event::Flush { line, thread, site: SITE }
}

fn fence(thread: u8) -> Event {
    Event::Fence { thread, site: SITE }
}

fn begin(operation: Operation, thread: u8) -> Event {
    Event::Begin { thread, operation }
}

fn acknowledge(thread: u8) -> Event {
    Event::Acknowledge { thread }
}

/// Word 8 makes words 0 and 1 reachable.
fn publish() -> [Event; 2] {
    let depends_on = Extent::new_checked(0, 16);
    [Event::Publish { depends_on, thread: 0, site: SITE }, store(8, 1, 0)]
}

/// The rules that a trace breaks.
fn lint(events: &[Event]) -> Vec<&'static str> {
    let working = Machine::new(BYTES);
    let mut media = Media::new(Machine::new(BYTES));
    let mut linter = Linter::new(true);
    for event in events {
        if let Event::Store { word, value, .. } = event {
            working.poke(*word, *value);
        }
        linter.step(event, &media);
        media.apply(event, &[]);
    }
    linter.compare(&media, &working);
    linter.into_found().into_iter().map(|Lint { rule, .. }| rule).collect()
}

#[test]
fn a1_what_is_acknowledged_is_durable() {
    let put = begin(Operation::Insert, 0);
    let whole = [put, store(0, 1, 0), flush(0, 0), fence(0), acknowledge(0)];
    assert_eq!(lint(&whole), [""; 0]);
    assert_eq!(lint(&[put, store(0, 1, 0), flush(0, 0), acknowledge(0)]), ["A1"]);
    assert_eq!(lint(&[put, store(0, 1, 0), acknowledge(0)]), ["A1"]);
    // What another thread has not made durable is its own business.
    assert_eq!(lint(&[put, store(0, 1, 1), acknowledge(0)]), [""; 0]);
}

#[test]
fn a2_what_becomes_reachable_is_durable() {
    let record = [store(0, 7, 0), store(1, 7, 0), flush(0, 0)];
    let [announce, lead] = publish();
    assert_eq!(lint(&[&record[..], &[fence(0), announce, lead]].concat()), [""; 0]);
    assert_eq!(lint(&[&record[..], &[announce, lead]].concat()), ["A2"]);
}

/// Stores to one line reach media in order, but those past the cache.
#[test]
fn a2_what_becomes_reachable_may_lie_beside_the_word_that_leads_there() {
    let depends_on = Extent::new_checked(0, 16);
    let announce = Event::Publish { depends_on, thread: 0, site: SITE };
    let rest = store(0, 7, 0);
    assert_eq!(lint(&[rest, announce, store(2, 1, 0)]), [""; 0]);
    assert_eq!(lint(&[rest, announce, store(8, 1, 0)]), ["A2"]);
    let Event::Store { word, value, thread, site, .. } = rest else { unreachable!() };
    let past_the_cache = Event::Store { word, value, order: Order::NonTemporal, thread, site };
    assert_eq!(lint(&[past_the_cache, announce, store(2, 1, 0)]), ["A2"]);
}

#[test]
fn a2_what_is_reachable_is_not_written_until_it_is_durably_withdrawn() {
    let record = [store(0, 7, 0), store(1, 7, 0), flush(0, 0), fence(0)];
    let [announce, lead] = publish();
    let reachable = [&record[..], &[announce, lead, flush(1, 0), fence(0)]].concat();
    let rewrite = store(1, 8, 0);
    assert_eq!(lint(&[&reachable[..], &[rewrite]].concat()), ["A2"]);
    let withdrawn = [&reachable[..], &[store(8, 0, 0)]].concat();
    assert_eq!(lint(&[&withdrawn[..], &[rewrite]].concat()), ["A2"]);
    let durably = [&withdrawn[..], &[flush(1, 0), fence(0), rewrite]].concat();
    assert_eq!(lint(&durably), [""; 0]);
}

#[test]
fn a3_a_lookup_returns_what_is_durable() {
    let get = begin(Operation::Get, 1);
    let read = Event::Read { first: 0, count: 1, thread: 1 };
    let news = [store(0, 1, 0), flush(0, 0)];
    let early = [&news[..], &[get, read, acknowledge(1)]].concat();
    assert_eq!(lint(&early), ["A3"]);
    // Durable by the time it returns; or read again.
    let late = [&news[..], &[get, read, fence(0), acknowledge(1)]].concat();
    assert_eq!(lint(&late), [""; 0]);
    let again = Event::Reread { thread: 1 };
    let reread = [&news[..], &[get, read, again, acknowledge(1)]].concat();
    assert_eq!(lint(&reread), [""; 0]);
}

#[test]
fn a4_nothing_is_flushed_or_fenced_in_vain() {
    assert_eq!(lint(&[flush(0, 0), fence(0)]), ["A4"]);
    assert_eq!(lint(&[fence(0)]), ["A4"]);
    assert_eq!(lint(&[store(0, 1, 0), flush(0, 0), flush(0, 0), fence(0)]), ["A4"]);
    assert_eq!(lint(&[store(0, 1, 0), flush(0, 0), fence(0)]), [""; 0]);
}

/// The rules that a trace breaks when all its steps are made at `site`.
fn lint_at(at: Site, events: &[Event]) -> Vec<&'static str> {
    let mut events = events.to_vec();
    for event in &mut events {
        if let Event::Store { site, .. } | Event::Flush { site, .. } | Event::Fence { site, .. } =
            event
        {
            *site = at;
        }
    }
    lint(&events)
}

#[test]
fn sites_say_what_the_rules_need_to_know() {
    let record = [store(0, 7, 0), flush(0, 0), fence(0)];
    let [announce, lead] = publish();
    let rewrite = [announce, lead, flush(1, 0), fence(0), store(0, 8, 0)];
    let rewritten = [&record[..], &rewrite].concat();
    assert_eq!(lint_at(SITE, &rewritten), ["A2"]);
    assert_eq!(lint_at(SITE.in_place(), &rewritten), [""; 0]);
    let read = Event::Read { first: 0, count: 1, thread: 1 };
    let seen = [store(0, 1, 0), flush(0, 0), begin(Operation::Get, 1), read, acknowledge(1)];
    assert_eq!(lint_at(SITE, &seen), ["A3"]);
    assert_eq!(lint_at(SITE.unread(), &seen), [""; 0]);
    let clean = [flush(0, 0), fence(0)];
    assert_eq!(lint_at(SITE, &clean), ["A4"]);
    assert_eq!(lint_at(SITE.may_be_clean(), &clean), [""; 0]);
    assert_eq!(lint_at(SITE.may_be_clean(), &clean[1..]), [""; 0]);
}

const KILLED: Event = Event::Mark(Mark::Killed);

#[test]
fn after_a_kill_an_operation_answers_for_its_own_stores() {
    let put = begin(Operation::Insert, 0);
    let killed = [put, store(0, 1, 0), KILLED];
    let next = [put, store(16, 1, 0), flush(2, 0), fence(0), acknowledge(0)];
    assert_eq!(lint(&[&killed[..], &next].concat()), [""; 0]);
    assert_eq!(lint(&[&killed[..], &[put, store(16, 1, 0), acknowledge(0)]].concat()), ["A1"]);
}

#[test]
fn after_a_kill_what_was_published_is_reachable_and_what_was_stored_is_not_durable() {
    let record = [store(0, 7, 0), flush(0, 0), fence(0)];
    let [announce, lead] = publish();
    let published = [&record[..], &[announce, lead, KILLED]].concat();
    assert_eq!(lint(&[&published[..], &[store(0, 8, 0)]].concat()), ["A2"]);
    let flushed = [store(0, 7, 0), flush(0, 0), KILLED];
    assert_eq!(lint(&[&flushed[..], &[announce, lead]].concat()), ["A2"]);
    let written_back = [flush(0, 0), fence(0), announce, lead];
    assert_eq!(lint(&[&flushed[..], &written_back].concat()), [""; 0]);
}

#[test]
fn after_a_kill_no_lookup_returns_what_is_not_written_back() {
    let read = Event::Read { first: 0, count: 1, thread: 0 };
    let get = [begin(Operation::Get, 0), read, acknowledge(0)];
    let killed = [store(0, 1, 0), flush(0, 0), KILLED];
    assert_eq!(lint(&[&killed[..], &get].concat()), ["A3"]);
    assert_eq!(lint(&[&killed[..], &[flush(0, 0), fence(0)], &get].concat()), [""; 0]);
}

#[test]
fn after_a_kill_no_flush_is_under_way_and_what_was_flushed_is_news() {
    let killed = [store(0, 1, 0), flush(0, 0), KILLED];
    assert_eq!(lint(&[&killed[..], &[fence(0)]].concat()), ["A4"]);
    assert_eq!(lint(&[&killed[..], &[flush(0, 0), fence(0)]].concat()), [""; 0]);
}

#[test]
fn a5_the_trace_explains_the_memory() {
    let working = Machine::new(BYTES);
    working.poke(3, 1);
    let mut linter = Linter::new(true);
    linter.compare(&Media::new(Machine::new(BYTES)), &working);
    assert_eq!(linter.into_found()[0].rule, "A5");
}
