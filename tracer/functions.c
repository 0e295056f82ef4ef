/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Instructions of each function: a counter for each symbol of each object, to which its superblocks add. A superblock
 * is its first instruction's function's, as in callgrind. Code without a symbol is its object's as a whole; code
 * without an object (made at run time) has neither.
 *
 * What the standard library executes, memcpy or printf, is also counted for the function outside of it that called
 * last: a thread keeps that function's counter from the call on. A function that the library calls back, a comparison of
 * qsort's, takes its place only where it calls something itself.
 *
 * Symbols are read when code is translated, and copied: their object may be unmapped before the end.
 */
#include "functions.h"

#include "options.h"
#include "ring.h"

#include "pub_tool_debuginfo.h"

/* Of the core, whose tool interface only has names that are demangled, which takes too long for each superblock. */
extern Bool VG_(get_fnname_raw)(DiEpoch epoch, Addr code, const HChar **name);

#define SLOTS 16384 /* of a table of lists: a large program has some ten thousand functions */
#define MOST_TEXT ((HT_RING_MOST - 1) * sizeof(ULong)) /* as much as an event holds: symbols of templates are long */

typedef struct Function {
   HtFunction counters; /* first: translated code has its address */
   struct Function *next;
   UInt hash;
   HChar *object, *name;
} Function;

static Function *functions[SLOTS];
static HtFunction none;

/* Libraries of C and C++ by the beginning of their file names, which had the version in the middle until glibc 2.34. */
static const HChar *const standard[] = { "libc.so", "libm.so",  "libpthread.so", "ld-linux", "libstdc++.so", "libgcc_s.so",
                                         "libc-2.", "libm-2.", "libpthread-2.", "ld-2." };

/* Fowler, Noll and Vo's 1a, a byte at a time. */
static UInt add_to_hash(UInt hash, const HChar *text)
{
   for (; *text != '\0'; text++)
      hash = (hash ^ (UChar)*text) * 0x01000193u;
   return hash;
}

/* The file that is mapped here; "" for code that was made at run time. */
static const HChar *mapped_file(Addr code)
{
   const NSegment *const segment = VG_(am_find_nsegment)(code);
   const HChar *const file = segment == NULL ? NULL : VG_(am_get_filename)(segment);
   return file == NULL ? "" : file;
}

static Bool is_standard(const HChar *path)
{
   const HChar *const slash = VG_(strrchr)(path, '/'), *const name = slash == NULL ? path : slash + 1;
   for (UInt i = 0; i < sizeof standard / sizeof standard[0]; i++)
      if (VG_(strncmp)(name, standard[i], VG_(strlen)(standard[i])) == 0)
         return True;
   return False;
}

HtFunction *ht_function_none(void)
{
   return &none;
}

HtFunction *ht_function_at(Addr code)
{
   const DiEpoch epoch = VG_(current_DiEpoch)();
   const HChar *object = "", *name = "";
   DebugInfo *info;
   Function *function;
   UInt hash;

   if (!ht_options.functions)
      return NULL;
   info = VG_(find_DebugInfo)(epoch, code);
   if (info != NULL)
      object = VG_(DebugInfo_get_filename)(info);
   else
      object = mapped_file(code); /* stubs of the procedure linkage table are in no section with debug information */
   if (!VG_(get_fnname_raw)(epoch, code, &name))
      name = "";
   hash = add_to_hash(add_to_hash(0x811c9dc5u, object), name);
   for (function = functions[hash % SLOTS]; function != NULL; function = function->next)
      if (function->hash == hash && VG_(strcmp)(function->name, name) == 0 && VG_(strcmp)(function->object, object) == 0)
         return &function->counters;
   function = VG_(calloc)("heaptoll.function", 1, sizeof *function);
   function->hash = hash;
   function->object = VG_(strdup)("heaptoll.function", object);
   function->name = VG_(strdup)("heaptoll.function", name);
   function->counters.in_library = is_standard(object);
   function->next = functions[hash % SLOTS];
   functions[hash % SLOTS] = function;
   return &function->counters;
}

/* Records one counter and sets it to 0. */
static void report(UInt what, ULong *counter, const HChar *object, const HChar *name)
{
   HChar text[MOST_TEXT];
   SizeT of_object = VG_(strlen)(object), of_name = VG_(strlen)(name);
   if (*counter == 0)
      return;
   /* Both may have line feeds, and neither has a zero. */
   if (of_object > sizeof text - 1)
      of_object = sizeof text - 1;
   if (of_name > sizeof text - 1 - of_object)
      of_name = sizeof text - 1 - of_object;
   VG_(memcpy)(text, object, of_object);
   text[of_object] = '\0';
   VG_(memcpy)(text + of_object + 1, name, of_name);
   ht_ring_text(what, *counter, text, of_object + 1 + of_name);
   *counter = 0;
}

void ht_functions_report(void)
{
   for (UInt slot = 0; slot < SLOTS; slot++)
      for (Function *function = functions[slot]; function != NULL; function = function->next) {
         report(HT_TEXT_FUNCTION, &function->counters.instructions, function->object, function->name);
         report(HT_TEXT_CALLER, &function->counters.for_it, function->object, function->name);
      }
   report(HT_TEXT_CALLER, &none.for_it, "", "(before any call)");
}

void ht_functions_child(void)
{
   for (UInt slot = 0; slot < SLOTS; slot++)
      for (Function *function = functions[slot]; function != NULL; function = function->next)
         function->counters.instructions = function->counters.for_it = 0;
   none.for_it = 0;
}
