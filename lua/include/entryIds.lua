-- Ids of ledger entries: ms (41 bits), cell (8), sequence (14). They continue after the newest entry of the cell, and never
-- go back, even where the clock does. Gives `idMs`, `idSequence` and `idHigh` of the newest id; include/takeEntryId.lua goes on to the next.
-- include: cell
local idMs, idSequence = nowMs, -1
if last then
  local lastMs, lastSequence = unpackStruct(MOMENT_FORMAT, last)
  if lastMs >= nowMs then
    idMs, idSequence = lastMs, lastSequence
  end
end
local idCellBits = tonumber(ARGV[2]) * 16384
local idHigh, idLow = floor(idMs / 1024), (idMs % 1024) * 4194304 + idCellBits
