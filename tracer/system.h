/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The files about the system around the program: their functions for each other and for threads.
 */
#ifndef HT_SYSTEM_H
#define HT_SYSTEM_H

#include "core.h"

/* brk.c: the pages from `start` became part of the client's stack. May be called within translated code, where
 * nothing can be recorded. */
void ht_system_stack_grown(Addr start, SizeT length);
/* O_CLOEXEC of Linux on amd64 and arm64. */
#define HT_CLOSE_ON_EXEC 02000000
/* AT_EMPTY_PATH: newfstatat describes the open file itself. */
#define HT_EMPTY_PATH 0x1000

/* brk.c: whether the mapping under way has to be below 4 GB. */
Bool ht_system_maps_low(void);
/* maps.c: the client has opened a file. */
void ht_maps_opened(const HChar *path, Int fd, Bool close_on_exec);
/* A call has described an open file in a struct stat. */
void ht_maps_inquired(Int fd, Addr result);
/* sites.c, pin.c: a child of fork begins, with a stream of its own. */
void ht_sites_child(void);
void ht_pin_child(void);

/* rseq.c: the client's image is in memory; a thread begins to run client code; a signal is about to be delivered to
 * it; it has ended; it is the only thread of a child of fork. */
void ht_rseq_begin(void);
void ht_rseq_runs(ThreadId tid);
void ht_rseq_signal(ThreadId tid);
void ht_rseq_ended(ThreadId tid);
void ht_rseq_child(ThreadId tid);

#endif
