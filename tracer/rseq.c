/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Restartable sequences, which Valgrind does not know: managers with caches by CPU (Google's TCMalloc) would leave them
 * and take another path than natively.
 *
 * The kernel's part is small if only one thread runs at a time (Documentation/userspace-api/rseq.rst, rseq(2),
 * linux/rseq.h): it writes the number of the CPU into an area of the thread, and if another thread has run in between,
 * or a signal is delivered, a thread that is inside of a sequence continues at the sequence's abort handler. Here a
 * thread keeps its CPU, by its number, so that counts repeat.
 */

#include "hooks.h"
#include "ring.h"
#include "thread.h"
#include "system.h"

/* Of the core, not in its public headers. */
extern void VG_(set_IP)(ThreadId tid, Addr address);
extern SysRes VG_(mk_SysRes_Success)(UWord value);
extern SysRes VG_(mk_SysRes_Error)(UWord error);
extern UWord *VG_(client_auxv);

/* The arguments and the state of a system call as the core's wrappers receive them. */
typedef struct {
   Word number;
   RegWord args[8];
} Call;
typedef struct {
   enum { COMPLETE = 1, TO_THE_KERNEL, IDLE } what;
   SysRes result;
} Status;
void __wrap_vgSysWrap_generic_sys_ni_syscall_before(ThreadId, void *, Call *, Status *, UWord *);
extern void __real_vgSysWrap_generic_sys_ni_syscall_before(ThreadId, void *, Call *, Status *, UWord *);

/* struct rseq, as every kernel has it, and the fields that newer ones append within its 32 bytes. */
typedef struct {
   UInt cpu_id_start;
   UInt cpu_id;
   ULong sequence;
   UInt flags;
   UInt node_id;
   UInt concurrency_id;
   UInt unused;
} Area;
#define AREA_BYTES 32
#define UNREGISTER 1
#define UNINITIALISED 0xffffffffU

/* struct rseq_cs */
typedef struct {
   UInt version;
   UInt flags;
   ULong start;
   ULong length;
   ULong abort;
} Sequence;

#define AUXV_IGNORE 1
#define AUXV_FEATURE_SIZE 27
#define AUXV_ALIGN 28

typedef struct {
   Area *area; /* NULL: not registered */
   UInt signature;
} Registration;

static Registration *threads; /* by ThreadId */
static ThreadId last_run = VG_INVALID_THREADID;
static Int native = -1; /* whether the kernel has the call */

static Bool kernel_has(void)
{
   if (native < 0) {
      SysRes answer = HT_SYSCALL(__NR_rseq, 0, 0, 0, 0, 0, 0);
      native = !sr_isError(answer) || sr_Err(answer) != VKI_ENOSYS;
   }
   return native != 0;
}

/* The n-th of the CPUs that the process may use, cyclically, and its index among them. */
static UInt cpu_of(UInt n, UInt *place)
{
   UChar mask[1024];
   UInt cpu, count = 0, at = 0;
   SysRes bytes = HT_SYSCALL(__NR_sched_getaffinity, 0, sizeof mask, mask, 0, 0, 0);
   SizeT bits = sr_isError(bytes) ? 0 : 8 * sr_Res(bytes);
   *place = 0;
   for (cpu = 0; cpu < bits; cpu++)
      count += mask[cpu / 8] >> cpu % 8 & 1;
   if (count == 0)
      return 0;
   *place = n % count;
   for (cpu = 0;; cpu++)
      if ((mask[cpu / 8] >> cpu % 8 & 1) && at++ == *place)
         return cpu;
}

static UInt enrol(ThreadId tid, Area *area, SizeT length, UInt flags, UInt signature)
{
   Registration *thread;
   if (!threads)
      threads = VG_(calloc)("heaptoll.rseq", VG_N_THREADS, sizeof(Registration));
   thread = &threads[tid];

   if (flags & UNREGISTER) {
      if (flags & ~UNREGISTER || !thread->area || area != thread->area || length != AREA_BYTES)
         return VKI_EINVAL;
      if (signature != thread->signature)
         return VKI_EPERM;
      area->cpu_id_start = 0;
      area->cpu_id = UNINITIALISED;
      thread->area = NULL;
      return 0;
   }
   if (flags)
      return VKI_EINVAL;
   if (thread->area) {
      if (area != thread->area || length != AREA_BYTES)
         return VKI_EINVAL;
      return signature != thread->signature ? VKI_EPERM : VKI_EBUSY;
   }
   if ((Addr)area % AREA_BYTES || length != AREA_BYTES)
      return VKI_EINVAL;
   if (!VG_(am_is_valid_for_client)((Addr)area, AREA_BYTES, VKI_PROT_READ | VKI_PROT_WRITE))
      return VKI_EFAULT;
   thread->area = area;
   thread->signature = signature;
   area->cpu_id = area->cpu_id_start = cpu_of(ht_thread_number(tid) - 1, &area->concurrency_id);
   area->node_id = 0;
   return 0;
}

/* The core's handler of unknown system calls. */
void __wrap_vgSysWrap_generic_sys_ni_syscall_before(ThreadId tid, void *layout, Call *call, Status *status,
                                                    UWord *flags)
{
   if (call->number == __NR_rseq && kernel_has()) {
      UInt error = enrol(tid, (Area *)call->args[0], call->args[1], call->args[2], call->args[3]);
      status->what = COMPLETE;
      status->result = error ? VG_(mk_SysRes_Error)(error) : VG_(mk_SysRes_Success)(0);
   } else {
      __real_vgSysWrap_generic_sys_ni_syscall_before(tid, layout, call, status, flags);
   }
}

/* Continues an interrupted thread at the abort handler if it is inside of a sequence. */
static void interrupt(ThreadId tid)
{
   Area *area = threads ? threads[tid].area : NULL;
   const Sequence *sequence;
   if (!area || !VG_(am_is_valid_for_client)((Addr)area, AREA_BYTES, VKI_PROT_READ | VKI_PROT_WRITE)
       || !area->sequence)
      return;
   sequence = (const Sequence *)area->sequence;
   area->sequence = 0;
   if (VG_(am_is_valid_for_client)((Addr)sequence, sizeof *sequence, VKI_PROT_READ)
       && VG_(get_IP)(tid) - sequence->start < sequence->length)
      VG_(set_IP)(tid, sequence->abort);
}

/* The core hides unknown entries of the auxiliary vector from a program; this restores the kernel's entries for
 * rseq. The core's copy has the entries of the original, in order. */
void ht_rseq_begin(void)
{
   UWord original[2];
   UWord *entry = VG_(client_auxv);
   SysRes file = VG_(open)("/proc/self/auxv", VKI_O_RDONLY, 0);
   if (sr_isError(file))
      return;
   while (entry && entry[0] && VG_(read)(sr_Res(file), original, sizeof original) == sizeof original) {
      if (entry[0] == AUXV_IGNORE && (original[0] == AUXV_FEATURE_SIZE || original[0] == AUXV_ALIGN)) {
         entry[0] = original[0];
         entry[1] = original[1];
      }
      entry += 2;
   }
   VG_(close)(sr_Res(file));
}

void ht_rseq_runs(ThreadId tid)
{
   if (last_run != tid && last_run != VG_INVALID_THREADID)
      interrupt(last_run);
   last_run = tid;
}

void ht_rseq_signal(ThreadId tid)
{
   interrupt(tid);
}

void ht_rseq_ended(ThreadId tid)
{
   if (threads)
      threads[tid].area = NULL;
   if (last_run == tid)
      last_run = VG_INVALID_THREADID;
}

/* A child of fork has the registration of the thread that forked. */
void ht_rseq_child(ThreadId tid)
{
   ThreadId other;
   for (other = 0; threads && other < VG_N_THREADS; other++)
      if (other != tid)
         threads[other].area = NULL;
   last_run = tid;
}
