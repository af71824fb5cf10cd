--[[
Lets nothing more be done for a partner in a cell, which it leaves, or lets it be done again. On behalf of a cell's owner.

KEYS[1]  {cN}:cell  hash   fence: that of the owner that has claimed the cell; away: ids of the partners that are away, each
                           between semicolons

ARGV[1]  fence of the caller
ARGV[2]  partner id
ARGV[3]  1: it is away; 0: it is not

Reply    OK
Errors   FENCED <fence>: the cell is claimed by another fence, or none. Nothing was done.
]]
-- include: library
local known, away = unpack(call('HMGET', KEYS[1], 'fence', 'away'))
if known ~= ARGV[1] then
  return redis.error_reply('FENCED ' .. (known or 'none'))
end
away = away or ';'
local at = find(away, ';' .. ARGV[2] .. ';', 1, true)
if ARGV[3] == '1' and not at then
  call('HSET', KEYS[1], 'away', away .. ARGV[2] .. ';')
elseif ARGV[3] == '0' and at then
  call('HSET', KEYS[1], 'away', sub(away, 1, at) .. sub(away, at + #ARGV[2] + 2))
end
return redis.status_reply('OK')
