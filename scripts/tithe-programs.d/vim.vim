" Substitutions, a sort, global commands with undo, then counting words by dictionaries.
%s/\v<(ka)(\w+)>/\2\1/ge
%s/\d\+$/\=submatch(0) * 3/
sort n /\v.*\s/
g/ren/normal! A marked
g/lo/copy .
undo
redo
let counts = {}
for line in getline(1, '$')
  for word in split(line)
    let counts[word] = get(counts, word, []) + [len(word)]
  endfor
endfor
let report = []
for word in sort(keys(counts))
  call add(report, printf('%-20s %d', word, len(counts[word])))
endfor
call append(line('$'), report)
let nested = map(range(8000), '{"number": v:val, "text": repeat("x", v:val % 50), "list": [v:val]}')
let copied = deepcopy(nested)
call filter(copied, 'v:val.number % 3 == 0')
call append(line('$'), [json_encode(copied[0:200]), len(copied)])
silent! wq!
