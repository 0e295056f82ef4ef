# A session with inventory.c, after types.gdb: a stop at every part that is made of nothing, with the whole stack and its
# variables. It calls no function of the debuggee: gdb 13 cannot write all registers of processors whose state is larger
# than it knows ("Couldn't write extended state status").

# The memory manager under test is gdb's, not the debuggee's: nothing of the environment is handed on, and no shell
# stands between.
set startup-with-shell off
unset environment

break built if level == 0
run
break over
set $round = 0
while $round < $rounds
    backtrace full
    up 3
    info locals
    print *part
    print *parts->next->next
    down 3
    finish
    set $round = $round + 1
    continue
end
print total
print made
kill
