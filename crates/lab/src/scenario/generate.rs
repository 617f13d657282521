//! Generators: topologies that are made rather than listed.

use narrows_laws::MAX_PATHS;

use super::Fault;
use super::file::{Bottlenecks, File, Generator};

/// Adds the generator's links and routes to those of `file`. What the file says about a link or
/// route of the same name goes before what the generator makes.
pub fn expand(file: &mut File) -> Result<(), Fault> {
    let (kind, common, bottlenecks) = match &file.generator {
        None => return Ok(()),
        Some(Generator::Disjoint(common)) => ("disjoint", common.clone(), common.paths),
        Some(Generator::Dumbbell(common)) => ("dumbbell", common.clone(), 1),
    };
    if !(1..=MAX_PATHS).contains(&common.paths) {
        return Err(Fault::new(
            ["generator", kind, "paths"],
            format!("expected 1 to {MAX_PATHS} paths, found {}", common.paths),
        ));
    }
    let Bottlenecks { rate, delay, queue, rtt, .. } = common;
    for n in 1..=bottlenecks {
        let link = file.links.entry(format!("bottleneck{n}")).or_default();
        if link.trace.is_none() {
            link.rate.get_or_insert(rate);
        }
        link.delay.get_or_insert(delay);
        link.queue.get_or_insert(queue);
    }
    for n in 1..=common.paths {
        let route = file.routes.entry(format!("path{n}")).or_default();
        route.links.get_or_insert_with(|| vec![format!("bottleneck{}", n.min(bottlenecks))]);
        route.rtt.get_or_insert(rtt);
    }
    Ok(())
}
