--[[
Sets the forced outcome of a sandbox player's next spin of a game, and replaces an earlier forced outcome. The
script is atomic. All reads come before the first write, and no write after the first can fail. Forced
outcomes are stored in Redis only, so they are lost with its data.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  partner id
ARGV[9]  "<game id>:<partner id>:<playerId>"
ARGV[10] outcome code, u16
ARGV[11] time to expiry, ms
ARGV[12] maximum number of unused forced outcomes of a partner

Keys     include/forced.lua
Reply    FORCED_REPLY; statuses: DEALT, FULL
Errors   EPOCH, STALE: include/cell.lua; AWAY: include/notAway.lua
]]
local awayPartner = ARGV[8]
-- include: notAway
-- include: layouts/statuses
-- include: layouts/forced
local key, field = cellPrefix .. 'forced:' .. ARGV[8], ARGV[9]
local expired = {}
local isFull = call('HLEN', key) >= tonumber(ARGV[12]) and call('HEXISTS', key, field) == 0
if isFull then
  local waiting = call('HGETALL', key)
  for i = 1, #waiting, 2 do
    local _, untilMs = unpackStruct(FORCED_FORMAT, waiting[i + 1])
    if untilMs <= nowMs then expired[#expired + 1] = waiting[i] end
  end
end
local untilMs = nowMs + tonumber(ARGV[11])
local isRefused = isFull and #expired == 0
local reply = isRefused and pack(FORCED_REPLY_FORMAT, byte(FULL), 0)
  or pack(FORCED_REPLY_FORMAT, byte(DEALT), untilMs)

-- From here on the script only writes.
call('HSET', KEYS[1], operationField, operationId .. reply)
if isRefused then
  return reply
end
if #expired > 0 then call('HDEL', key, unpack(expired)) end
call('HSET', key, field, pack(FORCED_FORMAT, tonumber(ARGV[10]), untilMs))
call('PEXPIRE', key, ARGV[11])
call('SET', cellPrefix .. 'forced', '1', 'PX', ARGV[11])
return reply
