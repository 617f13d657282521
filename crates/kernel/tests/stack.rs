//! Functions that call each other share 512 bytes of stack, which an old kernel counts more strictly
//! than this one: each frame is rounded up to 32 bytes (check_max_stack_depth() of Linux 6.1).

use std::collections::{BTreeMap, BTreeSet};

use narrows_kernel::object::of_control;
use narrows_laws::{Control, Detector, Law};
use object::{Object, ObjectSection, ObjectSymbol, RelocationTarget, SymbolKind};

const MAX_BPF_STACK: u32 = 512;
const FRAME: u32 = 32;
const MAX_CALL_FRAMES: usize = 8;

const LDX: u8 = 0x01;
const ST: u8 = 0x02;
const STX: u8 = 0x03;
const LD_IMM64: u8 = 0x18;
const ADD64_IMM: u8 = 0x07;
const MOV64_REG: u8 = 0xbf;
const FRAME_POINTER: u8 = 10;
const CALL: u8 = 0x85;
const OF_OWN: u8 = 1; // BPF_PSEUDO_CALL

/// A function: the bytes below its frame pointer that it uses, and what it calls.
struct Function {
    name: String,
    stack: u32,
    calls: BTreeSet<Place>,
}

/// Section and offset.
type Place = (usize, u64);

/// Bytes that a function's code uses of the stack.
fn stack(code: &[u8]) -> u32 {
    let mut deepest = 0;
    let mut of_frame = [false; 16]; // registers that hold the frame pointer
    let mut instructions = code.chunks_exact(8);
    while let Some(insn) = instructions.next() {
        let (op, dst, src) = (insn[0], insn[1] & 15, insn[1] >> 4);
        let off = i16::from_le_bytes([insn[2], insn[3]]);
        let imm = i32::from_le_bytes([insn[4], insn[5], insn[6], insn[7]]);
        let base = match op & 7 {
            LDX => src,
            ST | STX => dst,
            _ => 0,
        };
        if base == FRAME_POINTER {
            deepest = deepest.max(-i32::from(off));
        }
        if op == ADD64_IMM && of_frame[usize::from(dst)] {
            deepest = deepest.max(-imm);
        }
        if !matches!(op & 7, ST | STX) {
            of_frame[usize::from(dst)] = op == MOV64_REG && src == FRAME_POINTER;
        }
        if op == LD_IMM64 {
            instructions.next();
        }
    }
    u32::try_from(deepest).unwrap()
}

fn functions(bytes: &[u8]) -> BTreeMap<Place, Function> {
    let file = object::File::parse(bytes).unwrap();
    let mut all = BTreeMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        let section = file.section_by_index(symbol.section_index().unwrap()).unwrap();
        let (from, to) = (symbol.address(), symbol.address() + symbol.size());
        let data = section.data().unwrap();
        let code = &data[usize::try_from(from).unwrap()..usize::try_from(to).unwrap()];
        let relocations: BTreeMap<u64, _> = section.relocations().collect();
        let calls = code.chunks_exact(8).zip((from..).step_by(8)).filter_map(|(insn, at)| {
            if insn[0] != CALL || insn[1] >> 4 != OF_OWN {
                return None;
            }
            // In instructions after the next: of the section that a relocation names for a static
            // function elsewhere, else from here.
            let imm = i64::from(i32::from_le_bytes([insn[4], insn[5], insn[6], insn[7]]));
            let after = |base: u64| base.checked_add_signed((imm + 1) * 8).unwrap();
            let Some(relocation) = relocations.get(&at) else {
                return Some((section.index().0, after(at)));
            };
            let RelocationTarget::Symbol(target) = relocation.target() else { panic!("{at}") };
            let target = file.symbol_by_index(target).unwrap();
            let place = match target.kind() {
                SymbolKind::Section => after(0),
                _ => target.address(),
            };
            // What is in no section is the kernel's.
            Some((target.section_index()?.0, place))
        });
        let function = Function {
            name: symbol.name().unwrap().to_owned(),
            stack: stack(code),
            calls: calls.collect(),
        };
        all.insert((section.index().0, from), function);
    }
    all
}

/// The deepest chain of calls from `place`: its bytes, and its functions with theirs.
fn deepest(all: &BTreeMap<Place, Function>, place: Place) -> (u32, Vec<String>) {
    let function = all.get(&place).unwrap_or_else(|| panic!("no function at {place:?}"));
    let chains = function.calls.iter().map(|&to| deepest(all, to));
    let (below, chain) = chains.max().unwrap_or_default();
    let own = format!("{} {}", function.name, function.stack);
    let frame = function.stack.max(1).next_multiple_of(FRAME);
    (frame + below, [vec![own], chain].concat())
}

#[test]
fn each_chain_of_calls_fits_into_the_stack_of_old_kernels() {
    for law in Law::all() {
        for detector in [Detector::DISJOINT, Detector::XCORR] {
            let control = Control { detector, ..Control::of(law) };
            let all = functions(of_control(control));
            let (bytes, chain) = all.keys().map(|&place| deepest(&all, place)).max().unwrap();
            println!("{control}: {bytes} bytes {chain:?}");
            assert!(chain.len() > 2, "{control}: no calls: {chain:?}");
            assert!(chain.len() <= MAX_CALL_FRAMES, "{control}: {chain:?}");
            assert!(bytes <= MAX_BPF_STACK, "{control}: {bytes} bytes: {chain:?}");
        }
    }
}
