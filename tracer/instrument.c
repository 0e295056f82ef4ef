/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Instrumentation of each superblock of the client's code.
 *
 * Counters are increased once before each exit of the superblock, by constants. References are words written inline at
 * the address in the thread's registers; the superblock checks the space for them once at its start. A call of the tool
 * costs far more than either and is made only for entries of routines, for returns that may be theirs, and for the next
 * block of the ring.
 *
 * A superblock that faults in the middle does not add what it did until then: at most its own instructions.
 */
#include "instrument.h"

#include "call.h"
#include "functions.h"
#include "guest.h"
#include "options.h"
#include "ring.h"
#include "routine.h"
#include "switch.h"
#include "thread.h"

typedef struct {
   IRSB *sb;
   Int registers; /* offset of HtRegisters in the guest state */
   IRExpr *place; /* address of words; the word `words` after it is next */
   Int words;
   Bool moved;    /* place and words are not in the registers yet */
   Int unchecked;     /* most words since the last check of the space */
   ULong instructions, memory; /* to be added */
   HtFunction *function; /* NULL: functions are not counted */
} Block;

static IRExpr *number(ULong value)
{
   return IRExpr_Const(IRConst_U64(value));
}

static IRExpr *bind(Block *block, IRType type, IRExpr *value)
{
   const IRTemp temporary = newIRTemp(block->sb->tyenv, type);
   addStmtToIRSB(block->sb, IRStmt_WrTmp(temporary, value));
   return IRExpr_RdTmp(temporary);
}

static IRExpr *bind_64(Block *block, IRExpr *value)
{
   return bind(block, Ity_I64, value);
}

static IRExpr *binary(Block *block, IROp operation, IRExpr *left, IRExpr *right)
{
   return bind_64(block, IRExpr_Binop(operation, left, right));
}

#define REGISTER(block, name) ((block)->registers + (Int)offsetof(HtRegisters, name))

static IRExpr *get(Block *block, Int offset)
{
   return bind_64(block, IRExpr_Get(offset, Ity_I64));
}

static void put(Block *block, Int offset, IRExpr *value)
{
   addStmtToIRSB(block->sb, IRStmt_Put(offset, value));
}

static void call(Block *block, const HChar *name, void *function, IRExpr **arguments, IRExpr *guard)
{
   IRDirty *const dirty = unsafeIRDirty_0_N(0, name, VG_(fnptr_to_fnentry)(function), arguments);
   if (guard != NULL)
      dirty->guard = guard;
   addStmtToIRSB(block->sb, IRStmt_Dirty(dirty));
}

/* Checks the space, and turns to the next block if there is none. */
static void check_space(Block *block)
{
   IRExpr *const limit = get(block, REGISTER(block, place.limit));
   IRExpr *const full = bind(block, Ity_I1, IRExpr_Binop(Iop_CmpLT64U, limit, get(block, REGISTER(block, place.next))));
   call(block, "ht_ring_turn", &ht_ring_turn, mkIRExprVec_0(), full);
   block->place = get(block, REGISTER(block, place.next));
   block->words = 0;
   block->unchecked = 0;
}

static IRExpr *next_place(Block *block)
{
   return block->words == 0 ? block->place : binary(block, Iop_Add64, block->place, number(8 * (ULong)block->words));
}

static void write_place(Block *block)
{
   if (block->moved)
      put(block, REGISTER(block, place.next), next_place(block));
   block->moved = False;
}

/* Adds the instructions to the counter at an address. */
static void add_instructions(Block *block, IRExpr *counter)
{
   IRExpr *const before = bind_64(block, IRExpr_Load(Iend_LE, Ity_I64, counter));
   IRExpr *const after = binary(block, Iop_Add64, before, number(block->instructions));
   addStmtToIRSB(block->sb, IRStmt_Store(Iend_LE, counter, after));
}

/* Updates the registers: before every exit. */
static void write_registers(Block *block)
{
   write_place(block);
   if (block->instructions != 0 && block->function != NULL) {
      add_instructions(block, number((ULong)(Addr)&block->function->instructions));
      if (block->function->in_library)
         add_instructions(block, get(block, REGISTER(block, caller)));
   }
   if (block->instructions != 0)
      put(block, REGISTER(block, instructions),
          binary(block, Iop_Add64, get(block, REGISTER(block, instructions)), number(block->instructions)));
   if (block->memory != 0)
      put(block, REGISTER(block, memory),
          binary(block, Iop_Add64, get(block, REGISTER(block, memory)), number(block->memory)));
   block->instructions = block->memory = 0;
}

static void write_word(Block *block, IRExpr *word)
{
   if (block->unchecked == HT_RING_MARGIN) {
      write_place(block);
      check_space(block);
   }
   addStmtToIRSB(block->sb, IRStmt_Store(Iend_LE, next_place(block), word));
   block->words++;
   block->unchecked++;
   block->moved = True;
}

/* Whether an address lies between the lowest byte and the highest of all blocks, and the guard is true: 1 or 0. */
static IRExpr *in_heap(Block *block, IRExpr *address, IRExpr *guard)
{
   IRExpr *const distance = binary(block, Iop_Sub64, address, get(block, REGISTER(block, heap_low)));
   IRExpr *const inside = bind_64(
      block, IRExpr_Unop(Iop_1Uto64, bind(block, Ity_I1,
                                          IRExpr_Binop(Iop_CmpLT64U, distance,
                                                       get(block, REGISTER(block, heap_length))))));
   if (guard == NULL)
      return inside;
   return binary(block, Iop_And64, inside, bind_64(block, IRExpr_Unop(Iop_1Uto64, guard)));
}

static IRExpr *is_one(Block *block, IRExpr *number)
{
   return bind(block, Ity_I1, IRExpr_Unop(Iop_64to1, number));
}

/* Records a word if `condition` is 1: something is written in any case, and counted only then; the ring's block ends with
 * a 0 anyway. */
static void write_word_if(Block *block, IRExpr *condition, IRExpr *word)
{
   write_word(block, bind_64(block, IRExpr_ITE(is_one(block, condition), word, number(0))));
   block->words--;
   block->place =
      binary(block, Iop_Add64, next_place(block), binary(block, Iop_Shl64, condition, IRExpr_Const(IRConst_U8(3))));
   block->words = 0;
}

/* Records a reference. With a guard only if that is true; for graphs only to where blocks may be. Gives the condition
 * under which it is recorded, null for always. */
static IRExpr *reference(Block *block, IRExpr *address, Int size, Bool store, IRExpr *guard)
{
   const ULong one = store ? 1ULL << 32 : 1;
   if (guard == NULL) {
      block->memory += one;
   } else {
      IRExpr *const made = bind_64(block, IRExpr_ITE(guard, number(one), number(0)));
      put(block, REGISTER(block, memory), binary(block, Iop_Add64, get(block, REGISTER(block, memory)), made));
   }
   if (!ht_options.references)
      return guard;
   /* The kernel's part of the address space cannot be referred to, so the bits above the address are unused. */
   IRExpr *word = binary(block, Iop_Or64, address, number(HT_REFERENCE(size, store)));
   if (ht_options.graph) {
      IRExpr *const recorded = in_heap(block, address, guard);
      write_word_if(block, recorded, word);
      return is_one(block, recorded);
   }
   if (guard != NULL)
      word = bind_64(block, IRExpr_ITE(guard, word, number(HT_WORD(HT_NOTHING, 0))));
   write_word(block, word);
   return guard;
}

/* Records a 64-bit word of those that a store wrote to, if it points into the heap. */
static void recorded_word(Block *block, IRExpr *value, IRExpr *guard, IRExpr *kind)
{
   write_word_if(block, in_heap(block, value, guard), binary(block, Iop_Or64, value, kind));
}

static void stored_word(Block *block, IRExpr *value, IRExpr *guard, Int which)
{
   recorded_word(block, value, guard, number(HT_WORD(HT_POINTER, (ULong)which << HT_SIZE_SHIFT)));
}

/* Records a stored value in parts of 64 bits. */
static void value(Block *block, IRType type, IRExpr *stored, IRExpr *guard)
{
   static const IROp halves[] = { Iop_V128to64, Iop_V128HIto64 };
   static const IROp quarters[] = { Iop_V256to64_0, Iop_V256to64_1, Iop_V256to64_2, Iop_V256to64_3 };
   if (!ht_options.references || !ht_options.pointers || ht_options.graph)
      return;
   switch (type) {
   case Ity_I64:
      stored_word(block, stored, guard, 0);
      break;
   case Ity_F64:
      stored_word(block, bind_64(block, IRExpr_Unop(Iop_ReinterpF64asI64, stored)), guard, 0);
      break;
   case Ity_I128:
      stored_word(block, bind_64(block, IRExpr_Unop(Iop_128to64, stored)), guard, 0);
      stored_word(block, bind_64(block, IRExpr_Unop(Iop_128HIto64, stored)), guard, 1);
      break;
   case Ity_V128:
      for (UInt i = 0; i < 2; i++)
         stored_word(block, bind_64(block, IRExpr_Unop(halves[i], stored)), guard, (Int)i);
      break;
   case Ity_V256:
      for (UInt i = 0; i < 4; i++)
         stored_word(block, bind_64(block, IRExpr_Unop(quarters[i], stored)), guard, (Int)i);
      break;
   default:
      break;
   }
}

/* Records what the words hold to which a store of `size` bytes has written: pointers are also stored in parts, and by
 * vectors at any address. Only the second word that a store of 2 to 8 bytes reaches is left out. */
static void words_of(Block *block, IRExpr *address, Int size, IRExpr *guard)
{
   if (!ht_options.references || !ht_options.graph)
      return;
   IRExpr *first = binary(block, Iop_And64, address, number(~7ULL));
   /* Where nothing is stored the address may be no memory: the ring is. */
   if (guard != NULL)
      first = bind_64(block, IRExpr_ITE(guard, first, get(block, REGISTER(block, place.limit))));
   for (Int i = 0; i == 0 || 8 * (i + 1) <= size; i++) {
      IRExpr *const at = i == 0 ? first : binary(block, Iop_Add64, first, number(8 * (ULong)i));
      stored_word(block, bind_64(block, IRExpr_Load(Iend_LE, Ity_I64, at)), guard, i);
   }
   if (size < 16)
      return;
   /* The last one, where it is another. */
   IRExpr *const end = binary(block, Iop_Add64, address, number((ULong)size - 1));
   IRExpr *last = binary(block, Iop_And64, end, number(~7ULL));
   if (guard != NULL)
      last = bind_64(block, IRExpr_ITE(guard, last, first));
   IRExpr *const distance = binary(block, Iop_Sub64, last, first);
   IRExpr *const other = bind(block, Ity_I1, IRExpr_Binop(Iop_CmpEQ64, distance, number((ULong)size)));
   IRExpr *const kind = binary(block, Iop_Or64, number(HT_WORD(HT_POINTER, 0)),
                               binary(block, Iop_Shl64, distance, IRExpr_Const(IRConst_U8(HT_SIZE_SHIFT - 3))));
   recorded_word(block, bind_64(block, IRExpr_Load(Iend_LE, Ity_I64, last)), other, kind);
}

static void dirty_helper(Block *block, const IRDirty *dirty)
{
   IRExpr *const guard =
      dirty->guard->tag == Iex_Const && dirty->guard->Iex.Const.con->Ico.U1 ? NULL : dirty->guard;
   for (Int at = 0; at < dirty->mSize; at += HT_SIZE_MAX) {
      const Int size = dirty->mSize - at < HT_SIZE_MAX ? dirty->mSize - at : HT_SIZE_MAX;
      IRExpr *const address = at == 0 ? dirty->mAddr : binary(block, Iop_Add64, dirty->mAddr, number((ULong)at));
      if (dirty->mFx == Ifx_Read || dirty->mFx == Ifx_Modify)
         reference(block, address, size, False, guard);
      if (dirty->mFx == Ifx_Write || dirty->mFx == Ifx_Modify)
         reference(block, address, size, True, guard);
   }
}

/* Compare and swap: a load and a store, whether it succeeds or not. */
static void compare_and_swap(Block *block, IRCAS *cas)
{
   const IRType type = typeOfIRExpr(block->sb->tyenv, cas->dataLo);
   const Int size = sizeofIRType(type) * (cas->dataHi == NULL ? 1 : 2);
   reference(block, cas->addr, size, False, NULL);
   IRExpr *const recorded = reference(block, cas->addr, size, True, NULL);
   addStmtToIRSB(block->sb, IRStmt_CAS(cas));
   words_of(block, cas->addr, size, recorded);
   if (type != Ity_I64)
      return;
   IRExpr *swapped =
      bind(block, Ity_I1, IRExpr_Binop(Iop_CmpEQ64, IRExpr_RdTmp(cas->oldLo), cas->expdLo));
   value(block, type, cas->dataLo, swapped);
   if (cas->dataHi != NULL)
      value(block, type, cas->dataHi, swapped);
}

static void load_linked_store_conditional(Block *block, const IRStmt *statement)
{
   const IRTypeEnv *const types = block->sb->tyenv;
   IRExpr *const data = statement->Ist.LLSC.storedata;
   const IRType type = data == NULL ? typeOfIRTemp(types, statement->Ist.LLSC.result) : typeOfIRExpr(types, data);
   IRExpr *const recorded =
      reference(block, statement->Ist.LLSC.addr, sizeofIRType(type), data != NULL, NULL);
   addStmtToIRSB(block->sb, (IRStmt *)statement);
   if (data != NULL) {
      words_of(block, statement->Ist.LLSC.addr, sizeofIRType(type), recorded);
      value(block, type, data, IRExpr_RdTmp(statement->Ist.LLSC.result));
   }
}

/* The stack pointer gets a value. */
static void stack_pointer(Block *block, const IRSB *in, IRExpr *value)
{
   const HtMove move = ht_switch_move(in, value);
   if (move != HT_OF_FRAME)
      call(block, "ht_switch_happens", &ht_switch_happens,
           mkIRExprVec_3(get(block, HT_GUEST_SP), value, number(move)), NULL);
}

static void statement(Block *block, const IRSB *in, IRStmt *st)
{
   const IRTypeEnv *const types = block->sb->tyenv;
   IRType type, wide;
   IRExpr *recorded;
   switch (st->tag) {
   case Ist_IMark:
      block->instructions++;
      break;
   case Ist_WrTmp:
      if (st->Ist.WrTmp.data->tag == Iex_Load)
         reference(block, st->Ist.WrTmp.data->Iex.Load.addr, sizeofIRType(st->Ist.WrTmp.data->Iex.Load.ty), False,
                   NULL);
      break;
   case Ist_LoadG:
      typeOfIRLoadGOp(st->Ist.LoadG.details->cvt, &wide, &type);
      reference(block, st->Ist.LoadG.details->addr, sizeofIRType(type), False, st->Ist.LoadG.details->guard);
      break;
   case Ist_Store:
      type = typeOfIRExpr(types, st->Ist.Store.data);
      recorded = reference(block, st->Ist.Store.addr, sizeofIRType(type), True, NULL);
      value(block, type, st->Ist.Store.data, NULL);
      if (ht_options.graph) {
         addStmtToIRSB(block->sb, st);
         words_of(block, st->Ist.Store.addr, sizeofIRType(type), recorded);
         return;
      }
      break;
   case Ist_StoreG:
      type = typeOfIRExpr(types, st->Ist.StoreG.details->data);
      recorded =
         reference(block, st->Ist.StoreG.details->addr, sizeofIRType(type), True, st->Ist.StoreG.details->guard);
      value(block, type, st->Ist.StoreG.details->data, st->Ist.StoreG.details->guard);
      if (ht_options.graph) {
         addStmtToIRSB(block->sb, st);
         words_of(block, st->Ist.StoreG.details->addr, sizeofIRType(type), recorded);
         return;
      }
      break;
   case Ist_Dirty:
      if (st->Ist.Dirty.details->mFx != Ifx_None)
         dirty_helper(block, st->Ist.Dirty.details);
      break;
   case Ist_CAS:
      compare_and_swap(block, st->Ist.CAS.details);
      return;
   case Ist_LLSC:
      load_linked_store_conditional(block, st);
      return;
   case Ist_Put:
      if (ht_options.graph && st->Ist.Put.offset == HT_GUEST_SP)
         stack_pointer(block, in, st->Ist.Put.data);
      break;
   case Ist_Exit:
      write_registers(block);
      break;
   default:
      break;
   }
   addStmtToIRSB(block->sb, st);
}

static Bool refers_to_memory(const IRSB *in)
{
   for (Int i = 0; i < in->stmts_used; i++) {
      const IRStmt *const st = in->stmts[i];
      switch (st->tag) {
      case Ist_WrTmp:
         if (st->Ist.WrTmp.data->tag == Iex_Load)
            return True;
         break;
      case Ist_Dirty:
         if (st->Ist.Dirty.details->mFx != Ifx_None)
            return True;
         break;
      case Ist_Store:
      case Ist_LoadG:
      case Ist_StoreG:
      case Ist_CAS:
      case Ist_LLSC:
         return True;
      default:
         break;
      }
   }
   return False;
}

/* Instruments the start of a routine, or of a function that marks an event. */
static void entry(Block *block, HtRoutine *routine)
{
   if (routine->number == HT_ANNOUNCER) {
      call(block, "ht_call_announced", &ht_call_announced, mkIRExprVec_1(get(block, HT_GUEST_ARGUMENT_0)), NULL);
      return;
   }
   if (routine->number == HT_REQUEST_BEGIN || routine->number == HT_REQUEST_END) {
      IRExpr *const begins = number(routine->number == HT_REQUEST_BEGIN);
      call(block, "ht_call_request", &ht_call_request, mkIRExprVec_1(begins), NULL);
      return;
   }
   if (routine->number == HT_STARTER) {
      call(block, "ht_call_starts", &ht_call_starts, mkIRExprVec_1(get(block, HT_GUEST_ARGUMENT_0)), NULL);
      return;
   }
   if (routine->number == HT_MAIN_FUNCTION) {
      call(block, "ht_call_main", &ht_call_main, mkIRExprVec_0(), NULL);
      return;
   }
   if (routine->number == HT_EXIT_FUNCTION) {
      call(block, "ht_call_exits", &ht_call_exits, mkIRExprVec_0(), NULL);
      return;
   }
   IRExpr *const of_routine = number((ULong)(Addr)routine), *const sp = get(block, HT_GUEST_SP);
   IRExpr *const a = get(block, HT_GUEST_ARGUMENT_0), *const b = get(block, HT_GUEST_ARGUMENT_1);
   IRExpr *const c = get(block, HT_GUEST_ARGUMENT_2), *const d = get(block, HT_GUEST_ARGUMENT_3);
#if HT_RETURN_ON_STACK
   IRExpr **const arguments = mkIRExprVec_6(of_routine, sp, a, b, c, d);
#else
   IRExpr **const arguments = mkIRExprVec_7(of_routine, sp, a, b, c, d, get(block, HT_GUEST_RETURN));
#endif
   call(block, "ht_call_entered", &ht_call_entered, arguments, NULL);
}

/* Instruments the return at the end of a superblock. */
static void leaving(Block *block)
{
   IRExpr *const sp = get(block, HT_GUEST_SP);
   IRExpr *const left =
      bind(block, Ity_I1, IRExpr_Binop(Iop_CmpLE64U, get(block, REGISTER(block, watched)), sp));
   call(block, "ht_call_returned", &ht_call_returned,
        mkIRExprVec_3(sp, block->sb->next, get(block, HT_GUEST_RESULT)), left);
}

IRSB *ht_instrument(VgCallbackClosure *closure, IRSB *in, const VexGuestLayout *layout,
                    const VexGuestExtents *extents, const VexArchInfo *host, IRType guest_word, IRType host_word)
{
   (void)closure, (void)extents, (void)host;
   tl_assert(guest_word == Ity_I64 && host_word == Ity_I64);
   Block block = { .sb = deepCopyIRSBExceptStmts(in), .registers = layout->total_sizeB };
   tl_assert(sizeof(HtRegisters) <= (SizeT)layout->total_sizeB);
   Int i = 0;
   /* The core's own preamble. */
   while (i < in->stmts_used && in->stmts[i]->tag != Ist_IMark)
      addStmtToIRSB(block.sb, in->stmts[i++]);
   const Int first = i;
   if (i < in->stmts_used) {
      block.function = ht_function_at(in->stmts[i]->Ist.IMark.addr);
      HtRoutine *const routine = ht_routine_at(in->stmts[i]->Ist.IMark.addr);
      if (routine != NULL)
         entry(&block, routine);
   }
   if (ht_options.references && refers_to_memory(in))
      check_space(&block);
   for (; i < in->stmts_used; i++) {
      IRStmt *const st = in->stmts[i];
      if (st->tag == Ist_IMark && i != first) {
         const HtRoutine *const routine = ht_routine_at(st->Ist.IMark.addr);
         if (routine != NULL && routine->number < HT_ROUTINES)
            ht_ring_warn("heaptoll: code runs into a routine of the malloc family in %s without a call or jump; such "
                         "calls are not recorded",
                         routine->path);
      }
      statement(&block, in, st);
   }
   write_registers(&block);
   /* Stubs of the procedure linkage table jump, so the caller stays. */
   if (in->jumpkind == Ijk_Call && block.function != NULL && !block.function->in_library)
      put(&block, REGISTER(&block, caller), number((ULong)(Addr)&block.function->for_it));
   if (in->jumpkind == Ijk_Ret)
      leaving(&block);
   /* To a program that makes a request to Valgrind there is none: with it the program would take another path than
      natively. */
   if (in->jumpkind == Ijk_ClientReq)
      block.sb->jumpkind = Ijk_Boring;
   return block.sb;
}
