/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The log that Valgrind writes, and what it leaves open.
 */
#ifndef HT_LOG_H
#define HT_LOG_H

#include "core.h"

/* An image begins; a child of fork does, whose log may not be open yet; and none of that child's code has run. */
void ht_log_begin(void);
void ht_log_child(void);
void ht_log_before_code(void);

#endif
