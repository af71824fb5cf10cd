-- The players of the call: balance and newest entry. A player's state is read from its record when it is first asked for,
-- and then kept here. Every ledger entry moves one player and is booked here. Needs `playerNames`.
-- include: outbox
local storedPlayers = {}
if #playerNames > 0 then
  storedPlayers = call('HMGET', KEYS[3], unpack(playerNames))
end
local balances, entryNumbers, previousLow, previousHigh, createdAt, playerTails = {}, {}, {}, {}, {}, {}
local playerCores, movedPlayers, movedCount = {}, {}, 0

-- The balance of a player, micro-USD; nil where it is not known. To be called once for each.
local function loadPlayer(player)
  local record = storedPlayers[player]
  if not record then
    return nil
  end
  local _
  previousLow[player], previousHigh[player], _, balances[player], entryNumbers[player], createdAt[player] =
    unpackStruct(PLAYER_FORMAT, record)
  if #record > 28 then
    playerTails[player] = sub(record, 29)
  end
  return balances[player]
end

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

-- Makes a player that is not known, with its opening balance.
local function openPlayer(player, balance)
  local name = playerNames[player]
  previousLow[player], previousHigh[player], entryNumbers[player] = 0, 0, 1
  bookEntry(player, '\2' .. rep('\0', 12), 0, balance, 0, balance, pack('<I2I2', #name, 0) .. name)
  createdAt[player] = idMs
end
