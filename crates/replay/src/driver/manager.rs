//! The object that serves malloc in this process.

use std::ffi::{CStr, c_char, c_int, c_void};

/// What follows version and size in `struct heaptoll_control` (include/heaptoll.h).
#[repr(C)]
struct Control {
    version: u32,
    size: u32,
    name: *const c_char,
    manager_version: *const c_char,
    census: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    collect: Option<unsafe extern "C" fn() -> c_int>,
}

/// `malloc_usable_size`.
pub type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;

/// The object that `malloc` comes from.
pub struct Identity {
    /// Its path, as the loader has it.
    pub object: String,
    handle: *mut c_void,
}

impl Identity {
    /// Looks up `malloc` with the loader.
    pub fn of_malloc() -> Result<Identity, String> {
        // SAFETY: names are NUL-terminated; dladdr fills in the struct, whose name lives as long as the object, which
        // is never unloaded here.
        unsafe {
            let malloc = libc::dlsym(libc::RTLD_DEFAULT, c"malloc".as_ptr());
            let mut found: libc::Dl_info = std::mem::zeroed();
            if malloc.is_null() || libc::dladdr(malloc, &mut found) == 0 || found.dli_fname.is_null() {
                return Err("the loader does not report which object malloc comes from".into());
            }
            let object = CStr::from_ptr(found.dli_fname).to_string_lossy().into_owned();
            let handle = libc::dlopen(found.dli_fname, libc::RTLD_NOLOAD | libc::RTLD_NOW);
            Ok(Identity { object, handle })
        }
    }

    /// Its `malloc_usable_size`; none where it exports none, and the one found is another object's.
    pub fn usable_size(&self) -> Option<UsableSize> {
        let found = self.symbol(c"malloc_usable_size")?;
        // SAFETY: dladdr fills in the struct, whose name lives as long as the object, which is never unloaded here.
        let object = unsafe {
            let mut info: libc::Dl_info = std::mem::zeroed();
            if libc::dladdr(found, &mut info) == 0 || info.dli_fname.is_null() {
                return None;
            }
            CStr::from_ptr(info.dli_fname).to_string_lossy()
        };
        // SAFETY: an exported function of this name is malloc_usable_size(3), which takes a block and returns a size.
        (object == self.object).then(|| unsafe { std::mem::transmute::<*mut c_void, UsableSize>(found) })
    }

    fn symbol(&self, name: &CStr) -> Option<*mut c_void> {
        let found = if self.handle.is_null() {
            std::ptr::null_mut()
        } else {
            // SAFETY: `of_malloc` took the handle with dlopen and nothing closes it; `name` is a C string.
            unsafe { libc::dlsym(self.handle, name.as_ptr()) }
        };
        (!found.is_null()).then_some(found)
    }

    /// That of this object, or of one after it: a layer forwards to a manager that may have it.
    fn symbol_of_stack(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: `name` is a C string; RTLD_DEFAULT is always a valid handle.
        let anywhere = || unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        self.symbol(name).or_else(|| Some(anywhere()).filter(|found| !found.is_null()))
    }

    /// How it is known that the manager reclaims by itself; `None` when nothing shows it. Makes it collect.
    pub fn collects(&self) -> Option<String> {
        if let Some(function) = self.symbol_of_stack(c"heaptoll_control_v1") {
            // SAFETY: the contract of include/heaptoll.h: the function takes nothing and gives a struct that lives as
            // long as the object, with at least `size` bytes.
            let collect = unsafe {
                let function: unsafe extern "C" fn() -> *const Control = std::mem::transmute(function);
                let control = function();
                let whole = !control.is_null() && (*control).size as usize >= size_of::<Control>();
                if whole { (*control).collect } else { None }
            };
            // SAFETY: include/heaptoll.h lets any thread of the program call `collect`; this one is an ordinary thread.
            let collected = collect.is_some_and(|collect| unsafe { collect() } == 0);
            if collected {
                return Some("it collected on request".into());
            }
        }
        self.symbol_of_stack(c"GC_gcollect").map(|_| "it has the Boehm collector's GC_gcollect".into())
    }

    /// Lets the null manager drop contents.
    pub fn forget(&self) {
        if let Some(function) = self.symbol(c"heaptoll_null_forget") {
            // SAFETY: the null manager's own function, `void heaptoll_null_forget(int)`.
            unsafe {
                let function: unsafe extern "C" fn(c_int) = std::mem::transmute(function);
                function(1);
            }
        }
    }
}
