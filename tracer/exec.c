/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Images that replace a process's image, where Valgrind's way to them differs from the kernel's.
 *
 * Valgrind has the kernel execute its own launcher, with the program's path as an argument. So /proc/self/exe is this
 * tool by the time it is opened; a process that has changed its root also needs the launcher and the folder of the
 * rings; and the name under which the program was to run is lost.
 */
#include "exec.h"

#include "hooks.h"
#include "ring.h"
#include "options.h"

/* Of the core, not in its public headers: the open file of the client's executable; options for children; memory of
 * the client. */
extern Int VG_(cl_exec_fd);
extern const HChar *VG_(name_of_launcher);
extern Bool VG_(clo_trace_children);
extern Bool VG_(clo_child_silent_after_fork);
extern SysRes VG_(am_mmap_anon_float_client)(SizeT length, Int protection);

/* The arguments of a system call as the core's wrappers receive them (rseq.c). */
typedef struct {
   Word number;
   RegWord args[8];
} Call;
void __wrap_vgSysWrap_generic_sys_execve_before(ThreadId, void *, Call *, void *, UWord *);
extern void __real_vgSysWrap_generic_sys_execve_before(ThreadId, void *, Call *, void *, UWord *);

enum { PATH_MOST = 4096, WORKING_DIRECTORY = -100 };

/* Whether the next image of the process can be traced, where its parents' images were. */
static Bool follows = True;

Bool ht_is_exec(UInt number)
{
   return number == __NR_execve || number == __NR_execveat;
}

static Bool readable(Addr from, SizeT bytes)
{
   return from != 0 && VG_(am_is_valid_for_client)(from, bytes, VKI_PROT_READ);
}

/* After chroot Valgrind's paths may not exist. */
static Bool reaches(const HChar *path)
{
   struct vg_stat there;
   return path == NULL || !sr_isError(VG_(stat)(path, &there));
}

static Bool reaches_rings(void)
{
   return ht_options.ring_dir == NULL || ht_ring_may_make(WORKING_DIRECTORY, ht_options.ring_dir);
}

/* A string of the client's, or NULL if it is none. */
static const HChar *text_at(Addr at)
{
   for (Addr byte = at; byte - at < PATH_MOST; byte++) {
      if ((byte == at || VG_IS_PAGE_ALIGNED(byte)) && !readable(byte, 1))
         return NULL;
      if (*(const HChar *)byte == '\0')
         return (const HChar *)at;
   }
   return NULL;
}

static Bool is_self(const HChar *path)
{
   HChar own[40];
   VG_(sprintf)(own, "/proc/%d/exe", VG_(getpid)());
   return VG_STREQ(path, "/proc/self/exe") || VG_STREQ(path, own);
}

/* The client's executable, in memory of the client's; NULL if it has no path any more. */
static const HChar *own_executable(void)
{
   static HChar *path; /* the same in each child of fork */
   HChar link[40];
   if (path == NULL) {
      const SysRes mapped = VG_(am_mmap_anon_float_client)(PATH_MOST, VKI_PROT_READ | VKI_PROT_WRITE);
      if (sr_isError(mapped))
         return NULL;
      path = (HChar *)(Addr)sr_Res(mapped);
   }
   VG_(sprintf)(link, "/proc/self/fd/%d", VG_(cl_exec_fd));
   const SSizeT length = VG_(readlink)(link, path, PATH_MOST - 1);
   if (length <= 0)
      return NULL;
   path[length] = '\0';
   return reaches(path) ? path : NULL;
}

void __wrap_vgSysWrap_generic_sys_execve_before(ThreadId tid, void *layout, Call *call, void *status, UWord *flags)
{
   const HChar *const path = text_at((Addr)call->args[0]);
   if (path != NULL && is_self(path)) {
      const HChar *const own = own_executable();
      if (own != NULL)
         call->args[0] = (RegWord)own;
      else
         ht_ring_warn("heaptoll: the program executes %s, and its executable is not there any more: under Valgrind this "
                      "fails",
                      path);
   }
   __real_vgSysWrap_generic_sys_execve_before(tid, layout, call, status, flags);
}

static void check_names(Addr path_at, Addr arguments)
{
   const HChar *path = text_at(path_at);
   if (path != NULL && is_self(path))
      path = own_executable();
   const HChar *const name =
      readable(arguments, sizeof(Addr)) ? text_at(*(const Addr *)arguments) : NULL;
   if (path == NULL || name == NULL)
      return;
   const HChar *const path_slash = VG_(strrchr)(path, '/'), *const name_slash = VG_(strrchr)(name, '/');
   const HChar *const path_end = path_slash == NULL ? path : path_slash + 1;
   const HChar *const name_end = name_slash == NULL ? name : name_slash + 1;
   /* A leading dash starts a login shell; the path that it has instead makes it another shell. */
   if (!VG_STREQ(path_end, name_end) && reaches(path))
      ht_ring_warn("heaptoll: %s is executed under the name %s, which Valgrind does not pass on: a program that goes by "
                   "its name does something else than natively",
                   path, name);
}

/* A file that neither Valgrind nor its tool for this machine can run. */
static Bool is_32_bit(const HChar *path)
{
   static const UChar elf_32[5] = { 0x7f, 'E', 'L', 'F', 1 };
   UChar head[5];
   const SysRes file = VG_(open)(path, VKI_O_RDONLY, 0);
   if (sr_isError(file))
      return False;
   const Int length = VG_(read)((Int)sr_Res(file), head, sizeof head);
   VG_(close)((Int)sr_Res(file));
   return length == sizeof head && VG_(memcmp)(head, elf_32, sizeof head) == 0;
}

static Bool changes_user(const HChar *path)
{
   struct vg_stat file;
   return !sr_isError(VG_(stat)(path, &file)) && VKI_S_ISREG(file.mode) && (file.mode & (VKI_S_ISUID | VKI_S_ISGID)) != 0;
}

/* Whether the program to be executed must run untraced. */
static Bool is_left_alone(const HChar *path)
{
   if (!reaches(VG_(name_of_launcher)) || !reaches_rings())
      ht_ring_warn("heaptoll: a process that has changed its root or its user executes a program, and has no access to "
                   "Valgrind or the rings: it runs, and what it does is not recorded");
   else if (path != NULL && is_32_bit(path))
      ht_ring_warn("heaptoll: %s, a 32-bit program, is executed: it runs, and what it does is not recorded", path);
   else if (path != NULL && changes_user(path))
      ht_ring_warn("heaptoll: %s, a set-user-ID or set-group-ID program, is executed: it runs, and what it does is not "
                   "recorded",
                   path);
   else
      return False;
   return True;
}

void ht_exec_before(UInt number, const UWord *arguments)
{
   if (!ht_is_exec(number))
      return;
   if (number == __NR_execve)
      check_names(arguments[0], arguments[1]);
   if (VG_(clo_trace_children) && is_left_alone(number == __NR_execve ? text_at(arguments[0]) : NULL)) {
      VG_(clo_trace_children) = False;
      follows = False;
   }
}

void ht_exec_after(void)
{
   if (!follows)
      VG_(clo_trace_children) = True;
   follows = True;
}

/* The core makes a child open a log of its own, and ends it if that fails. */
void ht_exec_forks(ThreadId tid)
{
   (void)tid;
   VG_(clo_child_silent_after_fork) = !reaches_rings();
   if (!ht_ring_may_fork())
      ht_ring_warn("heaptoll: a process that has changed its user has children, and no access to the rings: they run, and "
                   "what they do is not recorded");
}
