-- The players of the call: balance and newest entry. A player's state is read from its record when it is first asked for,
-- and then kept here. Every ledger entry moves one player and is booked here. Needs `playerNames`.
-- include: outbox
local storedPlayers = {}
if #playerNames > 0 then
  storedPlayers = call('HMGET', KEYS[3], unpack(playerNames))
end
local balances, entryNumbers, previousLow, previousHigh, createdAt, playerTails = {}, {}, {}, {}, {}, {}
local playerCores, movedPlayers, movedCount = {}, {}, 0

-- Books an entry of a player, which is known. `head`: kind u8, game id u32, wager i64. `text`: lengths of player and
-- requestId u16 each, player, requestId. Returns the CORE. src/redis/records.ts, OUTBOX, has the layout.
local function bookEntry(player, head, index, credit, code, balance, text)
  local low, high = nextEntryId(), idHigh
  local record = pack('<I6i8I4I4I2i8I4I4I4', index, credit, low, high, code, balance,
    previousLow[player], previousHigh[player], entryNumbers[player])
  local core = sub(record, 15, 32)
  local pieces = outboxPieces
  outboxRecords[pieces + 1], outboxRecords[pieces + 2], outboxRecords[pieces + 3] = head, record, text
  outboxPieces, outboxEntries = pieces + 3, outboxEntries + 1
  if not playerCores[player] then
    movedCount = movedCount + 1
    movedPlayers[movedCount] = player
  end
  balances[player], playerCores[player] = balance, core
  previousLow[player], previousHigh[player] = low, high
  return core
end
