# A report on a web server's access log: visits by page and hour, bytes by client, and where visitors came from.
# Prints integers and names only, in sorted order.
{
    split($4, stamp, ":")
    hour = substr(stamp[1], 2) " " stamp[2]
    target = $7
    cut = index(target, "?")
    path = cut ? substr(target, 1, cut - 1) : target
    visits[path]++
    hours[hour]++
    bytes[$1] += $10
    if (!seen[$1, path]++) readers[path]++
    if (cut) {
        count = split(substr(target, cut + 1), pairs, "&")
        for (i = 1; i <= count; i++) {
            split(pairs[i], pair, "=")
            words[toupper(pair[1]) ":" pair[2]]++
        }
    }
    referer = $11
    gsub(/"/, "", referer)
    if (match(referer, /^https?:\/\/[^\/]+/)) hosts[substr(referer, 1, RLENGTH)] = hosts[substr(referer, 1, RLENGTH)] + 1
    if ($9 >= 400) errors[$9 " " path] = errors[$9 " " path] sprintf("%s;", $1)
    trail[$1] = length(trail[$1]) > 400 ? path : trail[$1] ">" path
}

function best(table, title, limit,    keys, count, i) {
    count = asorti(table, keys, "larger_first")
    printf "%s %d\n", title, count
    for (i = 1; i <= count && i <= limit; i++) printf "  %d %s\n", table[keys[i]], keys[i]
}

# The larger value first, names in order where values are equal.
function larger_first(name1, value1, name2, value2) {
    if (value1 != value2) return value1 > value2 ? -1 : 1
    return name1 < name2 ? -1 : name1 > name2
}

END {
    best(visits, "pages", 10)
    best(readers, "readers", 5)
    best(hours, "hours", 5)
    best(bytes, "clients", 10)
    best(words, "queries", 10)
    best(hosts, "hosts", 10)
    for (key in errors) { failed += split(errors[key], parts, ";") - 1; kinds++ }
    for (client in trail) { steps += split(trail[client], parts, ">") }
    printf "errors %d of %d kinds, trails %d\n", failed, kinds, steps
}
