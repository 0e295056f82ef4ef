/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Root points with --graph: what the program could reach without going through a block of its heap, by a conservative
 * scan of registers, stacks and writable memory that is not the manager's.
 */
#ifndef HT_ROOTS_H
#define HT_ROOTS_H

#include "core.h"

/* Memory became accessible, or was unmapped. What a routine of the malloc family maps is its manager's. */
void ht_roots_mapped(Addr address, SizeT length);
void ht_roots_unmapped(Addr address, SizeT length);
/* A thread ends. Where it exits its stack is dead until another thread has it; where the process ends with it, only what
 * lies below the stack pointer is. */
void ht_roots_thread_ended(ThreadId tid, Bool exits);
/* The stack pointer is moved by a switch of stacks. */
void ht_roots_switched(Addr from, Addr to);
/* A call of the malloc family has returned a block to the program. Records a root point if it is time for one. */
void ht_roots_allocated(ThreadId tid, Addr block, ULong size);
/* The process ends now, with all its threads: the last root point, once. `exits` has called exit, or is no thread. */
void ht_roots_ending(ThreadId exits);

#endif
