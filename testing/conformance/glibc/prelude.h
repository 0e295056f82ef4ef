/* prelude.h: included before each source of glibc's. Gives what its build system and its internal headers give, so that
 * the tests and what they stand on can be compiled by themselves. */
#include <limits.h>
#include <sys/cdefs.h>
#define libc_hidden_proto(...)
#define libc_hidden_def(...)
#define attribute_hidden
#define __set_errno(value) (errno = (value))
/* A test gives itself 20 s on a quiet machine; this one need not be quiet. */
#define TIMEOUTFACTOR 10
