/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The address space that a traced program finds, made as roomy as a native one.
 *
 * Valgrind 3.19 gives a program 128 GB of addresses, shared with itself, and 8 MB of brk segment. So sbrk fails where it
 * does not natively, and a manager that reserves hundreds of gigabytes of addresses aborts: what would be measured is
 * another path of the manager. It also maps everything at small addresses, which to a conservative collector look like
 * the numbers that programs are full of: it would keep and avoid what it does not natively. So brk and mappings begin
 * where Linux has them, but for its lots. All of these are constants inside the core's functions (am_startup in
 * m_aspacemgr/aspacemgr-linux.c, ii_create_image in m_initimg/initimg-linux.c), so the linker puts functions of ours
 * around them (--wrap), and space.mk makes the address space manager's own tables visible to these.
 */

#include "core.h"
#include "system.h"

/* Where the client's brk segment begins, and how far it can grow, bytes; */
#define BRK_START 0x555555756000UL
#define BRK_ROOM 0x1000000000UL
/* below which address its mappings are put, */
#define MAPPINGS_END 0x7cfc00000000UL
/* where its stack ends and Valgrind's own memory begins, */
#define CLIENT_END 0x7d0000000000UL
/* and where that ends: the kernel's mappings are above. */
#define SPACE_END 0x7e0000000000UL

/* A request for addresses, as the core has it. */
typedef struct {
   enum { FIXED, HINT, ANY, ALIGN } kind;
   Addr start;
   Addr length;
} Request;

/* The core's own; not in its public headers. */
extern Addr __real_vgPlain_am_startup(Addr sp_at_startup);
extern Bool __real_vgPlain_am_create_reservation(Addr start, SizeT length, ShrinkMode mode, SSizeT extra);
extern Addr __real_vgPlain_am_get_advisory_client_simple(Addr start, SizeT length, Bool *ok);
extern Addr __real_vgPlain_am_get_advisory(const Request *request, Bool for_client, Bool *ok);
extern Bool VG_(am_covered_by_single_free_segment)(Addr start, SizeT length);
extern const NSegment *__real_vgPlain_am_extend_into_adjacent_reservation_client(Addr, SSizeT, Bool *);
extern Bool VG_(am_addr_is_in_extensible_client_stack)(Addr address);
extern Bool __real_vgModuleLocal_sf_maybe_extend_stack(const void *thread, Addr frame, SizeT length, UInt flags);
extern struct vki_rlimit VG_(client_rlimit_data);
extern NSegment nsegments[];
extern Int nsegments_used;
extern Addr aspacem_maxAddr;
extern Addr aspacem_vStart;

Addr __wrap_vgPlain_am_startup(Addr sp_at_startup);
Bool __wrap_vgPlain_am_create_reservation(Addr start, SizeT length, ShrinkMode mode, SSizeT extra);
Addr __wrap_vgPlain_am_get_advisory_client_simple(Addr start, SizeT length, Bool *ok);
Addr __wrap_vgPlain_am_get_advisory(const Request *request, Bool for_client, Bool *ok);
const NSegment *__wrap_vgPlain_am_extend_into_adjacent_reservation_client(Addr, SSizeT, Bool *);
Bool __wrap_vgModuleLocal_sf_maybe_extend_stack(const void *thread, Addr frame, SizeT length, UInt flags);

static Bool widened;

/* Takes segment `index` out of the table; the one before it grows over it. */
static void swallow(Int index)
{
   Int at;
   nsegments[index - 1].end = nsegments[index].end;
   for (at = index; at + 1 < nsegments_used; at++)
      nsegments[at] = nsegments[at + 1];
   nsegments_used--;
}

static Bool is_free(Int index)
{
   return index >= 0 && index < nsegments_used && nsegments[index].kind == SkFree;
}

/* Moves the border between the client and Valgrind, and the end of both, up. Runs before anything is mapped but
 * Valgrind's own image and the kernel's; leaves all as it is where the table is not as expected. Returns where the
 * client's stack is to end. */
Addr __wrap_vgPlain_am_startup(Addr sp_at_startup)
{
   Addr stack_end = __real_vgPlain_am_startup(sp_at_startup);
   Int beyond, border;

   /* The reservation of all that lies above the last address, as far as the kernel's mappings. */
   for (beyond = nsegments_used - 1; beyond > 0; beyond--)
      if (nsegments[beyond].start == aspacem_maxAddr + 1)
         break;
   /* The page reserved so that Valgrind's own mappings begin there. */
   for (border = nsegments_used - 1; border > 0; border--)
      if (nsegments[border].start == aspacem_vStart)
         break;
   if (beyond <= border + 1 || nsegments[beyond].kind != SkResvn || nsegments[beyond].end < SPACE_END
       || !is_free(beyond - 1) || nsegments[border].kind != SkResvn || border < 1 || !is_free(border - 1)
       || !is_free(border + 1))
      return stack_end;

   nsegments[beyond - 1].end = SPACE_END - 1;
   nsegments[beyond].start = SPACE_END;
   aspacem_maxAddr = SPACE_END - 1;
   swallow(border);
   /* What was behind it is free, too. */
   swallow(border);
   aspacem_vStart = CLIENT_END;
   /* Addresses are looked for from the beginning of a hole, so one must begin there. */
   if (!__real_vgPlain_am_create_reservation(CLIENT_END, VKI_PAGE_SIZE, SmFixed, 0))
      tl_assert2(0, "heaptoll: no room for Valgrind's own memory");
   widened = True;
   /* As far below the end of the client's addresses as Valgrind has it below the end of all. */
   return CLIENT_END - 16 * 1024 * 1024 - 1;
}

/* The core makes the brk segment so: it reserves 8 MB right behind the program; where that fails it asks for an address
 * and reserves there. Only it makes reservations that shrink at their lower end. */
static enum { BRK_UNASKED, BRK_REFUSED, BRK_ADVISED, BRK_THERE } brk_state = BRK_UNASKED;

/* Bytes that the brk segment may have, as RLIMIT_DATA allows and never less than the core would give. */
static SizeT brk_room(SizeT least)
{
   SizeT limit = VG_PGROUNDDN((SizeT)VG_(client_rlimit_data).rlim_cur);
   SizeT room = limit < BRK_ROOM ? limit : BRK_ROOM;
   return room > least ? room : least;
}

Bool __wrap_vgPlain_am_create_reservation(Addr start, SizeT length, ShrinkMode mode, SSizeT extra)
{
   if (mode == SmLower && brk_state == BRK_UNASKED) {
      brk_state = BRK_REFUSED;
      return False;
   }
   if (mode == SmLower && brk_state == BRK_ADVISED) {
      brk_state = BRK_THERE;
      if (start == BRK_START + extra
          && __real_vgPlain_am_create_reservation(start, brk_room(length + extra) - extra, mode, extra))
         return True;
   }
   return __real_vgPlain_am_create_reservation(start, length, mode, extra);
}

/* The highest free addresses of the client that have room, as Linux chooses them (mm/mmap.c, top-down); Valgrind takes
 * the lowest. Which mappings come to lie side by side depends on it. */
static Addr from_the_top(SizeT length, Bool *ok)
{
   Int at;
   length = VG_PGROUNDUP(length);
   for (at = nsegments_used - 1; widened && length > 0 && at >= 0; at--) {
      Addr start = nsegments[at].start, end = nsegments[at].end + 1;
      if (nsegments[at].kind != SkFree || start >= MAPPINGS_END)
         continue;
      if (end > MAPPINGS_END)
         end = MAPPINGS_END;
      if (end - start >= length) {
         *ok = True;
         return end - length;
      }
   }
   return __real_vgPlain_am_get_advisory_client_simple(0, length, ok);
}

Addr __wrap_vgPlain_am_get_advisory_client_simple(Addr start, SizeT length, Bool *ok)
{
   if (brk_state == BRK_REFUSED) {
      brk_state = BRK_ADVISED;
      if (VG_(am_covered_by_single_free_segment)(BRK_START, brk_room(length))) {
         *ok = True;
         return BRK_START;
      }
   }
   return start == 0 ? from_the_top(length, ok) : __real_vgPlain_am_get_advisory_client_simple(start, length, ok);
}

/* Where a mapping of the client is to be. A hint that can be followed is, and a fixed address. */
Addr __wrap_vgPlain_am_get_advisory(const Request *request, Bool for_client, Bool *ok)
{
   Request hint = *request;
   Addr advised;
   if (!for_client || request->kind == FIXED || ht_system_maps_low())
      return __real_vgPlain_am_get_advisory(request, for_client, ok);
   if (request->kind == HINT) {
      advised = __real_vgPlain_am_get_advisory(&hint, for_client, ok);
      if (*ok && advised == request->start)
         return advised;
   }
   return from_the_top(request->length, ok);
}

/* The core grows the stack of the first thread by this, downwards, and tells no tool. */
const NSegment *__wrap_vgPlain_am_extend_into_adjacent_reservation_client(Addr address, SSizeT delta, Bool *overflow)
{
   const NSegment *grown = __real_vgPlain_am_extend_into_adjacent_reservation_client(address, delta, overflow);
   if (grown && delta < 0)
      ht_system_stack_grown(grown->start, -delta);
   return grown;
}

/* Room for a signal's frame. The core takes SA_ONSTACK for the word that the thread is on an alternative stack, which is
 * not to grow (m_sigframe/sigframe-common.c). A handler may ask for one where there is none, as those do by which
 * collectors stop threads: its frame is then on the ordinary stack, whose next page need not be there yet, and the
 * program would be killed. What lies in the stack of the first thread may always grow it. */
Bool __wrap_vgModuleLocal_sf_maybe_extend_stack(const void *thread, Addr frame, SizeT length, UInt flags)
{
   if (VG_(am_addr_is_in_extensible_client_stack)(frame))
      flags &= ~VKI_SA_ONSTACK;
   return __real_vgModuleLocal_sf_maybe_extend_stack(thread, frame, length, flags);
}
