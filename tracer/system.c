/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Mappings, the kernel's accesses to memory, and system calls that fail here and not natively.
 */

#include "call.h"
#include "hooks.h"
#include "options.h"
#include "ring.h"
#include "roots.h"
#include "system.h"

/* Of the core, not in its public headers: the start of the brk segment, and its end as the program requested it. */
extern Addr VG_(brk_base);
extern Addr VG_(brk_limit);
/* And the auxiliary vector as the client finds it; the environment is before it. */
extern UWord *VG_(client_auxv);

static UInt protection_of(Bool read, Bool write, Bool execute)
{
   return (read ? HT_READ : 0) | (write ? HT_WRITE : 0) | (execute ? HT_EXECUTE : 0);
}

static void record_map(Addr address, SizeT length, UInt protection, UInt origin)
{
   ULong words[2] = {address, VG_PGROUNDUP(length)};
   if (length > 0)
      ht_ring_event(HT_MAP, protection + 8 * origin, words, 2);
}

static void record_unmap(Addr address, SizeT length)
{
   ULong words[2] = {address, VG_PGROUNDUP(length)};
   if (length > 0)
      ht_ring_event(HT_UNMAP, 0, words, 2);
}

/* ---- The stack ---- */

/* The part by which it has grown that is not recorded yet. */
static Addr stack_start;
static Addr stack_end;

void ht_system_stack_grown(Addr start, SizeT length)
{
   if (stack_end != start + length && stack_start != stack_end) {
      /* Another stack than before: impossible, only one grows. */
      return;
   }
   if (stack_start == stack_end)
      stack_end = start + length;
   stack_start = start;
}

static void record_stack(void)
{
   if (stack_start != stack_end) {
      record_map(stack_start, stack_end - stack_start, HT_READ | HT_WRITE, HT_ORIGIN_STACK);
      stack_start = stack_end = 0;
   }
}

/* ---- Mappings ---- */

/* The system call that makes a mapping, of the one thread that runs. */
static UInt call_under_way;
static Bool maps_low;

Bool ht_system_maps_low(void)
{
   return maps_low;
}

/* The core has one page of brk segment ready before the program requests any. */
static Bool unused_brk(Addr address)
{
   return address == VG_(brk_base) && VG_(brk_limit) == VG_(brk_base);
}

static void mapped_at_start(Addr address, SizeT length, Bool read, Bool write, Bool execute, ULong handle)
{
   /* The core's own trampolines can only be executed. */
   if ((read || write) && !unused_brk(address))
      record_map(address, length, protection_of(read, write, execute), HT_ORIGIN_START);
}

static void mapped(Addr address, SizeT length, Bool read, Bool write, Bool execute, ULong handle)
{
   UInt origin = call_under_way == __NR_mremap ? HT_ORIGIN_MREMAP : HT_ORIGIN_MMAP;
   record_stack();
   record_map(address, length, protection_of(read, write, execute), origin);
   ht_roots_mapped(address, length);
}

static void moved(Addr from, Addr to, SizeT length)
{
   NSegment const *segment = VG_(am_find_nsegment)(to);
   record_stack();
   record_map(to, length, segment ? protection_of(segment->hasR, segment->hasW, segment->hasX) : HT_READ | HT_WRITE,
            HT_ORIGIN_MREMAP);
   ht_roots_mapped(to, length);
}

static void protected(Addr address, SizeT length, Bool read, Bool write, Bool execute)
{
   ULong words[2] = {address, VG_PGROUNDUP(length)};
   record_stack();
   ht_ring_event(HT_PROTECT, protection_of(read, write, execute), words, 2);
}

static void unmapped(Addr address, SizeT length)
{
   record_stack();
   record_unmap(address, length);
   ht_roots_unmapped(address, length);
}

/* The kernel maps and unmaps whole pages; the program may request any byte. */
static void brk_grown(Addr address, SizeT length, ThreadId tid)
{
   Addr start = VG_PGROUNDUP(address);
   record_map(start, VG_PGROUNDUP(address + length) - start, HT_READ | HT_WRITE, HT_ORIGIN_BRK);
   ht_roots_mapped(address, length);
}

static void brk_shrunk(Addr address, SizeT length)
{
   Addr start = VG_PGROUNDUP(address);
   record_unmap(start, VG_PGROUNDUP(address + length) - start);
}

/* ---- The kernel's accesses ---- */

static void record_access(UInt kind, CorePart part, Addr address, SizeT length)
{
   ULong words[1] = {address};
   if (part == Vg_CoreSysCall && length > 0)
      ht_ring_event(kind, length, words, 1);
}

static void kernel_reads(CorePart part, ThreadId tid, const HChar *what, Addr address, SizeT length)
{
   /* The kernel reads nothing from unmapped memory. */
   if (VG_(am_is_valid_for_client)(address, length, VKI_PROT_READ))
      record_access(HT_KERNEL_LOAD, part, address, length);
}

static void kernel_reads_text(CorePart part, ThreadId tid, const HChar *what, Addr address)
{
   SizeT length = 0;
   while (VG_(am_is_valid_for_client)(address + length, 1, VKI_PROT_READ)) {
      Addr page_end = VG_PGROUNDDN(address + length) + VKI_PAGE_SIZE;
      while (address + length < page_end)
         if (*(const HChar *)(address + length++) == '\0') {
            record_access(HT_KERNEL_LOAD, part, address, length);
            return;
         }
   }
}

/* Records the pointers among the words that are wholly in a range. */
static void record_words(Addr address, SizeT length)
{
   ULong low, heap;
   ht_call_heap(&low, &heap);
   for (Addr at = VG_ROUNDUP(address, sizeof(ULong)); at + sizeof(ULong) <= address + length; at += sizeof(ULong)) {
      const ULong where = at, word = *(const ULong *)at;
      if (word - low < heap)
         ht_ring_event(HT_WORD_AT, word, &where, 1);
   }
}

static void kernel_wrote(CorePart part, ThreadId tid, Addr address, SizeT length)
{
   record_access(HT_KERNEL_STORE, part, address, length);
   if (ht_options.graph && part == Vg_CoreSysCall)
      record_words(address, length);
}

/* ---- System calls that fail here and not natively ---- */

static void refuse(UInt number, UInt error)
{
   ht_ring_event(HT_REFUSED, error + 4096 * (ULong)number, NULL, 0);
}

/* Whether the kernel has these calls, which Valgrind does not: with these arguments they only show that. */
static Bool kernel_has(UInt number)
{
   static UInt known, has;
   UInt bit = number == __NR_rseq ? 1 : number == __NR_clone3 ? 2 : 0;
   if (bit == 0)
      return True;
   if ((known & bit) == 0) {
      SysRes answer = HT_SYSCALL(number, 0, 0, 0, 0, 0, 0);
      known |= bit;
      if (!sr_isError(answer) || sr_Err(answer) != VKI_ENOSYS)
         has |= bit;
   }
   return (has & bit) != 0;
}

static Bool lacks_space(UInt error)
{
   return error == VKI_ENOMEM || error == VKI_EINVAL;
}

static Bool is_refusal(UInt number, const UWord *args, UInt error)
{
   if (error == VKI_ENOSYS)
      return kernel_has(number);
   switch (number) {
   case __NR_mmap:
      return lacks_space(error) && args[1] != 0;
   case __NR_mremap:
      /* One that may not move also fails natively, if there is another mapping after it. */
      return lacks_space(error) && args[2] != 0 && (args[3] & VKI_MREMAP_MAYMOVE);
   case __NR_munmap:
   case __NR_mprotect:
      return error == VKI_ENOMEM && VG_IS_PAGE_ALIGNED(args[0]) && args[1] != 0;
   default:
      return False;
   }
}

/* ---- What the core adds to the program ---- */

/* Whether the program keeps all that Valgrind's own tools would leave to it (space.mk). */
#ifndef HT_ALIKE
#define HT_ALIKE 0
#endif

/* Removes objects from LD_PRELOAD that the core has put there before the program's own (vgpreload_core and, if there
 * were one, the tool's): they have data, which collectors would scan, and no function that is needed here. The core
 * adds them again for each image. */
static void unload(HChar *value)
{
   static const HChar core[] = "/vgpreload_";
   HChar *end = value;
   for (;;) {
      HChar *name = NULL, *at;
      for (; *end != '\0' && *end != ':'; end++)
         if (*end == '/')
            name = end;
      if (!name || VG_(strncmp)(name, core, sizeof core - 1) != 0)
         return;
      if (*end == ':')
         end++;
      for (at = value; (*at = *end) != '\0'; at++)
         end++;
      end = value;
   }
}

static void unload_all(void)
{
   static const HChar variable[] = "LD_PRELOAD=";
   UWord *entry;
   if (!VG_(client_auxv))
      return;
   for (entry = VG_(client_auxv) - 2; *entry != 0; entry--)
      if (VG_(strncmp)((const HChar *)*entry, variable, sizeof variable - 1) == 0)
         unload((HChar *)*entry + sizeof variable - 1);
}

/* ---- Hooks ---- */

void ht_system_register(void)
{
   VG_(track_new_mem_startup)(mapped_at_start);
   VG_(track_new_mem_mmap)(mapped);
   VG_(track_new_mem_brk)(brk_grown);
   VG_(track_copy_mem_remap)(moved);
   VG_(track_change_mem_mprotect)(protected);
   VG_(track_die_mem_munmap)(unmapped);
   VG_(track_die_mem_brk)(brk_shrunk);
}

void ht_system_begin(void)
{
   if (!HT_ALIKE) {
      unload_all();
      ht_rseq_begin();
   }
   if (!ht_options.references)
      return;
   VG_(track_pre_mem_read)(kernel_reads);
   VG_(track_pre_mem_read_asciiz)(kernel_reads_text);
   VG_(track_post_mem_write)(kernel_wrote);
}

void ht_system_child(ThreadId tid)
{
   Int capacity = 1024, count, i;
   Addr *starts = VG_(malloc)("heaptoll.system", capacity * sizeof(Addr));
   while ((count = VG_(am_get_segment_starts)(SkFileC | SkAnonC | SkShmC, starts, capacity)) < 0) {
      capacity = -count;
      starts = VG_(realloc)("heaptoll.system", starts, capacity * sizeof(Addr));
   }
   for (i = 0; i < count; i++) {
      NSegment const *segment = VG_(am_find_nsegment)(starts[i]);
      Addr end = segment->end + 1;
      UInt origin = HT_ORIGIN_START;
      if (segment->start == VG_(brk_base)) {
         origin = HT_ORIGIN_BRK;
         /* The part above the limit was returned. */
         if (end > VG_PGROUNDUP(VG_(brk_limit)))
            end = VG_PGROUNDUP(VG_(brk_limit));
      }
      record_map(segment->start, end - segment->start, protection_of(segment->hasR, segment->hasW, segment->hasX),
               origin);
   }
   VG_(free)(starts);
   stack_start = stack_end = 0;
   ht_rseq_child(tid);
   if (ht_options.sites)
      ht_sites_child();
   if (ht_options.pin)
      ht_pin_child();
}

void ht_system_before(ThreadId tid, UInt number, UWord *args, UInt n)
{
   record_stack();
   call_under_way = number;
#ifdef VKI_MAP_32BIT
   maps_low = number == __NR_mmap && (args[3] & VKI_MAP_32BIT);
#endif
}

void ht_system_after(ThreadId tid, UInt number, UWord *args, UInt n, SysRes result)
{
   call_under_way = 0;
   maps_low = False;
   if (sr_isError(result)) {
      if (is_refusal(number, args, sr_Err(result)))
         refuse(number, sr_Err(result));
   } else if (number == __NR_brk && args[0] > sr_Res(result) && args[0] >= VG_(brk_base)) {
      /* brk reports a failure by returning the old limit. */
      refuse(number, VKI_ENOMEM);
#ifdef __NR_open
   } else if (number == __NR_open) {
      ht_maps_opened((const HChar *)args[0], sr_Res(result), (args[1] & HT_CLOSE_ON_EXEC) != 0);
#endif
   } else if (number == __NR_openat) {
      ht_maps_opened((const HChar *)args[1], sr_Res(result), (args[2] & HT_CLOSE_ON_EXEC) != 0);
   } else if (number == __NR_fstat) {
      ht_maps_inquired(args[0], args[1]);
#ifdef __NR_newfstatat
   } else if (number == __NR_newfstatat && (args[3] & HT_EMPTY_PATH) != 0) {
      ht_maps_inquired(args[0], args[2]);
#endif
   }
}
