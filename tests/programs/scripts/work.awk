# Arrays of arrays, strings that grow, sorting, regular expressions.
function hash(s, i, h) { h = 7; for (i = 1; i <= length(s); i += 5) h = (h * 31 + index("abcdefghijklmnopqrstuvwxyz 0123456789", substr(s, i, 1))) % 1000003; return h }
{
    for (i = 2; i <= NF; i++) { count[$i]++; place[$i][NR % 500] = place[$i][NR % 500] " " NR }
    line[NR % 3000] = $0
    if (NR % 3 == 0) delete line[(NR * 31) % 3000]
    text = gensub(/([a-z]+) ([a-z]+)/, "\\2-\\1", "g")
    sum = (sum * 31 + hash(text)) % 1000003
}
END {
    n = asorti(count, words)
    for (i = 1; i <= n; i++) {
        total = 0
        for (k in place[words[i]]) total += length(place[words[i]][k])
        print words[i], count[words[i]], total
    }
    print "sum", sum, length(line)
    n = asort(line, sorted)
    for (i = 1; i <= n; i += 50) print sorted[i]
    for (i = 0; i < 30000; i++) grown = grown sprintf("%d,", i * 7919 % 1009)
    print length(grown), split(grown, parts, ","), hash(grown)
    PROCINFO["sorted_in"] = "@val_num_desc"
    for (i in parts) { if (++shown > 20) break; print parts[i] }
}
