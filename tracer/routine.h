/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Where the routines of the malloc family are, by the symbols of the objects that are mapped.
 */
#ifndef HT_ROUTINE_H
#define HT_ROUTINE_H

#include "core.h"
#include "words.h"

/* What is at an address where a routine begins. */
typedef struct HtRoutine {
   struct HtRoutine *next; /* of the hash table, */
   UWord address;          /* which looks at these two */
   UInt number;            /* HT_MALLOC... or HT_ANNOUNCER */
   UInt object;            /* which of the objects, from 1 */
   const HChar *path;      /* of the object */
   UInt told;              /* whether that was told */
} HtRoutine;

/* Not a routine: the function by which the announcing layer passes on a manager's events. */
#define HT_ANNOUNCER HT_ROUTINES
/* Neither: what the C library begins a program with; its first argument is main, */
#define HT_STARTER (HT_ROUTINES + 1)
/* and main. */
#define HT_MAIN_FUNCTION (HT_ROUTINES + 2)

/* The routine that begins at `address`, or NULL. Looks for objects that were mapped since it was last asked. */
HtRoutine *ht_routine_at(Addr address);
/* The program's main is at this address. */
void ht_routine_main(Addr address);
/* Tells the object of a routine, once. There may be several of one number in several objects. */
void ht_routine_tell_object(HtRoutine *routine);
/* Whether a routine `malloc` is in this object. */
Bool ht_routine_has_malloc(const DebugInfo *info);
/* In a child of fork: nothing has been told. */
void ht_routine_child(void);

#endif
