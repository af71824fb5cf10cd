-- Reads the lists of a batch (src/domain/layouts.ts, BATCH): partners, games, players, requestIds. Ids that
-- are used as field names are passed as text, because the script would need 0.4 us to format a number each
-- time.
-- include: cell
-- include: layouts/entries
-- include: layouts/batch
local batch = ARGV[8]
local partnerCount, gameCount, playerCount, requestCount, spinCount, tableBytes, listsAt, spinsAt, offset =
  unpackStruct(BATCH_FORMAT, batch)
local partnerIds, spinLimit, apiLimit, opening = {}, {}, {}, {}
local funding, enforcesBalance, isSandbox, knownMoves = {}, {}, {}, {}
for i = 1, partnerCount do
  local flags
  spinLimit[i], apiLimit[i], opening[i], funding[i], flags, knownMoves[i], partnerIds[i], offset =
    unpackStruct(BATCH_PARTNER_FORMAT, batch, offset)
  enforcesBalance[i], isSandbox[i] = hasFlag(flags, ENFORCES_BALANCE), hasFlag(flags, IS_SANDBOX)
end
offset = offset + tableBytes
local gameIds, wager, gameMaxPayout, payoutsAt = {}, {}, {}, {}
local payoutCount, poolSize, wanted, spinHead = {}, {}, {}, {}
for i = 1, gameCount do
  local _
  -- The first bytes of a game's record in the batch are the head of its ledger entries.
  spinHead[i] = char(SPIN_ENTRY) .. sub(batch, offset, offset + ENTRY_HEAD_BYTES - 2)
  _, wager[i], gameMaxPayout[i], payoutsAt[i], payoutCount[i], poolSize[i], wanted[i], gameIds[i], offset =
    unpackStruct(BATCH_GAME_FORMAT, batch, offset)
end
local playerNames, requestKeys = {}, {}
offset = listsAt + 1
-- The last result of struct.unpack is the position of the first byte after the unpacked values.
if playerCount > 0 then
  playerNames = { unpackStruct('<' .. rep(BATCH_PLAYER_MEMBERS, playerCount), batch, offset) }
  offset = playerNames[playerCount + 1]
  playerNames[playerCount + 1] = nil
end
if requestCount > 0 then
  requestKeys = { unpackStruct('<' .. rep(BATCH_REQUEST_MEMBERS, requestCount), batch, offset) }
  requestKeys[requestCount + 1] = nil
end
