//! Which paths meet in one bottleneck.

use narrows_detect::Verdict;
use narrows_laws::detect::Finding;

/// Paths by their places, those that are alone each in a group of its own; who is undecided is in none.
pub type Groups = Vec<Vec<usize>>;

/// The groups of these paths: who shares a bottleneck with another, directly or by others, and who is
/// separate from all others.
pub fn groups(verdicts: &[Verdict], paths: &[usize]) -> Groups {
    if paths.len() < 2 {
        return Groups::new();
    }
    let place = |path: usize| paths.iter().position(|&of| of == path);
    let answers = verdicts.iter().filter_map(|verdict| {
        Some((place(verdict.flows.0)?, place(verdict.flows.1)?, verdict.answer))
    });
    let groups = Finding::new(paths.len(), answers).groups().into_iter();
    groups.map(|group| group.into_iter().map(|flow| paths[flow]).collect()).collect()
}

/// `#1+#2; alone: #3; undecided: #4`: groups of these paths, which are counted from 0.
pub fn numbered(groups: &Groups, paths: &[usize]) -> String {
    let list = |of: Vec<usize>, between: &str| {
        of.iter().map(|path| format!("#{}", path + 1)).collect::<Vec<_>>().join(between)
    };
    let mut parts: Vec<String> = groups
        .iter()
        .filter(|group| group.len() > 1)
        .map(|group| list(group.clone(), "+"))
        .collect();
    let alone: Vec<usize> =
        groups.iter().filter(|group| group.len() == 1).map(|group| group[0]).collect();
    if !alone.is_empty() {
        parts.push(format!("alone: {}", list(alone, ", ")));
    }
    let placed = |path: &usize| groups.iter().any(|group| group.contains(path));
    let others: Vec<usize> = paths.iter().copied().filter(|path| !placed(path)).collect();
    if !others.is_empty() {
        parts.push(format!("undecided: {}", list(others, ", ")));
    }
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_detect::{Answer, Why};

    fn verdict(flows: (usize, usize), answer: Answer) -> Verdict {
        let why = (answer == Answer::Unsure).then_some(Why::Few);
        Verdict { flows, answer, why, since_s: None, compared_s: None, evidence: None }
    }

    #[test]
    fn paths_that_meet_are_one_group_and_alone_is_who_meets_nobody() {
        let verdicts = [
            verdict((0, 1), Answer::Separate),
            verdict((0, 2), Answer::Shared),
            verdict((0, 3), Answer::Separate),
            verdict((1, 2), Answer::Separate),
            verdict((1, 3), Answer::Separate),
            verdict((2, 3), Answer::Unsure),
        ];
        let all = groups(&verdicts, &[0, 1, 2, 3]);
        assert_eq!(all, [vec![0, 2], vec![1], vec![3]], "0 is where 2 is");
        assert_eq!(groups(&verdicts, &[0, 1, 3]), [vec![0], vec![1], vec![3]]);
        assert_eq!(groups(&verdicts, &[1, 2, 3]), [vec![1]], "2 and 3 may share");
        assert_eq!(groups(&verdicts, &[2, 3]), Groups::new());
        assert_eq!(groups(&verdicts, &[2]), Groups::new(), "one path has nobody to meet");
    }

    #[test]
    fn groups_are_listed_by_the_numbers_of_their_paths() {
        assert_eq!(
            numbered(&vec![vec![0, 2], vec![1]], &[0, 1, 2, 3]),
            "#1+#3; alone: #2; undecided: #4"
        );
        assert_eq!(numbered(&Groups::new(), &[0, 1]), "undecided: #1, #2");
    }
}
