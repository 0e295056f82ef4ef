# SPDX-License-Identifier: GPL-2.0-or-later
#
# How brk.c, exec.c, pin.c and rseq.c hook into Valgrind's core: functions of the core that ours wrap (the linker's
# --wrap), and tables of its address space manager that are made visible, in a copy of the object that contains them.
# The Makefile adds $(SPACE_LINK) to the link and $(SPACE_OBJECT) to the objects, before the core's archive.
SPACE_WRAPS := vgPlain_am_startup vgPlain_am_create_reservation vgPlain_am_get_advisory_client_simple vgPlain_am_get_advisory \
	vgPlain_am_extend_into_adjacent_reservation_client vgModuleLocal_sf_maybe_extend_stack \
	amd64g_dirtyhelper_RDRAND amd64g_dirtyhelper_RDSEED vgSysWrap_generic_sys_ni_syscall_before vgSysWrap_generic_sys_execve_before
SPACE_VISIBLE := nsegments nsegments_used aspacem_maxAddr aspacem_vStart
SPACE_MEMBER := libcoregrind_amd64_linux_a-aspacemgr-linux.o
SPACE_OBJECT := $(BUILD)/aspacemgr.o
SPACE_LINK := $(foreach function,$(SPACE_WRAPS),-Wl,--wrap=$(function))

# ALIKE=yes builds a tracer under which a program finds the addresses and objects that it finds under Valgrind's own tools.
# It is for comparing counts with theirs, and no measurement uses it.
ifeq ($(ALIKE),yes)
SPACE_NATIVE := $(filter vgPlain_am_startup %_reservation %_client_simple %_advisory vgSysWrap%,$(SPACE_WRAPS))
SPACE_LINK := $(foreach function,$(filter-out $(SPACE_NATIVE),$(SPACE_WRAPS)),-Wl,--wrap=$(function)) \
	$(foreach function,$(SPACE_NATIVE),-Wl,--defsym=__real_$(function)=$(function))
$(BUILD)/system.o: TOOL_FLAGS += -DHT_ALIKE=1
endif

$(SPACE_OBJECT): $(COREGRIND) space.mk
	@mkdir -p $(@D)
	$(AR) p $< $(SPACE_MEMBER) > $@.member
	$(OBJCOPY) $(foreach symbol,$(SPACE_VISIBLE),--globalize-symbol=$(symbol)) $@.member $@
	@rm -f $@.member
