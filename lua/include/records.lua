-- Packed records that several scripts read or write. src/domain/layouts.ts describes them.
-- include: library
-- include: layouts/records
local NO_CORE = rep('\0', CORE_BYTES)
