-- Reads the lists of a batch (deal.lua has the layout): partners, games, players, requestIds. Ids that name fields come as
-- texts: Redis would make one of a number each time, and takes 0.4 us for that.
-- include: cell
local batch = ARGV[8]
local partnerCount, gameCount, playerCount, requestCount, spinCount, tableBytes, listsAt, spinsAt, offset =
  unpackStruct('<I2I2I2I2I2I4I4I4', batch)
local partnerIds, spinLimit, apiLimit, opening, funding, partnerFlags, knownMoves = {}, {}, {}, {}, {}, {}, {}
for i = 1, partnerCount do
  spinLimit[i], apiLimit[i], opening[i], funding[i], partnerFlags[i], knownMoves[i], partnerIds[i], offset =
    unpackStruct('<I4I4i8i8BI4Bc0', batch, offset)
end
offset = offset + tableBytes
local gameIds, wager, gameMaxPayout, payoutsAt, payoutCount, poolSize, wanted, spinHead = {}, {}, {}, {}, {}, {}, {}, {}
for i = 1, gameCount do
  spinHead[i] = '\1' .. sub(batch, offset, offset + 11)
  wager[i], gameMaxPayout[i], payoutsAt[i], payoutCount[i], poolSize[i], wanted[i], gameIds[i], offset =
    unpackStruct('<i8i8I4I2I4I2Bc0', batch, offset + 4)
end
local playerNames, requestKeys = {}, {}
offset = listsAt + 1
-- The last value that unpack gives is where it ended.
if playerCount > 0 then
  playerNames = { unpackStruct('<' .. rep('I2c0', playerCount), batch, offset) }
  offset = playerNames[playerCount + 1]
  playerNames[playerCount + 1] = nil
end
if requestCount > 0 then
  requestKeys = { unpackStruct('<' .. rep('c16', requestCount), batch, offset) }
  requestKeys[requestCount + 1] = nil
end
