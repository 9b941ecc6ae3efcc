-- Works on the text that nvim was started with: lines, marks, patterns, undo, syntax, diffs, JSON,
-- MessagePack, libuv's threads, and a second nvim over RPC. Writes what it finds to `report`.
local api, fn, loop = vim.api, vim.fn, vim.loop
local log = assert(io.open("report", "w"))

local function hash(lines)
  return fn.sha256(type(lines) == "table" and table.concat(lines, "\n") or lines):sub(1, 16)
end
local function report(name, ...)
  log:write(table.concat(vim.tbl_map(tostring, { name, ... }), " "), "\n")
end
local function lines()
  return api.nvim_buf_get_lines(0, 0, -1, true)
end
local function separate_undo()
  vim.o.undolevels = vim.o.undolevels -- what follows is undone by itself
end

local function edits()
  local before = lines()
  vim.cmd([[silent g/slab/s/\v(\w+) (slab|shard)/\2-\1/g]])
  vim.cmd([[silent sort n]])
  separate_undo()
  vim.cmd([[silent %s/\v<(\w)(\w*)>/\u\1\2/g]])
  report("edited", #lines(), hash(lines()))
  vim.cmd("silent undo")
  report("undone", hash(lines()))
  vim.cmd("silent redo")
  for n = 1, 1500 do
    api.nvim_buf_set_lines(0, n * 3, n * 3 + 1, true, { "one " .. n, string.rep("x", n % 90), "three" })
    if n % 50 == 0 then
      separate_undo()
    end
  end
  for _ = 1, 12 do
    vim.cmd("silent undo")
  end
  for _ = 1, 5 do
    vim.cmd("silent redo")
  end
  report("changed", #lines(), hash(lines()))
  report("diff", hash(vim.diff(table.concat(before, "\n"), table.concat(lines(), "\n"), { algorithm = "histogram" })))
end

local function marks()
  local space = api.nvim_create_namespace("proof")
  local rows = api.nvim_buf_line_count(0)
  for n = 1, 20000 do
    local row = n * 7919 % (rows - 1)
    api.nvim_buf_set_extmark(0, space, row, 0, { end_row = row + 1, virt_text = { { "mark " .. n, "Comment" } } })
  end
  for n = 1, 300 do
    api.nvim_buf_set_lines(0, n * 5, n * 5 + 2, true, {})
  end
  local sum = 0
  for _, mark in ipairs(api.nvim_buf_get_extmarks(0, space, 0, -1, {})) do
    sum = (sum * 31 + mark[2]) % 1000003
  end
  report("marks", sum)
  api.nvim_buf_clear_namespace(0, space, 0, -1)
end

local function syntax(script)
  vim.cmd("new")
  local text = {}
  for _ = 1, 8 do
    vim.list_extend(text, fn.readfile(script))
  end
  api.nvim_buf_set_lines(0, 0, -1, true, text)
  vim.cmd("syntax on")
  vim.bo.filetype = "lua"
  local found = {}
  for row = 1, #text do
    for column = 1, #text[row], 2 do
      local name = fn.synIDattr(fn.synID(row, column, 1), "name")
      found[name] = (found[name] or 0) + 1
    end
  end
  local names = vim.tbl_keys(found)
  table.sort(names)
  for _, name in ipairs(names) do
    report("syntax", name, found[name])
  end
  vim.cmd("bwipeout!")
end

local function structures()
  local records = {}
  for n = 1, 20000 do
    records[n] = { id = n, name = "record " .. n, parts = { n % 7, n % 11, tostring(n * 7919 % 1009) } }
  end
  local again = vim.mpack.decode(vim.mpack.encode(records))
  local texts = {}
  for n = 1, #again, 100 do
    texts[#texts + 1] = again[n].name .. again[n].parts[3]
  end
  report("mpack", #again, hash(texts))
  local packed = fn.json_encode(fn.range(20000))
  report("json", #packed, #fn.json_decode(packed), #vim.json.decode(vim.json.encode(records)))
  fn.setreg("a", fn.map(fn.range(3000), "'line ' . v:val"), "l")
  vim.cmd([[silent let g:counts = {}]])
  vim.cmd([[silent for word in split(join(getline(1, 9000))) | let g:counts[word] = get(g:counts, word) + 1 | endfor]])
  local words = vim.tbl_keys(vim.g.counts)
  table.sort(words)
  report("words", #words, hash(words))
end

local function threads()
  local sizes, ended = {}, 0
  local work = loop.new_work(function(n)
    local kept = {}
    for i = 1, 4000 do
      kept[i * n % 500] = string.rep("x", i * n % 300) .. i
    end
    local size = 0
    for _, text in pairs(kept) do
      size = size + #text
    end
    return n, size
  end, function(n, size)
    sizes[n] = size
    ended = ended + 1
  end)
  for n = 1, 120 do
    work:queue(n)
  end
  report("ended", vim.wait(60000, function() return ended == 120 end, 5))
  report("threads", hash(table.concat(sizes, ",")))
end

local function child()
  local command = { vim.v.progpath, "--embed", "--headless", "-u", "NONE", "-i", "NONE", "-n" }
  local other = fn.jobstart(command, { rpc = true })
  for n = 1, 1500 do
    fn.rpcrequest(other, "nvim_buf_set_lines", 0, -1, -1, true, { "from the parent " .. n, string.rep("y", n % 200) })
  end
  fn.rpcrequest(other, "nvim_command", [[silent %s/\(\d\)/<\1>/g]])
  local text = fn.rpcrequest(other, "nvim_buf_get_lines", 0, 0, -1, true)
  report("child", #text, hash(text))
  fn.rpcnotify(other, "nvim_command", "qall!")
  report("child ended", fn.jobwait({ other }, 30000)[1])
end

edits()
marks()
syntax(vim.env.PROOF_SCRIPT)
structures()
threads()
child()
log:close()
vim.cmd("silent write! edited")
vim.cmd("qall!")
