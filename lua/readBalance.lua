--[[
Reads the balance of a player after everything that the cell has done. Atomic.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  "<partner id>:<playerId>"

Reply    BALANCE_REPLY; statuses: DEALT, PLAYER_UNKNOWN
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
-- include: library
local awayPartner = sub(ARGV[8], 1, find(ARGV[8], ':', 1, true) - 1)
-- include: notAway
-- include: records
-- include: layouts/statuses
-- include: layouts/balances
local record = call('HGET', KEYS[3], ARGV[8])
if not record then
  return pack(BALANCE_REPLY_FORMAT, byte(PLAYER_UNKNOWN), 0)
end
local _, _, _, balance = unpackStruct(PLAYER_FORMAT, record)
return pack(BALANCE_REPLY_FORMAT, byte(DEALT), balance)
