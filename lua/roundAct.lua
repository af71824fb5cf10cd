--[[
Books the next step of an open round, by compare-and-set: a step is booked only where the round has had as many steps as the
caller believes. Whoever computes the step (src/cells/rounds.ts) knows rules and shoe; here is neither. Atomic; all reads and
checks come before the first write, and no write after the first can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  partner id
ARGV[9]  game id
ARGV[10] "<partner id>:<playerId>"
ARGV[11] index of the round's shoe
ARGV[12] steps that the round has had
ARGV[13] what the player pays, micro-USD; below 0: what is given back of the stakes
ARGV[14] what the player gets, micro-USD
ARGV[15] code of the step (src/domain/games/round.ts)
ARGV[16] kind of the entry: 7 action, 8 void
ARGV[17] 1: the round has ended
ARGV[18] 1: no stake above the balance

Reply    time ms u48, status u8 (include/statuses.lua), CORE (zeros where nothing was booked), id of the player's newest entry
         as low u32 and high u32. ROUND_MOVED: the round is not open, or has had other steps.
Errors   EPOCH, STALE: include/cell.lua; AWAY: include/notAway.lua
]]
local partnerIds, playerNames, requestKeys = { ARGV[8] }, { ARGV[10] }, {}
local stake, payout = tonumber(ARGV[13]), tonumber(ARGV[14])
-- include: statuses
-- include: windows
local awayPartner = ARGV[8]
-- include: notAway
-- include: players
-- include: idempotency
-- include: roundRecords
local player = 1
local roundsKey, roundField = cellPrefix .. 'rounds', ARGV[9] .. ':' .. ARGV[10]
local openRound = call('HGET', roundsKey, roundField)
local before
-- include: loadPlayer
local status, core, nextRound = nil, NO_CORE, nil
repeat
  local index, dealLow, dealHigh, steps
  if openRound then index, dealLow, dealHigh, steps = unpackStruct(ROUND_FORMAT, openRound) end
  if not before or index ~= tonumber(ARGV[11]) or steps ~= tonumber(ARGV[12]) then status = ROUND_MOVED break end
  if isOutboxFull then status = OUTBOX_FULL break end
  if ARGV[18] == '1' and stake > 0 and before < stake then status = INSUFFICIENT break end
  local after = before - stake + payout
  if after > MONEY_MAX or after < -MONEY_MAX then status = OVERFLOW break end
  local text = pack('<I2I2', #ARGV[10], 0) .. ARGV[10]
  local head = char(tonumber(ARGV[16])) .. pack('<I4i8', tonumber(ARGV[9]), stake)
  local credit, code, balance = payout, tonumber(ARGV[15]), after
  -- inline: bookEntry
  netPaid[1] = netPaid[1] + payout - stake
  if ARGV[17] ~= '1' then nextRound = pack(ROUND_FORMAT, index, dealLow, dealHigh, steps + 1) end
  status = DEALT
until true

local reply = pack('<I6', nowMs) .. status .. core
  .. pack('<I4I4', previousLow[player] or 0, previousHigh[player] or 0)

-- Write.
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
