/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The same randomness in every run: managers that use random numbers (for addresses, canaries, samples) get the same
 * ones each time, so that two runs of a deterministic program execute the same instructions.
 */

#include "hooks.h"
#include "system.h"

/* Of the core, not in its public headers: the auxiliary vector as the client finds it. */
extern UWord *VG_(client_auxv);
#define AUXV_END 0
#define AUXV_RANDOM 25

/* Results of the x86 processor's random instructions. The linker replaces Valgrind's helpers with ours (space.mk). */
ULong __wrap_amd64g_dirtyhelper_RDRAND(void);
ULong __wrap_amd64g_dirtyhelper_RDSEED(void);
extern ULong __real_amd64g_dirtyhelper_RDRAND(void);
extern ULong __real_amd64g_dirtyhelper_RDSEED(void);

static Bool pinned;
static ULong state = 0x68656170746f6c6cULL;
/* Children so far, so that each has random numbers of its own. */
static ULong children;

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014, Figure 17. */
static ULong next(void)
{
   ULong z = state += 0x9e3779b97f4a7c15ULL;
   z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
   z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
   return z ^ (z >> 31);
}

static void fill(Addr address, SizeT length)
{
   UChar *bytes = (UChar *)address;
   SizeT at;
   ULong word = 0;
   if (!VG_(am_is_valid_for_client)(address, length, VKI_PROT_READ | VKI_PROT_WRITE))
      return;
   for (at = 0; at < length; at++) {
      if (at % 8 == 0)
         word = next();
      bytes[at] = word >> (at % 8 * 8);
   }
}

/* Whether it is /dev/random or /dev/urandom, whatever its path. */
static Bool is_random(Int fd)
{
   struct vg_stat file;
   return VG_(fstat)(fd, &file) == 0 && VKI_S_ISCHR(file.mode) && (file.rdev == 0x108 || file.rdev == 0x109);
}

void ht_pin_begin(void)
{
   UWord *entry;
   pinned = True;
   for (entry = VG_(client_auxv); entry && entry[0] != AUXV_END; entry += 2)
      if (entry[0] == AUXV_RANDOM)
         fill(entry[1], 16);
}

void ht_pin_child(void)
{
   state ^= (children + 1) << 32;
   (void)next();
   children = 0;
}

void ht_pin_after(ThreadId tid, UInt number, UWord *args, UInt n, SysRes result)
{
   if (sr_isError(result))
      return;
   switch (number) {
   case __NR_getrandom:
      fill(args[0], sr_Res(result));
      break;
   case __NR_read:
   case __NR_pread64:
      if (sr_Res(result) > 0 && is_random(args[0]))
         fill(args[1], sr_Res(result));
      break;
#ifdef __NR_fork
   case __NR_fork:
   case __NR_vfork:
#endif
   case __NR_clone:
      children++;
      break;
   default:
      break;
   }
}

/* The result of Valgrind's helpers: 32 bits, and the bit above them to show that there was randomness. */
static ULong random_bits(void)
{
   return (next() & 0xffffffffULL) | 1ULL << 32;
}

ULong __wrap_amd64g_dirtyhelper_RDRAND(void)
{
   return pinned ? random_bits() : __real_amd64g_dirtyhelper_RDRAND();
}

ULong __wrap_amd64g_dirtyhelper_RDSEED(void)
{
   return pinned ? random_bits() : __real_amd64g_dirtyhelper_RDSEED();
}
