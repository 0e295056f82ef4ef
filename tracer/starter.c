/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The owner of a new thread: the program, or its memory manager outside of a call, where no entered routine shows it.
 * The call stack of the thread that starts it shows it.
 *
 * The C library and the C++ library start threads for their callers, and so does a manager that intercepts
 * `pthread_create` to track the program's: their frames are skipped. If the next frame is the manager's, the thread is
 * its own. A library on which a manager is built may also start one for it, from the library's constructor: then the
 * dynamic linker has called it, and the functions above it. The program's own code is between neither.
 */
#include "starter.h"

#include "routine.h"

extern UWord *VG_(client_auxv);

/* Keys of the auxiliary vector. */
enum { AT_NULL = 0, AT_ENTRY = 9 };

#define FRAMES 64

/* The program's entry point, which is in its own object. */
static Addr entry_of_program(void)
{
   for (const UWord *at = VG_(client_auxv); at != NULL && at[0] != AT_NULL; at += 2)
      if (at[0] == AT_ENTRY)
         return at[1];
   return 0;
}

static Bool begins_with(const HChar *text, const HChar *start)
{
   return text != NULL && VG_(strncmp)(text, start, VG_(strlen)(start)) == 0;
}

static Bool is_c_library(const HChar *soname)
{
   return begins_with(soname, "libc.") || begins_with(soname, "libpthread.");
}

/* Whether a frame starts threads for its caller. */
static Bool starts_for_others(Addr frame, const HChar *soname)
{
   const HChar *function;
   if (is_c_library(soname) || begins_with(soname, "libstdc++.") || begins_with(soname, "libc++."))
      return True;
   return VG_(get_fnname)(VG_(current_DiEpoch)(), frame, &function) && VG_(strstr)(function, "pthread_create") != NULL;
}

Bool ht_starter_is_manager(ThreadId parent)
{
   const DiEpoch now = VG_(current_DiEpoch)();
   Addr frames[FRAMES];
   const UInt n = VG_(get_StackTrace)(parent, frames, FRAMES, NULL, NULL, 0);
   const Addr entry = entry_of_program();
   const DebugInfo *const program = entry == 0 ? NULL : VG_(find_DebugInfo)(now, entry);
   Bool first = True, by_manager = False;
   for (UInt i = 0; i < n; i++) {
      const DebugInfo *const object = VG_(find_DebugInfo)(now, frames[i]);
      if (object == NULL || object == program)
         return False;
      const HChar *const soname = VG_(DebugInfo_get_soname)(object);
      if (by_manager && begins_with(soname, "ld-"))
         return True;
      if (first && starts_for_others(frames[i], soname))
         continue;
      by_manager = !is_c_library(soname) && ht_routine_has_malloc(object);
      if (first && by_manager)
         return True;
      first = False;
   }
   return False;
}
