" Edits a large text: sort, patterns, substitutions, undo and redo, folds, lists and dictionaries.
set nocompatible undolevels=1000 maxmempattern=2000
g/slab/s/\v(\w+) (slab|shard)/\2-\1/g
sort n
v/\d7 /move 0
let words = {}
for line in getline(1, '$')
    for word in split(line)
        let key = word[0:3]
        if !has_key(words, key) | let words[key] = [] | endif
        call add(words[key], len(word))
    endfor
    if len(words) > 4000 | let words = {} | endif
endfor
%s/\v<(\w)(\w*)>/\u\1\2/g
undo
redo
for n in range(1, 400)
    execute n * 10 . 'copy ' . n
    execute n . 'normal! A (' . repeat('x', n % 70) . ')'
    if n % 40 == 0
        " Ends what one undo takes back.
        let &undolevels = &undolevels
    endif
endfor
for n in range(7) | undo | endfor
for n in range(5) | redo | endfor
set foldmethod=marker foldexpr=len(getline(v:lnum))%7 foldmethod=expr
normal! zM
let @q = "0dwA joined\<Esc>j"
normal! gg300@q
call append('$', map(sort(keys(words)), 'v:val . " " . len(words[v:val])'))
call append('$', sha256(join(getline(1, '$'), "\n")))
write! edited
qall!
