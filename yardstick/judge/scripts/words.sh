# A shell's own lists and tables, filled line by line.
declare -A count first
lines=()
while read -r -a words; do
    lines+=("${words[*]}")
    for word in "${words[@]}"; do
        count[$word]=$((${count[$word]:-0} + 1))
        first[$word${#lines[@]}]=${words[0]}-${word^^}
    done
done <"$1"
for word in "${!count[@]}"; do echo "$word ${count[$word]}"; done | sort
joined=$(printf '%s,' "${first[@]}")
echo "${#lines[@]} ${#first[@]} ${#joined}"
