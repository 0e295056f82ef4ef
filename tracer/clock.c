/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * A clock that instructions drive. Managers return memory to the system, and programs seed their hashes, by the clock;
 * under a tool that makes everything ten times slower, and never twice alike, the times would differ in each run. Here
 * the same instructions take the same time, about as long as they take natively.
 *
 * Time passes with instructions of all threads, and with waits that end by their timeout, as long as requested. The
 * kernel's own clocks run on, so absolute deadlines are converted to them for the system call.
 */
#include "clock.h"

#include "guest.h"
#include "ring.h"
#include "thread.h"

typedef struct vki_timespec TimeSpec;

#define SECOND 1000000000ULL
/* A processor of 2 instructions a nanosecond. */
#define INSTRUCTIONS_PER_NS 2
/* Calendar time at the start: 1 January 2030, later than the modification times of existing files. */
#define CALENDAR_START (1893456000ULL * SECOND)
/* Time at the start of clocks that count from the system's start. */
#define UPTIME_START (1000 * SECOND)
/* Steps of the coarse clocks. */
#define COARSE (SECOND / 250)
/* Cycles of the time stamp counter in a nanosecond. */
#define CYCLES_PER_NS 3

/* linux/time.h and linux/futex.h. */
enum { REALTIME, MONOTONIC, PROCESS_CPU, THREAD_CPU, MONOTONIC_RAW, REALTIME_COARSE, MONOTONIC_COARSE, BOOTTIME, TAI = 11 };
enum { WAIT = 0, WAIT_BITSET = 9, OF_REALTIME = 256, COMMANDS = 127 };
enum { ABSOLUTE = 1, TIMED_OUT = 110 };

/* A system call with a timeout. */
typedef struct {
   Bool absolute;
   Int clock;      /* of an absolute one */
   ULong ns;       /* timeout or deadline, by our clocks */
   TimeSpec *moved; /* where a deadline was changed, or NULL */
   TimeSpec kept;  /* its value before */
} Wait;

static Wait *waits; /* by ThreadId */
static ULong waited; /* ns */
static ULong before; /* ns: of the parent until the fork */

/* ns since the start of the process or of its first ancestor under the tool that did not exec. */
static ULong elapsed_working(void)
{
   return before + ht_thread_instructions() / INSTRUCTIONS_PER_NS;
}

static Bool read_ours(ThreadId tid, Int clock, ULong *ns)
{
   const ULong elapsed = elapsed_working() + waited;
   switch (clock) {
   case REALTIME:
   case TAI:
      *ns = CALENDAR_START + elapsed;
      return True;
   case MONOTONIC:
   case MONOTONIC_RAW:
   case BOOTTIME:
      *ns = UPTIME_START + elapsed;
      return True;
   case REALTIME_COARSE:
      *ns = CALENDAR_START + elapsed / COARSE * COARSE;
      return True;
   case MONOTONIC_COARSE:
      *ns = UPTIME_START + elapsed / COARSE * COARSE;
      return True;
   case PROCESS_CPU:
      *ns = elapsed_working() - before;
      return True;
   case THREAD_CPU:
      *ns = ht_thread_registers(ht_thread(tid))->instructions / INSTRUCTIONS_PER_NS;
      return True;
   default:
      return False;
   }
}

static ULong read_kernel(Int clock)
{
   TimeSpec now = { 0, 0 };
   HT_SYSCALL(__NR_clock_gettime, clock, &now, 0, 0, 0, 0);
   return (ULong)now.tv_sec * SECOND + (ULong)now.tv_nsec;
}

static Bool readable(Addr address, SizeT length)
{
   return address != 0 && VG_(am_is_valid_for_client)(address, length, VKI_PROT_READ);
}

static Bool writable(Addr address, SizeT length)
{
   return address != 0 && VG_(am_is_valid_for_client)(address, length, VKI_PROT_READ | VKI_PROT_WRITE);
}

static void set(TimeSpec *at, ULong ns)
{
   at->tv_sec = (Long)(ns / SECOND);
   at->tv_nsec = (Long)(ns % SECOND);
}

/* Reads the timeout of a struct timespec; False if there is none. */
static Bool timeout(Wait *wait, Addr address)
{
   if (!readable(address, sizeof(TimeSpec)))
      return False;
   const TimeSpec *const at = (const TimeSpec *)address;
   /* A timeout of centuries means a wait for another event. */
   if (at->tv_sec < 0 || at->tv_sec > 10000000000LL || at->tv_nsec < 0)
      return False;
   wait->ns = (ULong)at->tv_sec * SECOND + (ULong)at->tv_nsec;
   return True;
}

/* Converts a deadline to the kernel's clock. */
static Bool deadline(ThreadId tid, Wait *wait, Addr address, Int clock)
{
   ULong ours;
   if (!timeout(wait, address) || !read_ours(tid, clock, &ours) || !writable(address, sizeof(TimeSpec)))
      return False;
   wait->absolute = True;
   wait->clock = clock;
   wait->moved = (TimeSpec *)address;
   wait->kept = *wait->moved;
   set(wait->moved, read_kernel(clock) + (wait->ns > ours ? wait->ns - ours : 0));
   return True;
}

static Bool milliseconds(Wait *wait, Int timeout_ms)
{
   wait->ns = timeout_ms > 0 ? (ULong)timeout_ms * 1000000 : 0;
   return timeout_ms > 0;
}

static Bool read_wait(ThreadId tid, UInt number, const UWord *arguments, Wait *wait)
{
   switch (number) {
   case __NR_nanosleep:
      return timeout(wait, arguments[0]);
   case __NR_clock_nanosleep:
      return arguments[1] & ABSOLUTE ? deadline(tid, wait, arguments[2], (Int)arguments[0])
                                     : timeout(wait, arguments[2]);
   case __NR_futex:
      if ((arguments[1] & COMMANDS) == WAIT)
         return timeout(wait, arguments[3]);
      if ((arguments[1] & COMMANDS) == WAIT_BITSET)
         return deadline(tid, wait, arguments[3], arguments[1] & OF_REALTIME ? REALTIME : MONOTONIC);
      return False;
   case __NR_ppoll:
      return timeout(wait, arguments[2]);
   case __NR_pselect6:
      return timeout(wait, arguments[4]);
   case __NR_rt_sigtimedwait:
      return timeout(wait, arguments[2]);
   case __NR_epoll_pwait:
      return milliseconds(wait, (Int)arguments[3]);
#ifdef __NR_poll
   case __NR_poll:
      return milliseconds(wait, (Int)arguments[2]);
   case __NR_epoll_wait:
      return milliseconds(wait, (Int)arguments[3]);
   case __NR_select:
      if (!timeout(wait, arguments[4]))
         return False;
      /* A struct timeval: microseconds. */
      wait->ns += wait->ns % SECOND * 999;
      return True;
#endif
   default:
      return False;
   }
}

/* Whether the timeout ended the wait. */
static Bool timed_out(UInt number, SysRes result)
{
   switch (number) {
   case __NR_futex:
      return sr_isError(result) && sr_Err(result) == TIMED_OUT;
   case __NR_rt_sigtimedwait:
      return sr_isError(result) && sr_Err(result) == VKI_EAGAIN;
   default:
      return !sr_isError(result) && sr_Res(result) == 0;
   }
}

void ht_clock_before(ThreadId tid, UInt number, const UWord *arguments)
{
   if (waits == NULL)
      waits = VG_(calloc)("ht.clock.waits", VG_N_THREADS, sizeof(Wait));
   Wait wait = { .absolute = False };
   if (!read_wait(tid, number, arguments, &wait))
      wait.ns = 0;
   waits[tid] = wait;
}

static void write_time(ThreadId tid, UInt number, const UWord *arguments)
{
   ULong now;
   switch (number) {
   case __NR_clock_gettime:
      if (read_ours(tid, (Int)arguments[0], &now) && writable(arguments[1], sizeof(TimeSpec)))
         set((TimeSpec *)arguments[1], now);
      break;
   case __NR_gettimeofday:
      if (read_ours(tid, REALTIME, &now) && writable(arguments[0], sizeof(struct vki_timeval))) {
         ((struct vki_timeval *)arguments[0])->tv_sec = (Long)(now / SECOND);
         ((struct vki_timeval *)arguments[0])->tv_usec = (Long)(now % SECOND / 1000);
      }
      break;
#ifdef __NR_time
   case __NR_time: {
      read_ours(tid, REALTIME, &now);
      const ULong seconds = now / SECOND;
      VG_(set_shadow_regs_area)(tid, 0, HT_GUEST_RESULT, sizeof seconds, (const UChar *)&seconds);
      if (writable(arguments[0], sizeof seconds))
         *(ULong *)arguments[0] = seconds;
      break;
   }
#endif
   default:
      break;
   }
}

void ht_clock_after(ThreadId tid, UInt number, const UWord *arguments, SysRes result)
{
   Wait *const wait = &waits[tid];
   if (wait->moved != NULL && writable((Addr)wait->moved, sizeof(TimeSpec)))
      *wait->moved = wait->kept;
   if (wait->ns != 0 && timed_out(number, result)) {
      ULong now = 0;
      if (wait->absolute)
         read_ours(tid, wait->clock, &now);
      const ULong passed = wait->ns > now ? wait->ns - now : 0;
      waited += passed;
      ht_ring_event(HT_WAITED, passed, NULL, 0);
   }
   wait->moved = NULL;
   wait->ns = 0;
   if (!sr_isError(result))
      write_time(tid, number, arguments);
}

void ht_clock_child(void)
{
   before = elapsed_working();
}

#if defined(VGA_amd64)
#include "options.h"

/* The time stamp counter, in translated code. The linker replaces Valgrind's helpers with these. */
ULong __wrap_amd64g_dirtyhelper_RDTSC(void);
extern ULong __real_amd64g_dirtyhelper_RDTSC(void);
void __wrap_amd64g_dirtyhelper_RDTSCP(HtGuest *guest);
extern void __real_amd64g_dirtyhelper_RDTSCP(HtGuest *guest);

static ULong cycles(void)
{
   return (UPTIME_START + elapsed_working() + waited) * CYCLES_PER_NS;
}

ULong __wrap_amd64g_dirtyhelper_RDTSC(void)
{
   return ht_options.pin ? cycles() : __real_amd64g_dirtyhelper_RDTSC();
}

void __wrap_amd64g_dirtyhelper_RDTSCP(HtGuest *guest)
{
   __real_amd64g_dirtyhelper_RDTSCP(guest);
   if (!ht_options.pin)
      return;
   const ULong now = cycles();
   guest->guest_RAX = now & 0xffffffffU;
   guest->guest_RDX = now >> 32;
}
#endif
