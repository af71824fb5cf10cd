-- Ids of ledger entries: ms (41 bits), cell (8), sequence (14). New ids continue after the newest entry of
-- the cell and never decrease, even if the clock goes back. Gives `idMs`, `idSequence` and `idHigh` of the
-- newest id; include/takeEntryId.lua advances to the next id.
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
