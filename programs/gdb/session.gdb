# A session with inventory.c: what the types look like, then a stop at every part that is made of nothing, with the
# whole stack and its variables. It calls no function of the debuggee: gdb 13 cannot write all registers of processors
# whose state is larger than it knows ("Couldn't write extended state status"). Nothing that is printed depends on where
# things lie, on process numbers, or on the clock.
set confirm off
set pagination off
set width 0
set height 0
set style enabled off
set print address off
set print symbol off
set print inferior-events off
set print pretty on
set debuginfod enabled off

# The memory manager under test is gdb's, not the debuggee's: nothing of the environment is handed on, and no shell
# stands between.
set startup-with-shell off
unset environment

info scope build
ptype struct part
set $type = 0
while $type < $types
    set $letter = 97 + $type / 10 % 10
    set $digit = $type % 10
    eval "ptype struct crate_%c%d", $letter, $digit
    eval "print sizeof(struct shelf_%c%d)", $letter, $digit
    eval "print box_%c%d_first", $letter, $digit
    eval "info scope box_%c%d_count", $letter, $digit
    set $type = $type + 1
end

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
