/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Switches of stacks: where code gives the stack pointer a value that is not computed from itself or from the frame's.
 */
#include "switch.h"

#include "guest.h"
#include "roots.h"

/* What a temporary is given; NULL if that is no expression. */
static const IRExpr *definition(const IRSB *in, IRTemp temporary)
{
   for (Int i = 0; i < in->stmts_used; i++)
      if (in->stmts[i]->tag == Ist_WrTmp && in->stmts[i]->Ist.WrTmp.tmp == temporary)
         return in->stmts[i]->Ist.WrTmp.data;
   return NULL;
}

HtMove ht_switch_move(const IRSB *in, const IRExpr *value)
{
   Bool loaded = False;
   while (value != NULL) {
      if (value->tag == Iex_RdTmp) {
         value = definition(in, value->Iex.RdTmp.tmp);
      } else if (value->tag == Iex_Binop) {
         /* Frames grow, end and are aligned so; an allocation in a frame subtracts a variable. */
         value = value->Iex.Binop.arg1;
      } else if (value->tag == Iex_Load && !loaded) {
         /* What a frame keeps in itself is its own end, before it had an array of variable size. */
         loaded = True;
         value = value->Iex.Load.addr;
      } else {
         break;
      }
   }
   if (value != NULL && value->tag == Iex_Get
       && (value->Iex.Get.offset == HT_GUEST_SP || value->Iex.Get.offset == HT_GUEST_FRAME))
      return loaded ? HT_COPIED : HT_OF_FRAME;
   return loaded ? HT_LOADED : HT_COPIED;
}

void ht_switch_happens(ULong from, ULong to, ULong move)
{
   /* What is copied and leads up is a longjmp, or the end of a frame of variable size. */
   if (move == HT_LOADED || to < from)
      ht_roots_switched(from, to);
}
