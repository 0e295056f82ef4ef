/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Names of routines. A line of the file of --symbols is one name:
 *
 *    FAMILY NUMBER ARGUMENT ARGUMENT ARGUMENT NAME
 *
 * FAMILY is its family's number, with `!` behind it if the name is a sign of it: in an object with none of its signs a
 * family that has some is not recognised, for other programs have a function `mi_free`, too; NUMBER the routine of C that it does the work of, or `inside` for a function that only
 * routines of its family call; each ARGUMENT one that the record of a call states: the number of the argument that has
 * it, two of them with `*` between for their product, `=` and a constant, or `-` for none. In a NAME `*` stands for any
 * characters.
 */
#include "symbols.h"

#include "options.h"
#include "ring.h"
#include "routine.h"

#define SLOTS 4096
#define MOST_FILE (1 << 20)
#define MOST_NAME 1024

static const struct {
   const HChar *name;
   UInt number;
} of_c[] = {
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
   { "heaptoll_event_begin_v1", HT_REQUEST_BEGIN },
   { "heaptoll_event_end_v1", HT_REQUEST_END },
   { "__libc_start_main", HT_STARTER },
   { "exit", HT_EXIT_FUNCTION },
   { "quick_exit", HT_EXIT_FUNCTION },
};

typedef struct Name {
   struct Name *next;
   UInt hash;
   HChar *text;
   HtSymbol symbol;
} Name;

/* Whole names by hash, and those with a `*`. */
static Name *names[SLOTS], *patterns;
static Bool has_signs[256];

Bool ht_symbols_has_signs(UInt family)
{
   return has_signs[family];
}

/* Fowler, Noll and Vo's 1a, a byte at a time. */
static UInt hash_of(const HChar *text, SizeT length)
{
   UInt hash = 0x811c9dc5u;
   for (SizeT i = 0; i < length; i++)
      hash = (hash ^ (UChar)text[i]) * 0x01000193u;
   return hash;
}

static const HtSymbol *whole(const HChar *text, SizeT length)
{
   const UInt hash = hash_of(text, length);
   for (const Name *name = names[hash % SLOTS]; name != NULL; name = name->next)
      if (name->hash == hash && VG_(strncmp)(name->text, text, length) == 0 && name->text[length] == 0)
         return &name->symbol;
   return NULL;
}

/* Whether a text fits a pattern; each `*` takes as little as it can, and more if the rest does not fit. */
static Bool fits(const HChar *pattern, const HChar *text, const HChar *end)
{
   const HChar *star = NULL, *taken = NULL;
   while (text < end) {
      if (*pattern == '*') {
         star = pattern++;
         taken = text;
      } else if (*pattern == *text) {
         pattern++;
         text++;
      } else if (star != NULL) {
         pattern = star + 1;
         text = ++taken;
      } else {
         return False;
      }
   }
   while (*pattern == '*')
      pattern++;
   return *pattern == 0;
}

static void add_name(const HChar *text, const HtSymbol *symbol)
{
   Name *const name = VG_(calloc)("ht.symbol", 1, sizeof *name);
   Name **list = &patterns;
   name->text = VG_(strdup)("ht.symbol", text);
   name->symbol = *symbol;
   if (VG_(strchr)(text, '*') == NULL) {
      name->hash = hash_of(text, VG_(strlen)(text));
      list = &names[name->hash % SLOTS];
   }
   name->next = *list;
   *list = name;
}

static void add_copy(const HChar *text, UInt how)
{
   HtSymbol symbol = { .number = HT_MALLOC, .family = HT_FAMILY_C };
   symbol.arguments[0] = (HtArgument){ how, 0, 1 };
   add_name(text, &symbol);
}

static void add_those_of_c(void)
{
   /* The record states the first three as they are. */
   const HtArgument as_they_are[3] = { { HT_ARGUMENT_ONE, 0, 0 }, { HT_ARGUMENT_ONE, 1, 0 }, { HT_ARGUMENT_ONE, 2, 0 } };
   for (UInt i = 0; i < sizeof of_c / sizeof of_c[0]; i++) {
      HtSymbol symbol = { .number = of_c[i].number, .family = HT_FAMILY_C };
      VG_(memcpy)(symbol.arguments, as_they_are, sizeof as_they_are);
      add_name(of_c[i].name, &symbol);
   }
   add_copy("strdup", HT_ARGUMENT_TEXT);
   add_copy("strndup", HT_ARGUMENT_TEXT_WITHIN);
}

/* The length of a name without what compilers append to it. A copy with other arguments, or of a part, is a clone;
 * one whose name was only made unique is the function itself. */
static SizeT plain_length(const HChar *name, SizeT length, Bool *clone)
{
   static const HChar *const copies[] = { ".part.", ".constprop.", ".isra.", ".specialized." };
   static const HChar *const same[] = { ".lto_priv.", ".llvm." };
   SizeT plain = length;
   for (UInt i = 0; i < sizeof copies / sizeof copies[0]; i++) {
      const HChar *const at = VG_(strstr)(name, copies[i]);
      if (at != NULL && (SizeT)(at - name) < plain) {
         plain = (SizeT)(at - name);
         *clone = True;
      }
   }
   for (UInt i = 0; i < sizeof same / sizeof same[0]; i++) {
      const HChar *const at = VG_(strstr)(name, same[i]);
      if (at != NULL && (SizeT)(at - name) < plain)
         plain = (SizeT)(at - name);
   }
   return plain;
}

const HtSymbol *ht_symbols_find(const HChar *name, Bool *clone)
{
   /* A symbol's version does not matter. */
   const HChar *const version = VG_(strchr)(name, '@');
   SizeT length = version == NULL ? VG_(strlen)(name) : (SizeT)(version - name);
   *clone = False;
   const HtSymbol *found = whole(name, length);
   if (found == NULL && VG_(strchr)(name, '.') != NULL) {
      length = plain_length(name, length, clone);
      found = whole(name, length);
      /* Those of C have names that others give their functions too. */
      if (found != NULL && found->family == HT_FAMILY_C)
         return NULL;
   }
   for (const Name *pattern = patterns; found == NULL && pattern != NULL; pattern = pattern->next)
      if (fits(pattern->text, name, name + length))
         found = &pattern->symbol;
   return found;
}

Bool ht_symbols_copies(const HtSymbol *symbol)
{
   return symbol->arguments[0].how == HT_ARGUMENT_TEXT || symbol->arguments[0].how == HT_ARGUMENT_TEXT_WITHIN;
}

/* Bytes of a copy of a text, with its end: 0 if there is none. The program may have called with any address. */
static ULong copied(Addr text, ULong most)
{
   ULong length = 0;
   for (Addr at = text; length < most; at++, length++) {
      if ((at == text || at % VKI_PAGE_SIZE == 0) && !VG_(am_is_valid_for_client)(at, 1, VKI_PROT_READ))
         return 0;
      if (*(const UChar *)at == 0)
         break;
   }
   return length + 1;
}

ULong ht_symbols_argument(const HtArgument *argument, const ULong *called_with)
{
   switch (argument->how) {
   case HT_ARGUMENT_ONE:
      return called_with[argument->first];
   case HT_ARGUMENT_PRODUCT:
      return called_with[argument->first] * called_with[argument->second];
   case HT_ARGUMENT_CONSTANT:
      return argument->first;
   case HT_ARGUMENT_TEXT:
      return copied(called_with[argument->first], ~0ULL);
   case HT_ARGUMENT_TEXT_WITHIN:
      return copied(called_with[argument->first], called_with[argument->second]);
   default:
      return 0;
   }
}

/* Reads a number and moves behind it. */
static Bool number(const HChar **at, UInt below, UInt *value)
{
   ULong sum = 0;
   const HChar *digit = *at;
   for (; *digit >= '0' && *digit <= '9'; digit++) {
      sum = 10 * sum + (ULong)(*digit - '0');
      if (sum >= below)
         return False;
   }
   if (digit == *at)
      return False;
   *at = digit;
   *value = (UInt)sum;
   return True;
}

static Bool blank(const HChar **at)
{
   return *(*at)++ == ' ';
}

static Bool argument(const HChar **at, HtArgument *found)
{
   if (**at == '-') {
      (*at)++;
      found->how = HT_ARGUMENT_NONE;
      return True;
   }
   if (**at == '=') {
      (*at)++;
      found->how = HT_ARGUMENT_CONSTANT;
      return number(at, 0xffffffffu, &found->first);
   }
   found->how = HT_ARGUMENT_ONE;
   if (!number(at, HT_ARGUMENTS, &found->first))
      return False;
   if (**at != '*')
      return True;
   (*at)++;
   found->how = HT_ARGUMENT_PRODUCT;
   return number(at, HT_ARGUMENTS, &found->second);
}

static Bool add_line(const HChar *at)
{
   static const HChar inside[] = "inside";
   HtSymbol symbol = { 0 };
   if (!number(&at, 256, &symbol.family) || symbol.family == HT_FAMILY_C)
      return False;
   symbol.is_sign = *at == '!';
   at += symbol.is_sign ? 1 : 0;
   if (!blank(&at))
      return False;
   if (VG_(strncmp)(at, inside, sizeof inside - 1) == 0) {
      at += sizeof inside - 1;
      symbol.number = HT_INSIDE;
   } else if (!number(&at, HT_ROUTINES, &symbol.number) || symbol.number == 0) {
      return False;
   }
   for (UInt i = 0; i < 3; i++)
      if (!blank(&at) || !argument(&at, &symbol.arguments[i]))
         return False;
   if (!blank(&at) || *at == 0 || VG_(strlen)(at) > MOST_NAME)
      return False;
   add_name(at, &symbol);
   has_signs[symbol.family] = has_signs[symbol.family] || symbol.is_sign;
   return True;
}

static HChar *read_file(const HChar *path)
{
   const SysRes opened = VG_(open)(path, VKI_O_RDONLY, 0);
   if (sr_isError(opened))
      return NULL;
   HChar *const text = VG_(calloc)("ht.symbols", 1, MOST_FILE + 1);
   Int length = 0, more;
   while (length < MOST_FILE && (more = VG_(read)((Int)sr_Res(opened), text + length, MOST_FILE - length)) > 0)
      length += more;
   VG_(close)((Int)sr_Res(opened));
   return text;
}

void ht_symbols_read(void)
{
   add_those_of_c();
   if (ht_options.symbols == NULL)
      return;
   HChar *const text = read_file(ht_options.symbols);
   if (text == NULL) {
      ht_ring_warn("heaptoll: %s cannot be read: allocators under names of their own are not recognised",
                   ht_options.symbols);
      return;
   }
   for (HChar *line = text; *line != 0;) {
      HChar *const end = VG_(strchr)(line, '\n');
      if (end != NULL)
         *end = 0;
      if (*line != 0 && !add_line(line))
         ht_ring_warn("heaptoll: a line of the symbols is not understood: %s", line);
      line = end == NULL ? line + VG_(strlen)(line) : end + 1;
   }
   VG_(free)(text);
}
