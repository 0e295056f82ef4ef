/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Names of routines: those of C and C++, which are built in, and those of allocators under names of their own, which a
 * file lists (--symbols).
 */
#ifndef HT_SYMBOLS_H
#define HT_SYMBOLS_H

#include "core.h"
#include "words.h"

/* The family of C and C++. Those of the file are numbered there, from 1. */
#define HT_FAMILY_C 0

/* Where a routine has one of the arguments that a record states. */
typedef struct {
   enum {
      HT_ARGUMENT_NONE,
      HT_ARGUMENT_ONE,
      HT_ARGUMENT_PRODUCT,
      HT_ARGUMENT_CONSTANT,
      HT_ARGUMENT_TEXT, /* bytes of a copy of the text there, its end included */
      HT_ARGUMENT_TEXT_WITHIN /* the same of at most as many bytes before its end */
   } how;
   UInt first, second; /* numbers of arguments, or the constant */
} HtArgument;

/* What a name stands for. */
typedef struct {
   UInt number; /* HT_MALLOC... or one of those that routine.h adds */
   UInt family;
   Bool is_sign; /* its family is recognised by it */
   HtArgument arguments[3]; /* what the record of a call states, in the order of the routine of C */
} HtSymbol;

/* Arguments that may be named: those in registers on each machine. */
#define HT_ARGUMENTS 4

/* What a symbol stands for, NULL for most. `clone`: it is a copy of the function that the compiler made for some of its
 * callers. */
const HtSymbol *ht_symbols_find(const HChar *name, Bool *clone);
/* Whether it allocates and copies a text there. Of an allocator it calls none of its other routines; the C library's
 * calls malloc, which may be another's. */
Bool ht_symbols_copies(const HtSymbol *symbol);
/* Whether a family is recognised only in objects that have one of its signs. */
Bool ht_symbols_has_signs(UInt family);
/* The argument that a record states, of those with which a routine was called. */
ULong ht_symbols_argument(const HtArgument *argument, const ULong *called_with);
/* Reads the file of --symbols, if there is one. */
void ht_symbols_read(void);

#endif
