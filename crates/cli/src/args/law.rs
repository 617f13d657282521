//! Options of `narrows law`.

use std::path::PathBuf;

use clap::Subcommand;

/// The commands of `narrows law`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  narrows law new mine.h                      write a working law with comments
  narrows law check mine.h                    test the properties that every law must have
  narrows compare sbd/nsb-2 sbd/sb-2 --law ./mine.h --cc mine,olia --seeds 5

Tutorial: docs/guide/write-a-law.md.")]
pub enum Command {
    /// Write a commented template of a law, named after the file
    New {
        /// Header to write: lower case letters, digits and _, then .h
        file: PathBuf,
    },
    /// Compile a law with warnings and UBSan and test the properties that every law must have; as
    /// root also with the kernel's verifier, and by replay in the kernel
    #[command(after_help = "\
A failure is shown with the smallest case found, in the names of struct nr_event.

Exit code: 0 all checks passed, 1 a check failed, 2 the file is no law or cannot be compiled.")]
    Check {
        /// Header of the law
        file: PathBuf,
    },
}
