--[[
Writes the next step of an open round by compare-and-set: only if the round has had exactly as many steps as
the caller expects. The caller computes the step from the rules and the shoe, which this script does not know.
The script is atomic. All reads and checks come before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  partner id
ARGV[9]  game id
ARGV[10] "<partner id>:<playerId>"
ARGV[11] index of the round's shoe
ARGV[12] number of steps that the round has had
ARGV[13] amount that the player pays, micro-USD; negative: part of the stakes that is returned
ARGV[14] amount that the player gets, micro-USD
ARGV[15] code of the step (src/domain/games/round.ts)
ARGV[16] kind of the entry: 7 action, 8 void
ARGV[17] 1: the round has ended
ARGV[18] 1: a stake above the balance is refused

Reply    ROUND_ACT_REPLY, with a CORE of zeros if no entry was written. ROUND_MOVED: the round is not open, or
         has had other steps.
Errors   EPOCH, STALE: include/cell.lua; AWAY: include/notAway.lua
]]
local partnerIds, playerNames, requestKeys = { ARGV[8] }, { ARGV[10] }, {}
local stake, payout = tonumber(ARGV[13]), tonumber(ARGV[14])
-- include: layouts/statuses
-- include: windows
local awayPartner = ARGV[8]
-- include: notAway
-- include: players
-- include: idempotency
-- include: layouts/rounds
-- include: refuse
local player = 1
local roundsKey, roundField = cellPrefix .. 'rounds', ARGV[9] .. ':' .. ARGV[10]
local openRound = call('HGET', roundsKey, roundField)
local before
-- include: loadPlayer
local status, core, nextRound = nil, NO_CORE, nil
repeat
  local index, dealLow, dealHigh, steps
  if openRound then index, dealLow, dealHigh, steps = unpackStruct(ROUND_FORMAT, openRound) end
  local hasMoved = not before or index ~= tonumber(ARGV[11]) or steps ~= tonumber(ARGV[12])
  -- A blocked player may finish its round. The partner's funding is not checked, because the deal has already
  -- checked it for the whole round.
  status = refuse(
    nil, hasMoved and ROUND_MOVED, before, max(stake, 0), payout - min(stake, 0), ARGV[18] == '1', -1, 0
  )
  if status then break end
  local after = before - stake + payout
  local text = pack(ENTRY_TEXT_FORMAT, #ARGV[10], 0) .. ARGV[10]
  local head = pack(ENTRY_HEAD_FORMAT, tonumber(ARGV[16]), tonumber(ARGV[9]), stake)
  local credit, code, balance = payout, tonumber(ARGV[15]), after
  -- inline: bookEntry
  netPaid[1] = netPaid[1] + payout - stake
  if ARGV[17] ~= '1' then nextRound = pack(ROUND_FORMAT, index, dealLow, dealHigh, steps + 1) end
  status = DEALT
until true

local reply = pack(ROUND_ACT_REPLY_FORMAT, nowMs, byte(status), core,
  previousLow[player] or 0, previousHigh[player] or 0)

-- From here on the script only writes.
if status == DEALT then
  -- include: writeEntries
  call('HSET', KEYS[1], 'last', newLast, operationField, operationId .. reply)
  if nextRound then
    call('HSET', roundsKey, roundField, nextRound)
  else
    call('HDEL', roundsKey, roundField)
  end
  -- include: writeWindows
else
  call('HSET', KEYS[1], operationField, operationId .. reply)
end
return reply
