--[[
Deals a round with the next shoe of the game's queue. The shoe's outcome code is the result of the deal by
itself. The script is atomic. All reads and checks come before the first write, and no write after the first
can fail.

KEYS[1]  to KEYS[5], ARGV[1] to ARGV[7]: as for every cell command, include/cell.lua. The reply is stored.

ARGV[8]  partner id
ARGV[9]  game id
ARGV[10] "<partner id>:<playerId>"
ARGV[11] 16-byte requestId hash
ARGV[12] 10-byte fingerprint of the request
ARGV[13] requestId; empty: none
ARGV[14] not 0: refused unless the requestId is bound (src/engine/redis/statuses.ts, DENY)
ARGV[15] wager, micro-USD
ARGV[16] largest payout of a round, micro-USD
ARGV[17] i64 per outcome code: payout at the deal, micro-USD
ARGV[18] opening balance of the partner's players, micro-USD
ARGV[19] funding of the partner, micro-USD; -1: unlimited
ARGV[20] 1: a wager above the balance is refused

computed {cN}:rounds  hash, "<game id>:<partner id>:<playerId>" -> ROUND of the open round

Reply    ROUND_DEAL_REPLY: a CORE (zeros if the reply refers to no deal), index of the shoe, steps of the open
         round. ROUND_OPEN: the id in CORE is that of the open round's deal. REPLAY: only CORE is filled.
Errors   EPOCH, STALE: include/cell.lua; AWAY: include/notAway.lua
]]
local partnerIds, gameIds, playerNames, requestKeys = { ARGV[8] }, { ARGV[9] }, { ARGV[10] }, {}
if ARGV[13] ~= '' then requestKeys[1] = ARGV[11] end
local poolSize, wanted, payoutCount = { 0 }, { 1 }, { #ARGV[17] / PAYOUT_BYTES }
local fingerprint, requestId = ARGV[12], ARGV[13]
local stake, payoutMax, funding = tonumber(ARGV[15]), tonumber(ARGV[16]), tonumber(ARGV[19])
-- include: layouts/statuses
-- include: windows
local awayPartner = ARGV[8]
-- include: notAway
-- include: players
-- include: idempotency
-- include: gameSupply
-- include: refuse
-- include: layouts/rounds
local game, player = 1, 1
local roundsKey, roundField = cellPrefix .. 'rounds', ARGV[9] .. ':' .. ARGV[10]
local openRound = call('HGET', roundsKey, roundField)
local status, core, index, steps = nil, NO_CORE, 0, 0
local before
-- include: loadPlayer
-- This loop runs only once. It exists so that a refusal can leave it by `break`.
repeat
  local boundTo = bound[1]
  if boundTo then
    if sub(boundTo, CORE_BYTES + 1, BOUND_BYTES) == fingerprint then
      status, core = REPLAY, sub(boundTo, 1, CORE_BYTES)
    else
      status = CONFLICT
    end
    break
  end
  status = DENIALS[tonumber(ARGV[14])]
  if status then break end
  local isNew = not before
  if isNew then before = tonumber(ARGV[18]) end
  status = refuse(playerTails[player], openRound and ROUND_OPEN, before, stake, payoutMax,
    ARGV[20] == '1', funding, netPaid[1])
  if status == ROUND_OPEN then
    local low, high
    index, low, high, steps = unpackStruct(ROUND_FORMAT, openRound)
    core = pack(ENTRY_ID_FORMAT, low, high) .. rep('\0', CORE_BYTES - ENTRY_ID_BYTES)
  end
  if status then break end
  -- Take the shoe from the queue, as `index` and `code`.
  do
    local shoe
    repeat
      local index, code
      -- include: takeOutcome
      shoe = { index, code }
    until true
    if not shoe then break end
    index = shoe[1]
    local code = shoe[2]
    local payout = unpackStruct(PAYOUT_FORMAT, ARGV[17], code * PAYOUT_BYTES + 1)
    if isNew then
      -- include: openPlayer
    end
    local text = pack(ENTRY_TEXT_FORMAT, #ARGV[10], #requestId) .. ARGV[10] .. requestId
    local head = pack(ENTRY_HEAD_FORMAT, ROUND_DEAL_ENTRY, tonumber(ARGV[9]), stake)
    local credit, balance = payout, before - stake + payout
    -- inline: bookEntry
    netPaid[1] = netPaid[1] + payout - stake
    if requestKeys[1] then newlyBound, newlyBoundCount = { requestKeys[1], core .. fingerprint }, 2 end
    -- An outcome code of 0 means that the round stays open after the deal.
    if code == 0 then openRound = pack(ROUND_FORMAT, index, previousLow[player], previousHigh[player], 0) end
  end
  status = DEALT
until true

local reply = pack(ROUND_DEAL_REPLY_FORMAT, nowMs, byte(status), core, index, steps,
  previousLow[player] or 0, previousHigh[player] or 0)

-- From here on the script only writes.
if status == DEALT then
  -- include: writeEntries
  -- include: writeGames
  call('HSET', KEYS[1], 'last', newLast, operationField, operationId .. reply)
  if openRound then call('HSET', roundsKey, roundField, openRound) end
  -- include: writeWindows
else
  call('HSET', KEYS[1], operationField, operationId .. reply)
end
return reply
