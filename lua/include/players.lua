-- The players of the call: balance and newest entry. A player's state is read from its record when it is first asked for,
-- and then kept here. Every ledger entry moves one player and is booked here.
-- include: outbox
local OPENING_HEAD = '\2' .. rep('\0', 12)
local playerNames, storedPlayers = {}, {}
local balances, entryNumbers, previousLow, previousHigh, createdAt, playerTails = {}, {}, {}, {}, {}, {}
local playerCores, movedPlayers, movedCount = {}, {}, 0

local function readPlayers(names)
  if #names > 0 then
    playerNames, storedPlayers = names, call('HMGET', KEYS[3], unpack(names))
  end
end

-- The balance of a player, micro-USD; nil where it is not known. To be called once for each.
local function loadPlayer(player)
  local stored = storedPlayers[player]
  if not stored then
    return nil
  end
  local _
  previousLow[player], previousHigh[player], _, balances[player], entryNumbers[player], createdAt[player] =
    unpackStruct(PLAYER_FORMAT, stored)
  if #stored > PLAYER_BYTES then
    playerTails[player] = sub(stored, PLAYER_BYTES + 1)
  end
  return balances[player]
end

-- Books an entry of a player, which is known. `head`: kind u8, game id u32, wager i64. `text`: lengths of player and
-- requestId u16 each, player, requestId. Returns the CORE. src/redis/records.ts, OUTBOX, has the layout.
local function bookEntry(player, head, index, credit, code, balance, text)
  local low = nextEntryId()
  local record = pack('<I6i8I4I4I2i8I4I4I4', index, credit, low, idHigh, code, balance,
    previousLow[player], previousHigh[player], entryNumbers[player])
  local core = sub(record, 15, 14 + CORE_BYTES)
  outboxRecords[outboxPieces + 1], outboxRecords[outboxPieces + 2], outboxRecords[outboxPieces + 3] = head, record, text
  outboxPieces, outboxEntries = outboxPieces + 3, outboxEntries + 1
  if not playerCores[player] then
    movedCount = movedCount + 1
    movedPlayers[movedCount] = player
  end
  balances[player], playerCores[player] = balance, core
  previousLow[player], previousHigh[player] = low, idHigh
  return core
end

-- Makes a player that is not known, with its opening balance.
local function openPlayer(player, balance)
  local name = playerNames[player]
  previousLow[player], previousHigh[player], entryNumbers[player] = 0, 0, 1
  bookEntry(player, OPENING_HEAD, 0, balance, 0, balance, pack('<I2I2', #name, 0) .. name)
  createdAt[player] = idMs
end

local function writePlayers()
  local values = {}
  for i = 1, movedCount do
    local player = movedPlayers[i]
    local record = pack('<c18I4I6', playerCores[player], entryNumbers[player], createdAt[player])
    local tail = playerTails[player]
    values[2 * i - 1], values[2 * i] = playerNames[player], tail and record .. tail or record
  end
  call('HSET', KEYS[3], unpack(values))
end
