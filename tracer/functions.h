/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Instructions of each function, exclusive, with --functions=yes.
 */
#ifndef HT_FUNCTIONS_H
#define HT_FUNCTIONS_H

#include "core.h"

/* The counter of the function that contains this code: translated code adds to it. It stays where it is. NULL where
 * functions are not counted. */
ULong *ht_functions_counter(Addr code);
/* Records what each function has executed, and begins again at 0: before the image ends or is replaced. */
void ht_functions_report(void);
/* In a child of fork: what the parent has executed is not the child's. */
void ht_functions_child(void);

#endif
