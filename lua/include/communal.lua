-- The communal progressives of the call's games (docs/communal.md): counts dealt spins, fires events, credits
-- shares and notifies players. Needs `gameIds` and gives `bonus`, which is nil if no game of the cell has a
-- communal progressive. Such a cell has no field `communal`, and none of this code runs.
--
-- computed {cN}:communal        hash, game id -> POT_STATE, POT_RULES and tiers (include/communalRecords.lua)
-- computed {cN}:recent:<game>   list, one RECENT per call, newest last, at most RECENCY_CALLS_MAX
-- computed {cN}:untold:<player> list, shares that the player has not been notified of, beyond those after its
--                               PLAYER
-- include: cell
-- include: players
-- include: playerFlags
local bonus
-- A call handles only one event. The spin that would fire a second event, and all spins after it, must be
-- sent again in the next call.
local isDeferring = false
if cell[5] and #gameIds > 0 then
  -- include: notes
  -- include: communalSplit
  local function bookEntry(player, head, index, credit, code, balance, text)
    local core
    -- inline: bookEntry
    return core
  end

  -- The communal progressives of the call's games, by position of the game.
  local pots = {}
  -- True after the call has fired an event. A call credits the shares of one event only.
  local hasFired = false
  local records = call('HMGET', cellPrefix .. 'communal', unpack(gameIds))
  for game = 1, #gameIds do
    if records[game] then pots[game] = readPot(records[game]) end
  end

  -- Shares to be written for a player, by position of the player: the share to append to the player's list,
  -- and the number of shares to remove from the front of the list.
  local newlyListed, takenOff = {}, {}
  local function listKey(player)
    return cellPrefix .. 'untold:' .. playerNames[player]
  end

  -- Stores a share that a later spin will notify its player of. A call fires one event at most, so each
  -- player gets at most one share.
  local function keepWaiting(player, share)
    local tail = playerTails[player] or NO_STATUS
    if not hasListed(tail) then
      if #tail + #share <= WAITING_BYTES_MAX then
        playerTails[player] = tail .. share
        return
      end
      playerTails[player] = char(byte(tail) + HAS_LISTED) .. sub(tail, 2)
    end
    newlyListed[player] = share
  end

  -- True if the player has the maximum number of shares that it has not been notified of.
  local function isFull(player)
    local tail = playerTails[player]
    if not hasListed(tail) then return false end
    local count = call('LLEN', listKey(player)) - (takenOff[player] or 0)
    local at = PLAYER_STATUS_BYTES + 1
    while at < #tail do
      at, count = at + 2 + byte(tail, at) + byte(tail, at + 1) * 256, count + 1
    end
    return count >= WAITING_MAX
  end

  -- Notifies a player of its oldest pending share. Returns the tail for the spin that was written last.
  local function notify(player, gameId)
    local tail = playerTails[player]
    local flags, at = byte(tail), PLAYER_STATUS_BYTES + 1
    local length = byte(tail, at) + byte(tail, at + 1) * 256
    local left = sub(tail, at + 2 + length)
    if left == '' and hasListed(tail) then
      local from = takenOff[player] or 0
      local listed = call('LRANGE', listKey(player), from, from + WAITING_TAKEN - 1)
      takenOff[player] = from + #listed
      left = concat(listed)
      if #listed < WAITING_TAKEN then
        flags, left = flags - HAS_LISTED, left .. (newlyListed[player] or '')
        newlyListed[player] = nil
      end
    end
    local status = char(flags) .. sub(tail, 2, PLAYER_STATUS_BYTES)
    playerTails[player] = (left ~= '' or status ~= NO_STATUS) and status .. left or nil
    local name = playerNames[player]
    local spin = pack(ENTRY_ID_FORMAT, previousLow[player], previousHigh[player])
    local note = char(NOTIFIED_NOTE) .. sub(tail, at + 2, at + 9) .. spin
    addNote(COMMUNAL_NOTE_ENTRY, gameId, sub(name, 1, (find(name, ':', 1, true))), note)
    return sub(tail, at + 10, at + 1 + length)
  end

  -- Reads the record of a player who is not in this call, or whose spin comes later in the batch. Does the
  -- same as include/loadPlayer.lua.
  local function readMember(player)
    local record = storedPlayers[player]
    if not record then return nil end
    local _
    previousLow[player], previousHigh[player], _, balances[player], entryNumbers[player], createdAt[player] =
      unpackStruct(PLAYER_FORMAT, record)
    if #record > PLAYER_BYTES then playerTails[player] = sub(record, PLAYER_BYTES + 1) end
    return balances[player]
  end

  local function recentKey(game)
    return cellPrefix .. 'recent:' .. gameIds[game]
  end

  -- Returns the names of a game's players and the times of their last spins, without duplicates, most recent
  -- first: the players of this call, then those of earlier calls. The result has at most `most` players.
  local function recentPlayers(pot, earlier, most)
    local names, moments, seen, count = {}, {}, {}, 0
    local lines, chunkNumber = pot.recent, #earlier
    -- In a RECENT, a line with a time applies to the players of the following lines.
    local first = 1
    while lines do
      for i = #lines, 1, -1 do
        local line = lines[i]
        if byte(line) == MOMENT then
          local moment = tonumber(sub(line, 2))
          for name = first, count do moments[name] = moment end
          first = count + 1
        elseif not seen[line] and count < most then
          seen[line], count = true, count + 1
          names[count] = line
        end
      end
      local chunk = count < most and earlier[chunkNumber]
      lines, chunkNumber = chunk and linesOf(chunk), chunkNumber - 1
    end
    return names, moments
  end

  -- Merges the RECENT lists of earlier calls and of this call into one.
  local function gather(pot, earlier)
    local names, moments = recentPlayers(pot, earlier, RECENCY_MAX)
    local lines, count, moment = {}, 0, nil
    for i = #names, 1, -1 do
      if moments[i] ~= moment then
        moment, count = moments[i], count + 1
        lines[count] = format('=%.0f', moment)
      end
      count = count + 1
      lines[count] = names[i]
    end
    pot.recent = lines
  end

  -- Returns the index of each named player in this call's list of players. A player who is not yet in the
  -- list is added, and the player's record is read.
  local function placesOf(names)
    local placeOf, places, unread, unreadPlaces = {}, {}, {}, {}
    for place = 1, #playerNames do placeOf[playerNames[place]] = place end
    for i = 1, #names do
      local name = names[i]
      local place = placeOf[name]
      if not place then
        place = #playerNames + 1
        playerNames[place] = name
        unread[#unread + 1], unreadPlaces[#unread + 1] = name, place
      end
      places[i] = place
    end
    if #unread > 0 then
      local stored = call('HMGET', KEYS[3], unpack(unread))
      for i = 1, #unread do storedPlayers[unreadPlaces[i]] = stored[i] end
    end
    return places
  end

  -- Returns the community of an event without the player who fired the event: the index of each member in
  -- this call's list of players, most recent first.
  local function communityOf(pot, game, trigger)
    if pot.communitySize == 0 then return {} end
    -- The most recent player is the player whose spin fires the event.
    local names, moments = recentPlayers(pot, call('LRANGE', recentKey(game), 0, -1), pot.communitySize + 1)
    local oldest, others = idMs - pot.windowMinutes * 60000, {}
    for i = 2, #names do
      if moments[i] < oldest then break end
      others[i - 1] = names[i]
    end
    local places = placesOf(others)
    -- A player is skipped if the largest share would take its balance over the maximum, or if it has the
    -- maximum number of pending shares.
    local fitting = {}
    for i = 1, #places do
      local player = places[i]
      local balance = balances[player] or readMember(player)
      if balance and balance <= MONEY_MAX - TIER_AMOUNT_MAX and not isFull(player) then
        fitting[#fitting + 1] = player
      end
    end
    return fitting
  end

  -- Fires a tier for the spin that was written last. Returns the spin's tail, which is empty if the event
  -- pays nothing.
  local function fire(pot, game, trigger, tier)
    hasFired = true
    local eventId = pack(ENTRY_ID_FORMAT, previousLow[trigger], previousHigh[trigger])
    local amount = payable(tier.amount, pot.budget, pot.paysRemaining)
    local shares, winners, paid = {}, {}, 0
    if amount then
      local community = communityOf(pot, game, trigger)
      local part, each, leftOver = splitAmount(amount, pot.split, #community, pot.returnsToBudget)
      if balances[trigger] > MONEY_MAX - TIER_AMOUNT_MAX then part = 0 end
      winners[1], shares[1], paid = trigger, part, part
      for i = 1, #community do
        local share = i <= leftOver and each + 1 or each
        winners[i + 1], shares[i + 1], paid = community[i], share, paid + share
      end
    end
    local winnerCount = 0
    for i = 1, #winners do
      if shares[i] > 0 then winnerCount = winnerCount + 1 end
    end
    pot.budget = pot.budget - paid
    addNote(COMMUNAL_NOTE_ENTRY, gameIds[game], pot.partner, pack(
      EVENT_NOTE_FORMAT, EVENT_NOTE, eventId, pot.version, tier.level,
      amount and PAID or SKIPPED_BUDGET, pot.progress, tier.amount, paid, winnerCount
    ) .. tier.name)
    if paid == 0 then return '' end
    local head = pack(ENTRY_HEAD_FORMAT, COMMUNAL_SHARE_ENTRY, gameIds[game], 0)
    for i = 1, #winners do
      local player, share = winners[i], shares[i]
      if share > 0 then
        local tail = pack(BONUS_NOTICE_FORMAT, eventId, tier.level, 0, paid, share) .. tier.name
        local name = playerNames[player]
        entryNumbers[player] = entryNumbers[player] + 1
        -- The byte after the event id is 1 if the share belongs to the player whose spin fired the event.
        -- This player is notified immediately.
        bookEntry(player, head, 0, share, 0, balances[player] + share,
          pack(ENTRY_TEXT_FORMAT, #name, SHARE_TEXT_BYTES) .. name
            .. pack(SHARE_TEXT_FORMAT, eventId, i == 1 and 1 or 0))
        if i > 1 then
          keepWaiting(player, pack(
            WAITING_SHARE_FORMAT, ENTRY_ID_BYTES + #tail, previousLow[player], previousHigh[player]
          ) .. tail)
        end
      end
    end
    return pack(BONUS_NOTICE_FORMAT, eventId, tier.level, 1, paid, shares[1]) .. tier.name
  end

  bonus = {
    -- Returns the tier that the next spin of a game fires, or nil. A spin writes at most two entries: its
    -- player's opening and the spin itself.
    tierOf = function(game)
      local pot = pots[game]
      local tier = pot and pot.enabled and nextTier(pot)
      local entries = outboxEntries + 2 + (tier and pot.communitySize + 1 or 0)
      if (tier and outboxEntries > 0 or hasFired) and (tier and hasFired or entries > ENTRIES_MAX) then
        isDeferring = true
      end
      return tier
    end,

    -- Counts the spin that was written last for its game's communal progressive. Returns the spin's tail,
    -- with the notice for its player.
    count = function(game, player, tier)
      local pot, tail = pots[game], ''
      if pot then
        if pot.remembers then
          local count = pot.recentCount
          if pot.recentMs ~= idMs then
            pot.recentMs, count = idMs, count + 1
            pot.recent[count] = format('=%.0f', idMs)
          end
          pot.recentCount = count + 1
          pot.recent[count + 1] = playerNames[player]
        end
        if pot.enabled then
          pot.progress = pot.progress + 1
          if tier then tail = fire(pot, game, player, tier) end
        end
      end
      if tail == '' and playerTails[player] and #playerTails[player] > PLAYER_STATUS_BYTES then
        tail = notify(player, gameIds[game])
      end
      return tail
    end,

    -- Adds notes to the outbox, from which the ledger gets the number of counted spins, and prepares the list
    -- of recent players.
    note = function()
      for game, pot in pairs(pots) do
        if pot.progress ~= pot.progressBefore then
          addNote(COMMUNAL_NOTE_ENTRY, gameIds[game], pot.partner, stateNote(pot, BY_SPINS, pot.version))
        end
        if pot.recentCount > 0 then
          local key = recentKey(game)
          pot.isGathered = call('LLEN', key) >= RECENCY_CALLS_MAX
          if pot.isGathered then
            gather(pot, call('LRANGE', key, 0, -1))
          end
        end
      end
    end,

    -- Writes the pots whose counters have changed, their recent players, and the shares that players have not
    -- been notified of.
    write = function()
      for player, count in pairs(takenOff) do call('LTRIM', listKey(player), count, -1) end
      for player, share in pairs(newlyListed) do call('RPUSH', listKey(player), share) end
      for game, pot in pairs(pots) do
        if pot.progress ~= pot.progressBefore then
          call('HSET', cellPrefix .. 'communal', gameIds[game], potRecord(pot))
        end
        if pot.recentCount > 0 then
          if pot.isGathered then call('DEL', recentKey(game)) end
          call('RPUSH', recentKey(game), concat(pot.recent, '\n'))
        end
      end
    end,
  }
end
