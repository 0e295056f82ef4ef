//! What the C library keeps for itself: threads' vectors, buffers of streams, locales, tables of names. It returns none of
//! it, so no program can free it. What it returns (`strdup`, `fopen`, `getaddrinfo`, `newlocale`) is the program's.

use crate::frame::{WholeFrame, file_name};
use crate::own::{LIBRARIES, allocates};
use crate::short;

/// The C library's functions that allocate for the library, without the underscores before their names.
const FUNCTIONS: [&str; 76] = [
    // Streams.
    "IO_file_doallocate",
    "IO_wfile_doallocate",
    "IO_default_doallocate",
    // Locales, character sets and messages.
    "setlocale",
    "nl_find_locale",
    "nl_load_locale",
    "nl_load_locale_from_archive",
    "nl_intern_locale_data",
    "nl_make_l10nflist",
    "wcsmbs_load_conv",
    "gconv_find_transform",
    "gconv_find_shlib",
    "gconv_get_path",
    "gconv_load_cache",
    "gconv_load_conf",
    "gconv_lookup_cache",
    "bindtextdomain",
    "bind_textdomain_codeset",
    "textdomain",
    "dcigettext",
    "nl_find_domain",
    "nl_load_domain",
    "nl_find_msg",
    // What is registered, and threads.
    "new_exitfn",
    "cxa_thread_atexit_impl",
    "register_atfork",
    "pthread_setspecific",
    "tss_set",
    "pthread_create",
    "pthread_create_2_1",
    "pthread_key_create",
    "unwind_link_get",
    "backtrace",
    // Environment and time.
    "add_to_environ",
    "setenv",
    "putenv",
    "tzset",
    "tzset_internal",
    "tzfile_read",
    "tzstring",
    "tzstring_len",
    "localtime",
    "localtime_r",
    "mktime",
    "strftime",
    "tz_convert",
    // Texts that the next call replaces.
    "strerror",
    "strerror_l",
    "strsignal",
    "dlerror",
    "dlerror_run",
    "ttyname",
    "getpass",
    "getmntent",
    // Databases of names: the buffers of functions that return static data, and what the library reads for itself.
    "getpwnam",
    "getpwuid",
    "getpwent",
    "getgrnam",
    "getgrgid",
    "getgrent",
    "getspnam",
    "gethostbyname",
    "gethostbyname2",
    "gethostbyaddr",
    "getservbyname",
    "getservbyport",
    "getprotobyname",
    "getprotobynumber",
    "getnetbyname",
    "gethostent",
    "getservent",
    "getprotoent",
    "gaiconf_init",
    "check_pf",
    "res_vinit",
    "res_init",
];
/// Beginnings of names of such functions.
const FAMILIES: [&str; 6] =
    ["dl_", "nss_module_", "nss_database_", "nss_action_", "resolv_conf_", "resolv_context_"];
/// Beginnings of file names of the C library, and of the dynamic linker where it is another file.
const C_LIBRARY: [&str; 4] = ["libc.so", "libc-2.", "libpthread", "ld-musl"];
const LINKER: [&str; 3] = ["ld-linux", "ld-2.", "ld64.so"];

/// The function that allocated for the C library itself, of the innermost frames of a stack; none where the block is the
/// program's. The innermost frames decide: the linker's are all its own, and so is what a library of the language
/// allocates when it is loaded.
pub fn kept_by(stack: &[WholeFrame]) -> Option<String> {
    let first = stack.iter().position(|frame| !allocates(&short(&frame.function)))?;
    let inner = &stack[first..];
    if let Some(found) = inner.iter().take_while(|frame| is_in(frame, &LINKER)).last() {
        return Some(name(found));
    }
    let of_library = inner.iter().take_while(|frame| is_of_c_library(frame));
    if let Some(found) = of_library.filter(|frame| keeps(&frame.function)).last() {
        return Some(name(found));
    }
    let of_language = inner.iter().take_while(|frame| is_in(frame, &LIBRARIES) && !is_in(frame, &LINKER));
    let loader = inner.get(of_language.count())?;
    is_in(loader, &LINKER).then(|| file_name(&inner[0].object).to_owned())
}

fn name(frame: &WholeFrame) -> String {
    let function = frame.function.split('@').next().unwrap_or_default();
    if function.is_empty() { file_name(&frame.object).to_owned() } else { function.to_owned() }
}

fn is_in(frame: &WholeFrame, files: &[&str]) -> bool {
    let file = file_name(&frame.object);
    files.iter().any(|start| file.starts_with(start))
}

/// Whether a frame is the C library's. In a static program only names that are reserved for it show that.
fn is_of_c_library(frame: &WholeFrame) -> bool {
    is_in(frame, &C_LIBRARY)
        || is_in(frame, &LINKER)
        || (frame.function.starts_with('_') && !file_name(&frame.object).contains(".so"))
}

fn keeps(function: &str) -> bool {
    let bare = function.split('@').next().unwrap_or_default().trim_start_matches('_');
    let bare = bare.strip_prefix("GI_").unwrap_or(bare).trim_start_matches('_');
    FUNCTIONS.contains(&bare) || FAMILIES.iter().any(|start| bare.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    const LD: &str = "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2";
    const CXX: &str = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30";

    fn kept(frames: &[(&str, &str)]) -> Option<String> {
        let frame = |(function, object): &(&str, &str)| WholeFrame {
            function: (*function).into(),
            object: (*object).into(),
            ..WholeFrame::default()
        };
        kept_by(&frames.iter().map(frame).collect::<Vec<_>>())
    }

    #[test]
    fn what_the_library_allocates_for_itself_is_its_own_and_what_it_returns_is_not() {
        let main = ("main", "/bin/x");
        for (own, caller) in [
            (
                vec![
                    ("calloc", LD),
                    ("allocate_dtv", LD),
                    ("_dl_allocate_tls", LD),
                    ("pthread_create@@GLIBC_2.34", LIBC),
                    main,
                ],
                "_dl_allocate_tls",
            ),
            (vec![("", LD), ("", LD), main], "ld-linux-x86-64.so.2"),
            (
                vec![("_IO_file_doallocate", LIBC), ("_IO_doallocbuf", LIBC), ("puts", LIBC), main],
                "_IO_file_doallocate",
            ),
            (vec![("strdup", LIBC), ("setlocale", LIBC), main], "setlocale"),
            (vec![("malloc", "/lib/libjemalloc.so.2"), ("__GI_setenv", LIBC), main], "__GI_setenv"),
            (
                vec![("_dl_allocate_tls", "/bin/static"), ("pthread_create", "/bin/static"), main],
                "_dl_allocate_tls",
            ),
            (vec![("", CXX), ("call_init", LD), ("_dl_init", LD)], "libstdc++.so.6.0.30"),
        ] {
            assert_eq!(kept(&own).as_deref(), Some(caller), "{own:?}");
        }
        for program in [
            vec![("strdup", LIBC), main],
            vec![("__fopen_internal", LIBC), ("fopen", LIBC), main],
            vec![("generate_addrinfo", LIBC), ("getaddrinfo", LIBC), main],
            vec![("newlocale", LIBC), main],
            vec![("operator new(unsigned long)", CXX), main],
            vec![("operator new(unsigned long)", CXX), ("f()", "/bin/libmine.so"), ("call_init", LD)],
            vec![("init", "/bin/libmine.so"), ("call_init", LD), ("_dl_init", LD)],
            // The program's own comparison is called by the library, and its own function has the library's name.
            vec![("compare", "/bin/x"), ("setlocale", LIBC), main],
            vec![("setlocale", "/bin/x"), main],
            vec![main],
            vec![],
        ] {
            assert_eq!(kept(&program), None, "{program:?}");
        }
    }
}
