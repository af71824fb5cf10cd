-- The outcomes that testers chose for the next spin of a player at a game (docs/requests.md). Only sandbox partners have any: for
-- all others nothing is read. Needs `partnerIds` and `isSandbox`.
--
-- computed {cN}:forced               string with expiry: some partner of the cell has chosen
-- computed {cN}:forced:<partner id>  hash with expiry, "<game id>:<partner id>:<playerId>" -> FORCED
-- include: batch
-- include: layouts/forced
-- By the place of the partner: where its choices are.
local forcedKeys, isAnyForced = {}, nil
for i = 1, partnerCount do
  if isSandbox[i] then
    if isAnyForced == nil then isAnyForced = call('EXISTS', cellPrefix .. 'forced') == 1 end
    if isAnyForced then forcedKeys[i] = cellPrefix .. 'forced:' .. partnerIds[i] end
  end
end
-- Field -> key of the choices that this call has used up.
local usedForced = {}
