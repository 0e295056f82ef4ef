/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The log that Valgrind writes, and the descriptor that it leaves open.
 */
#ifndef HT_LOG_H
#define HT_LOG_H

#include "core.h"

/* An image begins; a child of fork begins, whose log may not be open yet; before that child's code runs. */
void ht_log_begin(void);
void ht_log_child(void);
void ht_log_before_code(void);

#endif
