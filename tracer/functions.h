/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Instructions of each function with --functions=yes: exclusive, and those that the standard library executed for it.
 */
#ifndef HT_FUNCTIONS_H
#define HT_FUNCTIONS_H

#include "core.h"

/* Counters of a function, to which translated code adds. */
typedef struct {
   ULong instructions; /* that it executed itself */
   ULong for_it;       /* that functions of the standard library executed since it called one of them */
   Bool in_library;    /* it is a function of the standard library */
} HtFunction;

/* The function that contains this code. It stays where it is. NULL where functions are not counted. */
HtFunction *ht_function_at(Addr code);
/* Stands for the caller of the standard library while a thread has called nothing. */
HtFunction *ht_function_none(void);
/* Records what each function has executed, and begins again at 0: before the image ends or is replaced. */
void ht_functions_report(void);
/* In a child of fork: what the parent has executed is not the child's. */
void ht_functions_child(void);

#endif
