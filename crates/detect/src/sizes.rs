//! Counting the largest flows in bounded memory.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::FixedState;

use crate::Limits;

/// Flows by what they are called. The hash has no secret: which of many flows of one size is forgotten
/// is the same in every run, and whoever makes them all collide has a few thousand to compare with.
pub type Flows<K, V> = HashMap<K, V, FixedState>;

/// Flows that are counted at the same time. When there are more, the smaller half is forgotten, and
/// counted anew if it comes again: one of the largest soon outgrows thousands of others.
pub const COUNTED: usize = 4096;

/// Forgets the smaller half, and says how many.
pub fn forget_half<K: Eq + Hash, V>(flows: &mut Flows<K, V>, size: impl Fn(&V) -> u64) -> usize {
    let before = flows.len();
    let mut sizes: Vec<u64> = flows.values().map(&size).collect();
    let (_, &mut median, larger) = sizes.select_nth_unstable(before / 2);
    // Many may be as large as the median.
    let mut room = larger.iter().filter(|&&size| size == median).count();
    flows.retain(|_, flow| match size(flow).cmp(&median) {
        std::cmp::Ordering::Less => false,
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => {
            let keep = room > 0;
            room = room.saturating_sub(1);
            keep
        }
    });
    before - flows.len()
}

/// The note on the flows that are left out, with `share` percent `of` the file.
pub fn left_out(kept: usize, others: usize, forgotten: usize, share: f64, of: &str) -> String {
    // What was forgotten and came again was counted again.
    let about = if forgotten > 0 { "at most " } else { "" };
    let kept = match kept {
        1 => "the largest flow is analysed".into(),
        kept => format!("the {kept} largest flows are analysed"),
    };
    let others = match others {
        1 => "1 other is".into(),
        others => format!("{others} others are"),
    };
    format!("{kept}; {about}{others} left out, with {share:.1} % of the {of}")
}

/// Leaves out flows with fewer than `least` of what `count` counts, unless all have fewer and nobody has asked for
/// so many. Returns the note on that, if there is one, with the percentage of the file by `share`.
///
/// # Errors
/// None is left; what is wrong.
pub fn leave_small<T>(
    flows: &mut Vec<T>,
    least: u64,
    count: impl Fn(&T) -> u64,
    share: impl Fn(&[T]) -> f64,
    of: &str,
) -> Result<Option<String>, String> {
    let (before, all) = (flows.len(), share(flows));
    if before > 0 && !flows.iter().any(|flow| count(flow) >= least) {
        let none = too_small(least);
        return match least == Limits::default().packets {
            true => Ok(Some(format!("{none}: all are analysed"))),
            false => Err(none),
        };
    }
    flows.retain(|flow| count(flow) >= least);
    let hid = before - flows.len();
    let share = all - share(flows);
    Ok((hid > 0).then(|| hidden(hid, least, share, of)))
}

/// The note on so many flows with fewer than `least` packets, with `share` percent `of` the file.
pub fn hidden(count: usize, least: u64, share: f64, of: &str) -> String {
    let flows = flows(count);
    format!(
        "hidden: {flows} of fewer than {least} packets, with {share:.1} % of the {of} \
         (--min-packets 1 shows all)"
    )
}

/// What is wrong where all flows have fewer than `least` packets.
pub fn too_small(least: u64) -> String {
    format!("no flow has {least} packets or more (--min-packets)")
}

/// `1 flow`, `2 flows`.
pub fn flows(count: usize) -> String {
    if count == 1 { "1 flow".into() } else { format!("{count} flows") }
}
