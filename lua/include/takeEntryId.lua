-- For inlining. Advances to the next entry id, whose low 32 bits are `idLow + idSequence` and whose high bits
-- are `idHigh`.
idSequence = idSequence + 1
if idSequence > 16383 then
  idMs, idSequence = idMs + 1, 0
  idHigh, idLow = floor(idMs / 1024), (idMs % 1024) * 4194304 + idCellBits
end
