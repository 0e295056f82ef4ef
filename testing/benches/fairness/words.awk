# awk -v n=COUNT -f words.awk: counts made-up words in associative arrays and joins strings; small strings come and go.
BEGIN {
    srand(7)
    for (i = 0; i < n; i++) {
        word = ""
        for (j = int(rand() * 4) + 1; j > 0; j--) word = word substr("kalimotesurinavopeda", int(rand() * 10) * 2 + 1, 2)
        seen[word]++
        if (length(line = line " " word) > 200) {
            total += split(line, parts, " ")
            line = ""
        }
    }
    for (word in seen) different++
    print total, different
}
