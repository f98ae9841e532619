//! The mode follows what gets take, at any rate.

use chimera_pmem::SteppedEnvironment;

use super::*;

const THRESHOLD_NS: u64 = 2000;
const SECOND_NS: u64 = 1_000_000_000;
/// Gets of a session in each second: none of them is timed alone, some are, and nearly all.
const RATES: [(&str, f64); 8] = [
    ("one in twenty seconds", 0.05),
    ("one", 1.0),
    ("ten", 10.0),
    ("a hundred", 100.0),
    ("a thousand", 1e3),
    ("six thousand", 6e3),
    ("a hundred thousand", 1e5),
    ("a million", 1e6),
];

/// Times so many gets, of which one in so many takes that long, and the others nothing.
fn feed(protect: &GetProtect, sampler: &mut Sampler, gets: u64, (one_in, ns): (u64, u64)) {
    for get in 0..gets {
        let took = if get % one_in == 0 { ns } else { 0 };
        protect.note(sampler, took, 7_000_000);
    }
}

/// A session that gets at a rate.
struct Reader<'a> {
    environment: &'a SteppedEnvironment,
    protect: &'a GetProtect,
    sampler: Sampler,
    pause_ns: u64,
    gets: u64,
    timed: u64,
}

impl<'a> Reader<'a> {
    fn new(environment: &'a SteppedEnvironment, protect: &'a GetProtect, rate: f64) -> Self {
        let pause_ns = (SECOND_NS as f64 / rate) as u64;
        let sampler = protect.sampler();
        Self { environment, protect, sampler, pause_ns, gets: 0, timed: 0 }
    }

    /// Gets one record, which takes so long of the pause between two.
    fn get(&mut self, took_ns: u64) {
        self.gets += 1;
        self.environment.advance(self.pause_ns);
        if self.sampler.is_turn() {
            self.timed += 1;
            self.protect.note(&mut self.sampler, took_ns, self.environment.now_ns());
        }
    }

    /// Gets records that take so long each until the mode is on or off: after how many, if it ever is.
    fn get_until(&mut self, is_on: bool, took_ns: u64) -> Option<u64> {
        let before = self.gets;
        while self.protect.protects(self.environment) != is_on {
            self.get(took_ns);
            if self.gets - before > 200_000 {
                return None;
            }
        }
        Some(self.gets - before)
    }
}

#[test]
fn the_mode_begins_and_ends_at_any_rate_of_gets() {
    for (rate_name, rate) in RATES {
        let environment = SteppedEnvironment::in_memory(1);
        let protect = GetProtect::new(Some(THRESHOLD_NS), environment.now_ns());
        let mut reader = Reader::new(&environment, &protect, rate);
        for _ in 0..300 {
            reader.get(THRESHOLD_NS / 2);
        }
        for _ in 0..3 {
            let began = reader.get_until(true, 2 * THRESHOLD_NS);
            let began = began.unwrap_or_else(|| panic!("{rate_name}: it never begins"));
            // It stays while gets go on, however rare they are.
            for _ in 0..((30.0 * rate) as u64).clamp(1500, 300_000) {
                reader.get(2 * THRESHOLD_NS);
                assert!(protect.protects(&environment), "{rate_name}: it ends beside slow gets");
            }
            let ended = reader.get_until(false, THRESHOLD_NS / 2);
            let ended = ended.unwrap_or_else(|| panic!("{rate_name}: it never ends"));
            // Timed gets of a window, and those that are handed over together.
            let most = 64 * (WINDOW_SAMPLES + HANDED_OVER);
            assert!(began <= most && ended <= 2 * most, "{rate_name}: {began}, {ended} gets");
            let seconds = |gets: u64| gets as f64 / rate;
            let some = 300.0 / rate + 2.5;
            assert!(
                seconds(began) <= some && seconds(ended) <= some,
                "{rate_name}: {began}, {ended}"
            );
        }
        assert_eq!(protect.switches().0, 6, "{rate_name}");
    }
}

#[test]
fn the_mode_does_not_begin_where_one_get_in_two_hundred_is_slow() {
    for (rate_name, rate) in RATES {
        let environment = SteppedEnvironment::in_memory(1);
        let protect = GetProtect::new(Some(THRESHOLD_NS), environment.now_ns());
        let mut reader = Reader::new(&environment, &protect, rate);
        let mut timed = 0;
        for _ in 0..150_000 {
            let is_slow = reader.sampler.left == 0 && timed % 200 == 0;
            timed += u64::from(reader.sampler.left == 0);
            reader.get(if is_slow { 9 * THRESHOLD_NS } else { THRESHOLD_NS / 2 });
        }
        assert_eq!(protect.switches().0, 0, "{rate_name}");
    }
}

#[test]
fn many_gets_are_timed_one_in_so_many_and_few_are_all_timed() {
    for (rate_name, rate) in RATES {
        let environment = SteppedEnvironment::in_memory(1);
        let protect = GetProtect::new(Some(THRESHOLD_NS), environment.now_ns());
        let mut reader = Reader::new(&environment, &protect, rate);
        for _ in 0..6400 {
            reader.get(1);
        }
        let one_in = (rate / 100.0).clamp(1.0, 64.0);
        let expected = 6400.0 / one_in;
        let timed = reader.timed as f64;
        assert!((0.9 * expected..1.2 * expected + 10.0).contains(&timed), "{rate_name}: {timed}");
    }
}

#[test]
fn a_session_that_gets_seldom_after_it_got_much_is_soon_timed_again() {
    let environment = SteppedEnvironment::in_memory(1);
    let protect = GetProtect::new(Some(THRESHOLD_NS), environment.now_ns());
    let mut reader = Reader::new(&environment, &protect, 1e6);
    (0..10_000).for_each(|_| reader.get(1));
    reader.pause_ns = SECOND_NS;
    (0..64).for_each(|_| reader.get(1));
    let timed = reader.timed;
    (0..50).for_each(|_| reader.get(1));
    assert_eq!(reader.timed - timed, 50);
}

#[test]
fn none_is_timed_where_gets_are_not_protected_or_always_are() {
    for threshold in [None, Some(0)] {
        let protect = GetProtect::new(threshold, 0);
        let mut sampler = protect.sampler();
        assert!((0..6400).all(|_| !sampler.is_turn()));
        // After four billion gets one is, and none after it.
        sampler.left = 0;
        assert!(sampler.is_turn());
        feed(&protect, &mut sampler, 6144, (1, u64::MAX));
        assert!((0..6400).all(|_| !sampler.is_turn()));
        assert_eq!((protect.is_on(), protect.switches().0), (threshold.is_some(), 0));
    }
}

#[test]
fn the_mode_follows_the_99th_percentile_of_windows() {
    let protect = GetProtect::new(Some(THRESHOLD_NS), 1_000_000);
    let mut sampler = protect.sampler();
    feed(&protect, &mut sampler, 3072, (200, 9000));
    assert!(!protect.is_on(), "fewer than one in a hundred");
    // Ten of a thousand may be slow.
    feed(&protect, &mut sampler, 10 * 32, (32, 9000));
    assert!(!protect.is_on());
    feed(&protect, &mut sampler, 32, (32, 2001));
    assert!(protect.is_on(), "an eleventh, whatever follows");
    // Between the two thresholds it stays as it is.
    feed(&protect, &mut sampler, 6144, (1, 1900));
    assert!(protect.is_on());
    feed(&protect, &mut sampler, 4096, (200, 9000));
    assert!(!protect.is_on());
    feed(&protect, &mut sampler, 6144, (1, 1900));
    assert!(!protect.is_on());
    let (count, switches) = protect.switches();
    let expected = [true, false].map(|is_on| ProtectSwitch { at_ms: 6, is_on });
    assert_eq!((count, &switches[..]), (2, &expected[..]));
}

#[test]
fn sessions_make_a_window_together() {
    let protect = GetProtect::new(Some(THRESHOLD_NS), 0);
    let mut samplers: Vec<_> = (0..32).map(|_| protect.sampler()).collect();
    for sampler in &mut samplers {
        sampler.handed_over_ns = 7_000_000;
    }
    for sampler in &mut samplers[..10] {
        feed(&protect, sampler, 32, (32, 9000));
    }
    assert!(!protect.is_on());
    feed(&protect, &mut samplers[31], 32, (32, 9000));
    assert!(protect.is_on());
}

#[test]
fn with_a_threshold_of_nothing_the_mode_is_always_on() {
    let environment = SteppedEnvironment::in_memory(1);
    let protect = GetProtect::new(Some(0), 0);
    feed(&protect, &mut protect.sampler(), 6144, (1, 0));
    environment.advance(2 * STALE_NS);
    assert!(protect.protects(&environment) && protect.is_on());
    assert_eq!(protect.switches().0, 0);
}

#[test]
fn without_gets_the_mode_ends_also_when_the_clock_went_back() {
    let environment = SteppedEnvironment::in_memory(1);
    let protect = GetProtect::new(Some(THRESHOLD_NS), 0);
    environment.advance(7_000_000);
    feed(&protect, &mut protect.sampler(), 1024, (1, 9000));
    environment.rewind(7_000_000);
    assert!(protect.protects(&environment));
    environment.advance(STALE_NS + 1);
    assert!(!protect.protects(&environment));
}

#[test]
fn without_gets_the_mode_ends() {
    let environment = SteppedEnvironment::in_memory(1);
    let protect = GetProtect::new(Some(THRESHOLD_NS), 0);
    environment.advance(7_000_000);
    feed(&protect, &mut protect.sampler(), 1024, (1, 9000));
    assert!(protect.protects(&environment));
    environment.advance(STALE_NS);
    assert!(protect.protects(&environment), "the last get was at 7 ms");
    environment.advance(8_000_000);
    assert!(!protect.protects(&environment) && !protect.is_on());
}
