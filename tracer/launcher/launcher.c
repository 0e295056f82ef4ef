/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * What Valgrind has the kernel execute where a traced process executes another program: it executes the tool again, with
 * that program as its argument. Valgrind's own launcher does the same, for any of its tools; with this one a release
 * needs no Valgrind on the machine. It is linked statically, so that nothing that is preloaded runs in it.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef TOOL
#error "the Makefile defines TOOL, the name of the tool's file"
#endif

static int failed(const char *what)
{
   /* heaptoll takes lines that begin so for reasons why a program could not be traced. */
   fprintf(stderr, "valgrind: failed to start heaptoll's tracer: %s: %s\n", what, strerror(errno));
   return 1;
}

int main(int argc, char **argv)
{
   char tool[PATH_MAX], own[PATH_MAX];
   const char *folder = getenv("VALGRIND_LIB");
   ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);

   (void)argc;
   if (length < 0)
      return failed("/proc/self/exe");
   own[length] = '\0';
   if (folder == NULL || (size_t)snprintf(tool, sizeof tool, "%s/%s", folder, TOOL) >= sizeof tool) {
      errno = folder == NULL ? ENOENT : ENAMETOOLONG;
      return failed("the folder in VALGRIND_LIB");
   }
   if (setenv("VALGRIND_LAUNCHER", own, 1) != 0)
      return failed("VALGRIND_LAUNCHER");
   execv(tool, argv);
   return failed(tool);
}
