//! [`preload!`]: a manager becomes a shared object for `LD_PRELOAD`.

/// Has the loader call one function when the object is loaded and another when it is unloaded, or the process ends by `exit`.
#[macro_export]
macro_rules! at_load_and_exit {
    ($start:path, $exit:path) => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static AT_START: extern "C" fn() = $start;

        #[used]
        #[unsafe(link_section = ".fini_array")]
        static AT_EXIT: extern "C" fn() = $exit;
    };
}

/// Exports C23's `free_sized` and `free_aligned_sized` over the `free` in scope: the sizes state what the block has.
#[macro_export]
macro_rules! export_sized_frees {
    ($free:path) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free_sized(block: *mut core::ffi::c_void, _bytes: usize) {
            // SAFETY: C requires of the program's call what it requires of one of `free`.
            unsafe { $free(block) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free_aligned_sized(
            block: *mut core::ffi::c_void,
            _alignment: usize,
            _bytes: usize,
        ) {
            // SAFETY: C requires of the program's call what it requires of one of `free`.
            unsafe { $free(block) }
        }
    };
}

/// Exports the malloc family, glibc's statistics of it and the control contract over one manager, and registers what
/// runs at start, at fork and at exit. A shell consists of this line: `preload!(Heap)` for a heap with a constant
/// `new()` in a [`crate::Shell`], `preload!(static MANAGER: Type = expression)` for any other [`crate::Manager`].
#[macro_export]
macro_rules! preload {
    ($heap:ty) => {
        $crate::preload!(static SHELL: $crate::Shell<$heap> = $crate::Shell::new(<$heap>::new()));
    };
    (static $name:ident: $manager:ty = $value:expr) => {
        use core::ffi::{c_int, c_void};
        use $crate::{Control, EventFunction, RawCensus};

        static $name: $manager = $value;

        #[panic_handler]
        fn panic(info: &core::panic::PanicInfo) -> ! {
            $crate::report_defect(<$manager as $crate::Manager>::NAME, info)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn malloc(bytes: usize) -> *mut c_void {
            $crate::family::malloc(&$name, bytes)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn heaptoll_malloc_pointer_free(bytes: usize) -> *mut c_void {
            $crate::family::malloc_pointer_free(&$name, bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn free(block: *mut c_void) {
            // SAFETY: the C caller keeps to the contract of `free`.
            unsafe { $crate::family::free(&$name, block) }
        }

        $crate::export_sized_frees!(free);

        #[unsafe(no_mangle)]
        pub extern "C" fn calloc(count: usize, bytes: usize) -> *mut c_void {
            $crate::family::calloc(&$name, count, bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
            // SAFETY: the C caller keeps to the contract of `realloc`.
            unsafe { $crate::family::realloc(&$name, block, bytes) }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void {
            // SAFETY: the C caller keeps to the contract of `reallocarray`.
            unsafe { $crate::family::reallocarray(&$name, block, count, bytes) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn memalign(alignment: usize, bytes: usize) -> *mut c_void {
            $crate::family::memalign(&$name, alignment, bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn posix_memalign(
            place: *mut *mut c_void,
            alignment: usize,
            bytes: usize,
        ) -> c_int {
            // SAFETY: the C caller keeps to the contract of `posix_memalign`.
            unsafe { $crate::family::posix_memalign(&$name, place, alignment, bytes) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void {
            $crate::family::memalign(&$name, alignment, bytes)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn valloc(bytes: usize) -> *mut c_void {
            $crate::family::valloc(&$name, bytes)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn pvalloc(bytes: usize) -> *mut c_void {
            $crate::family::pvalloc(&$name, bytes)
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
            // SAFETY: the C caller keeps to the contract of `malloc_usable_size`.
            unsafe { $crate::family::malloc_usable_size(&$name, block) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn mallinfo2() -> $crate::libc::mallinfo2 {
            $crate::statistics::mallinfo2(&$name)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn mallinfo() -> $crate::libc::mallinfo {
            $crate::statistics::mallinfo(&$name)
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn malloc_stats() {
            $crate::statistics::malloc_stats(&$name);
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut $crate::libc::FILE) -> c_int {
            // SAFETY: the C caller keeps to the contract of `malloc_info`.
            unsafe { $crate::statistics::malloc_info(&$name, options, stream) }
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn malloc_trim(_left: usize) -> c_int {
            $crate::statistics::malloc_trim()
        }

        #[unsafe(no_mangle)]
        pub extern "C" fn mallopt(parameter: c_int, _value: c_int) -> c_int {
            $crate::statistics::mallopt(parameter)
        }

        unsafe extern "C" fn census(census: *mut RawCensus) -> c_int {
            // SAFETY: null, or a census as `include/heaptoll.h` requires of the caller.
            match unsafe { census.as_mut() } {
                Some(census) if census.size as usize >= size_of::<RawCensus>() => {
                    // SAFETY: the size is checked; the caller has set the array, as `include/heaptoll.h` requires.
                    unsafe { $crate::Manager::census(&$name, census) }
                }
                _ => $crate::libc::EINVAL,
            }
        }

        unsafe extern "C" fn listen(function: Option<EventFunction>, context: *mut c_void) -> c_int {
            $crate::Manager::listen(&$name, function, context)
        }

        unsafe extern "C" fn check() -> c_int {
            $crate::Manager::check(&$name)
        }

        unsafe extern "C" fn collect() -> c_int {
            $crate::Manager::collect(&$name)
        }

        static CONTROL: Control = Control {
            version: 1,
            size: size_of::<Control>() as u32,
            name: concat!(env!("CARGO_CRATE_NAME"), "\0").as_ptr().cast(),
            manager_version: concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast(),
            census: Some(census),
            collect: Some(collect),
            listen: Some(listen),
            check: Some(check),
        };

        #[unsafe(no_mangle)]
        pub extern "C" fn heaptoll_control_v1() -> *const Control {
            &CONTROL
        }

        struct Forks;

        impl $crate::AtFork for Forks {
            fn before() {
                $crate::Manager::before_fork(&$name);
            }

            fn in_parent() {
                $crate::Manager::after_fork(&$name);
            }

            fn in_child() {
                $crate::Manager::after_fork_in_child(&$name);
            }
        }

        extern "C" fn at_start() {
            if $crate::at_fork::<Forks>() != 0 {
                $crate::Message::new().text(<$manager as $crate::Manager>::NAME).text(": no memory for the fork handlers").abort();
            }
            $crate::Manager::start(&$name);
        }

        extern "C" fn at_exit() {
            $crate::Manager::finish(&$name);
        }

        $crate::at_load_and_exit!(at_start, at_exit);
    };
}
