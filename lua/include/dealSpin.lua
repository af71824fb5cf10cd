-- Decides one spin of a batch. The spin has been counted, and its requestId is not bound. Gives `status`, and
-- for a dealt spin also `core` and `tail`. The loop runs only once. It exists so that a refusal can leave it
-- by `break`.
repeat
  local before = balances[player]
  if not before then
    -- include: loadPlayer
  end
  local isNew = not before
  if isNew then before = opening[partner] end
  local stake = wager[game]
  do
    local tail, own = playerTails[player], false
    local debit, credit, enforces, funding, net =
      stake, gameMaxPayout[game], enforcesBalance[partner], funding[partner], netPaid[partner]
    -- inline: refusal
  end
  if status then break end
  -- A forced spin takes no outcome from the queue and does not take part in a communal progressive.
  local forcedCode
  if forcedKeys[partner] then
    -- include: takeForced
  end
  local tier = bonus and not forcedCode and bonus.tierOf(game)
  if isDeferring then break end
  local index, code, head = 0, forcedCode, nil
  if forcedCode then
    head = char(FORCED_SPIN_ENTRY) .. sub(spinHead[game], 2)
  else
    -- include: takeOutcome
    head = spinHead[game]
  end
  local payout = unpackStruct(PAYOUT_FORMAT, batch, payoutsAt[game] + code * PAYOUT_BYTES + 1)
  if isNew then
    -- include: openPlayer
  end
  entryNumbers[player] = entryNumbers[player] + 1
  local credit, balance, text = payout, before - stake + payout, sub(batch, textAt - 4, position - 1)
  -- inline: bookEntry
  -- The tail is the part of the answer that a replay repeats in addition to the CORE: the notice of a
  -- communal progressive, or the mark of a forced spin.
  tail = ''
  if forcedCode then
    tail = FORCED_TAIL
  else
    netPaid[partner] = netPaid[partner] + payout - stake
    if bonus then tail = bonus.count(game, player, tier) end
  end
  if request > 0 then
    local value = core .. fingerprint .. tail
    bound[request] = value
    newlyBound[newlyBoundCount + 1], newlyBound[newlyBoundCount + 2] = requestKeys[request], value
    newlyBoundCount = newlyBoundCount + 2
    bookedKeyCount = bookedKeyCount + 1
    bookedKeys[bookedKeyCount] = requestKeys[request]
  end
  status = DEALT
until true
