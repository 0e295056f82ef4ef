/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * heaptoll's tracer: a tool for Valgrind that records a program's use of memory, with the owner of each access: its
 * instructions, loads and stores, the calls of its memory manager, the system's part in it. It computes nothing; see
 * README.md.
 */
#include "call.h"
#include "clock.h"
#include "core.h"
#include "exec.h"
#include "functions.h"
#include "hooks.h"
#include "instrument.h"
#include "log.h"
#include "options.h"
#include "ring.h"
#include "roots.h"
#include "routine.h"
#include "signal.h"
#include "symbols.h"
#include "thread.h"

HtOptions ht_options = { .ring_dir = NULL, .symbols = NULL, .consumer = 0, .references = False, .pointers = False, .graph = False, .roots_every = 0,
                         .pin = True, .functions = False, .only_in = NULL, .shift = 0, .sites = 0 };

static Bool on_option(const HChar *argument)
{
   Int number;
   if (VG_STR_CLO(argument, "--ring-dir", ht_options.ring_dir)) {
   } else if (VG_STR_CLO(argument, "--symbols", ht_options.symbols)) {
   } else if (VG_STR_CLO(argument, "--only-in", ht_options.only_in)) {
   } else if (VG_BINT_CLO(argument, "--consumer", number, 1, 0x7fffffff)) {
      ht_options.consumer = number;
   } else if (VG_BOOL_CLO(argument, "--references", ht_options.references)) {
   } else if (VG_BOOL_CLO(argument, "--pointers", ht_options.pointers)) {
   } else if (VG_BOOL_CLO(argument, "--graph", ht_options.graph)) {
   } else if (VG_BINT_CLO(argument, "--roots-every", ht_options.roots_every, 0, 0x7fffffff)) {
   } else if (VG_BOOL_CLO(argument, "--pin", ht_options.pin)) {
   } else if (VG_BOOL_CLO(argument, "--functions", ht_options.functions)) {
   } else if (VG_BINT_CLO(argument, "--sites", number, 0, 64)) {
      ht_options.sites = (UInt)number;
   } else if (VG_BINT_CLO(argument, "--shift", number, 0, 4095)) {
      ht_options.shift = (UInt)number;
   } else {
      return False;
   }
   return True;
}

static void on_usage(void)
{
   VG_(printf)("    --ring-dir=<dir>        make a ring of words for each process image there\n"
               "    --symbols=<file>        names of allocators' routines besides those of C and C++\n"
               "    --only-in=<end of path> record routines of this object only\n"
               "    --consumer=<pid>        stop recording when this process has ended\n"
               "    --references=no|yes     record every data reference [no]\n"
               "    --pointers=no|yes       record stores of pointers into the heap, with --references=yes [no]\n"
               "    --graph=no|yes          record the pointers in memory and root points, with --references=yes [no]\n"
               "    --roots-every=<bytes>   bytes allocated between root points; 0: chosen as the program runs [0]\n"
               "    --sites=<frames>        record the call sites of the malloc family [0]\n"
               "    --shift=<pages>         give the program's heap and mappings addresses that are so far off [0]\n"
               "    --functions=no|yes      count the instructions of each function [no]\n"
               "    --pin=no|yes            give the program the same random bytes in every run, and a clock\n"
               "                            that its instructions drive [yes]\n");
}

static void on_debug_usage(void)
{
   VG_(printf)("    (none)\n");
}

static void on_options_read(void)
{
   /* Every call begins a superblock, so that routines are found at their start. */
   VG_(clo_vex_control).guest_chase = False;
   ht_log_begin();
   ht_ring_open();
   ht_symbols_read();
   ht_system_begin();
   if (ht_options.pin)
      ht_pin_begin();
}

/* Whether the program has requested its end, and with which status (the core does not know it). Otherwise a signal
   ends it. */
static Bool exits;
static Int exit_status;

static void on_end(Int unknown)
{
   /* Where a signal ends it; exit and a request to end have their point before other threads are gone. */
   ht_roots_ending(VG_INVALID_THREADID);
   ht_functions_report();
   ht_thread_end(exits, exit_status);
   ht_ring_close();
}

static void before_syscall(ThreadId tid, UInt number, UWord *arguments, UInt n)
{
   exits = number == __NR_exit_group || number == __NR_exit;
   if (exits)
      exit_status = (Int)(arguments[0] & 0xff);
   if (number == __NR_exit)
      ht_roots_thread_ended(tid, True);
   if (number == __NR_exit_group)
      ht_roots_ending(VG_INVALID_THREADID);
   ht_exec_before(number, arguments);
   if (ht_is_exec(number)) {
      ht_functions_report();
      ht_thread_event(tid, HT_EXEC, 0, NULL, 0);
   }
   ht_system_before(tid, number, arguments, n);
   if (ht_options.pin)
      ht_clock_before(tid, number, arguments);
}

static void after_syscall(ThreadId tid, UInt number, UWord *arguments, UInt n, SysRes result)
{
   HtThread *const thread = ht_thread(tid);
   ht_log_before_code();
   /* The following event shows that it has failed. */
   if (ht_is_exec(number)) {
      ht_exec_after();
      ht_thread_event(tid, HT_TICK, 0, NULL, 0);
   }
   if (thread->forked && !sr_isError(result) && sr_Res(result) != 0)
      ht_ring_event(HT_FORK, sr_Res(result), NULL, 0);
   thread->forked = False;
   ht_system_after(tid, number, arguments, n, result);
   if (ht_options.pin) {
      ht_pin_after(tid, number, arguments, n, result);
      ht_clock_after(tid, number, arguments, result);
   }
}

static void after_fork_in_parent(ThreadId tid)
{
   if (tid != VG_INVALID_THREADID)
      ht_thread(tid)->forked = True;
}

static void after_fork_in_child(ThreadId tid)
{
   ht_log_child();
   ht_clock_child();
   ht_ring_reopen();
   ht_thread_child(tid);
   ht_routine_child();
   ht_functions_child();
   ht_system_child(tid);
}

static void on_begin(void)
{
   VG_(details_name)("heaptoll");
   VG_(details_version)(NULL);
   VG_(details_description)("records references, instructions and calls of the memory manager");
   VG_(details_copyright_author)("Distributed under the GNU General Public License, version 2 or later.");
   VG_(details_bug_reports_to)("the authors of heaptoll");
   VG_(details_avg_translation_sizeB)(320);
   VG_(basic_tool_funcs)(on_options_read, ht_instrument, on_end);
   VG_(needs_command_line_options)(on_option, on_usage, on_debug_usage);
   VG_(needs_syscall_wrapper)(before_syscall, after_syscall);
   VG_(atfork)(ht_exec_forks, after_fork_in_parent, after_fork_in_child);
   ht_thread_register();
   ht_signal_register();
   ht_system_register();
}

VG_DETERMINE_INTERFACE_VERSION(on_begin)
