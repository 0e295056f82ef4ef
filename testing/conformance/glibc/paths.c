/* paths.c: where glibc's build would be. Nothing that is run here goes there. */
const char support_srcdir_root[] = "/";
const char support_objdir_root[] = "/";
const char support_objdir_elf_ldso[] = "/";
const char support_install_prefix[] = "/";
const char support_libdir_prefix[] = "/";
const char support_bindir_prefix[] = "/";
const char support_sbindir_prefix[] = "/";
const char support_install_rootsbindir[] = "/";
const char support_complocaledir_prefix[] = "/";
const char support_sysconfdir_prefix[] = "/";
const char support_slibdir_prefix[] = "/";
