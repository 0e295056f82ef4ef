/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * State of each thread: its counters, and the calls and signal handlers it is in.
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
   ULong memory;      /* loads + 2^32 x stores since the totals were updated */
   ULong watched;     /* a return that leaves the stack pointer at or above this is checked */
   ULong heap_low;    /* for --pointers: lowest block */
   ULong heap_length; /* bytes from there to the end of the highest */
   ULong caller;      /* for --functions: address of the counter to which functions of the standard library add */
} HtRegisters;

/* A routine or a signal handler that a thread is in. */
typedef struct {
   Bool handler;
   UInt number;         /* of the routine or of the signal */
   UInt family;         /* of a routine: that of its name */
   UInt served_by;      /* of a routine: 1 + another family of which it called a routine; 0: of none */
   Addr sp;             /* stack pointer at its entry; of a handler 0 until it begins */
   Addr watched;        /* see HtRegisters */
   Addr return_address; /* of a routine */
   Addr interrupted_sp; /* of a handler */
   Addr stack_low;      /* of a handler on an alternative stack: its start, else 0 */
   Addr stack_high;     /* and its last byte */
   ULong arguments[3];  /* of a routine */
} HtFrame;

#define HT_FRAMES 64

typedef struct {
   UInt number;      /* 0: no such thread */
   HtRegisters *at;  /* its shadow area */
   HtRegisters kept; /* content of the shadow area while client code does not run */
   ULong loads, stores;
   ULong recorded;   /* instructions when the counters were last recorded */
   UInt depth;   /* frames in use */
   Bool forked;  /* the system call it is in was a fork */
   HtFrame *frames; /* HT_FRAMES of them */
} HtThread;

/* The thread with this ThreadId. */
HtThread *ht_thread(ThreadId tid);
/* Whether there is one that has not ended. The core keeps what has ended until the kernel knows of that. */
Bool ht_thread_lives(ThreadId tid);
/* The thread that runs. */
HtThread *ht_thread_running(void);
/* Its registers, wherever they are now. */
HtRegisters *ht_thread_registers(HtThread *thread);
/* Instructions of all threads, ended ones too, as far as their counters are up to date. */
ULong ht_thread_instructions(void);
/* Number of a thread, from 1, never used again in a process image. The core reuses its ThreadId. */
UInt ht_thread_number(ThreadId tid);
/* The innermost routine or handler; NULL in plain code of the program. */
HtFrame *ht_thread_top(HtThread *thread);
/* Enters one, which the caller fills in; NULL if there are too many. */
HtFrame *ht_thread_push(HtThread *thread);
void ht_thread_pop(HtThread *thread);
/* Sets which returns are checked, by the innermost frame. */
void ht_thread_watch(HtThread *thread);
/* Whether the thread is in a routine of the malloc family, and not in a signal handler that interrupted it. */
Bool ht_thread_in_routine(ThreadId tid);

/* Records the running thread if the last event was another's. ht_ring_event does it for every event. */
void ht_thread_record_switch(void);
/* Records an event of the running thread with its counters I and M before `n` words of `more`, at most 8. In helpers
 * of translated code and around system calls they are exact. */
void ht_thread_event(ThreadId tid, UInt kind, ULong payload, const ULong *more, UInt n);

/* Before the command line is read. */
void ht_thread_register(void);
/* In a child of fork: `tid` is its only thread; counters restart. */
void ht_thread_child(ThreadId tid);
/* At the end of the process: records what is pending, and the end itself if the process exits. One that a signal
 * ends records none. */
void ht_thread_end(Bool exits, Int status);

#endif
