//! Which windows are repaired: the C of `src/bpf/repair.h`.

use narrows_laws::raw::SSTHRESH_MAX;

unsafe extern "C" {
    safe fn nr_test_cwnd_most(before: u32, law: u32, ssthresh: u32, out: u32) -> u32;
}

/// No threshold yet, as at first.
const NONE: u32 = SSTHRESH_MAX;

#[test]
fn a_window_beyond_what_was_there_is_repaired() {
    // What a stale word left in place of windows, and was taken for one: below 2^30.
    let absurd = 667_073_216;
    assert!(absurd > nr_test_cwnd_most(40, 40, 20, 38));
    assert!(absurd > nr_test_cwnd_most(40, 40, NONE, 38), "without a threshold");
    assert!(absurd > nr_test_cwnd_most(1, 1, 2, 0), "after a timeout");
    // A threshold of the stale word bounds nothing; the law's is given.
    assert!(u32::MAX > nr_test_cwnd_most(u32::MAX, u32::MAX, NONE, 0));
}

#[test]
fn what_the_stack_itself_does_is_not_repaired() {
    for (what, cwnd, most) in [
        ("the first window", 10, nr_test_cwnd_most(0, 0, NONE, 0)),
        ("the end of a timeout's slow start, at the threshold", 50, nr_test_cwnd_most(1, 1, 50, 0)),
        ("PRR while more is in flight than the window", 300, nr_test_cwnd_most(20, 20, 10, 299)),
        ("half of a large window, idle for a timeout", 250, nr_test_cwnd_most(500, 10, NONE, 0)),
        ("an undone reduction", 400, nr_test_cwnd_most(200, 400, 200, 100)),
        ("the largest window of all", 1 << 30, nr_test_cwnd_most(1 << 30, 1 << 30, NONE, 0)),
    ] {
        assert!(cwnd <= most, "{what}: {cwnd} of at most {most}");
    }
}
