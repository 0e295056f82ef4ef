/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Routines by symbol. Managers often give one address several names, so all names of a symbol are compared. Local
 * symbols do not count, nor those of the dynamic linker, whose own malloc serves the linker before there is another.
 */
#include "routine.h"

#include "pub_tool_hashtable.h"
#include "ring.h"

/* Of the core: the symbols of an object. */
extern Int VG_(DebugInfo_syms_howmany)(const DebugInfo *object);
extern void VG_(DebugInfo_syms_getidx)(const DebugInfo *object, Int index, Addr *address, UInt *size,
                                       const HChar **primary, const HChar ***secondary, Bool *is_text,
                                       Bool *is_ifunc, Bool *is_global);

static const struct {
   const HChar *name;
   UInt number;
} names[] = {
   { "malloc", HT_MALLOC },
   { "__libc_malloc", HT_MALLOC },
   { "heaptoll_malloc_pointer_free", HT_MALLOC },
   { "free", HT_FREE },
   { "cfree", HT_FREE },
   { "free_sized", HT_FREE },
   { "free_aligned_sized", HT_FREE },
   { "__libc_free", HT_FREE },
   { "__libc_cfree", HT_FREE },
   { "calloc", HT_CALLOC },
   { "__libc_calloc", HT_CALLOC },
   { "realloc", HT_REALLOC },
   { "__libc_realloc", HT_REALLOC },
   { "reallocarray", HT_REALLOCARRAY },
   { "__libc_reallocarray", HT_REALLOCARRAY },
   { "memalign", HT_MEMALIGN },
   { "__libc_memalign", HT_MEMALIGN },
   { "posix_memalign", HT_POSIX_MEMALIGN },
   { "__posix_memalign", HT_POSIX_MEMALIGN },
   { "aligned_alloc", HT_ALIGNED_ALLOC },
   { "valloc", HT_VALLOC },
   { "pvalloc", HT_VALLOC },
   { "__libc_valloc", HT_VALLOC },
   { "__libc_pvalloc", HT_VALLOC },
   { "malloc_usable_size", HT_USABLE_SIZE },
   /* operator new and new[]: of a size; and nothrow; aligned; both. */
   { "_Znwm", HT_NEW },
   { "_Znam", HT_NEW },
   { "_ZnwmRKSt9nothrow_t", HT_NEW },
   { "_ZnamRKSt9nothrow_t", HT_NEW },
   { "_ZnwmSt11align_val_t", HT_NEW_ALIGNED },
   { "_ZnamSt11align_val_t", HT_NEW_ALIGNED },
   { "_ZnwmSt11align_val_tRKSt9nothrow_t", HT_NEW_ALIGNED },
   { "_ZnamSt11align_val_tRKSt9nothrow_t", HT_NEW_ALIGNED },
   /* operator delete and delete[]: plain; nothrow; sized; aligned; combined. */
   { "_ZdlPv", HT_DELETE },
   { "_ZdaPv", HT_DELETE },
   { "_ZdlPvRKSt9nothrow_t", HT_DELETE },
   { "_ZdaPvRKSt9nothrow_t", HT_DELETE },
   { "_ZdlPvm", HT_DELETE },
   { "_ZdaPvm", HT_DELETE },
   { "_ZdlPvSt11align_val_t", HT_DELETE },
   { "_ZdaPvSt11align_val_t", HT_DELETE },
   { "_ZdlPvmSt11align_val_t", HT_DELETE },
   { "_ZdaPvmSt11align_val_t", HT_DELETE },
   { "_ZdlPvSt11align_val_tRKSt9nothrow_t", HT_DELETE },
   { "_ZdaPvSt11align_val_tRKSt9nothrow_t", HT_DELETE },
   { "heaptoll_tracer_event", HT_ANNOUNCER },
   { "__libc_start_main", HT_STARTER },
};

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

static UInt number_of(const HChar *name)
{
   /* A symbol's version does not matter. */
   const HChar *const version = VG_(strchr)(name, '@');
   const SizeT length = version == NULL ? VG_(strlen)(name) : (SizeT)(version - name);
   for (UInt i = 0; i < sizeof names / sizeof names[0]; i++)
      if (VG_(strncmp)(names[i].name, name, length) == 0 && names[i].name[length] == 0)
         return names[i].number;
   return 0;
}

static void add(Addr address, UInt number, UInt object)
{
   HtRoutine *routine = VG_(HT_lookup)(routines, address);
   if (routine == NULL) {
      routine = VG_(calloc)("ht.routine", 1, sizeof *routine);
      routine->address = address;
      routine->number = number;
      VG_(HT_add_node)(routines, routine);
   }
   /* One address may be both free and operator delete: it counts as the function of C. Translated code may point to
    * its node, so it is never removed. */
   if (object != routine->object || number < routine->number) {
      routine->number = number;
      routine->recorded = 0;
   }
   routine->object = object;
   routine->path = objects[object - 1].path;
}

static Bool is_dynamic_linker(const DebugInfo *info)
{
   const HChar *const soname = VG_(DebugInfo_get_soname)(info);
   return soname != NULL && VG_(strncmp)(soname, "ld-linux", 8) == 0;
}

static void scan_symbols(const DebugInfo *info, UInt object)
{
   if (is_dynamic_linker(info))
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
      /* A symbol with a second name is seldom local under that one too: glibc's posix_memalign is local under its
       * first, where its debugging symbols are installed. */
      UInt number = is_global ? number_of(primary) : 0;
      for (; secondary != NULL && *secondary != NULL; secondary++) {
         const UInt other = number_of(*secondary);
         if (other != 0 && (number == 0 || other < number))
            number = other;
      }
      if (number != 0)
         add(address, number, object);
      if (number == HT_MALLOC)
         objects[object - 1].has_malloc = True;
   }
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
   const DebugInfo *const info = VG_(find_DebugInfo)(VG_(current_DiEpoch)(), address);
   scan();
   for (UInt i = 0; i < objects_used; i++)
      if (objects[i].info != NULL && objects[i].info == info)
         add(address, HT_MAIN_FUNCTION, i + 1);
}

void ht_routine_record_object(HtRoutine *routine)
{
   if (routine->recorded == stream)
      return;
   routine->recorded = stream;
   ht_ring_text(HT_TEXT_ROUTINE_OBJECT, routine->number, routine->path, VG_(strlen)(routine->path));
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
