/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Call sites: the frames from which a routine of the malloc family is called, each site and each frame recorded once.
 */

#include "hooks.h"
#include "options.h"
#include "ring.h"
#include "system.h"

#include "pub_tool_debuginfo.h"
#include "pub_tool_oset.h"

#define MOST_FRAMES 255
#define FIRST_SLOTS 1024

typedef struct {
   ULong hash;
   UInt number; /* from 1; 0: an empty slot */
   UInt count;
   Addr *frames;
} Site;

/* An open table, at most half full. */
static Site *sites;
static UInt slots;
static UInt known;
/* Addresses whose names were recorded. */
static OSet *named;

static ULong hash_of(const Addr *frames, UInt count)
{
   /* Fowler, Noll and Vo's 1a, a word at a time, with its high half folded into the low bits that are used. */
   ULong hash = 0xcbf29ce484222325ULL;
   UInt at;
   for (at = 0; at < count; at++)
      hash = (hash ^ frames[at]) * 0x100000001b3ULL;
   return hash ^ (hash >> 32);
}

static Site *slot_of(ULong hash, const Addr *frames, UInt count)
{
   UInt at = hash & (slots - 1);
   for (;; at = (at + 1) & (slots - 1)) {
      Site *site = &sites[at];
      if (site->number == 0
          || (site->hash == hash && site->count == count
              && VG_(memcmp)(site->frames, frames, count * sizeof(Addr)) == 0))
         return site;
   }
}

static void grow_table(void)
{
   Site *before = sites;
   UInt slots_before = slots, at;
   if (sites && 2 * known < slots)
      return;
   slots = slots ? 2 * slots : FIRST_SLOTS;
   sites = VG_(calloc)("heaptoll.sites", slots, sizeof(Site));
   for (at = 0; at < slots_before; at++)
      if (before[at].number)
         *slot_of(before[at].hash, before[at].frames, before[at].count) = before[at];
   if (before)
      VG_(free)(before);
   if (!named)
      named = VG_(OSetWord_Create)(VG_(malloc), "heaptoll.named", VG_(free));
}

/* Records the object that contains the code, and the address in it. */
static void record_object(DiEpoch epoch, Addr frame)
{
   HChar text[4096];
   UInt length;
   DebugInfo *const object = VG_(find_DebugInfo)(epoch, frame);
   if (!object)
      return;
   length = VG_(snprintf)(text, sizeof text, "%lx %s", frame - (Addr)VG_(DebugInfo_get_text_bias)(object),
                          VG_(DebugInfo_get_filename)(object));
   ht_ring_text(HT_TEXT_FRAME_OBJECT, frame, text, length < sizeof text ? length : sizeof text - 1);
}

/* Records names without the address that Valgrind puts before them: "function (file:line)" or "function (in
 * object)". If code was inlined each function has one, innermost first. */
static void record_names(Addr frame)
{
   const DiEpoch epoch = VG_(current_DiEpoch)();
   InlIPCursor *inlined;
   if (VG_(OSetWord_Contains)(named, frame))
      return;
   VG_(OSetWord_Insert)(named, frame);
   inlined = VG_(new_IIPC)(epoch, frame);
   do {
      const HChar *text = VG_(describe_IP)(epoch, frame, inlined);
      const HChar *const colon = VG_(strstr)(text, ": ");
      if (colon)
         text = colon + 2;
      ht_ring_text(HT_TEXT_FRAME, frame, text, VG_(strlen)(text));
   } while (VG_(next_IIPC)(inlined));
   VG_(delete_IIPC)(inlined);
   record_object(epoch, frame);
}

void ht_sites_enter(ThreadId tid)
{
   Addr stack[MOST_FRAMES + 1];
   UInt wanted = ht_options.sites < MOST_FRAMES ? ht_options.sites : MOST_FRAMES;
   UInt count, at;
   Addr *frames = stack + 1; /* The first one is the routine itself. */
   ULong hash;
   Site *site;

   if (!ht_ring_is_open())
      return;
   count = VG_(get_StackTrace)(tid, stack, wanted + 1, NULL, NULL, 0);
   count = count > 0 ? count - 1 : 0;
   grow_table();
   hash = hash_of(frames, count);
   site = slot_of(hash, frames, count);
   if (site->number == 0) {
      ULong words[MOST_FRAMES];
      site->hash = hash;
      site->number = ++known;
      site->count = count;
      site->frames = VG_(malloc)("heaptoll.site", (count ? count : 1) * sizeof(Addr));
      for (at = 0; at < count; at++) {
         site->frames[at] = words[at] = frames[at];
         record_names(frames[at]);
      }
      ht_ring_event(HT_SITE_DEFINITION, count + 256 * (ULong)site->number, words, count);
   }
   ht_ring_event(HT_SITE, site->number, NULL, 0);
}

/* A child's stream has no definitions yet: all are made again, with numbers of their own. */
void ht_sites_child(void)
{
   UInt at;
   if (!sites)
      return;
   for (at = 0; at < slots; at++)
      if (sites[at].number)
         VG_(free)(sites[at].frames);
   VG_(free)(sites);
   VG_(OSetWord_Destroy)(named);
   sites = NULL;
   named = NULL;
   slots = known = 0;
}
