/** Hash of the mathematics that decide a game's outcomes: the PAR sheet, the prize table or the rules. */
import { createHash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { ParSheet } from '../par.js';
import { ParCombinationBody, ParSheetBody, ParSymbolBody, ParTierBody } from '../par.js';

/** Returns only the members that the contract defines, in any order. */
function cut(value: object, { properties }: { readonly properties: object }): Record<string, unknown> {
  const members = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(Object.keys(properties).map((name) => [name, members[name]]));
}

/**
 * Computes SHA-256 of the canonical JSON (RFC 8785) of a PAR sheet, restricted to the members of
 * docs/contract.md §6 at every level.
 */
export function sheetHash(sheet: ParSheet): Buffer {
  const math = {
    ...cut(sheet, ParSheetBody),
    symbols: sheet.symbols.map((each) => cut(each, ParSymbolBody)),
    tiers: sheet.tiers.map((each) => cut(each, ParTierBody)),
    combinations: sheet.combinations.map((each) => cut(each, ParCombinationBody)),
  };
  return createHash('sha256').update(canonicalize(math)!).digest();
}

/** Computes SHA-256 of a prize table's text (docs/raffles.md). */
export const tableHash = (text: string): Buffer => createHash('sha256').update(text).digest();
