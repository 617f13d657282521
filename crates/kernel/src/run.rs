//! Where the files are that last until the next boot.

use std::path::Path;

/// Older OpenWrt has the second alone.
const FOLDERS: [&str; 2] = ["/run", "/var/run"];

/// The first of `/run` and `/var/run` that is there; the first, if none is.
pub fn run_folder() -> &'static Path {
    first(FOLDERS)
}

fn first(folders: [&'static str; 2]) -> &'static Path {
    let folders = folders.map(Path::new);
    folders.into_iter().find(|folder| folder.is_dir()).unwrap_or(folders[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_first_is_not_it_is_the_second_and_without_both_the_first() {
        for (folders, expected) in [
            (["/proc", "/"], "/proc"),
            (["/proc/no-such", "/proc"], "/proc"),
            (["/proc/no-such", "/proc/none"], "/proc/no-such"),
        ] {
            assert_eq!(first(folders), Path::new(expected));
        }
    }
}
