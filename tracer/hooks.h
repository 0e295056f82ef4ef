/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What main.c calls in the files about the system around the program: system.c, brk.c, pin.c, sites.c.
 */
#ifndef HT_HOOKS_H
#define HT_HOOKS_H

#include "core.h"

/* Before the command line is read: registers with VG_(track_...) for mappings and for the kernel's accesses. */
void ht_system_register(void);
/* The ring is open, the client's image is in memory, none of its code has run; mappings there at the start are told by
 * the core's new_mem_startup after this. */
void ht_system_begin(void);
/* The same in a child of fork, on the child's own ring: `tid` is the one thread there is. What is mapped must be told
 * anew. */
void ht_system_child(ThreadId tid);
/* Around every system call, before the core's wrapper looks at it and after. */
void ht_system_before(ThreadId tid, UInt number, UWord *args, UInt n);
void ht_system_after(ThreadId tid, UInt number, UWord *args, UInt n, SysRes result);

/* With --pin=yes only: at the start, and after every system call (after ht_system_after). */
void ht_pin_begin(void);
void ht_pin_after(ThreadId tid, UInt number, UWord *args, UInt n, SysRes result);

/* With --sites only: a routine is entered from outside of the family; its HT_ENTER follows. */
void ht_sites_enter(ThreadId tid);

#endif
