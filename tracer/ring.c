/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The ring: a file that this process image writes and its consumer reads, both through a shared mapping.
 *
 * It is a file and not a pipe so that nothing is lost however the process dies: any process with the file can read the
 * content of the block that was being written. Words go into block `published` as long as the consumer is fewer than
 * HT_RING_BLOCKS behind; a block is published whole, and the rest of it is zero.
 */
#include "ring.h"

#include "options.h"
#include "thread.h"

#define BLOCK_BYTES (HT_RING_BLOCK_WORDS * sizeof(ULong))
#define RING_BYTES (HT_RING_HEADER_BYTES + HT_RING_BLOCKS * BLOCK_BYTES)
#define MAGIC 0x3130534645525448ULL /* the bytes "HTREFS01" */
#define VERSION 3 /* of the ring and of words.h: another kind of event makes another version */
#define COMMAND_AT 512

enum { PRODUCER_ENDED = 1, PRODUCER_STOPPED = 2 };
enum { CONSUMER_STOPS = 1 };
/* Most waits of 10 ms for a consumer that was not named. */
enum { MOST_WAITS = 500 };

typedef struct {
   ULong magic, version, pid, parent, block_words, blocks;
   ULong reserved_0[2];
   ULong published;
   ULong reserved_1[7];
   ULong consumed;
   ULong reserved_2[7];
   UInt producer_waits_on, consumer_waits_on;
   ULong reserved_3[7];
   ULong producer, consumer;
} Header;

/* Words that no consumer takes go here. */
static ULong nowhere[2 * HT_RING_MARGIN];
static HtRingPlace outside = { nowhere, nowhere + HT_RING_MARGIN };
HtRingPlace *ht_ring_place = &outside;

static Header *header; /* NULL: no ring */
static Bool is_open;   /* a consumer takes the words */
static ULong published;
static Int directory = -1;
/* Start of the consumer's process, to distinguish it from another with its number. */
static ULong consumer_began;

/* linux/futex.h and others, whose values are the same on every supported machine. */
enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1, FUTEX_WAKE_OP_PRIVATE = 5 + 128, FUTEX_ADD_NOTHING = 1 << 28 };

static ULong *block(ULong number)
{
   return (ULong *)((UChar *)header + HT_RING_HEADER_BYTES + (number % HT_RING_BLOCKS) * BLOCK_BYTES);
}

Bool ht_ring_is_open(void)
{
   return is_open;
}

static void into(ULong *words, UInt n)
{
   ht_ring_place->next = words;
   ht_ring_place->limit = words + n - HT_RING_MARGIN;
}

static void stop(ULong why)
{
   is_open = False;
   if (header != NULL)
      __atomic_or_fetch(&header->producer, why, __ATOMIC_RELEASE);
   into(nowhere, 2 * HT_RING_MARGIN);
}

/* Start of a process, clock ticks after the system's start; 0 if there is none, or only a zombie. */
static ULong began(Int pid)
{
   HChar path[40], text[512];
   VG_(sprintf)(path, "/proc/%d/stat", pid);
   const Int fd = VG_(fd_open)(path, VKI_O_RDONLY, 0);
   if (fd < 0)
      return 0;
   const Int length = VG_(read)(fd, text, sizeof text - 1);
   VG_(close)(fd);
   if (length <= 0)
      return 0;
   text[length] = 0;
   /* The name is in brackets and may contain anything; the state is field 3, the start field 22. */
   const HChar *at = VG_(strrchr)(text, ')');
   if (at == NULL || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
      return 0;
   for (Int field = 2; field < 22; field++) {
      at = VG_(strchr)(at + 1, ' ');
      if (at == NULL)
         return 0;
   }
   return VG_(strtoull10)(at + 1, NULL);
}

static Bool consumer_lives(void)
{
   return ht_options.consumer == 0 || (consumer_began != 0 && began(ht_options.consumer) == consumer_began);
}

/* Populates the memory of a block before it is written: without space in the file system a write would be a fault. The
   kernel touches each page by a call that the ring needs anyway: the program may have a filter that kills on another. */
static Bool has_memory(UChar *from, SizeT bytes)
{
   for (UChar *page = from; page < from + bytes; page += VKI_PAGE_SIZE) {
      const SysRes result = HT_SYSCALL(__NR_futex, page, FUTEX_WAKE_OP_PRIVATE, 0, 0, page, FUTEX_ADD_NOTHING);
      /* Any other error is a filter's, and no sign that memory is missing. */
      if (sr_isError(result) && (sr_Err(result) == VKI_EFAULT || sr_Err(result) == VKI_ENOMEM))
         return False;
   }
   return True;
}

/* Waits for a block to write into; False if there is no consumer to wait for. */
static Bool await_block(void)
{
   for (UInt waits = 0;; waits++) {
      const UInt seen = __atomic_load_n(&header->producer_waits_on, __ATOMIC_ACQUIRE);
      if (__atomic_load_n(&header->consumer, __ATOMIC_ACQUIRE) & CONSUMER_STOPS)
         return False;
      if (published - __atomic_load_n(&header->consumed, __ATOMIC_ACQUIRE) < HT_RING_BLOCKS)
         return True;
      if (waits % 8 == 7 && !consumer_lives())
         return False;
      if (ht_options.consumer == 0 && waits == MOST_WAITS) {
         VG_(umsg)("heaptoll: the ring has not been read for %d s, and --consumer names no process to wait for; what "
                   "process %d does from here on is not recorded\n",
                   MOST_WAITS / 100, VG_(getpid)());
         return False;
      }
      struct vki_timespec timeout = { 0, 10 * 1000 * 1000 };
      HT_SYSCALL(__NR_futex, &header->producer_waits_on, FUTEX_WAIT, seen, &timeout, 0, 0);
   }
}

void ht_ring_turn(void)
{
   if (!is_open) {
      into(nowhere, 2 * HT_RING_MARGIN);
      return;
   }
   /* After the last word there may be words of a superblock that faulted: they were never counted. */
   ULong *const end = block(published) + HT_RING_BLOCK_WORDS;
   for (ULong *word = ht_ring_place->next; word < end; word++)
      *word = 0;
   /* Before the block is published: the consumer reads the one after it where this process dies. */
   if (published + 1 < HT_RING_BLOCKS && !has_memory((UChar *)block(published + 1), BLOCK_BYTES)) {
      VG_(umsg)("heaptoll: there is no more space in %s; what process %d does from here on is not recorded; free some, "
                "or set TMPDIR to a folder with more\n",
                ht_options.ring_dir, VG_(getpid)());
      stop(PRODUCER_STOPPED);
      return;
   }
   published++;
   __atomic_store_n(&header->published, published, __ATOMIC_RELEASE);
   __atomic_add_fetch(&header->consumer_waits_on, 1, __ATOMIC_RELEASE);
   HT_SYSCALL(__NR_futex, &header->consumer_waits_on, FUTEX_WAKE, 1, 0, 0, 0);
   if (!await_block()) {
      stop(PRODUCER_STOPPED);
      return;
   }
   into(block(published), HT_RING_BLOCK_WORDS);
}

/* Space for an event of `n` words, or NULL if no consumer takes it. */
static ULong *reserve(UInt n)
{
   if (!is_open)
      return NULL;
   tl_assert(n <= 1 + HT_RING_MOST);
   if (ht_ring_place->next + n > ht_ring_place->limit + HT_RING_MARGIN)
      ht_ring_turn();
   return is_open ? ht_ring_place->next : NULL;
}

void ht_ring_put(UInt kind, ULong payload, const ULong *words, UInt n)
{
   ULong *const at = reserve(1 + n);
   if (at == NULL)
      return;
   /* The first word last: a reader that finds it finds the others. */
   for (UInt i = 0; i < n; i++)
      at[1 + i] = words[i];
   __atomic_store_n(at, HT_WORD(kind, payload), __ATOMIC_RELEASE);
   ht_ring_place->next = at + 1 + n;
}

void ht_ring_event(UInt kind, ULong payload, const ULong *words, UInt n)
{
   ht_thread_record_switch();
   ht_ring_put(kind, payload, words, n);
}

void ht_ring_text(UInt what, ULong word, const HChar *text, SizeT length)
{
   const SizeT most = (HT_RING_MOST - 1) * sizeof(ULong);
   ULong words[HT_RING_MOST];
   if (length > most)
      length = most;
   const UInt n = 1 + (UInt)((length + 7) / 8);
   words[n - 1] = 0;
   words[0] = word;
   VG_(memcpy)(words + 1, text, length);
   ht_ring_event(HT_TEXT, ((ULong)what << 32) | length, words, n);
}

void ht_ring_warn(const HChar *format, ...)
{
   static const HChar *reported[32];
   UInt i = 0;
   while (i < 32 && reported[i] != NULL && reported[i] != format)
      i++;
   if (i == 32 || reported[i] == format)
      return;
   reported[i] = format;
   HChar text[1024];
   va_list arguments;
   va_start(arguments, format);
   const UInt length = VG_(vsnprintf)(text, sizeof text, format, arguments);
   va_end(arguments);
   ht_ring_text(HT_TEXT_WARNING, 0, text, length < sizeof text ? length : sizeof text - 1);
   VG_(message)(Vg_UserMsg, "%s\n", text);
}

/* A file with a name that no earlier image of this process used. */
static Int create(void)
{
   for (UInt number = 0; number < 1000000; number++) {
      HChar name[32], *path = NULL;
      VG_(sprintf)(name, "%d.%u", VG_(getpid)(), number);
      const Int flags = VKI_O_RDWR | VKI_O_CREAT | VKI_O_EXCL;
      SysRes opened = HT_SYSCALL(__NR_openat, directory, name, flags, 0600, 0, 0);
      if (sr_isError(opened) && sr_Err(opened) != VKI_EEXIST) {
         /* The program may have closed the descriptor. */
         path = VG_(malloc)("ht.ring.path", VG_(strlen)(ht_options.ring_dir) + sizeof name + 1);
         VG_(sprintf)(path, "%s/%s", ht_options.ring_dir, name);
         opened = VG_(open)(path, flags, 0600);
         VG_(free)(path);
      }
      if (!sr_isError(opened))
         return (Int)sr_Res(opened);
      if (sr_Err(opened) != VKI_EEXIST)
         return -1;
   }
   return -1;
}

/* faccessat2 has the same number on all machines; kernels before 5.8 do not have it. */
enum { FACCESSAT2 = 439, EFFECTIVE = 0x200, WRITE_AND_SEARCH = 3 };

Bool ht_ring_may_make(Int at, const HChar *folder)
{
   const SysRes result = HT_SYSCALL(FACCESSAT2, at, folder, WRITE_AND_SEARCH, EFFECTIVE, 0, 0);
   if (sr_isError(result) && sr_Err(result) == VKI_ENOSYS)
      return !sr_isError(HT_SYSCALL(__NR_faccessat, at, folder, WRITE_AND_SEARCH, 0, 0, 0));
   return !sr_isError(result);
}

Bool ht_ring_may_fork(void)
{
   return !is_open || ht_ring_may_make(directory, ".") || ht_ring_may_make(directory, ht_options.ring_dir);
}

/* Writes the command: the path of the executable and each argument. */
static void write_command(HChar *at, const HChar *end)
{
   /* In a child of fork the path may not exist. */
   static HChar path[1024];
   if (path[0] == 0)
      VG_(client_fname)(path, sizeof path, False);
   const Word n = VG_(sizeXA)(VG_(args_for_client));
   for (Word i = -1; i < n; i++) {
      const HChar *text = i < 0 ? path : *(HChar **)VG_(indexXA)(VG_(args_for_client), i);
      const SizeT length = VG_(strlen)(text) + 1;
      if (length > (SizeT)(end - at) - 1)
         break;
      VG_(memcpy)(at, text, length);
      at += length;
   }
}

/* RLIMIT_FSIZE, which Valgrind does not name. */
enum { FILE_SIZE = 1 };

/* Gives the file its size. A limit of the program's on file sizes would end it with SIGXFSZ: where it can be raised
   meanwhile it is, elsewhere the file gets no size. */
static SysRes give_size(Int fd)
{
   struct vki_rlimit limit = {0, 0};
   HT_SYSCALL(__NR_prlimit64, 0, FILE_SIZE, 0, &limit, 0, 0);
   if (limit.rlim_cur >= RING_BYTES)
      return HT_SYSCALL(__NR_ftruncate, fd, RING_BYTES, 0, 0, 0, 0);
   const struct vki_rlimit enough = {RING_BYTES, limit.rlim_max > RING_BYTES ? limit.rlim_max : RING_BYTES};
   SysRes result = HT_SYSCALL(__NR_prlimit64, 0, FILE_SIZE, &enough, 0, 0, 0);
   if (sr_isError(result))
      return result;
   result = HT_SYSCALL(__NR_ftruncate, fd, RING_BYTES, 0, 0, 0, 0);
   HT_SYSCALL(__NR_prlimit64, 0, FILE_SIZE, &limit, 0, 0, 0);
   return result;
}

static void make(void)
{
   const Int fd = create();
   if (fd < 0) {
      VG_(umsg)("heaptoll: no ring can be made in %s for process %d; what it does is not recorded\n", ht_options.ring_dir,
                VG_(getpid)());
      return;
   }
   SysRes mapped = give_size(fd);
   if (!sr_isError(mapped))
      mapped = VG_(am_shared_mmap_file_float_valgrind)(RING_BYTES, VKI_PROT_READ | VKI_PROT_WRITE, fd, 0);
   if (sr_isError(mapped)) {
      VG_(close)(fd);
      VG_(umsg)("heaptoll: the ring of process %d cannot be mapped (error %lu%s); what it does is not recorded\n",
                VG_(getpid)(), sr_Err(mapped),
                sr_Err(mapped) == VKI_EPERM ? ": its limit on file sizes, ulimit -f, is too low" : "");
      return;
   }
   header = (Header *)(Addr)sr_Res(mapped);
   published = 0;
   const Bool has_space = has_memory((UChar *)header, HT_RING_HEADER_BYTES + BLOCK_BYTES);
   /* What it has taken is left to others. */
   if (!has_space)
      HT_SYSCALL(__NR_ftruncate, fd, 0, 0, 0, 0, 0);
   VG_(close)(fd);
   if (!has_space) {
      VG_(umsg)("heaptoll: there is no space in %s for a ring; what process %d does is not recorded; free some, or set "
                "TMPDIR to a folder with more (4 MiB a process)\n",
                ht_options.ring_dir, VG_(getpid)());
      VG_(am_munmap_valgrind)((Addr)header, RING_BYTES);
      header = NULL;
      return;
   }
   header->version = VERSION;
   header->pid = VG_(getpid)();
   header->parent = VG_(getppid)();
   header->block_words = HT_RING_BLOCK_WORDS;
   header->blocks = HT_RING_BLOCKS;
   write_command((HChar *)header + COMMAND_AT, (HChar *)header + HT_RING_HEADER_BYTES);
   __atomic_store_n(&header->magic, MAGIC, __ATOMIC_RELEASE);
   is_open = True;
   into(block(0), HT_RING_BLOCK_WORDS);
}

void ht_ring_open(void)
{
   tl_assert(sizeof(Header) <= COMMAND_AT && offsetof(Header, published) == 64 && offsetof(Header, consumed) == 128 &&
             offsetof(Header, producer_waits_on) == 192 && offsetof(Header, producer) == 256);
   if (ht_options.ring_dir == NULL)
      return;
   const SysRes opened = VG_(open)(ht_options.ring_dir, VKI_O_RDONLY, 0);
   if (!sr_isError(opened))
      directory = VG_(safe_fd)((Int)sr_Res(opened));
   consumer_began = ht_options.consumer == 0 ? 0 : began(ht_options.consumer);
   if (!consumer_lives()) {
      VG_(umsg)("heaptoll: process %d, which should read the ring, does not exist; nothing is recorded\n", ht_options.consumer);
      return;
   }
   make();
}

void ht_ring_reopen(void)
{
   if (header != NULL)
      VG_(am_munmap_valgrind)((Addr)header, RING_BYTES);
   const Bool was_open = is_open;
   header = NULL;
   stop(0);
   if (was_open)
      make();
}

void ht_ring_close(void)
{
   if (!is_open)
      return;
   /* The rest of the block may contain words that were never counted. */
   for (ULong *word = ht_ring_place->next; word < block(published) + HT_RING_BLOCK_WORDS && *word != 0; word++)
      *word = 0;
   is_open = False;
   __atomic_or_fetch(&header->producer, PRODUCER_ENDED, __ATOMIC_RELEASE);
   __atomic_add_fetch(&header->consumer_waits_on, 1, __ATOMIC_RELEASE);
   HT_SYSCALL(__NR_futex, &header->consumer_waits_on, FUTEX_WAKE, 1, 0, 0, 0);
   into(nowhere, 2 * HT_RING_MARGIN);
}

void ht_ring_client(HtRingPlace *registers)
{
   if (registers != NULL) {
      *registers = *ht_ring_place;
      ht_ring_place = registers;
   } else {
      outside = *ht_ring_place;
      ht_ring_place = &outside;
   }
}
