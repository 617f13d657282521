//! Options of `narrows quic`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;
use narrows_transfer::{Local, Url};

/// The commands of `narrows quic`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the files of a folder over multipath QUIC until Ctrl-C
    #[command(after_help = "\
Examples:
  narrows quic serve ~/files                       prints the URL of its files
  narrows quic serve . --cc olia --listen [::]:4433

Key and certificate are made at each start; the URL has the certificate's fingerprint.
Whoever can reach the address and knows the name of a file can get it, without the URL too.")]
    Serve {
        /// Folder; nothing outside of it is served
        dir: PathBuf,
        /// Address and port
        #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:4433", value_parser = address)]
        listen: SocketAddr,
        /// Congestion control, where a client asks for no other
        #[arg(long, value_name = "NAME", default_value = "gcubic+xcorr")]
        cc: String,
    },
    /// Get a file over several paths, and show what each does and which share a bottleneck
    #[command(after_help = "\
Examples:
  narrows quic get 'quic://192.0.2.1:4433/FILE#FINGERPRINT'
  narrows quic get 'quic://192.0.2.1:4433/FILE#FINGERPRINT' --path wlan0 --path wwan0
  narrows quic get 'quic://192.0.2.1:4433/FILE#FINGERPRINT' --path 10.0.0.2 --path 10.1.0.2 --cc olia -o file
  narrows quic get https://192.0.2.1:4433/FILE --ca ca.pem    from a server of hq-interop

The file appears once it is complete and has the server's SHA-256, which hq-interop does not have.
Exit code: 0 it has, 1 the transfer failed, 2 wrong input, 130 Ctrl-C.")]
    Get(GetArgs),
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let address = text.parse().ok();
    address.ok_or_else(|| "expected an address and a port, such as 0.0.0.0:4433".into())
}

/// Options of `narrows quic get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// URL that the server printed, with the name of the file; or https://HOST[:PORT]/NAME of any server of
    /// hq-interop
    pub url: Url,
    /// A path from this local address, or from each address of this interface, whenever it is there; may be
    /// repeated [default: one path, from where the routes say]
    #[arg(long = "path", value_name = "ADDR|IFACE")]
    pub paths: Vec<Local>,
    /// Congestion control that the server, which sends, is asked to use [default: the server's]; with https
    /// that of what this end sends, mostly acknowledgements
    #[arg(long, value_name = "NAME")]
    pub cc: Option<String>,
    /// Authorities that a server of https is checked with, in PEM [default: this system's]
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate of a server of https, as of one that signs its own
    #[arg(short = 'k', long)]
    pub insecure: bool,
    /// File to write [default: the last part of the URL's name, in this folder]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
