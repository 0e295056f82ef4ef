/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Routines by symbol. Managers often give one address several names, so all names of a symbol are compared. Local
 * symbols do not count, nor those of the dynamic linker, whose own malloc serves the linker before there is another.
 */
#include "routine.h"

#include "pub_tool_hashtable.h"
#include "options.h"
#include "ring.h"

extern UWord *VG_(client_auxv);
/* Of the core: the symbols of an object. */
extern Int VG_(DebugInfo_syms_howmany)(const DebugInfo *object);
extern void VG_(DebugInfo_syms_getidx)(const DebugInfo *object, Int index, Addr *address, UInt *size,
                                       const HChar **primary, const HChar ***secondary, Bool *is_text,
                                       Bool *is_ifunc, Bool *is_global);

/* An object whose symbols were read. */
typedef struct {
   const DebugInfo *info; /* NULL if it is no longer mapped */
   Addr text;
   HChar *path;
   Bool mapped;
   Bool has_malloc;
} Object;

static VgHashTable *routines;
static Object *objects;
static UInt objects_used, objects_capacity;
static UInt stream = 1; /* number of the stream: another in each child of fork */

/* Which of two meanings of an address counts. It may be both free and operator delete, then it is the function of C; or
 * the free of an allocator under two names, then it is the C library's. */
static Bool is_preferred(const HtSymbol *one, const HtSymbol *other)
{
   return one->family != other->family ? one->family < other->family : one->number < other->number;
}

static void add(Addr address, const HtSymbol *symbol, UInt object)
{
   HtRoutine *routine = VG_(HT_lookup)(routines, address);
   if (routine == NULL) {
      routine = VG_(calloc)("ht.routine", 1, sizeof *routine);
      routine->address = address;
      VG_(HT_add_node)(routines, routine);
   }
   /* Translated code may point to the node, so it is never removed. */
   if (object != routine->object || is_preferred(symbol, &routine->symbol)) {
      routine->symbol = *symbol;
      routine->number = symbol->number;
      routine->recorded = 0;
   }
   routine->object = object;
   routine->path = objects[object - 1].path;
}

static Bool has_soname(const DebugInfo *info, const HChar *beginning)
{
   const HChar *const soname = VG_(DebugInfo_get_soname)(info);
   return soname != NULL && VG_(strncmp)(soname, beginning, VG_(strlen)(beginning)) == 0;
}

/* One of our layers, whose copies call the C library's: that calls malloc. */
static Bool is_layer(const DebugInfo *info)
{
   return VG_(strstr)(VG_(DebugInfo_get_filename)(info), "/libheaptoll_") != NULL;
}

/* Whether the copies of a static program are an allocator's own, which has them under its own name too (`mi_strdup`). The
 * C library's (`__strdup`) call malloc. */
static Bool is_allocators(const HChar *primary, const HChar *const *secondary)
{
   for (const HChar *name = primary; name != NULL; name = secondary != NULL ? *secondary++ : NULL)
      if (name[0] != '_' && (VG_(strstr)(name, "_strdup") != NULL || VG_(strstr)(name, "_strndup") != NULL))
         return True;
   return False;
}

/* What one name stands for, if anything. A copy that the compiler made for some callers of a routine is no routine: it
 * takes other arguments. It shows that they do not call the routine. */
static Bool meaning_of(const HChar *name, HtSymbol *found)
{
   Bool clone;
   const HtSymbol *const symbol = ht_symbols_find(name, &clone);
   if (symbol == NULL)
      return False;
   *found = *symbol;
   if (clone)
      found->number = HT_INSIDE;
   return True;
}

/* Whether the program has no dynamic linker. Then no other object can bind to its malloc, and linkers make it local. */
static Bool is_static(void)
{
   enum { AT_NULL = 0, AT_BASE = 7 };
   for (const UWord *at = VG_(client_auxv); at != NULL && at[0] != AT_NULL; at += 2)
      if (at[0] == AT_BASE)
         return at[1] == 0;
   return True;
}

/* What the names of an address stand for, the preferred one. Of C and C++ only global names count, but in a static
 * program. A symbol with a second name is seldom local under that one too: glibc's posix_memalign is local under its first, where its debugging
 * symbols are installed. An allocator that was linked in is often local. */
static Bool meaning(Bool is_global, const HChar *primary, const HChar *const *secondary, HtSymbol *found)
{
   Bool any = meaning_of(primary, found) && (is_global || is_static() || found->family != HT_FAMILY_C);
   for (; secondary != NULL && *secondary != NULL; secondary++) {
      HtSymbol other;
      if (meaning_of(*secondary, &other) && (!any || is_preferred(&other, found))) {
         *found = other;
         any = True;
      }
   }
   return any;
}

/* Routines of an object that count once its other symbols were seen. */
typedef struct {
   Addr address;
   HtSymbol symbol;
} Pending;

static Pending *pending;
static UInt pending_used, pending_capacity;

static void wait_for_signs(Addr address, const HtSymbol *symbol)
{
   if (pending_used == pending_capacity) {
      pending_capacity = pending_capacity == 0 ? 64 : 2 * pending_capacity;
      pending = VG_(realloc)("ht.pending", pending, pending_capacity * sizeof *pending);
   }
   pending[pending_used++] = (Pending){ .address = address, .symbol = *symbol };
}

/* Adds those of families that the object has a sign of, and copies of an object with a malloc. */
static void add_pending(UInt object)
{
   Bool seen[256] = { False };
   for (UInt i = 0; i < pending_used; i++)
      if (pending[i].symbol.is_sign)
         seen[pending[i].symbol.family] = True;
   for (UInt i = 0; i < pending_used; i++)
      if (ht_symbols_copies(&pending[i].symbol)
             ? objects[object - 1].has_malloc
             : seen[pending[i].symbol.family] || !ht_symbols_has_signs(pending[i].symbol.family))
         add(pending[i].address, &pending[i].symbol, object);
   pending_used = 0;
}

/* Whether routines of the object count, by --only-in. */
static Bool is_wanted(const DebugInfo *info)
{
   const HChar *const path = VG_(DebugInfo_get_filename)(info), *const end = ht_options.only_in;
   if (end == NULL)
      return True;
   const SizeT of_path = VG_(strlen)(path), of_end = VG_(strlen)(end);
   return of_path >= of_end && VG_(strcmp)(path + of_path - of_end, end) == 0;
}

static void scan_symbols(const DebugInfo *info, UInt object)
{
   if (has_soname(info, "ld-linux") || !is_wanted(info))
      return;
   const Int n = VG_(DebugInfo_syms_howmany)(info);
   for (Int i = 0; i < n; i++) {
      Addr address;
      UInt size;
      const HChar *primary, **secondary;
      Bool is_text, is_ifunc, is_global;
      VG_(DebugInfo_syms_getidx)(info, i, &address, &size, &primary, &secondary, &is_text, &is_ifunc, &is_global);
      if (!is_text || is_ifunc)
         continue;
      HtSymbol found;
      if (!meaning(is_global, primary, secondary, &found))
         continue;
      const Bool copies = ht_symbols_copies(&found);
      if (copies && (is_static() ? !is_allocators(primary, secondary) : has_soname(info, "libc.so") || is_layer(info)))
         continue;
      if (copies || found.family != HT_FAMILY_C)
         wait_for_signs(address, &found);
      else
         add(address, &found, object);
      if (!copies && found.family == HT_FAMILY_C && found.number == HT_MALLOC)
         objects[object - 1].has_malloc = True;
   }
   add_pending(object);
}

static void scan_object(const DebugInfo *info)
{
   const Addr text = VG_(DebugInfo_get_text_avma)(info);
   const HChar *const path = VG_(DebugInfo_get_filename)(info);
   UInt at = 0;
   /* One that was unmapped may have been mapped again. */
   while (at < objects_used && !((objects[at].info == info || objects[at].info == NULL) && objects[at].text == text &&
                                 VG_STREQ(objects[at].path, path)))
      at++;
   if (at < objects_used && objects[at].info == info) {
      objects[at].mapped = True;
      return;
   }
   if (at == objects_capacity) {
      objects_capacity = objects_capacity == 0 ? 32 : 2 * objects_capacity;
      objects = VG_(realloc)("ht.objects", objects, objects_capacity * sizeof *objects);
   }
   if (at == objects_used)
      objects[objects_used++] = (Object){ .text = text, .path = VG_(strdup)("ht.object.path", path) };
   objects[at].info = info;
   objects[at].mapped = True;
   ht_ring_text(HT_TEXT_OBJECT, text, path, VG_(strlen)(path));
   scan_symbols(info, at + 1);
}

static void scan_objects(void)
{
   for (UInt i = 0; i < objects_used; i++)
      objects[i].mapped = False;
   for (const DebugInfo *info = VG_(next_DebugInfo)(NULL); info != NULL; info = VG_(next_DebugInfo)(info))
      scan_object(info);
   for (UInt i = 0; i < objects_used; i++)
      if (!objects[i].mapped)
         objects[i].info = NULL;
}

static void scan(void)
{
   static DiEpoch seen;
   const DiEpoch now = VG_(current_DiEpoch)();
   if (routines == NULL)
      routines = VG_(HT_construct)("ht.routines");
   if (seen.n != now.n) {
      seen = now;
      scan_objects();
   }
}

HtRoutine *ht_routine_at(Addr address)
{
   scan();
   HtRoutine *const routine = VG_(HT_lookup)(routines, address);
   return routine != NULL && objects[routine->object - 1].mapped ? routine : NULL;
}

void ht_routine_main(Addr address)
{
   static const HtSymbol main_function = { .number = HT_MAIN_FUNCTION, .family = HT_FAMILY_C };
   const DebugInfo *const info = VG_(find_DebugInfo)(VG_(current_DiEpoch)(), address);
   scan();
   for (UInt i = 0; i < objects_used; i++)
      if (objects[i].info != NULL && objects[i].info == info)
         add(address, &main_function, i + 1);
}

void ht_routine_record_object(HtRoutine *routine)
{
   if (routine->recorded == stream)
      return;
   routine->recorded = stream;
   ht_ring_text(routine->number == HT_INSIDE ? HT_TEXT_INLINED : HT_TEXT_ROUTINE_OBJECT, ht_routine_word(routine),
                routine->path, VG_(strlen)(routine->path));
}

ULong ht_routine_word(const HtRoutine *routine)
{
   return (routine->number == HT_INSIDE ? 0 : routine->number) + 256 * (ULong)routine->symbol.family;
}

Bool ht_routine_has_malloc(const DebugInfo *info)
{
   scan();
   for (UInt i = 0; i < objects_used; i++)
      if (objects[i].info == info)
         return objects[i].has_malloc;
   return False;
}

void ht_routine_child(void)
{
   stream++;
   for (UInt i = 0; i < objects_used; i++)
      if (objects[i].mapped)
         ht_ring_text(HT_TEXT_OBJECT, objects[i].text, objects[i].path, VG_(strlen)(objects[i].path));
}
