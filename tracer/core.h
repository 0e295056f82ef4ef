/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Included by every file of the tool: Valgrind's own headers for tools, and the few functions of its core that tools of
 * the tree use too but whose headers are not installed.
 */
#ifndef HT_CORE_H
#define HT_CORE_H

#include "pub_tool_basics.h"

#include "pub_tool_aspacemgr.h"
#include "pub_tool_clientstate.h"
#include "pub_tool_debuginfo.h"
#include "pub_tool_libcassert.h"
#include "pub_tool_libcbase.h"
#include "pub_tool_libcfile.h"
#include "pub_tool_libcprint.h"
#include "pub_tool_libcproc.h"
#include "pub_tool_machine.h"
#include "pub_tool_mallocfree.h"
#include "pub_tool_options.h"
#include "pub_tool_stacktrace.h"
#include "pub_tool_threadstate.h"
#include "pub_tool_tooliface.h"
#include "pub_tool_vki.h"
#include "pub_tool_vkiscnums.h"

extern SysRes VG_(do_syscall)(UWord number, RegWord, RegWord, RegWord, RegWord, RegWord, RegWord, RegWord, RegWord);
#define HT_SYSCALL(number, a, b, c, d, e, f)                                                                         \
   VG_(do_syscall)(number, (RegWord)(a), (RegWord)(b), (RegWord)(c), (RegWord)(d), (RegWord)(e), (RegWord)(f), 0, 0)
/* Moves a descriptor out of the client's reach. */
extern Int VG_(safe_fd)(Int fd);
extern SysRes VG_(am_shared_mmap_file_float_valgrind)(SizeT length, UInt prot, Int fd, Off64T offset);

#endif
