-- Ids of ledger entries: ms (41 bits), cell (8), sequence (14). They continue after the newest entry of the cell, and never
-- go back, even where the clock does. Gives `idMs`, `idSequence` and `idHigh` of the newest id, and `nextEntryId`.
-- include: cell
local idMs, idSequence = nowMs, -1
if last then
  local lastMs, lastSequence = unpackStruct('<I6I2', last)
  if lastMs >= nowMs then
    idMs, idSequence = lastMs, lastSequence
  end
end
local idCellBits = tonumber(ARGV[2]) * 16384
local idHigh, idLow = floor(idMs / 1024), (idMs % 1024) * 4194304 + idCellBits

-- The low 32 bits of the next id; the high ones are `idHigh`.
local function nextEntryId()
  idSequence = idSequence + 1
  if idSequence > 16383 then
    idMs, idSequence = idMs + 1, 0
    idHigh, idLow = floor(idMs / 1024), (idMs % 1024) * 4194304 + idCellBits
  end
  return idLow + idSequence
end
