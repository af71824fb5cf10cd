--[[
Claims a cell for its owner, unless a later one has claimed it before; where asked to, empties it, or removes some of its keys.
From then on the cell may hold data of the format that is given: scripts of a build that does not read it do nothing.

KEYS[1]  {cN}:cell  hash   fence: that of the owner that has claimed the cell; epoch: emptied of it, nobody can deal;
                           format: the newest that the cell may hold, absent: 1 (src/domain/formats.ts)
KEYS[2…] the other keys of the cell, to be removed; none: what the cell holds is kept

ARGV[1]  fence of the caller: greater than that of every owner before
ARGV[2]  1: empty the cell; 2: remove the other keys that are given
ARGV[3]  the format that is written

Reply    OK
Errors   FENCED <fence>: a later owner has claimed it; nothing was done.
         FORMAT <format>: the cell may hold data that this build does not read; nothing was done.
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
  -- In parts: only so many values fit on Lua's stack.
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
