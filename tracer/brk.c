/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The address space of a traced program, made as large as a native one.
 *
 * Valgrind 3.19 gives a program 128 GB of addresses, shared with itself, and 8 MB of brk segment. So sbrk fails where
 * it does not natively, and a manager that reserves hundreds of gigabytes of addresses aborts: the measurement would be
 * of another path of the manager. Valgrind also maps everything at small addresses, which a conservative collector
 * mistakes for the small numbers of which programs are full: it would retain and avoid memory that it does not
 * natively. So brk and mappings begin where Linux has them, except for randomisation. All of these are constants inside
 * the core's functions (am_startup in m_aspacemgr/aspacemgr-linux.c, ii_create_image in m_initimg/initimg-linux.c), so
 * the linker wraps functions of ours around them (--wrap), and space.mk makes the address space manager's own tables
 * visible to these.
 */

#include "core.h"
#include "system.h"

#include "pub_tool_xarray.h"

/* Start of the client's brk segment, and its largest size, bytes. */
#define BRK_START 0x555555756000UL
#define BRK_MOST 0x1000000000UL
/* End of the addresses for its mappings. */
#define MAPPINGS_END 0x7cfc00000000UL
/* End of its stack, and start of Valgrind's own memory. */
#define CLIENT_END 0x7d0000000000UL
/* End of Valgrind's memory: the kernel's mappings are above. */
#define SPACE_END 0x7e0000000000UL

/* A request for addresses, as the core declares it. */
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

/* Bytes by which brk begins higher and mappings end lower: the argument of --shift, which counts before the tool's
 * options are read. */
static Addr shift(void)
{
   static Long pages = -1;
   Word at;
   if (pages >= 0)
      return (Addr)pages * VKI_PAGE_SIZE;
   if (VG_(args_for_valgrind) == NULL)
      return 0;
   pages = 0;
   for (at = 0; at < VG_(sizeXA)(VG_(args_for_valgrind)); at++) {
      const HChar *argument = *(HChar **)VG_(indexXA)(VG_(args_for_valgrind), at);
      if (argument != NULL && VG_(strncmp)(argument, "--shift=", 8) == 0)
         pages = VG_(strtoll10)(argument + 8, NULL);
   }
   if (pages < 0 || pages > 4095)
      pages = 0;
   return (Addr)pages * VKI_PAGE_SIZE;
}

/* Removes segment `index` from the table; the one before it grows over it. */
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

/* Moves the border between the client and Valgrind, and the end of both, up. Runs before anything is mapped except
 * Valgrind's own image and the kernel's; changes nothing if the table is not as expected. Returns the end of the
 * client's stack. */
Addr __wrap_vgPlain_am_startup(Addr sp_at_startup)
{
   Addr stack_end = __real_vgPlain_am_startup(sp_at_startup);
   Int beyond, border;

   /* The reservation from the last address up to the kernel's mappings. */
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
   /* The segment after it is free, too. */
   swallow(border);
   aspacem_vStart = CLIENT_END;
   /* A search for addresses begins at the start of a hole, so a hole must begin there. */
   if (!__real_vgPlain_am_create_reservation(CLIENT_END, VKI_PAGE_SIZE, SmFixed, 0))
      tl_assert2(0, "heaptoll: no space for Valgrind's own memory");
   widened = True;
   /* As far below the end of the client's addresses as Valgrind has it below the end of all addresses. */
   return CLIENT_END - 16 * 1024 * 1024 - 1;
}

/* How the core makes the brk segment: it reserves 8 MB directly after the program; if that fails it requests an
 * address and reserves there. No other reservation shrinks at its lower end. */
static enum { BRK_NOT_REQUESTED, BRK_REFUSED, BRK_ADVISED, BRK_THERE } brk_state = BRK_NOT_REQUESTED;

/* Bytes for the brk segment, as RLIMIT_DATA allows and never less than the core's. */
static SizeT brk_bytes(SizeT least)
{
   SizeT limit = VG_PGROUNDDN((SizeT)VG_(client_rlimit_data).rlim_cur);
   SizeT bytes = limit < BRK_MOST ? limit : BRK_MOST;
   return bytes > least ? bytes : least;
}

Bool __wrap_vgPlain_am_create_reservation(Addr start, SizeT length, ShrinkMode mode, SSizeT extra)
{
   if (mode == SmLower && brk_state == BRK_NOT_REQUESTED) {
      brk_state = BRK_REFUSED;
      return False;
   }
   if (mode == SmLower && brk_state == BRK_ADVISED) {
      brk_state = BRK_THERE;
      if (start == BRK_START + shift() + extra
          && __real_vgPlain_am_create_reservation(start, brk_bytes(length + extra) - extra, mode, extra))
         return True;
   }
   return __real_vgPlain_am_create_reservation(start, length, mode, extra);
}

/* The highest sufficiently large free addresses of the client, as Linux chooses them (mm/mmap.c, top-down); Valgrind
 * takes the lowest. Which mappings are adjacent depends on it. */
static Addr from_the_top(SizeT length, Bool *ok)
{
   const Addr most = MAPPINGS_END - shift();
   Int at;
   length = VG_PGROUNDUP(length);
   for (at = nsegments_used - 1; widened && length > 0 && at >= 0; at--) {
      Addr start = nsegments[at].start, end = nsegments[at].end + 1;
      if (nsegments[at].kind != SkFree || start >= most)
         continue;
      if (end > most)
         end = most;
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
      if (VG_(am_covered_by_single_free_segment)(BRK_START + shift(), brk_bytes(length))) {
         *ok = True;
         return BRK_START + shift();
      }
   }
   return start == 0 ? from_the_top(length, ok) : __real_vgPlain_am_get_advisory_client_simple(start, length, ok);
}

/* The address of a client's mapping. A hint that can be followed is, and so is a fixed address. */
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

/* The core grows the stack of the first thread by this, downwards, and notifies no tool. */
const NSegment *__wrap_vgPlain_am_extend_into_adjacent_reservation_client(Addr address, SSizeT delta, Bool *overflow)
{
   const NSegment *grown = __real_vgPlain_am_extend_into_adjacent_reservation_client(address, delta, overflow);
   if (grown && delta < 0)
      ht_system_stack_grown(grown->start, -delta);
   return grown;
}

/* Space for a signal's frame. The core takes SA_ONSTACK as proof that the thread is on an alternative stack, which
 * must not grow (m_sigframe/sigframe-common.c). A handler may request one that does not exist, as those do by which
 * collectors stop threads: its frame is then on the ordinary stack, whose next page may not be mapped yet, and the
 * program would be killed. An address in the stack of the first thread may always grow it. */
Bool __wrap_vgModuleLocal_sf_maybe_extend_stack(const void *thread, Addr frame, SizeT length, UInt flags)
{
   if (VG_(am_addr_is_in_extensible_client_stack)(frame))
      flags &= ~VKI_SA_ONSTACK;
   return __real_vgModuleLocal_sf_maybe_extend_stack(thread, frame, length, flags);
}
