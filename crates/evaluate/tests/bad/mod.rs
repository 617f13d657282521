//! Laws that are bad on purpose: they show which way each figure points, and that its criterion can be failed.

use std::sync::atomic::AtomicBool;

use narrows_evaluate::{CATALOGUE, Law, Make};
use narrows_laws::user::{self, Checks};
use narrows_papers::{Form, Runs};

/// Criteria that a law falls short of which grows fast and never reduces its window.
pub const GREEDY: &[&str] = &[
    "5.1.1/crowd",
    "5.1.3/shallow",
    "5.2/starvation",
    "5.2.1/one-path",
    "5.2.1/several-paths",
    "5.2.1/deployed",
    "5.2.2/constant-rate",
    "5.2.2/adaptive",
    "5.2.3/short-and-long",
    "6.2/outer-flow",
    "7.1/disciplines",
    "7.1/marks",
    "7.1/l4s",
    "7.2/breaker",
    "7.6/receivers",
    "7.10/shared",
    "7.10/undecided",
    "7.10/coupled-limit",
    "7.10/elsewhere",
    "7.10/fail-over-together",
];
/// Those of a law that keeps two packets in flight.
pub const IDLE: &[&str] = &[
    "5.1.4/paths",
    "5.1.5/short-and-long",
    "6.1/tail-drop",
    "6.3/wired",
    "6.4/wireless",
    "7.3/delay",
    "7.4/thin",
    "7.5/satellite",
    "7.7/reordering",
    "7.8/transient",
    "7.9/sudden",
    "7.10/independent",
    "7.10/fail-over",
    "7.10/fail-over-own",
    "7.10/synchronised",
    "7.11/incast",
    "7.11/fabric",
];
/// Criteria that a law falls short of whose window grows by a share of itself: queues are longer.
pub const STEEP: &[&str] = &["5.1.2/queue"];
/// And one that BBR version 3 falls short of, which goes on where half of all packets are lost.
pub const BBR3: &[&str] = &["5.1.1/loss"];
/// Those of none, in whose least form, of a cell or two, a stable window does no harm.
const NONE: &[&str] = &["5.1.4/flows", "5.1.4/late", "7.1/queue-by-flow"];

/// Cells of these, by law, criterion, and how their names begin: what is above the limit there, too.
const CELLS: &[(&str, &str, &str)] = &[
    ("greedy", "5.2.2/adaptive", "delay of nada, CoDel"),
    ("greedy", "7.2/breaker", "a tenth of the rate, its worst 5 s"),
    ("idle", "6.4/wireless", "link-layer retransmission, alone"),
    ("idle", "7.11/fabric", "mean, one path"),
    ("idle", "7.11/fabric", "the last, one path"),
];

/// The least form, of one seed, of `criteria` under the law `name`, which adds `credit` to its window for an acknowledged
/// packet and goes on with `ssthresh` after a loss: a cell of each is above the limit.
pub fn is_above(criteria: &[&str], name: &str, credit: &str, ssthresh: &str) {
    let home = tempfile::tempdir().unwrap();
    let header = home.path().join(format!("{name}.h"));
    let guard = format!("NARROWS_LAW_{}_H", name.to_uppercase());
    let code = &name[..name.len().min(5)];
    let text = format!(
        "#ifndef {guard}
#define {guard}
#include \"law.h\"
NR_INLINE nr_s64 nr_{name}_credit(NR_HOOK, nr_u32 set, nr_u32 *n)
{{
	return {credit};
}}
NR_INLINE nr_u32 nr_{name}_ssthresh(NR_HOOK)
{{
	return {ssthresh};
}}
NR_LAW({name}) = {{
    .name = \"{name}\", .code = \"{code}\", .about = \"bad on purpose\", .source = \"none\",
    .kind = NR_WINDOW, .credit = nr_{name}_credit, .ssthresh = nr_{name}_ssthresh,
}};
#endif
"
    );
    std::fs::write(&header, text).unwrap();
    user::load(&header, Checks::None).unwrap();
    fails(criteria, name);
}

/// The same of a control that there is.
pub fn fails(criteria: &[&str], control: &str) {
    let (law, stop) = (Law::new(control).unwrap(), AtomicBool::new(false));
    let runs = Runs::new(Form::Least, None, None, 0, &stop, &|_| ()).unwrap();
    for id in criteria {
        let criterion = CATALOGUE.iter().find(|one| one.id() == *id).unwrap();
        let outcome = criterion.evaluate(&law, &runs);
        let outcome = outcome.unwrap_or_else(|error| panic!("{id}: {error}"));
        let above = outcome.judged().any(|cell| cell.mean > criterion.limit);
        assert!(above, "{id}: {:?}", outcome.cells);
        for (_, _, place) in CELLS.iter().filter(|(law, of, _)| law == &control && of == id) {
            let mut cells = outcome.judged().filter(|cell| cell.place.starts_with(*place));
            let above = cells.any(|cell| cell.mean > criterion.limit);
            assert!(above, "{id}, {place}: {:?}", outcome.cells);
        }
    }
}

/// Every criterion that a law can fail is failed by one of them, or named as one that is not.
pub fn each_criterion_is_named_once() {
    for criterion in CATALOGUE.iter().filter(|one| matches!(one.make, Make::Runs(_))) {
        let id = criterion.id();
        let lists = [GREEDY, IDLE, STEEP, BBR3, NONE];
        let named = lists.iter().filter(|list| list.contains(&id.as_str())).count();
        assert_eq!(named, 1, "{id}");
    }
}
