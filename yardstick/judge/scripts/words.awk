# Which words stand in which lines, and how often each follows another.
{
    for (at = 1; at <= NF; at++) {
        lines[$at] = lines[$at] " " NR
        if (at > 1) after[$(at - 1), $at]++
        seen[$at NR % 5000] = substr($0, at, 30)
    }
}
END {
    for (word in lines) total += length(lines[word])
    for (pair in after) pairs++
    for (one in seen) some += length(toupper(seen[one]))
    print total, pairs, some
}
