# Fills paragraphs from a list of words: each line is justified to a width, spaces put in from the left and from the
# right in turn. Every few words begin a paragraph, which is indented. Only the line at hand is held, so that next to
# nothing is alive: the kind of script that Zorn and Detlefs ran, in words of our own.
BEGIN {
    width = 70
    indent = 5
    open_paragraph()
}

{
    for (field = 1; field <= NF; field++) take($field)
}

END {
    if (words) print line()
    print paragraphs " paragraphs, " lines " lines, " letters " letters"
}

function open_paragraph() {
    words = 0
    filled = indent
    in_paragraph = 0
    paragraphs++
}

function take(word) {
    if (filled + length(word) + (words > 0) > width) {
        print justified()
        words = 0
        filled = 0
    }
    filled += length(word) + (words > 0)
    held[++words] = word
    letters += length(word)
    # A sentence's end closes a paragraph that is long enough.
    if (++in_paragraph > 60 && word ~ /[.!?]$/) {
        print line()
        print ""
        open_paragraph()
    }
}

# The words held, one space between each two.
function line(    text, at) {
    text = beginning()
    for (at = 1; at <= words; at++) text = text (at > 1 ? " " : "") held[at]
    lines++
    return text
}

function beginning() {
    return in_paragraph <= words ? sprintf("%*s", indent, "") : ""
}

# The same with as many more spaces as the width asks for.
function justified(    text, at, missing, gap, extra) {
    missing = width - filled
    gap = words - 1
    text = beginning()
    for (at = 1; at <= words; at++) {
        if (at > 1) {
            extra = gap ? int(missing / gap) : 0
            # What does not divide goes to the left of one line and to the right of the next.
            if (gap && (lines % 2 ? at - 1 <= missing % gap : words - at < missing % gap)) extra++
            text = text sprintf("%*s", extra + 1, "")
        }
        text = text held[at]
    }
    lines++
    return text
}
