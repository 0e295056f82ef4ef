/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The registers that the tool reads, by machine. The arm64 part is untested.
 */
#ifndef HT_GUEST_H
#define HT_GUEST_H

#include "core.h"

#if defined(VGA_amd64)
#include "libvex_guest_amd64.h"
typedef VexGuestAMD64State HtGuest;
#define HT_GUEST_SP offsetof(HtGuest, guest_RSP)
#define HT_GUEST_FRAME offsetof(HtGuest, guest_RBP)
#define HT_GUEST_RESULT offsetof(HtGuest, guest_RAX)
#define HT_GUEST_ARGUMENT_0 offsetof(HtGuest, guest_RDI)
#define HT_GUEST_ARGUMENT_1 offsetof(HtGuest, guest_RSI)
#define HT_GUEST_ARGUMENT_2 offsetof(HtGuest, guest_RDX)
#define HT_GUEST_ARGUMENT_3 offsetof(HtGuest, guest_RCX)
/* The return address at a routine's entry: on the stack, from which the return removes it. */
#define HT_RETURN_ON_STACK 1
#define HT_RETURN_TAKES 8
#elif defined(VGA_arm64)
#include "libvex_guest_arm64.h"
typedef VexGuestARM64State HtGuest;
#define HT_GUEST_SP offsetof(HtGuest, guest_XSP)
#define HT_GUEST_FRAME offsetof(HtGuest, guest_X29)
#define HT_GUEST_RESULT offsetof(HtGuest, guest_X0)
#define HT_GUEST_ARGUMENT_0 offsetof(HtGuest, guest_X0)
#define HT_GUEST_ARGUMENT_1 offsetof(HtGuest, guest_X1)
#define HT_GUEST_ARGUMENT_2 offsetof(HtGuest, guest_X2)
#define HT_GUEST_ARGUMENT_3 offsetof(HtGuest, guest_X3)
/* In a register. */
#define HT_GUEST_RETURN offsetof(HtGuest, guest_X30)
#define HT_RETURN_ON_STACK 0
#define HT_RETURN_TAKES 0
#else
#error "the tracer is written for amd64 and arm64"
#endif

#endif
