/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Of --pin: a clock that instructions drive.
 */
#ifndef HT_CLOCK_H
#define HT_CLOCK_H

#include "core.h"

/* Around every system call: absolute deadlines are put into the kernel's time, and what it tells of the time into ours. */
void ht_clock_before(ThreadId tid, UInt number, const UWord *arguments);
void ht_clock_after(ThreadId tid, UInt number, const UWord *arguments, SysRes result);
/* In a child of fork, before its counters begin anew: its clock goes on. */
void ht_clock_child(void);

#endif
