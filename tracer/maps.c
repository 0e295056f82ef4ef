/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * /proc/self/maps as it would be natively. Collectors find their roots in it; with the real one they would scan
 * Valgrind's own memory, which is in the same process.
 *
 * A program that opens it gets a file in memory instead, with the lines of its own mappings, [heap] and [stack] named
 * and with the protection that they have natively (Valgrind makes both executable).
 */

#include "hooks.h"
#include "system.h"

#ifndef __NR_memfd_create
#define __NR_memfd_create 319
#endif
#define MEMFD_CLOSE_ON_EXEC 1
/* Name of the file in memory, and how the kernel shows it. */
#define LIST_NAME "maps"
#define LIST_LINK "/memfd:" LIST_NAME
/* What the kernel states of files in /proc; the C library allocates a buffer of this size to read one. */
#define PROC_BLOCK 1024

extern Addr VG_(brk_base);
extern Addr VG_(brk_limit);
extern UWord *VG_(client_auxv);

/* A growing string. */
typedef struct {
   HChar *bytes;
   SizeT length, capacity;
} Text;

static void append(Text *text, const HChar *bytes, SizeT length)
{
   if (text->length + length > text->capacity) {
      text->capacity = 2 * (text->length + length);
      text->bytes = VG_(realloc)("heaptoll.maps", text->bytes, text->capacity);
   }
   VG_(memcpy)(text->bytes + text->length, bytes, length);
   text->length += length;
}

static void append_all(Text *text, Int fd)
{
   HChar piece[4096];
   Int got;
   while ((got = VG_(read)(fd, piece, sizeof piece)) > 0)
      append(text, piece, got);
}

/* Whether it is the list of this process: "/proc/PID/maps" or "/proc/PID/task/TID/maps". */
static Bool is_own_list(Int fd)
{
   HChar link[64], path[128], own[64];
   SSizeT length;
   VG_(sprintf)(link, "/proc/self/fd/%d", fd);
   length = VG_(readlink)(link, path, sizeof path - 1);
   if (length <= 5)
      return False;
   path[length] = '\0';
   length = VG_(sprintf)(own, "/proc/%d/", VG_(getpid)());
   return VG_(strncmp)(path, own, length) == 0
          && (VG_(strcmp)(path + length, "maps") == 0 || VG_(strncmp)(path + length, "task/", 5) == 0);
}

/* Appends a line for the program; nothing if it is Valgrind's. */
static void append_line(Text *out, const HChar *line, SizeT length)
{
   HChar *at, head[64];
   Addr start = VG_(strtoull16)(line, &at);
   Addr end = *at == '-' ? VG_(strtoull16)(at + 1, &at) : start;
   NSegment const *segment = VG_(am_find_nsegment)(start);
   const HChar *name = NULL;
   Addr stack = (Addr)VG_(client_auxv);

   if (!segment || !(segment->kind & (SkFileC | SkAnonC | SkShmC)))
      return;
   if (start >= VG_(brk_base) && segment->start == VG_(brk_base)) {
      Addr limit = VG_PGROUNDUP(VG_(brk_limit));
      if (start >= limit)
         return;
      if (end > limit)
         end = limit;
      name = "[heap]";
   } else if (segment->start <= stack && stack <= segment->end) {
      name = "[stack]";
   }
   if (!name || *at != ' ') {
      append(out, line, length);
      return;
   }
   /* " rwxp" */
   append(out, head,
          VG_(sprintf)(head, "%08lx-%08lx %c%c-%c 00000000 00:00 0 ", start, end, at[1], at[2], at[4]));
   /* The kernel begins names in column 74. */
   for (length = 73 - (VG_(strlen)(head) < 73 ? VG_(strlen)(head) : 73); length > 0; length--)
      append(out, " ", 1);
   append(out, name, VG_(strlen)(name));
   append(out, "\n", 1);
}

/* Replaces the open file with the program's own list. */
static void replace(Int fd, Bool close_on_exec)
{
   Text real = {NULL, 0, 0}, out = {NULL, 0, 0};
   SizeT at, line;
   SysRes memory;

   append_all(&real, fd);
   append(&real, "", 1);
   for (at = 0; at + 1 < real.length; at = line + 1) {
      for (line = at; real.bytes[line] != '\n' && real.bytes[line] != '\0'; line++)
         ;
      append_line(&out, real.bytes + at, line + 1 - at);
   }
   memory = HT_SYSCALL(__NR_memfd_create, LIST_NAME, MEMFD_CLOSE_ON_EXEC, 0, 0, 0, 0);
   if (!sr_isError(memory)) {
      VG_(write)(sr_Res(memory), out.bytes, out.length);
      VG_(lseek)(sr_Res(memory), 0, VKI_SEEK_SET);
      HT_SYSCALL(__NR_dup3, sr_Res(memory), fd, close_on_exec ? HT_CLOSE_ON_EXEC : 0, 0, 0, 0);
      VG_(close)(sr_Res(memory));
   }
   VG_(free)(real.bytes);
   if (out.bytes)
      VG_(free)(out.bytes);
}

void ht_maps_opened(const HChar *path, Int fd, Bool close_on_exec)
{
   SizeT length = VG_(strlen)(path);
   if (length > 5 && VG_(strcmp)(path + length - 5, "/maps") == 0 && is_own_list(fd))
      replace(fd, close_on_exec);
}

void ht_maps_inquired(Int fd, Addr result)
{
   struct vki_stat *const file = (struct vki_stat *)result;
   HChar link[64], path[sizeof LIST_LINK];
   if (!VG_(am_is_valid_for_client)(result, sizeof *file, VKI_PROT_WRITE) || !VKI_S_ISREG(file->st_mode))
      return;
   VG_(sprintf)(link, "/proc/self/fd/%d", fd);
   if (VG_(readlink)(link, path, sizeof path) < (SSizeT)sizeof LIST_LINK - 1
       || VG_(strncmp)(path, LIST_LINK, sizeof LIST_LINK - 1) != 0)
      return;
   file->st_size = 0;
   file->st_blocks = 0;
   file->st_blksize = PROC_BLOCK;
}
