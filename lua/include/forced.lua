-- The forced outcomes that testers set for the next spin of a player at a game (docs/requests.md). Only
-- sandbox partners have them, and nothing is read for other partners. Needs `partnerIds` and `isSandbox`.
--
-- computed {cN}:forced               string with expiry: exists if a partner of the cell has a forced outcome
-- computed {cN}:forced:<partner id>  hash with expiry, "<game id>:<partner id>:<playerId>" -> FORCED
-- include: batch
-- include: layouts/forced
-- By position of the partner in the batch: the key of the partner's forced outcomes.
local forcedKeys, isAnyForced = {}, nil
for i = 1, partnerCount do
  if isSandbox[i] then
    if isAnyForced == nil then isAnyForced = call('EXISTS', cellPrefix .. 'forced') == 1 end
    if isAnyForced then forcedKeys[i] = cellPrefix .. 'forced:' .. partnerIds[i] end
  end
end
-- Forced outcomes that this call has used: field -> key.
local usedForced = {}
