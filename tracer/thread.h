/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What is known of each thread: its counters, and the calls and signal handlers it is in.
 *
 * Translated code keeps the counters in the first shadow area of the guest state, which is one displacement away from
 * the register that it always has. That area is no safe place: the core saves it in a signal's frame and restores it at
 * the handler's end, and copies it into new threads. So it is filled when a thread begins to run client code and read
 * when it stops.
 */
#ifndef HT_THREAD_H
#define HT_THREAD_H

#include "core.h"
#include "ring.h"

/* The part of the shadow area in use. */
typedef struct {
   HtRingPlace place;
   ULong instructions;
   ULong memory;      /* loads + 2^32 x stores since `loads` and `stores` were brought up to date */
   ULong watched;     /* a return that leaves the stack pointer at or above this is looked at */
   ULong heap_low;    /* of --pointers: lowest block */
   ULong heap_length; /* bytes from there to the end of the highest */
} HtRegisters;

/* Number of a thread, from 1, never used again in a process image. The core's ThreadId are. */
UInt ht_thread_number(ThreadId tid);
/* Tells an event with the counters I and M of a thread in front of `more`. At the end of a system call or in a helper
 * of translated code they are exact. */
void ht_thread_event(ThreadId tid, UInt kind, ULong payload, const ULong *more, UInt n);
/* Whether the thread is in a routine of the malloc family, not counting what a signal handler in it does. */
Bool ht_thread_in_routine(ThreadId tid);

void ht_thread_register(void);

#endif
