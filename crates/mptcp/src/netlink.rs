//! One question or order to the kernel by netlink, and its answers.

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_DUMP, NLM_F_DUMP_INTR,
    NLM_F_MULTIPART, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkBuffer, NlasIterator, parse_string,
};
use netlink_sys::{Socket, SocketAddr};
use std::io;

const HEADER: usize = 16;
/// How often a list is asked for that changes while it is read; the last one is taken as it is.
const TRIES: usize = 3;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// What an error's text is in.
const NLMSGERR_ATTR_MSG: u16 = 1;

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// The one object that the body names.
    One,
    /// All there are.
    All,
    /// That it is done.
    Done,
    /// That what there is has been replaced.
    Replaced,
}

/// Asks in the network namespace of this thread and hands the body of each answer to `each`.
///
/// # Errors
/// What the kernel answered, or an answer that `each` did not understand.
pub(crate) fn ask(
    protocol: isize,
    kind: u16,
    wanted: Wanted,
    body: &[u8],
    mut each: impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> io::Result<()> {
    let mut answers = Vec::new();
    for _ in 0..TRIES {
        answers.clear();
        if once(protocol, kind, wanted, body, &mut answers)? {
            break;
        }
    }
    answers.iter().try_for_each(|answer| each(answer)).map_err(malformed)
}

/// Asks once. False: what was listed changed meanwhile (NLM_F_DUMP_INTR), so some of it may be missing.
fn once(
    protocol: isize,
    kind: u16,
    wanted: Wanted,
    body: &[u8],
    answers: &mut Vec<Vec<u8>>,
) -> io::Result<bool> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    // An error says what is wrong, and does not repeat the question.
    socket.set_ext_ack(true)?;
    socket.set_cap_ack(true)?;

    let mut request = vec![0; HEADER + body.len()];
    let mut header = NetlinkBuffer::new(&mut request);
    header.set_length((HEADER + body.len()) as u32);
    header.set_message_type(kind);
    let how = match wanted {
        Wanted::One => 0,
        Wanted::All => NLM_F_DUMP,
        Wanted::Done => NLM_F_ACK,
        Wanted::Replaced => NLM_F_ACK | NLM_F_REPLACE,
    };
    header.set_flags(NLM_F_REQUEST | how);
    request[HEADER..].copy_from_slice(body);
    socket.send(&request, 0)?;

    // The kernel fills at most 32 kB at a time.
    let mut buffer = vec![0; 64 << 10];
    let mut whole = true;
    loop {
        let got = socket.recv(&mut &mut buffer[..], 0)?;
        let mut rest = &buffer[..got];
        while !rest.is_empty() {
            let message = NetlinkBuffer::new_checked(rest).map_err(malformed)?;
            let payload = message.payload();
            whole &= message.flags() & NLM_F_DUMP_INTR == 0;
            match message.message_type() {
                // Both begin with an error number, negative or 0.
                NLMSG_ERROR | NLMSG_DONE => {
                    let errno = payload.get(..4).map(|n| i32::from_ne_bytes(n.try_into().unwrap()));
                    return match errno {
                        Some(errno) if errno != 0 => {
                            let explained = message.flags() & NLM_F_ACK_TLVS != 0;
                            Err(error(-errno, explained.then(|| text(payload)).flatten()))
                        }
                        _ => Ok(whole),
                    };
                }
                _ => answers.push(payload.to_vec()),
            }
            if message.flags() & NLM_F_MULTIPART == 0 {
                return Ok(whole);
            }
            rest = &rest[rest.len().min((message.length() as usize).next_multiple_of(4))..];
        }
    }
}

/// The kernel's message for an error.
fn text(payload: &[u8]) -> Option<String> {
    // Behind the number stands the header of what it answers.
    let attributes = NlasIterator::new(payload.get(4 + HEADER..)?);
    let text = attributes.flatten().find(|attribute| attribute.kind() == NLMSGERR_ATTR_MSG)?;
    parse_string(text.value()).ok()
}

fn error(errno: i32, text: Option<String>) -> io::Error {
    let error = io::Error::from_raw_os_error(errno);
    match text {
        Some(text) => io::Error::new(error.kind(), format!("{text} ({error})")),
        None => error,
    }
}

/// The bytes of a message or attribute.
pub(crate) fn bytes(part: &impl Emitable) -> Vec<u8> {
    let mut bytes = vec![0; part.buffer_len()];
    part.emit(&mut bytes);
    bytes
}

/// The bytes of an attribute that no library has a name for.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    bytes(&DefaultNla::new(kind, value.to_vec()))
}

fn malformed(error: DecodeError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}
