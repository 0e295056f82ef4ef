//! Unwind rules from the `.eh_frame` tables that every object contains for exceptions and debuggers, with or without
//! frame pointers (System V ABI, AMD64 supplement, section 4.2.4; DWARF 5, section 6.4). `gimli` reads the tables; here
//! its instructions are evaluated for the three things that a walk needs: the CFA, the return address and the frame
//! pointer.
//!
//! Which object an address lies in is found by [`loaded`](crate::loaded).

use gimli::{
    BaseAddresses, CallFrameInstruction, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry,
    NativeEndian, Operation, Register, UnwindExpression, UnwindSection, X86_64,
};

use crate::loaded;
use crate::object::Object;
use crate::rule::{Base, CfaRule, Rule};

type Bytes = EndianSlice<'static, NativeEndian>;

/// The rule for an address in the code.
pub fn rule(address: usize) -> Rule {
    loaded::object(address)
        .and_then(|object| from_tables(object, address).ok().flatten())
        .unwrap_or(Rule::UNKNOWN)
}

/// Memory of an object, from an address to its end. To the dynamic linker the segments of an object with holes are
/// objects of their own, all with the same tables.
fn bytes(object: &Object, start: usize) -> Option<Bytes> {
    let within = |part: &Object| (part.start..part.end).contains(&start) && part.header == object.header;
    let part = if within(object) { *object } else { loaded::object(start).filter(within)? };
    // SAFETY: the dynamic linker maps the part's whole range; the tables lie in a segment that is not written to, and
    // reads stay within tables. The object stays loaded: one of its functions is being executed.
    let slice = unsafe { core::slice::from_raw_parts(start as *const u8, part.end - start) };
    Some(EndianSlice::new(slice, NativeEndian))
}

fn from_tables(object: Object, address: usize) -> gimli::Result<Option<Rule>> {
    let Some(header_bytes) = bytes(&object, object.header) else { return Ok(None) };
    let bases = BaseAddresses::default().set_eh_frame_hdr(object.header as u64);
    let header = EhFrameHdr::from(header_bytes).parse(&bases, 8)?;
    let section = header.eh_frame_ptr().direct()?;
    let (Some(table), Some(section_bytes)) = (header.table(), bytes(&object, section as usize)) else {
        return Ok(None);
    };
    let bases = bases.set_eh_frame(section);
    let section = EhFrame::from(section_bytes);
    let place = table.lookup(address as u64, &bases)?;
    if place.direct()? < header.eh_frame_ptr().direct()? {
        return Ok(None);
    }
    let entry = section.fde_from_offset(&bases, table.pointer_to_offset(place)?, EhFrame::cie_from_offset)?;
    if !entry.contains(address as u64) {
        return Ok(None);
    }
    if entry.cie().is_signal_trampoline() {
        return Ok(Some(Rule::new(CfaRule::Signal, Base::Same)));
    }
    Row::at(&section, &bases, &entry, address as u64).map(|row| row.map(|row| row.rule()))
}

/// Where a register's former value is, as far as rules can express it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saved {
    Same,
    Undefined,
    /// At this many bytes from the CFA.
    FromCfa(i64),
    /// In the word that the frame pointer points to.
    Pointed,
    Otherwise,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cfa {
    Offset(Register, i64),
    /// In the word at this many bytes from the frame pointer.
    Indirect(i64),
    Otherwise,
}

/// One row of the table that the instructions make.
#[derive(Clone, Copy)]
struct Row {
    cfa: Cfa,
    base: Saved,
    back: Saved,
}

/// How deep compilers push rows: once. Deeper tables are not evaluated.
const PUSHED: usize = 4;

impl Row {
    /// The row for an address; `None` when the instructions cannot be evaluated here.
    fn at(
        section: &EhFrame<Bytes>,
        bases: &BaseAddresses,
        entry: &FrameDescriptionEntry<Bytes>,
        address: u64,
    ) -> gimli::Result<Option<Row>> {
        let cie = entry.cie();
        let mut row = Row { cfa: Cfa::Otherwise, base: Saved::Same, back: Saved::Otherwise };
        let mut instructions = cie.instructions(section, bases);
        while let Some(instruction) = instructions.next()? {
            row.follow(section, cie.data_alignment_factor(), instruction);
        }
        let initial = row;
        let (mut pushed, mut depth) = ([row; PUSHED], 0);
        let mut place = entry.initial_address();
        let mut instructions = entry.instructions(section, bases);
        while let Some(instruction) = instructions.next()? {
            match instruction {
                CallFrameInstruction::AdvanceLoc { delta } => {
                    place = place.wrapping_add(u64::from(delta).wrapping_mul(cie.code_alignment_factor()));
                }
                CallFrameInstruction::SetLoc { address } => place = address,
                CallFrameInstruction::RememberState if depth < PUSHED => {
                    pushed[depth] = row;
                    depth += 1;
                }
                CallFrameInstruction::RememberState => return Ok(None),
                CallFrameInstruction::RestoreState if depth > 0 => {
                    depth -= 1;
                    row = pushed[depth];
                }
                CallFrameInstruction::RestoreState => return Ok(None),
                CallFrameInstruction::Restore { register: X86_64::RBP } => row.base = initial.base,
                CallFrameInstruction::Restore { register: X86_64::RA } => row.back = initial.back,
                instruction => row.follow(section, cie.data_alignment_factor(), instruction),
            }
            if place > address {
                break;
            }
        }
        Ok(Some(row))
    }

    fn follow(&mut self, section: &EhFrame<Bytes>, factor: i64, instruction: CallFrameInstruction<usize>) {
        use CallFrameInstruction as Do;
        let offset = |cfa: Cfa, offset: i64| match cfa {
            Cfa::Offset(register, _) => Cfa::Offset(register, offset),
            _ => Cfa::Otherwise,
        };
        match instruction {
            Do::DefCfa { register, offset } => self.cfa = Cfa::Offset(register, offset as i64),
            Do::DefCfaSf { register, factored_offset } => {
                self.cfa = Cfa::Offset(register, factored_offset.wrapping_mul(factor));
            }
            Do::DefCfaRegister { register } => {
                self.cfa = match self.cfa {
                    Cfa::Offset(_, offset) => Cfa::Offset(register, offset),
                    _ => Cfa::Otherwise,
                }
            }
            Do::DefCfaOffset { offset: bytes } => self.cfa = offset(self.cfa, bytes as i64),
            Do::DefCfaOffsetSf { factored_offset } => {
                self.cfa = offset(self.cfa, factored_offset.wrapping_mul(factor));
            }
            Do::DefCfaExpression { expression } => self.cfa = indirect(section, expression),
            Do::Undefined { register } => self.save(register, Saved::Undefined),
            Do::SameValue { register } => self.save(register, Saved::Same),
            Do::Offset { register, factored_offset } => {
                self.save(register, Saved::FromCfa((factored_offset as i64).wrapping_mul(factor)));
            }
            Do::OffsetExtendedSf { register, factored_offset } => {
                self.save(register, Saved::FromCfa(factored_offset.wrapping_mul(factor)));
            }
            Do::Expression { register, expression } => {
                let saved =
                    if points_to_base(section, expression) { Saved::Pointed } else { Saved::Otherwise };
                self.save(register, saved);
            }
            Do::ValOffset { register, .. }
            | Do::ValOffsetSf { register, .. }
            | Do::Register { dest_register: register, .. } => {
                self.save(register, Saved::Otherwise);
            }
            Do::ValExpression { register, .. } => self.save(register, Saved::Otherwise),
            _ => {}
        }
    }

    fn save(&mut self, register: Register, saved: Saved) {
        match register {
            X86_64::RBP => self.base = saved,
            X86_64::RA => self.back = saved,
            _ => {}
        }
    }

    fn rule(self) -> Rule {
        if self.back == Saved::Undefined {
            return Rule::new(CfaRule::Outermost, Base::Same);
        }
        if self.back != Saved::FromCfa(-8) {
            return Rule::UNKNOWN;
        }
        let cfa_rule = match self.cfa {
            Cfa::Offset(X86_64::RSP, bytes) if bytes > 0 => CfaRule::Stack(bytes as usize),
            Cfa::Offset(X86_64::RBP, bytes) => CfaRule::Base(bytes as isize),
            Cfa::Indirect(bytes) => CfaRule::Indirect(bytes as isize),
            Cfa::Offset(..) | Cfa::Otherwise => CfaRule::Unknown,
        };
        let base = match self.base {
            Saved::Same | Saved::Undefined => Base::Same,
            Saved::FromCfa(bytes) if bytes < 0 => Base::Below(bytes.unsigned_abs() as usize),
            Saved::Pointed => Base::Pointed,
            Saved::FromCfa(_) | Saved::Otherwise => return Rule::UNKNOWN,
        };
        Rule::new(cfa_rule, base)
    }
}

/// The first two operations of an expression, when there are no more than those.
fn operations(
    section: &EhFrame<Bytes>,
    expression: UnwindExpression<usize>,
) -> Option<(Operation<Bytes>, Option<Operation<Bytes>>)> {
    let encoding = gimli::Encoding { address_size: 8, format: gimli::Format::Dwarf32, version: 4 };
    let mut operations = expression.get(section).ok()?.operations(encoding);
    let first = operations.next().ok()??;
    let second = operations.next().ok()?;
    operations.next().ok()?.is_none().then_some((first, second))
}

/// `DW_OP_breg6 n; DW_OP_deref`: gcc's expression for functions that align their frame.
fn indirect(section: &EhFrame<Bytes>, expression: UnwindExpression<usize>) -> Cfa {
    match operations(section, expression) {
        Some((
            Operation::RegisterOffset { register: X86_64::RBP, offset, .. },
            Some(Operation::Deref { size: 8, space: false, .. }),
        )) => Cfa::Indirect(offset),
        _ => Cfa::Otherwise,
    }
}

/// `DW_OP_breg6 0`.
fn points_to_base(section: &EhFrame<Bytes>, expression: UnwindExpression<usize>) -> bool {
    matches!(
        operations(section, expression),
        Some((Operation::RegisterOffset { register: X86_64::RBP, offset: 0, .. }, None))
    )
}
