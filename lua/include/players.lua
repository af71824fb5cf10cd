-- The players of the call, with balance and newest entry. A player's record is decoded when it is first
-- needed, and the tables of this file then keep its state. Every ledger entry changes one player
-- (include/bookEntry.lua). Needs `playerNames`.
-- include: outbox
local storedPlayers = {}
if #playerNames > 0 then
  storedPlayers = call('HMGET', KEYS[3], unpack(playerNames))
end
local balances, entryNumbers, previousLow, previousHigh, createdAt, playerTails = {}, {}, {}, {}, {}, {}
local playerCores, movedPlayers, movedCount = {}, {}, 0
