/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Line numbers of the program's objects, which call sites alone need. Reading those of the C library takes a fifth of a
 * short run.
 */
#include "core.h"

#include "options.h"

#if defined(VGA_amd64)
/* The linker replaces Valgrind's reader with this. The reader's arguments differ from version to version, and most are on
 * the stack: they are left where they are. */
void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void);

__attribute__((naked)) void __wrap_vgModuleLocal_read_debuginfo_dwarf3(void)
{
   __asm__("cmpl $0, %c0\n\t"
           "jne __real_vgModuleLocal_read_debuginfo_dwarf3\n\t"
           "ret"
           :
           : "i"(&ht_options.sites));
}
#endif
