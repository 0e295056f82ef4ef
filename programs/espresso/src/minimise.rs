//! Calls espresso through its C driver, `minimise.c`.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice;

use crate::pla::Pla;

type Take = extern "C" fn(context: *mut c_void, term: *const u8);

unsafe extern "C" {
    safe fn heaptoll_most_bits() -> c_int;
    fn heaptoll_minimise(
        inputs: c_int,
        outputs: c_int,
        count: c_int,
        terms: *const u8,
        take: Take,
        context: *mut c_void,
    ) -> *const c_char;
}

/// The context passed through C to [`take`].
struct Sink<'a> {
    width: usize,
    use_term: &'a mut dyn FnMut(&[u8]),
}

extern "C" fn take(context: *mut c_void, term: *const u8) {
    // SAFETY: `context` is the sink that `minimise` passes for the duration of the call; no other code uses it
    // meanwhile.
    let sink = unsafe { &mut *context.cast::<Sink>() };
    // SAFETY: the driver hands out a term of as many characters as there are inputs and outputs, and leaves it alone
    // until this returns.
    let term = unsafe { slice::from_raw_parts(term, sink.width) };
    (sink.use_term)(term);
}

/// Minimises the function and calls `use_term` for each term of the cover, in espresso's order: its inputs as `0`, `1`
/// and `-`, then its outputs as `0` and `1`. The error is espresso's message.
pub fn minimise(pla: &Pla, mut use_term: impl FnMut(&[u8])) -> Result<(), String> {
    let width = pla.inputs.saturating_mul(2).saturating_add(pla.outputs);
    if c_int::try_from(width).is_err() || width as c_int > heaptoll_most_bits() {
        return Err(format!("{} inputs and {} outputs are too many for espresso", pla.inputs, pla.outputs));
    }
    let count = c_int::try_from(pla.terms.len()).map_err(|_| "too many terms for espresso".to_owned())?;
    let width = pla.inputs + pla.outputs;
    let terms: Vec<u8> =
        pla.terms.iter().flat_map(|(inputs, outputs)| inputs.iter().chain(outputs)).copied().collect();
    assert_eq!(terms.len(), width * pla.terms.len(), "the parser admits only terms that fit");
    let mut sink = Sink { width, use_term: &mut use_term };
    // SAFETY: `terms` holds `count` terms of `inputs` and `outputs` bytes, whose sum fits a cube; `take` gets the sink,
    // which outlives the call. Nothing else in this process uses espresso, which keeps its state in static variables.
    let problem = unsafe {
        heaptoll_minimise(
            pla.inputs as c_int,
            pla.outputs as c_int,
            count,
            terms.as_ptr(),
            take,
            (&raw mut sink).cast(),
        )
    };
    if problem.is_null() {
        return Ok(());
    }
    // SAFETY: an error is a string that ends in zero, static or in espresso's own buffer.
    Err(unsafe { CStr::from_ptr(problem) }.to_string_lossy().into_owned())
}
