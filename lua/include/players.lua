-- The players of the call: balance and newest entry. A player's state is read from its record when it is first asked for,
-- and then kept here. Every ledger entry moves one player; include/bookEntry.lua books it. Needs `playerNames`.
-- include: outbox
local storedPlayers = {}
if #playerNames > 0 then
  storedPlayers = call('HMGET', KEYS[3], unpack(playerNames))
end
local balances, entryNumbers, previousLow, previousHigh, createdAt, playerTails = {}, {}, {}, {}, {}, {}
local playerCores, movedPlayers, movedCount = {}, {}, 0
