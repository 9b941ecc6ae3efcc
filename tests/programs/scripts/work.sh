# Arrays, associative arrays, subshells, pipes, here-documents, recursion, pattern substitution.
set -eu
words=()
for ((i = 0; i < 20000; i++)); do words+=("w$((i * 7919 % 10007))"); done
declare -A seen=()
for w in "${words[@]}"; do seen[$w]=$((${seen[$w]:-0} + 1)); done
echo "${#words[@]} ${#seen[@]} ${seen[w17]}"
printf '%s\n' "${words[@]}" | sort | uniq -c | sort -rn -k1,1 -k2,2 | head -20
total=0
for ((i = 0; i < 150; i++)); do
    got=$(printf '%s ' "${words[@]:i*10:10}" | tr w x)
    total=$((total + ${#got}))
done
echo "$total"
fib() { if (($1 < 2)); then echo "$1"; else echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); fi; }
fib 9
(cd / && pwd; x=inner; (x=deeper; echo "$x"); echo "$x")
text=""
for ((i = 0; i < 3000; i++)); do text+="line $i of a growing string;"; done
echo "${#text}" "${text//line/row}" | cksum
while read -r a b; do printf '%s<%s>' "$b" "$a"; done <<END | cksum
$(for ((i = 0; i < 500; i++)); do echo "$i value$i"; done)
END
coproc tr a-z A-Z
echo "through a coprocess" >&"${COPROC[1]}"
exec {COPROC[1]}>&-
cat <&"${COPROC[0]}"
wait
paste <(seq 1 50) <(seq 50 -1 1) | while read -r a b; do echo $((a * b)); done | cksum
mapfile -t lines < <(seq 1 5000)
echo "${#lines[@]} ${lines[4999]}" > result.txt
