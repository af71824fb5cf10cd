--[[
Ends the sale of a voided raffle, although not all tickets are sold. The counter of its pool is set to the
end, so no further ticket can be sold, and loadBlock.lua treats the pool as already loaded. The script is
atomic, and a repetition changes nothing.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is not stored.

ARGV[8]  partner id
ARGV[9]  game id
ARGV[10] GAME at the end of the pool

Keys     {cN}:block:<game id>:0
Reply    status u8 (src/engine/redis/statuses.ts): DEALT
Errors   EPOCH: include/cell.lua; AWAY: include/notAway.lua
]]
local awayPartner = ARGV[8]
-- include: notAway
-- include: layouts/statuses

-- From here on the script only writes.
call('HSET', KEYS[4], ARGV[9], ARGV[10])
call('UNLINK', cellPrefix .. 'block:' .. ARGV[9] .. ':0')
return DEALT
