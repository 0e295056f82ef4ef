//! What a program does beyond its own memory that a copy of it running at the same time would meet: files it writes,
//! addresses it binds, locks, names of the system, its place with the scheduler, and waiting by the clock.
//!
//! The tracer reads a call's arguments when the filter ([`crate::filter`]) stops it, before the kernel carries it out.
//! Files that the run itself makes where nothing was (`O_EXCL`, a new folder) are kept apart: whether they belong to it
//! alone shows in a second run, which makes them under other names then.

use std::collections::BTreeSet;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Most effects that are kept of a run.
const KEPT: usize = 64;
/// Most files that are kept of those that a run makes.
const MADE: usize = 1024;

/// In the place of a path that the tracer cannot read.
const UNREADABLE: &str = "a file whose name could not be read";

/// One effect.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Effect {
    /// It opens a file for writing, makes, moves or removes it.
    Writes(PathBuf),
    /// It locks a file.
    Locks(PathBuf),
    /// It binds a socket to this address.
    Binds(String),
    /// It connects to this address.
    Connects(String),
    /// It uses an object of the whole system, or works past its system calls, by this call.
    Shares(String),
    /// It changes how or where the kernel runs it, by this call.
    Schedules(String),
    /// It waits for a time, or sets a timer, by this call.
    Waits(String),
    /// It has more than one thread.
    Threads,
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Effect::Writes(path) => write!(f, "it writes {}", path.display()),
            Effect::Locks(path) => write!(f, "it locks {}", path.display()),
            Effect::Binds(address) => write!(f, "it binds {address}"),
            Effect::Connects(address) => write!(f, "it connects to {address}"),
            Effect::Shares(call) => write!(f, "it uses something that other processes share ({call})"),
            Effect::Schedules(call) => write!(f, "it changes its own scheduling ({call})"),
            Effect::Waits(call) => write!(f, "it waits for a time ({call})"),
            Effect::Threads => write!(f, "it has several threads"),
        }
    }
}

/// What a run did beyond its own memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watched {
    /// Effects, in order.
    pub effects: Vec<Effect>,
    /// Files and folders that it made where nothing was, in order.
    pub made: Vec<PathBuf>,
}

/// What was seen of one run.
#[derive(Debug, Default)]
pub struct Effects {
    seen: BTreeSet<Effect>,
    /// Files and folders that the run made where nothing was.
    made: BTreeSet<PathBuf>,
    /// Folders of heaptoll's, in which the run's effects do not count.
    exempt: Vec<PathBuf>,
}

/// A stopped call: its number, its arguments, and the thread that makes it.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    /// The thread.
    pub tid: i32,
    /// The call.
    pub number: libc::c_long,
    /// Its arguments.
    pub arguments: [u64; 6],
}

impl Effects {
    /// None yet; what happens in these folders never counts.
    pub fn except_in(folders: &[PathBuf]) -> Effects {
        let exempt = folders.iter().flat_map(|folder| [Some(folder.clone()), folder.canonicalize().ok()]);
        Effects { exempt: exempt.flatten().collect(), ..Effects::default() }
    }

    /// All of them, in order.
    pub fn watched(self) -> Watched {
        Watched { effects: self.seen.into_iter().collect(), made: self.made.into_iter().collect() }
    }

    /// Adds one.
    pub fn add(&mut self, effect: Effect) {
        if self.seen.len() < KEPT {
            self.seen.insert(effect);
        }
    }

    /// Takes a stopped call.
    pub fn take(&mut self, call: &Call) {
        let a = call.arguments;
        let here = libc::AT_FDCWD as u32 as u64;
        match call.number {
            libc::SYS_open => self.opens(call, here, a[0], a[1] as i32),
            libc::SYS_openat => self.opens(call, a[0], a[1], a[2] as i32),
            libc::SYS_openat2 => {
                let flags = call.memory::<8>(a[2]).map_or(0, |bytes| u64::from_le_bytes(bytes) as i32);
                if flags & crate::filter::WRITES != 0 {
                    self.opens(call, a[0], a[1], flags);
                }
            }
            libc::SYS_creat | libc::SYS_truncate => self.writes(call.target(here, a[0])),
            libc::SYS_ftruncate | libc::SYS_fallocate => self.writes(call.file_of(a[0])),
            libc::SYS_chmod
            | libc::SYS_chown
            | libc::SYS_lchown
            | libc::SYS_utime
            | libc::SYS_utimes
            | libc::SYS_setxattr
            | libc::SYS_lsetxattr => self.writes(call.target(here, a[0])),
            libc::SYS_fchmodat | libc::SYS_fchownat => self.writes(call.target(a[0], a[1])),
            // Without a name it is of the descriptor.
            libc::SYS_utimensat if a[1] == 0 => self.writes(call.file_of(a[0])),
            libc::SYS_utimensat => self.writes(call.target(a[0], a[1])),
            libc::SYS_mkdir => self.makes(call.path(here, a[0])),
            libc::SYS_mkdirat => self.makes(call.path(a[0], a[1])),
            libc::SYS_unlink | libc::SYS_rmdir | libc::SYS_mknod => self.writes(call.path(here, a[0])),
            libc::SYS_unlinkat | libc::SYS_mknodat => self.writes(call.path(a[0], a[1])),
            libc::SYS_rename => {
                self.writes(call.path(here, a[0]));
                self.writes(call.path(here, a[1]));
            }
            libc::SYS_renameat | libc::SYS_renameat2 => {
                self.writes(call.path(a[0], a[1]));
                self.writes(call.path(a[2], a[3]));
            }
            libc::SYS_link | libc::SYS_symlink => self.writes(call.path(here, a[1])),
            libc::SYS_linkat => self.writes(call.path(a[2], a[3])),
            libc::SYS_symlinkat => self.writes(call.path(a[1], a[2])),
            libc::SYS_flock | libc::SYS_fcntl => self.locks(call.file_of(a[0])),
            libc::SYS_bind => self.binds(call.socket_address(a[1], a[2])),
            libc::SYS_connect => self.connects(call.socket_address(a[1], a[2])),
            libc::SYS_sendto => self.connects(call.socket_address(a[4], a[5])),
            _ => self.take_other(call),
        }
    }

    fn take_other(&mut self, call: &Call) {
        let name = |text: &str| text.to_owned();
        let a = call.arguments;
        let private = libc::IPC_PRIVATE as u32;
        match call.number {
            libc::SYS_shmget if a[0] as u32 != private => self.add(Effect::Shares(name("shmget"))),
            libc::SYS_semget if a[0] as u32 != private => self.add(Effect::Shares(name("semget"))),
            libc::SYS_msgget if a[0] as u32 != private => self.add(Effect::Shares(name("msgget"))),
            libc::SYS_sendmsg | libc::SYS_sendmmsg => self.add(Effect::Shares(name("sendmsg"))),
            libc::SYS_mq_open => self.add(Effect::Shares(name("mq_open"))),
            // What it submits makes no system call that could be watched.
            libc::SYS_io_uring_setup => self.add(Effect::Shares(name("io_uring_setup"))),
            libc::SYS_setsid => self.add(Effect::Schedules(name("setsid"))),
            libc::SYS_setpriority => self.add(Effect::Schedules(name("setpriority"))),
            libc::SYS_sched_setaffinity => self.add(Effect::Schedules(name("sched_setaffinity"))),
            libc::SYS_sched_setattr | libc::SYS_sched_setparam | libc::SYS_sched_setscheduler => {
                self.add(Effect::Schedules(name("sched_setscheduler")))
            }
            _ => {
                if let Some(wait) = timed_wait(call) {
                    self.add(Effect::Waits(name(wait)));
                }
            }
        }
    }

    fn opens(&mut self, call: &Call, folder: u64, name: u64, flags: i32) {
        // Without a name, or under one that nothing had: the kernel refuses it otherwise.
        if flags & libc::O_TMPFILE == libc::O_TMPFILE {
            return;
        }
        let own = libc::O_CREAT | libc::O_EXCL;
        // A new name is no link; what is there may be one, and what it leads to is written.
        if flags & own == own {
            self.makes(call.path(folder, name))
        } else {
            self.writes(call.target(folder, name))
        }
    }

    fn makes(&mut self, path: Option<PathBuf>) {
        // What is there already is not made: the call fails.
        match path {
            None => self.writes(None),
            Some(path) if path.symlink_metadata().is_err() && !self.is_own(&path) => {
                // Of more than are kept, the first that is not is as good as written.
                if self.made.len() < MADE {
                    self.made.insert(path);
                } else {
                    self.add(Effect::Writes(path));
                }
            }
            _ => {}
        }
    }

    fn writes(&mut self, path: Option<PathBuf>) {
        self.touches(path, Effect::Writes);
    }

    fn locks(&mut self, path: Option<PathBuf>) {
        self.touches(path, Effect::Locks);
    }

    /// Adds the effect of a file that is not the run's own. What cannot be read is held against the program.
    fn touches(&mut self, path: Option<PathBuf>, effect: fn(PathBuf) -> Effect) {
        let path = path.unwrap_or_else(|| UNREADABLE.into());
        if path == Path::new(UNREADABLE) || !self.is_own(&path) {
            self.add(effect(path));
        }
    }

    fn binds(&mut self, address: Option<Address>) {
        match address {
            Some(Address::File(path)) if self.is_own(&path) => {}
            Some(Address::Internet(_, 0)) | None => {}
            Some(address) => self.add(Effect::Binds(address.to_string())),
        }
    }

    fn connects(&mut self, address: Option<Address>) {
        match address {
            Some(Address::File(path)) if self.is_own(&path) || path == Path::new(NSCD) => {}
            None => {}
            Some(address) => self.add(Effect::Connects(address.to_string())),
        }
    }

    /// Whether it is the run's own, heaptoll's, or a thing of the kernel's that is no file.
    fn is_own(&self, path: &Path) -> bool {
        let device =
            path.starts_with("/dev") && !path.starts_with("/dev/shm") && !path.starts_with("/dev/mqueue");
        let kept = |own: &PathBuf| path.starts_with(own);
        // Pipes and their like have a name without a folder.
        !path.is_absolute()
            || device
            || path.starts_with("/proc")
            || self.exempt.iter().any(kept)
            || path.ancestors().any(|folder| self.made.contains(folder))
    }
}

/// The socket of the C library's name-service cache, which it tries wherever a user is looked up.
const NSCD: &str = "/var/run/nscd/socket";

/// The call's name when it waits for a time that is neither zero nor unlimited.
fn timed_wait(call: &Call) -> Option<&'static str> {
    let a = call.arguments;
    let finite_ms = |place: usize| (a[place] as i32) > 0;
    // A null pointer waits without limit; two zeros do not wait.
    let finite_at =
        |place: usize| a[place] != 0 && call.memory::<16>(a[place]).is_some_and(|time| time != [0; 16]);
    let (waits, name) = match call.number {
        libc::SYS_nanosleep => (finite_at(0), "nanosleep"),
        libc::SYS_clock_nanosleep => (finite_at(2), "clock_nanosleep"),
        libc::SYS_poll => (finite_ms(2), "poll with a time"),
        libc::SYS_ppoll => (finite_at(2), "ppoll with a time"),
        libc::SYS_select => (finite_at(4), "select with a time"),
        libc::SYS_pselect6 => (finite_at(4), "pselect with a time"),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait => (finite_ms(3), "epoll_wait with a time"),
        libc::SYS_epoll_pwait2 => (finite_at(3), "epoll_pwait2 with a time"),
        libc::SYS_rt_sigtimedwait => (finite_at(2), "sigtimedwait with a time"),
        libc::SYS_alarm => (a[0] != 0, "alarm"),
        libc::SYS_setitimer => (a[1] != 0, "setitimer"),
        libc::SYS_timer_settime => (a[2] != 0, "timer_settime"),
        libc::SYS_timerfd_settime => (a[2] != 0, "timerfd_settime"),
        _ => (false, ""),
    };
    waits.then_some(name)
}

/// An address of a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    File(PathBuf),
    Abstract(String),
    /// The family's name and the port.
    Internet(&'static str, u16),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::File(path) => write!(f, "the socket {}", path.display()),
            Address::Abstract(name) => write!(f, "the abstract socket {name}"),
            Address::Internet(family, port) => write!(f, "port {port} ({family})"),
        }
    }
}

impl Address {
    /// From the bytes of a `sockaddr`; `None` for families that name nothing that could be met twice.
    fn of(bytes: &[u8], tid: i32) -> Option<Address> {
        let family = i32::from(u16::from_le_bytes([*bytes.first()?, *bytes.get(1)?]));
        let port = || Some(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
        match family {
            libc::AF_INET => Some(Address::Internet("IPv4", port()?)),
            libc::AF_INET6 => Some(Address::Internet("IPv6", port()?)),
            libc::AF_UNIX => match bytes.get(2..)? {
                [] => None,
                [0, name @ ..] => Some(Address::Abstract(String::from_utf8_lossy(name).into_owned())),
                name => {
                    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
                    let name = PathBuf::from(std::ffi::OsString::from_vec(name[..end].to_vec()));
                    Some(Address::File(resolve(&working_folder(tid)?, &name)))
                }
            },
            _ => None,
        }
    }
}

fn working_folder(tid: i32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{tid}/cwd")).ok()
}

/// The path with the folder in front where it is relative, `.` and `..` taken out, and the links of its folder followed.
fn resolve(folder: &Path, name: &Path) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(name).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path,
    }
}

impl Call {
    /// Bytes of the thread's memory; `None` when they cannot be read.
    fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        use std::os::unix::fs::FileExt;
        let memory = std::fs::File::open(format!("/proc/{}/mem", self.tid)).ok()?;
        let mut bytes = vec![0u8; count];
        let got = memory.read_at(&mut bytes, address).ok()?;
        bytes.truncate(got);
        Some(bytes)
    }

    fn memory<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        self.bytes(address, N)?.try_into().ok()
    }

    /// A path that the call names, in full, the links of its folder followed.
    fn path(&self, folder: u64, address: u64) -> Option<PathBuf> {
        Some(resolve(Path::new("/"), &self.named(folder, address)?))
    }

    /// A path that the call names, in full.
    fn named(&self, folder: u64, address: u64) -> Option<PathBuf> {
        // A string near the end of a mapping is read up to there.
        let to_page_end = 4096 - (address & 4095) as usize;
        let mut bytes = self.bytes(address, to_page_end)?;
        if !bytes.contains(&0) {
            bytes.extend(self.bytes(address + to_page_end as u64, 4096)?);
        }
        bytes.truncate(bytes.iter().position(|&byte| byte == 0)?);
        let name = PathBuf::from(std::ffi::OsString::from_vec(bytes));
        let folder = match folder as i32 {
            libc::AT_FDCWD => working_folder(self.tid)?,
            _ if name.is_absolute() => PathBuf::from("/"),
            _ => self.file_of(folder)?,
        };
        Some(folder.join(name))
    }

    /// The file that a path of the call leads to, links followed as the thread would follow them.
    fn target(&self, folder: u64, address: u64) -> Option<PathBuf> {
        let path = self.named(folder, address)?;
        // Links of a process's own, which would lead to this process's files here.
        let own = [("/proc/self/", ""), ("/proc/thread-self/", ""), ("/dev/fd/", "fd/")]
            .iter()
            .find_map(|(start, within)| Some(PathBuf::from(within).join(path.strip_prefix(start).ok()?)))
            .or_else(|| {
                let number = ["/dev/stdin", "/dev/stdout", "/dev/stderr"]
                    .iter()
                    .position(|name| path == Path::new(name))?;
                Some(PathBuf::from(format!("fd/{number}")))
            });
        let path = own.map_or(path, |rest| PathBuf::from(format!("/proc/{}", self.tid)).join(rest));
        if path.starts_with("/proc") {
            return Some(std::fs::read_link(&path).unwrap_or(path));
        }
        path.canonicalize().ok().or_else(|| Some(resolve(Path::new("/"), &path)))
    }

    /// The file of a descriptor.
    fn file_of(&self, descriptor: u64) -> Option<PathBuf> {
        std::fs::read_link(format!("/proc/{}/fd/{}", self.tid, descriptor as i32)).ok()
    }

    fn socket_address(&self, address: u64, length: u64) -> Option<Address> {
        Address::of(&self.bytes(address, length.min(128) as usize)?, self.tid)
    }
}
