//! Which windows are repaired: the C of `src/bpf/repair.h`.

use narrows_laws::raw::SSTHRESH_MAX;

unsafe extern "C" {
    safe fn nr_test_cwnd_most(before: u32, ssthresh: u32, out: u32) -> u32;
}

/// No threshold yet, as at first.
const NONE: u32 = SSTHRESH_MAX;

/// What a stale word left in place of windows, and was taken for one.
const ABSURD: u32 = 667_073_216;

#[test]
fn a_window_beyond_what_was_there_is_repaired() {
    assert!(ABSURD > nr_test_cwnd_most(40, 20, 38));
    assert!(ABSURD > nr_test_cwnd_most(40, NONE, 38), "without a threshold");
    assert!(ABSURD > nr_test_cwnd_most(1, 2, 0), "after a timeout");
    assert!(ABSURD > nr_test_cwnd_most(40, 0, 0), "without a slot");
    assert!(ABSURD > nr_test_cwnd_most(40, u32::MAX, 0), "with a threshold that is no window");
    assert!(u32::MAX > nr_test_cwnd_most(u32::MAX, NONE, 0));
    assert!(u32::MAX > nr_test_cwnd_most(0, NONE, 0), "before any program ran");
}

#[test]
fn what_the_stack_itself_does_is_not_repaired() {
    for (what, cwnd, most) in [
        ("a route's initial window", 1_000, nr_test_cwnd_most(0, NONE, 0)),
        ("the window of another control", 1_000_000, nr_test_cwnd_most(0, 700_000, 3)),
        ("no more than the first window", 10, nr_test_cwnd_most(1, 2, 0)),
        ("the end of a reduction, at the threshold", 50, nr_test_cwnd_most(1, 50, 0)),
        ("PRR while more is in flight than the window", 300, nr_test_cwnd_most(20, 10, 299)),
        ("half of a large window, idle for a timeout", 250, nr_test_cwnd_most(500, NONE, 0)),
        ("an undone reduction", 400, nr_test_cwnd_most(400, 200, 1)),
        ("the largest window of all", 1 << 30, nr_test_cwnd_most(1 << 30, NONE, 0)),
    ] {
        assert!(cwnd <= most, "{what}: {cwnd} of at most {most}");
    }
}
