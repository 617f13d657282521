//! Options of `narrows law`.

use std::path::PathBuf;

use clap::Subcommand;

/// The commands of `narrows law`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  narrows law new mine.h                      a law that works, with comments, to start from
  narrows law check mine.h                    does it keep what every law must
  narrows compare sbd/nsb-2 sbd/sb-2 --law ./mine.h --cc mine,olia --seeds 5

docs/write-a-law.md goes from the idea to the kernel.")]
pub enum Command {
    /// Write a commented law to start from; it is called as the file is
    New {
        /// The header to write: lower case letters, digits and _, then .h
        file: PathBuf,
    },
    /// Compile a law with warnings and UBSan and check what every law must keep; as root also in the
    /// kernel: its verifier, and the same windows bit by bit
    #[command(after_help = "\
What fails is shown with the smallest case that was found: events by the names of struct nr_event.

Exit code: 0 all is kept, 1 something is not, 2 it is no law that can be compiled here.")]
    Check {
        /// The header of the law
        file: PathBuf,
    },
}
