/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Functions that main.c calls in the files about the system around the program: system.c, brk.c, pin.c, sites.c.
 */
#ifndef HT_HOOKS_H
#define HT_HOOKS_H

#include "core.h"

/* Before the command line is read: registers with VG_(track_...) for mappings and for the kernel's accesses. */
void ht_system_register(void);
/* The ring is open, the client's image is in memory, none of its code has run; the core's new_mem_startup records
 * mappings that exist at the start after this. */
void ht_system_begin(void);
/* The same in a child of fork, on the child's own ring: `tid` is its only thread. All mappings must be recorded
 * again. */
void ht_system_child(ThreadId tid);
/* Around every system call, before the core's wrapper reads it and after. */
void ht_system_before(ThreadId tid, UInt number, UWord *args, UInt n);
void ht_system_after(ThreadId tid, UInt number, UWord *args, UInt n, SysRes result);

/* With --pin=yes only: at the start, and after every system call (after ht_system_after). */
void ht_pin_begin(void);
void ht_pin_after(ThreadId tid, UInt number, UWord *args, UInt n, SysRes result);

/* With --sites only: a routine is entered from outside of the family; its HT_ENTER follows. */
void ht_sites_enter(ThreadId tid);

#endif
