--[[
Claims a cell for its owner, unless a later owner has claimed it. On request, also empties the cell or removes
some of its keys. From then on the cell may hold data of the given format, and scripts of a build that does
not support that format refuse.

KEYS[1]  {cN}:cell  hash   fence: fence of the owner that has claimed the cell; epoch: removed when the cell
                           is emptied, so that nobody can deal; format: newest data format that the cell may
                           hold, 1 if absent (src/domain/formats.ts)
KEYS[2…] other keys of the cell, to be removed; without them the cell's data is kept

ARGV[1]  fence of the caller, higher than that of every earlier owner
ARGV[2]  1: empty the cell; 2: remove the other keys that are given
ARGV[3]  data format that is written

Reply    OK
Errors   FENCED <fence>: a later owner has claimed the cell. Nothing was done.
         FORMAT <format>: the cell may hold data that this build does not support. Nothing was done.
]]
-- include: library
-- include: layouts/records
local known = tonumber(call('HGET', KEYS[1], 'fence') or '0')
if tonumber(ARGV[1]) < known then
  return redis.error_reply('FENCED ' .. format('%.0f', known))
end
local held = tonumber(call('HGET', KEYS[1], 'format') or '1')
if held > FORMAT_NEWEST then
  return redis.error_reply('FORMAT ' .. held)
end
if ARGV[2] ~= '0' then
  -- Keys are removed in groups of 1,000, because Lua's stack is limited.
  for first = tonumber(ARGV[2]), #KEYS, 1000 do
    call('UNLINK', unpack(KEYS, first, math.min(first + 999, #KEYS)))
  end
end
call('HSET', KEYS[1], 'fence', ARGV[1])
local newest = max(held, tonumber(ARGV[3]))
if newest > 1 then
  call('HSET', KEYS[1], 'format', newest)
end
return redis.status_reply('OK')
