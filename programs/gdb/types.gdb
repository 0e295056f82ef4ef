# What the types of inventory.c look like, before it runs. Nothing that is printed depends on where things lie, on
# process numbers, or on the clock.
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

info scope build
ptype struct part
set $type = 0
while $type < $types
    set $letter = 97 + $type / 10 % 10
    set $digit = $type % 10
    eval "ptype struct crate_%c%d", $letter, $digit
    eval "print sizeof(struct rack_%c%d)", $letter, $digit
    eval "print box_%c%d_first", $letter, $digit
    eval "info scope box_%c%d_count", $letter, $digit
    set $type = $type + 1
end
