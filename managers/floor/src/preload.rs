//! [`preload!`]: a heap becomes a shared object for `LD_PRELOAD`.

/// Exports the malloc family and the control contract over one heap, given as a constant expression, and says what
/// to do at start, at fork and at exit. A shell crate consists of this line.
#[macro_export]
macro_rules! preload {
    ($heap:ty) => {
        use core::ffi::{c_int, c_void};
        use $crate::{Control, EventFunction, Heap, RawCensus};

        static SHELL: $crate::Shell<$heap> = $crate::Shell::new(<$heap>::new());

        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo) -> ! {
            $crate::Message::new()
                .text(<$heap>::NAME)
                .text(": a defect in this manager; please report it")
                .abort()
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
            SHELL.malloc(bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free(block: *mut c_void) {
            // SAFETY: the C caller's word, here and in all that follow.
            unsafe { SHELL.free(block) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
            SHELL.calloc(count, bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
            // SAFETY: see `free`.
            unsafe { SHELL.realloc(block, bytes) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
            // SAFETY: see `free`.
            unsafe { SHELL.reallocarray(block, count, bytes) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn memalign(alignment: usize, bytes: usize) -> *mut c_void {
            SHELL.memalign(alignment, bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(
            place: *mut *mut c_void,
            alignment: usize,
            bytes: usize,
        ) -> c_int {
            // SAFETY: see `free`.
            unsafe { SHELL.posix_memalign(place, alignment, bytes) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
            SHELL.memalign(alignment, bytes)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn valloc(bytes: usize) -> *mut c_void {
            SHELL.valloc(bytes)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
            SHELL.pvalloc(bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
            // SAFETY: see `free`.
            unsafe { SHELL.malloc_usable_size(block) }
        }

        unsafe extern "C" fn census(census: *mut RawCensus) -> c_int {
            // SAFETY: see `free`.
            unsafe { SHELL.census(census) }
        }

        unsafe extern "C" fn listen(function: Option<EventFunction>, context: *mut c_void) -> c_int {
            SHELL.listen(function, context)
        }

        unsafe extern "C" fn check() -> c_int {
            SHELL.check()
        }

        static CONTROL: Control = Control {
            version: 1,
            size: size_of::<Control>() as u32,
            name: concat!(env!("CARGO_PKG_NAME"), "\0").as_ptr().cast(),
            manager_version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
            census: Some(census),
            collect: None,
            listen: Some(listen),
            check: Some(check),
        };

        #[unsafe(no_mangle)]
        pub extern "C" fn heaptoll_control_v1() -> *const Control {
            &CONTROL
        }

        fn grown(mapped_bytes: usize) {
            SHELL.grown(mapped_bytes);
        }

        extern "C" fn before_fork() {
            SHELL.before_fork();
        }

        extern "C" fn after_fork() {
            SHELL.after_fork();
        }

        extern "C" fn after_fork_in_child() {
            SHELL.after_fork_in_child();
        }

        extern "C" fn at_start() {
            // SAFETY: handlers that live as long as this object, which is never unloaded (see the linker's flags).
            let status = unsafe {
                $crate::libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child))
            };
            if status != 0 {
                $crate::Message::new().text(<$heap>::NAME).text(": no memory for the fork handlers").abort();
            }
            SHELL.start(grown);
        }

        extern "C" fn at_exit() {
            SHELL.finish();
        }

        #[used]
        #[unsafe(link_section = ".init_array")]
        static AT_START: extern "C" fn() = at_start;

        #[used]
        #[unsafe(link_section = ".fini_array")]
        static AT_EXIT: extern "C" fn() = at_exit;
    };
}
