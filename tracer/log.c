/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The log that Valgrind writes. Valgrind opens the file, continues with a copy of the descriptor that the program
 * cannot reach, and leaves the first one open: the program's own files would have other numbers than natively, and each
 * following image one more.
 */
#include "log.h"

/* Of the core, not in its public headers; the descriptor comes first. */
extern struct {
   Int fd;
} VG_(log_output_sink);

static Bool may_be_open;

static void close_first(void)
{
   struct vg_stat log, other;
   const Int copy = VG_(log_output_sink).fd;
   if (copy <= 2 || VG_(fstat)(copy, &log) != 0 || !VKI_S_ISREG(log.mode))
      return;
   /* It was the lowest free descriptor, so it is below the lowest that is free now. */
   const SysRes free = HT_SYSCALL(__NR_fcntl, copy, VKI_F_DUPFD, 0, 0, 0, 0);
   if (sr_isError(free))
      return;
   VG_(close)((Int)sr_Res(free));
   for (Int at = (Int)sr_Res(free) - 1; at >= 0; at--)
      if (at != copy && VG_(fstat)(at, &other) == 0 && other.dev == log.dev && other.ino == log.ino) {
         VG_(close)(at);
         return;
      }
}

void ht_log_begin(void)
{
   close_first();
}

void ht_log_child(void)
{
   may_be_open = True;
}

void ht_log_before_code(void)
{
   if (may_be_open)
      close_first();
   may_be_open = False;
}
