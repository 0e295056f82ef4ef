/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Addresses of the routines of the malloc family, from the symbols of mapped objects.
 */
#ifndef HT_ROUTINE_H
#define HT_ROUTINE_H

#include "core.h"
#include "symbols.h"
#include "words.h"

/* A routine's start. */
typedef struct HtRoutine {
   struct HtRoutine *next; /* of the hash table, */
   UWord address;          /* which reads these two */
   UInt number;            /* HT_MALLOC... or HT_ANNOUNCER: that of `symbol` */
   HtSymbol symbol;
   UInt object;            /* which of the objects, from 1 */
   const HChar *path;      /* of the object */
   UInt recorded;              /* stream in which that was recorded */
} HtRoutine;

/* Not a routine: the function by which the announcing layer forwards a manager's events. */
#define HT_ANNOUNCER HT_ROUTINES
/* Nor this: the C library's function that begins a program; its first argument is main. */
#define HT_STARTER (HT_ROUTINES + 1)
/* The program's main. */
#define HT_MAIN_FUNCTION (HT_ROUTINES + 2)
/* Nor these: the functions by which a program marks its requests (include/heaptoll_events.h). */
#define HT_REQUEST_BEGIN (HT_ROUTINES + 4)
#define HT_REQUEST_END (HT_ROUTINES + 5)
/* Nor these: the functions that end a program, which call its handlers and destructors. */
#define HT_EXIT_FUNCTION (HT_ROUTINES + 6)
/* Nor this: a function that only routines of its family call, so that a call from elsewhere shows an inlined one. */
#define HT_INSIDE (HT_ROUTINES + 3)

/* The routine that begins at `address`, or NULL. Scans objects that were mapped since the last call. */
HtRoutine *ht_routine_at(Addr address);
/* The program's main is at this address. */
void ht_routine_main(Addr address);
/* Records the object of a routine, once. There may be several of one number in several objects. */
void ht_routine_record_object(HtRoutine *routine);
/* Its number and family as records have them. */
ULong ht_routine_word(const HtRoutine *routine);
/* Whether this object has a routine `malloc`. */
Bool ht_routine_has_malloc(const DebugInfo *info);
/* In a child of fork: nothing has been recorded. */
void ht_routine_child(void);

#endif
