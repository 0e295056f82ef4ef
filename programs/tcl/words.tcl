# Counts words and what follows them in a text, and reports the most frequent. usage: words.tcl TEXT ROUNDS
lassign $argv path rounds

proc count {path} {
    set file [open $path]
    while {[gets $file line] >= 0} {
        set before {}
        foreach word [regexp -all -inline {[a-z]+} [string tolower $line]] {
            incr counts($word)
            if {$before ne {}} { dict incr after($before) $word }
            set before $word
        }
    }
    close $file
    set rows {}
    foreach {word count} [array get counts] {
        set most {}
        if {[info exists after($word)]} {
            set most [lindex [lsort -stride 2 -index 1 -integer -decreasing [lsort -stride 2 [dict get $after($word)]]] 0]
        }
        lappend rows [list $count $word $most]
    }
    return [lsort -integer -decreasing -index 0 [lsort -index 1 $rows]]
}

for {set round 0} {$round < $rounds} {incr round} { set rows [count $path] }
foreach row $rows { puts [join $row { }] }
