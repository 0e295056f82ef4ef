/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The clock of --pin, which instructions drive.
 */
#ifndef HT_CLOCK_H
#define HT_CLOCK_H

#include "core.h"

/* Around every system call: converts absolute deadlines to the kernel's time, and times that the kernel returns to
   ours. */
void ht_clock_before(ThreadId tid, UInt number, const UWord *arguments);
void ht_clock_after(ThreadId tid, UInt number, const UWord *arguments, SysRes result);
/* In a child of fork, before its counters restart: its clock continues. */
void ht_clock_child(void);

#endif
